"""The evaluated URLs of one site at one moment, in a temporary SQLite database: sorted, filtered and counted.

SQLite keeps the database in memory up to its page cache, beyond that in a file that has
no name and that ends with the process.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY
from ..listing.changes_since import ChangeTimes, PageChange, change_since
from ..listing.listed_and_unlisted_urls import UrlReportLine

CACHE_KIBIBYTES: Final = 16 * 1024
"""Memory that SQLite uses for the database of one site."""

BATCH_ROWS: Final = 500
"""Rows written at one time."""

SORTS: Final[Mapping[str, str]] = {"path": "path", "date": "changed DESC, path", "seen": "last_seen DESC, path"}
"""The orders of pages."""

_BY_CHANGE: Final = "event DESC, path"


class PageRow(NamedTuple):
    """One URL of a site, evaluated: a column for each field. Times are in POSIX seconds."""

    path: str
    """Percent-encoded, from the root path on."""
    url: str
    listed: bool
    reason: str
    kind: str
    """Of reasons that differ in a detail; for a listed page the source of its lastmod."""
    lastmod: str | None
    lastmod_from: str | None
    lastmod_note: str | None
    """The source of its lastmod, or why it has none; None unless it is listed."""
    changefreq: str | None
    priority: float | None
    route: str
    status: int | None
    """Of its deciding answer; None if it was never seen."""
    first_good: int | None
    changed: int | None
    last_good: int | None
    dropped: int | None
    """This and the three above: see `ChangeTimes`."""
    last_seen: int
    """0 if it was never seen."""
    event: int | None
    """When it last came, changed or went."""

    def change(self, since: int) -> PageChange | None:
        """What happened to it since a POSIX time."""
        times = ChangeTimes(self.first_good, self.changed, self.last_good, self.dropped)
        line = UrlReportLine(self.url, self.listed, self.reason, self.lastmod, self.lastmod_from, self.route)
        return change_since(line, times, since)


_COLUMNS: Final = ", ".join(PageRow._fields)
_INSERT: Final = f"INSERT INTO pages VALUES ({', '.join('?' * len(PageRow._fields))})"  # noqa: S608 # question marks
_INDEXES: Final = ("path", "kind, path", "listed, path", *SORTS.values(), _BY_CHANGE)

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
    show: Literal["all", "listed", "left-out"] = "all"
    group: str = ""
    """Only those of this group, whatever `show` says."""
    text: str = ""
    """Only those whose path contains this, in any case."""


class SiteIndex:
    """The evaluated URLs of a site. One thread fills it; any thread may then query it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        # Once no response reads it. Not by __del__, which may run on any thread, in the middle of anything.
        weakref.finalize(self, self._db.close).atexit = False
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIBIBYTES}"):
            self._db.execute(f"PRAGMA {pragma}").close()
        self._db.execute(f"CREATE TABLE pages ({_COLUMNS})")
        self.pages: int = 0
        """Pages written so far."""
        self.listed: int = 0
        self.dated: int = 0
        """Listed pages with a lastmod. This and `listed` are known once the index is filled."""
        self.groups: list[Group] = []
        """Those of listed pages and of others, the largest first; known once the index is filled."""

    def fill(self, rows: Iterable[PageRow]) -> None:
        """Write the rows, make the indexes, and count."""
        remaining = iter(rows)
        while batch := [*islice(remaining, BATCH_ROWS)]:
            with self._lock:
                self._db.execute("BEGIN")
                self._db.executemany(_INSERT, batch)
                self._db.execute("COMMIT")
            self.pages += len(batch)
        for number, columns in enumerate(_INDEXES):
            self._fetch(f"CREATE INDEX by_{number} ON pages ({columns})")
        self.groups = [
            Group(kind, bool(listed), count)
            for kind, listed, count in self._fetch(
                "SELECT kind, max(listed), count(*) FROM pages GROUP BY kind ORDER BY 3 DESC, 1"
            )
        ]
        [[listed, self.dated]] = self._fetch("SELECT sum(listed), count(lastmod) FROM pages")
        self.listed = listed or 0

    @property
    def left_out(self) -> int:
        """Pages that are not listed."""
        return self.pages - self.listed

    def changes_by_day(self, since: int) -> Counter[tuple[str, int]]:
        """How many pages are new, changed or dropped since a POSIX time, by day since 1970."""
        found = self._fetch(_CHANGES, {"since": since, "day": SECONDS_PER_DAY})
        return Counter({(change, day): count for change, day, count in found})

    def find(self, path: str) -> PageRow | None:
        """The page of a percent-encoded path."""
        found = self._fetch("SELECT * FROM pages WHERE path = ?", (path,))
        return PageRow._make(found[0]) if found else None

    def query(self, query: PageQuery, offset: int, limit: int) -> tuple[int, list[PageRow]]:
        """How many pages a query finds, and at most `limit` of them after the first `offset` ones."""
        conditions, values = ["true"], list[Any]()
        if query.group:
            conditions.append("kind = ?")
            values.append(query.group)
        elif query.show != "all":
            conditions.append("listed = ?")
            values.append(query.show == "listed")
        if query.text:
            conditions.append("instr(lower(path), lower(?))")
            values.append(query.text)
        where = " AND ".join(conditions)
        [[total]] = self._fetch(f"SELECT count(*) FROM pages WHERE {where}", values)  # noqa: S608 # of constants
        return total, self._rows(f"WHERE {where} ORDER BY {SORTS[query.sort]}", [*values, limit, offset])

    def changes(self, since: int, offset: int, limit: int) -> list[PageRow]:
        """At most `limit` pages with a change since a POSIX time after the first `offset` ones, the latest first."""
        return self._rows(f"WHERE event >= ? ORDER BY {_BY_CHANGE}", [since, limit, offset])

    def _rows(self, clauses: str, parameters: list[Any]) -> list[PageRow]:
        statement = f"SELECT * FROM pages {clauses} LIMIT ? OFFSET ?"  # noqa: S608 # of constants
        return [*map(PageRow._make, self._fetch(statement, parameters))]

    def _fetch(self, statement: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(statement, parameters).fetchall()
