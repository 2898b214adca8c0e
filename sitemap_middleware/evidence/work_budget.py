"""Effort: a bound on the time that the digest of one page takes, whatever the page says."""

from __future__ import annotations

from typing import Final

MAX_COST_MICROSECONDS: Final = 50_000
"""What a digest may cost, in microseconds or so. Of pages that people read, a large one costs a third of that."""


class BudgetExceeded(Exception):
    """A page says more than can be compared in that time."""


class WorkBudget:
    """What the digest of one page has cost."""

    __slots__ = ("_left",)

    def __init__(self, most: float = MAX_COST_MICROSECONDS) -> None:
        self._left = most

    def spend(self, cost: float) -> None:
        """Do something that costs so much, next; raises `BudgetExceeded` if it costs more than is left."""
        self._left -= cost
        if self._left < 0:
            raise BudgetExceeded
