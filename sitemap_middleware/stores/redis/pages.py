"""The pages of one site in Redis."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...evidence.observations import Observation
from ...models import MergeResult, Page, PageLimits
from ..base import UNLEARNED_BLOCK, Block
from ..compact_page_list import CompactPageList
from ..merge_batch_into_pages import BatchMerger
from ..page_codec import packed_page, unpack_block
from ..page_sample import SiteSize, draw_sample
from ..page_write_plan import SiteChanges
from ..permanent_page_slots import PlacementCursor
from ..sql_row_id_layout_and_path_hash import row_id
from .client import RedisClient
from .packed_pages_and_segments import (
    BLOCK_VALUE,
    EMPTY_SLOT,
    StoredPage,
    hash_path,
    merge_arguments,
    parse_cursor,
    parse_pages,
    rows_as_arguments,
    serialize_cursor,
    slot_in_block,
    unlearned_segments,
)
from .scripts import (
    BLOCKS_SCRIPT,
    FIND_SCRIPT,
    FORGET_SCRIPT,
    MAX_COMMAND_VALUES,
    MERGE_SCRIPT,
    PATH_HASH_BYTES,
    SEGMENT_SCRIPT,
    TURN_SCRIPT,
)

MAX_SEGMENTS_READ: Final = 50
"""Segments read by one command: 12 kB each, at most."""

_SITE_NUMBER: Final = 1
"""Row ids number sites, to sample across blocks. Each site has a separate key here, so any number does."""


class SitePages:
    """The pages of one site. Methods do as those of `base.Store` with the same names, but raise redis-py's errors."""

    def __init__(self, client: RedisClient, site: str, key: str) -> None:
        """`key` names the hash that keeps the pages of the site."""
        self._client = client
        self._site = site
        self._key = key

    def pages(self) -> list[Page]:
        cursor, unlearned_slots = self._read_cursor()
        segments = [*unlearned_segments(unlearned_slots), *range(1, cursor.block + 1)]
        pages = {stored.path: stored for segment in segments for stored in self._read_segment(segment)}
        return [pages[path].unpack() for path in sorted(pages)]

    def find_pages(self, paths: Collection[str]) -> dict[str, Page]:
        wanted = set(paths)
        stored_pages = self._find([hash_path(path) for path in paths])
        return {stored.path: stored.unpack() for stored in stored_pages if stored.path in wanted}

    def version(self) -> int:
        (version,) = self._client.read_fields(self._key, ["version"])
        return int(version or 0)

    def blocks(self, since: int) -> list[Block]:
        numbers_and_values = iter(self._client.run(BLOCKS_SCRIPT, self._key, since))
        return [
            Block(number, *BLOCK_VALUE.unpack(value))
            for number, value in zip(numbers_and_values, numbers_and_values, strict=True)
        ]

    def block(self, number: int) -> list[Page]:
        segments = unlearned_segments(self._read_cursor()[1]) if number == UNLEARNED_BLOCK else [number]
        pages = [stored for segment in segments for stored in self._read_segment(segment)]
        return unpack_block((stored.path, stored.route, stored.data) for stored in pages)

    def sample(self, limit: int) -> CompactPageList:
        cursor, unlearned_slots = self._read_cursor()
        segments = self._read_segments(range(1, cursor.block + 1))
        learned = _hashes_by_row(segments)
        unlearned = _hashes_by_row(self._read_segments(unlearned_segments(unlearned_slots)))
        hashes = {**learned, **unlearned}
        rows = list(hashes)  # ascending: unlearned pages have the highest ids

        def read_range(first: int, last: int) -> Iterator[tuple[str, str, bytes]]:
            return read(rows[bisect_left(rows, first) : bisect_right(rows, last)])

        def read_from_each(starts: Sequence[int], last: int) -> Iterator[tuple[str, str, bytes]]:
            indexes = sorted({bisect_left(rows, start) for start in starts})
            return read([rows[index] for index in indexes if index < len(rows) and rows[index] <= last])

        def read(selected: Sequence[int]) -> Iterator[tuple[str, str, bytes]]:
            for stored in self._find([hashes[row] for row in selected]):
                yield stored.path, stored.route, stored.data

        blocks = [(number, len(slots) // PATH_HASH_BYTES) for number, slots in segments.items()]
        size = SiteSize(len(learned), blocks, len(unlearned), unlearned_slots)
        return draw_sample(_SITE_NUMBER, size, limit, read_range, read_from_each)

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        """Delete pages block by block, so that Redis is not blocked for long. After an error some may be deleted."""
        cursor, _ = self._read_cursor()
        return sum(
            self._client.run(FORGET_SCRIPT, self._key, block, unseen_since, unlisted_since)
            for block in range(1, cursor.block + 1)
        )

    def merge(
        self, observations: Sequence[Observation], limits: PageLimits, owner: str, *, has_turn: bool
    ) -> MergeResult | None:
        """Merge once; None if the site has changed since it was read, or another worker has the turn.

        Args:
            observations: as of `Store.merge`.
            limits: as of `Store.merge`.
            owner: identifies this call among all workers.
            has_turn: whether it has taken the turn.
        """
        hashes = {path: hash_path(path) for path in sorted({observation.path for observation in observations})}
        routes = list({observation.route for observation in observations})
        fields = ["version", "learned", "cursor", "slash_variants", *(f"route:{route}" for route in routes)]
        (version, learned, cursor, slash_variants, *route_counts), stored_pages = self._read(hashes.values(), fields)
        if version and not cursor:
            raise ValueError("the field cursor is missing")
        stored = {page.path: page for page in stored_pages}
        counts = dict(zip(routes, (int(count or 0) for count in route_counts), strict=True))
        other_routes = int(learned or 0) - sum(counts.values())  # they count towards the site's limit
        merger = BatchMerger({**counts, "": other_routes}, limits)

        def stored_page(path: str) -> Page | None:
            return stored[path].unpack() if path in stored else None

        changed = list(map(packed_page, merger.merge(stored_page, observations)))
        if not changed:
            if has_turn:
                self.take_turn(owner, 0)
            return merger.result()
        changes: SiteChanges[StoredPage] = SiteChanges(
            self._site,
            *parse_cursor(cursor),
            has_slash_variants=slash_variants == b"1",
            block_of=lambda page: page.block,
        )
        placed = changes.place(changed, stored.get)
        if variants := changes.slash_variants():
            changes.touch(self._find([hash_path(path) for path in variants]))
        count_changes = list(merger.count_changes.items())
        is_written = self._client.run(
            MERGE_SCRIPT,
            self._key,
            owner,
            version or "",
            serialize_cursor(changes.cursor, changes.unlearned_slots),
            int(changes.has_slash_variants),
            sum(added for _, added in count_changes),
            *rows_as_arguments(count_changes),
            *merge_arguments(placed, changes.blocks(), hashes),
        )
        return merger.result() if is_written else None

    def take_turn(self, owner: str, milliseconds: int) -> bool:
        """Let other workers wait until this one has merged, so many milliseconds at most. Returns whether it may."""
        return bool(self._client.run(TURN_SCRIPT, self._key, owner, milliseconds))

    def _read_cursor(self) -> tuple[PlacementCursor, int]:
        """The cursor, and the number of slots given in `UNLEARNED_BLOCK`."""
        (value,) = self._client.read_fields(self._key, ["cursor"])
        return parse_cursor(value)

    def _read_segment(self, segment: int) -> list[StoredPage]:
        data, block = self._client.run(SEGMENT_SCRIPT, self._key, segment)
        pages = [*parse_pages(data)]
        if block and BLOCK_VALUE.unpack(block)[1] != len(pages):
            raise ValueError(f"block {segment} has {len(pages)} pages")
        return pages

    def _read_segments(self, segments: Sequence[int]) -> dict[int, bytes]:
        """The slots of each of some segments, as one string."""
        fields = [f"segment:{segment}" for segment in segments]
        values = self._client.read_fields(self._key, fields, MAX_SEGMENTS_READ)
        return {segment: value or b"" for segment, value in zip(segments, values, strict=True)}

    def _find(self, hashes: Sequence[bytes]) -> list[StoredPage]:
        """The pages that exist of these path hashes."""
        stored: list[StoredPage] = []
        for start in range(0, len(hashes), MAX_COMMAND_VALUES):
            stored += self._read(hashes[start : start + MAX_COMMAND_VALUES], [])[1]
        return stored

    def _read(self, hashes: Iterable[bytes], fields: Sequence[str]) -> tuple[list[bytes | None], Iterator[StoredPage]]:
        """The values of fields, and the pages of path hashes, at one moment."""
        pages, *values = self._client.run(FIND_SCRIPT, self._key, b"".join(hashes), *fields)
        return values, parse_pages(pages)


def _hashes_by_row(segments: Mapping[int, bytes]) -> dict[int, bytes]:
    """The path hashes of all pages in some ascending segments, by ascending row id."""
    hashes = {}
    for segment, slots in segments.items():
        first = row_id(_SITE_NUMBER, slot_in_block(segment, 0))
        for position, start in enumerate(range(0, len(slots), PATH_HASH_BYTES)):
            hashes[first + position] = slots[start : start + PATH_HASH_BYTES]
    return {row: path_hash for row, path_hash in hashes.items() if path_hash != EMPTY_SLOT}
