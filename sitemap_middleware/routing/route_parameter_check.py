"""Checks that the parameters given for a route are the route's: none is missing, and none is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def check_params(params: Mapping[str, Any], required: Iterable[str], known: Iterable[str]) -> None:
    """Raise `ValueError` if parameters are missing, or are not the route's."""
    if missing := set(required) - set(params):
        raise ValueError(f"the route's {', '.join(sorted(missing))} is missing")
    if unknown := set(params) - set(known):
        raise ValueError(f"the route has no parameter {', '.join(sorted(map(str, unknown)))}")
