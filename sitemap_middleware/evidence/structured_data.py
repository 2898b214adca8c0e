"""Facts: what a page's JSON-LD says for machines, such as a price, and when it says the page was modified.

Left out is what changes although nothing was edited: counters and ratings, the dates of
the record itself and how long an offer stands, identifiers, and times of day other than an event's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .relative_time import may_be_age, without_ages
from .work_budget import WorkBudget

FACT_PREFIX: Final = "\n"
"""Begins every fact. No word that a reader sees holds it."""

_EVENT_DATES: Final = frozenset({"startdate", "enddate", "doortime", "previousstartdate"})
"""Dates that are content."""
_VOLATILE_PROPERTIES: Final = re.compile(
    r"@context|@id|.*count|.*counter|.*token|nonce|identifier|potentialaction|aggregaterating|interactionstatistic"
    r"|inventorylevel|date.*|uploaddate|sddatepublished|lastreviewed|pricevaliduntil|validfrom|validthrough|expires"
)
_OFFER_PROPERTIES: Final = frozenset({"price", "lowprice", "highprice", "availability"})
"""Facts that change alike on many pages, each at a time of its own: the name of the thing is made a part of them,
for one and the same change on several pages is taken for a template's."""
_NAMES: Final = ("sku", "url", "name")
"""What names a thing, the best of them first."""
_MAX_NAME_CHARS: Final = 200
"""Characters of a name that are taken: each fact of its offers bears them."""
_OPAQUE_ID: Final = re.compile(r"(?=[^0-9]*[0-9])[0-9a-fA-F-]{16,}+")
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
_VALUE_COST: Final = 2.0
_WORD_COST: Final = 2.0
"""The effort of a value, and of each word of one."""
_MAX_NESTING: Final = 4
"""Lists and graphs within each other in which a dateModified is looked for."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")


def parse_scripts(scripts: Iterable[str]) -> list[Any]:
    """The JSON of those scripts that hold any."""
    return [data for data in map(_json, scripts) if data is not None]


def _json(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def content_facts(data: Iterable[Any], effort: WorkBudget) -> Iterator[str]:
    """Each word that JSON-LD says as content, with the property it is of; in no order that counts.

    Raises `BudgetExceeded` where that takes more effort than is left.
    """
    waiting: list[tuple[str, Any, str]] = [("", one, "") for one in data]
    while waiting:
        key, value, thing = waiting.pop()
        effort.spend(_VALUE_COST)
        if isinstance(value, dict):
            thing = next((one for name in _NAMES if isinstance(one := value.get(name), str)), thing)[:_MAX_NAME_CHARS]
            waiting.extend(
                (name, one, thing)
                for name, one in value.items()
                if _VOLATILE_PROPERTIES.fullmatch(name.lower()) is None
            )
        elif isinstance(value, list):
            waiting.extend((key, one, thing) for one in value)
        else:
            of = f"{thing}{FACT_PREFIX}" if key.lower() in _OFFER_PROPERTIES else ""
            for word in _words(key, value, effort):
                yield f"{FACT_PREFIX}{key}{FACT_PREFIX}{of}{word}"


def _words(key: str, value: Any, effort: WorkBudget) -> list[str]:
    if not isinstance(value, str):
        return [_normalize_number(str(value))]
    if _OPAQUE_ID.fullmatch(value) or (_MOMENT.match(value) and key.lower() not in _EVENT_DATES):
        return []
    if value.startswith(("http://", "https://", "/")):
        value = value.partition("?")[0].partition("#")[0]
    words = value.split()
    effort.spend(len(words) * _WORD_COST)
    telling = frozenset(filter(may_be_age, words))
    return list(map(_normalize_number, without_ages(words, telling, effort) if telling else words))


def _normalize_number(word: str) -> str:
    """A number in one spelling: 19.90 is 19.9."""
    return repr(float(word)) if _NUMBER.fullmatch(word) else word


def dates_modified(data: Iterable[Any]) -> Iterator[object]:
    """The dateModified of the things themselves, or of those in their graphs."""
    for one in data:
        yield from _dates_modified(one, 0)


def _dates_modified(data: Any, depth: int) -> Iterator[object]:
    if isinstance(data, dict):
        yield data.get("dateModified")
        if depth < _MAX_NESTING:
            yield from _dates_modified(data.get("@graph"), depth + 1)
    elif isinstance(data, list) and depth < _MAX_NESTING:
        for item in data[:50]:
            yield from _dates_modified(item, depth + 1)
