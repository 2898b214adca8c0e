"""Gives each learned page a permanent slot: the place of its `<url>` entry in a block of a document. Pure.

Pages fill one block after another, and blocks fill one document after another. Each
page reserves the bytes of the longest entry that it can ever have, so a document stays
within the protocol's limits however its entries change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ..sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT

MAX_BLOCK_PAGES: Final = 625
"""Pages that are placed in a block. A change re-renders one block, so small blocks make changes cheap.

80 blocks fill a document. A store may hold blocks of up to 1,000 pages, which were placed when this number was larger.
"""

MAX_BLOCK_BYTES: Final = 1024 * 1024
"""Bytes that the entries of a block may take."""

MAX_ENTRY_BYTES_PER_DOCUMENT: Final = MAX_BYTES_PER_DOCUMENT - 4096
"""Bytes that the entries of a document may take; the rest is left for the XML around them."""

_MAX_MARKUP_BYTES: Final = 192
"""Bytes of an entry without its loc: tags, a date and time, a changefreq and a priority."""

_MAX_HOST_BYTES: Final = 280
"""Bytes of scheme, host and port."""

_ESCAPE_GROWTH_BYTES: Final = 5
"""Bytes that XML escaping adds to one `&` or `'`."""


class Slot(NamedTuple):
    """A page's slot: its block and its zero-based position in the block."""

    block: int
    position: int


class PlacementCursor(NamedTuple):
    """The block and the document that the next new page goes into, and how full they are.

    A slot is never given twice: the counts include pages that were forgotten.
    """

    block: int = 0
    document: int = 0
    pages: int = 0
    """Slots given in the block."""
    bytes: int = 0
    """Bytes reserved for them."""
    document_pages: int = 0
    """Slots given in the document, including those of the block."""
    document_bytes: int = 0

    @classmethod
    def after_blocks(cls, blocks: Iterable[tuple[int, int, int, int]]) -> PlacementCursor:
        """The cursor after the blocks of a site.

        Args:
            blocks: number, document, slots given and bytes reserved of each block, the last block first. Only those of
                the last document are read.
        """
        cursor = cls()
        for number, document, pages, size in blocks:
            if not cursor.block:
                cursor = cls(number, document, pages, size, pages, size)
            elif document == cursor.document:
                cursor = cursor._replace(
                    document_pages=cursor.document_pages + pages, document_bytes=cursor.document_bytes + size
                )
            else:
                break
        return cursor

    def advance(self, entry_bytes: int) -> PlacementCursor:
        """The cursor after one more page, which is then the last one of its block."""
        if (
            self.block == 0
            or self.document_pages >= MAX_URLS_PER_DOCUMENT
            or self.document_bytes + entry_bytes > MAX_ENTRY_BYTES_PER_DOCUMENT
        ):
            return PlacementCursor(self.block + 1, self.document + 1, 1, entry_bytes, 1, entry_bytes)
        document = self.document_pages + 1, self.document_bytes + entry_bytes
        if self.pages >= MAX_BLOCK_PAGES or self.bytes + entry_bytes > MAX_BLOCK_BYTES:
            return PlacementCursor(self.block + 1, self.document, 1, entry_bytes, *document)
        return PlacementCursor(self.block, self.document, self.pages + 1, self.bytes + entry_bytes, *document)

    def advance_many(self, entry_sizes: Sequence[int]) -> Iterator[tuple[int, PlacementCursor]]:
        """Place pages one after another; for each block, yield how many go into it and the cursor after them.

        The result equals repeated calls of `advance`, but all pages of a block cost one step.
        """
        total_bytes = list(accumulate(entry_sizes, initial=0))
        cursor, placed = self, 0
        while placed < len(entry_sizes):
            cursor = cursor.advance(entry_sizes[placed])
            used = total_bytes[placed + 1]
            free_bytes = min(MAX_BLOCK_BYTES - cursor.bytes, MAX_ENTRY_BYTES_PER_DOCUMENT - cursor.document_bytes)
            free_pages = min(MAX_BLOCK_PAGES - cursor.pages, MAX_URLS_PER_DOCUMENT - cursor.document_pages)
            end = min(bisect_right(total_bytes, used + free_bytes) - 1, placed + 1 + free_pages)
            more, more_bytes = end - placed - 1, total_bytes[end] - used
            if more > 0:  # free_bytes is negative after an entry that is larger than a block
                cursor = PlacementCursor(
                    cursor.block,
                    cursor.document,
                    cursor.pages + more,
                    cursor.bytes + more_bytes,
                    cursor.document_pages + more,
                    cursor.document_bytes + more_bytes,
                )
                placed += more
            placed += 1
            yield max(more, 0) + 1, cursor


def entry_sizes(store_key: str, paths: Iterable[str]) -> list[int]:
    """The bytes that the entry of each path can take at most.

    The base URL is not known here: it is at most the site's key plus a scheme, host and port.
    """
    fixed = _MAX_MARKUP_BYTES + _MAX_HOST_BYTES + len(store_key) + _escape_growth(store_key)
    return [
        fixed + len(path) + (_escape_growth(path) if "&" in path or "'" in path else 0) for path in paths
    ]  # most paths need no escaping, so the two counts are avoided


def entry_size(store_key: str, path: str) -> int:
    """The bytes that the entry of one path can take at most."""
    return entry_sizes(store_key, (path,))[0]


def _escape_growth(text: str) -> int:
    return _ESCAPE_GROWTH_BYTES * (text.count("&") + text.count("'"))
