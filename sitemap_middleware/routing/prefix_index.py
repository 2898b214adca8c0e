"""An index of patterns by the literal text that they begin with."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
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
        self._sorted: list[str] = []
        """All prefixes that were there when they were last sorted."""
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
        return self._in_order(found)

    def find_any(self, start: str) -> Sequence[T]:
        """The items that `find` returns for any path with this start, in the order in which they were added."""
        if len(self._sorted) != len(self._items):
            self._sorted = sorted(self._items)
        found = {start[:length] for length in self._lengths if length <= len(start)}.intersection(self._items)
        end = bisect_left(self._sorted, start)
        while end < len(self._sorted) and self._sorted[end].startswith(start):
            found.add(self._sorted[end])
            end += 1
        return self._in_order(found)

    def _in_order(self, prefixes: Iterable[str]) -> list[T]:
        """The items of these prefixes, in the order in which they were added."""
        found = [pair for prefix in prefixes for pair in zip(self._positions[prefix], self._items[prefix], strict=True)]
        return [item for _, item in sorted(found, key=_POSITION)]


def common_start(paths: Collection[str]) -> str:
    """What all of these paths start with."""
    lowest, highest = min(paths), max(paths)  # all others lie between them
    for length, character in enumerate(lowest):
        if highest[length] != character:
            return lowest[:length]
    return lowest
