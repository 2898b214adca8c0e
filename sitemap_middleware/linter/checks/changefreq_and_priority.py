"""Checks the values of `<changefreq>` and `<priority>`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ...models import CHANGEFREQS
from ..message import Finding
from ..message_collector import quoted
from ..rules import changefreq_and_priority as rules

_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_MAX_CACHED: Final = 256


@lru_cache(_MAX_CACHED)
def check_changefreq(text: str) -> Finding | None:
    """Check a changefreq."""
    word = text.strip()
    if word in CHANGEFREQS:
        return None
    if word.lower() in CHANGEFREQS:
        return rules.CHANGEFREQ_CASE, f"{quoted(word)} is written {quoted(word.lower())}"
    return rules.CHANGEFREQ_INVALID, f"{quoted(word)} is not one of {', '.join(CHANGEFREQS)}"


@lru_cache(_MAX_CACHED)
def check_priority(text: str) -> Finding | None:
    """Check a priority."""
    number = text.strip()
    if _DECIMAL.fullmatch(number) and 0 <= float(number) <= 1:
        return None
    return rules.PRIORITY_INVALID, f"{quoted(number)} is not a number from 0.0 to 1.0"
