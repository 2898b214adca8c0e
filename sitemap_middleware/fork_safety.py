"""What a forked child must make anew: threads do not survive a fork, and a lock may be held by one of them."""

from __future__ import annotations

import os
import threading
import weakref
from secrets import token_hex
from typing import Final, Protocol


class ForkAware(Protocol):
    """Something that holds locks, threads or handles."""

    def reset_after_fork(self) -> None:
        """Make them anew; called in the child, before anything else runs there."""


_fork_aware: Final[weakref.WeakSet[ForkAware]] = weakref.WeakSet()


def reset_after_fork(owner: ForkAware) -> None:
    """Have the owner renewed in every child forked from now on, for as long as it lives."""
    _fork_aware.add(owner)


def _reset_all() -> None:
    for owner in list(_fork_aware):
        owner.reset_after_fork()


class WorkerId:
    """A name that nobody else has, in any process on any machine: to hold leases by."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        self.name = token_hex(8)


class ForkSafeLock:
    """A lock that is made when first used, and anew in a forked child.

    gevent may take the place of locks after a fork: whoever waits for one that was
    made before holds up all greenlets, the one that has it among them.
    """

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's may be held for ever."""
        self._creation_lock = threading.Lock()
        self._lock: threading.Lock | None = None

    def __enter__(self) -> None:
        with self._creation_lock:
            lock = self._lock = self._lock or threading.Lock()
        lock.acquire()
        self._held = lock

    def __exit__(self, *_: object) -> None:
        self._held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
