"""A circuit breaker around a store: logs an outage once, and does not wait for a store that hangs.

Each operation has a state of its own: the rights of an account may refuse one, and let others work. After a call that
failed slowly, calls of the operation fail at once for ten times as long as it took. After a quick failure the next call
is tried. During an outage one call at a time reaches the store, to find out whether it works again, and others fail at
once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from ..evidence.dates import w3c_from_timestamp
from ..exceptions import StoreError
from ..util import reset_after_fork
from .base import STORE_METHODS, Store

log: logging.Logger = logging.getLogger("sitemap_middleware")

BACKOFF_FACTOR: Final = 10
"""The pause after a failed call, as a multiple of the call's duration."""

MAX_BACKOFF_SECONDS: Final = 30.0

MIN_LOG_INTERVAL_SECONDS: Final = 60.0
"""Seconds between two lines about outages."""

TRIAL_WAIT_SECONDS: Final = 2.0
"""Seconds for which the call after `retry_now` waits for another call that reaches the store meanwhile."""

LATENCY_WEIGHT: Final = 0.1
"""The weight of the latest call in the average latency."""

_GUARDED: Final = STORE_METHODS | {"now"}


class GuardedStore(Store, Protocol):
    """A store behind a circuit breaker."""

    failures: int
    """How many calls of the store have failed."""
    latency: float
    """The seconds that a call takes: an average in which the latest calls count most."""

    def retry_now(self) -> None:
        """Have the next calls reach the store, even if calls are paused: there are no later ones."""


def with_circuit_breaker(store: Store, clock: Callable[[], float]) -> GuardedStore:
    """The same store behind a circuit breaker. `clock` returns POSIX seconds."""
    return cast("GuardedStore", CircuitBreaker(store, clock))  # its methods are looked up by name


class _Operation:
    """The state of one method of the store."""

    def __init__(self) -> None:
        self.failing_since: float | None = None
        self.was_logged: bool = False
        self.retry_at: float = 0.0
        self.trial_wait: float = 0.0
        self.last_error: str = ""
        self.trial_lock: threading.Lock = threading.Lock()

    def is_paused(self, now: float) -> bool:
        # If the clock was set back, retry_at may be far away: then the call is tried.
        return self.retry_at - MAX_BACKOFF_SECONDS <= now < self.retry_at


class CircuitBreaker:
    """Forwards every attribute to a store, and guards the methods of the contract."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.failures: int = 0
        self.latency: float = 0.0
        self._store = store
        self._clock = clock
        self._logged_at: float | None = None
        self._operations: dict[str, _Operation] = {}
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Replace the locks: threads that held them do not exist in the child."""
        self._state_lock = threading.Lock()
        for operation in self._operations.values():
            operation.trial_lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name not in _GUARDED:
            return attribute
        guarded = partial(self._call, attribute, self._operations.setdefault(name, _Operation()))
        setattr(self, name, guarded)  # the next look-up does not get here
        return guarded

    def _call(self, method: Callable[..., Any], operation: _Operation, *args: Any, **kwargs: Any) -> Any:
        started_at, trial_lock = self._clock(), None
        if operation.failing_since is not None:
            trial_lock, wait = operation.trial_lock, operation.trial_wait
            operation.trial_wait = 0.0
            if operation.is_paused(started_at) or not trial_lock.acquire(timeout=wait):
                raise StoreError(operation.last_error)
        try:
            result = method(*args, **kwargs)
        except StoreError as error:
            self._on_failure(operation, error, started_at)
            raise
        finally:
            self.latency += LATENCY_WEIGHT * (max(0.0, self._clock() - started_at) - self.latency)
            if trial_lock is not None:
                trial_lock.release()
        if operation.failing_since is not None:
            self._on_success(operation)
        return result

    def retry_now(self) -> None:
        """Have the next calls reach the store, even if calls are paused. Takes no lock: signal handlers call it."""
        for operation in list(self._operations.values()):
            operation.retry_at, operation.trial_wait = 0.0, TRIAL_WAIT_SECONDS

    def _on_failure(self, operation: _Operation, error: StoreError, started_at: float) -> None:
        with self._state_lock:
            self.failures += 1
            now = self._clock()
            operation.retry_at = now + min(MAX_BACKOFF_SECONDS, BACKOFF_FACTOR * (now - started_at))
            operation.last_error = f"{error}; it will be tried again shortly"
            if operation.failing_since is None:
                operation.failing_since = now
            since = operation.failing_since
            if operation.was_logged or (
                self._logged_at is not None and 0 <= now - self._logged_at < MIN_LOG_INTERVAL_SECONDS
            ):
                return
            self._logged_at, operation.was_logged = now, True
        log.warning(
            "store unavailable since %s (%s); buffering observations and serving the last good sitemap",
            w3c_from_timestamp(int(since)),
            error,
        )

    def _on_success(self, operation: _Operation) -> None:
        with self._state_lock:
            failing_since, operation.failing_since = operation.failing_since, None
            was_logged, operation.was_logged = operation.was_logged, False
        if failing_since is not None and was_logged:
            log.warning("store available again after %d seconds", self._clock() - failing_since)
