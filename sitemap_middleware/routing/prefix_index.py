"""An index of patterns by the literal text that they begin with."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_POSITION: Final = itemgetter(0)


class PrefixIndex(Generic[T]):
    """Finds the items that may match a path without trying each of them."""

    def __init__(self) -> None:
        self._items: dict[str, list[T]] = {}
        """By prefix, in the order in which items were added."""
        self._positions: dict[str, list[int]] = {}
        """By prefix, the position of each item in the order in which all items were added."""
        self._lengths: list[int] = []
        """The lengths of the prefixes, in ascending order."""
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, prefix: str, item: T) -> None:
        """Add an item that matches only paths with this prefix."""
        if prefix not in self._items:
            self._items[prefix] = []
            self._positions[prefix] = []
            if len(prefix) not in self._lengths:
                insort(self._lengths, len(prefix))
        self._items[prefix].append(item)
        self._positions[prefix].append(self._count)
        self._count += 1

    def find(self, path: str) -> Sequence[T]:
        """The items whose prefix a path has, in the order in which they were added."""
        items, path_length = self._items, len(path)
        found = [prefix for length in self._lengths if length <= path_length and (prefix := path[:length]) in items]
        if len(found) < 2:  # the common case
            return items[found[0]] if found else []
        positions = [position for prefix in found for position in self._positions[prefix]]
        found_items = [item for prefix in found for item in items[prefix]]
        ordered = sorted(zip(positions, found_items, strict=True), key=_POSITION)
        return [item for _, item in ordered]
