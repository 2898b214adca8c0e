"""Checks `<lastmod>`, `<changefreq>` and `<priority>`, each by itself."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple

from ..evidence.dates import CLOCK_SKEW_SECONDS, EARLIEST_DATE_SECONDS, SECONDS_PER_DAY
from ..models import CHANGEFREQS
from .findings import Problem, quoted

MAX_HINT_CHARS: Final = 100
"""Characters of a value that are looked at. No valid one is longer."""
_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:(T)(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
_LATEST_ZONE_SECONDS: Final = 14 * 3600
"""How far the time of a place may be ahead of UTC."""
_DAYS_OF_FEBRUARY: Final = 28
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)


class CheckedLastmod(NamedTuple):
    """A date, and what is wrong with it."""

    text: str
    problem: Problem | None
    earliest: float | None = None
    """The first moment that it may mean, in POSIX seconds. None if it is not a date."""
    latest: float | None = None
    """The last moment that it may mean."""

    @property
    def has_zone(self) -> bool:
        """Whether it is a date, and with a time zone if it has a time."""
        return self.earliest is not None and (self.problem is None or self.problem[0] != "lastmod-no-zone")


def check_lastmod(text: str, now: float) -> CheckedLastmod:
    """Check a date, at a moment in POSIX seconds."""
    checked = _parsed(text.strip()[:MAX_HINT_CHARS])
    if checked.problem is None and checked.earliest is not None:
        if checked.earliest > now + CLOCK_SKEW_SECONDS:
            return checked._replace(problem=("lastmod-future", f"{quoted(checked.text)} is in the future"))
        if checked.earliest < EARLIEST_DATE_SECONDS:
            return checked._replace(problem=("lastmod-too-old", f"{quoted(checked.text)} is before 1990"))
    return checked


def _parsed(text: str) -> CheckedLastmod:
    if not text:
        return CheckedLastmod(text, ("lastmod-empty", "lastmod is empty"))
    invalid = CheckedLastmod(text, ("lastmod-invalid", f"{quoted(text)} is not a date of the W3C format"))
    match = _W3C.fullmatch(text)
    if match is None:
        return invalid
    year, month, day, time, minute, second, zone = match.groups()
    try:
        written = f"{year}-{month or '01'}-{day or '01'}T{minute or '00:00'}{second or ':00'}{zone or 'Z'}"
        moment = datetime.fromisoformat(written).timestamp()
    except (ValueError, OverflowError):
        return invalid
    spread = 0 if zone else _LATEST_ZONE_SECONDS
    days = 0 if time else 1 if day else _DAYS_OF_FEBRUARY if month else 365
    problem = None
    if time and not zone:
        problem = "lastmod-no-zone", f"{quoted(text)} has no time zone"
    elif not day or (time and not second):
        problem = "lastmod-reduced", f"{quoted(text)} {'has no seconds' if time else 'is not a whole date'}"
    return CheckedLastmod(text, problem, moment - spread, moment + days * SECONDS_PER_DAY + spread)


def check_changefreq(text: str) -> Problem | None:
    """Check a changefreq."""
    word = text.strip()[:MAX_HINT_CHARS]
    if word in CHANGEFREQS:
        return None
    if word.lower() in CHANGEFREQS:
        return "changefreq-case", f"{quoted(word)} is not in lower case: write {word.lower()}"
    return "changefreq-invalid", f"{quoted(word)} is not one of {', '.join(CHANGEFREQS)}"


def check_priority(text: str) -> Problem | None:
    """Check a priority."""
    number = text.strip()[:MAX_HINT_CHARS]
    if _DECIMAL.fullmatch(number) and 0 <= float(number) <= 1:
        return None
    return "priority-invalid", f"{quoted(number)} is not a number from 0.0 to 1.0"
