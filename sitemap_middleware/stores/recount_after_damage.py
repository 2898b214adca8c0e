"""Recomputes the page counts of routes and the blocks of a site from its pages, after damage. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from .base import UNLEARNED_BLOCK
from .permanent_page_slots import MAX_BLOCK_PAGES, PlacementCursor, entry_size

Route = TypeVar("Route")


class RebuiltBlock(NamedTuple):
    """A block as it is stored."""

    number: int
    document: int
    pages: int
    slots: int
    """Slots given."""
    entry_bytes: int
    """Bytes reserved for them."""


class RebuiltSite(Generic[Route]):
    """Collects the pages of one site.

    Args:
        store_key: the site's key.
        documents: the document of each block, as far as it is still known.
    """

    def __init__(self, store_key: str, documents: Mapping[int, int]) -> None:
        self._store_key = store_key
        # Every block fills at least a part of one document, so a greater document number is damaged.
        self._documents = {block: document for block, document in documents.items() if 1 <= document <= block}
        self._pages = Counter[int]()
        self._slots = Counter[int]()
        self._entry_bytes = Counter[int]()
        self.routes: Counter[Route] = Counter[Route]()
        """Learned pages of each route."""

    def add(self, block: int, position: int, path: str, route: Route) -> None:
        """Add a page."""
        self._pages[block] += 1
        self._slots[block] = max(self._slots[block], position + 1)
        if block != UNLEARNED_BLOCK:
            self._entry_bytes[block] += entry_size(self._store_key, path)
            self.routes[route] += 1

    def blocks(self) -> list[RebuiltBlock]:
        """All blocks in the order of their numbers. Blocks without pages remain and count as full."""
        document, blocks = 1, []
        last = max(self._pages, default=UNLEARNED_BLOCK)
        for number in sorted({*self._pages, *(number for number in self._documents if number <= last)}):
            pages, slots = self._pages[number], self._slots[number]
            if number == UNLEARNED_BLOCK:
                blocks.append(RebuiltBlock(number, 0, pages, slots, 0))
                continue
            document = max(document, self._documents.get(number, document))
            blocks.append(RebuiltBlock(number, document, pages, slots or MAX_BLOCK_PAGES, self._entry_bytes[number]))
        return blocks

    def cursor(self) -> tuple[PlacementCursor, int]:
        """The cursor after the last block, and how many slots were given to unlearned pages."""
        learned = [block for block in self.blocks() if block.number != UNLEARNED_BLOCK]
        rows = ((block.number, block.document, block.slots, block.entry_bytes) for block in reversed(learned))
        return PlacementCursor.after_blocks(rows), self._slots[UNLEARNED_BLOCK]
