"""An index of patterns by the literal text that they begin with."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class PrefixIndex(Generic[T]):
    """Finds the items that may match a path without trying each of them: an app may have 10,000 routes."""

    def __init__(self) -> None:
        self._items: dict[str, list[tuple[int, T]]] = {}
        """By prefix: items, with their positions in the order in which all were added."""
        self._lengths: set[int] = set()
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, prefix: str, item: T) -> None:
        """Add an item that matches only paths with this prefix."""
        self._count += 1
        self._lengths.add(len(prefix))
        self._items.setdefault(prefix, []).append((self._count, item))

    def find(self, path: str) -> list[T]:
        """The items whose prefix a path has, in the order in which they were added."""
        found = [pair for length in self._lengths if length <= len(path) for pair in self._items.get(path[:length], ())]
        return [item for _, item in sorted(found, key=lambda pair: pair[0])]
