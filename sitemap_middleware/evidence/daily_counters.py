"""Ticks: contents in which only a number moves, by the same step each day: "Day 124 of our journey".

Nobody edits such a page, so the change of its number is no date of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..history import VOLATILE, History, Run
from .digest_terms import moved

_SINGLE: Final = 2
_SEVERAL: Final = 3
"""Contents in turn that show a tick: two if a number that is not small moves by one a day, else three."""


def is_daily_counter(history: History) -> bool:
    """Whether the present content differs from those before it by a number that moves by the same step each day.

    A content that stands for longer than a day is no tick.
    """
    stood = [run for run in history if run.was_repeated and run.value != VOLATILE]
    if not stood:
        return False
    now = stood[-1]
    turns = [run for run in history if run.value != VOLATILE and moved(run.value, now.value) is not None]
    turns.sort(key=lambda run: run.first)
    if not {1, -1}.isdisjoint(_steps(turns[-_SINGLE:])):
        return True
    return len(turns) >= _SEVERAL and bool(_steps(turns[-_SEVERAL:]))


def _steps(turns: Sequence[Run]) -> set[int]:
    """By how much the number may move a day, whenever days begin; empty if these contents show no one step."""
    found: set[int] = set()
    for begins in [turn.first for turn in turns] + [turn.last + 1 for turn in turns]:
        days = [day for turn in turns if (day := _day(turn, begins)) is not None]
        if len(set(days)) < len(turns):
            continue
        steps = {
            divmod(moved(one.value, other.value) or 0, later - earlier)
            for (one, other), (earlier, later) in zip(pairwise(turns), pairwise(days), strict=True)
        }
        if len(steps) == 1 and (step := steps.pop())[1] == 0:
            found.add(step[0])
    return found


def _day(turn: Run, begins: int) -> int | None:
    """The day in which a content was seen, if days begin at this time of day; None if it was seen in several."""
    slack = min(CLOCK_SKEW_SECONDS, (turn.last - turn.first) // 2)
    first, last = ((at - begins) // SECONDS_PER_DAY for at in (turn.first + slack, turn.last - slack))
    return first if first == last else None
