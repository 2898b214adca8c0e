"""Allotment: the place that each learned page has in the sitemap for life. Pure; every engine's.

Pages come one after the other into blocks, and blocks into documents. What a
place costs is taken as the most that its entry can ever come to, so that a
document keeps to the protocol's limits whatever is written of its pages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ..protocol import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT

MAX_BLOCK_PAGES: Final = 1000
"""Pages of one block, at most: it is what one change has to be written anew."""

MAX_BLOCK_BYTES: Final = 1024 * 1024
"""Bytes of one block, at most."""

MAX_ENTRY_BYTES_PER_DOCUMENT: Final = MAX_BYTES_PER_DOCUMENT - 4096
"""Bytes of the entries of one document, at most."""

_MAX_MARKUP_BYTES: Final = 192
"""Bytes of an entry besides its loc, at most: the tags, a datetime, a word and a number."""

_MAX_HOST_BYTES: Final = 280
"""Bytes of scheme, host and port, at most."""

_MAX_ESCAPE_FACTOR: Final = 5
"""Bytes by which a character grows when it is escaped, at most."""


class Slot(NamedTuple):
    """Where a page stands: in which block, and there the how manyeth place it is, from 0 on."""

    block: int
    position: int


class PlacementCursor(NamedTuple):
    """The block, and the document, that new pages go into."""

    block: int = 0
    document: int = 0
    pages: int = 0
    """Places given in the block."""
    bytes: int = 0
    """What these cost."""
    document_pages: int = 0
    """Places given in the document, those of the block among them."""
    document_bytes: int = 0

    def advance(self, cost: int) -> PlacementCursor:
        """As it is when one more place was given: the last one of the block it then is."""
        if (
            self.block == 0
            or self.document_pages == MAX_URLS_PER_DOCUMENT
            or self.document_bytes + cost > MAX_ENTRY_BYTES_PER_DOCUMENT
        ):
            return PlacementCursor(self.block + 1, self.document + 1, 1, cost, 1, cost)
        whole = self.document_pages + 1, self.document_bytes + cost
        if self.pages == MAX_BLOCK_PAGES or self.bytes + cost > MAX_BLOCK_BYTES:
            return PlacementCursor(self.block + 1, self.document, 1, cost, *whole)
        return PlacementCursor(self.block, self.document, self.pages + 1, self.bytes + cost, *whole)

    def advance_in_block(self, costs: Sequence[int]) -> Iterator[tuple[int, PlacementCursor]]:
        """As it is after `next` for one cost after the other, told once a block: how many more places that then has."""
        sums = list(accumulate(costs, initial=0))
        filling, given = self, 0
        while given < len(costs):
            filling = filling.advance(costs[given])
            spent = sums[given + 1]
            room = min(MAX_BLOCK_BYTES - filling.bytes, MAX_ENTRY_BYTES_PER_DOCUMENT - filling.document_bytes)
            end = min(
                bisect_right(sums, spent + room) - 1,
                given + 1 + min(MAX_BLOCK_PAGES - filling.pages, MAX_URLS_PER_DOCUMENT - filling.document_pages),
            )
            more, bytes_ = end - given - 1, sums[end] - spent
            if more > 0:  # what is greater than a block leaves room for less than none
                pages = filling.pages + more, filling.bytes + bytes_
                whole = filling.document_pages + more, filling.document_bytes + bytes_
                filling = PlacementCursor(filling.block, filling.document, *pages, *whole)
                given += more
            given += 1
            yield max(more, 0) + 1, filling


def entry_sizes(site: str, paths: Iterable[str]) -> list[int]:
    """The bytes that the entry of each path may come to, at most: a base is no longer than its key and a host."""
    base = _MAX_MARKUP_BYTES + _MAX_HOST_BYTES + len(site) + _MAX_ESCAPE_FACTOR * (site.count("&") + site.count("'"))
    return [
        base
        + len(path)
        + (_MAX_ESCAPE_FACTOR * (path.count("&") + path.count("'")) if "&" in path or "'" in path else 0)
        for path in paths
    ]


def entry_size(site: str, path: str) -> int:
    """That of one path."""
    return entry_sizes(site, (path,))[0]
