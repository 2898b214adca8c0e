"""Parses robots directives and refreshes, by the same rules for headers and HTML."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterable
from typing import Final, NamedTuple

from .dates import SECONDS_PER_DAY

_MAX_VALUE_CHARS: Final = 8192
"""Characters of a robots tag, or of a refresh, that are read."""

INSTANT_REFRESH_SECONDS: Final = 5
"""A refresh within this time is a redirect: nobody reads the page in between."""

SEARCH_ENGINES: Final = frozenset({"*", "robots", "googlebot", "bingbot"})

_AGENT: Final = re.compile(r"\s*([a-z0-9_.*-]+)\s*:\s*(.*)", re.DOTALL)
_DIRECTIVES_WITH_VALUE: Final = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)
_REFUSALS: Final = frozenset({"noindex", "none"})
_EDGE_CHARS: Final = "\"'`“”‘’:"
"""Characters around a directive that no crawler expects: the page was surely not meant to be listed."""
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_ZONES: Final = {
    "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    "bst": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "ist": 5.5, "jst": 9,
}  # fmt: skip
_TIME: Final = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d{1,9})?)?"
    r"(?:\s{0,3}(?P<zone>[+-]\d\d:?\d\d|(?:gmt|utc|z|ut|" + "|".join(_ZONES) + r")\b))?"
)
_NAMED_MONTH_DATE: Final = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_WEEKDAY: Final = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},?\s{1,3})?"
_DATE_FORMATS: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)(?:[t\s]{_TIME})?",  # ISO 8601
        rf"{_WEEKDAY}(?P<day>\d{{1,2}})[\s-]{{1,3}}{_NAMED_MONTH_DATE}[\s-]{{1,3}}(?P<year>\d{{4}}|\d\d)(?:,?\s{{1,3}}{_TIME})?",
        rf"{_WEEKDAY}{_NAMED_MONTH_DATE}\s{{1,3}}(?P<day>\d{{1,2}}),?\s{{1,3}}(?P<year>\d{{4}})(?:,?\s{{1,3}}{_TIME})?",
        # asctime
        rf"{_WEEKDAY}{_NAMED_MONTH_DATE}\s{{1,3}}(?P<day>\d{{1,2}})\s{{1,3}}{_TIME}\s{{1,3}}(?P<year>\d{{4}})",
    )
)
_EXPIRES: Final = re.compile(r"unavailable_after\s{0,9}:\s{0,9}[\"']?")
_SEPARATOR: Final = re.compile(r"[,;\n]")
_REFRESH: Final = re.compile(
    r"\s*(\d{0,9})(?:\.[\d.]*)?(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL
)


class RobotsDirectives(NamedTuple):
    """The directives of a page's robots tags."""

    noindex: bool = False
    expires_at: int | None = None
    """The earliest unavailable_after, in POSIX seconds."""


def parse_robots(values: Iterable[str], *, agents: bool) -> RobotsDirectives:
    """Parse robots tags. If several disagree, the strictest counts (Google, "Robots meta tag specifications").

    Args:
        values: of X-Robots-Tag headers or of robots meta tags.
        agents: whether a value may address one robot (`otherbot: noindex`), as in headers. Those for Google's and
            Bing's robots count, those for others do not.
    """
    noindex, moments = False, []
    for value in values:
        for directive in _directives(value[:_MAX_VALUE_CHARS].lower(), agents=agents):
            if isinstance(directive, int):
                moments.append(directive)
            elif directive.strip(_EDGE_CHARS) in _REFUSALS:
                noindex = True
    return RobotsDirectives(noindex, min(moments, default=None))


def _directives(value: str, *, agents: bool) -> Iterable[str | int]:
    """The directives of a value that count, and its unavailable_after as POSIX seconds."""
    for_us = True
    at = 0
    while at <= len(value):
        separator = _SEPARATOR.search(value, at)
        end = separator.start() if separator else len(value)
        item = value[at:end]
        named = _AGENT.fullmatch(item) if agents else None
        if named and named[1] not in _DIRECTIVES_WITH_VALUE and named[1] not in _REFUSALS:
            for_us = named[1] in SEARCH_ENGINES
            item = named[2]
        if expires := _EXPIRES.search(value, at, end):
            moment, end = _parse_moment(value, expires.end())
            if for_us and moment is not None:
                yield moment
            item = value[at : expires.start()]
            separator = _SEPARATOR.search(value, end)
            end = separator.start() if separator else len(value)
        if for_us:
            yield from _directive_names(item)
        at = end + 1


def _directive_names(item: str) -> Iterable[str]:
    """The directives of an item, usually one; without those that have a value."""
    words = item.split()
    return (
        word for before, word in zip(["", *words], words, strict=False) if before[:-1] not in _DIRECTIVES_WITH_VALUE
    )


def _parse_moment(value: str, at: int) -> tuple[int | None, int]:
    """The POSIX time written at a position, and where its text ends: ISO 8601, RFC 822, RFC 850 or asctime.

    A date without a time means the end of that day. A time without a zone is UTC.

    Args:
        value: in lower case.
        at: the position in `value`.
    """
    for form in _DATE_FORMATS:
        if match := form.match(value, at):
            return _match_timestamp(match.groupdict()), match.end()
    return None, at


def _match_timestamp(fields: dict[str, str | None]) -> int | None:
    year = int(fields["year"] or 0)
    if len(fields["year"] or "") == 2:
        year += 2000 if year < 70 else 1900
    month = _MONTHS.get(fields["month"] or "") or int(fields["month"] or 0)
    day = int(fields["day"] or 0)
    if not (1 <= month <= 12 and 1 <= day <= 31 and year >= 1970):
        return None
    midnight = timegm((year, month, day, 0, 0, 0))
    if fields["hour"] is None:
        return midnight + SECONDS_PER_DAY
    time = int(fields["hour"]) * 3600 + int(fields["minute"] or 0) * 60 + int(fields["second"] or 0)
    return midnight + time - _zone_offset(fields["zone"] or "")


def _zone_offset(zone: str) -> int:
    """How many seconds a zone is ahead of UTC."""
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if zone[0] == "-" else 1)
    return int(_ZONES.get(zone, 0) * 3600)


def refresh_target(value: str) -> str | None:
    """The target of an instant refresh (WHATWG HTML, "shared declarative refresh steps"), or None."""
    match = _REFRESH.fullmatch(value[:_MAX_VALUE_CHARS])
    if match is None or int(match[1] or 0) > INSTANT_REFRESH_SECONDS:
        return None
    target = match[2].strip()
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0].strip()
    return target[:2048] or None
