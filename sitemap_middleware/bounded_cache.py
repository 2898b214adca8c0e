"""What came lately: a bounded memory, whatever comes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """A mapping that remembers `most` keys at most, and those that were put last, half as many, in any case.

    It is two dictionaries in turn, of which the earlier is let go whole: one from which
    a key goes for each that comes is made anew over and over. Threads may share it.
    """

    __slots__ = ("_half_size", "_older", "_recent")

    def __init__(self, most: int) -> None:
        self._half_size = most // 2
        self._recent: dict[Key, Value] = {}
        self._older: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def get(self, key: Key) -> Value | None:
        """What was put under a key last, where it is remembered."""
        found = self._recent.get(key)
        return self._older.get(key) if found is None else found

    def put(self, key: Key, value: Value) -> None:
        """Remember it, and maybe no longer what came longest ago."""
        now = self._recent
        if len(now) >= self._half_size and key not in now:
            self._older, self._recent = now, {}  # in this order: at no moment is one that is kept in neither
        self._recent[key] = value
