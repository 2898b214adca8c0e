"""The store as the service uses it: with its clock, and a circuit breaker before it.

The breaker logs an outage once, and does not wait for a store that hangs. Each operation has a state of its own: the
rights of an account may refuse one, and let others work. After a call that failed slowly, calls of the operation fail
at once for ten times as long as it took. After a quick failure the next call is tried. While a call finds out whether
the store works again, others fail at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Any, Final

from ..evidence.dates import CLOCK_SKEW_SECONDS, w3c_from_timestamp
from ..exceptions import StoreError
from ..util import WarnOnce, log, reset_after_fork
from .base import STORE_METHODS, Owner, Store

BACKOFF_FACTOR: Final = 10
"""The pause after a failed call, as a multiple of the call's duration."""

MAX_BACKOFF_SECONDS: Final = 30.0

MIN_LOG_INTERVAL_SECONDS: Final = 60.0
"""Seconds between two lines about outages."""

MEASUREMENT_SECONDS: Final = 60
"""Seconds for which the measured difference between the process's clock and the store's is used."""


@dataclass(slots=True)
class _Outage:
    """An operation of the store that fails."""

    since: float
    retry_at: float = 0.0
    error: str = ""


class GuardedStore(Store):
    """A store behind a circuit breaker, with the same methods, and the time by which evidence is dated and pages are
    forgotten. It has no lock: dicts are atomic.

    All workers agree on the time: a database server has a clock, which is used unless the option `clock` replaces the
    system's. An SQLite file or the process's memory has none: then the process's clock is used.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """`clock` returns POSIX seconds."""
        for name in STORE_METHODS:
            setattr(self, name, partial(self._call, name))
        self.failures: int = 0
        """How many calls of the store have failed."""
        self.seconds: float = 0.0
        """How long the latest call took."""
        self._store = store
        self._clock = clock
        self._outages: dict[str, _Outage] = {}
        self._logged: _Outage | None = None
        """The outage that was logged last."""
        self._logged_at = -MIN_LOG_INTERVAL_SECONDS
        self._has_clock = hasattr(store, "now") and clock is time.time
        self._offset = 0.0
        self._measured_at = -float(MEASUREMENT_SECONDS)
        self._warn_once = WarnOnce()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: leases are taken in another name, which no process of any machine has."""
        self._worker = token_hex(8)

    def take(self, owner: Owner, name: str, seconds: int, of: str = "") -> bool:
        """Take, extend or with 0 seconds end a lease in the name of this worker; `of` tells holders in it apart."""
        return self.lease(owner, name, self._worker + of, seconds)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        began, outage = self._clock(), self._outages.get(name)
        if outage is not None:
            # If the clock was set back, retry_at may be far away: then the call is tried.
            if outage.retry_at - MAX_BACKOFF_SECONDS <= began < outage.retry_at:
                raise StoreError(f"{outage.error}; it will be tried again shortly")
            outage.retry_at = began + MAX_BACKOFF_SECONDS  # others wait for what this call finds out
        try:
            result = getattr(self._store, name)(*args, **kwargs)
        except StoreError as error:
            self._on_failure(name, error, began)
            raise
        finally:
            self.seconds = self._clock() - began
        if self._outages and (ended := self._outages.pop(name, None)) is not None and ended is self._logged:
            self._logged = None
            log.warning("store available again after %d seconds", self._clock() - ended.since)
        return result

    def retry_now(self) -> None:
        """Have the next calls reach the store, even if calls are paused: there are no later ones."""
        for outage in list(self._outages.values()):
            outage.retry_at = 0.0

    def _on_failure(self, name: str, error: StoreError, began: float) -> None:
        self.failures += 1
        now = self._clock()
        outage = self._outages.setdefault(name, _Outage(now))
        outage.retry_at = now + min(MAX_BACKOFF_SECONDS, BACKOFF_FACTOR * (now - began))
        outage.error = str(error)
        if self._logged is not None or 0 <= now - self._logged_at < MIN_LOG_INTERVAL_SECONDS:
            return
        self._logged, self._logged_at = outage, now
        log.warning(
            "store unavailable since %s (%s); buffering observations and serving the last good sitemap",
            w3c_from_timestamp(int(outage.since)),
            error,
        )

    def time(self) -> int:
        """The store's time in POSIX seconds; the process's if the store has no clock."""
        process_time = self._clock()
        if self._has_clock and not 0 <= process_time - self._measured_at < MEASUREMENT_SECONDS:
            self._measured_at = process_time
            try:
                self._offset = self._call("now") - process_time
            except StoreError as error:
                log.debug("the store's clock cannot be read: %s", error)
            if abs(self._offset) > CLOCK_SKEW_SECONDS:
                self.warn_of_skew(-self._offset)
        return int(process_time + self._offset)

    def warn_of_skew(self, seconds_ahead: float) -> None:
        """Warn once that this machine's clock is or was ahead of the store's, or behind it (less than 0)."""
        self._warn_once(
            "skew",
            "this machine's clock is %d seconds %s the store's clock; responses dated by a clock that is ahead are"
            " ignored: synchronise the clocks of all machines with NTP",
            round(abs(seconds_ahead)),
            "ahead of" if seconds_ahead > 0 else "behind",
        )
