"""Rebuilding what a store knows of its pages besides the pages: the counts of routes, and the blocks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Generic, TypeVar

from .base import UNLEARNED_BLOCK
from .placement import MAX_BLOCK_PAGES, PlacementCursor, entry_size

Route = TypeVar("Route")


class RebuiltSite(Generic[Route]):
    """The blocks and routes of one site, counted anew of its pages."""

    def __init__(self, site: str, documents: Mapping[int, int]) -> None:
        """`site`: its key. `documents`: the document of each block, as far as that is known still."""
        self._site = site
        self._documents = {number: one for number, one in documents.items() if 1 <= one <= number}
        self._pages = Counter[int]()
        self._given = Counter[int]()
        self._cost = Counter[int]()
        self.routes = Counter[Route]()
        """How many pages were learned of each."""

    def add(self, block: int, position: int, path: str, route: Route) -> None:
        """Count a page in its place."""
        self._pages[block] += 1
        self._given[block] = max(self._given[block], position + 1)
        if block != UNLEARNED_BLOCK:
            self._cost[block] += entry_size(self._site, path)
            self.routes[route] += 1

    def blocks(self) -> list[tuple[int, int, int, int, int]]:
        """Each block: its number, its document, its pages, the places given in it, and what these cost.

        A block without pages keeps its number, and no place is given in it any more.
        """
        document, found = 1, []
        last = max(self._pages, default=UNLEARNED_BLOCK)
        for number in sorted({*self._pages, *(number for number in self._documents if number <= last)}):
            if number == UNLEARNED_BLOCK:
                found.append((UNLEARNED_BLOCK, 0, self._pages[UNLEARNED_BLOCK], self._given[UNLEARNED_BLOCK], 0))
                continue
            document = max(document, self._documents.get(number, document))
            given = self._given[number] or MAX_BLOCK_PAGES
            found.append((number, document, self._pages[number], given, self._cost[number]))
        return found

    def cursor(self) -> tuple[PlacementCursor, int]:
        """What new pages go into, and how many places were given to pages that are not learned."""
        blocks = self.blocks()
        learned = [block for block in blocks if block[0] != UNLEARNED_BLOCK]
        named = self._given[UNLEARNED_BLOCK]
        if not learned:
            return PlacementCursor(), named
        number, document, _, given, spent = learned[-1]
        whole = [block for block in learned if block[1] == document]
        return (
            PlacementCursor(
                number, document, given, spent, sum(block[3] for block in whole), sum(block[4] for block in whole)
            ),
            named,
        )
