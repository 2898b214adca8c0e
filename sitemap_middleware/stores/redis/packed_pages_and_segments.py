"""Pages as bytes, and the segments that hold them: the slots of one block, or 1,000 of pages that were not learned."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha1
from typing import Final, NamedTuple

from ...models import Page
from ..base import UNLEARNED_BLOCK
from ..page_codec import PackedPage, unpack_page
from ..page_write_plan import BlockChange, NewPages, PlacedPages
from ..permanent_page_slots import PlacementCursor, Slot
from .scripts import PATH_HASH_BYTES

SEGMENT_SLOTS: Final = 1000
"""Slots of a segment: at most, of a learned block; exactly, of `UNLEARNED_BLOCK`.

Part of the format: with another number, the slots of unlearned pages would be others.
"""

FIRST_UNLEARNED_SEGMENT: Final = 1 << 31
"""Number of the first segment of `UNLEARNED_BLOCK`. Each other block is one segment with the same number."""

EMPTY_SLOT: Final = bytes(PATH_HASH_BYTES)
"""Stands in a segment for a page that was deleted or moved."""

BLOCK_VALUE: Final = struct.Struct("<IIQ")
"""Value of a field `block:<number>`: document, number of pages, version."""

_PAGE_HEAD: Final = struct.Struct("<IBqIHHH")
"""Bytes of the whole page, whether it is listable, last seen, segment, position, bytes of its path, of its route.

The path, the route (empty if it equals the path) and the page as `page_codec` packs it follow.
"""


class StoredPage(NamedTuple):
    """A page as it is stored, and its slot."""

    path: str
    route: str
    data: bytes
    segment: int
    position: int

    @property
    def block(self) -> int:
        return _block_of_segment(self.segment)

    def unpack(self) -> Page:
        return unpack_page(self.path, self.route, self.data)


def parse_pages(data: bytes) -> Iterator[StoredPage]:
    """The pages in these bytes, one after another. Raises ValueError or struct.error if they are damaged."""
    offset = 0
    while offset < len(data):
        size, _, _, segment, position, path_size, route_size = _PAGE_HEAD.unpack_from(data, offset)
        path_start = offset + _PAGE_HEAD.size
        path_end = path_start + path_size
        route_end = path_end + route_size
        if not path_start <= route_end <= offset + size <= len(data):  # with a size of 0 the loop would never end
            raise ValueError("the length of a page is damaged")
        offset += size
        path = data[path_start:path_end].decode()
        route = data[path_end:route_end].decode() if route_size else path
        yield StoredPage(path, route, data[route_end:offset], segment, position)


def _serialize_page(page: PackedPage, segment: int, position: int) -> bytes:
    path, route, _, last_seen, listable, data = page
    path_bytes, route_bytes = path.encode(), b"" if route == path else route.encode()
    size = _PAGE_HEAD.size + len(path_bytes) + len(route_bytes) + len(data)
    head = _PAGE_HEAD.pack(size, listable, last_seen, segment, position, len(path_bytes), len(route_bytes))
    return head + path_bytes + route_bytes + data


def merge_arguments(
    placed: PlacedPages[StoredPage], blocks: Sequence[BlockChange], hashes: Mapping[str, bytes]
) -> Iterator[object]:
    """The last arguments of `MERGE_SCRIPT`: blocks, changed slots and pages.

    Args:
        placed: where pages are written.
        blocks: how that changes their blocks.
        hashes: the hash of each path.
    """
    page_hashes: list[bytes] = []
    pages: list[bytes] = []
    for stored, page in placed.updated:
        page_hashes.append(hashes[page.path])
        pages.append(_serialize_page(page, stored.segment, stored.position))
    slots = [(stored.segment, stored.position * PATH_HASH_BYTES, EMPTY_SLOT) for stored in placed.removed.values()]
    for new in placed.new:
        for segment, first, pages_of_segment in _split_into_segments(new):
            hashes_of_segment = [hashes[page.path] for page in pages_of_segment]
            slots.append((segment, first * PATH_HASH_BYTES, b"".join(hashes_of_segment)))
            page_hashes += hashes_of_segment
            pages += [_serialize_page(page, segment, position) for position, page in enumerate(pages_of_segment, first)]
    yield from rows_as_arguments([(block.number, block.document, block.pages) for block in blocks])
    yield from rows_as_arguments(slots)
    yield b"".join(page_hashes)
    yield b"".join(pages)


def _split_into_segments(new: NewPages) -> Iterator[tuple[int, int, Sequence[PackedPage]]]:
    """Segment, first position in it, and pages."""
    if new.block != UNLEARNED_BLOCK:
        yield new.block, new.position, new.pages
        return
    start = 0
    while start < len(new.pages):
        segment, position = divmod(new.position + start, SEGMENT_SLOTS)
        end = start + SEGMENT_SLOTS - position
        yield FIRST_UNLEARNED_SEGMENT + segment, position, new.pages[start:end]
        start = end


def rows_as_arguments(rows: Sequence[tuple[object, ...]]) -> Iterator[object]:
    """The number of rows, then their values, as scripts take them."""
    yield len(rows)
    for row in rows:
        yield from row


def serialize_cursor(cursor: PlacementCursor, unlearned_slots: int) -> str:
    """Value of the field `cursor`."""
    return " ".join(map(str, (*cursor, unlearned_slots)))


def parse_cursor(value: bytes | None) -> tuple[PlacementCursor, int]:
    """The cursor, and the number of slots given in `UNLEARNED_BLOCK`. Raises ValueError if the value is damaged."""
    *cursor, unlearned_slots = map(int, (value or b"0 0 0 0 0 0 0").split())
    return PlacementCursor(*cursor), unlearned_slots


def unlearned_segments(slots: int) -> range:
    """The segments that so many slots of `UNLEARNED_BLOCK` take."""
    return range(FIRST_UNLEARNED_SEGMENT, FIRST_UNLEARNED_SEGMENT - (-slots // SEGMENT_SLOTS))


def _block_of_segment(segment: int) -> int:
    return UNLEARNED_BLOCK if segment >= FIRST_UNLEARNED_SEGMENT else segment


def slot_in_block(segment: int, position: int) -> Slot:
    """The slot at a position of a segment."""
    if segment < FIRST_UNLEARNED_SEGMENT:
        return Slot(segment, position)
    return Slot(UNLEARNED_BLOCK, (segment - FIRST_UNLEARNED_SEGMENT) * SEGMENT_SLOTS + position)


def hash_path(path: str) -> bytes:
    """The hash by which a path's page is stored."""
    return sha1(path.encode(), usedforsecurity=False).digest()[:PATH_HASH_BYTES]
