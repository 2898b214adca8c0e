"""Shelves: the pages of one site in SQLite's tables, read and written within a transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

from ...models import MergeResult, Observation, Page, PageLimits
from ...urls import has_slash_like, toggle_trailing_slash
from ..base import UNLEARNED_BLOCK
from ..batch_merge import BatchMerger
from ..packed_pages import PackedPages
from ..page_codec import PackedPage, packed_page, unpack_page
from ..placement import MAX_BLOCK_PAGES, PlacementCursor, entry_sizes
from ..row_ids import MAX_NUMBER, block_of_row, last_row_ids, path_hashes, row_id_range, site_of_row
from ..version_numbers import VERSION_STEPS, next_version
from .schema import PATH_HASH_BITS

MAX_STATEMENT_VALUES: Final = 500
"""Values in one statement: older builds of SQLite take 999 at most."""

SELECT_ROWS: Final = (
    "SELECT page.path, route.path, page.facts, page.id FROM page CROSS JOIN route ON route.id = page.route"
    " AND page.id BETWEEN ? AND ? ORDER BY page.id"
)
_SELECT_BY_HASH: Final = (
    "SELECT path, route, facts, id FROM mark LEFT JOIN page ON page.id = mark.page WHERE mark IN ({})",
    "SELECT path, route, facts, id FROM late_mark LEFT JOIN page ON page.id = late_mark.page WHERE mark IN ({})",
)
_SELECT_HASH_RANGE: Final = (
    "SELECT (SELECT mark FROM mark ORDER BY mark LIMIT 1), (SELECT mark FROM mark ORDER BY mark DESC LIMIT 1),"
    " (SELECT mark FROM late_mark ORDER BY mark LIMIT 1), (SELECT mark FROM late_mark ORDER BY mark DESC LIMIT 1)"
)
"""The first and the last marks: what is no number comes before or after all numbers."""
_MISSING_PAGE: Final = (None, None, None, None)
_DELETE_HASHES: Final = (
    "DELETE FROM mark WHERE mark = ? AND page = ?",
    "DELETE FROM late_mark WHERE mark = ? AND page = ?",
)
_MOVE_LATE_HASHES: Final = (
    "INSERT INTO mark SELECT mark, page FROM late_mark WHERE mark BETWEEN ? AND ?",
    "DELETE FROM late_mark WHERE mark BETWEEN ? AND ?",
)
_FORGET_BATCH_PAGES: Final = 5000
"""Pages that are forgotten at one time: a site may have millions of which nobody asks for any."""
_FROM_UNLISTED: Final = "FROM page WHERE id BETWEEN ? AND ? AND (last_seen < ? OR (last_seen < ? AND NOT promising))"
_UPSERT_BLOCK: Final = (
    "INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, number) DO UPDATE SET"
    " pages = pages + excluded.pages, version = excluded.version,"
    " given = max(given, excluded.given), cost = max(cost, excluded.cost)"
)
_FoundPage = tuple[str, int, bytes, int]
"""Of a page that is there: its path, the number of its route, its facts, and its row."""


class SitePages:
    """The pages of one site, within a transaction."""

    def __init__(self, connection: sqlite3.Connection, site: str) -> None:
        self._connection = connection
        self._key = site
        row = connection.execute("SELECT id, version, twins FROM site WHERE key = ?", (site,)).fetchone()
        self._routes_by_id = row is not None
        self._site: int
        self._version: int
        self._has_slash_variants: int
        self._site, self._version, self._has_slash_variants = map(checked_int, row or (0, 0, 0))
        if not 0 <= self._site < MAX_NUMBER:
            raise ValueError(f"{self._site} is the number of no site")

    def merge(self, observations: Sequence[Observation], caps: PageLimits) -> MergeResult:
        """As of `base.Store`; and so the others of these names."""
        query = "SELECT id, path, pages FROM route WHERE site = ?"
        routes = self._connection.execute(query, (self._site,)).fetchall()
        if not all(
            type(path) is str and 0 <= checked_int(pages) < MAX_BLOCK_PAGES * MAX_NUMBER for _, path, pages in routes
        ):
            raise TypeError("a route is kept as something else")
        if any(
            mark is not None and type(mark) is not int
            for mark in self._connection.execute(_SELECT_HASH_RANGE).fetchone()
        ):
            raise TypeError("a mark is kept as something else")
        of_number = {number: path for number, path, _ in routes}
        marks = self._find_by_hash({seen.path for seen in observations})
        found = self._find(marks)

        def known(path: str) -> Page | None:
            if path not in found:
                return None
            _, route, facts, _ = found[path]
            return unpack_page(path, of_number[route], facts)

        census = BatchMerger({path: pages for _, path, pages in routes if pages}, caps)
        changed = list(map(packed_page, census.merge(known, observations)))
        if changed:
            if self._next_version():
                marks = self._find_by_hash(marks.keys())
            self._count_routes({path: number for number, path, _ in routes}, changed, census.count_changes)
            self._write(changed, found, marks)
        return census.result()

    def find_pages(self, paths: Collection[str]) -> dict[str, Page]:
        of_number = dict(self._connection.execute("SELECT id, path FROM route WHERE site = ?", (self._site,)))
        found = self._find(self._find_by_hash(paths))
        return {path: unpack_page(path, of_number[route], facts) for path, route, facts, _ in found.values()}

    def _find_by_hash(self, paths: Collection[str]) -> dict[str, int]:
        return path_hashes(self._site, paths, PATH_HASH_BITS)

    def _find(self, marks: Mapping[str, int]) -> dict[str, _FoundPage]:
        """Those of these pages that are there; not what has their marks and is another page, or another site's."""
        rows = [row for query in _SELECT_BY_HASH for row in select_in_batches(self._connection, query, marks.values())]
        if _MISSING_PAGE in rows:
            raise LookupError("a mark leads to no page")
        return {row[0]: row for row in rows if row[0] in marks and site_of_row(row[3]) == self._site}

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        query = "SELECT (SELECT sum(pages) FROM block), (SELECT count(*) FROM mark) + (SELECT count(*) FROM late_mark)"
        pages, marks = self._connection.execute(query).fetchone()
        if (pages or 0) != marks:
            raise LookupError(f"{pages} pages have {marks} marks")
        last = self._cursor().block
        bounds = (*row_id_range(self._site, 1, last), unseen_since, unlisted_since, _FORGET_BATCH_PAGES)
        forgotten = 0
        while gone := self._connection.execute(f"SELECT id, route, path {_FROM_UNLISTED} LIMIT ?", bounds).fetchall():
            self._delete_pages(gone)
            forgotten += len(gone)
        return forgotten

    def _delete_pages(self, gone: Sequence[tuple[int, int, str]]) -> None:
        self._next_version()
        self._delete({path: row for row, _, path in gone})
        counts = Counter(route for _, route, _ in gone)
        query = "UPDATE route SET pages = pages - ? WHERE id = ?"
        self._connection.executemany(query, [(by, route) for route, by in counts.items()])
        moved = Counter(
            self._blocks_of_slash_variants({path for _, _, path in gone}) if self._has_slash_variants else {}
        )
        moved.subtract(block_of_row(row) for row, _, _ in gone)
        self._record_changes(moved)

    def sample(self, most: int) -> PackedPages:
        query = "SELECT max(number), sum(pages) FROM block WHERE site = ? AND number > ?"
        last, learned = self._connection.execute(query, (self._site, UNLEARNED_BLOCK)).fetchone()
        query = "SELECT given, pages FROM block WHERE site = ? AND number = ?"
        given, named = self._connection.execute(query, (self._site, UNLEARNED_BLOCK)).fetchone() or (0, 0)
        room = max(most - (learned or 0), most // 2)
        sample = PackedPages()
        sample.extend(self._sample_rows(row_id_range(self._site, UNLEARNED_BLOCK)[0], given, named, room))
        first, end = row_id_range(self._site, 1, last or 1)
        sample.extend(self._sample_rows(first, end - first, learned or 0, most - len(sample)))
        return sample

    def _sample_rows(self, first: int, span: int, pages: int, most: int) -> Iterator[tuple[str, str, bytes]]:
        """So many of the pages whose rows lie in a span, evenly."""
        if pages <= most:
            for path, route, facts, _ in self._connection.execute(SELECT_ROWS, (first, first + span)):
                yield path, route, facts
            return
        last = -1
        for number in range(most):
            at = first + span * number // most
            if at <= last:
                continue
            row = self._connection.execute(f"{SELECT_ROWS} LIMIT 1", (at, first + span)).fetchone()
            if row is None:
                return
            path, route, facts, last = row
            yield path, route, facts

    def _next_version(self) -> bool:
        """Take note that pages have changed, and of the site itself where it is new; whether it is."""
        self._version = next_version(self._version)
        self._move_late_hashes()
        if self._routes_by_id:
            self._connection.execute("UPDATE site SET version = ? WHERE id = ?", (self._version, self._site))
        else:
            query = "INSERT INTO site (key, version, twins) VALUES (?, ?, 0)"
            self._site = self._connection.execute(query, (self._key, self._version)).lastrowid or 0
        return not self._routes_by_id

    def _move_late_hashes(self) -> None:
        """Put a share of the marks that came of late beside the others, another share each time.

        Marks come in no order. Those of many folds lie together, and are written together, where those of one are each
        alone on a page of SQLite's.
        """
        share = (1 << PATH_HASH_BITS) // VERSION_STEPS
        first = (self._version % VERSION_STEPS - VERSION_STEPS // 2) * share
        for query in _MOVE_LATE_HASHES:
            self._connection.execute(query, (first, first + share - 1))

    def _count_routes(self, routes: dict[str, int], changed: Collection[PackedPage], moved: Mapping[str, int]) -> None:
        """Take note of routes that are new, and by how much the count of each has changed."""
        self._routes = routes
        for path in {page.route for page in changed}.difference(routes):
            query = "INSERT INTO route (site, path, pages) VALUES (?, ?, 0)"
            routes[path] = self._connection.execute(query, (self._site, path)).lastrowid or 0
        counts = [(by, routes[path]) for path, by in moved.items()]
        self._connection.executemany("UPDATE route SET pages = pages + ? WHERE id = ?", counts)

    def _write(self, changed: Sequence[PackedPage], found: Mapping[str, _FoundPage], marks: Mapping[str, int]) -> None:
        """Write pages down, each in its place."""
        staying: list[tuple[int, PackedPage]] = []
        left: dict[str, int] = {}
        learned: list[PackedPage] = []
        others: list[PackedPage] = []
        for page in changed:
            if page.path in found:
                row = found[page.path][-1]
                if page.learned is (block_of_row(row) != UNLEARNED_BLOCK):
                    staying.append((row, page))
                    continue
                left[page.path] = row
            (learned if page.learned else others).append(page)
        filled = self._advance_cursor([page.path for page in learned], len(others))
        coming = list(zip(chain.from_iterable(rows for _, rows in filled), [*learned, *others], strict=True))
        moved = Counter(dict.fromkeys([block_of_row(row) for row, _ in staying], 0))
        moved.subtract(map(block_of_row, left.values()))
        for filling, rows_of_it in filled:
            moved[filling.block] += len(rows_of_it)
        moved.update(self._slash_variant_blocks(changed))
        self._delete(left)
        self._update(staying)
        self._insert(coming, marks)
        self._record_changes(moved, [filling for filling, _ in filled])

    def _advance_cursor(self, learned: Sequence[str], others: int) -> list[tuple[PlacementCursor, range]]:
        """What pages that come fill: as it then is, and the rows that are theirs in it."""
        filled = []
        if learned:
            for pages, filling in self._cursor().advance_in_block(entry_sizes(self._key, learned)):
                filled.append((filling, last_row_ids(self._site, filling, pages)))
        if others:
            filling = PlacementCursor(UNLEARNED_BLOCK, pages=self._given_slots(UNLEARNED_BLOCK) + others)
            filled.append((filling, last_row_ids(self._site, filling, others)))
        return filled

    def _delete(self, rows: Mapping[str, int]) -> None:
        """Take out the rows of these pages."""
        marks = self._find_by_hash(rows.keys())
        execute = self._connection.executemany
        for query in _DELETE_HASHES:
            execute(query, [(marks[path], row) for path, row in rows.items()])
        execute("DELETE FROM page WHERE id = ?", [(row,) for row in rows.values()])

    def _update(self, staying: Iterable[tuple[int, PackedPage]]) -> None:
        """Write pages in their rows, in the order of these: what lies together is read and written once."""
        # Nothing but int, str and bytearray is bound without a detour.
        values = (
            (self._routes[route], last_seen, int(fit), bytearray(facts), row)
            for row, (_, route, _, last_seen, fit, facts) in sorted(staying)
        )
        query = "UPDATE page SET route = ?, last_seen = ?, promising = ?, facts = ? WHERE id = ?"
        self._connection.executemany(query, values)

    def _insert(self, coming: Sequence[tuple[int, PackedPage]], marks: Mapping[str, int]) -> None:
        """Write pages in rows of their own; and their marks in the order of these, as they lie."""
        execute = self._connection.executemany
        values = (
            (row, self._site, path, self._routes[route], last_seen, int(fit), bytearray(facts))
            for row, (path, route, _, last_seen, fit, facts) in coming
        )
        execute("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        execute("INSERT INTO late_mark VALUES (?, ?)", sorted([(marks[page.path], row) for row, page in coming]))

    def _record_changes(self, moved: Mapping[int, int], filled: Iterable[PlacementCursor] = ()) -> None:
        """Take note of the blocks in which pages came, went or changed."""
        fillings, empty = {filling.block: filling for filling in filled}, PlacementCursor()
        rows = []
        for number, pages in moved.items():
            filling = fillings.get(number, empty)
            rows.append((self._site, number, filling.document, pages, filling.pages, filling.bytes, self._version))
        self._connection.executemany(_UPSERT_BLOCK, rows)

    def _cursor(self) -> PlacementCursor:
        """What new pages go into."""
        query = "SELECT number, document, given, cost FROM block WHERE site = ? AND number > ? ORDER BY number DESC"
        rows = self._connection.execute(query, (self._site, UNLEARNED_BLOCK))
        last = rows.fetchone()
        if last is None:
            return PlacementCursor()
        block, document, *own = map(checked_int, last)
        all_of_it = list(own)
        for _, of, given, bytes_ in rows:
            if of != document:
                break
            all_of_it = [all_of_it[0] + given, all_of_it[1] + bytes_]
        if not 0 < block < MAX_NUMBER:
            raise ValueError(f"{block} is the number of no block")
        return PlacementCursor(block, document, *own, *all_of_it)

    def _given_slots(self, block: int) -> int:
        row = self._connection.execute(
            "SELECT given FROM block WHERE site = ? AND number = ?", (self._site, block)
        ).fetchone()
        return int(row[0]) if row else 0

    def _slash_variant_blocks(self, changed: Sequence[PackedPage]) -> dict[int, int]:
        """The blocks of pages that are spelled as changed ones but for a slash at the end: the one may copy the other.

        As long as every learned page is spelled as its route is, there is none.
        """
        if not self._has_slash_variants and any(
            page.learned and not has_slash_like(page.path, page.route) for page in changed
        ):
            self._has_slash_variants = 1
            self._connection.execute("UPDATE site SET twins = 1 WHERE id = ?", (self._site,))
        return self._blocks_of_slash_variants({page.path for page in changed}) if self._has_slash_variants else {}

    def _blocks_of_slash_variants(self, paths: AbstractSet[str]) -> dict[int, int]:
        """The blocks of pages, others than these, that are spelled as these but for a slash at the end; none moved."""
        found = self._find(self._find_by_hash({toggle_trailing_slash(path) for path in paths} - paths))
        return dict.fromkeys([block_of_row(row) for _, _, _, row in found.values()], 0)


def checked_int(value: Any) -> int:
    """A number as SQLite has it; TypeError if it is anything else."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is kept in the place of a number")
    return value


def site_number(connection: sqlite3.Connection, site: str) -> int:
    """The number of a site; 0 where it was never seen."""
    row = connection.execute("SELECT id FROM site WHERE key = ?", (site,)).fetchone()
    return int(row[0]) if row else 0


def select_in_batches(connection: sqlite3.Connection, query: str, names: Iterable[Any], *more: object) -> list[Any]:
    """The rows that a query finds by names, of which there may be any number; asked for in their order, as they lie."""
    names = sorted(names)
    found = []
    for start in range(0, len(names), MAX_STATEMENT_VALUES):
        some = names[start : start + MAX_STATEMENT_VALUES]
        found += connection.execute(query.format(", ".join("?" * len(some))), (*more, *some)).fetchall()
    return found


def pages_of(rows: Iterable[Any]) -> list[Page]:
    """The pages of rows that `SELECT_ROWS` found."""
    return [unpack_page(path, route, facts) for path, route, facts, _ in rows]
