"""Reads and writes the pages of one site in SQLite's tables, within a transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from ...evidence.observations import Observation
from ...models import MergeResult, Page, PageLimits
from ..base import UNLEARNED_BLOCK
from ..compact_page_list import CompactPageList
from ..merge_batch_into_pages import BatchMerger
from ..next_site_version import VERSION_STEPS, next_version
from ..page_codec import PackedPage, packed_page, unpack_page
from ..page_sample import SiteSize, draw_sample
from ..page_write_plan import NewPages, SiteChanges
from ..permanent_page_slots import PlacementCursor, Slot
from ..sql_row_id_layout_and_path_hash import (
    MAX_BLOCK_ROWS,
    MAX_NUMBER,
    block_of_row,
    consecutive_row_ids,
    path_hashes,
    row_id_range,
    site_of_row,
)
from .schema import PATH_HASH_BITS

MAX_STATEMENT_VALUES: Final = 500
"""Values bound in one statement. Older builds of SQLite allow 999."""

SELECT_ROWS: Final = (
    "SELECT page.path, route.path, page.data FROM page CROSS JOIN route ON route.id = page.route"
    " AND page.id BETWEEN ? AND ? ORDER BY page.id"
)
_SELECT_BLOCK: Final = "SELECT path, route, data FROM page WHERE id BETWEEN ? AND ? ORDER BY id"
_SELECT_ROUTES: Final = "SELECT id, path FROM route WHERE id IN ({})"
_SELECT_ROWS_BY_ID: Final = (
    "SELECT page.path, route.path, page.data, page.id FROM page CROSS JOIN route ON route.id = page.route"
    " AND page.id IN ({}) AND page.id <= ? ORDER BY page.id"
)
_SELECT_FIRST_ROWS: Final = (
    "WITH start (id) AS (VALUES {}) SELECT page.path, route.path, page.data, page.id FROM page"
    " CROSS JOIN route ON route.id = page.route AND page.id IN (SELECT"
    " (SELECT id FROM page WHERE page.id >= start.id AND page.id <= ? ORDER BY id LIMIT 1) FROM start) ORDER BY page.id"
)
_SELECT_BY_HASH: Final = (
    "SELECT path, route, data, id FROM path_hash LEFT JOIN page ON page.id = path_hash.page WHERE hash IN ({})",
    "SELECT path, route, data, id FROM recent_path_hash AS new LEFT JOIN page ON page.id = new.page WHERE hash IN ({})",
)
_SELECT_HASH_RANGE: Final = (
    "SELECT (SELECT hash FROM path_hash ORDER BY hash LIMIT 1),"
    " (SELECT hash FROM path_hash ORDER BY hash DESC LIMIT 1),"
    " (SELECT hash FROM recent_path_hash ORDER BY hash LIMIT 1),"
    " (SELECT hash FROM recent_path_hash ORDER BY hash DESC LIMIT 1)"
)
"""The lowest and the highest hash of both tables. SQLite sorts values of other types before or after all integers."""
_MISSING_PAGE: Final = (None, None, None, None)
_DELETE_HASHES: Final = (
    "DELETE FROM path_hash WHERE hash = ? AND page = ?",
    "DELETE FROM recent_path_hash WHERE hash = ? AND page = ?",
)
_MOVE_RECENT_HASHES: Final = (
    "INSERT INTO path_hash SELECT hash, page FROM recent_path_hash WHERE hash BETWEEN ? AND ?",
    "DELETE FROM recent_path_hash WHERE hash BETWEEN ? AND ?",
)
_FORGET_BATCH_PAGES: Final = 5000
"""Pages deleted at a time, which bounds the memory that it takes: a site may have millions to forget."""
_SELECT_FORGOTTEN: Final = (
    "SELECT id, route, path FROM page WHERE id BETWEEN ? AND ? AND (last_seen < ? OR (last_seen < ? AND NOT listable))"
    " LIMIT ?"
)
_SELECT_BLOCKS: Final = (
    "SELECT number, document, slots, entry_bytes FROM block WHERE site = ? AND number > ? ORDER BY number DESC"
)
_UPSERT_BLOCK: Final = (
    "INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, number) DO UPDATE SET"
    " pages = pages + excluded.pages, version = excluded.version,"
    " slots = max(slots, excluded.slots), entry_bytes = max(entry_bytes, excluded.entry_bytes)"
)
_PATH: Final = itemgetter(0)
_ROUTE: Final = itemgetter(1)
_DATA: Final = itemgetter(2)
_ROW: Final = itemgetter(3)
_StoredPage = tuple[str, int, bytes, int]
"""Path, route id, data and row id of a page."""


class SitePages:
    """The pages of one site, within a transaction. Methods do as those of `base.Store` with the same names."""

    def __init__(self, connection: sqlite3.Connection, store_key: str) -> None:
        self._connection = connection
        self._store_key = store_key
        row = connection.execute("SELECT id, version, slash_variants FROM site WHERE key = ?", (store_key,)).fetchone()
        self._site: int
        """The site's number; 0 until it is stored."""
        self._version: int
        self._site, self._version, slash_variants = map(checked_int, row or (0, 0, 0))
        self._has_slash_variants = slash_variants != 0
        if not 0 <= self._site < MAX_NUMBER:
            raise ValueError(f"the site's number, {self._site}, is out of range")

    def merge(self, observations: Sequence[Observation], limits: PageLimits) -> MergeResult:
        query = "SELECT id, path, pages FROM route WHERE site = ?"
        routes = self._connection.execute(query, (self._site,)).fetchall()
        self._check_types(routes)
        route_paths = {number: path for number, path, _ in routes}
        hashes = self._hash_paths({observation.path for observation in observations})
        stored = self._find(hashes)

        def stored_page(path: str) -> Page | None:
            if path not in stored:
                return None
            _, route, data, _ = stored[path]
            return unpack_page(path, route_paths[route], data)

        merger = BatchMerger({path: pages for _, path, pages in routes if pages}, limits)
        changed = list(map(packed_page, merger.merge(stored_page, observations)))
        if changed:
            if self._next_version():
                hashes = self._hash_paths(hashes.keys())  # they depend on the site's number, which is new
            route_ids = {path: number for number, path, _ in routes}
            self._update_routes(route_ids, changed, merger.count_changes)
            self._write(changed, {path: row for path, (*_, row) in stored.items()}, hashes, route_ids)
        return merger.result()

    def find_pages(self, paths: Collection[str]) -> dict[str, Page]:
        route_paths = dict(self._connection.execute("SELECT id, path FROM route WHERE site = ?", (self._site,)))
        stored = self._find(self._hash_paths(paths))
        return {path: unpack_page(path, route_paths[route], data) for path, route, data, _ in stored.values()}

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        query = (
            "SELECT (SELECT sum(pages) FROM block), (SELECT count(*) FROM path_hash) + count(*) FROM recent_path_hash"
        )
        pages, hashes = self._connection.execute(query).fetchone()
        if (pages or 0) != hashes:
            raise LookupError(f"{pages} pages have {hashes} hashes")
        values = (*row_id_range(self._site, 1, self._cursor().block), unseen_since, unlisted_since, _FORGET_BATCH_PAGES)
        forgotten = 0
        while rows := self._connection.execute(_SELECT_FORGOTTEN, values).fetchall():
            self._delete_pages(rows)
            forgotten += len(rows)
        return forgotten

    def sample(self, limit: int) -> CompactPageList:
        query = "SELECT number, slots, pages FROM block WHERE site = ? AND number > ? ORDER BY number"
        rows = self._connection.execute(query, (self._site, UNLEARNED_BLOCK))
        blocks = [(checked_int(number), checked_int(slots), checked_int(pages)) for number, slots, pages in rows]
        query = "SELECT pages, slots FROM block WHERE site = ? AND number = ?"
        unlearned, slots = self._connection.execute(query, (self._site, UNLEARNED_BLOCK)).fetchone() or (0, 0)
        learned = sum(pages for _, _, pages in blocks)
        size = SiteSize(learned, [block[:2] for block in blocks], unlearned, slots)
        return draw_sample(self._site, size, limit, self._read_range, self._read_from_each)

    def _read_range(self, first: int, last: int) -> Iterable[tuple[str, str, bytes]]:
        return self._connection.execute(SELECT_ROWS, (first, last))

    def _read_from_each(self, starts: Sequence[int], last: int) -> Iterator[tuple[str, str, bytes]]:
        latest = -1
        for first in range(0, len(starts), MAX_STATEMENT_VALUES):
            batch = starts[first : first + MAX_STATEMENT_VALUES]
            query = _SELECT_ROWS_BY_ID.format(", ".join("?" * len(batch)))
            rows = self._connection.execute(query, (*batch, last)).fetchall()  # most exist: in two thirds of the time
            if missing := sorted({*batch}.difference(map(_ROW, rows))):
                query = _SELECT_FIRST_ROWS.format(", ".join(["(?)"] * len(missing)))
                rows += self._connection.execute(query, (*missing, last))
                rows = sorted({row: (path, route, data, row) for path, route, data, row in rows}.values(), key=_ROW)
            for path, route, data, row in rows:
                if row > latest:  # the last row of a batch may be the first one of the next
                    yield path, route, data
                    latest = row

    # Reading

    def _check_types(self, routes: Sequence[tuple[Any, Any, Any]]) -> None:
        """Raise TypeError if routes or hashes are stored as another type, before a merge relies on them."""
        if not all(
            type(path) is str and 0 <= checked_int(pages) < MAX_BLOCK_ROWS * MAX_NUMBER for _, path, pages in routes
        ):
            raise TypeError("a route's path is not text, or its number of pages is out of range")
        hashes = self._connection.execute(_SELECT_HASH_RANGE).fetchone()
        if any(value is not None and type(value) is not int for value in hashes):
            raise TypeError("a path's hash is not an integer")

    def _hash_paths(self, paths: Collection[str]) -> dict[str, int]:
        return path_hashes(self._site, paths, PATH_HASH_BITS)

    def _find(self, hashes: Mapping[str, int]) -> dict[str, _StoredPage]:
        """The stored pages of these paths. Other pages may have the same hashes, as may pages of other sites."""
        rows = [row for query in _SELECT_BY_HASH for row in select_in_batches(self._connection, query, hashes.values())]
        if _MISSING_PAGE in rows:
            raise LookupError("the page of a path's hash is missing")
        return {row[0]: row for row in rows if row[0] in hashes and site_of_row(row[3]) == self._site}

    def _cursor(self) -> PlacementCursor:
        rows = self._connection.execute(_SELECT_BLOCKS, (self._site, UNLEARNED_BLOCK))
        cursor = PlacementCursor.after_blocks(tuple(map(checked_int, row)) for row in rows)  # type: ignore[misc]
        if not 0 <= cursor.block < MAX_NUMBER:
            raise ValueError(f"the block's number, {cursor.block}, is out of range")
        return cursor

    def _unlearned_slots(self) -> int:
        query = "SELECT slots FROM block WHERE site = ? AND number = ?"
        row = self._connection.execute(query, (self._site, UNLEARNED_BLOCK)).fetchone()
        return checked_int(row[0]) if row else 0

    # Writing

    def _next_version(self) -> bool:
        """Give the site its next version, and store the site if it is new. Returns whether it is."""
        self._version = next_version(self._version)
        self._move_recent_hashes()
        if self._site:
            self._connection.execute("UPDATE site SET version = ? WHERE id = ?", (self._version, self._site))
            return False
        query = "INSERT INTO site (key, version, slash_variants) VALUES (?, ?, 0)"
        self._site = self._connection.execute(query, (self._store_key, self._version)).lastrowid or 0
        return True

    def _move_recent_hashes(self) -> None:
        """Move a share of the recent hashes to the main table, another share at each version.

        Hashes come in random order, so each would dirty a database page of its own in the main table.
        The table of recent ones collects those of many merges, and neighbours are then written together.
        """
        share = (1 << PATH_HASH_BITS) // VERSION_STEPS
        first = (self._version % VERSION_STEPS - VERSION_STEPS // 2) * share
        for query in _MOVE_RECENT_HASHES:
            self._connection.execute(query, (first, first + share - 1))

    def _update_routes(
        self, route_ids: dict[str, int], changed: Collection[PackedPage], count_changes: Mapping[str, int]
    ) -> None:
        """Store new routes, adding them to `route_ids`, and the changes of the routes' page counts."""
        for path in {page.route for page in changed}.difference(route_ids):
            query = "INSERT INTO route (site, path, pages) VALUES (?, ?, 0)"
            route_ids[path] = self._connection.execute(query, (self._site, path)).lastrowid or 0
        values = [(change, route_ids[path]) for path, change in count_changes.items()]
        self._connection.executemany("UPDATE route SET pages = pages + ? WHERE id = ?", values)

    def _write(
        self,
        changed: Sequence[PackedPage],
        rows: Mapping[str, int],
        hashes: Mapping[str, int],
        route_ids: Mapping[str, int],
    ) -> None:
        """Write changed pages; `rows` are those of the pages that were stored before."""
        changes = self._begin_changes(self._cursor(), self._unlearned_slots())
        placed = changes.place(changed, rows.get)
        if changes.has_slash_variants and not self._has_slash_variants:
            self._has_slash_variants = True
            self._connection.execute("UPDATE site SET slash_variants = 1 WHERE id = ?", (self._site,))
        self._delete(placed.removed)
        self._update(placed.updated, route_ids)
        self._insert(placed.new, hashes, route_ids)
        self._record_blocks(changes)

    def _delete_pages(self, pages: Sequence[tuple[int, int, str]]) -> None:
        """Delete pages, given as row id, route id and path."""
        self._next_version()
        rows = {path: row for row, _, path in pages}
        self._delete(rows)
        query = "UPDATE route SET pages = pages - ? WHERE id = ?"
        self._connection.executemany(query, [(n, route) for route, n in Counter(page[1] for page in pages).items()])
        changes = self._begin_changes(PlacementCursor(), 0)
        changes.remove(rows.items())
        self._record_blocks(changes)

    def _begin_changes(self, cursor: PlacementCursor, unlearned_slots: int) -> SiteChanges[int]:
        return SiteChanges(
            self._store_key,
            cursor,
            unlearned_slots,
            has_slash_variants=self._has_slash_variants,
            block_of=block_of_row,
        )

    def _delete(self, rows: Mapping[str, int]) -> None:
        """Delete the rows of these paths and their hashes."""
        hashes = self._hash_paths(rows.keys())
        execute = self._connection.executemany
        for query in _DELETE_HASHES:
            execute(query, [(hashes[path], row) for path, row in rows.items()])
        execute("DELETE FROM page WHERE id = ?", [(row,) for row in rows.values()])

    def _update(self, updated: Iterable[tuple[int, PackedPage]], route_ids: Mapping[str, int]) -> None:
        """Rewrite pages, sorted by row: neighbours are read and written together."""
        # sqlite3 binds int, str and bytearray directly; bool and bytes take a slower way.
        values = (
            (route_ids[route], last_seen, int(is_listable), bytearray(data), row)
            for row, (_, route, _, last_seen, is_listable, data) in sorted(updated)
        )
        query = "UPDATE page SET route = ?, last_seen = ?, listable = ?, data = ? WHERE id = ?"
        self._connection.executemany(query, values)

    def _insert(self, new: Iterable[NewPages], hashes: Mapping[str, int], route_ids: Mapping[str, int]) -> None:
        """Store pages in new rows, and their hashes, sorted: neighbours are written together."""
        pages = [
            row_and_page
            for block, position, pages in new
            for row_and_page in zip(
                consecutive_row_ids(self._site, Slot(block, position), len(pages)), pages, strict=True
            )
        ]
        values = (
            (row, path, route_ids[route], last_seen, int(is_listable), bytearray(data))
            for row, (path, route, _, last_seen, is_listable, data) in pages
        )
        self._connection.executemany("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)", values)
        hash_rows = sorted([(hashes[page.path], row) for row, page in pages])
        self._connection.executemany("INSERT INTO recent_path_hash VALUES (?, ?)", hash_rows)

    def _record_blocks(self, changes: SiteChanges[int]) -> None:
        """Write the blocks that changed, including those of slash variants."""
        if variants := changes.slash_variants():
            changes.touch(row for *_, row in self._find(self._hash_paths(variants)).values())
        values = [(self._site, *block, self._version) for block in changes.blocks()]
        self._connection.executemany(_UPSERT_BLOCK, values)


def checked_int(value: Any) -> int:
    """The value if it is an integer; TypeError if SQLite stores another type there."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is stored where an integer belongs")
    return value


def site_number(connection: sqlite3.Connection, store_key: str) -> int:
    """The number of a site; 0 if the site is not stored."""
    row = connection.execute("SELECT id FROM site WHERE key = ?", (store_key,)).fetchone()
    return int(row[0]) if row else 0


def select_in_batches(
    connection: sqlite3.Connection, query: str, values: Iterable[Any], *other_values: object
) -> list[Any]:
    """The rows of a query whose `{}` stands for any number of values. They are sorted: neighbours are read together."""
    values = sorted(values)
    rows = []
    for start in range(0, len(values), MAX_STATEMENT_VALUES):
        batch = values[start : start + MAX_STATEMENT_VALUES]
        rows += connection.execute(query.format(", ".join("?" * len(batch))), (*other_values, *batch)).fetchall()
    return rows


def read_block(connection: sqlite3.Connection, id_range: tuple[int, int]) -> list[Page]:
    """The pages of a range of rows. Routes are read apart: to join them with each row takes longer."""
    rows = connection.execute(_SELECT_BLOCK, id_range).fetchall()
    routes = [*map(_ROUTE, rows)]
    paths = dict(select_in_batches(connection, _SELECT_ROUTES, {*routes}))
    return [*map(unpack_page, map(_PATH, rows), map(paths.__getitem__, routes), map(_DATA, rows))]


def pages_of(rows: Iterable[Any]) -> list[Page]:
    """The pages of rows that `SELECT_ROWS` returned."""
    return [unpack_page(path, route, data) for path, route, data in rows]
