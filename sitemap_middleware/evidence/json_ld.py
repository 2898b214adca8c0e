"""Reads a page's JSON-LD: facts that are content, such as a price, and the date at which the page was modified.

What changes without an edit is not content: counters and ratings, the dates of the record itself, how long an offer is
valid, identifiers, and times of day other than an event's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .digest_cost_limit import WorkBudget
from .relative_time import may_be_age, without_ages

FACT_PREFIX: Final = "\n"
"""The first character of every fact. No word of the page's text contains it."""

_EVENT_DATES: Final = frozenset({"startdate", "enddate", "doortime", "previousstartdate"})
"""Dates that are content."""
_VOLATILE_PROPERTIES: Final = re.compile(
    r"@context|@id|.*count|.*counter|.*token|nonce|identifier|potentialaction|aggregaterating|interactionstatistic"
    r"|inventorylevel|date.*|uploaddate|sddatepublished|lastreviewed|pricevaliduntil|validfrom|validthrough|expires"
)
_OFFER_PROPERTIES: Final = frozenset({"price", "lowprice", "highprice", "availability"})
"""Facts that change in the same way on many pages, each at its own time: "InStock" to "OutOfStock". The name of the
product is made a part of them, because the same difference on several pages would be taken for a template change."""
_NAMES: Final = ("sku", "url", "name")
"""Properties that name a thing, the best one first."""
_MAX_NAME_CHARS: Final = 200
"""Longer names are cut, because each fact of an offer contains the name."""
_OPAQUE_ID: Final = re.compile(r"(?=[^0-9]*[0-9])[0-9a-fA-F-]{16,}+")
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
_VALUE_COST: Final = 2.0
_WORD_COST: Final = 2.0
"""The cost of a value, and of each word of one, in microseconds."""
_MAX_NESTING: Final = 4
"""How many nested lists and graphs are searched for a dateModified."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")


def parse_scripts(scripts: Iterable[str]) -> list[Any]:
    """The data of the scripts that hold valid JSON."""
    return [data for data in map(_json, scripts) if data is not None]


def _json(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def content_facts(data: Iterable[Any], budget: WorkBudget) -> Iterator[str]:
    """Each word of the content in JSON-LD, with its property between two `FACT_PREFIX`. The order means nothing.

    Raises `BudgetExceeded` if that costs more than is left of the budget.
    """
    pending: list[tuple[str, Any, str]] = [("", item, "") for item in data]
    while pending:
        key, value, thing = pending.pop()
        budget.spend(_VALUE_COST)
        if isinstance(value, dict):
            thing = next((text for name in _NAMES if isinstance(text := value.get(name), str)), thing)[:_MAX_NAME_CHARS]
            pending.extend(
                (name, item, thing)
                for name, item in value.items()
                if _VOLATILE_PROPERTIES.fullmatch(name.lower()) is None
            )
        elif isinstance(value, list):
            pending.extend((key, item, thing) for item in value)
        else:
            owner = f"{thing}{FACT_PREFIX}" if key.lower() in _OFFER_PROPERTIES else ""
            for word in _words(key, value, budget):
                yield f"{FACT_PREFIX}{key}{FACT_PREFIX}{owner}{word}"


def _words(key: str, value: Any, budget: WorkBudget) -> list[str]:
    if not isinstance(value, str):
        return [_normalize_number(str(value))]
    if _OPAQUE_ID.fullmatch(value) or (_MOMENT.match(value) and key.lower() not in _EVENT_DATES):
        return []
    if value.startswith(("http://", "https://", "/")):
        value = value.partition("?")[0].partition("#")[0]
    words = value.split()
    budget.spend(len(words) * _WORD_COST)
    age_words = frozenset(filter(may_be_age, words))
    return list(map(_normalize_number, without_ages(words, age_words, budget) if age_words else words))


def _normalize_number(word: str) -> str:
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
