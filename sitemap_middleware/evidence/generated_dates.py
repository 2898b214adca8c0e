"""Clocks: dates that a server makes up for its answers, told from dates of the content by how they move.

Pure functions over the history of a page's Last-Modified, or of the dates that it states.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Final

from ..dates import SECONDS_PER_DAY
from ..history import VOLATILE, History, Run
from .site_signals import CLOCK_JITTER_SECONDS, GENERATED_DATE_SECONDS, MIN_STEADY_DATES, has_steady_age

UNSEEN_FACTOR: Final = 4
"""How many times as long as a value was ever shown a page must have gone unseen between two, to be known as a clock
that a cache keeps."""

ROUNDED_CLOCKS: Final = ((15 * 60, 2 * SECONDS_PER_DAY), (5 * 60, 20 * 60))
"""Seconds of which a rounded clock shows multiples, and how old a date is that no such clock shows.

Every full hour, and midnight in every time zone, is a multiple of a quarter of an hour. The midnight before the last
is less than two days old.
"""

MAX_BACKDATED_SECONDS: Final = 32 * 24 * 60 * 60
"""Seconds past which no server dates its answers back by a fixed time."""

RECENT_SECONDS: Final = 60 * 60
"""Seconds within which a date that was never seen to stand still may have been made up at some distance to now."""

BACKDATING_STEP_SECONDS: Final = 5 * 60
"""Seconds: servers that date their answers back do so by multiples of this."""


def is_credible(dates: History, value: int) -> bool:
    """Whether a value of a history of dates is a date rather than the time on a clock.

    A value as old as the answer could have been made up for it, so a page must
    be seen to let one stand still. A value that is new on answer after answer,
    always the same distance behind the clock, is a clock. A rounded value may be
    one until it is older than such a clock ever shows.
    """
    if _is_cached_clock(dates):
        return False
    stood = any(run.last - run.first >= GENERATED_DATE_SECONDS for run in dates)
    if not stood and has_steady_age([run.first - run.value for run in dates[-MIN_STEADY_DATES:]]):
        return False
    run = next((run for run in dates if run.value == value), None)
    if run is None:
        return False
    if age := _required_age(value):
        return run.last - value >= age or any(other.last - other.first >= age for other in dates)
    distances = [one.first - one.value for one in dates]
    varies = max(distances) - min(distances) > CLOCK_JITTER_SECONDS
    return stood or (
        run.first - value >= GENERATED_DATE_SECONDS and (varies or not _may_be_dated_back(run.first - value))
    )


def becomes_credible(run: Run, at: int) -> bool:
    """Whether a date, seen once more now, is for the first time as old as a date must be to be credible."""
    if run.last - run.first < GENERATED_DATE_SECONDS <= at - run.first:
        return True
    age = _required_age(run.value)
    return run.last - run.value < age <= at - run.value


def _required_age(value: int) -> int:
    """How old a rounded value must be to be credible; 0 if it is not rounded."""
    return next((age for step, age in ROUNDED_CLOCKS if value % step == 0), 0)


def _may_be_dated_back(distance: int) -> bool:
    """Whether this is such a distance to the time of the answer as servers choose."""
    return distance < RECENT_SECONDS or (
        distance < MAX_BACKDATED_SECONDS
        and (distance + CLOCK_JITTER_SECONDS) % BACKDATING_STEP_SECONDS <= 2 * CLOCK_JITTER_SECONDS
    )


def _is_cached_clock(dates: History) -> bool:
    """Whether a page bears the time at which a cache had it made: never old, however long nobody asked for it."""
    if len(dates) < 2:
        return False
    oldest = max(run.last - run.value for run in dates)
    unseen = median(later.first - earlier.last for earlier, later in pairwise(dates))
    return unseen >= UNSEEN_FACTOR * max(oldest, GENERATED_DATE_SECONDS)


def changes_without_content(dates: History, contents: History, deployed: Callable[[int], bool]) -> bool:
    """Whether most moves of a date, and two at least, left the content as it was: then it is no date of the content.

    Args:
        dates: every Last-Modified of a page, or every date that it stated.
        contents: every digest of its content.
        deployed: whether a date is that of a deployment, which moves the dates of files that stay the same.
    """
    if len(dates) < 3:
        return False
    runs = sorted(dates, key=lambda run: (run.first, run.last, run.value))
    moves = [(before, after) for before, after in pairwise(runs) if not deployed(after.value)]
    alone = sum(_content_spans(before, after, contents) for before, after in moves)
    return alone >= 2 and 2 * alone > len(moves)


def _content_spans(before: Run, after: Run, contents: History) -> bool:
    """Whether one content was seen before a move and after it, and no other one around it."""
    around = [run for run in contents if run.last >= before.last and run.first <= after.last]
    if len(around) != 1 or around[0].value == VOLATILE:
        return False
    return around[0].first <= before.last and around[0].last >= after.first
