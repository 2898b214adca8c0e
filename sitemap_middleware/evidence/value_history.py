"""Histories: which values something had, and when each was seen.

A history is a set of runs. A run is a value and the times at which it was first and last seen:

    >>> add_sighting(add_sighting((), 7, at=100), 7, at=160)
    (Run(value=7, first=100, last=160),)

The result is the same in whatever order the values are added, and however often, so workers that see the same responses
build the same history.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from .dates import SECONDS_PER_DAY

MAX_RUNS: Final = 8
"""Runs kept per history, those seen last. A value that changes more often than that has no useful history."""

OVERLAP_SECONDS: Final = 15 * 60
"""How long an old and a new value may be served side by side while workers restart one after the other."""

VOLATILE: Final = -(2**63)
"""The value of content that differs between requests a few seconds apart. No digest has this value."""


GENERATED_DATE_SECONDS: Final = 60
"""A date that was not seen to stay the same for so long may have been generated for its response."""

ROUNDED_SECONDS: Final = 15 * 60
"""A date that is a multiple of this may be a rounded clock: every full hour is, and midnight in every time zone."""

MAX_ROUNDED_AGE_SECONDS: Final = 2 * SECONDS_PER_DAY
"""The age that a rounded clock does not reach. The midnight before the last is less than two days old."""

MAX_BACKDATED_SECONDS: Final = 32 * SECONDS_PER_DAY
"""The largest fixed distance by which a server is expected to date its responses back."""


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
    - values alternate (A, B, A), and the present one is one of these;
    - the present value is older than the last sign that the content is `VOLATILE`.
    """
    volatile_until = max((run.last for run in history if run.value == VOLATILE), default=-1)
    runs = [run for run in history if run.value != VOLATILE and run.first > volatile_until]
    present = next((run for run in reversed(runs) if run.was_repeated), None)
    if present is None:
        return None
    earlier = [run for run in runs if run.first < present.first]
    alternates = any(_overlap(present, other) or _interrupts(present, other) for other in runs if other is not present)
    if alternates or not any(run.was_repeated for run in earlier):
        return None
    old_until = max(run.last for run in earlier)
    return min(old_until, present.first), max(old_until, present.first)


def _overlap(run: Run, other: Run) -> bool:
    return min(run.last, other.last) - max(run.first, other.first) > OVERLAP_SECONDS


def _interrupts(present: Run, other: Run) -> bool:
    """Whether the other value appeared after the present one, which was then seen again."""
    return other.first > present.first and present.last - other.last > OVERLAP_SECONDS


# Dates that a server generates for each response


def is_credible(dates: History, value: int) -> bool:
    """Whether a value of a history of dates is a date of content rather than the time on a clock.

    - A rounded date may be a rounded clock until it is older than such a clock ever shows.
    - Any other is credible if some date was seen to stay the same for a minute.
    - If none was, the date may be made for its response at a fixed distance to it, unless it is older than that.
    """
    run = next((run for run in dates if run.value == value), None)
    if run is None:
        return False
    longest = max(other.last - other.first for other in dates)
    if value % ROUNDED_SECONDS == 0:
        return max(longest, run.last - value) >= MAX_ROUNDED_AGE_SECONDS
    return longest >= GENERATED_DATE_SECONDS or run.first - value >= MAX_BACKDATED_SECONDS


def is_generated(dates: History) -> bool:
    """Whether dates may be generated for each response. Then they show no deployment."""
    return all(
        last - first < GENERATED_DATE_SECONDS and first - value < GENERATED_DATE_SECONDS for value, first, last in dates
    )


def changes_without_content(dates: History, contents: History, deployed: Callable[[int], bool]) -> bool:
    """Whether a date is not one of the content: most of its changes, and at least two, left the content the same.

    Dates that alternate are not either: each may be that of a server.

    Not counted is a change to the date of a deployment, which also changes the dates of files that stay the same.
    """
    if any(_overlap(run, other) for run, other in combinations(dates, 2)):
        return True
    runs = sorted(dates, key=lambda run: (run.first, run.last, run.value))
    changes = [(before.last, after.first) for before, after in pairwise(runs) if not deployed(after.value)]
    alone = sum(any(run.first <= start and run.last >= end for run in contents) for start, end in changes)
    return alone >= 2 and 2 * alone > len(changes)
