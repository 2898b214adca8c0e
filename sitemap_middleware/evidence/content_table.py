"""What many pages said, in the room of few: those that said one thing alone are numbers in columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ..history import History


class ContentTable:
    """What the pages of a route said, and when."""

    def __init__(self) -> None:
        self.values, self.first_seen, self.last_seen = array("q"), array("q"), array("q")
        """One of each, of every page that said one thing alone."""
        self.changed: list[History] = []
        """The pages that said several things."""

    def add(self, history: History) -> None:
        """Add the contents that a page was seen with, of which there is one at least."""
        if len(history) > 1:
            self.changed.append(history)
            return
        ((value, first, last),) = history
        self.values.append(value)
        self.first_seen.append(first)
        self.last_seen.append(last)

    def extend(self, other: ContentTable) -> None:
        """Add the pages of another route."""
        self.values += other.values
        self.first_seen += other.first_seen
        self.last_seen += other.last_seen
        self.changed += other.changed

    def __len__(self) -> int:
        return len(self.values) + len(self.changed)


def frequent_values(values: Iterable[int], least: int) -> frozenset[int]:
    """The values of which there are so many at least."""
    ordered = sorted(values)
    return frozenset(value for value, other in zip(ordered, ordered[least - 1 :], strict=False) if value == other)
