"""Counts the visits of crawlers in bounded memory, and says what they tell about a sitemap. Pure."""

from __future__ import annotations

import json
import mimetypes
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import unquote

from .addresses import Identity
from .known_crawlers import Crawler
from .log_formats import Hit, timestamp_of_text

MAX_COUNTED_PAGES: Final = 500_000
"""Paths by crawler and status that are counted one by one. Clients can make up any number; visits to further ones are
counted together.
"""

MAX_PATH_CHARS: Final = 2047
"""Characters of the longest path of its own. A longer one has no place in a sitemap."""

_URL: Final = re.compile(r"https?://(?:[^/?#]*@)?([^/?#]*)([^#]*)", re.IGNORECASE | re.DOTALL)
_PAGE_TYPES: Final = frozenset({None, "text/html", "application/xhtml+xml", "application/pdf"})
_NOT_MODIFIED: Final = 304


def page_of_url(url: str) -> tuple[str, str, str]:
    """The host of a URL or path, its decoded path, and its query; the path is empty if it has none."""
    match = _URL.fullmatch(url)
    host, rest = (match[1], match[2] or "/") if match else ("", url)
    path, _, query = rest.partition("?")
    path = unquote(path) if "%" in path else path
    return host, path if path.startswith("/") and len(path) <= MAX_PATH_CHARS else "", query


def bare_host(host: str) -> str:
    """A host without its port and `www.`, in lower case: so do hosts compare that are one site's."""
    return re.sub(r":\d+$", "", host.lower()).removeprefix("www.")


def is_good(status: int) -> bool:
    """Whether a crawler got the page, or had it already."""
    return 200 <= status < 300 or status == _NOT_MODIFIED


def is_document(path: str) -> bool:
    """Whether a path is that of a sitemap, as far as names show, or of robots.txt."""
    name = path.rpartition("/")[2]
    return path == "/robots.txt" or ("sitemap" in name and name.endswith((".xml", ".xml.gz")))


@dataclass(slots=True)
class _Totals:
    """The visits of one crawler, in POSIX seconds and numbers of visits."""

    first: int
    last: int
    identities: Counter[Identity] = field(default_factory=Counter)
    days: Counter[int] = field(default_factory=Counter)
    """By the day since 1970. Fake visits do not count, here and below."""
    statuses: Counter[int] = field(default_factory=Counter)
    parameters: Counter[str] = field(default_factory=Counter)
    """Visits with a query string, by path."""
    pages: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By status and path."""


class VisitCounter:
    """Counts the visits of crawlers to the pages of one site."""

    def __init__(
        self, lines: Counter[str], *, since: int = 0, host: str = "", listed: Mapping[str, str] | None = None
    ) -> None:
        """Start with none.

        Args:
            lines: counts lines that do not count as visits, by the reason.
            since: POSIX seconds. Earlier visits do not count.
            host: if a line names a host, it has to be this one; empty for any.
            listed: the pages of the sitemap: their URLs by path and query; None if it is not known.
        """
        self._lines = lines
        self._since = since
        self._host = bare_host(host)
        self.listed: Mapping[str, str] | None = listed
        self.crawlers: dict[str, _Totals] = {}
        self.counted_pages: int = 0
        self.pages_beyond: int = 0
        """Visits to paths beyond `MAX_COUNTED_PAGES`."""

    def add(self, hit: Hit, crawler: Crawler, identity: Identity) -> None:
        """Count a visit, or the line as one that is none."""
        at, lines = timestamp_of_text(hit.time), self._lines
        if at is None:
            lines["unreadable"] += 1
            return
        host, path, query = page_of_url(hit.target)
        host = host or hit.host
        if at < self._since:
            lines["earlier"] += 1
        elif hit.method != "GET" or not path or not hit.status.isdecimal():
            lines["other requests"] += 1
        elif self._host and host not in ("", "-") and bare_host(host) != self._host:
            lines["other hosts"] += 1
        else:
            self._count(crawler.name, path, query, int(hit.status[:3]), at, identity)

    def _count(self, name: str, path: str, query: str, status: int, at: int, identity: Identity) -> None:  # noqa: PLR0917
        totals = self.crawlers.get(name)
        if totals is None:
            totals = self.crawlers[name] = _Totals(at, at)
        totals.identities[identity] += 1
        if identity is Identity.FAKE:
            return
        totals.first, totals.last = min(totals.first, at), max(totals.last, at)
        totals.days[at // 86_400] += 1
        totals.statuses[status] += 1
        page = f"{path}?{query}"
        if query and (self.listed is None or page not in self.listed):
            self._add_page(totals.parameters, path)
            return
        self._add_page(totals.pages[status], page if query else path)

    def _add_page(self, pages: Counter[str], page: str) -> None:
        if page not in pages:
            if self.counted_pages >= MAX_COUNTED_PAGES:
                self.pages_beyond += 1
                return
            self.counted_pages += 1
        pages[page] += 1


class CrawlerLine(NamedTuple):
    """The visits of one crawler. All but the fake ones count."""

    crawler: str
    visits: int
    pages: int
    """Different pages that it got."""
    redirects: int
    errors: int
    parameters: int
    """Visits with a query string that the sitemap does not have."""
    verified: int
    unverified: int
    fake: int
    first: str
    last: str


class DayLine(NamedTuple):
    """The visits of one crawler on one day, UTC."""

    date: str
    crawler: str
    visits: int


class StatusLine(NamedTuple):
    """The visits of one crawler that were answered with one status."""

    crawler: str
    status: int
    visits: int


class PageLine(NamedTuple):
    """The visits of one crawler to one page with one status."""

    path: str
    crawler: str
    status: int
    visits: int


class ParameterLine(NamedTuple):
    """The visits to a path with query strings that the sitemap does not have."""

    path: str
    visits: int


class NotListed(NamedTuple):
    """A page that crawlers got, and that the sitemap does not list."""

    path: str
    visits: int
    crawlers: list[str]
    reason: str
    """Why it is not listed; empty if that is not known."""


@dataclass(slots=True)
class CrawlReport:
    """What logs tell about crawlers. Lists of pages begin with the most visits. Times are UTC, in ISO 8601."""

    crawlers: list[CrawlerLine]
    days: list[DayLine]
    statuses: list[StatusLine]
    pages: list[PageLine]
    """Those that crawlers got."""
    wasted: list[PageLine]
    """Redirects and errors."""
    parameters: list[ParameterLine]
    documents: list[PageLine]
    """Fetches of sitemaps and of robots.txt."""
    listed: int
    """URLs of the sitemap."""
    never_crawled: list[str] | None
    """The URLs that are listed and that no crawler got; None if the sitemap is not known."""
    not_listed: list[NotListed] | None
    """None if the sitemap is not known."""
    pages_beyond: int
    """Visits to pages that are in no list, because there were too many."""
    lines: dict[str, int]
    """Lines of the logs, by what became of them."""
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why logs could not be read to their end."""

    def json_parts(self) -> Iterator[str]:
        """The same as JSON, in parts: lists of objects, one a line, because there may be a million."""
        for number, each in enumerate(fields(self)):
            value = getattr(self, each.name)
            yield f'{"," if number else "{"}\n  "{each.name}": '
            if isinstance(value, list):
                for position, line in enumerate(value):
                    text = json.dumps(line if isinstance(line, str) else line._asdict())
                    yield f"{',' if position else '['}\n    {text}"
                yield "\n  ]" if value else "[]"
            else:
                yield json.dumps(value)
        yield "\n}\n"


def report_of(counter: VisitCounter, lines: Mapping[str, int], reason_of: Callable[[str], str]) -> CrawlReport:
    """Conclude what the counted visits tell.

    Args:
        counter: has counted them.
        lines: of the logs, by what became of them.
        reason_of: says why a page is not listed.
    """
    crawlers = counter.crawlers.items()
    lists: dict[str, list[PageLine]] = {"pages": [], "wasted": [], "documents": []}
    parameters = Counter[str]()
    for name, totals in crawlers:
        parameters.update(totals.parameters)
        for status, pages in totals.pages.items():
            for path, visits in pages.items():
                kind = "documents" if is_document(path) else "pages" if is_good(status) else "wasted"
                lists[kind].append(PageLine(path, name, status, visits))
    for found in lists.values():
        found.sort(key=lambda line: (-line.visits, line.path, line.crawler, line.status))
    listed, never_crawled, not_listed = counter.listed, None, None
    if listed is not None:
        got = {line.path for line in lists["pages"]}
        never_crawled = [url for page, url in listed.items() if page not in got]
        missing: dict[str, Counter[str]] = defaultdict(Counter)
        for line in lists["pages"]:
            if line.path not in listed and mimetypes.guess_type(line.path)[0] in _PAGE_TYPES:
                missing[line.path][line.crawler] += line.visits
        most_visited = sorted(missing.items(), key=lambda item: (-item[1].total(), item[0]))
        not_listed = [NotListed(path, found.total(), sorted(found), reason_of(path)) for path, found in most_visited]
    days = (DayLine(_date(day * 86_400)[:10], name, n) for name, totals in crawlers for day, n in totals.days.items())
    statuses = (StatusLine(name, status, n) for name, totals in crawlers for status, n in totals.statuses.items())
    return CrawlReport(
        crawlers=sorted(
            (_crawler_line(name, totals) for name, totals in crawlers),
            key=lambda line: (-line.visits, -line.fake, line.crawler),
        ),
        days=sorted(days),
        statuses=sorted(statuses),
        parameters=[ParameterLine(path, visits) for path, visits in parameters.most_common()],
        listed=len(listed or ()),
        never_crawled=never_crawled,
        not_listed=not_listed,
        pages_beyond=counter.pages_beyond,
        lines=dict(lines),
        pages=lists["pages"],
        wasted=lists["wasted"],
        documents=lists["documents"],
    )


def _crawler_line(name: str, totals: _Totals) -> CrawlerLine:
    statuses, identities = totals.statuses, totals.identities
    good = {path for status, pages in totals.pages.items() if is_good(status) for path in pages}
    return CrawlerLine(
        crawler=name,
        visits=statuses.total(),
        pages=sum(not is_document(path) for path in good),
        redirects=sum(visits for status, visits in statuses.items() if 300 <= status < 400 and not is_good(status)),
        errors=sum(visits for status, visits in statuses.items() if status >= 400),
        parameters=totals.parameters.total(),
        verified=identities[Identity.VERIFIED],
        unverified=identities[Identity.UNVERIFIED],
        fake=identities[Identity.FAKE],
        first=_date(totals.first),
        last=_date(totals.last),
    )


def _date(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%dT%H:%M:%SZ}"
