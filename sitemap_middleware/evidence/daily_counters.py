"""Recognises daily counters: content in which only a number changes, by the same step each day.

"Day 124 of our journey" changes every day although nobody edits the page, so the change is not a date of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..history import VOLATILE, History, Run
from .digest_terms import integer_change

_RUNS_FOR_STEP_OF_ONE: Final = 2
_RUNS_FOR_OTHER_STEPS: Final = 3
"""Consecutive contents that show a daily counter. Two are enough if a number that is not small changes by one a day."""


def is_daily_counter(history: History) -> bool:
    """Whether the present content differs from those before by a number that changes by the same step each day.

    A content that was seen for longer than a day is not one of a daily counter.
    """
    repeated = [run for run in history if run.was_repeated and run.value != VOLATILE]
    if not repeated:
        return False
    present = repeated[-1]
    runs = [run for run in history if run.value != VOLATILE and integer_change(run.value, present.value) is not None]
    runs.sort(key=lambda run: run.first)
    if not {1, -1}.isdisjoint(_daily_steps(runs[-_RUNS_FOR_STEP_OF_ONE:])):
        return True
    return len(runs) >= _RUNS_FOR_OTHER_STEPS and bool(_daily_steps(runs[-_RUNS_FOR_OTHER_STEPS:]))


def _daily_steps(runs: Sequence[Run]) -> set[int]:
    """The steps by which the number may change each day; empty if no one step explains these contents.

    The server's time zone is unknown, so every time at which a content appeared or ended is tried as midnight.
    """
    steps: set[int] = set()
    for midnight in [run.first for run in runs] + [run.last + 1 for run in runs]:
        days = [day for run in runs if (day := _day_of(run, midnight)) is not None]
        if len(set(days)) < len(runs):
            continue
        daily = {
            divmod(integer_change(run.value, following.value) or 0, later - earlier)
            for (run, following), (earlier, later) in zip(pairwise(runs), pairwise(days), strict=True)
        }
        if len(daily) == 1 and (step := daily.pop())[1] == 0:
            steps.add(step[0])
    return steps


def _day_of(run: Run, midnight: int) -> int | None:
    """The number of the day on which a content was seen, if days begin at `midnight`; None if on several days."""
    slack = min(CLOCK_SKEW_SECONDS, (run.last - run.first) // 2)
    first, last = ((at - midnight) // SECONDS_PER_DAY for at in (run.first + slack, run.last - slack))
    return first if first == last else None
