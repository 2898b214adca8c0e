"""Things that take in paths, by the literal that all of these begin with."""

from __future__ import annotations

from bisect import insort
from typing import Generic, TypeVar

T = TypeVar("T")


class PrefixIndex(Generic[T]):
    """Which of many things may take in a path, without asking each of them."""

    def __init__(self) -> None:
        self._things: dict[str, list[tuple[int, T]]] = {}
        self._lengths: list[int] = []
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, prefix: str, thing: T) -> None:
        """Add one that takes in only paths that begin so."""
        same = self._things.get(prefix)
        if same is None:
            same = self._things[prefix] = []
            if len(prefix) not in self._lengths:
                insort(self._lengths, len(prefix))
        same.append((self._count, thing))
        self._count += 1

    def find(self, path: str) -> list[T]:
        """Those of which the path begins as it must, in the order in which they were added."""
        found: list[tuple[int, T]] = []
        whole = len(path)
        for length in self._lengths:
            if length > whole:
                break
            found += self._things.get(path[:length], ())
        if len(found) > 1:
            found.sort(key=_number)
        return [thing for _, thing in found]


def _number(numbered: tuple[int, object]) -> int:
    return numbered[0]
