"""The evaluated URLs of one site at one moment, in a temporary SQLite database: sorted, filtered and counted.

SQLite keeps the database in memory up to its page cache, beyond that in a file that has
no name and that ends with the process.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, Literal, NamedTuple

from ..dates import SECONDS_PER_DAY
from ..listing.changes_since import ChangeTimes, PageChange, change_since
from ..listing.listed_and_unlisted_urls import UrlReportLine

CACHE_KIBIBYTES: Final = 16 * 1024
"""Memory that SQLite uses for the database of one site."""

BATCH_ROWS: Final = 500
"""Rows written at one time."""

SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "path": ("path", False),
    "date": ("changed", True),
    "seen": ("last_seen", True),
}
"""The orders of pages: each by a column, and whether that is descending. Equal ones are ordered by path."""

_SCHEMA: Final = """
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, url TEXT NOT NULL, listed INTEGER NOT NULL, group_id INTEGER NOT NULL,
    reason TEXT NOT NULL, lastmod TEXT, lastmod_from TEXT, lastmod_note TEXT, changefreq TEXT, priority REAL,
    route TEXT NOT NULL, status INTEGER, first_good INTEGER, changed INTEGER, last_good INTEGER, dropped INTEGER,
    last_seen INTEGER NOT NULL, event INTEGER
)
"""

_INDEXES: Final = (
    "CREATE INDEX by_path ON pages (path)",
    "CREATE INDEX by_group ON pages (group_id, path)",
    "CREATE INDEX by_listed ON pages (listed, path)",
    "CREATE INDEX by_date ON pages (changed DESC, path)",
    "CREATE INDEX by_seen ON pages (last_seen DESC, path)",
    "CREATE INDEX by_event ON pages (event DESC, path) WHERE event IS NOT NULL",
)
_INSERT: Final = "INSERT INTO pages VALUES (NULL" + ", ?" * 18 + ")"
_SELECT: Final = (
    "SELECT path, url, listed, reason, lastmod, lastmod_from, lastmod_note, changefreq, priority, route, status,"
    " first_good, changed, last_good, dropped, last_seen, group_id FROM pages"
)


class PageRow(NamedTuple):
    """One URL of a site, evaluated. Times are in POSIX seconds."""

    path: str
    """Percent-encoded, from the root path on."""
    url: str
    listed: bool
    reason: str
    lastmod: str | None
    lastmod_from: str | None
    lastmod_note: str | None
    """The source of its lastmod, or why it has none; None unless it is listed."""
    changefreq: str | None
    priority: float | None
    route: str
    status: int | None
    """Of its deciding answer; None if it was never seen."""
    times: ChangeTimes
    last_seen: int
    """0 if it was never seen."""
    group: str
    """Of reasons, or for a listed page the source of its lastmod."""

    def change(self, since: int) -> PageChange | None:
        """What happened to it since a POSIX time."""
        line = UrlReportLine(self.url, self.listed, self.reason, self.lastmod, self.lastmod_from, self.route)
        return change_since(line, self.times, since)


class Group(NamedTuple):
    """Pages with one reason, or listed pages whose lastmod has one source."""

    number: int
    text: str
    listed: bool
    pages: int


class PageQuery(NamedTuple):
    """Which pages to return, in which order, and after which one."""

    sort: str = "path"
    """A key of `SORTS`."""
    show: Literal["all", "listed", "left-out"] = "all"
    group: int | None = None
    """Only those of the group of this number."""
    text: str = ""
    """Only those whose path contains this, in any case."""
    after: tuple[int, str] | None = None
    """Only those after this sort value and path. The sort value is 0 if the order is by path."""


class SiteIndex:
    """The evaluated URLs of a site. One thread fills it; any thread may then query it."""

    def __init__(self, weeks_from: int) -> None:
        """`weeks_from`: the day since which changes are counted by week, in days since 1970."""
        self._weeks_from = weeks_from * SECONDS_PER_DAY
        self._lock = threading.Lock()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        # Once no response reads it. Not by __del__, for the reason in `PathSet`.
        weakref.finalize(self, self._db.close).atexit = False
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIBIBYTES}"):
            self._db.execute(f"PRAGMA {pragma}").close()
        self._db.execute(_SCHEMA)
        self._groups: dict[tuple[bool, str], int] = {}
        self._group_sizes = Counter[int]()
        self._days: dict[str, Counter[int]] = {"new": Counter(), "dropped": Counter(), "listed event": Counter()}
        """Pages by the day of an event."""
        self.pages: int = 0
        self.listed: int = 0
        self.dated: int = 0
        """Listed pages with a lastmod."""
        self.weeks: Counter[tuple[int, str]] = Counter()
        """Changes since `weeks_from`, by the Monday of their week, in days since 1970, and by kind."""

    def fill(self, rows: Iterable[PageRow]) -> None:
        """Write the rows, and make the indexes."""
        remaining = iter(rows)
        while batch := [self._record(row) for row in islice(remaining, BATCH_ROWS)]:
            with self._lock:
                self._db.execute("BEGIN")
                self._db.executemany(_INSERT, batch)
                self._db.execute("COMMIT")
        for statement in _INDEXES:
            with self._lock:
                self._db.execute(statement)

    def _record(self, row: PageRow) -> tuple[Any, ...]:
        number = self._groups.setdefault((row.listed, row.group), len(self._groups) + 1)
        self._group_sizes[number] += 1
        self.pages += 1
        self.listed += row.listed
        self.dated += row.lastmod is not None
        times = row.times
        for kind, at in (
            ("new", times.first_good),
            ("dropped", times.dropped),
            ("listed event", times.latest if row.listed else None),
        ):
            if at is not None:
                self._days[kind][at // SECONDS_PER_DAY] += 1
        if times.latest is not None and times.latest >= self._weeks_from and (change := row.change(self._weeks_from)):
            at = {"new": times.first_good, "changed": times.changed, "dropped": times.dropped}[change.kind] or 0
            self.weeks[monday(at // SECONDS_PER_DAY), change.kind] += 1
        return (
            row.path, row.url, row.listed, number, row.reason, row.lastmod, row.lastmod_from, row.lastmod_note,
            row.changefreq, row.priority, row.route, row.status, times.first_good, times.changed or 0,
            times.last_good, times.dropped, row.last_seen, times.latest,
        )  # fmt: skip

    # Figures

    @property
    def left_out(self) -> int:
        """Pages that are not listed."""
        return self.pages - self.listed

    def groups(self, *, listed: bool) -> list[Group]:
        """The groups of listed pages, or of others, the largest first."""
        groups = (
            Group(number, text, is_listed, self._group_sizes[number])
            for (is_listed, text), number in self._groups.items()
            if is_listed is listed
        )
        return sorted(groups, key=lambda group: (-group.pages, group.text))

    def group(self, number: int) -> Group | None:
        """The group of a number."""
        return next(
            (group for flag in (True, False) for group in self.groups(listed=flag) if group.number == number), None
        )

    def change_counts(self, since_day: int) -> dict[str, int]:
        """How many pages are new, changed or dropped since a day, in days since 1970."""
        new, dropped, events = (
            sum(count for day, count in self._days[kind].items() if day >= since_day)
            for kind in ("new", "dropped", "listed event")
        )
        return {"new": new, "changed": events - new, "dropped": dropped}

    # Pages

    def find(self, path: str) -> PageRow | None:
        """The page of a percent-encoded path."""
        return next(iter(self._rows(["path = ?"], "path", [path, 1])), None)

    def query(self, query: PageQuery, limit: int) -> list[PageRow]:
        """At most `limit` pages."""
        column, descending = SORTS[query.sort]
        conditions, values = list[str](), list[Any]()
        if query.group is not None:
            conditions.append("group_id = ?")
            values.append(query.group)
        elif query.show != "all":
            conditions.append("listed = ?")
            values.append(query.show == "listed")
        if query.text:
            conditions.append("instr(lower(path), lower(?))")
            values.append(query.text)
        order = "path" if column == "path" else f"{column} {'DESC' if descending else 'ASC'}, path"
        rows = (
            self._rows([*conditions, *more], order, [*values, *parameters, limit])
            for more, parameters in _after(column, query.after)
        )
        return list(islice(chain.from_iterable(rows), limit))

    def changes(self, since: int, after: tuple[int, str] | None, limit: int) -> list[PageRow]:
        """At most `limit` pages with a change since a POSIX time, the latest change first."""
        rows = (
            self._rows(["event >= ?", *more], "event DESC, path", [since, *parameters, limit])
            for more, parameters in _after("event", after)
        )
        return list(islice(chain.from_iterable(rows), limit))

    def _rows(self, conditions: list[str], order: str, parameters: list[Any]) -> Iterator[PageRow]:
        """The pages that meet all conditions. The last parameter is their maximum number."""
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        with self._lock:
            found = self._db.execute(f"{_SELECT}{where} ORDER BY {order} LIMIT ?", parameters).fetchall()
        texts = {number: text for (_, text), number in self._groups.items()}
        return (_row(record, texts) for record in found)


def monday(day: int) -> int:
    """The Monday of the week of a day, both in days since 1970."""
    return day - (day + 3) % 7  # 1970-01-01 was a Thursday


def sort_value(row: PageRow, sort: str) -> int:
    """The value by which a page is sorted before its path."""
    return {"path": 0, "date": row.times.changed or 0, "seen": row.last_seen}[sort]


def _after(column: str, after: tuple[int, str] | None) -> list[tuple[list[str], list[Any]]]:
    """The conditions of the queries for the rows after a given one. The queries run in turn, each along an index."""
    if after is None:
        return [([], [])]
    value, path = after
    if column == "path":
        return [(["path > ?"], [path])]
    return [([f"{column} = ?", "path > ?"], [value, path]), ([f"{column} < ?"], [value])]


def _row(record: tuple[Any, ...], groups: Mapping[int, str]) -> PageRow:
    path, url, listed, *rest, first_good, changed, last_good, dropped, last_seen, group = record
    times = ChangeTimes(first_good, changed or None, last_good, dropped)
    return PageRow._make((path, url, bool(listed), *rest, times, last_seen, groups[group]))
