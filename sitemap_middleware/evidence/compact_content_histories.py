"""Holds the content histories of many pages in little memory.

Most pages have had one content only. Their runs are kept as numbers in three columns: 24 bytes a page.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ..value_history import History
from .page_columns import RunColumns, histories


class CompactContentHistories:
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

    def add_columns(self, runs: Sequence[RunColumns]) -> None:
        """Add the histories of many pages, which have equal numbers of runs. If that is zero, nothing is added."""
        if len(runs) != 1:
            self.changed += histories(runs, 0)
            return
        self.values.extend(runs[0].values)
        self.first_seen.extend(runs[0].first_seen)
        self.last_seen.extend(runs[0].last_seen)

    def extend(self, other: CompactContentHistories) -> None:
        """Add the pages of another table."""
        self.values += other.values
        self.first_seen += other.first_seen
        self.last_seen += other.last_seen
        self.changed += other.changed

    def all_values(self) -> Iterator[int]:
        """The values of all runs of all pages."""
        return chain(self.values, (run.value for history in self.changed for run in history))

    def __len__(self) -> int:
        return len(self.values) + len(self.changed)


def frequent_values(values: Iterable[int], min_count: int) -> frozenset[int]:
    """The values that occur at least this often."""
    ordered = sorted(values)
    return frozenset(value for value, other in zip(ordered, ordered[min_count - 1 :], strict=False) if value == other)
