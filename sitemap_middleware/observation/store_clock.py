"""The time that evidence is judged by: the store's, which all workers share, rather than that of one machine.

A server that keeps the store tells its own time. It is used unless the option
`clock` gives another one. A file or the memory of a process has no clock: there
the process's clock is used, and pages are forgotten by the time that other
workers have noted in the store.
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
from ..stores.base import Store, StoreExtras
from ..stores.checksums import verify, with_checksum

log = logging.getLogger("sitemap_middleware")

MEASUREMENT_SECONDS: Final = 60
"""Seconds for which the difference between the process's clock and the store's is taken as known."""

MAX_WORKERS: Final = 8
"""Workers whose time is kept in the store, at most: those that noted it last."""

_RECORD_NAME: Final = "clock"
_WORKER_RECORD: Final = struct.Struct("<16sq")


class StoreClock:
    """Knows the store's time."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._store_now: Callable[[StoreKey], float] | None = StoreExtras.of(store).now if clock is time.time else None
        self._offset = 0.0
        self._measured = -float(MEASUREMENT_SECONDS)
        self._warned = False
        self._other_workers: dict[tuple[str, bytes], tuple[int, int]] = {}

    def now(self, site: StoreKey) -> int:
        """The store's time in POSIX seconds; the process's if the store has no clock of its own."""
        own = self._clock()
        if self._store_now is not None and not 0 <= own - self._measured < MEASUREMENT_SECONDS:
            self._measured = own
            try:
                self._offset = self._store_now(site) - own
            except StoreError as error:
                log.debug("the store does not tell its time: %s", error)
            if abs(self._offset) > CLOCK_SKEW_SECONDS:
                self.warn_of_skew(-self._offset)
        return int(own + self._offset)

    def warn_of_skew(self, ahead: float) -> None:
        """Warn once that this machine's clock is, or was, wrong by so many seconds."""
        if not self._warned:
            self._warned = True
            log.warning(
                "this machine's clock is %d seconds %s the clock of the sitemap's store; what is seen by a clock that"
                " is ahead is not learned: synchronise the clocks of all machines by NTP",
                round(abs(ahead)),
                "ahead of" if ahead > 0 else "behind",
            )

    def agreed_time(self, site: StoreKey, owner: str) -> int:
        """The time to forget pages by: no later than other workers, and the store's clock, say that it is.

        Where the store has no clock, each worker notes its time there. The median of what the
        others have noted counts, plus the time that has passed since this worker read it.
        """
        now = self.now(site)
        if self._store_now is not None:
            return now
        notes = _parse_records(self._store.load(site, [_RECORD_NAME]).get(_RECORD_NAME))
        own = owner.encode()
        notes.pop(own, None)
        believed = []
        for name, noted in notes.items():
            known, since = self._other_workers.get((site, name), (None, now))
            if known != noted:
                since = now
                self._other_workers[site, name] = noted, now
            believed.append(noted + max(0, now - since))
        kept = [*notes.items(), (own, now)][-MAX_WORKERS:]
        self._store.save(site, {_RECORD_NAME: with_checksum(b"".join(_WORKER_RECORD.pack(*note) for note in kept))})
        self._other_workers = {key: at for key, at in self._other_workers.items() if key[0] != site or key[1] in notes}
        return min(now, sorted(believed)[(len(believed) - 1) // 2]) if believed else now


def _parse_records(kept: bytes | None) -> dict[bytes, int]:
    """The time that each worker has noted; nothing if what is kept is damaged."""
    notes = verify(kept or b"")
    return dict(_WORKER_RECORD.iter_unpack(notes)) if notes and not len(notes) % _WORKER_RECORD.size else {}
