"""Reads what a response's headers say about its page; and robots directives and refreshes, of headers and of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from ..models import RawHeaders
from .dates import SECONDS_PER_DAY, timestamp_of
from .observations import NOINDEX_HEADER_REFUSAL

MAX_URL_CHARS: Final = 2048
_MAX_VALUE_CHARS: Final = 8192
"""Characters of a URL that are kept, and of a header that are read."""

_LINK: Final = re.compile(r"<([^<>]*)>((?:[^,<\"]|\"(?:[^\"\\]|\\.?)*+(?:\"|\Z))*+)", re.DOTALL)
"""A link's target and parameters. An unclosed quote extends to the end, so that matching takes linear time."""
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)
_PRIVATE: Final = re.compile(r"(?:,|^)\s*private\s*(?:[,=]|$)", re.IGNORECASE)

_SEND_FILE_HEADERS: Final = frozenset(
    {"x-sendfile", "x-sendfile2", "x-accel-redirect", "x-lighttpd-send-file", "x-litespeed-location"}
    | {"x-reproxy-file", "x-reproxy-url"}
)
"""Headers by which an app has the server in front of it send a file instead of the body."""


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


class ResponseHeaders:
    """A response's headers: names in lower case, with their values in order."""

    def __init__(self, headers: RawHeaders) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in headers:
            self._values.setdefault(_text(name).lower(), []).append(_text(value[:_MAX_VALUE_CHARS]))

    def get_all(self, name: str) -> Sequence[str]:
        return self._values.get(name, ())

    def get_last(self, name: str) -> str:
        values = self.get_all(name)
        return values[-1].strip() if values else ""

    @property
    def media_type(self) -> str:
        """The media type without parameters, such as "text/html"."""
        return self.get_last("content-type").partition(";")[0].strip().lower()[:127]

    @property
    def charset(self) -> str | None:
        """The charset of the Content-Type, or None."""
        match = re.search(r";\s*charset\s*=\s*\"?([a-zA-Z0-9_:.-]{1,40})", self.get_last("content-type"), re.IGNORECASE)
        return match[1] if match else None

    @property
    def codings(self) -> tuple[str, ...]:
        """The content codings (RFC 9110, section 8.4), in the order in which they were applied."""
        values = ",".join(self.get_all("content-encoding")).lower().split(",")
        codings = (value.strip().removeprefix("x-") for value in values)
        return tuple(coding for coding in codings if coding and coding != "identity")

    @property
    def has_other_body(self) -> bool:
        """Whether the server in front of the app sends a file instead of the body."""
        return not _SEND_FILE_HEADERS.isdisjoint(self._values)

    @property
    def robots(self) -> RobotsDirectives:
        """The directives of X-Robots-Tag."""
        values = self.get_all("x-robots-tag")
        return parse_robots(values, agents=True) if values else RobotsDirectives()

    @property
    def refusal(self) -> str:
        """Why a page with these headers is not listed, whatever its URL; empty if it may be.

        A private response is meant for one user (RFC 9111, section 5.2.2.7). `Vary: *` means that the response depends
        on more than the request (RFC 9110, section 12.5.5).
        """
        if self.robots.noindex:
            return NOINDEX_HEADER_REFUSAL
        if any(map(_PRIVATE.search, self.get_all("cache-control"))):
            return "its Cache-Control says private"
        if self.get_last("content-disposition").partition(";")[0].strip().lower() == "attachment":
            return "it is a download (Content-Disposition: attachment)"
        if any("*" in map(str.strip, value.split(",")) for value in self.get_all("vary")):
            return "it differs from visitor to visitor in ways that no header names (Vary: *)"
        return ""

    @property
    def instant_refresh(self) -> str | None:
        """The target of an instant Refresh header, or None."""
        return refresh_target(self.get_last("refresh"))

    @property
    def canonicals(self) -> list[str]:
        """The targets of canonical Link headers (RFC 8288, RFC 6596)."""
        found: list[str] = []
        for target, parameters in (link for value in self.get_all("link") for link in _LINK.findall(value)):
            relation = _REL.search(parameters)
            if relation and "canonical" in (relation[1] or relation[2]).lower().split():
                found.append(target)
        return found


def _text(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode("latin-1")


# Robots directives and refreshes, by the same rules for headers and HTML


class RobotsDirectives(NamedTuple):
    """The directives of a page's robots tags."""

    noindex: bool = False
    expires_at: int | None = None
    """The earliest unavailable_after, in POSIX seconds."""


def parse_robots(values: Iterable[str], *, agents: bool) -> RobotsDirectives:
    """Parse robots tags. If several disagree, the strictest counts (Google, "Robots meta tag specifications").

    With `agents` a value may address one robot (`otherbot: noindex`), as in headers: those for Google's and Bing's
    robots count, those for others do not.
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
    return target[:MAX_URL_CHARS] or None
