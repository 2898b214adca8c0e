"""Histories: which values something had, and when each was seen.

A history is a set of runs, and to take note of a sight is to widen a run or add
one. That is the same in whatever order sights arrive, and however often: several
workers that see the same come to the same history.
"""

from __future__ import annotations

from itertools import combinations
from operator import attrgetter
from typing import Final, NamedTuple

MAX_RUNS: Final = 8
"""Runs kept, those last seen; a thing with more values than that has no history to speak of."""

OVERLAP_SECONDS: Final = 15 * 60
"""Seconds for which an old and a new value may both be seen: workers that restart one after the other."""

CONFIRMATION_FACTOR: Final = 4
"""Times as long as the first change took to be seen a value must stand, where the one before was seen but once."""


VOLATILE: Final = -(2**63)
"""The value that says: what was seen here is another from one second to the next. No digest is this one."""


class Run(NamedTuple):
    """A value, and when it was first and last seen, in POSIX seconds."""

    value: int
    first: int
    last: int

    @property
    def was_repeated(self) -> bool:
        """Whether it was seen twice."""
        return self.first < self.last


History = tuple[Run, ...]

_make: Final = tuple.__new__  # of a named tuple: in half the time that calling its class takes

RUN_ORDER: Final = attrgetter("last", "first", "value")
"""By which the runs of a history are sorted."""


def add_sighting(history: History, value: int, at: int) -> History:
    """The history with one more sight; the very same object where that says nothing new."""
    later = True
    if history:
        known, first, last = history[-1]
        later = at > last
        if later and known == value:  # seen on, as most things are: nothing changes places
            return (*history[:-1], _make(Run, (value, first, at)))
        for run in history:
            if run.value == value:
                if run.first <= at <= run.last:
                    return history
                others = [other for other in history if other.value != value]
                return _trim([*others, Run(value, min(run.first, at), max(run.last, at))])
    runs = (*history, _make(Run, (value, at, at)))
    return runs if later and len(runs) <= MAX_RUNS else _trim([*runs])


def _trim(runs: list[Run]) -> History:
    runs.sort(key=RUN_ORDER)
    if len(runs) > MAX_RUNS:
        runs.remove(next(run for run in runs if run.value != VOLATILE))
    return tuple(runs)


def without_future(history: History, now: int) -> History:
    """The history without what was seen after a moment: a clock that is ahead says nothing of the present."""
    if all(run.last <= now for run in history):
        return history
    return tuple(sorted([run._replace(last=min(run.last, now)) for run in history if run.first <= now], key=RUN_ORDER))


def last_run(history: History) -> Run | None:
    """The run seen last."""
    return history[-1] if history else None


def significant(history: History) -> list[tuple[int, int, int]]:
    """What must be written down: everything but how long ago each value was seen last; of `VOLATILE`, that too."""
    return [(value, first, last if value == VOLATILE else first < last) for value, first, last in history]


def is_unchanged_by(history: History, value: int, at: int) -> bool:
    """Whether a sight of the value last seen is one more of the kind that leaves the gist of its history as it is."""
    if not history:
        return False
    last = history[-1]
    return last.value == value and last.first <= at and (at <= last.last or (last.was_repeated and value != VOLATILE))


def last_change(history: History, *, whole: bool = True) -> tuple[int, int] | None:
    """The interval in which the present value took the place of the one before: last sight of old, first of new.

    The present value is the last that was seen twice. None where nothing that was
    seen twice was there before it: the first sight of a thing is never a change,
    and what was seen once may have been an accident. But where a thing had one
    value before, and the present one has stood for much longer than it took to be
    seen, once is enough. None, too, where values come and go (A, B, and A again), and
    the present one has not yet stood alone for as long as that lasted; and before a
    value was seen that came after the last sign of its `VOLATILE`.

    Args:
        history: of the thing.
        whole: whether nothing of it was left out.
    """
    moved = max((run.last for run in history if run.value == VOLATILE), default=None)
    if moved is not None:
        history = tuple(run for run in history if run.first > moved and run.value != VOLATILE)
        whole = False
    now = last_run(tuple(run for run in history if run.was_repeated))
    if now is None:
        return None
    before = [run for run in history if run.first < now.first]
    if not before or _volatile(history, now):
        return None
    old = max(run.last for run in before)
    if not any(run.was_repeated for run in before) and not (
        whole and len(before) == 1 and now.last - now.first >= CONFIRMATION_FACTOR * (now.first - old)
    ):
        return None
    return min(old, now.first), max(old, now.first)


def _volatile(history: History, now: Run) -> bool:
    others = [run for run in history if run is not now]
    if any(_overlap(now, other) or _interrupts(now, other) for other in others):
        return True
    came_back = any(_overlap(one, other) for one, other in combinations(others, 2))
    if not came_back:
        return False
    calm_since = max(run.last for run in others)
    return now.last - calm_since < calm_since - min(run.first for run in history)


def _overlap(one: Run, other: Run) -> bool:
    return min(one.last, other.last) - max(one.first, other.first) > OVERLAP_SECONDS


def _interrupts(now: Run, other: Run) -> bool:
    """Whether the one was seen, then the other for the first time, and then the one again."""
    return other.first > now.first and now.last - other.last > OVERLAP_SECONDS
