"""An index of patterns by the literal text that they begin with."""

from __future__ import annotations

from bisect import insort
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")


class PrefixIndex(Generic[T]):
    """Finds the items that may match a path without trying each of them."""

    def __init__(self) -> None:
        self._items: dict[str, list[tuple[int, T]]] = {}
        """By prefix, each item with its position in the order in which items were added."""
        self._lengths: list[int] = []
        """The lengths of the prefixes, in ascending order."""
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, prefix: str, item: T) -> None:
        """Add an item that matches only paths with this prefix."""
        items = self._items.get(prefix)
        if items is None:
            items = self._items[prefix] = []
            if len(prefix) not in self._lengths:
                insort(self._lengths, len(prefix))
        items.append((self._count, item))
        self._count += 1

    def find(self, path: str) -> list[T]:
        """The items whose prefix a path has, in the order in which they were added."""
        found: list[tuple[int, T]] = []
        path_length = len(path)
        for length in self._lengths:
            if length > path_length:
                break
            found += self._items.get(path[:length], ())
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        return [item for _, item in found]
