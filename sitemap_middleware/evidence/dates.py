"""Parses HTTP dates and formats W3C dates, all in UTC."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from werkzeug.http import parse_date

CLOCK_SKEW_SECONDS: Final = 5 * 60
"""How far another machine's clock may be ahead of this machine's."""

EARLIEST_DATE_SECONDS: Final = 631_152_000
"""1990-01-01 in POSIX seconds. No web page is older, and an earlier date comes from an unset clock."""

SECONDS_PER_DAY: Final = 24 * 60 * 60

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_MAX_CACHED_DAYS: Final = 4096
"""Days whose texts are cached. Many pages of a site share few days."""
_MAX_HTTP_DATE_CHARS: Final = 100
_MAX_CACHED_HTTP_DATES: Final = 4096
"""Last-Modified headers whose times are cached: a page sends the same one until it changes."""

_W3C_LINES: Final = re.compile(
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?(?:\n(?!\Z)|\Z))*+"
)
"""Dates and datetimes as `w3c` writes them, one a line. The calendar may lack them."""
_RFC_850: Final = re.compile(r", [0-9]{2}-[A-Za-z]{3}-[0-9]{2} ")


def parse_last_modified(values: Collection[str], at: int) -> int | None:
    """A plausible Last-Modified (RFC 9110, section 8.8.2) in POSIX seconds, or None.

    Plausible: one value of up to 100 characters, after 1990, and not later than `at`, when the response was sent.
    Section 8.8.2.1 says that an origin server must not send a date later than that.
    """
    if len(distinct := set(values)) != 1 or len(value := distinct.pop()) > _MAX_HTTP_DATE_CHARS:
        return None
    seconds = _http_date(value)
    return seconds if seconds is not None and EARLIEST_DATE_SECONDS <= seconds <= at + CLOCK_SKEW_SECONDS else None


@lru_cache(_MAX_CACHED_HTTP_DATES)
def _http_date(value: str) -> int | None:
    """A date of HTTP (RFC 9110, section 5.6.7) in POSIX seconds, or None."""
    value = value.strip()
    moment = parse_date(value)
    if moment is None or (str(moment.year) not in value and not _RFC_850.search(value)):
        return None  # the parser reads the year 0000 as 2000
    return int(moment.timestamp())


def w3c(moment: date) -> str:
    """A date or datetime in the W3C profile of ISO 8601, in UTC. A naive datetime is taken as UTC."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    if moment.tzinfo is not None and moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return _format(moment.toordinal(), moment.hour, moment.minute, moment.second)


def w3c_from_timestamp(seconds: int) -> str:
    """A POSIX time as a W3C datetime, such as 2024-05-01T10:00:00Z."""
    days, second_of_day = divmod(seconds, SECONDS_PER_DAY)
    minutes, second = divmod(second_of_day, 60)
    return _format(_EPOCH_ORDINAL + days, *divmod(minutes, 60), second)


def _format(ordinal: int, hour: int, minute: int, second: int) -> str:
    return f"{_format_day(ordinal)}T{hour:02}:{minute:02}:{second:02}Z"


@lru_cache(_MAX_CACHED_DAYS)
def _format_day(ordinal: int) -> str:
    """The date of a day. A day beyond the calendar, of a damaged time, is the last or the first one of the calendar."""
    return date.fromordinal(min(max(ordinal, date.min.toordinal()), date.max.toordinal())).isoformat()


def w3c_day_from_timestamp(seconds: int) -> str:
    """The day of a POSIX time as a W3C date, such as 2024-05-01."""
    return _format_day(_EPOCH_ORDINAL + seconds // SECONDS_PER_DAY)


def timestamp_of(moment: date) -> float:
    """The POSIX time of a date (its midnight in UTC) or datetime (UTC if naive)."""
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC).timestamp()
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()


def check_w3c(texts: Collection[str]) -> None:
    """Raise ValueError if a text is not a date or datetime as `w3c` writes it."""
    if _W3C_LINES.fullmatch("\n".join(texts)) is None:  # in a third of the time of a match of each
        raise ValueError(f"not all are dates: {list(texts)!r:.60}")
    for day in {text[:10] for text in texts}:
        date.fromisoformat(day)  # raises if the calendar has no such day


def timestamp_of_w3c(text: str) -> int:
    """The POSIX time of a date or datetime that `w3c` wrote."""
    return int(timestamp_of(datetime.fromisoformat(text)))
