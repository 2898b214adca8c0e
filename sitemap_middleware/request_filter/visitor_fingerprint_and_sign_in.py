"""Makes a fingerprint that tells visitors apart, and decides whether a user is signed in."""

from __future__ import annotations

from typing import Any
from zlib import crc32


def visitor_fingerprint(status: int, agent: str, language: str) -> int:
    """32 bits that tell visitors apart, if a response of this status may depend on the visitor.

    They are made of the User-Agent; of redirects, of the preferred language, if one is
    stated, because all visitors of one language are redirected alike.
    """
    source = agent
    if 300 <= status < 400:
        source = language.partition(",")[0].partition(";")[0].partition("-")[0].strip().lower() or agent
    return crc32(source.encode("utf-8", "replace"))


def is_authenticated_user(user: Any) -> bool:
    """Whether a user, as frameworks put it into a scope or an environ, is signed in."""
    try:
        return bool(getattr(user, "is_authenticated", user))
    except Exception:  # raised by the app's own code: the page is taken to be private
        return True
