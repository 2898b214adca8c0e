"""The store's time, which all workers share. Evidence is dated and pages are forgotten by it.

A database server has a clock, which is used unless the option `clock` replaces the
system's. An SQLite file or the process's memory has none: then the process's clock
is used, and pages are forgotten by the times that other workers record in the store.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS
from ..exceptions import StoreError
from ..models import StoreKey
from ..warn_once import WarnOnce
from .base import Store, StoreExtras
from .checksums import verify, with_checksum

log: logging.Logger = logging.getLogger("sitemap_middleware")

MEASUREMENT_SECONDS: Final = 60
"""Seconds for which the measured difference between the process's clock and the store's is used."""

MAX_WORKERS: Final = 8
"""Workers whose times are kept in the store: those that recorded one last."""

_RECORD_NAME: Final = "clock"
_WORKER_TIME: Final = struct.Struct("<16sq")
"""A worker's id, and its time in POSIX seconds."""


class StoreClock:
    """Reads the store's clock."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._store_now: Callable[[StoreKey], float] | None = StoreExtras.of(store).now if clock is time.time else None
        self._offset = 0.0
        self._measured_at = -float(MEASUREMENT_SECONDS)
        self._warn_once = WarnOnce()
        self._other_workers: dict[tuple[str, bytes], tuple[int, int]] = {}
        """The time that another worker recorded last, and when this worker first read it; by site and worker id."""

    def now(self, site: StoreKey) -> int:
        """Return the store's time in POSIX seconds; the process's if the store has no clock."""
        process_time = self._clock()
        if self._store_now is not None and not 0 <= process_time - self._measured_at < MEASUREMENT_SECONDS:
            self._measured_at = process_time
            try:
                self._offset = self._store_now(site) - process_time
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

    def agreed_time(self, site: StoreKey, worker: str) -> int:
        """Return the time by which pages are forgotten. It is never later than other workers' or the store's.

        If the store has no clock, each worker records its time there. The median of the
        other workers' times counts, plus the time passed since this worker read them.
        """
        now = self.now(site)
        if self._store_now is not None:
            return now
        times = _parse_worker_times(self._store.load(site, [_RECORD_NAME]).get(_RECORD_NAME))
        this_worker = worker.encode()
        times.pop(this_worker, None)
        estimates = []
        for other, recorded in times.items():
            known, read_at = self._other_workers.get((site, other), (None, now))
            if known != recorded:
                read_at = now
                self._other_workers[site, other] = recorded, now
            estimates.append(recorded + max(0, now - read_at))
        latest = [*times.items(), (this_worker, now)][-MAX_WORKERS:]
        self._store.save(site, {_RECORD_NAME: with_checksum(b"".join(_WORKER_TIME.pack(*item) for item in latest))})
        self._other_workers = {key: at for key, at in self._other_workers.items() if key[0] != site or key[1] in times}
        return min(now, sorted(estimates)[(len(estimates) - 1) // 2]) if estimates else now


def _parse_worker_times(record: bytes | None) -> dict[bytes, int]:
    """Return the time that each worker recorded; nothing if the record is damaged."""
    packed = verify(record or b"")
    return dict(_WORKER_TIME.iter_unpack(packed)) if packed and not len(packed) % _WORKER_TIME.size else {}
