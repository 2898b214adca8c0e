"""Decides whether a user is signed in."""

from __future__ import annotations

from typing import Any


def is_authenticated_user(user: Any) -> bool:
    """Whether a user, as frameworks put it into a scope or an environ, is signed in."""
    try:
        return bool(getattr(user, "is_authenticated", user))
    except Exception:  # raised by the app's own code: the page is taken to be private
        return True
