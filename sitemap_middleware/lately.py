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

    __slots__ = ("_earlier", "_half", "_now")

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._now: dict[Key, Value] = {}
        self._earlier: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._now) + len(self._earlier)

    def get(self, key: Key) -> Value | None:
        """What was put under a key last, where it is remembered."""
        found = self._now.get(key)
        return self._earlier.get(key) if found is None else found

    def put(self, key: Key, value: Value) -> None:
        """Remember it, and maybe no longer what came longest ago."""
        now = self._now
        if len(now) >= self._half and key not in now:
            self._earlier, self._now = now, {}  # in this order: at no moment is one that is kept in neither
        self._now[key] = value
