"""Plans the writes of one merge: the slots of new pages, and the blocks that changed; the same for every engine. Pure.

An engine reads and writes with its own statements. It asks this module where a page
is written, and which blocks that changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from ..urls import has_slash_like, toggle_trailing_slash
from .base import UNLEARNED_BLOCK
from .page_codec import PackedPage
from .permanent_page_slots import PlacementCursor, entry_sizes

Location = TypeVar("Location")
"""How an engine refers to a stored page, such as by its row."""


class NewPages(NamedTuple):
    """Pages to be stored in consecutive slots of one block."""

    block: int
    position: int
    """The position of the first page."""
    pages: Sequence[PackedPage]


class PlacedPages(NamedTuple, Generic[Location]):
    """Where the changed pages of a batch are written."""

    updated: list[tuple[Location, PackedPage]]
    """Pages that keep their slot."""
    removed: dict[str, Location]
    """The locations, by path, of pages that leave their slot for one among `new`."""
    new: list[NewPages]


class BlockChange(NamedTuple):
    """How a transaction changes a block."""

    number: int
    document: int
    """0 if the block is not new."""
    pages: int
    """By how many pages it grows; negative if it shrinks, 0 if pages only changed."""
    slots: int
    """How many slots it has now; 0 if no slot was added."""
    bytes: int
    """Bytes reserved for its slots; 0 if no slot was added."""


class SiteChanges(Generic[Location]):
    """What one transaction changes of a site: where pages are written, and which blocks change.

    A page keeps its slot until it becomes learned, or is learned no longer. Then it moves to a new slot.

    Args:
        store_key: the site's key.
        cursor: where the next learned page goes.
        unlearned_slots: slots given to unlearned pages so far.
        has_slash_variants: whether the site may have pages whose paths differ only by a trailing slash.
        block_of: the block of a location.
    """

    def __init__(
        self,
        store_key: str,
        cursor: PlacementCursor,
        unlearned_slots: int,
        *,
        has_slash_variants: bool,
        block_of: Callable[[Location], int],
    ) -> None:
        self.cursor: PlacementCursor = cursor
        self.unlearned_slots: int = unlearned_slots
        self.has_slash_variants: bool = has_slash_variants
        self._store_key = store_key
        self._block_of = block_of
        self._paths: set[str] = set()
        self._block_growth = Counter[int]()
        self._filled_blocks: dict[int, PlacementCursor] = {}

    def place(
        self, pages: Sequence[PackedPage], location_of: Callable[[str], Location | None]
    ) -> PlacedPages[Location]:
        """Decide where new and changed pages are written. May be called batch by batch.

        Args:
            pages: each path at most once in all batches.
            location_of: the location of the stored page of a path, if there is one.
        """
        self._paths.update([page.path for page in pages])
        self.has_slash_variants = self.has_slash_variants or _any_slash_unlike_route(pages)
        updated: list[tuple[Location, PackedPage]] = []
        removed: dict[str, Location] = {}
        learned: list[PackedPage] = []
        unlearned: list[PackedPage] = []
        block_of, growth = self._block_of, self._block_growth
        for page in pages:
            location = location_of(page.path)
            if location is not None:
                block = block_of(location)
                if page.learned is (block != UNLEARNED_BLOCK):
                    growth.setdefault(block, 0)
                    updated.append((location, page))
                    continue
                growth[block] -= 1
                removed[page.path] = location
            (learned if page.learned else unlearned).append(page)
        new = list(self._place_learned(learned))
        if unlearned:
            new.append(self._place_unlearned(unlearned))
        return PlacedPages(updated, removed, new)

    def remove(self, pages: Iterable[tuple[str, Location]]) -> None:
        """Record that pages are deleted."""
        for path, location in pages:
            self._paths.add(path)
            self._block_growth[self._block_of(location)] -= 1

    def slash_variants(self) -> set[str]:
        """The paths that differ from a changed page's only by a trailing slash.

        One of two such pages may be a copy of the other, so a change of one may list or unlist the other.
        There are none while each learned page ends with a slash exactly if its route does.
        """
        if not self.has_slash_variants:
            return set()
        return {toggle_trailing_slash(path) for path in self._paths} - self._paths

    def touch(self, locations: Iterable[Location]) -> None:
        """Record that the blocks of these pages are to be rendered again."""
        for block in {self._block_of(location) for location in locations}:
            self._block_growth[block] += 0

    def blocks(self) -> list[BlockChange]:
        """The blocks that change."""
        unfilled = PlacementCursor()
        changes = []
        for number, growth in self._block_growth.items():
            filled = self._filled_blocks.get(number, unfilled)
            slots = self.unlearned_slots if number == UNLEARNED_BLOCK else filled.pages
            changes.append(BlockChange(number, filled.document, growth, slots, filled.bytes))
        return changes

    def _place_learned(self, pages: Sequence[PackedPage]) -> Iterator[NewPages]:
        start = 0
        for count, cursor in self.cursor.advance_many(entry_sizes(self._store_key, [page.path for page in pages])):
            self.cursor = self._filled_blocks[cursor.block] = cursor
            self._block_growth[cursor.block] += count
            yield NewPages(cursor.block, cursor.pages - count, pages[start : start + count])
            start += count

    def _place_unlearned(self, pages: Sequence[PackedPage]) -> NewPages:
        position = self.unlearned_slots
        self.unlearned_slots += len(pages)
        self._block_growth[UNLEARNED_BLOCK] += len(pages)
        return NewPages(UNLEARNED_BLOCK, position, pages)


def _any_slash_unlike_route(pages: Collection[PackedPage]) -> bool:
    """Whether a learned page ends with a slash and its route does not, or the reverse."""
    if "/" not in {text[-1:] for page in pages for text in (page.path, page.route)}:  # most sites: in half the time
        return False
    return any(page.learned and not has_slash_like(page.path, page.route) for page in pages)
