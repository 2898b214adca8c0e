"""The pages of one site in PostgreSQL, read and written within a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from ...evidence.observations import Observation
from ...models import MergeResult, Page, PageLimits
from ..base import UNLEARNED_BLOCK, EngineStatus, LeaseStatus
from ..compact_page_list import CompactPageList
from ..merge_batch_into_pages import BatchMerger
from ..next_site_version import next_version
from ..page_codec import packed_page, unpack_block, unpack_page
from ..page_sample import SiteSize, draw_sample
from ..page_write_plan import SiteChanges
from ..permanent_page_slots import PlacementCursor
from ..sql_row_id_layout_and_path_hash import MAX_NUMBER, block_of_row, path_hashes, row_id_range, site_of_row
from .pipelined_page_batches import (
    SELECT_PAGES,
    SELECT_PAGES_BY_HASH,
    PageReader,
    PageWriter,
    array_literal,
    row_columns,
)
from .pool import Session
from .schema import SELECT_VERSION, SITE_NUMBER_LOCK_ID, check_version

_SELECT_SITE: Final = "SELECT id, version, slash_variants FROM sitemap.site WHERE key = %b"
_SELECT_SITE_FOR_UPDATE: Final = f"{_SELECT_SITE} FOR UPDATE"
_INSERT_SITE: Final = (
    "INSERT INTO sitemap.site (id, version, slash_variants, key) SELECT coalesce(max(id), 0) + 1, 0, false, %b::bytea"
    " FROM sitemap.site ON CONFLICT (key) DO NOTHING"
)
_UPDATE_SITE_VERSION: Final = "UPDATE sitemap.site SET version = %s WHERE id = %s"
_UPDATE_SITE_HAS_SLASH_VARIANTS: Final = "UPDATE sitemap.site SET slash_variants = true WHERE id = %s"

_SELECT_PAGES_OF_BLOCK: Final = f"{SELECT_PAGES} WHERE page.id BETWEEN %s AND %s ORDER BY page.id"
_SELECT_PAGES_OF_SITE: Final = (
    f"{SELECT_PAGES} WHERE page.id BETWEEN %s AND %s OR page.id BETWEEN %s AND %s ORDER BY page.path"
)
_SELECT_FIRST_PAGE_FROM_EACH_ROW: Final = (
    "SELECT page.path, route.path, page.data, page.id FROM unnest(%b::bigint[]) AS first_row CROSS JOIN LATERAL"
    " (SELECT * FROM sitemap.page WHERE id BETWEEN first_row AND %s ORDER BY id LIMIT 1) AS page"
    " JOIN sitemap.route ON route.id = page.route ORDER BY page.id"
)
_DELETE_UNSEEN_PAGES: Final = (
    "DELETE FROM sitemap.page WHERE id BETWEEN %s AND %s AND (last_seen < %s OR (last_seen < %s AND NOT listable))"
    " RETURNING id, route, path"
)

_SELECT_ROUTES: Final = "SELECT path, id, pages FROM sitemap.route WHERE site = %s"
_ADD_TO_ROUTE_PAGES: Final = (
    "UPDATE sitemap.route SET pages = route.pages + change.pages FROM unnest(%b::integer[], %b::integer[])"
    " AS change (pages, id) WHERE route.id = change.id"
)

_SELECT_BLOCKS_OF_LAST_DOCUMENT: Final = (
    "SELECT number, document, slots, entry_bytes FROM sitemap.block WHERE site = %s AND document ="
    " (SELECT document FROM sitemap.block WHERE site = %s AND number > %s ORDER BY number DESC LIMIT 1)"
    " ORDER BY number DESC"
)
_SELECT_LAST_BLOCK: Final = "SELECT coalesce(max(number), 1) FROM sitemap.block WHERE site = %s AND number > %s"
_SELECT_SIZES_OF_BLOCKS: Final = (
    "SELECT number, slots, pages FROM sitemap.block WHERE site = %s AND number > %s ORDER BY number"
)
_SELECT_SLOTS: Final = "SELECT slots FROM sitemap.block WHERE site = %s AND number = %s"
_SELECT_PAGES_AND_SLOTS: Final = "SELECT pages, slots FROM sitemap.block WHERE site = %s AND number = %s"
_UPSERT_BLOCKS: Final = (
    "INSERT INTO sitemap.block (site, number, document, pages, slots, entry_bytes, version) SELECT * FROM"
    " unnest(%b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::bigint[])"
    " ON CONFLICT (site, number) DO UPDATE SET pages = block.pages + excluded.pages, version = excluded.version,"
    " slots = greatest(block.slots, excluded.slots), entry_bytes = greatest(block.entry_bytes, excluded.entry_bytes)"
)

_SELECT_SERVER_VERSION: Final = "SELECT split_part(current_setting('server_version'), ' ', 1)"
_SELECT_TABLE_BYTES: Final = (
    "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class"
    " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %t AND relkind = 'r'"
)
_SELECT_SITES: Final = "SELECT key FROM sitemap.site WHERE version > 0 ORDER BY key"
_SELECT_LAST_CHANGES: Final = "SELECT site, max(first_served) FROM sitemap.document GROUP BY site"
_SELECT_LEASES: Final = "SELECT site, name, expires_at FROM sitemap.lease WHERE expires_at > %s ORDER BY site, name"


class SitePages:
    """The pages of one site, within a transaction. Methods do as those of `base.Store` with the same names."""

    def __init__(self, session: Session, site: str, *, for_update: bool = False, number: int | None = None) -> None:
        """Look the site up, unless its number is given.

        Args:
            session: the transaction.
            site: the site's key.
            for_update: lock the site until the transaction ends, so that no other one changes its pages.
            number: the site's number when it was last looked up. Then only `merge` may be called, which checks it.
        """
        self._session = session
        self._key = site
        self._select_site = _SELECT_SITE_FOR_UPDATE if for_update else _SELECT_SITE
        self.version: int
        self._has_slash_variants: bool
        self.site: int = number or 0
        """The site's number; 0 if it has none yet."""
        if not self.site:
            self._read_site(session(self._select_site, (site.encode(),)))

    def _read_site(self, rows: list[Any]) -> None:
        self.site, self.version, self._has_slash_variants = rows[0] if rows else (0, 0, False)
        if rows and (self.version is None or not 0 < self.site < MAX_NUMBER):
            raise LookupError(f"the row of site {self._key} is damaged")

    def pages(self) -> list[Page]:
        bounds = (*row_id_range(self.site, UNLEARNED_BLOCK), *row_id_range(self.site, 1, self._last_block()))
        return _unpack(self._session(_SELECT_PAGES_OF_SITE, bounds))

    def block(self, number: int) -> list[Page]:
        return unpack_block(self._read_range(*row_id_range(self.site, number)))

    def find_pages(self, paths: Collection[str]) -> dict[str, Page]:
        return {page.path: page for page in _unpack(self._select_by_path(paths))}

    def _select_by_path(self, paths: Collection[str]) -> list[Any]:
        """The rows of the pages of these paths. Pages of other paths or sites may share a hash and are skipped."""
        hashes = array_literal(list(path_hashes(self.site, paths).values()))
        rows = self._session.send(SELECT_PAGES_BY_HASH, (hashes,)).fetchall()
        return [row for row in rows if row[0].decode() in paths and site_of_row(row[3]) == self.site]

    def merge(self, observations: Sequence[Observation], limits: PageLimits) -> MergeResult | None:
        """As of `Store.merge`; None if the site has to be registered first, or has another number by now.

        Everything is sent without waiting for results, except where a batch of pages is needed to go on.
        """
        if not self.site:
            merger = BatchMerger({}, limits)
            has_changes = next(merger.merge(lambda _: None, observations), None) is not None
            return None if has_changes else merger.result()
        paths = dict.fromkeys([observation.path for observation in observations])
        send = self._session.send
        with self._session.pipeline():
            site_rows = send(self._select_site, (self._key.encode(),))
            route_rows = send(_SELECT_ROUTES, (self.site,))
            slot_rows = send(_SELECT_SLOTS, (self.site, UNLEARNED_BLOCK))
            block_rows = send(_SELECT_BLOCKS_OF_LAST_DOCUMENT, (self.site, self.site, UNLEARNED_BLOCK))
            route_paths: dict[int, str] = {}
            reader = PageReader(send, self.site, paths, route_paths)
            version_rows = send(SELECT_VERSION, ())  # last: from now on, migrations wait for this transaction
            expected_number = self.site
            self._read_site(site_rows.fetchall())
            if self.site != expected_number:
                self._session.was_rolled_back = True
                return None
            routes = [(path.decode(), number, pages) for path, number, pages in route_rows.fetchall()]
            route_numbers = {path: number for path, number, _ in routes}
            route_paths.update((number, path) for path, number, _ in routes)
            cursor = PlacementCursor.after_blocks(block_rows.fetchall())
            unlearned_slots = next((slots for (slots,) in slot_rows.fetchall()), 0)
            merger = BatchMerger({path: pages for path, _, pages in routes if pages}, limits)
            changes = self._begin_changes(cursor, unlearned_slots)
            writer = PageWriter(send, self.site, changes=changes, hashes=reader.hashes, route_numbers=route_numbers)
            writer.write(map(packed_page, merger.merge(reader.page, observations)), reader.row)
            if merger.changed:
                check_version(version_rows.fetchall(), self._session.schema)
                self._update_version()
                if count_changes := merger.count_changes:
                    rows = ((change, route_numbers[path]) for path, change in count_changes.items())
                    send(_ADD_TO_ROUTE_PAGES, row_columns(rows))
                if changes.has_slash_variants and not self._has_slash_variants:
                    send(_UPDATE_SITE_HAS_SLASH_VARIANTS, (self.site,))
                self._upsert_blocks(changes)
                self._session.commit()
        self._session.was_rolled_back = not merger.changed
        return merger.result()

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        bounds = (*row_id_range(self.site, 1, self._last_block()), unseen_since, unlisted_since)
        deleted = self._session(_DELETE_UNSEEN_PAGES, bounds) if self.site else []
        if deleted:
            self._update_version()
            routes = Counter(route for _, route, _ in deleted)
            self._session(_ADD_TO_ROUTE_PAGES, ([-pages for pages in routes.values()], list(routes)))
            changes = self._begin_changes(PlacementCursor(), 0)
            changes.remove((path.decode(), row) for row, _, path in deleted)
            self._upsert_blocks(changes)
        else:
            self._session.was_rolled_back = True
        return len(deleted)

    def sample(self, limit: int) -> CompactPageList:
        blocks = self._session(_SELECT_SIZES_OF_BLOCKS, (self.site, UNLEARNED_BLOCK))
        ((unlearned, slots),) = self._session(_SELECT_PAGES_AND_SLOTS, (self.site, UNLEARNED_BLOCK)) or ((0, 0),)
        learned = sum(pages for _, _, pages in blocks)
        size = SiteSize(learned, [block[:2] for block in blocks], unlearned, slots)
        return draw_sample(self.site, size, limit, self._read_range, self._read_from_each)

    def _read_range(self, first: int, last: int) -> Iterator[tuple[str, str, bytes]]:
        for path, route, data, _ in self._session(_SELECT_PAGES_OF_BLOCK, (first, last)):
            yield path.decode(), route.decode(), data

    def _read_from_each(self, starts: Sequence[int], last: int) -> Iterator[tuple[str, str, bytes]]:
        rows = self._session(_SELECT_FIRST_PAGE_FROM_EACH_ROW, (list(starts), last))
        for path, route, data, _ in {row[3]: row for row in rows}.values():
            yield path.decode(), route.decode(), data

    def _update_version(self) -> None:
        self.version = next_version(self.version)
        self._session.send(_UPDATE_SITE_VERSION, (self.version, self.site))

    def _begin_changes(self, cursor: PlacementCursor, unlearned_slots: int) -> SiteChanges[int]:
        return SiteChanges(
            self._key,
            cursor,
            unlearned_slots,
            has_slash_variants=self._has_slash_variants,
            block_of=block_of_row,
        )

    def _upsert_blocks(self, changes: SiteChanges[int]) -> None:
        """Write the blocks that changed, including those of slash variants."""
        if variants := changes.slash_variants():
            changes.touch(row[3] for row in self._select_by_path(variants))
        self._session.send(_UPSERT_BLOCKS, row_columns((self.site, *block, self.version) for block in changes.blocks()))

    def _last_block(self) -> int:
        """The number of the last block of learned pages; 1 if there are none."""
        ((last,),) = self._session(_SELECT_LAST_BLOCK, (self.site, UNLEARNED_BLOCK))
        return int(last)


def register_site(session: Session, site: str) -> None:
    """Give a new site the next number. An identity column would leave gaps, and numbers are few.

    Do this in a separate transaction: other processes that register a site wait until it ends.
    """
    session("SELECT pg_advisory_xact_lock(%s)", (SITE_NUMBER_LOCK_ID,))
    session(_INSERT_SITE, (site.encode(),))


def schema_status(session: Session, now: int, sites: Sequence[str]) -> EngineStatus:
    """Details of these sites, or of all, for the `status` command."""
    ((server_version,),) = session(_SELECT_SERVER_VERSION)
    ((schema_version,),) = session(SELECT_VERSION)
    ((size,),) = session(_SELECT_TABLE_BYTES, (session.schema,))
    keys = [key.decode() for (key,) in session(_SELECT_SITES)]
    return EngineStatus(
        "PostgreSQL",
        f"{server_version}, schema version {schema_version}",
        size,
        list(sites) or keys,
        {site.decode(): changed for site, changed in session(_SELECT_LAST_CHANGES)},
        [
            LeaseStatus(site.decode(), name.decode(), expires_at)
            for site, name, expires_at in session(_SELECT_LEASES, (now,))
        ],
    )


def _unpack(rows: Iterable[Any]) -> list[Page]:
    return [unpack_page(path.decode(), route.decode(), data) for path, route, data, _ in rows]
