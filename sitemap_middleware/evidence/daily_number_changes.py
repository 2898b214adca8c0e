"""Recognises daily counters: content in which only numbers change, each day.

"Day 124 of our journey" changes every day although nobody edits the page, so the change is not a date of the page.
"""

from __future__ import annotations

from typing import Final

from ..dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..value_history import RUN_ORDER, VOLATILE, History, Run
from .hashes_summed_to_digest import integer_change

_LONGEST_SECONDS: Final = SECONDS_PER_DAY + CLOCK_SKEW_SECONDS
"""For how long a daily counter may show one number."""


def without_number_changes(history: History) -> History:
    """The history, with contents that follow each other as a daily counter's do as one content.

    They differ by numbers alone, and neither lasted for over a day.
    """
    contents: list[Run] = []
    before: Run | None = None
    for run in sorted(history, key=lambda run: (run.first, run.last)):
        if before is not None and _is_tick(before, run):
            contents[-1] = contents[-1]._replace(last=max(contents[-1].last, run.last))
        else:
            contents.append(run)
        before = run
    return tuple(sorted(contents, key=RUN_ORDER))


def may_be_daily_counter(contents: History, own: History) -> bool:
    """Whether the present content differs from an earlier one by numbers alone, and the last two lasted a day or less.

    An edited number looks the same on its first day. If the number before it lasted
    for over a day, it is an edit at once; otherwise as soon as the new one did.

    Args:
        contents: the page's contents as they were seen, which show how long each number lasted.
        own: the same without template changes. They change numbers too, such as a version, and an edit of words may
            stand between.
    """
    repeated = [run for run in own if run.was_repeated and run.value != VOLATILE]
    if not repeated:
        return False
    present = repeated[-1]
    if len(_alike(own, present)) < 2:
        return False
    latest = sorted(_alike(contents, present), key=lambda run: run.first)[-2:]
    return all(map(_is_short, latest))


def _is_tick(before: Run, after: Run) -> bool:
    return (
        VOLATILE not in {before.value, after.value}
        and _is_short(before)
        and _is_short(after)
        and integer_change(before.value, after.value) is not None
    )


def _is_short(run: Run) -> bool:
    return run.last - run.first <= _LONGEST_SECONDS


def _alike(history: History, present: Run) -> list[Run]:
    """The contents that differ from the present one by numbers alone, and it itself."""
    return [run for run in history if run.value != VOLATILE and integer_change(run.value, present.value) is not None]
