"""Allotment: the place that each learned page has in the sitemap for life. Pure; every engine's.

Pages come one after the other into blocks, and blocks into documents. What a
place costs is taken as the most that its entry can ever come to, so that a
document keeps to the protocol's limits whatever is written of its pages.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..document import MAX_BYTES, MAX_URLS

PAGES: Final = 1000
"""Pages of one block, at most: it is what one change has to be written anew."""

BYTES: Final = 1024 * 1024
"""Bytes of one block, at most."""

ROOM: Final = MAX_BYTES - 4096
"""Bytes of the entries of one document, at most."""

_MARKUP: Final = 192
"""Bytes of an entry besides its loc, at most: the tags, a datetime, a word and a number."""

_HOST: Final = 280
"""Bytes of scheme, host and port, at most."""

_ESCAPED: Final = 5
"""Bytes by which a character grows when it is escaped, at most."""


class Place(NamedTuple):
    """Where a page stands: in which block, and there the how manyeth place it is, from 0 on."""

    block: int
    position: int


class Filling(NamedTuple):
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

    def next(self, cost: int) -> Filling:
        """As it is when one more place was given: the last one of the block it then is."""
        if self.block == 0 or self.document_pages == MAX_URLS or self.document_bytes + cost > ROOM:
            return Filling(self.block + 1, self.document + 1, 1, cost, 1, cost)
        whole = self.document_pages + 1, self.document_bytes + cost
        if self.pages == PAGES or self.bytes + cost > BYTES:
            return Filling(self.block + 1, self.document, 1, cost, *whole)
        return Filling(self.block, self.document, self.pages + 1, self.bytes + cost, *whole)


def cost(site: str, path: str) -> int:
    """The bytes that the entry of a path may come to, at most: a site's base is no longer than its key and a host."""
    grown = path.count("&") + path.count("'") + site.count("&") + site.count("'")
    return _MARKUP + _HOST + len(site) + len(path) + _ESCAPED * grown
