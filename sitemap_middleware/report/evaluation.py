"""Evaluates the URLs of a site for the report, in the background, and keeps the results until the site has changed.

They are in a temporary SQLite database, which sorts, filters and counts them, and by which rules say what to do about
the site. SQLite keeps it in memory up to its page cache, beyond that in a file that has no name and that ends with the
process.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..documents.no_sitemap_reasons import Unavailable
from ..evidence.dates import SECONDS_PER_DAY
from ..exceptions import StoreError
from ..http.messages import Request
from ..http.urls import quote_path
from ..listing.candidates import SiteSnapshot
from ..listing.evaluated_urls import EvaluatedUrl
from ..listing.route_report import RouteReport
from ..models import Site
from ..util import resolve, run_in_background
from .findings import RULES, SHOWN, Finding, Rule, findings

if TYPE_CHECKING:
    from ..service import SitemapService

MAX_SITES: Final = 8

WAIT_SECONDS: Final = 10.0
"""Seconds for which a request waits for the evaluation that it starts."""

MIN_AGE_FACTOR: Final = 5
"""An evaluation is kept at least so many times as long as it took, even if the site changes."""

CACHE_KIBIBYTES: Final = 16 * 1024

SORTS: Final[Mapping[str, str]] = {"path": "path", "date": "changed DESC, path", "seen": "last_seen DESC, path"}

_BY_CHANGE: Final = "event DESC, path"

_CHANGES: Final = """
SELECT CASE WHEN dropped >= :since THEN 'dropped' WHEN first_good >= :since THEN 'new' ELSE 'changed' END AS change,
       (CASE WHEN dropped >= :since THEN dropped WHEN first_good >= :since THEN first_good ELSE changed END)
       / :day AS day,
       count(*)
FROM pages WHERE event >= :since GROUP BY change, day
"""


class Group(NamedTuple):
    """Pages whose reasons are of one kind, or listed pages whose lastmod has one source."""

    text: str
    listed: bool
    pages: int


class PageQuery(NamedTuple):
    """Which pages to return, and in which order."""

    sort: str = "path"
    """A key of `SORTS`."""
    show: str = "all"
    """A key of `SHOWN`."""
    group: str = ""
    """Only those of this group, whatever `show` says."""
    route: str = ""
    """Only those of this route."""
    q: str = ""
    """Only those whose path contains this, in any case."""
    since: int | None = None
    """Only those with a change since this POSIX time, the latest first."""
    path: str = ""
    """Only the page of this percent-encoded path."""


class SiteIndex:
    """The evaluated URLs of a site, which any thread may query."""

    def __init__(self, rows: Iterable[EvaluatedUrl]) -> None:
        """Write the rows, make the indexes, and count."""
        self._lock = threading.Lock()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        # Once no response reads it. Not by __del__, which may run on any thread, in the middle of anything.
        weakref.finalize(self, self._db.close).atexit = False
        self._fetch(f"PRAGMA cache_size=-{CACHE_KIBIBYTES}")
        self._fetch(f"CREATE TABLE pages ({', '.join(EvaluatedUrl._fields)})")
        self._fetch("BEGIN")
        self._db.executemany(f"INSERT INTO pages VALUES ({', '.join('?' * len(EvaluatedUrl._fields))})", rows)  # noqa: S608 # question marks
        self._fetch("COMMIT")
        for number, columns in enumerate(("kind, path", "listed, path", *SORTS.values(), _BY_CHANGE)):
            self._fetch(f"CREATE INDEX by_{number} ON pages ({columns})")
        self.groups: list[Group] = [
            Group(kind, bool(listed), count)
            for kind, listed, count in self._fetch(
                "SELECT kind, max(listed), count(*) FROM pages GROUP BY kind ORDER BY 3 DESC, 1"
            )
        ]
        """Those of listed pages and of others, the largest first."""
        self.pages: int
        self.listed: int
        self.dated: int
        [[self.pages, self.listed, self.dated]] = self._fetch(
            "SELECT count(*), ifnull(sum(listed), 0), count(lastmod) FROM pages"
        )
        found = ((rule, self.query(PageQuery(show=rule.id), 0, 0)[0]) for rule in RULES)
        self.found: list[tuple[Rule, int]] = [(rule, pages) for rule, pages in found if pages]
        """The rules that find pages, and how many."""

    @property
    def left_out(self) -> int:
        """Pages that are not listed."""
        return self.pages - self.listed

    def changes_by_day(self, since: int) -> Counter[tuple[str, int]]:
        """How many pages are new, changed or dropped since a POSIX time, by day since 1970."""
        found = self._fetch(_CHANGES, {"since": since, "day": SECONDS_PER_DAY})
        return Counter({(change, day): count for change, day, count in found})

    def query(self, query: PageQuery, offset: int, limit: int) -> tuple[int, list[EvaluatedUrl]]:
        """How many pages a query finds, and at most `limit` of them after the first `offset` ones; -1 means all."""
        conditions = {
            "kind = ?": query.group,
            "route = ?": query.route,
            "instr(lower(path), lower(?))": query.q,
            "event >= ?": query.since,
            "path = ?": query.path,
        }
        given = {condition: value for condition, value in conditions.items() if value not in ("", None)}
        where = " AND ".join([f"({SHOWN['all' if query.group else query.show]})", *given])
        order = SORTS[query.sort] if query.since is None else _BY_CHANGE
        [[total]] = self._fetch(f"SELECT count(*) FROM pages WHERE {where}", [*given.values()])  # noqa: S608 # constants
        statement = f"SELECT * FROM pages WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"  # noqa: S608 # constants
        rows = map(EvaluatedUrl._make, self._fetch(statement, [*given.values(), limit, offset]))
        # SQLite has no booleans
        return total, [
            row._replace(
                listed=bool(row.listed),
                linked=None if row.linked is None else bool(row.linked),
                excluded=bool(row.excluded),
            )
            for row in rows
        ]

    def _fetch(self, statement: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(statement, parameters).fetchall()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The pages of a site, evaluated at one moment."""

    snapshot: SiteSnapshot
    version: int
    """Of the site's pages in the store."""
    at: float
    """POSIX seconds."""
    index: SiteIndex
    routes: list[RouteReport]
    seconds: float
    problem: str | None
    """Why pages are missing; None if none are."""
    findings: list[Finding]

    @property
    def now(self) -> int:
        """POSIX seconds by the clock that dates the evidence."""
        return self.snapshot.now


def evaluate(service: SitemapService, snapshot: SiteSnapshot, unavailable: str | None = None) -> Evaluation:
    """Evaluate the pages of a site, one by one. Raises `StoreError` if the store fails.

    `unavailable`: why there is no sitemap now; None if there is one, or it is not known.
    """
    site, version = snapshot.site, snapshot.store.version(snapshot.site.store_key)
    at, began = service.clock(), time.monotonic()
    problems: list[str] = []
    index = SiteIndex(service.url_report([snapshot], problems))
    routes = service.route_report([snapshot])
    fetched_at = None if site.loopback else service.sitemap_handler.crawler_fetches.last(site.store_key)
    found = findings(
        index.found,
        routes,
        unserved_reason=service.not_served_reason() or unavailable,
        is_sitemap_forbidden=not snapshot.rules.allows(f"{site.base_url}{quote_path(service.options.path)}"),
        days_unfetched=0 if fetched_at is None else (at - fetched_at) / SECONDS_PER_DAY,
    )
    seconds = time.monotonic() - began
    return Evaluation(snapshot, version, at, index, routes, seconds, next(iter(problems), None), found)


class EvaluationCache:
    """The latest evaluation of each site."""

    def __init__(self, service: SitemapService) -> None:
        self._service = service
        self._latest: dict[str, Evaluation] = {}
        self._running: dict[str, Future[None]] = {}

    def get(self, site: Site, request: Request) -> Evaluation | None:
        """The latest evaluation of a site; None if the first one is not complete. Starts a new one if it is due.

        Raises:
            StoreError: the store fails.
        """
        latest = self._latest.get(site.base_url)
        if latest is not None:
            self._service.sitemap_handler.flush()
            if not self._is_due(latest, site):
                return latest
        new = Future[None]()
        job = self._running.setdefault(site.base_url, new)
        if job is new:
            run = partial(resolve, job, partial(self._evaluate, site, request))
            if request.runs_probes_inline:  # the app may need what belongs to the server's one thread
                run()
            else:
                run_in_background(run)
        if job is new or latest is None:
            wait((job,), WAIT_SECONDS)
            if job.done():
                job.result()
        return self._latest.get(site.base_url)

    def _is_due(self, latest: Evaluation, site: Site) -> bool:
        age = self._service.clock() - latest.at
        if 0 <= age < MIN_AGE_FACTOR * latest.seconds:
            return False
        return (
            latest.version != latest.snapshot.store.version(site.store_key)
            or latest.snapshot.table is not self._service.app_routes.reload()
            or not 0 <= age < self._service.options.max_age
        )

    def _evaluate(self, site: Site, request: Request) -> None:
        try:
            unavailable = None
            try:
                self._service.sitemap_handler.bring_up_to_date(site, request)
            except (Unavailable, StoreError) as error:  # what is known is shown all the same
                unavailable = str(error)
            self._service.prober.take_results(site)
            snapshot = replace(self._service.snapshot(site), async_collector=request.async_collector)
            evaluation = evaluate(self._service, snapshot, unavailable)
            if len(self._latest) >= MAX_SITES:
                self._latest.clear()
            self._latest[site.base_url] = evaluation
        finally:
            del self._running[site.base_url]
