"""Reads a page's JSON-LD: the facts that are content, such as a price, and the date at which the page was modified."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

FACT_PREFIX: Final = "\n"
"""The first character of every fact. No word of the page's text contains it."""

_CONTENT_PROPERTIES: Final = frozenset(
    {"headline", "description", "articlebody", "price", "lowprice", "highprice", "availability", "startdate", "enddate"}
)
"""Properties that are content, in lower case. All others are counters, identifiers, dates of the record itself, or
repeat what the page shows."""
_SITE_TYPES: Final = frozenset({"BreadcrumbList", "WebSite", "Organization"})
"""Types of things that are the site's, not the page's."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
_MAX_THINGS: Final = 2_000
_MAX_NESTING: Final = 4
"""How many nested lists and graphs are searched for a dateModified."""


def parse_scripts(scripts: Iterable[str]) -> list[Any]:
    """The data of the scripts that hold valid JSON."""
    return [data for data in map(_json, scripts) if data is not None]


def _json(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def content_facts(data: Iterable[Any]) -> Iterator[str]:
    """The words of the content in JSON-LD, each with its property. The order means nothing."""
    pending: list[tuple[str, Any]] = [("", item) for item in data]
    for _ in range(_MAX_THINGS):
        if not pending:
            return
        key, value = pending.pop()
        if isinstance(value, dict):
            kinds = value.get("@type")
            if _SITE_TYPES.isdisjoint(map(str, kinds if isinstance(kinds, list) else [kinds])):
                pending.extend(value.items())
        elif isinstance(value, list):
            pending.extend((key, item) for item in value)
        elif key.lower() in _CONTENT_PROPERTIES:
            for word in str(value).split():
                yield f"{FACT_PREFIX}{key}{FACT_PREFIX}{_normal_number(word)}"


def _normal_number(word: str) -> str:
    """A number in its shortest form: 19.90 and 19.9 are the same fact."""
    return repr(float(word)) if _NUMBER.fullmatch(word) else word


def dates_modified(data: Iterable[Any]) -> Iterator[object]:
    """The dateModified of the top-level things, or of those in their graphs."""
    for item in data:
        yield from _dates_modified(item, 0)


def _dates_modified(data: Any, depth: int) -> Iterator[object]:
    if isinstance(data, dict):
        yield data.get("dateModified")
        if depth < _MAX_NESTING:
            yield from _dates_modified(data.get("@graph"), depth + 1)
    elif isinstance(data, list) and depth < _MAX_NESTING:
        for item in data[:50]:
            yield from _dates_modified(item, depth + 1)
