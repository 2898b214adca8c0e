"""Rows of Redis: pages as bytes, each in a place of a segment, and what a fold writes of them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha1
from itertools import islice
from typing import Final, NamedTuple

from ...models import Page
from ..base import UNLEARNED_BLOCK
from ..page_codec import PackedPage, unpack_page
from ..placement import MAX_BLOCK_PAGES, PlacementCursor, Slot, entry_sizes
from .scripts import NAME_BYTES

FIRST_UNLEARNED_SEGMENT: Final = 1 << 31
"""The first segment of the pages that are not learned: they have one block, and no end of places."""

_PAGE_HEAD: Final = struct.Struct("<IBqIHHH")
"""Of a page: its length, whether it is promising, when it was last seen, its segment, place, lengths of path and route.

Path, route (none, where it is the path), and the facts as `codec` packs them, follow.
"""

EMPTY_NAME: Final = bytes(NAME_BYTES)
"""What stands in a place that was left."""


class StoredPage(NamedTuple):
    """A page as it is kept."""

    path: str
    route: str
    data: bytes
    segment: int
    position: int

    def page(self) -> Page:
        """The page itself."""
        return unpack_page(self.path, self.route, self.data)


def parse_rows(data: bytes) -> Iterator[StoredPage]:
    """The pages that stand one after the other in these bytes."""
    at = 0
    while at < len(data):
        size, _, _, segment, position, path_size, route_size = _PAGE_HEAD.unpack_from(data, at)
        start = at + _PAGE_HEAD.size
        middle = start + path_size
        end = middle + route_size
        if not start <= end <= at + size <= len(data):  # a size of nothing would have no end
            raise ValueError("a page is not as long as it says")
        at += size
        path = data[start:middle].decode()
        yield StoredPage(path, data[middle:end].decode() if route_size else path, data[end:at], segment, position)


def _serialize_page(page: PackedPage, segment: int, position: int) -> bytes:
    """A page in its place, as `parse_rows` reads it."""
    path, of, _, last_seen, fit, facts = page
    raw, route = path.encode(), b"" if of == path else of.encode()
    size = _PAGE_HEAD.size + len(raw) + len(route) + len(facts)
    return _PAGE_HEAD.pack(size, fit, last_seen, segment, position, len(raw), len(route)) + raw + route + facts


class PageWriter:
    """What a fold changes of a site, as the script takes it."""

    def __init__(self, site: str, names: Mapping[str, bytes], filling: PlacementCursor, named: int) -> None:
        self._site = site
        self._name_of = names
        self._cursor = filling
        self._unlearned_count = named
        self._documents: dict[int, int] = {}
        self._names: list[bytes] = []
        self._pages: list[bytes] = []
        self._orders: list[tuple[int, int, bytes]] = []
        """What stands in the order of a segment from a byte on."""
        self.changed_blocks = Counter[int]()
        """By how many pages each block has grown; those are here too of which one has only changed."""

    @property
    def serialized_cursor(self) -> str:
        """What new pages go into from now on, as `parse_cursor` reads it."""
        return " ".join(map(str, (*self._cursor, self._unlearned_count)))

    def write(self, pages: Iterable[PackedPage], rows: Mapping[str, StoredPage]) -> None:
        """Write pages down, each in its place."""
        learned: list[PackedPage] = []
        others: list[PackedPage] = []
        for page in pages:
            row = rows.get(page.path)
            if row is not None and page.learned is (row.segment < FIRST_UNLEARNED_SEGMENT):
                self.changed_blocks[block_of(row.segment)] += 0
                self._put(page, row.segment, row.position)
                continue
            if row is not None:
                self._orders.append((row.segment, row.position * NAME_BYTES, EMPTY_NAME))
                self.changed_blocks[block_of(row.segment)] -= 1
            (learned if page.learned else others).append(page)
        coming = iter(learned)
        for count, filling in self._cursor.advance_many(entry_sizes(self._site, [page.path for page in learned])):
            self._cursor = filling
            self._documents[filling.block] = filling.document
            self._insert(list(islice(coming, count)), filling.block, filling.pages - count)
        coming = iter(others)
        while some := list(islice(coming, MAX_BLOCK_PAGES - self._unlearned_count % MAX_BLOCK_PAGES)):
            segment, position = divmod(self._unlearned_count, MAX_BLOCK_PAGES)
            self._unlearned_count += len(some)
            self._insert(some, FIRST_UNLEARNED_SEGMENT + segment, position)

    def _insert(self, pages: Sequence[PackedPage], segment: int, first: int) -> None:
        """Write pages in places of a segment, one after the other."""
        names = b"".join([self._name_of[page.path] for page in pages])
        self._orders.append((segment, first * NAME_BYTES, names))
        self.changed_blocks[block_of(segment)] += len(pages)
        for position, page in enumerate(pages, first):
            self._put(page, segment, position)

    def _put(self, page: PackedPage, segment: int, position: int) -> None:
        self._names.append(self._name_of[page.path])
        self._pages.append(_serialize_page(page, segment, position))

    def arguments(self) -> Iterator[object]:
        """The blocks, the orders, the pages."""
        yield from count_rows(
            [(block, self._documents.get(block, 0), pages) for block, pages in self.changed_blocks.items()]
        )
        yield from count_rows(self._orders)
        yield b"".join(self._names)
        yield b"".join(self._pages)


def count_rows(rows: Sequence[tuple[object, ...]]) -> Iterator[object]:
    """How many rows there are, and what stands in them."""
    yield len(rows)
    for row in rows:
        yield from row


def parse_cursor(filling: bytes | None) -> tuple[PlacementCursor, int]:
    """What new pages go into, and how many places were given to those that are not learned."""
    *numbers, named = map(int, (filling or b"0 0 0 0 0 0 0").split())
    return PlacementCursor(*numbers), named


def unlearned_segments(named: int) -> range:
    """The segments of so many places of pages that are not learned."""
    return range(FIRST_UNLEARNED_SEGMENT, FIRST_UNLEARNED_SEGMENT - (-named // MAX_BLOCK_PAGES))


def block_of(segment: int) -> int:
    """The block that a segment is of."""
    return UNLEARNED_BLOCK if segment >= FIRST_UNLEARNED_SEGMENT else segment


def page_name(path: str) -> bytes:
    """What a page is called in the hash of its site."""
    return sha1(path.encode(), usedforsecurity=False).digest()[:NAME_BYTES]


def first_place(segment: int) -> Slot:
    """The first place of a segment."""
    return (
        Slot(segment, 0)
        if segment < FIRST_UNLEARNED_SEGMENT
        else Slot(UNLEARNED_BLOCK, (segment - FIRST_UNLEARNED_SEGMENT) * MAX_BLOCK_PAGES)
    )
