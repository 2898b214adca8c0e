"""Holds the content histories of many pages in little memory.

Most pages have had one content only. Their runs are kept as numbers in three columns: 24 bytes a page.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ..value_history import History


class CompactHistoryList:
    """The content histories of the pages of a route."""

    def __init__(self) -> None:
        # The single run of each page that has had one content only.
        self.values: array[int] = array("q")
        self.first_seen: array[int] = array("q")
        self.last_seen: array[int] = array("q")
        self.changed: list[History] = []
        """The histories of the pages that have had several contents."""

    def add(self, history: History) -> None:
        """Add the history of a page, which must not be empty."""
        if len(history) > 1:
            self.changed.append(history)
            return
        ((value, first, last),) = history
        self.values.append(value)
        self.first_seen.append(first)
        self.last_seen.append(last)

    def extend(self, other: CompactHistoryList) -> None:
        """Add the pages of another table."""
        self.values += other.values
        self.first_seen += other.first_seen
        self.last_seen += other.last_seen
        self.changed += other.changed

    def __len__(self) -> int:
        return len(self.values) + len(self.changed)


def frequent_values(values: Iterable[int], min_count: int) -> frozenset[int]:
    """The values that occur at least this often."""
    ordered = sorted(values)
    return frozenset(value for value, other in zip(ordered, ordered[min_count - 1 :], strict=False) if value == other)
