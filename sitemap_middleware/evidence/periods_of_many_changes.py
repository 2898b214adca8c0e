"""When the pages of a group were seen, and when so many of them changed that the change may be a template's."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from ..value_history import OVERLAP_SECONDS, VOLATILE, History, Run

MIN_PAGES: Final = 3
"""Number of pages that must change in the same way for it to count as a change of the site."""

MIN_PAGES_IF_ALL: Final = 2
"""Number of pages that is enough if all pages of the group that were seen before and after a time changed then."""

TEMPLATE_CHANGE_SHARE: Final = 0.6
"""If this share of the pages seen before and after a time changed then, their template may have changed."""

ROLLBACK_SHARE: Final = 0.02
"""The same share for pages that changed and then changed back. It is low, because only visits in between show that."""

MAX_ROLLBACK_SECONDS: Final = 24 * 60 * 60
"""The longest time after which a deployment is expected to be rolled back."""

ROLLBACK_MARGIN_SECONDS: Final = 60 * 60
"""How long before and after its sightings a rolled-back deployment may have been live."""

CHANGE_SLACK_SECONDS: Final = OVERLAP_SECONDS // 2
"""How long before or after its time a change may be seen: workers restart in turn, and clocks differ."""

MAX_SINGLE_CONTENTS: Final = 3
"""A page with this many contents that were seen only once counts as new at every visit."""

LIFESPAN_ORDER: Final = attrgetter("first", "last")
"""The sort key of runs by when they began."""


class Lifespans:
    """When each page of a group was first and last seen, and when pages may have changed."""

    def __init__(self) -> None:
        self.first_seen: array[int] = array("q")
        self.last_seen: array[int] = array("q")
        self.changes: list[tuple[int, int]] = []
        """The first and last second of each interval in which a page may have changed."""
        self.rollbacks: list[tuple[int, int]] = []
        """The same for content that replaced another one for a while."""

    def add(self, history: History) -> None:
        """Add a page by its content history."""
        self.first_seen.append(first_of(history))
        self.last_seen.append(last_of(history))
        if len(history) > 1:
            rolled_back = rollbacks(history)
            ordered = [run for run in history if run not in rolled_back] if rolled_back else list(history)
            ordered.sort(key=LIFESPAN_ORDER)
            gaps = [change_gap(ordered[:index], ordered[index]) for index in range(1, len(ordered))]
            self.changes += [(start - CHANGE_SLACK_SECONDS, end + CHANGE_SLACK_SECONDS) for start, end in gaps]
            self.rollbacks += [
                (run.first - ROLLBACK_MARGIN_SECONDS, run.last + ROLLBACK_MARGIN_SECONDS) for run in rolled_back
            ]

    def extend(self, others: Lifespans) -> None:
        """Add the pages of another group."""
        self.first_seen += others.first_seen
        self.last_seen += others.last_seen
        self.changes += others.changes
        self.rollbacks += others.rollbacks


def first_of(history: History) -> int:
    """When the first value was first seen."""
    return min([run.first for run in history])


def last_of(history: History) -> int:
    """When any value was last seen."""
    return max([run.last for run in history])


def _count_changes(spans: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The times at which the number of open spans changes, and by how much."""
    deltas: dict[int, int] = {}
    for first, last in spans:
        deltas[first] = deltas.get(first, 0) + 1
        deltas[last + 1] = deltas.get(last + 1, 0) - 1
    return deltas


class AmbiguousPeriods:
    """The times at which a template may have changed, so that an edit then cannot be told from it.

    A time is ambiguous if

    - too few pages were seen before and after it to tell;
    - most pages that were seen before and after it changed around it;
    - several pages had another content around it and then the one before again: a deployment was rolled back.
    """

    def __init__(self, lives: Lifespans, *, min_seen: int, min_changed: int) -> None:
        """Find the ambiguous times.

        Args:
            lives: the pages of the group.
            min_seen: the pages that must have been seen before and after a time for it to be clear.
            min_changed: the pages that must have changed around a time for it to be ambiguous.
        """
        firsts, lasts = array("q", sorted(lives.first_seen)), array("q", sorted(lives.last_seen))
        changing, leaving = _count_changes(lives.changes), _count_changes(lives.rollbacks)
        started = ended = changed = rolled_back = 0
        ambiguous = self._begins_ambiguous = min_seen > 0
        self._turns: list[int] = []
        """The times at which the group becomes ambiguous and clear, in turn, beginning with `not _begins_ambiguous`."""
        for at in sorted({*firsts, *[last + 1 for last in lasts], *changing, *leaving}):
            started, ended = bisect_right(firsts, at, started), bisect_left(lasts, at, ended)
            alive = started - ended  # pages seen both before and after
            changed += changing.get(at, 0)
            rolled_back += leaving.get(at, 0)
            is_ambiguous = (
                alive < min_seen
                or (changed >= min_changed and changed >= TEMPLATE_CHANGE_SHARE * alive)
                or (MIN_PAGES_IF_ALL <= alive == changed and min_changed <= len(firsts))
                or (rolled_back >= MIN_PAGES and rolled_back >= ROLLBACK_SHARE * alive)
            )
            if is_ambiguous is not ambiguous:
                ambiguous = is_ambiguous
                self._turns.append(at)

    @property
    def ambiguous_since(self) -> int | None:
        """The time since which it is ambiguous; None if it is clear now."""
        if self._begins_ambiguous is (len(self._turns) % 2 == 1):
            return None
        return self._turns[-1] if self._turns else 0

    def settled_turns(self) -> object:
        """The boundaries of the periods, without the start of an ambiguous period that is still open."""
        return self._begins_ambiguous, self._turns if self.ambiguous_since is None else self._turns[:-1]

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any time from start to end is ambiguous."""
        first, last = bisect_left(self._turns, start + 1), bisect_left(self._turns, end + 1)
        return first != last or self._begins_ambiguous is (first % 2 == 0)


def change_gap(before: list[Run], after: Run) -> tuple[int, int]:
    """The interval in which a content appeared: from the last sight of an earlier content to the first of this one."""
    return max((run.last for run in before if run.last <= after.first), default=after.first), after.first


def rollbacks(history: History) -> list[Run]:
    """Contents seen for less than a day, between two times at which another content was seen.

    For example, A on Monday, B for an hour on Tuesday, and A again on Wednesday: B was rolled back.
    """
    return [
        run
        for run in history
        if run.last - run.first < MAX_ROLLBACK_SECONDS
        and any(other.first < run.first and run.last < other.last for other in history)
    ]


def is_always_new(history: History) -> bool:
    """Whether a page differs from visit to visit, so that its changes say nothing about the template."""
    seen_once = 0
    for value, first, last in history:
        if value == VOLATILE:
            return True
        seen_once += first == last
    return seen_once >= MAX_SINGLE_CONTENTS
