"""What the documents of one run share, and what only all URLs together show.

For example: all have the same lastmod or priority, or some have https and others http.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .database import UrlDatabase
from .findings import Finding, MessageCollector
from .hints import CheckedLastmod
from .urls import CheckedLoc

MIN_URLS: Final = 20
"""URLs below which equal values are no sign of anything."""

_NOW_SECONDS: Final = 300
"""How much older than the request the dates of a sitemap that is always new may be."""
_MAX_HOSTS: Final = 100
_UNIFORM: Final = {
    "lastmod": "lastmod-all-equal",
    "changefreq": "changefreq-uniform",
    "priority": "priority-uniform",
}
"""The codes of values that are the same everywhere, by element."""


class UrlStatistics:
    """Facts about all URLs of one run.

    Args:
        now: the moment of the request in POSIX seconds; None if the documents are files.
    """

    def __init__(self, now: float | None) -> None:
        self._now = now
        self._urls = 0
        self._values = {name: Counter[str]() for name in _UNIFORM}
        """How often the first two values of each element occur."""
        self._recent = 0
        """How many dates are those of the request."""
        self._schemes: dict[str, str] = {}
        """The first URL of each scheme."""
        self._hosts: dict[str, tuple[str, str]] = {}
        """The first URL of each host without `www.`, and the first with it."""

    def add_url(self, url: CheckedLoc) -> None:
        """Count a URL."""
        self._urls += 1
        if not url.host:
            return
        if url.scheme not in self._schemes:
            self._schemes[url.scheme] = url.url
        if len(self._hosts) < _MAX_HOSTS:
            bare = url.host.removeprefix("www.")
            plain, www = self._hosts.get(bare, ("", ""))
            if bare == url.host and not plain:
                self._hosts[bare] = (url.url, www)
            elif bare != url.host and not www:
                self._hosts[bare] = (plain, url.url)

    def add_value(self, name: str, text: str) -> None:
        """Count a lastmod, changefreq or priority."""
        values = self._values[name]
        if text in values or len(values) < 2:
            values[text] += 1

    def add_lastmod(self, date: CheckedLastmod) -> None:
        """Count a date that breaks no rule."""
        self.add_value("lastmod", date.text)
        if self._now is not None and date.earliest is not None and date.earliest == date.latest:
            self._recent += abs(self._now - date.earliest) < _NOW_SECONDS

    def findings(self) -> Iterator[tuple[Finding, str]]:
        """Return what is wrong with all URLs, and the URL that it is about; nothing for the sitemap as a whole."""
        if len(self._schemes) > 1:
            yield ("loc-mixed-schemes", "some URLs have https, and this one has http"), self._schemes["http"]
        for plain, www in self._hosts.values():
            if plain and www:
                yield ("loc-mixed-www", f"this URL has no www., and {www} has it"), plain
        if self._urls < MIN_URLS:
            return
        is_now = self._recent == self._urls
        if is_now:
            yield ("lastmod-now", f"all {self._urls:,} URLs have the time of the request as lastmod"), ""
        for name, code in _UNIFORM.items():
            for value, count in self._values[name].items():
                if count == self._urls and not (is_now and name == "lastmod"):
                    yield (code, f"all {self._urls:,} URLs have {name} {value}"), ""


@dataclass(frozen=True, slots=True)
class Run:
    """What the documents of one run share."""

    report: MessageCollector
    documents: UrlDatabase
    facts: UrlStatistics
    now: float
    """The moment by which a date is in the future, in POSIX seconds."""
