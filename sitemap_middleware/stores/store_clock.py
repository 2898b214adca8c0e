"""The store's time, by which evidence is dated and pages are forgotten, so that all workers agree.

A database server has a clock, which is used unless the option `clock` replaces the system's. An SQLite file or the
process's memory has none: then the process's clock is used.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ..evidence.dates import CLOCK_SKEW_SECONDS
from ..exceptions import StoreError
from ..util import WarnOnce
from .base import Store, StoreExtras

log: logging.Logger = logging.getLogger("sitemap_middleware")

MEASUREMENT_SECONDS: Final = 60
"""Seconds for which the measured difference between the process's clock and the store's is used."""


class StoreClock:
    """Reads the store's clock."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._store_now: Callable[[], float] | None = StoreExtras.of(store).now if clock is time.time else None
        self._offset = 0.0
        self._measured_at = -float(MEASUREMENT_SECONDS)
        self._warn_once = WarnOnce()

    def now(self) -> int:
        """Return the store's time in POSIX seconds; the process's if the store has no clock."""
        process_time = self._clock()
        if self._store_now is not None and not 0 <= process_time - self._measured_at < MEASUREMENT_SECONDS:
            self._measured_at = process_time
            try:
                self._offset = self._store_now() - process_time
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
