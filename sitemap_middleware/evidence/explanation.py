"""`Explanation`: what `explain` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..models import Page, Route, SitemapUrl


class PageEvent(NamedTuple):
    """Something that happened to a page."""

    at: int
    """POSIX seconds."""
    text: str


class DateEvidence(NamedTuple):
    """A date that a page may have, and whether the sitemap has it."""

    date: str | None
    """As it would be written; None if there is a reason against it."""
    counts: bool
    """Whether it is the lastmod of the page. Only one is."""
    reason: str
    """Where the date comes from, or why it does not count."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a URL is listed or not, and where its lastmod and an inferred changefreq come from.

    `str()` returns a text for people.
    """

    path: str
    loc: str | None
    listed: bool
    reason: str
    entry: SitemapUrl | None = None
    lastmod_source: str | None = None
    route: Route | None = None
    page: Page | None = None
    changefreq_source: str | None = None
    skipped: tuple[str, ...] = ()
    """Items of its route's values that were left out, and why: how many, and the first few."""
    ignored: str | None = None
    """Which requests to this process did not count as evidence, if that may be why nothing is known."""

    note: str | None = None
    """Why the sitemap itself is not served, or was answered with 503, if that is so."""

    history: tuple[PageEvent, ...] = ()
    """What happened to the page, the latest first."""
    dates: tuple[DateEvidence, ...] = ()
    """The dates that a listed page may have, the best evidence first."""

    def __str__(self) -> str:
        lines = [f"note: {self.note}"] if self.note else []
        lines.append(f"{self.path} is {'listed' if self.listed else 'not listed'}: {self.reason}")
        if self.loc:
            lines.append(f"loc: {self.loc}")
        if self.lastmod_source:
            lastmod = self.entry.lastmod if self.entry and self.entry.lastmod else "none"
            lines.append(f"lastmod: {lastmod} ({self.lastmod_source})")
        if self.changefreq_source:
            word = self.entry.changefreq if self.entry and self.entry.changefreq else "none"
            lines.append(f"changefreq: {word} ({self.changefreq_source})")
        if self.route:
            lines.append(f"route: {self.route.path} ({self.route.endpoint})")
        lines += [f"values: {skipped}" for skipped in self.skipped]
        if self.ignored:
            lines.append(f"ignored: {self.ignored}")
        return "\n".join(lines)
