"""The counted visits of crawlers in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from ...crawlers import counted_visits as limits
from ...crawlers.counted_visits import VERIFIED, CrawlerVisit, add_up, visit_of_row
from ...models import StoreKey

BATCH_ROWS: Final = 10_000
"""Rows read at a time."""

_UPSERT: Final = (
    "INSERT INTO crawler_visit VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, path, crawler, identity, status)"
    " DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last), count = count + excluded.count"
)
_PRUNE: Final = (
    "DELETE FROM crawler_visit WHERE site = ? AND (path, crawler, identity, status) IN (SELECT path, crawler, identity,"
    " status FROM crawler_visit WHERE site = ? ORDER BY identity = ?, last LIMIT ?)"
)
_SELECT: Final = (
    "SELECT path, crawler, identity, status, first, last, count FROM crawler_visit WHERE site = ?"
    " AND (path, crawler, identity, status) > (?, ?, ?, ?) ORDER BY path, crawler, identity, status LIMIT ?"
)

_COLUMN_TYPES: Final = [str, str, int, int, int, int, int]


def add_crawler_visits(connection: sqlite3.Connection, site: StoreKey, visits: Iterable[CrawlerVisit]) -> None:
    """Add visits within a transaction; if there are too many rows, delete some."""
    connection.executemany(_UPSERT, ((site, *key, *row) for key, row in add_up(visits).items()))
    rows = connection.execute("SELECT count(*) FROM crawler_visit WHERE site = ?", (site,)).fetchone()[0]
    if rows > limits.MAX_STORED_ROWS:
        connection.execute(_PRUNE, (site, site, VERIFIED, rows - limits.ROWS_AFTER_PRUNING))


def read_crawler_visits(
    read: Callable[[Callable[[sqlite3.Connection], list[Any]]], list[Any]], site: StoreKey
) -> Iterator[CrawlerVisit]:
    """The visits of a site, read in batches by `read`."""
    after: tuple[Any, ...] = ("", "", -1, -1)
    while True:
        values = (site, *after, BATCH_ROWS)
        rows = read(partial(_select, values=values))
        for row in rows:
            yield visit_of_row(row[:4], *row[4:])
        if len(rows) < BATCH_ROWS:
            return
        after = rows[-1][:4]


def _select(connection: sqlite3.Connection, values: tuple[Any, ...]) -> list[Any]:
    rows = connection.execute(_SELECT, values).fetchall()
    if any(list(map(type, row)) != _COLUMN_TYPES for row in rows):
        raise TypeError("a row of the table crawler_visit is damaged")
    return rows
