"""Counts the values of all URLs of a sitemap as they are read, and finds problems that only all together show.

For example: all have the same lastmod or priority, or some have https and others http.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .checks.lastmod import CheckedLastmod
from .checks.loc import CheckedLoc
from .message import Finding
from .rules import changefreq_and_priority, lastmod, loc

MIN_URLS: Final = 20
"""URLs below which equal values are no sign of anything."""

_NOW_SECONDS: Final = 300
"""How much older than the request the dates of a sitemap that is always new may be."""
_MAX_HOSTS: Final = 100


class _OneValue:
    """Whether a value is always the same."""

    def __init__(self) -> None:
        self.count = 0
        self.value: str | None = None
        self.is_same = True

    def add(self, value: str) -> None:
        self.count += 1
        if self.value is None:
            self.value = value
        elif self.is_same and value != self.value:
            self.is_same = False

    def is_uniform(self, urls: int) -> bool:
        return self.is_same and self.count == urls >= MIN_URLS


class UrlStatistics:
    """Facts about all URLs of one run.

    Args:
        now: the moment of the request in POSIX seconds; None if the documents are files.
    """

    def __init__(self, now: float | None) -> None:
        self._now = now
        self._urls = 0
        self._lastmods, self._changefreqs, self._priorities = _OneValue(), _OneValue(), _OneValue()
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

    def add_lastmod(self, date: CheckedLastmod) -> None:
        """Count a date."""
        self._lastmods.add(date.text)
        if (
            self._now is not None
            and date.earliest is not None
            and date.earliest == date.latest
            and abs(self._now - date.earliest) < _NOW_SECONDS
        ):
            self._recent += 1

    def add_changefreq(self, text: str) -> None:
        """Count a changefreq."""
        self._changefreqs.add(text)

    def add_priority(self, text: str) -> None:
        """Count a priority."""
        self._priorities.add(text)

    def findings(self) -> Iterator[tuple[Finding, str]]:
        """Return what is wrong with all URLs, and the URL that it is about; nothing for the sitemap as a whole."""
        if len(self._schemes) > 1:
            yield (loc.MIXED_SCHEMES, "some URLs have https, and this one has http"), self._schemes["http"]
        for plain, www in self._hosts.values():
            if plain and www:
                yield (loc.MIXED_WWW, f"this URL has no www., and {www} has it"), plain
        if self._recent == self._lastmods.count == self._urls >= MIN_URLS:
            yield (lastmod.NOW, f"all {self._urls:,} URLs have the time of the request as lastmod"), ""
        elif self._lastmods.is_uniform(self._urls):
            yield (lastmod.ALL_EQUAL, f"all {self._urls:,} URLs have lastmod {self._lastmods.value}"), ""
        if self._changefreqs.is_uniform(self._urls):
            yield (
                (
                    changefreq_and_priority.CHANGEFREQ_UNIFORM,
                    f"all {self._urls:,} URLs have changefreq {self._changefreqs.value}",
                ),
                "",
            )
        if self._priorities.is_uniform(self._urls):
            yield (
                (
                    changefreq_and_priority.PRIORITY_UNIFORM,
                    f"all {self._urls:,} URLs have priority {self._priorities.value}",
                ),
                "",
            )
