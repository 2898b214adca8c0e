"""Reads what a response's headers say about its page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ..models import RawHeaders
from .body_decoding import parse_codings
from .robots_directives import RobotsDirectives, parse_robots, refresh_target

_MAX_VALUE_CHARS: Final = 8192
"""Characters of a header that are read."""

_LINK: Final = re.compile(r"<([^<>]*)>((?:[^,<\"]|\"(?:[^\"\\]|\\.?)*+(?:\"|\Z))*+)", re.DOTALL)
"""A link's target and parameters. An unclosed quote extends to the end, so that matching takes linear time."""
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)

_ANCHOR: Final = re.compile(r";\s*anchor\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)
_QUOTED_VALUE: Final = re.compile(r"(?:(?<=,)|^)\s*private\s*=\s*\"\s*[a-z0-9][^\"]*\"|\"[^\"]*\"", re.IGNORECASE)
"""`private` with field names, and other quoted values."""
_PRIVATE: Final = re.compile(r"(?:,|^)\s*private\s*(?:[,=]|$)", re.IGNORECASE)

_TEXT_TYPES: Final = (str, bytes, bytearray)

_SEND_FILE_HEADERS: Final = frozenset(
    {"x-sendfile", "x-sendfile2", "x-accel-redirect", "x-lighttpd-send-file", "x-litespeed-location"}
    | {"x-reproxy-file", "x-reproxy-url"}
)
"""Headers by which an app has the server in front of it send a file instead of the body."""


class ResponseHeaders:
    """A response's headers: names in lower case, with their values in order."""

    def __init__(self, headers: RawHeaders) -> None:
        self._values: dict[str, list[str]] = {}
        pairs: Sequence[Any] = headers
        for pair in pairs:
            # Anything but a name and a value that an app puts among its headers is left to the server.
            if len(pair) == 2 and isinstance(pair[0], _TEXT_TYPES) and isinstance(pair[1], _TEXT_TYPES):
                self._values.setdefault(_text(pair[0]).lower(), []).append(_text(pair[1][:_MAX_VALUE_CHARS]))

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
        """The content codings, in the order in which they were applied."""
        values = self.get_all("content-encoding")
        return parse_codings(",".join(values)) if values else ()

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
            return "its X-Robots-Tag says noindex"
        if self.private:
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
    def private(self) -> bool:
        """Whether Cache-Control says that the whole response is private.

        `private="set-cookie"` concerns the named fields only (RFC 9111, section 5.2.2.7).
        """
        return any(_PRIVATE.search(_QUOTED_VALUE.sub("", value)) for value in self.get_all("cache-control"))

    @property
    def canonical(self) -> list[tuple[str, str | None]]:
        """The targets of canonical Link headers (RFC 8288, RFC 6596), each with its anchor.

        The anchor is the page that the link is about, None if that is this one.
        """
        found: list[tuple[str, str | None]] = []
        for target, parameters in (link for value in self.get_all("link") for link in _LINK.findall(value)):
            relation, anchor = _REL.search(parameters), _ANCHOR.search(parameters)
            if relation and "canonical" in (relation[1] or relation[2]).lower().split():
                found.append((target, anchor and (anchor[1] or anchor[2] or "")))
        return found


def _text(raw: str | bytes | bytearray) -> str:
    return raw if isinstance(raw, str) else raw.decode("latin-1")
