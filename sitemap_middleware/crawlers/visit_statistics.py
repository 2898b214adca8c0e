"""Computes figures from a site's counted visits, for the command `crawlers` and for reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .counted_visits import OTHER_PATHS, CrawlerVisit

OTHER_SECTION: Final = "other"
"""The section of paths of no route."""


class CrawlerLine(NamedTuple):
    """The visits of one crawler. All figures but `unverified` and `fake` are of the visits that count."""

    crawler: str
    visits: int
    pages: int
    """Listed pages that it got with 200 or 304."""
    errors: int
    """Visits that were answered 400 or more."""
    last: int | None
    """The last visit, in POSIX seconds; None if no visit counts."""
    unverified: int
    """Visits of addresses that could not be verified."""
    fake: int
    """Visits of somebody else under its name."""


class SectionLine(NamedTuple):
    """The visits of one crawler to the pages of one route."""

    section: str
    crawler: str
    visits: int
    pages: int
    """Listed pages that it got with 200 or 304."""
    last: int


class PathLine(NamedTuple):
    """The visits of one crawler to one path with one status."""

    path: str
    crawler: str
    status: int
    visits: int
    last: int


@dataclass(slots=True)
class CrawlerFigures:
    """What the visits of a site say. Lists are sorted by visits, the most first; `never_crawled` by path."""

    crawlers: list[CrawlerLine] = field(default_factory=list)
    sections: list[SectionLine] = field(default_factory=list)
    listed: int = 0
    crawled: int = 0
    """Listed pages that some crawler got with 200 or 304."""
    never_crawled: list[str] = field(default_factory=list)
    """Listed pages that no crawler got."""
    not_listed: list[PathLine] = field(default_factory=list)
    """Pages that crawlers got with 200 or 304, and that are not listed."""
    errors: list[PathLine] = field(default_factory=list)
    """Paths that were answered 400 or more."""
    documents: list[PathLine] = field(default_factory=list)
    """Fetches of the sitemap's documents and of robots.txt."""


@dataclass(slots=True)
class _Counts:
    visits: int = 0
    errors: int = 0
    last: int | None = None
    unverified: int = 0
    fake: int = 0
    paths: set[str] = field(default_factory=set)

    def add(self, visit: CrawlerVisit) -> None:
        self.visits += visit.count
        self.last = visit.last if self.last is None else max(self.last, visit.last)


def crawler_figures(
    visits: Iterable[CrawlerVisit],
    listed: Iterable[str],
    *,
    section_of: Callable[[str], str | None],
    is_document: Callable[[str], bool],
    since: int = 0,
    count_unverified: bool = False,
) -> CrawlerFigures:
    """The figures of one site.

    Args:
        visits: its visits, as the store keeps them.
        listed: the decoded paths of the pages in its sitemap.
        section_of: the section of a decoded path, such as its route; None if it has none.
        is_document: whether a decoded path is that of a document of the sitemap, or of robots.txt.
        since: POSIX seconds. Visits whose last one was before are left out; the counts of others reach further back,
            because visits are added up.
        count_unverified: whether visits count that could not be verified. Fake ones never do.
    """
    listed_paths = set(listed)
    by_crawler: dict[str, _Counts] = {}
    by_section: dict[tuple[str, str], _Counts] = {}
    paths: dict[tuple[str, str, str, int], _Counts] = {}
    crawled: set[str] = set()
    for visit in visits:
        if visit.last < since:
            continue
        counts = by_crawler.setdefault(visit.crawler, _Counts())
        if visit.fake:
            counts.fake += visit.count
        elif not visit.verified:
            counts.unverified += visit.count
        if visit.fake or not (visit.verified or count_unverified):
            continue
        counts.add(visit)
        is_listed_page = False
        if is_document(visit.path):
            kind = "document"
        elif visit.status >= 400:
            kind = "error"
            counts.errors += visit.count
        elif visit.status not in (200, 304) or visit.path == OTHER_PATHS:
            kind = ""
        elif visit.path in listed_paths:
            kind = ""
            is_listed_page = True
            crawled.add(visit.path)
            counts.paths.add(visit.path)
        else:
            kind = "not listed"
        if kind:
            paths.setdefault((kind, visit.path, visit.crawler, visit.status), _Counts()).add(visit)
        if kind != "document":
            section = by_section.setdefault((section_of(visit.path) or OTHER_SECTION, visit.crawler), _Counts())
            section.add(visit)
            if is_listed_page:
                section.paths.add(visit.path)

    def lines(kind: str) -> list[PathLine]:
        found = [
            PathLine(path, crawler, status, counts.visits, counts.last or 0)
            for (its_kind, path, crawler, status), counts in paths.items()
            if its_kind == kind
        ]
        return sorted(found, key=lambda line: (-line.visits, line))

    return CrawlerFigures(
        crawlers=sorted(
            (
                CrawlerLine(name, each.visits, len(each.paths), each.errors, each.last, each.unverified, each.fake)
                for name, each in by_crawler.items()
            ),
            key=lambda line: (-line.visits, -line.unverified, -line.fake, line.crawler),
        ),
        sections=sorted(
            (
                SectionLine(section, crawler, each.visits, len(each.paths), each.last or 0)
                for (section, crawler), each in by_section.items()
            ),
            key=lambda line: (-line.visits, line),
        ),
        listed=len(listed_paths),
        crawled=len(crawled),
        never_crawled=sorted(listed_paths - crawled),
        not_listed=lines("not listed"),
        errors=lines("error"),
        documents=lines("document"),
    )
