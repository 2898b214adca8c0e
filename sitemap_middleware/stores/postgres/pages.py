"""Shelves of PostgreSQL: the pages of one site in its tables, read and written within a transaction."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import psycopg

from ...models import MergeResult, Page, PageLimits
from ...observations import Observation
from ...urls import toggle_trailing_slash
from ..base import UNLEARNED_BLOCK
from ..batch_merge import BatchMerger
from ..engine_status import EngineStatus, LeaseStatus
from ..packed_pages import PackedPages
from ..page_codec import packed_page, unpack_page
from ..placement import PlacementCursor
from ..row_ids import MAX_NUMBER, block_of_row, path_hashes, row_id_range, site_of_row
from ..version_numbers import next_version
from .batches import SELECT_BY_HASH, SELECT_PAGES, PageReader, PageWriter, PendingResult, array_literal, row_columns
from .pool import Connection
from .schema import SELECT_VERSION, SITE_NUMBER_LOCK_ID, version_of

_SELECT_SITE: Final = "SELECT id, version, twins FROM sitemap.site WHERE key = %b"
_SELECT_SITE_FOR_UPDATE: Final = f"{_SELECT_SITE} FOR UPDATE"
_SELECT_ROWS: Final = f"{SELECT_PAGES} WHERE page.id BETWEEN %s AND %s ORDER BY page.id"
_SELECT_SITE_PAGES: Final = (
    f"{SELECT_PAGES} WHERE page.id BETWEEN %s AND %s OR page.id BETWEEN %s AND %s ORDER BY page.path"  # named, learned
)
_SELECT_SAMPLE: Final = (
    "SELECT page.path, route.path, page.facts, page.id FROM unnest(%b::bigint[]) AS since CROSS JOIN LATERAL"
    " (SELECT * FROM sitemap.page WHERE id BETWEEN since AND %s ORDER BY id LIMIT 1) AS page"
    " JOIN sitemap.route ON route.id = page.route ORDER BY page.id"
)
_DELETE_UNLISTED: Final = (
    "DELETE FROM sitemap.page WHERE id BETWEEN %s AND %s AND (last_seen < %s OR (last_seen < %s AND NOT promising))"
    " RETURNING id, route, path"
)
_SELECT_SIZE: Final = (
    "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class"
    " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %t AND relkind = 'r'"
)
_INSERT_SITE: Final = (
    "INSERT INTO sitemap.site (id, version, twins, key) SELECT coalesce(max(id), 0) + 1, 0, false, %b::bytea"
    " FROM sitemap.site ON CONFLICT (key) DO NOTHING"
)
_SELECT_ROUTES: Final = "SELECT path, id, pages FROM sitemap.route WHERE site = %s"
_SELECT_CURSOR: Final = (
    "SELECT number, document, given, cost FROM sitemap.block WHERE site = %s AND document ="
    " (SELECT document FROM sitemap.block WHERE site = %s AND number > %s ORDER BY number DESC LIMIT 1)"
    " ORDER BY number DESC"
)
_SELECT_GIVEN: Final = "SELECT given FROM sitemap.block WHERE site = %s AND number = %s"
_UPDATE_COUNTS: Final = (
    "UPDATE sitemap.route SET pages = route.pages + moved.pages FROM unnest(%b::integer[], %b::integer[])"
    " AS moved (pages, id) WHERE route.id = moved.id"
)
_UPSERT_BLOCK: Final = (
    "INSERT INTO sitemap.block (site, number, document, pages, given, cost, version) SELECT * FROM"
    " unnest(%b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::bigint[])"
    " ON CONFLICT (site, number) DO UPDATE SET pages = block.pages + excluded.pages, version = excluded.version,"
    " given = greatest(block.given, excluded.given), cost = greatest(block.cost, excluded.cost)"
)


class Session:
    """A connection within a transaction, which knows where the tables are."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection = connection
        self.was_rolled_back = False
        """Nothing was changed: there is nothing to be written to the server's disk."""
        self.committed = False
        """Its end was sent: whoever began it need not end it."""
        self.schema = schema

    def __call__(self, query: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Any]:
        """The rows of a query, which names tables as if the schema were "sitemap". Without values it may be several."""
        cursor = self._execute(query, values)
        return cursor.fetchall() if cursor.description else []

    def send(self, query: str, values: Sequence[Any], *, soon: bool = False) -> PendingResult:
        """The same, but its rows, where it has any, are asked for later; so many are sent `pipeline`.

        The server keeps back what it has to say until it is asked for something of it, or has much.
        `soon`: it says this at once, and it is there by the time that it is asked for.
        """
        answer = self._execute(query, values)
        if soon and self.connection.pgconn.pipeline_status:
            self.connection.pgconn.send_flush_request()
            self.connection.pgconn.flush()
        return answer

    def commit(self) -> None:
        """Send the end of the transaction behind what was sent before: the server goes on to it by itself."""
        self.send("COMMIT", ())
        self.committed = True

    @contextlib.contextmanager
    def pipeline(self) -> Iterator[None]:
        """Queries are sent one after the other, and none is waited for until it is asked for its rows, or all were."""
        failed: BaseException | None = None
        try:
            with self.connection.pipeline() if psycopg.Pipeline.is_supported() else contextlib.nullcontext():
                try:
                    yield
                except BaseException as error:
                    failed = error
                    self.connection.close()  # else its end would be waited for, too, and what that says be logged
        except psycopg.Error as error:
            failed = failed or error
        if failed is not None:
            raise failed

    def _execute(self, query: str, values: Sequence[Any] | Mapping[str, Any] | None) -> psycopg.Cursor[Any]:
        own = query.replace("sitemap.", f'"{self.schema}".').encode()
        return self.connection.execute(own, values, binary=values is not None)


class SitePages:
    """The pages of one site, within a transaction."""

    def __init__(self, session: Session, site: str, *, alone: bool = False, number: int | None = None) -> None:
        """`fits_one_document`: until the transaction ends, no other one changes them. `number`: the site's, when it was last looked
        for; then `fold` alone may be asked for, which looks whether it still is.
        """  # noqa: E501
        self._session = session
        self._key = site
        self._query = _SELECT_SITE_FOR_UPDATE if alone else _SELECT_SITE
        self.version: int
        self._has_slash_variants: bool
        self.site = number or 0
        """Its number; 0 where it has none yet."""
        if not self.site:
            self._find(session(self._query, (site.encode(),)))

    def _find(self, rows: list[Any]) -> None:
        self.site, self.version, self._has_slash_variants = rows[0] if rows else (0, 0, False)
        if rows and (self.version is None or not 0 < self.site < MAX_NUMBER):
            raise LookupError("a site has no number, or no version")

    def pages(self) -> list[Page]:
        """All pages, in the order of their paths."""
        bounds = (*row_id_range(self.site, UNLEARNED_BLOCK), *row_id_range(self.site, 1, self._last_block()))
        return _pages(self._session(_SELECT_SITE_PAGES, bounds))

    def block(self, number: int) -> list[Page]:
        """The pages of a block."""
        return _pages(self._session(_SELECT_ROWS, row_id_range(self.site, number)))

    def find_pages(self, paths: Collection[str]) -> dict[str, Page]:
        """The pages of these paths."""
        return {page.path: page for page in _pages(self._found(paths))}

    def _found(self, paths: Collection[str]) -> list[Any]:
        """The rows of these pages, as many as there are; not of what has their marks and is another site's."""
        rows = self._session.send(
            SELECT_BY_HASH, (array_literal(list(path_hashes(self.site, paths).values())),)
        ).fetchall()
        return [row for row in rows if row[0].decode() in paths and site_of_row(row[3]) == self.site]

    def merge(self, observations: Sequence[Observation], caps: PageLimits) -> MergeResult | None:
        """As of `base.Store`; None where there is something to be kept of a site that has no number yet, or another."""
        if not self.site:
            census = BatchMerger({}, caps)
            return census.result() if next(census.merge(_no_page, observations), None) is None else None
        paths = dict.fromkeys([seen.path for seen in observations])
        send = self._session.send
        with self._session.pipeline():
            asked_site = send(self._query, (self._key.encode(),))
            asked_routes, asked_given = (
                send(_SELECT_ROUTES, (self.site,)),
                send(_SELECT_GIVEN, (self.site, UNLEARNED_BLOCK)),
            )
            asked_filling = send(_SELECT_CURSOR, (self.site, self.site, UNLEARNED_BLOCK))
            of_number: dict[int, str] = {}
            asked = PageReader(send, self.site, paths, of_number)
            asked_version = send(SELECT_VERSION, ())  # the last of these: from now on, who alters the tables waits
            number = self.site
            self._find(asked_site.fetchall())
            if self.site != number:
                self._session.was_rolled_back = True
                return None
            routes = [(path.decode(), number, pages) for path, number, pages in asked_routes.fetchall()]
            numbers = {path: number for path, number, _ in routes}
            of_number.update((number, path) for path, number, _ in routes)
            filling, named = (
                _cursor_of(asked_filling.fetchall()),
                next((given for (given,) in asked_given.fetchall()), 0),
            )
            census = BatchMerger({path: pages for path, _, pages in routes if pages}, caps)
            writing = PageWriter(
                send,
                site=self.site,
                key=self._key,
                routes=numbers,
                marks=asked.hashes,
                filling=filling,
                named=named,
            )
            writing.write(map(packed_page, census.merge(asked.page, observations)), asked.row)
            if census.changed:
                version_of(asked_version.fetchall(), self._session.schema)
                self._next_version()
                if moved := census.count_changes:
                    send(_UPDATE_COUNTS, row_columns((by, numbers[path]) for path, by in moved.items()))
                writing.changed_blocks.update(self._slash_variant_blocks(writing))
                self._record_changes(writing.changed_blocks, writing.filled_blocks, writing.named)
                self._session.commit()
        self._session.was_rolled_back = not census.changed
        return census.result()

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        """As of `base.Store`."""
        bounds = (*row_id_range(self.site, 1, self._last_block()), unseen_since, unlisted_since)
        gone = self._session(_DELETE_UNLISTED, bounds) if self.site else []
        if gone:
            self._next_version()
            routes = Counter(route for _, route, _ in gone)
            self._session(_UPDATE_COUNTS, ([-count for count in routes.values()], list(routes)))
            moved = self._blocks_of_slash_variants({raw.decode() for _, _, raw in gone})
            moved.subtract(block_of_row(row) for row, _, _ in gone)
            self._record_changes(moved, {})
        else:
            self._session.was_rolled_back = True
        return len(gone)

    def sample(self, most: int) -> PackedPages:
        """As of `base.Store`."""
        query = "SELECT max(number), coalesce(sum(pages), 0)::bigint FROM sitemap.block WHERE site = %s AND number > %s"
        ((last, learned),) = self._session(query, (self.site, UNLEARNED_BLOCK))
        query = "SELECT given, pages FROM sitemap.block WHERE site = %s AND number = %s"
        ((given, named),) = self._session(query, (self.site, UNLEARNED_BLOCK)) or ((0, 0),)
        room = max(most - learned, most // 2)
        sample = PackedPages()
        sample.extend(self._sample_rows(row_id_range(self.site, UNLEARNED_BLOCK)[0], given, named, room))
        first, end = row_id_range(self.site, 1, last or 1)
        sample.extend(self._sample_rows(first, end - first, learned, most - len(sample)))
        return sample

    def _sample_rows(self, first: int, span: int, pages: int, most: int) -> Iterator[tuple[str, str, bytes]]:
        """So many of the pages whose rows lie in a span, evenly."""
        if pages <= most:
            rows = self._session(_SELECT_ROWS, (first, first + span))
        else:
            rows = self._session(
                _SELECT_SAMPLE, ([first + span * number // most for number in range(most)], first + span)
            )
        for path, route, facts, _ in {row[3]: row for row in rows}.values():
            yield path.decode(), route.decode(), facts

    def _next_version(self) -> None:
        """Take note that pages have changed."""
        self.version = next_version(self.version)
        self._session.send("UPDATE sitemap.site SET version = %s WHERE id = %s", (self.version, self.site))

    def _record_changes(self, moved: Counter[int], filled: Mapping[int, PlacementCursor], named: int = 0) -> None:
        """Take note of the blocks in which pages came, went or changed."""
        empty = PlacementCursor()
        rows = []
        for number, pages in moved.items():
            filling = filled.get(number, empty)
            given = named if number == UNLEARNED_BLOCK else filling.pages
            rows.append((self.site, number, filling.document, pages, given, filling.bytes, self.version))
        self._session.send(_UPSERT_BLOCK, row_columns(rows))

    def _last_block(self) -> int:
        """The last block of learned pages; the first where there is none."""
        query = "SELECT coalesce(max(number), 1) FROM sitemap.block WHERE site = %s AND number > %s"
        ((last,),) = self._session(query, (self.site, UNLEARNED_BLOCK))
        return int(last)

    def _slash_variant_blocks(self, writing: PageWriter) -> Counter[int]:
        """The blocks of pages that are spelled as changed ones but for a slash at the end: the one may copy the other.

        As long as every learned page is spelled as its route is, there is none.
        """
        if writing.has_slash_variants and not self._has_slash_variants:
            self._has_slash_variants = True
            self._session.send("UPDATE sitemap.site SET twins = true WHERE id = %s", (self.site,))
        return self._blocks_of_slash_variants(writing.paths)

    def _blocks_of_slash_variants(self, paths: AbstractSet[str]) -> Counter[int]:
        """The blocks of pages that are spelled as these are but for a slash at the end, if there may be any."""
        if not self._has_slash_variants:
            return Counter()
        return Counter(
            {block_of_row(row[3]): 0 for row in self._found({toggle_trailing_slash(path) for path in paths} - paths)}
        )


def register_site(session: Session, site: str) -> None:
    """Give a site that is new its number, one after the other: identities may leave any gap.

    It is done in a transaction of its own, for whoever starts at the same time waits for it.
    """
    session("SELECT pg_advisory_xact_lock(%s)", (SITE_NUMBER_LOCK_ID,))
    session(_INSERT_SITE, (site.encode(),))


def schema_status(session: Session, now: int, sites: Sequence[str]) -> EngineStatus:
    """What there is to know of all sites together."""
    ((server,),) = session("SELECT split_part(current_setting('server_version'), ' ', 1)")
    ((version,),) = session(SELECT_VERSION)
    ((size,),) = session(_SELECT_SIZE, (session.schema,))
    keys = session("SELECT key FROM sitemap.site WHERE version > 0 ORDER BY key")
    changed = session("SELECT site, max(since) FROM sitemap.document GROUP BY site")
    leases = session("SELECT site, name, until FROM sitemap.lease WHERE until > %s ORDER BY site, name", (now,))
    return EngineStatus(
        "PostgreSQL",
        f"{server}, schema version {version}",
        size,
        list(sites) or [key.decode() for (key,) in keys],
        {site.decode(): since for site, since in changed},
        [LeaseStatus(site.decode(), name.decode(), until) for site, name, until in leases],
    )


def _cursor_of(rows: Sequence[tuple[int, int, int, int]]) -> PlacementCursor:
    """What new pages go into, by the blocks of the last document."""
    if not rows:
        return PlacementCursor()
    block, document, given, spent = rows[0]
    return PlacementCursor(block, document, given, spent, sum(row[2] for row in rows), sum(row[3] for row in rows))


def _no_page(_: str) -> None:
    """What is known of any page of a site that is new."""


def _pages(rows: Iterable[Any]) -> list[Page]:
    return [unpack_page(path.decode(), route.decode(), facts) for path, route, facts, _ in rows]
