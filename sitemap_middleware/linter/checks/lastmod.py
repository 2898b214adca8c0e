"""Parses and checks a `<lastmod>`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from ...dates import CLOCK_SKEW_SECONDS, EARLIEST_DATE_SECONDS, SECONDS_PER_DAY
from ..message import Finding
from ..message_collector import quoted
from ..rules import lastmod as rules

_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:(T)(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
_LATEST_ZONE_SECONDS: Final = 14 * 3600
"""How far the time of a place may be ahead of UTC."""
_MAX_CACHED: Final = 4096
_DAYS_OF_FEBRUARY: Final = 28


class CheckedLastmod(NamedTuple):
    """A date, and what is wrong with it."""

    text: str
    finding: Finding | None
    earliest: float | None = None
    """The first moment that it may mean, in POSIX seconds. None if it is not a date."""
    latest: float | None = None
    """The last moment that it may mean."""


def check_lastmod(text: str, now: float) -> CheckedLastmod:
    """Check a date, at a moment in POSIX seconds."""
    checked = _parse(text)
    if checked.finding is None and checked.earliest is not None:
        if checked.earliest > now + CLOCK_SKEW_SECONDS:
            return checked._replace(finding=(rules.FUTURE, f"{quoted(checked.text)} is in the future"))
        if checked.earliest < EARLIEST_DATE_SECONDS:
            return checked._replace(finding=(rules.TOO_OLD, f"{quoted(checked.text)} is before 1990"))
    return checked


@lru_cache(_MAX_CACHED)
def _parse(text: str) -> CheckedLastmod:
    text = text.strip()
    if not text:
        return CheckedLastmod(text, (rules.EMPTY, "lastmod is empty"))
    match = _W3C.fullmatch(text)
    invalid = CheckedLastmod(text, (rules.INVALID, f"{quoted(text)} is not a date of the W3C format"))
    if match is None:
        return invalid
    year, month, day, time, minute, second, zone = match.groups()
    try:
        if time is None:
            moment = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC).timestamp()
            days = 1 if day else _DAYS_OF_FEBRUARY if month else 365
            spread = float(_LATEST_ZONE_SECONDS)
            finding = None if day else (rules.REDUCED, f"{quoted(text)} is not a whole date")
            return CheckedLastmod(text, finding, moment - spread, moment + days * SECONDS_PER_DAY + spread)
        written = datetime.fromisoformat(f"{year}-{month}-{day}T{minute}{second or ':00'}{zone or 'Z'}")
        moment = written.timestamp()
    except (ValueError, OverflowError):
        return invalid
    if zone is None:
        spread, finding = float(_LATEST_ZONE_SECONDS), (rules.NO_ZONE, f"{quoted(text)} has no time zone")
        return CheckedLastmod(text, finding, moment - spread, moment + spread)
    finding = None if second else (rules.REDUCED, f"{quoted(text)} has no seconds")
    return CheckedLastmod(text, finding, moment, moment)
