"""The counted visits of crawlers in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from ...crawlers import counted_visits as limits
from ...crawlers.counted_visits import VERIFIED, CrawlerVisit, add_up, visit_of_row
from ...models import StoreKey
from .pipelined_page_batches import array_literal, row_columns
from .pool import Session

BATCH_ROWS: Final = 10_000
"""Rows read at a time."""

_UPSERT: Final = (
    "INSERT INTO sitemap.crawler_visit (site, path, crawler, identity, status, first, last, count)"
    " SELECT %b::bytea, new.* FROM unnest(%b::bytea[], %b::bytea[], %t::integer[], %t::integer[], %t::bigint[],"
    " %t::bigint[], %t::bigint[]) AS new ON CONFLICT (site, path, crawler, identity, status) DO UPDATE"
    " SET first = least(crawler_visit.first, excluded.first), last = greatest(crawler_visit.last, excluded.last),"
    " count = crawler_visit.count + excluded.count"
)
_COUNT: Final = "SELECT count(*) FROM sitemap.crawler_visit WHERE site = %b"
_PRUNE: Final = (
    "DELETE FROM sitemap.crawler_visit WHERE site = %b AND (path, crawler, identity, status) IN (SELECT path, crawler,"
    " identity, status FROM sitemap.crawler_visit WHERE site = %b"
    " ORDER BY identity = %s, last LIMIT %s)"
)
_SELECT: Final = (
    "SELECT path, crawler, identity, status, first, last, count FROM sitemap.crawler_visit WHERE site = %b"
    " AND (path, crawler, identity, status) > (%b, %b, %s, %s) ORDER BY path, crawler, identity, status LIMIT %s"
)


def add_crawler_visits(session: Session, site: StoreKey, visits: Iterable[CrawlerVisit]) -> None:
    """Add visits within a transaction; if there are too many rows, delete some."""
    rows = [
        (path.encode(), crawler.encode(), identity, status, *row)
        for (path, crawler, identity, status), row in add_up(visits).items()
    ]
    if not rows:
        return
    paths, crawlers, *numbers = row_columns(rows)
    session(_UPSERT, (site.encode(), paths, crawlers, *map(array_literal, numbers)))
    ((stored,),) = session(_COUNT, (site.encode(),))
    if stored > limits.MAX_STORED_ROWS:
        session(_PRUNE, (site.encode(), site.encode(), VERIFIED, stored - limits.ROWS_AFTER_PRUNING))


def read_crawler_visits(
    read: Callable[[Callable[[Session], list[Any]]], list[Any]], site: StoreKey
) -> Iterator[CrawlerVisit]:
    """The visits of a site, read in batches by `read`."""
    after: tuple[Any, ...] = (b"", b"", -1, -1)
    while True:
        values = (site.encode(), *after, BATCH_ROWS)
        rows = read(partial(_select, values=values))
        for path, crawler, identity, status, *row in rows:
            key = path.decode(errors="replace"), crawler.decode(errors="replace"), identity, status
            yield visit_of_row(key, *row)
        if len(rows) < BATCH_ROWS:
            return
        after = rows[-1][:4]


def _select(session: Session, values: tuple[Any, ...]) -> list[Any]:
    rows = session(_SELECT, values)
    if any(None in row for row in rows):
        raise LookupError("a row of the table crawler_visit is damaged")
    return rows
