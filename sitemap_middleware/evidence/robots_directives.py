"""Parses robots directives and refreshes, by the same rules for headers and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from .dates import SECONDS_PER_DAY, timestamp_of

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
_EXPIRES: Final = re.compile(r"unavailable_after\s{0,9}:")
_SEPARATOR: Final = re.compile(r"[,;\n]")
_MAX_DATE_COMMAS: Final = 2
"""A date may contain commas, as in "Fri, 25 Jun 2010 15:00:00 GMT"."""
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
        items = _SEPARATOR.split(value[:_MAX_VALUE_CHARS].lower())
        for_us = True
        for at, item in enumerate(items):
            named = _AGENT.fullmatch(item) if agents else None
            if named and named[1] not in _DIRECTIVES_WITH_VALUE and named[1] not in _REFUSALS:
                for_us = named[1] in SEARCH_ENGINES
                item = named[2]
            if not for_us:
                continue
            if expires := _EXPIRES.search(item):
                rest = [item[expires.end() :], *items[at + 1 : at + 1 + _MAX_DATE_COMMAS]]
                found = (_moment(",".join(rest[:size])) for size in range(1, len(rest) + 1))
                moments.append(next((moment for moment in found if moment is not None), None))
                item = item[: expires.start()]
            noindex = noindex or any(word.strip(_EDGE_CHARS) in _REFUSALS for word in _directives(item))
    return RobotsDirectives(noindex, min(filter(None, moments), default=None))


def _directives(item: str) -> Iterable[str]:
    """The directives of an item, usually one; without those that have a value."""
    words = item.split()
    return (
        word for before, word in zip(["", *words], words, strict=False) if before[:-1] not in _DIRECTIVES_WITH_VALUE
    )


def _moment(text: str) -> int | None:
    """The POSIX time of an ISO 8601, RFC 822, RFC 850 or asctime date, or None.

    A date without a time means the end of that day. A time without a known zone is UTC.
    """
    text = text.strip(f"{_EDGE_CHARS} ").upper()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text if ":" in text else f"{text} 0:00 GMT")
        except Exception:  # of many kinds
            return None
    return int(timestamp_of(moment)) + (0 if ":" in text else SECONDS_PER_DAY)


def refresh_target(value: str) -> str | None:
    """The target of an instant refresh (WHATWG HTML, "shared declarative refresh steps"), or None."""
    match = _REFRESH.fullmatch(value[:_MAX_VALUE_CHARS])
    if match is None or int(match[1] or 0) > INSTANT_REFRESH_SECONDS:
        return None
    target = match[2].strip()
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0].strip()
    return target[:2048] or None
