"""The pages of one fold in `postgresql://`: read and written some hundreds at a time, while the next are being folded.

What is asked of the server is sent without waiting for what was asked before, so
that it works while Python does (libpq's pipeline mode).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from ...models import Page
from ...urls import has_slash_like
from ..base import UNLEARNED_BLOCK
from ..page_codec import PackedPage, unpack_page
from ..placement import PlacementCursor, entry_sizes
from ..row_ids import block_of_row, last_row_ids, path_hashes, site_of_row

BATCH_PAGES: Final = 250
"""Pages of one statement."""
MIN_BATCH_PAGES: Final = 100
"""The same at the end of a fold, where they are fewer and fewer: for the last one the server is waited for."""

SELECT_PAGES: Final = (
    "SELECT page.path, route.path, page.facts, page.id FROM sitemap.page JOIN sitemap.route ON route.id = page.route"
)
SELECT_BY_HASH: Final = f"{SELECT_PAGES} WHERE page.mark = ANY(%t::bigint[])"
_SELECT_BY_PATH: Final = "SELECT path, route, facts, id FROM sitemap.page WHERE mark = ANY(%t::bigint[])"

_DELETE_PAGES: Final = "DELETE FROM sitemap.page WHERE id = ANY(%t::bigint[])"
_UPDATE_PAGES: Final = (
    "UPDATE sitemap.page SET route = new.route, last_seen = new.last_seen, promising = new.promising, facts = new.facts"
    " FROM unnest(%t::bigint[], %t::integer[], %t::bigint[], %t::boolean[], %b::bytea[])"
    " AS new (id, route, last_seen, promising, facts) WHERE page.id = new.id"
)
_INSERT_PAGES: Final = (
    "INSERT INTO sitemap.page (id, mark, last_seen, route, promising, path, facts) SELECT * FROM unnest(%t::bigint[],"
    " %t::bigint[], %t::bigint[], %t::integer[], %t::boolean[], %b::bytea[], %b::bytea[])"
)
_INSERT_ROUTES: Final = (
    "INSERT INTO sitemap.route (site, pages, path) SELECT %s, 0, path FROM unnest(%b::bytea[]) AS path"
    " RETURNING path, id"
)


class PendingResult(Protocol):
    """What is to come of a query that was sent."""

    def fetchall(self) -> list[Any]:
        """Its rows, once they are there."""


class SendQuery(Protocol):
    """Sends a query and its values."""

    def __call__(self, query: str, values: Sequence[Any], *, soon: bool = False) -> PendingResult:
        """What is to come of it: `soon`, or when it is asked for."""


FoundPage = tuple[bytes, int, bytes, int]
"""Of a page that is there: its path, the number of its route, its facts, and its row."""


class PageReader:
    """Pages that are asked for some hundreds at a time, and taken one by one in their order.

    Who waits for one answer waits for all that was sent before it (psycopg's pipelines).
    So some are asked for while those before them are being folded, and fetched with the
    last of these, before what is to be written is sent.
    """

    def __init__(self, send: SendQuery, site: int, paths: Collection[str], routes: Mapping[int, str]) -> None:
        """`routes`: the paths of all by their numbers, there by the time that pages are taken."""
        self._send = send
        self._site = site
        self._routes = routes
        first = list(islice(paths, BATCH_PAGES))
        self.hashes = path_hashes(site, first)
        """Of all paths, in their order."""
        self._requested = self._request(list(self.hashes.values()))
        self.hashes |= path_hashes(site, list(islice(paths, BATCH_PAGES, None)))  # while the server looks for the first
        self._left = islice(_batches(self.hashes.values()), 1, None)
        self._fetched = self._taken = 0
        self._found: dict[str, FoundPage] = {}
        self._rows: dict[str, int] = {}

    def _request(self, marks: list[int] | None) -> PendingResult | None:
        """Ask for some more, where there are any."""
        return self._send(_SELECT_BY_PATH, (array_literal(marks),), soon=True) if marks else None

    def page(self, path: str) -> Page | None:
        """The next page as it is kept, where it is there; this is its path."""
        self._taken += 1
        if self._taken >= self._fetched and self._requested is not None:
            rows = self._requested.fetchall()  # another site's page may have the same mark
            self._requested = self._request(next(self._left, None))
            self._found.update((row[0].decode(), row) for row in rows if site_of_row(row[3]) == self._site)
            self._fetched += BATCH_PAGES
        found = self._found.pop(path, None)
        if found is None:
            return None
        _, route, facts, self._rows[path] = found
        return unpack_page(path, self._routes[route], facts)

    def row(self, path: str) -> int | None:
        """The row of a page that was taken."""
        return self._rows.get(path)


class PageWriter:
    """Writes pages down, each in its place, and takes note of what that changes of their site."""

    def __init__(
        self,
        send: SendQuery,
        *,
        site: int,
        key: str,
        routes: dict[str, int],
        marks: Mapping[str, int],
        filling: PlacementCursor,
        named: int,
    ) -> None:
        self._send = send
        self._site = site
        self._key = key
        self._hashes = marks
        self._cursor = filling
        self.routes = routes
        """The numbers of all routes."""
        self.named = named
        """How many places were given to pages that are not learned."""
        self.filled_blocks: dict[int, PlacementCursor] = {}
        self.changed_blocks = Counter[int]()
        """By how many pages each block has grown; those are here too of which one has only changed."""
        self.paths: set[str] = set()
        self.has_slash_variants = False
        """Whether a learned page is spelled otherwise than its route, with a slash at the end or without."""

    def write(self, pages: Iterable[PackedPage], row_of_page: Callable[[str], int | None]) -> None:
        """Write pages down, some at a time, as they come."""
        pages = iter(pages)
        most = len(self._hashes)  # that come: few may be new or changed
        while some := list(islice(pages, _batch_size(most))):
            most -= len(some)
            paths, routes = [page.path for page in some], {page.route for page in some}
            self._number_routes(routes)
            self.paths.update(paths)
            if not self.has_slash_variants and "/" in {
                text[-1:] for text in (*paths, *routes)
            }:  # else no two are spelled otherwise
                self.has_slash_variants = any(
                    page.learned and not has_slash_like(page.path, page.route) for page in some
                )
            staying: list[tuple[int, PackedPage]] = []
            left: list[int] = []
            coming: list[PackedPage] = []
            for page in some:
                row = row_of_page(page.path)
                if row is not None and page.learned is (block_of_row(row) != UNLEARNED_BLOCK):
                    staying.append((row, page))
                    continue
                coming.append(page)
                if row is not None:
                    left.append(row)
            self._delete(left)
            self._update(staying)
            self._insert([page for page in coming if page.learned], self._learned_rows)
            self._insert([page for page in coming if not page.learned], self._unlearned_rows)

    def _number_routes(self, paths: Collection[str]) -> None:
        """Give routes that are new their numbers."""
        new = sorted(path.encode() for path in paths if path not in self.routes)
        if new:
            rows = self._send(_INSERT_ROUTES, (self._site, new)).fetchall()
            self.routes.update((path.decode(), number) for path, number in rows)

    def _delete(self, rows: list[int]) -> None:
        if rows:
            self.changed_blocks.subtract(map(block_of_row, rows))
            self._send(_DELETE_PAGES, (array_literal(rows),))

    def _update(self, staying: list[tuple[int, PackedPage]]) -> None:
        if staying:
            staying.sort()  # as they lie
            for row, _ in staying:
                self.changed_blocks[block_of_row(row)] += 0
            rows, pages = row_columns(staying)
            _, routes, _, last_seen, fit, facts = row_columns(pages)
            numbers = rows, [self.routes[route] for route in routes], last_seen, fit
            self._send(_UPDATE_PAGES, [*map(array_literal, numbers), facts])

    def _insert(self, coming: list[PackedPage], places: Callable[[list[PackedPage]], list[int]]) -> None:
        if coming:
            paths, routes, _, last_seen, fit, facts = row_columns(coming)
            marks, of_routes = [self._hashes[path] for path in paths], [self.routes[route] for route in routes]
            numbers = places(coming), marks, last_seen, of_routes, fit
            self._send(_INSERT_PAGES, [*map(array_literal, numbers), [path.encode() for path in paths], facts])

    def _learned_rows(self, coming: list[PackedPage]) -> list[int]:
        """The rows of learned pages that come."""
        rows: list[int] = []
        for pages, filling in self._cursor.advance_many(entry_sizes(self._key, [page.path for page in coming])):
            rows += last_row_ids(self._site, filling, pages)
            self.changed_blocks[filling.block] += pages
            self._cursor = self.filled_blocks[filling.block] = filling
        return rows

    def _unlearned_rows(self, coming: list[PackedPage]) -> list[int]:
        self.named += len(coming)
        self.changed_blocks[UNLEARNED_BLOCK] += len(coming)
        return list(last_row_ids(self._site, PlacementCursor(UNLEARNED_BLOCK, pages=self.named), len(coming)))


def row_columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Rows as the arrays that `unnest` makes rows of again."""
    return [list(column) for column in zip(*rows, strict=True)]


def array_literal(numbers: list[Any]) -> str:
    """Whole numbers, or truth values, as PostgreSQL writes an array: made in a fifth of the time of a binary one."""
    return f"{{{str(numbers)[1:-1]}}}"


def _batches(values: Iterable[int]) -> Iterable[list[int]]:
    """So many at once."""
    values = list(values)
    return [values[start : start + BATCH_PAGES] for start in range(0, len(values), BATCH_PAGES)]


def _batch_size(most: int) -> int:
    """How many pages to write at once, where so many may come."""
    return min(BATCH_PAGES, most // 2 if most >= 2 * MIN_BATCH_PAGES else most)
