"""Lifetimes: when pages were seen, and when their contents changed, all pages of a group taken together."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import Final

from ..history import OVERLAP_SECONDS, VOLATILE, History, Run

MIN_PAGES: Final = 3
"""Pages, at least, that show a thing to be the site's; and contents seen once that show a page to be restless."""

FEW: Final = 2
"""Pages that show it in a larger group if no other page of it was seen on both sides."""

TEMPLATE_CHANGE_SHARE: Final = 0.6
"""The share of those pages that, changing at that moment, shows that it was their template that changed."""

ROLLBACK_SHARE: Final = 0.02
"""The share that shows it where they changed and then changed back: only those seen in between are known to have."""

MAX_ROLLBACK_SECONDS: Final = 24 * 60 * 60
"""Seconds within which a deployment is taken back, if it is."""

ROLLBACK_MARGIN_SECONDS: Final = 60 * 60
"""Seconds before and after which a deployment may have begun and been taken back, from when it was seen."""

CHANGE_SLACK_SECONDS: Final = OVERLAP_SECONDS // 2
"""Seconds by which a change may be seen earlier or later than it was: workers restart in turn, and clocks differ."""

LIFESPAN_ORDER: Final = attrgetter("first", "last")


class Lifespans:
    """When each of some pages was seen first and last, and when they may have changed."""

    def __init__(self) -> None:
        self.first_seen, self.last_seen = array("q"), array("q")
        self.changes: list[tuple[int, int]] = []
        self.rollbacks: list[tuple[int, int]] = []
        """Each of both from a first to a last second."""

    def add(self, history: History) -> None:
        """Add a page that was seen with these contents."""
        self.first_seen.append(first_of(history))
        self.last_seen.append(last_of(history))
        if len(history) > 1:
            detours = rollbacks(history)
            ordered = [run for run in history if run not in detours] if detours else list(history)
            ordered.sort(key=LIFESPAN_ORDER)
            gaps = [change_gap(ordered[:index], ordered[index]) for index in range(1, len(ordered))]
            self.changes += [(start - CHANGE_SLACK_SECONDS, end + CHANGE_SLACK_SECONDS) for start, end in gaps]
            self.rollbacks += [
                (run.first - ROLLBACK_MARGIN_SECONDS, run.last + ROLLBACK_MARGIN_SECONDS) for run in detours
            ]

    def extend(self, others: Lifespans) -> None:
        """Add other pages."""
        self.first_seen += others.first_seen
        self.last_seen += others.last_seen
        self.changes += others.changes
        self.rollbacks += others.rollbacks


def first_of(history: History) -> int:
    """Its first sight."""
    return min([run.first for run in history])


def last_of(history: History) -> int:
    """And its last."""
    return max([run.last for run in history])


def _count_changes(spans: Iterable[tuple[int, int]]) -> dict[int, int]:
    """By how much there are more or fewer of these spans from a moment on, for every moment at which that changes."""
    turns: dict[int, int] = {}
    for first, last in spans:
        turns[first] = turns.get(first, 0) + 1
        turns[last + 1] = turns.get(last + 1, 0) - 1
    return turns


class AmbiguousPeriods:
    """The times at which a template may have changed on some pages.

    Most of the pages that were seen on both sides changed then, or too few were
    seen to tell; or several had another content for a while and then the one
    before again, as when a deployment is taken back.
    """

    def __init__(self, lives: Lifespans, *, least: int, many: int) -> None:
        firsts, lasts = array("q", sorted(lives.first_seen)), array("q", sorted(lives.last_seen))
        changing, leaving = _count_changes(lives.changes), _count_changes(lives.rollbacks)
        begun = ended = broken = away = 0
        unclear = self._begins = least > 0
        self._turns: list[int] = []
        """When it becomes unclear and clear again, in turn; unclear before the first, where pages are wanted."""
        moments = merge(firsts, (last + 1 for last in lasts), sorted(changing), sorted(leaving))
        for at, _ in groupby(moments):  # each once, and none is kept
            begun, ended = bisect_right(firsts, at, begun), bisect_left(lasts, at, ended)
            alive = begun - ended
            broken += changing.get(at, 0)
            away += leaving.get(at, 0)
            now = (
                alive < least
                or (broken >= many and broken >= TEMPLATE_CHANGE_SHARE * alive)
                or (FEW <= alive == broken and many <= len(firsts))
                or (away >= MIN_PAGES and away >= ROLLBACK_SHARE * alive)
            )
            if now is not unclear:
                unclear = now
                self._turns.append(at)

    @property
    def unclear_since(self) -> int | None:
        """From when on it is unclear, if it is at the end."""
        if self._begins is (len(self._turns) % 2 == 1):
            return None
        return self._turns[-1] if self._turns else 0

    def settled_turns(self) -> object:
        """The turns, but for the last that makes it unclear."""
        return self._begins, self._turns if self.unclear_since is None else self._turns[:-1]

    def overlaps(self, start: int, end: int) -> bool:
        """Whether it is unclear at any moment from start to end."""
        first, last = bisect_left(self._turns, start + 1), bisect_left(self._turns, end + 1)
        return first != last or self._begins is (first % 2 == 0)


def change_gap(before: list[Run], after: Run) -> tuple[int, int]:
    """Between the last sight of what was there before a content, and its own first."""
    return max((run.last for run in before if run.last <= after.first), default=after.first), after.first


def rollbacks(history: History) -> list[Run]:
    """Contents that were seen for a while, in place of another that was seen before and after."""
    return [
        run
        for run in history
        if run.last - run.first < MAX_ROLLBACK_SECONDS
        and any(one.first < run.first and run.last < one.last for one in history)
    ]


def is_always_new(history: History) -> bool:
    """Whether a page is new so often that its changing tells nothing of others."""
    once = 0
    for value, first, last in history:
        if value == VOLATILE:
            return True
        once += first == last
    return once >= MIN_PAGES
