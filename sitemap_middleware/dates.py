"""Dates: HTTP's in, W3C's out, all of them in UTC."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

CLOCK_SKEW_SECONDS: Final = 5 * 60
"""Seconds that another machine's clock may be ahead of ours."""

EARLIEST_DATE_SECONDS: Final = 631_152_000
"""1990-01-01: no page of the web is older, and a date before it is an unset clock."""

SECONDS_PER_DAY: Final = 24 * 60 * 60

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_MAX_CACHED_DAYS: Final = 4096
"""Days whose texts are kept: those of a site's pages are few beside its pages."""
_TWO_DIGITS: Final = tuple(f"{number:02}" for number in range(60))

_RFC_850: Final = re.compile(r", [0-9]{2}-[A-Za-z]{3}-[0-9]{2} ")


def import_http_parsers() -> None:
    """Import what parses HTTP's dates and conditions: threads that do so at one time may find it half made."""
    import werkzeug.datastructures
    import werkzeug.http  # noqa: F401 (to have it imported)


def parse_last_modified(values: Collection[str], at: int) -> int | None:
    """A Last-Modified (RFC 9110, section 8.8.2) that could be true; None where there is none or several differ."""
    if len(set(values)) != 1:
        return None
    from werkzeug.http import parse_date

    value = next(iter(values)).strip()
    moment = parse_date(value)
    if moment is None or not EARLIEST_DATE_SECONDS <= (seconds := int(moment.timestamp())) <= at + CLOCK_SKEW_SECONDS:
        return None
    if str(moment.year) not in value and not _RFC_850.search(value):
        return None  # the parser reads the year 0000 as 2000
    return seconds


def w3c(moment: date) -> str:
    """A date or datetime as W3C's profile of ISO 8601 has it, in UTC; a naive datetime is taken as UTC."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    if moment.tzinfo is not None and moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return _text(moment.toordinal(), moment.hour, moment.minute, moment.second)


def w3c_from_timestamp(seconds: int) -> str:
    """A POSIX time as a W3C datetime."""
    days, rest = divmod(seconds, SECONDS_PER_DAY)
    minutes, second = divmod(rest, 60)
    return _text(_EPOCH_ORDINAL + days, *divmod(minutes, 60), second)


def _text(day: int, hour: int, minute: int, second: int) -> str:
    """A moment in UTC. It takes a quarter of the time that `isoformat` takes, which is most of a document's."""
    return f"{_day(day)}T{_TWO_DIGITS[hour]}:{_TWO_DIGITS[minute]}:{_TWO_DIGITS[second]}Z"


@lru_cache(_MAX_CACHED_DAYS)
def _day(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()


def w3c_day_from_timestamp(seconds: int) -> str:
    """The day of a POSIX time as a W3C date."""
    return _day(_EPOCH_ORDINAL + seconds // SECONDS_PER_DAY)


def timestamp_of(moment: date) -> float:
    """A date's or datetime's POSIX time; a date is its first moment, a naive datetime is UTC."""
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC).timestamp()
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()


def timestamp_of_w3c(text: str) -> int:
    """The POSIX time of a W3C date or datetime as written here."""
    return int(timestamp_of(datetime.fromisoformat(text)))
