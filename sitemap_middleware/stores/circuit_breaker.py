"""A guard before a store: tells once that it fails and once that it works again, and spares one that hangs.

Whoever waits for a store that hangs waits for nothing; so after a call that
failed slowly none is made for ten times as long, and callers have its error at
once (a circuit breaker). One that fails quickly is asked each time. As long as a
store fails, one caller at a time finds out whether it still does, and no other waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from ..dates import w3c_from_timestamp
from ..exceptions import StoreError
from ..fork_safety import reset_after_fork
from .base import STORE_METHODS, Store

log = logging.getLogger("sitemap_middleware")

BACKOFF_FACTOR: Final = 10
"""Times as long as a call took to fail that the store is left alone."""

MAX_BACKOFF_SECONDS: Final = 30.0
"""Seconds for which it is left alone at most."""


class GuardedStore(Store, Protocol):
    """A store behind a guard."""

    failures: int
    """How many calls the store has failed."""


def with_circuit_breaker(store: Store, clock: Callable[[], float]) -> GuardedStore:
    """The same store, behind a guard."""
    return cast("GuardedStore", CircuitBreaker(store, clock))


class CircuitBreaker:
    """Has every call of the contract, `now` if the store has it, and whatever else the store has."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.failures = 0
        self._store = store
        self._clock = clock
        self._since: float | None = None
        self._until = 0.0
        self._last_logged = ""
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's locks may be held for ever."""
        self._lock = threading.Lock()
        self._probing = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in STORE_METHODS and name != "now":
            return found
        call = partial(self._wrap, found)
        setattr(self, name, call)  # found at once the next time
        return call

    def _wrap(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        began, trying = self._clock(), None
        if self._since is not None:
            trying = self._probing
            if self._until - MAX_BACKOFF_SECONDS <= began < self._until or not trying.acquire(blocking=False):
                raise StoreError(self._last_logged)
        try:
            result = call(*arguments, **named)
        except StoreError as error:
            self._on_failure(error, began)
            raise
        finally:
            if trying is not None:
                trying.release()
        if self._since is not None:
            self._on_success()
        return result

    def _on_failure(self, error: StoreError, began: float) -> None:
        with self._lock:
            self.failures += 1
            now = self._clock()
            self._until = now + min(MAX_BACKOFF_SECONDS, BACKOFF_FACTOR * (now - began))
            self._last_logged = f"{error}; it is asked again in a while"
            if self._since is not None:
                return
            self._since = now
        log.warning(
            "the sitemap's store fails, since %s: %s; what is seen waits in memory, and the last good sitemap stays up",
            w3c_from_timestamp(int(now)),
            error,
            exc_info=None if _is_self_explanatory(error.__cause__) else error.__cause__,
        )

    def _on_success(self) -> None:
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            log.warning("the sitemap's store works again, after %d seconds", self._clock() - since)


def _is_self_explanatory(cause: BaseException | None) -> bool:
    """Whether it says all there is to know without its traceback. sqlite3 is not imported for this."""
    return isinstance(cause, OSError) or type(cause).__module__ == "sqlite3"
