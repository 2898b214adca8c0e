"""Checks `<lastmod>`, `<changefreq>` and `<priority>`, each by itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from ..evidence.dates import CLOCK_SKEW_SECONDS, EARLIEST_DATE_SECONDS, SECONDS_PER_DAY
from ..models import CHANGEFREQS
from .findings import Finding, quoted

_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:(T)(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
_LATEST_ZONE_SECONDS: Final = 14 * 3600
"""How far the time of a place may be ahead of UTC."""
_DAYS_OF_FEBRUARY: Final = 28
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_MAX_CHARS: Final = 100
"""Characters of a value that are looked at. No valid one is longer, and the caches stay small whatever is given."""
_MAX_CACHED: Final = 4096


class CheckedLastmod(NamedTuple):
    """A date, and what is wrong with it."""

    text: str
    finding: Finding | None
    earliest: float | None = None
    """The first moment that it may mean, in POSIX seconds. None if it is not a date."""
    latest: float | None = None
    """The last moment that it may mean."""

    @property
    def has_zone(self) -> bool:
        """Whether it is a date, and with a time zone if it has a time."""
        return self.earliest is not None and (self.finding is None or self.finding[0] != "lastmod-no-zone")


def check_lastmod(text: str, now: float) -> CheckedLastmod:
    """Check a date, at a moment in POSIX seconds."""
    checked = _parse(text.strip()[:_MAX_CHARS])
    if checked.finding is None and checked.earliest is not None:
        if checked.earliest > now + CLOCK_SKEW_SECONDS:
            return checked._replace(finding=("lastmod-future", f"{quoted(checked.text)} is in the future"))
        if checked.earliest < EARLIEST_DATE_SECONDS:
            return checked._replace(finding=("lastmod-too-old", f"{quoted(checked.text)} is before 1990"))
    return checked


@lru_cache(_MAX_CACHED)
def _parse(text: str) -> CheckedLastmod:
    if not text:
        return CheckedLastmod(text, ("lastmod-empty", "lastmod is empty"))
    match = _W3C.fullmatch(text)
    invalid = CheckedLastmod(text, ("lastmod-invalid", f"{quoted(text)} is not a date of the W3C format"))
    if match is None:
        return invalid
    year, month, day, time, minute, second, zone = match.groups()
    try:
        if time is None:
            moment = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC).timestamp()
            days = 1 if day else _DAYS_OF_FEBRUARY if month else 365
            spread = float(_LATEST_ZONE_SECONDS)
            finding = None if day else ("lastmod-reduced", f"{quoted(text)} is not a whole date")
            return CheckedLastmod(text, finding, moment - spread, moment + days * SECONDS_PER_DAY + spread)
        written = datetime.fromisoformat(f"{year}-{month}-{day}T{minute}{second or ':00'}{zone or 'Z'}")
        moment = written.timestamp()
    except (ValueError, OverflowError):
        return invalid
    if zone is None:
        spread, finding = float(_LATEST_ZONE_SECONDS), ("lastmod-no-zone", f"{quoted(text)} has no time zone")
        return CheckedLastmod(text, finding, moment - spread, moment + spread)
    finding = None if second else ("lastmod-reduced", f"{quoted(text)} has no seconds")
    return CheckedLastmod(text, finding, moment, moment)


def check_changefreq(text: str) -> Finding | None:
    """Check a changefreq."""
    word = text.strip()[:_MAX_CHARS]
    if word in CHANGEFREQS:
        return None
    if word.lower() in CHANGEFREQS:
        return "changefreq-case", f"{quoted(word)} is not in lower case: write {word.lower()}"
    return "changefreq-invalid", f"{quoted(word)} is not one of {', '.join(CHANGEFREQS)}"


def check_priority(text: str) -> Finding | None:
    """Check a priority."""
    number = text.strip()[:_MAX_CHARS]
    if _DECIMAL.fullmatch(number) and 0 <= float(number) <= 1:
        return None
    return "priority-invalid", f"{quoted(number)} is not a number from 0.0 to 1.0"
