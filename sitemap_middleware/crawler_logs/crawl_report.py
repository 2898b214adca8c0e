"""Reads logs, counts the visits of crawlers in bounded memory, and says what they tell about a sitemap."""

from __future__ import annotations

import json
import mimetypes
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote

from ..exceptions import SitemapError
from ..http.urls import bare_host
from .crawlers import MAX_AGENT_CHARS, Crawler, Identities, Identity, bot_of_agent, crawler_of_agent
from .log_reader import Hit, read_hits, timestamp_of_text

MAX_COUNTED_PAGES: Final = 500_000
"""Paths by crawler and status that are counted one by one. Clients can make up any number; visits to further ones are
counted together.
"""

MAX_PATH_CHARS: Final = 2047
"""Characters of the longest path of its own. A longer one has no place in a sitemap."""

MAX_REASONS: Final = 1000
"""Pages, the most visited first, that are told why they are not listed: an app takes milliseconds to explain one."""

_BATCH_HITS: Final = 10_000

_URL: Final = re.compile(r"https?://(?:[^/?]*@)?([^/?]*)(.*)", re.IGNORECASE | re.DOTALL)
_PAGE_TYPES: Final = frozenset({None, "text/html", "application/xhtml+xml", "application/pdf"})
_NOT_MODIFIED: Final = 304

_IDENTITIES: Final = tuple(identity.value for identity in Identity)
_FIGURES: Final = ("visits", "pages", "redirects", "errors", "parameters", *_IDENTITIES)
"""Of one crawler. `visits` and what follows count all but the fake ones, `pages` the different ones that it got."""

_PAGE_COLUMNS: Final = ("visits", "status", "path", "crawlers")

_NOT_LISTED_COLUMNS: Final = ("visits", "path", "crawlers", "reason")
_Row = tuple[int, int, str, list[str]]
"""What `_PAGE_COLUMNS` name."""
_Key = TypeVar("_Key")

MAX_NAMES: Final = 1000
"""Names of bots that are none of the known crawlers, other hosts, and addresses of fakes, which are counted one by one.
"""

MAX_PARAMETERS: Final = 10
MAX_NAME_CHARS: Final = 40
"""Names of parameters of one path that are shown, and characters of one."""


class Table(NamedTuple):
    """A list of the report. Its columns are the keys of its objects in JSON; of one column, it is a list of texts."""

    name: str
    title: str
    """For people. With a colon it is worth reading without rows."""
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(slots=True)
class CrawlReport:
    """What logs tell about crawlers. Lists of pages begin with the most visits. Times are UTC, in ISO 8601."""

    tables: list[Table]
    figures: dict[str, int]
    """`all_visits` but the fake ones; `wasted_visits`, which were answered by a redirect or an error, or had parameters
    that the sitemap does not have; `fake_visits`; URLs that are `listed`; and `pages_beyond`: visits to pages that are
    in no list, because there were too many.
    """
    lines: dict[str, int]
    """Lines of the logs, by what became of them."""
    notes: list[str]
    problems: list[str]
    """Why logs could not be read to their end."""

    @property
    def period(self) -> str:
        """The days of the first and of the last visit; empty if there is none."""
        rows = self.tables[0].rows
        return f"from {min(row[-2] for row in rows)[:10]} to {max(row[-1] for row in rows)[:10]}" if rows else ""

    def as_json(self) -> str:
        lists: dict[str, Any] = {"listed_failing": None, "never_crawled": None, "not_listed": None}
        for table in self.tables:
            is_list = len(table.columns) == 1
            lists[table.name] = [
                row[0] if is_list else dict(zip(table.columns, row, strict=True)) for row in table.rows
            ]
        more = {"lines": self.lines, "notes": self.notes, "problems": self.problems}
        return json.dumps(lists | self.figures | more, indent=2)

    def for_people(self, *, verified: bool) -> list[Table]:
        """The lists that people see: what is by crawler and something else has a column for each crawler.

        Columns that say nothing are left out: those without text, and unless addresses were verified, what that tells.
        """
        tables = [
            _crossed(table)
            if set(table.columns) > {"crawler", "visits"} and len(table.columns) == 3
            else _without_columns(table, () if verified else _IDENTITIES)
            for table in self.tables
        ]
        return [table for table in tables if table.rows or ":" in table.title]


def crawl_report(
    logs: Iterable[str],
    *,
    identities: Identities,
    listed: Iterable[str] | None = None,
    since: int = 0,
    until: int = sys.maxsize,
    host: str = "",
    reason_of: Callable[[str], str] | None = None,
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None,
) -> CrawlReport:
    """Read logs, and report what crawlers did. What was read of a log counts, even if it ends in a fault.

    Args:
        logs: paths of files; `-` is standard input.
        listed: the URLs of the sitemap; None if it is not known.
        since: POSIX seconds. Earlier visits do not count, nor those from `until` on.
        host: if lines name hosts, those of others do not count. Default: the host of most of the listed URLs; those of
            other hosts do not count.
        reason_of: says why a page is not listed, given its decoded path.
    """
    pages: dict[str, str] | None = None
    elsewhere = 0
    if listed is not None:
        by_host: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for url in listed:
            url_host, path, query = _page_of_url(url)
            by_host[_site_of_host(url_host)][f"{path}?{query}" if query else path] = url
        largest = max(by_host, key=lambda name: len(by_host[name]), default="")
        host = host or largest
        if by_host and _site_of_host(host) not in by_host:
            fix = f"give the sitemap of {host}, or for an app --base-url https://{host}, or leave --host out"
            raise SitemapError(f"the listed URLs are on {largest}, and not on {host}: {fix}")
        pages = by_host.pop(_site_of_host(host), {})
        elsewhere = sum(map(len, by_host.values()))
    counter = VisitCounter(since, until, host, pages)
    visits = _visits_of_crawlers(logs, counter, on_progress)
    while batch := list(islice(visits, _BATCH_HITS)):
        known = identities.look_up((crawler, hit.address) for hit, crawler in batch)
        for hit, crawler in batch:
            counter.add(hit, crawler, known[crawler, hit.address])
    report = counter.report(reason_of)
    if elsewhere:
        report.notes.append(
            f"listed URLs of other hosts, which do not count: {elsewhere:,}; --host chooses another one"
        )
    report.notes += identities.problems
    return report


def _visits_of_crawlers(
    logs: Iterable[str], counter: VisitCounter, on_progress: Callable[[int, int | None], None]
) -> Iterator[tuple[Hit, Crawler]]:
    lines = counter.lines
    for log in logs:
        try:
            for hit in read_hits(log, lines):
                if lines["read"] % 10_000 == 0:
                    on_progress(lines["read"], None)
                agent = hit.agent[:MAX_AGENT_CHARS]
                if (crawler := crawler_of_agent(agent)) is not None:
                    yield hit, crawler
                elif not agent:
                    lines["no User-Agent"] += 1
                elif name := bot_of_agent(agent):
                    counter.add_other(hit, name)
        except SitemapError as error:
            counter.problems.append(str(error))


class VisitCounter:
    """Counts the visits of crawlers to the pages of one site."""

    def __init__(self, since: int, until: int, host: str, listed: Mapping[str, str] | None) -> None:
        """Start with none. `listed` has the URLs of the sitemap by path and query; `crawl_report` says the rest."""
        self._since = since
        self._until = until
        self._host = _site_of_host(host)
        self._listed = listed
        self.lines: Counter[str] = Counter()
        """Lines of the logs, by what became of them."""
        self.problems: list[str] = []
        """Why logs could not be read to their end."""
        self._times: dict[str, list[int]] = {}
        self._identities: Counter[tuple[str, Identity]] = Counter()
        self._days: Counter[tuple[str, str]] = Counter()
        """By date and crawler."""
        self._visits: Counter[tuple[str, int, str, tuple[str, ...]]] = Counter()
        """By crawler, status, path, and the names of parameters that the sitemap does not have. The path is empty if
        there are too many."""
        self._others: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        """Visits by the hosts that count, or if one was chosen, by those that do not."""
        self._fakes: Counter[tuple[str, str]] = Counter()
        """By address and crawler."""

    def add(self, hit: Hit, crawler: Crawler, identity: Identity) -> None:
        """Count a visit, or the line as one that is none."""
        visit = self._visit(hit)
        if visit is not None:
            at, path, query = visit
            times = self._times.setdefault(crawler.name, [at, at])
            self._identities[crawler.name, identity] += 1
            if identity is Identity.FAKE:
                _add(self._fakes, (hit.address, crawler.name), ("others", crawler.name))
            else:
                times[:] = min(times[0], at), max(times[1], at)
                self._days[_date(at)[:10], crawler.name] += 1
                self._count(crawler.name, int(hit.status[:3]), path, query)

    def add_other(self, hit: Hit, name: str) -> None:
        """Count a visit of a bot that is none of the known crawlers."""
        if self._visit(hit) is not None:
            _add(self._others, name, "others")

    def _visit(self, hit: Hit) -> tuple[int, str, str] | None:
        """When a visit was, its decoded path, and its query; None if the line does not count, which is counted."""
        at = timestamp_of_text(hit.time)
        host, path, query = _page_of_url(hit.target)
        host = host or hit.host
        if at is None:
            self.lines["unreadable"] += 1
        elif at < self._since:
            self.lines["earlier"] += 1
        elif at >= self._until:
            self.lines["later"] += 1
        elif hit.method != "GET" or not path or not hit.status.isdecimal():
            self.lines["other requests"] += 1
        elif self._host and host not in ("", "-") and _site_of_host(host) != self._host:
            self.lines["other hosts"] += 1
            _add(self._hosts, _site_of_host(host)[:MAX_NAME_CHARS], "others")
        else:
            if not self._host and host not in ("", "-"):
                _add(self._hosts, _site_of_host(host)[:MAX_NAME_CHARS], "others")
            return at, path, query
        return None

    def _count(self, name: str, status: int, path: str, query: str) -> None:
        page, names = f"{path}?{query}" if query else path, tuple[str, ...]()
        if query and page not in (self._listed or ()):
            pairs = query.split("&", MAX_PARAMETERS)[:MAX_PARAMETERS]
            page, names = path, tuple(pair.partition("=")[0][:MAX_NAME_CHARS] for pair in pairs)
        visit = name, status, page, names
        if visit not in self._visits and len(self._visits) >= MAX_COUNTED_PAGES:
            visit = name, status, "", ()
        self._visits[visit] += 1

    def report(self, reason_of: Callable[[str], str] | None) -> CrawlReport:
        """Conclude what the counted visits tell; `reason_of` says why a page is not listed."""
        by_kind: dict[str, defaultdict[tuple[int, str], Counter[str]]]
        by_kind = {kind: defaultdict(Counter) for kind in ("pages", "wasted", "documents")}
        got = set[tuple[str, str]]()
        figures: defaultdict[str, Counter[str]] = defaultdict(Counter)
        statuses, with_parameters, wasted = Counter[tuple[int, str]](), Counter[str](), 0
        names_of_parameters: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for (name, status, path, names), visits in self._visits.items():
            statuses[status, name] += visits
            figures[name]["visits"] += visits
            is_good = 200 <= status < 300 or status == _NOT_MODIFIED  # the crawler got the page, or had it already
            if not is_good:
                figures[name]["redirects" if 300 <= status < 400 else "errors"] += visits
            if names or not is_good:
                wasted += visits
            if names:
                figures[name]["parameters"] += visits
                with_parameters[path] += visits
                names_of_parameters[path] |= dict.fromkeys(names)
            elif path:
                kind = "documents" if _is_document(path) else "pages" if is_good else "wasted"
                by_kind[kind][status, path][name] += visits
                if kind == "pages":
                    got.add((name, path))
        for name, _ in got:
            figures[name]["pages"] += 1
        for (name, identity), visits in self._identities.items():
            figures[name][identity.value] = visits
        lists = {kind: _rows(found) for kind, found in by_kind.items()}
        crawlers: list[tuple[Any, ...]] = [
            (name, *(figures[name][figure] for figure in _FIGURES), *map(_date, times))
            for name, times in self._times.items()
        ]
        crawlers.sort(key=lambda row: (-row[1], -figures[row[0]]["fake"], row[0]))
        fakes = [(*key, visits) for key, visits in self._fakes.most_common()]
        days = [(*key, visits) for key, visits in sorted(self._days.items(), reverse=True)]
        by_status = [(*key, visits) for key, visits in sorted(statuses.items())]
        parameters = [
            (visits, path, list(names_of_parameters[path])[:MAX_PARAMETERS])
            for path, visits in with_parameters.most_common()
        ]
        tables = [Table("crawlers", "by crawler", ("crawler", *_FIGURES, "first", "last"), crawlers)]
        if self._listed is not None:
            tables += self._compared(lists, {path for _, path in got}, self._listed, reason_of)
        tables += [
            Table("wasted", "redirects and errors", _PAGE_COLUMNS, lists["wasted"]),
            Table("parameters", "requested with parameters", ("visits", "path", "parameters"), parameters),
            Table("documents", "fetches of the sitemap and robots.txt", _PAGE_COLUMNS, lists["documents"]),
            Table("pages", "most visited pages", _PAGE_COLUMNS, lists["pages"]),
            Table("statuses", "by status", ("status", "crawler", "visits"), by_status),
            Table("days", "by day, the latest first", ("date", "crawler", "visits"), days),
            Table("fakes", "fake visits, by address", ("address", "crawler", "visits"), fakes),
            Table("others", "other bots, by the name they give", ("name", "visits"), self._others.most_common()),
        ]
        totals = sum(figures.values(), Counter[str]())
        of_all = {
            "all_visits": totals["visits"],
            "wasted_visits": wasted,
            "fake_visits": totals["fake"],
            "listed": len(self._listed or ()),
            "pages_beyond": sum(visits for (_, _, path, _), visits in self._visits.items() if not path),
        }
        return CrawlReport(tables, of_all, dict(self.lines), [*self._notes(of_all["pages_beyond"])], self.problems)

    def _compared(
        self,
        lists: Mapping[str, Sequence[_Row]],
        got: Collection[str],
        listed: Mapping[str, str],
        reason_of: Callable[[str], str] | None,
    ) -> list[Table]:
        """What the pages that crawlers `got`, and the other answers, tell of the listed URLs."""
        failing = [row for row in lists["wasted"] if row[2] in listed and row[2] not in got]
        asked = {path for _, _, path, names in self._visits if not names}
        never = [(url,) for page, url in listed.items() if page not in asked]
        missing = _not_listed(lists["pages"], listed, reason_of)
        of_all = f"of {len(listed):,}"
        pages = len({row[2] for row in failing})
        rows = "" if pages == len(failing) else ", with a line for each status"
        return [
            Table(
                "listed_failing", f"listed, and no crawler got them: {pages:,} {of_all}{rows}", _PAGE_COLUMNS, failing
            ),
            Table("never_crawled", f"listed, and never requested: {len(never):,} {of_all}", ("URL",), never),
            Table("not_listed", f"crawled, and not listed: {len(missing):,}", _NOT_LISTED_COLUMNS, missing),
        ]

    def _notes(self, beyond: int) -> Iterator[str]:
        read, unreadable, too_long = (self.lines[what] for what in ("read", "unreadable", "too long"))
        if unreadable or too_long:
            more = f", and {too_long:,} too long" if too_long else ""
            yield f"lines that could not be read: {unreadable:,} of {read:,}{more}"
        if self._hosts and (self._host or len(self._hosts) > 1):
            hosts = f"other hosts than {self._host}, which do not" if self._host else "several hosts, which all"
            most = ", ".join(f"{host}: {visits:,}" for host, visits in self._hosts.most_common(3))
            yield f"visits to {hosts} count: {self._hosts.total():,} ({most}); --host chooses one"
        if read > unreadable and self.lines["no User-Agent"] == read - unreadable:
            yield "the logs keep no User-Agent, so no crawler can be recognised: log in the combined format"
        if beyond:
            yield f"visits to pages that are in no list, because there were too many: {beyond:,}"


def _add(counts: Counter[_Key], key: _Key, beyond: _Key) -> None:
    """Count a key, or what is counted together beyond so many ones."""
    counts[key if key in counts or len(counts) < MAX_NAMES else beyond] += 1


def _rows(found: Mapping[tuple[int, str], Counter[str]]) -> list[_Row]:
    """Visits by status and path, the most first."""
    rows = [(visits.total(), status, path, sorted(visits)) for (status, path), visits in found.items()]
    return sorted(rows, key=lambda row: (-row[0], row[2], row[1]))


def _crossed(table: Table) -> Table:
    """A table of visits by crawler and something else, with a column for each crawler."""
    what = next(column for column in table.columns if column not in ("crawler", "visits"))
    found: dict[Any, Counter[str]] = defaultdict(Counter)
    for value, name, visits in table.rows:
        found[value][name] += visits
    totals = sum(found.values(), Counter[str]())
    names = [name for name, _ in totals.most_common()]
    rows = [(value, *(visits[name] for name in names)) for value, visits in found.items()]
    return Table(table.name, table.title, (what, *names), rows)


def _without_columns(table: Table, hidden: Collection[str]) -> Table:
    """A table without hidden columns, and without those that have no text in any row."""
    kept = [
        number
        for number, column in enumerate(table.columns)
        if column not in hidden and any(row[number] != "" for row in table.rows)
    ]
    rows = [[row[number] for number in kept] for row in table.rows]
    return table._replace(columns=[table.columns[number] for number in kept], rows=rows)


def _not_listed(
    pages: Iterable[_Row], listed: Mapping[str, str], reason_of: Callable[[str], str] | None
) -> list[tuple[int, str, list[str], str]]:
    """The pages that crawlers got and that are not listed, with the reason, if that is known."""
    missing: dict[str, tuple[int, set[str]]] = {}
    for visits, _, path, names in pages:
        if path not in listed and mimetypes.guess_type(path)[0] in _PAGE_TYPES:
            before, known = missing.get(path, (0, set()))
            missing[path] = before + visits, known.union(names)
    most_visited = sorted(missing.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        (visits, path, sorted(names), reason_of(path) if reason_of and number < MAX_REASONS else "")
        for number, (path, (visits, names)) in enumerate(most_visited)
    ]


def _page_of_url(url: str) -> tuple[str, str, str]:
    """The host of a URL or path, its decoded path, and its query; the path is empty if it has none."""
    url = url.partition("#")[0]  # crawlers request no fragment
    match = _URL.fullmatch(url)
    host, rest = (match[1], match[2] or "/") if match else ("", url)
    path, _, query = rest.partition("?")
    path = unquote(path)
    return host, path if path.startswith("/") and len(path) <= MAX_PATH_CHARS else "", query


def _site_of_host(host: str) -> str:
    """A host without its port and `www.`, in lower case: so do hosts compare that are one site's."""
    return bare_host(host.lower()).removeprefix("www.")


def _is_document(path: str) -> bool:
    """Whether a path is that of a sitemap, as far as names show, or of robots.txt."""
    name = path.rpartition("/")[2]
    return path == "/robots.txt" or ("sitemap" in name and name.endswith((".xml", ".xml.gz")))


def _date(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%dT%H:%M:%SZ}"
