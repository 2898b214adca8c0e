"""Histories: which values something had, and when each was seen.

A history is a set of runs. A run is a value and the times at which it was first and last seen:

    >>> add_sighting(add_sighting((), 7, at=100), 7, at=160)
    (Run(value=7, first=100, last=160),)

The result is the same in whatever order the values are added, and however often, so workers that see the same responses
build the same history.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from operator import attrgetter
from typing import Final, NamedTuple

MAX_RUNS: Final = 8
"""Runs kept per history, those seen last. A value that changes more often than that has no useful history."""

OVERLAP_SECONDS: Final = 15 * 60
"""How long an old and a new value may be served side by side while workers restart one after the other."""

VOLATILE: Final = -(2**63)
"""The value of content that differs between requests a few seconds apart. No digest has this value."""


class Run(NamedTuple):
    """A value, and when it was first and last seen, in POSIX seconds."""

    value: int
    first: int
    last: int

    @property
    def was_repeated(self) -> bool:
        """Whether the value was seen at two times."""
        return self.first < self.last


History = tuple[Run, ...]

RUN_ORDER: Final = attrgetter("last", "first", "value")
"""The sort key of the runs of a history."""


def add_sighting(history: History, value: int, at: int) -> History:
    """The history with one more sighting."""
    known = next((run for run in history if run.value == value), Run(value, at, at))
    runs = [run for run in history if run is not known]
    runs.append(Run(value, min(known.first, at), max(known.last, at)))
    runs.sort(key=RUN_ORDER)
    if len(runs) > MAX_RUNS:
        runs.remove(next(run for run in runs if run.value != VOLATILE))
    return tuple(runs)


def last_change(history: History) -> tuple[int, int] | None:
    """The interval in which the present value replaced the one before: last time of the old, first time of the new.

    For example, the runs (A, 0, 10) and (B, 15, 30) give (10, 15). The present value is the latest that was seen twice,
    because a value seen once may be an accident. The result is None if

    - no earlier value was seen twice: the first value of a page is not a change;
    - values alternate (A, B, A), and the present one has not been alone for as long as they alternated;
    - the present value is older than the last sign that the content is `VOLATILE`.
    """
    volatile_until = max((run.last for run in history if run.value == VOLATILE), default=-1)
    runs = [run for run in history if run.value != VOLATILE and run.first > volatile_until]
    present = next((run for run in reversed(runs) if run.was_repeated), None)
    if present is None:
        return None
    earlier = [run for run in runs if run.first < present.first]
    if not any(run.was_repeated for run in earlier) or _alternates(runs, present):
        return None
    old_until = max(run.last for run in earlier)
    return min(old_until, present.first), max(old_until, present.first)


def _alternates(runs: Sequence[Run], present: Run) -> bool:
    """Whether values come and go, and the present one has not yet been alone for as long as they did."""
    others = [run for run in runs if run is not present]
    if any(_overlap(present, other) or _interrupts(present, other) for other in others):
        return True
    if not any(_overlap(run, other) for run, other in combinations(others, 2)):
        return False
    alone_since = max(run.last for run in others)
    return present.last - alone_since < alone_since - min(run.first for run in runs)


def _overlap(run: Run, other: Run) -> bool:
    return min(run.last, other.last) - max(run.first, other.first) > OVERLAP_SECONDS


def _interrupts(present: Run, other: Run) -> bool:
    """Whether the other value appeared after the present one, which was then seen again."""
    return other.first > present.first and present.last - other.last > OVERLAP_SECONDS
