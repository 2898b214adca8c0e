"""What a response's headers say of its page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..model import RawHeaders

_MAX_VALUE: Final = 8192
"""Characters of a header's value that are read."""

_AGENT: Final = re.compile(r"\s*([a-z0-9_.*-]+)\s*:\s*(.*)", re.DOTALL)
_SEARCH_ENGINES: Final = frozenset({"*", "robots", "googlebot", "bingbot"})
_VALUED_DIRECTIVES: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_LINK: Final = re.compile(r"<([^<>]*)>((?:[^,<\"]|\"(?:[^\"\\]|\\.?)*+(?:\"|\Z))*+)", re.DOTALL)
"""A target and its parameters. A quote that never ends goes on to the end, so that each character is read but once."""
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)


class Told:
    """A response's headers, by lower-case name, in their order."""

    def __init__(self, headers: RawHeaders) -> None:
        self._headers = [(_text(name).lower(), _text(value[:_MAX_VALUE])) for name, value in headers]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._headers if key == name]

    def last(self, name: str) -> str:
        values = self.all(name)
        return values[-1].strip() if values else ""

    @property
    def media_type(self) -> str:
        """The type alone: "text/html"."""
        return self.last("content-type").partition(";")[0].strip().lower()[:127]

    @property
    def charset(self) -> str | None:
        """The Content-Type's charset, where it names one."""
        found = re.search(r";\s*charset\s*=\s*\"?([a-zA-Z0-9_:.-]{1,40})", self.last("content-type"), re.IGNORECASE)
        return found[1] if found else None

    @property
    def noindex(self) -> bool:
        """Whether an X-Robots-Tag keeps the page out of search engines."""
        return any(map(forbids_indexing, self.all("x-robots-tag")))

    @property
    def private(self) -> bool:
        """Whether Cache-Control says private (RFC 9111, section 5.2.2.7), of the whole or of a field."""
        return any("private" in _directives(value) for value in self.all("cache-control"))

    @property
    def canonical(self) -> list[str]:
        """Every target of a Link header that is named as canonical."""
        return [target for value in self.all("link") for target in canonical_links(value)]


def _text(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode("latin-1")


def _directives(value: str) -> set[str]:
    return {item.partition("=")[0].strip().lower() for item in value.split(",")}


def forbids_indexing(value: str) -> bool:
    """Whether an X-Robots-Tag (Google, "Robots meta tag specifications") tells search engines not to index.

    A directive may be for one robot alone (``otherbot: noindex``); those for
    Google's and Bing's count, those for others do not.
    """
    for_us = True
    for item in value.lower().split(","):
        named = _AGENT.fullmatch(item)
        directive = item
        if named and named[1] not in _VALUED_DIRECTIVES:
            for_us = named[1] in _SEARCH_ENGINES
            directive = named[2]
        if for_us and directive.strip() in ("noindex", "none"):
            return True
    return False


def canonical_links(value: str) -> Iterable[str]:
    """The targets of a Link header (RFC 8288) whose relation is canonical (RFC 6596)."""
    for target, parameters in _LINK.findall(value):
        relation = _REL.search(parameters)
        if relation and "canonical" in (relation[1] or relation[2]).lower().split():
            yield target
