"""Compares the URLs of a document with its own location: the same host, and below the same folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ..rules import Rule
from ..rules import loc as loc_rules
from ..rules import size_and_index as index_rules
from .loc import CheckedLoc, check_loc, is_local

_MAX_HOSTS: Final = 100
"""Different hosts of a document that are distinguished."""


class LocationFinding(NamedTuple):
    """What is wrong with a group of URLs, of which the first stands for all."""

    rule: Rule
    text: str
    url: str
    line: int
    column: int


class _Group:
    """URLs that break one rule."""

    __slots__ = ("column", "count", "first", "line")

    def __init__(self, first: str, line: int, column: int) -> None:
        self.first, self.line, self.column = first, line, column
        self.count = 0


class Locations:
    """Where the URLs of one document are. A mistake of all of them is one message.

    Args:
        location: the URL that the document is served at, if it is known.
        is_index: whether the URLs are those of sitemaps.
    """

    def __init__(self, location: str | None, *, is_index: bool) -> None:
        self._document = check_loc(location, is_page=False) if location else None
        path = urlsplit(location).path if location else "/"
        self._folder = path[: path.rfind("/") + 1] or "/"
        self._is_index = is_index
        self._groups: dict[tuple[Rule, str], _Group] = {}

    def add(self, loc: CheckedLoc, line: int, column: int) -> None:
        """Take note of a URL."""
        document = self._document
        if document is not None and loc.host == document.host:
            if self._folder == "/" or f"{loc.path}/".startswith(self._folder):
                return
            rule, name = (index_rules if self._is_index else loc_rules).OUTSIDE_FOLDER, self._folder
        elif is_local(loc.host):
            rule, name = loc_rules.LOCAL, loc.host
        elif document is not None:
            rule, name = (index_rules if self._is_index else loc_rules).OTHER_HOST, loc.host
        else:
            return
        group = self._groups.get((rule, name))
        if group is None:
            if len(self._groups) >= _MAX_HOSTS:
                return
            group = self._groups[rule, name] = _Group(loc.url, line, column)
        group.count += 1

    def findings(self) -> Iterator[LocationFinding]:
        """Return what is wrong, once all URLs were added."""
        host = self._document.host if self._document else ""
        for (rule, name), group in self._groups.items():
            many = "a URL is" if group.count == 1 else f"{group.count:,} URLs are"
            if rule.code.endswith("outside-folder"):
                text = f"{many} not below {name}, the folder of this document"
            elif rule is loc_rules.LOCAL:
                text = f"{many} on {name}, which is not on the web"
            else:
                text = f"{many} on {name}, and this document on {host}"
            yield LocationFinding(rule, text, group.first, group.line, group.column)
