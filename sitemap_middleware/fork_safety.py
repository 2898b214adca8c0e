"""Resets locks, threads and ids in forked children: threads do not survive a fork, and a lock may stay held forever."""

from __future__ import annotations

import os
import threading
import weakref
from secrets import token_hex
from typing import Final, Protocol


class ForkAware(Protocol):
    """An object that holds locks, threads or handles, which a forked child must replace."""

    def reset_after_fork(self) -> None:
        """Replace them. Called in the child before any other code runs there."""


_fork_aware: Final[weakref.WeakSet[ForkAware]] = weakref.WeakSet()


def reset_after_fork(owner: ForkAware) -> None:
    """Call the owner's `reset_after_fork` in every child forked during the owner's lifetime."""
    _fork_aware.add(owner)


def _reset_all() -> None:
    for owner in list(_fork_aware):
        owner.reset_after_fork()


class WorkerId:
    """A name unique to this process among all machines, to hold leases by."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        self.name: str = token_hex(8)


class ForkSafeLock:
    """A lock that is created on first use, and replaced in a forked child.

    gevent may replace `threading.Lock` after a fork. Waiting for a lock created
    before that blocks all greenlets, including the one that holds the lock.
    """

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: no thread would ever release a lock that the parent held."""
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
