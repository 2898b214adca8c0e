"""Tells dates of content from dates that a server generates for each response.

Some servers send the current time as Last-Modified, or the current time rounded, dated back, or kept by a cache. Such
dates say nothing about the content. How a date changes from response to response shows which it is:

| seen at | a date of content | the current time | the midnight before |
|---|---|---|---|
| Monday 10:00 | Friday 09:13 | Monday 10:00 | Monday 00:00 |
| Monday 15:00 | Friday 09:13 | Monday 15:00 | Monday 00:00 |
| Tuesday 11:00 | Friday 09:13 | Tuesday 11:00 | Tuesday 00:00 |

Pure functions over the history of a page's Last-Modified, or of the dates that it states.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from .dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from .value_history import VOLATILE, History, Run

GENERATED_DATE_SECONDS: Final = 60
"""A date that was not seen to stay the same for so long may have been generated for its response."""

ROUNDED_CLOCKS: Final = ((15 * 60, 2 * SECONDS_PER_DAY), (5 * 60, 20 * 60))
"""Pairs of seconds: a date that is a multiple of the first may be a rounded clock until it is as old as the second.

Every full hour, and midnight in every time zone, is a multiple of a quarter of an hour. The midnight before the last is
less than two days old.
"""

MAX_BACKDATED_SECONDS: Final = 32 * SECONDS_PER_DAY
"""The largest fixed distance by which a server is expected to date its responses back."""


def is_credible(dates: History, value: int) -> bool:
    """Whether a value of a history of dates is a date of content rather than the time on a clock.

    - A rounded date may be a rounded clock until it is older than such a clock ever shows.
    - Any other is credible if some date was seen to stay the same for a minute.
    - If none was, the date may be made for its response at a fixed distance to it, unless the distances vary by more
      than workers' clocks do, or it is older than any such distance.
    """
    run = next((run for run in dates if run.value == value), None)
    if run is None:
        return False
    if age := _required_age(value):
        return run.last - value >= age or any(other.last - other.first >= age for other in dates)
    if any(other.last - other.first >= GENERATED_DATE_SECONDS for other in dates):
        return True
    ages = [other.first - other.value for other in dates]
    age = run.first - value
    varies = max(ages) - min(ages) > CLOCK_SKEW_SECONDS
    return age >= GENERATED_DATE_SECONDS and (varies or age >= MAX_BACKDATED_SECONDS)


def is_generated(dates: History) -> bool:
    """Whether dates may be generated for each response. Then they show no deployment."""
    return all(
        last - first < GENERATED_DATE_SECONDS and first - value < GENERATED_DATE_SECONDS for value, first, last in dates
    )


def _required_age(value: int) -> int:
    """The age from which a rounded date is credible; 0 if it is not rounded."""
    return next((age for step, age in ROUNDED_CLOCKS if value % step == 0), 0)


def changes_without_content(dates: History, contents: History, deployed: Callable[[int], bool]) -> bool:
    """Whether a date is not one of the content: most of its changes, and at least two, left the content the same.

    Args:
        dates: the values of a page's Last-Modified, or the dates that it stated.
        contents: the digests of its content.
        deployed: whether a date is that of a deployment, which also changes the dates of files that stay the same.
    """
    if len(dates) < 2:
        return False
    runs = sorted(dates, key=lambda run: (run.first, run.last, run.value))
    changes = alone = 0
    for before, after in pairwise(runs):
        if not deployed(after.value):
            count = 2 if after.first < before.last else 1  # it changed back, too: two servers may have a date each
            changes += count
            alone += count * _content_stayed(before, after, contents)
    return alone >= 2 and 2 * alone > changes


def _content_stayed(before: Run, after: Run, contents: History) -> bool:
    """Whether one content was seen both before and after a change of the date, and no other around it."""
    earlier = before.last if before.last <= after.first else after.first - 1  # the first change, if it changed back
    around = [run for run in contents if run.last >= earlier and run.first <= after.last]
    if len(around) != 1 or around[0].value == VOLATILE:
        return False
    return around[0].first <= earlier and around[0].last >= after.first
