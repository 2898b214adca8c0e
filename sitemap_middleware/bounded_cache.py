"""A mapping of bounded size that keeps the keys stored most recently."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """A mapping of at most `max_keys` keys. The half that was stored last is always kept. Threads may share it.

    Keys live in two generations. When the recent one is full it becomes the older
    one, and the previous older one is dropped as a whole. Evicting keys one by one,
    in the order of insertion, would leave holes that the dictionary must be rebuilt
    to close.
    """

    __slots__ = ("_generation_size", "_older", "_recent")

    def __init__(self, max_keys: int) -> None:
        self._generation_size = max_keys // 2
        self._recent: dict[Key, Value] = {}
        self._older: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def get(self, key: Key) -> Value | None:
        """Return the value stored last under a key; None if it was evicted."""
        value = self._recent.get(key)
        return self._older.get(key) if value is None else value

    def kept_keys(self) -> list[Key]:
        """Return the keys that are kept."""
        return [*{**self._older, **self._recent}]

    def put(self, key: Key, value: Value) -> None:
        recent = self._recent
        if len(recent) >= self._generation_size and key not in recent:
            # Assigned in this order, so that a concurrent reader finds every kept key in one of the two.
            self._older, self._recent = recent, {}
        self._recent[key] = value
