"""`priority="auto"`: a page's place in its site, read off the URL map."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

HOME, HUB, ARTICLE, OTHER, HOUSEKEEPING = 1.0, 0.8, 0.6, 0.5, 0.3

_HOUSEKEEPING_PATH: Final = re.compile(
    r"(?:^|[/_-])(?:agb|accessibility|account|cgu|conditions|cookies?|copyright|datenschutz|disclaimer|forgot|gdpr|"
    r"impressum|imprint|legal|licen[cs]es?|login|logout|password|privacy|register|security|sign-?(?:in|out|up)|"
    r"terms|tos)(?:[/_.-]|$)"
)


def hub_paths(paths: Iterable[str]) -> frozenset[str]:
    """The paths below which other routes or pages lie: those that lead to others."""
    found = set()
    for path in paths:
        parent = path.rstrip("/").rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return frozenset(found)


def priority(path: str, static: bool, leading: frozenset[str]) -> float:
    """Where a page stands: home 1.0, pages that lead to others 0.8, articles 0.6, others 0.5, legal and such 0.3."""
    if path == "/":
        return HOME
    if _HOUSEKEEPING_PATH.search(path.lower()):
        return HOUSEKEEPING
    if path.rstrip("/") in leading:
        return HUB
    return OTHER if static else ARTICLE
