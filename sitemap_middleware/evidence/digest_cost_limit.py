"""Limits the work for the digest of one page, so that a crafted page cannot occupy the background thread."""

from __future__ import annotations

from typing import Final

MAX_COST_MICROSECONDS: Final = 50_000
"""The estimated cost at which a digest is abandoned. A large ordinary page costs a third of that."""


class BudgetExceeded(Exception):
    """The digest of a page would cost more than `MAX_COST_MICROSECONDS`."""


class WorkBudget:
    """What is left of the budget of one page's digest. Costs are estimated, not measured, so that results repeat."""

    __slots__ = ("_left",)

    def __init__(self, microseconds: float = MAX_COST_MICROSECONDS) -> None:
        self._left = microseconds

    def spend(self, cost: float) -> None:
        """Call before work that costs this many microseconds. Raises `BudgetExceeded` if less is left."""
        self._left -= cost
        if self._left < 0:
            raise BudgetExceeded
