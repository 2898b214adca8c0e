"""Derives priorities for `priority="auto"` from a page's path and its place in the site."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

HOME, HUB, ARTICLE, OTHER, HOUSEKEEPING = 1.0, 0.8, 0.6, 0.5, 0.3
"""Priorities: home page, pages with others below them, pages with parameters, other pages, legal and account pages."""

_HOUSEKEEPING_PATH: Final = re.compile(
    r"(?:^|[/_-])(?:agb|accessibility|account|cgu|conditions|cookies?|copyright|datenschutz|disclaimer|forgot|gdpr|"
    r"impressum|imprint|legal|licen[cs]es?|login|logout|password|privacy|register|security|sign-?(?:in|out|up)|"
    r"terms|tos)(?:[/_.-]|$)"
)


def hub_paths(paths: Iterable[str]) -> frozenset[str]:
    """The paths of all folders that these paths are in, without the root."""
    hubs: set[str] = set()
    for parent in {path.rstrip("/").rpartition("/")[0] for path in paths}:
        while parent and parent not in hubs:
            hubs.add(parent)
            parent = parent.rpartition("/")[0]
    return frozenset(hubs)


def priority(path: str, static: bool, hubs: frozenset[str]) -> float:
    """The priority of a page.

    Args:
        path: decoded.
        static: whether its route has no parameters.
        hubs: paths with other pages below them.
    """
    if path == "/":
        return HOME
    if _HOUSEKEEPING_PATH.search(path.lower()):
        return HOUSEKEEPING
    if path.rstrip("/") in hubs:
        return HUB
    return OTHER if static else ARTICLE
