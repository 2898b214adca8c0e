"""Parses HTTP dates and formats W3C dates, all in UTC."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime
from time import gmtime, strftime
from typing import Final

from werkzeug.http import parse_date

CLOCK_SKEW_SECONDS: Final = 5 * 60
"""How far another machine's clock may be ahead of this machine's."""

EARLIEST_DATE_SECONDS: Final = 631_152_000
"""1990-01-01 in POSIX seconds. No web page is older, and an earlier date comes from an unset clock."""

SECONDS_PER_DAY: Final = 24 * 60 * 60

_LAST_SECONDS: Final = 253_402_300_799
"""The last second of the calendar: 9999-12-31T23:59:59Z."""

_UNSET_YEAR: Final = re.compile(r"\b0[0-9]{3}\b")
"""A year such as 0001, which the parser of HTTP dates reads as 2001."""


def parse_last_modified(values: Collection[str], at: int) -> int | None:
    """A plausible Last-Modified (RFC 9110, section 8.8.2) in POSIX seconds, or None.

    Plausible: one value, after 1990, and not later than `at`, when the response was sent. Section 8.8.2.1 says that an
    origin server must not send a date later than that.
    """
    distinct = set(values)
    if len(distinct) != 1 or _UNSET_YEAR.search(value := distinct.pop()):
        return None
    moment = parse_date(value)
    seconds = 0 if moment is None else int(moment.timestamp())
    return seconds if EARLIEST_DATE_SECONDS <= seconds <= at + CLOCK_SKEW_SECONDS else None


def w3c(moment: date) -> str:
    """A date or datetime in the W3C profile of ISO 8601, in UTC. A naive datetime is taken as UTC."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.isoformat(timespec="seconds").replace("+00:00", "Z")


def w3c_from_timestamp(seconds: int) -> str:
    """A POSIX time as a W3C datetime, such as 2024-05-01T10:00:00Z; the nearest of the calendar if it is damaged."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(min(max(seconds, 0), _LAST_SECONDS)))


def w3c_day_from_timestamp(seconds: int) -> str:
    """The day of a POSIX time as a W3C date, such as 2024-05-01."""
    return w3c_from_timestamp(seconds)[:10]


def timestamp_of(moment: date) -> float:
    """The POSIX time of a date (its midnight in UTC) or datetime (UTC if naive)."""
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC).timestamp()
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()


def timestamp_of_w3c(text: str) -> int:
    """The POSIX time of a date or datetime that `w3c` wrote."""
    return int(timestamp_of(datetime.fromisoformat(text)))
