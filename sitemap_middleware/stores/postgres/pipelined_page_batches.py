"""Reads and writes the pages of one merge in PostgreSQL, a few hundred per query.

Queries are sent in libpq's pipeline mode: the server executes one batch while Python merges the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from ...models import Page
from ..page_codec import PackedPage, unpack_page
from ..page_write_plan import NewPages, SiteChanges
from ..permanent_page_slots import Slot
from ..sql_row_id_layout_and_path_hash import consecutive_row_ids, path_hashes, site_of_row
from .pool import PendingResult

BATCH_PAGES: Final = 250
"""Pages per query."""
MIN_BATCH_PAGES: Final = 100
"""Batches shrink to this towards the end of a merge, because nothing runs in parallel to the last one."""

SELECT_PAGES: Final = (
    "SELECT page.path, route.path, page.data, page.id FROM sitemap.page JOIN sitemap.route ON route.id = page.route"
)
SELECT_PAGES_BY_HASH: Final = f"{SELECT_PAGES} WHERE page.path_hash = ANY(%t::bigint[])"
_SELECT_PAGES_WITH_ROUTE_NUMBERS: Final = (
    "SELECT path, route, data, id FROM sitemap.page WHERE path_hash = ANY(%t::bigint[])"
)
_DELETE_PAGES: Final = "DELETE FROM sitemap.page WHERE id = ANY(%t::bigint[])"
_UPDATE_PAGES: Final = (
    "UPDATE sitemap.page SET route = new.route, last_seen = new.last_seen, listable = new.listable, data = new.data"
    " FROM unnest(%t::bigint[], %t::integer[], %t::bigint[], %t::boolean[], %b::bytea[])"
    " AS new (id, route, last_seen, listable, data) WHERE page.id = new.id"
)
_INSERT_PAGES: Final = (
    "INSERT INTO sitemap.page (id, path_hash, last_seen, route, listable, path, data) SELECT * FROM"
    " unnest(%t::bigint[], %t::bigint[], %t::bigint[], %t::integer[], %t::boolean[], %b::bytea[], %b::bytea[])"
)
_INSERT_ROUTES: Final = (
    "INSERT INTO sitemap.route (site, pages, path) SELECT %s, 0, path FROM unnest(%b::bytea[]) AS path"
    " RETURNING path, id"
)


class SendQuery(Protocol):
    """`Session.send`."""

    def __call__(self, query: str, values: Sequence[Any], *, flush: bool = False) -> PendingResult: ...


PageRow = tuple[bytes, int, bytes, int]
"""Path, number of the route, packed page, row id."""


class PageReader:
    """Reads pages in batches, and hands them out one by one in the order of their paths.

    In a pipeline, waiting for one result means waiting for all before it. So each batch is requested while the one
    before it is being merged, and fetched with the last page of that one, before the writes of that one are sent.
    """

    def __init__(self, send: SendQuery, site: int, paths: Collection[str], route_paths: Mapping[int, str]) -> None:
        """Request the first batch. `route_paths` may be filled later, before the first call of `page`."""
        self._send = send
        self._site = site
        self._route_paths = route_paths
        first = list(islice(paths, BATCH_PAGES))
        self.hashes: dict[str, int] = path_hashes(site, first)
        """The hash of each path, in the order of the paths."""
        self._requested = self._request(list(self.hashes.values()))
        # while the server looks for the first batch
        self.hashes |= path_hashes(site, list(islice(paths, BATCH_PAGES, None)))
        self._remaining = islice(_batches(list(self.hashes.values())), 1, None)
        self._fetched_count = self._taken_count = 0
        self._fetched: dict[str, PageRow] = {}
        self._rows: dict[str, int] = {}

    def _request(self, hashes: list[int] | None) -> PendingResult | None:
        if not hashes:
            return None
        return self._send(_SELECT_PAGES_WITH_ROUTE_NUMBERS, (array_literal(hashes),), flush=True)

    def page(self, path: str) -> Page | None:
        """The page of the next path, which has to be given again; None if the page is new."""
        self._taken_count += 1
        if self._taken_count >= self._fetched_count and self._requested is not None:
            rows = self._requested.fetchall()
            self._requested = self._request(next(self._remaining, None))
            # a page of another site may have the same hash
            self._fetched.update((row[0].decode(), row) for row in rows if site_of_row(row[3]) == self._site)
            self._fetched_count += BATCH_PAGES
        row = self._fetched.pop(path, None)
        if row is None:
            return None
        _, route, data, self._rows[path] = row
        return unpack_page(path, self._route_paths[route], data)

    def row(self, path: str) -> int | None:
        """The row id of a page that `page` has returned."""
        return self._rows.get(path)


class PageWriter:
    """Writes new and changed pages in batches, in the slots that `SiteChanges` gives them."""

    def __init__(
        self,
        send: SendQuery,
        site: int,
        *,
        changes: SiteChanges[int],
        hashes: Mapping[str, int],
        route_numbers: dict[str, int],
    ) -> None:
        """New routes are added to `route_numbers`."""
        self._send = send
        self._site = site
        self._changes = changes
        self._hashes = hashes
        self._route_numbers = route_numbers

    def write(self, pages: Iterable[PackedPage], row_of_path: Callable[[str], int | None]) -> None:
        """Write pages in batches, as they come. `row_of_path` returns the row id of a page that is stored already."""
        pages = iter(pages)
        remaining = len(self._hashes)  # at most: pages that did not change do not come
        while batch := list(islice(pages, _batch_size(remaining))):
            remaining -= len(batch)
            self._insert_routes({page.route for page in batch})
            placed = self._changes.place(batch, row_of_path)
            if placed.removed:
                self._send(_DELETE_PAGES, (array_literal(list(placed.removed.values())),))
            if placed.updated:
                self._update(placed.updated)
            for new_pages in placed.new:
                self._insert(new_pages)

    def _insert_routes(self, routes: Collection[str]) -> None:
        new = sorted(route.encode() for route in routes if route not in self._route_numbers)
        if new:
            rows = self._send(_INSERT_ROUTES, (self._site, new)).fetchall()
            self._route_numbers.update((route.decode(), number) for route, number in rows)

    def _update(self, updated: list[tuple[int, PackedPage]]) -> None:
        updated.sort()  # in the order of the disk
        rows, pages = row_columns(updated)
        _, routes, _, last_seen, listable, data = row_columns(pages)
        columns = rows, [self._route_numbers[route] for route in routes], last_seen, listable
        self._send(_UPDATE_PAGES, [*map(array_literal, columns), data])

    def _insert(self, new: NewPages) -> None:
        rows = consecutive_row_ids(self._site, Slot(new.block, new.position), len(new.pages))
        paths, routes, _, last_seen, listable, data = row_columns(new.pages)
        hashes = [self._hashes[path] for path in paths]
        route_numbers = [self._route_numbers[route] for route in routes]
        columns = list(rows), hashes, last_seen, route_numbers, listable
        self._send(_INSERT_PAGES, [*map(array_literal, columns), [path.encode() for path in paths], data])


def row_columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """The columns of rows, as `unnest` takes them."""
    return [list(column) for column in zip(*rows, strict=True)]


def array_literal(values: list[Any]) -> str:
    """Integers or booleans as an array in PostgreSQL's notation: five times faster than psycopg's binary arrays."""
    return f"{{{str(values)[1:-1]}}}"


def _batches(values: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(values), BATCH_PAGES):
        yield list(values[start : start + BATCH_PAGES])


def _batch_size(remaining: int) -> int:
    """How many of the remaining pages to write next."""
    return min(BATCH_PAGES, remaining // 2 if remaining >= 2 * MIN_BATCH_PAGES else remaining)
