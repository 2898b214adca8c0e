"""A circuit breaker around a store: logs an outage once, and does not wait for a store that hangs.

After a call that failed slowly, calls fail at once for ten times as long as it took.
After a quick failure the next call is tried. During an outage one call at a time
reaches the store, to find out whether it is available again; others fail at once.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from ..dates import w3c_from_timestamp
from ..exceptions import StoreError
from ..fork_safety import reset_after_fork
from .base import STORE_METHODS, Store

log: logging.Logger = logging.getLogger("sitemap_middleware")

BACKOFF_FACTOR: Final = 10
"""The pause after a failed call, as a multiple of the call's duration."""

MAX_BACKOFF_SECONDS: Final = 30.0

TRIAL_WAIT_SECONDS: Final = 2.0
"""Seconds for which the call after `retry_now` waits for another call that reaches the store meanwhile."""


_GUARDED_EXTRAS: Final = frozenset({"now"})
"""Optional methods that the app's own threads call."""


class GuardedStore(Store, Protocol):
    """A store behind a circuit breaker."""

    failures: int
    """How many calls of the store have failed."""

    def retry_now(self) -> None:
        """Have the next call reach the store, even if calls are paused: there is no later one."""


def with_circuit_breaker(store: Store, clock: Callable[[], float]) -> GuardedStore:
    """The same store behind a circuit breaker. `clock` returns POSIX seconds."""
    return cast("GuardedStore", CircuitBreaker(store, clock))  # its methods are looked up by name


class CircuitBreaker:
    """Forwards every attribute to a store; guards the methods of the contract, and others that can hang as well."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.failures: int = 0
        self._store = store
        self._clock = clock
        self._failing_since: float | None = None
        self._retry_at = 0.0
        self._trial_wait = 0.0
        self._last_error = ""
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Replace the locks: threads that held them do not exist in the child."""
        self._state_lock = threading.Lock()
        self._trial_lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name not in STORE_METHODS and name not in _GUARDED_EXTRAS:
            return attribute
        guarded = partial(self._call, attribute)
        setattr(self, name, guarded)  # the next lookup does not get here
        return guarded

    def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        started_at, trial_lock = self._clock(), None
        if self._failing_since is not None:
            trial_lock, wait = self._trial_lock, self._trial_wait
            self._trial_wait = 0.0
            if self._is_paused(started_at) or not trial_lock.acquire(timeout=wait):
                raise StoreError(self._last_error)
        try:
            result = method(*args, **kwargs)
        except StoreError as error:
            self._on_failure(error, started_at)
            raise
        finally:
            if trial_lock is not None:
                trial_lock.release()
        if self._failing_since is not None:
            self._on_success()
        return result

    def retry_now(self) -> None:
        """Have the next call reach the store, even if calls are paused."""
        self._retry_at, self._trial_wait = 0.0, TRIAL_WAIT_SECONDS

    def _is_paused(self, now: float) -> bool:
        # If the clock was set back, retry_at may be far away: then the call is tried.
        return self._retry_at - MAX_BACKOFF_SECONDS <= now < self._retry_at

    def _on_failure(self, error: StoreError, started_at: float) -> None:
        with self._state_lock:
            self.failures += 1
            now = self._clock()
            self._retry_at = now + min(MAX_BACKOFF_SECONDS, BACKOFF_FACTOR * (now - started_at))
            self._last_error = f"{error}; it will be tried again shortly"
            if self._failing_since is not None:
                return
            self._failing_since = now
        log.warning(
            "store unavailable since %s (%s); buffering observations and serving the last good sitemap",
            w3c_from_timestamp(int(now)),
            error,
            exc_info=None if _is_self_explanatory(error.__cause__) else error.__cause__,
        )

    def _on_success(self) -> None:
        with self._state_lock:
            failing_since, self._failing_since = self._failing_since, None
        if failing_since is not None:
            log.warning("store available again after %d seconds", self._clock() - failing_since)


def _is_self_explanatory(cause: BaseException | None) -> bool:
    """Whether the message of an error suffices, without its traceback."""
    return isinstance(cause, (OSError, sqlite3.Error))
