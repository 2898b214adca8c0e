"""What a forked child must make anew: threads do not survive a fork, and a lock may be held by one of them."""

from __future__ import annotations

import os
import weakref
from secrets import token_hex
from typing import Final, Protocol


class Renewable(Protocol):
    """Something that holds locks, threads or handles."""

    def renew(self) -> None:
        """Make them anew; called in the child, before anything else runs there."""


_living: Final[weakref.WeakSet[Renewable]] = weakref.WeakSet()


def renew_in_children(owner: Renewable) -> None:
    """Have the owner renewed in every child forked from now on, for as long as it lives."""
    _living.add(owner)


def _renew_all() -> None:
    for owner in list(_living):
        owner.renew()


_names: Final[dict[int, str]] = {}


def process_name() -> str:
    """A name for this process that no other has, on any machine."""
    pid = os.getpid()
    if pid not in _names:
        _names[pid] = f"{pid}-{token_hex(8)}"
    return _names[pid]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
