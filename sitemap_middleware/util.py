"""Small helpers that many modules share: forks, bounded caches, warnings, work in the background."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from typing import Any, Final, Generic, TypeVar

log: logging.Logger = logging.getLogger("sitemap_middleware")

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

PAUSE_SECONDS: Final = 0.00005
"""Seconds of a pause, besides what the system adds: a thread that waits for the interpreter wakes up meanwhile."""


# Forks: threads do not survive them, and a lock may stay held forever.


_fork_aware: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def reset_after_fork(owner: Any) -> None:
    """Call the owner's `reset_after_fork` in every child that is forked during its lifetime, before anything else.

    It replaces the locks, threads and handles that the owner holds.
    """
    _fork_aware.add(owner)


def _reset_all() -> None:
    for owner in list(_fork_aware):
        owner.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)


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

    def acquire(self, timeout: float = -1) -> bool:
        """Wait so many seconds for the lock, without end if negative; return whether it was acquired."""
        with self._creation_lock:
            lock = self._lock = self._lock or threading.Lock()
        if not lock.acquire(timeout=timeout):
            return False
        self._held = lock
        return True

    def release(self) -> None:
        """Release the lock, which this thread has acquired."""
        self._held.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class BoundedCache(Generic[Key, Value]):
    """A mapping of at most `max_keys` keys. The half that was stored last is always kept. Threads may share it."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._values: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """Return the value stored last under a key; None if it was evicted."""
        return self._values.get(key)

    def values(self) -> list[Value]:
        """All values."""
        return list(self._values.values())

    def put(self, key: Key, value: Value) -> None:
        """Store a value."""
        self._values.pop(key, None)  # so that it is the last again
        if len(self._values) >= self._max_keys:
            for old in list(self._values)[: (self._max_keys + 1) // 2]:
                self._values.pop(old, None)
        self._values[key] = value


class WarnOnce:
    """Logs a warning on each topic, once for each object of this class."""

    def __init__(self) -> None:
        self._topics = set[Hashable]()

    def __call__(self, topic: Hashable, message: str, *arguments: object) -> None:
        """Log a warning, unless one on the same topic was logged."""
        if topic not in self._topics:
            self._topics.add(topic)
            log.warning(message, *arguments)


class FaultLog:
    """Logs the first fault of one middleware. More of them would fill the app's log, one for each request."""

    def __init__(self) -> None:
        self._has_logged = False

    def __call__(self, what: str, error: Exception) -> None:
        """Log what failed, if nothing has been logged yet. Never raises into the app."""
        if not self._has_logged:
            self._has_logged = True
            with suppress(Exception):  # a log handler or filter of the app may raise
                log.warning("%s; further faults like this are not logged", what, exc_info=error)

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Log an exception raised within, and do not raise it."""
        try:
            yield
        except Exception as error:
            self(what, error)


def yield_to_other_threads() -> None:
    """Release the interpreter for a moment.

    A thread that computes all the time keeps it for 5 ms each time that another one asks for it, and an event loop asks
    several times in each turn. Call this after pieces of one or two milliseconds.
    """
    time.sleep(PAUSE_SECONDS)


def in_pieces(items: Iterable[T], size: int) -> Iterator[T]:
    """Yield the items, and yield to other threads after each `size` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            yield_to_other_threads()


def run_in_background(job: Callable[[], object]) -> None:
    """Run a job on a thread of its own, in an empty context, because what it makes serves more than one request."""
    threading.Thread(target=Context().run, args=(_logged, job), name="sitemap-background", daemon=True).start()


def _logged(job: Callable[[], object]) -> None:
    try:
        job()
    except Exception:
        log.exception("a background job of the sitemap failed")


def is_on_event_loop() -> bool:
    """Whether this thread runs an event loop, of asyncio or of Trio, which what blocks would stop."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    trio = sys.modules.get("trio")
    if trio is not None:
        with suppress(RuntimeError):
            trio.lowlevel.current_trio_token()
            return True
    return False


def resolve(future: Future[T], work: Callable[[], T]) -> None:
    """Do some work, and give a future its result, or the exception that it raised."""
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)


def begin(work: Callable[[], T]) -> Future[T]:
    """Do some work in the background; the future of its result."""
    future: Future[T] = Future()
    run_in_background(partial(resolve, future, work))
    return future
