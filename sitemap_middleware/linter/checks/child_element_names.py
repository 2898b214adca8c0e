"""Checks the names of an entry's child elements: their order, and repeated, misplaced or unknown ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from ..message import Finding
from ..message_collector import quoted
from ..rules import xml as rules
from ..sitemap_element_names import CORE_ELEMENTS

_MAX_CACHED: Final = 256
_MAX_CACHED_NAMES: Final = 8


def check_fields(names: tuple[str, ...], allowed: tuple[str, ...]) -> Sequence[Finding]:
    """Check the names of the elements in an entry.

    Args:
        names: the elements of the sitemap namespace, in the order of the document.
        allowed: those that the protocol has here, in its order.
    """
    return _cached(names, allowed) if len(names) <= _MAX_CACHED_NAMES else (*_findings(names, allowed),)


@lru_cache(_MAX_CACHED)
def _cached(names: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[Finding, ...]:
    return (*_findings(names, allowed),)


def _findings(names: tuple[str, ...], allowed: tuple[str, ...]) -> Iterator[Finding]:
    known = [name for name in dict.fromkeys(names) if name in allowed]
    if known != sorted(known, key=allowed.index):
        yield rules.ELEMENT_ORDER, f"the order is {', '.join(known)}"
    for name in dict.fromkeys(names):
        if name not in allowed:
            yield wrong_element(name)
        elif names.count(name) > 1:
            yield rules.REPEATED_ELEMENT, f"the entry has {names.count(name)} elements {name}"


def wrong_element(name: str) -> Finding:
    """What is wrong with an element of the sitemap namespace that does not belong where it is."""
    if name in CORE_ELEMENTS:
        return rules.MISPLACED_ELEMENT, f"the element {name} does not belong here"
    if name.lower() in CORE_ELEMENTS:
        return rules.UNKNOWN_ELEMENT, f"the element {quoted(name)} is written {name.lower()}"
    return rules.UNKNOWN_ELEMENT, f"the protocol has no element {quoted(name)}"
