"""Tables: the contract of a store in SQL, over any connection of the standard library's sqlite3."""

from __future__ import annotations

import contextlib
import logging
import math
import sqlite3
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeVar

from ...exceptions import StoreError
from ...fork_safety import ForkSafeLock, reset_after_fork
from ...models import BaseURL, MergeResult, Page, PageLimits, StoreKey
from ...observations import Observation
from ..base import MAX_LEASE_SECONDS, UNLIMITED, Block, RecordOwner
from ..packed_pages import PackedPages
from ..row_ids import row_id_range, site_row_id_ranges
from .pages import SELECT_ROWS, SitePages, checked_int, pages_of, select_in_batches, site_number
from .repair import is_damage, repair
from .schema import MIGRATIONS, file_versions

log = logging.getLogger("sitemap_middleware")

Result = TypeVar("Result")

MIN_REPAIR_INTERVAL_SECONDS: Final = 60.0
"""Seconds from one repair to the next, at least: it looks at all pages."""

_UPSERT_DOCUMENT: Final = (
    "INSERT INTO document VALUES (?, ?, ?, ?) ON CONFLICT (site, name)"
    " DO UPDATE SET etag = excluded.etag, since = excluded.since WHERE etag IS NOT excluded.etag"
)
_UPSERT_LEASE: Final = (
    "INSERT INTO lease VALUES (?, ?, ?, ?) ON CONFLICT (site, name)"
    " DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE until <= ? OR owner = excluded.owner"
    " OR until > ?"
)

_parent_connections: Final[list[sqlite3.Connection]] = []
"""A parent's connections, kept from being closed in the child."""


def _close_abandoned(held: list[sqlite3.Connection]) -> None:
    """Close what a store holds that nobody holds."""
    for connection in held:
        with contextlib.suppress(sqlite3.Error):
            connection.close()


class BaseSQLiteStore(ABC):
    """A store in the tables of one connection, which opens when first used, and again in the child after a fork."""

    name: str
    """What it is called in errors."""

    def __init__(self) -> None:
        self._holder: list[sqlite3.Connection] = []
        """The connection, where it is open."""
        # Not by __del__: in a circle of garbage the connection may go first, and since Python 3.13 it complains.
        weakref.finalize(self, _close_abandoned, self._holder).atexit = False
        self._lock = ForkSafeLock()
        self._repaired_at = -math.inf
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: a parent's connection must be neither used nor closed (SQLite, "How To Corrupt", 2.6)."""
        if self._connection is not None:
            _parent_connections.append(self._connection)
            self._connection = None

    def merge(self, site: StoreKey, observations: Sequence[Observation], caps: PageLimits = UNLIMITED) -> MergeResult:
        return self._write(lambda connection: SitePages(connection, site).merge(observations, caps))

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        return self._write(lambda connection: SitePages(connection, site).forget(unseen_since, unlisted_since))

    def pages(self, site: StoreKey) -> list[Page]:
        def pages(connection: sqlite3.Connection) -> list[Page]:
            spans = site_row_id_ranges(site_number(connection, site))
            rows = [row for span in spans for row in connection.execute(SELECT_ROWS, span)]
            return sorted(pages_of(rows), key=attrgetter("path"))

        return self._read(pages)

    def find_pages(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        return self._read(lambda connection: SitePages(connection, site).find_pages(paths))

    def version(self, site: StoreKey) -> int:
        def version(connection: sqlite3.Connection) -> int:
            row = connection.execute("SELECT version FROM site WHERE key = ?", (site,)).fetchone()
            return checked_int(row[0]) if row else 0

        return self._read(version)

    def blocks(self, site: StoreKey, since: int = 0) -> list[Block]:
        query = "SELECT number, document, pages, version FROM block WHERE site = ? AND version > ? ORDER BY number"

        def blocks(connection: sqlite3.Connection) -> list[Block]:
            rows = connection.execute(query, (site_number(connection, site), since)).fetchall()
            return [Block._make(map(checked_int, row)) for row in rows]

        return self._read(blocks)

    def block(self, site: StoreKey, number: int) -> list[Page]:
        return self._read(
            lambda connection: pages_of(
                connection.execute(SELECT_ROWS, row_id_range(site_number(connection, site), number))
            )
        )

    def sample(self, site: StoreKey, limit: int) -> PackedPages:
        return self._read(lambda connection: SitePages(connection, site).sample(limit))

    def served_since(self, site: BaseURL, name: str, etag: str, now: int) -> int:
        query = "SELECT since FROM document WHERE site = ? AND name = ? AND etag = ?"

        def look(connection: sqlite3.Connection) -> int | None:
            row = connection.execute(query, (site, name, etag)).fetchone()
            return checked_int(row[0]) if row else None

        def publish(connection: sqlite3.Connection) -> int | None:
            connection.execute(_UPSERT_DOCUMENT, (site, name, etag, now))
            return look(connection)

        since = self._read(look)
        return checked_int(self._write(publish) if since is None else since)

    def load(self, site: RecordOwner, names: Collection[str]) -> dict[str, bytes]:
        query = "SELECT name, value FROM thing WHERE site = ? AND name IN ({})"
        found = self._read(lambda connection: select_in_batches(connection, query, names, site))
        return {name: value for name, value in found if isinstance(value, bytes)}

    def save(self, site: RecordOwner, records: Mapping[str, bytes | None]) -> None:
        kept = [(site, name, value) for name, value in records.items() if value is not None]
        dropped = [(site, name) for name, value in records.items() if value is None]

        def save(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM thing WHERE site = ? AND name = ?", dropped)
            connection.executemany("INSERT OR REPLACE INTO thing VALUES (?, ?, ?)", kept)

        self._write(save)

    def lease(self, site: RecordOwner, name: str, owner: str, now: int, seconds: int) -> bool:
        values = (site, name, owner, now + seconds, now, now + MAX_LEASE_SECONDS)
        return self._write(lambda connection: connection.execute(_UPSERT_LEASE, values).rowcount == 1)

    def close(self) -> None:
        with self._lock:
            self._close()

    def release(self) -> None:
        """The process ends: close even what would be lost."""
        with self._lock:
            self._close()

    @property
    def _connection(self) -> sqlite3.Connection | None:
        return self._holder[0] if self._holder else None

    @_connection.setter
    def _connection(self, connection: sqlite3.Connection | None) -> None:
        self._holder[:] = [] if connection is None else [connection]

    @abstractmethod
    def _connect(self) -> sqlite3.Connection:
        """The connection, open and with all its tables."""

    @abstractmethod
    def _on_failure(self, error: Exception) -> None:
        """Take note of how a call failed; what is open may be of no more use."""

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def read() -> Result:
            with self._open_connection() as connection:
                return work(connection)

        return self._repairing(read)

    def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def write() -> Result:
            with self._transaction() as connection:
                return work(connection)

        return self._repairing(write)

    def _repairing(self, call: Callable[[], Result]) -> Result:
        """What a call comes to; where something damaged is in its way, once more after a repair."""
        try:
            return call()
        except StoreError as error:
            cause = error.__cause__
            if cause is None or not is_damage(cause):
                raise
            failed = error
        # What was being read holds locks for as long as a traceback knows of it.
        cause.__traceback__ = failed.__traceback__ = None
        if not self._repair(cause):
            raise failed
        return call()

    def _repair(self, reason: BaseException) -> bool:
        """Repair what is stored, unless that was done a moment ago; whether it was."""
        now = time.monotonic()
        if now < self._repaired_at + MIN_REPAIR_INTERVAL_SECONDS:
            return False
        self._repaired_at = now
        with self._transaction() as connection:
            dropped = repair(connection)
        log.warning(
            "the sitemap's store %s was damaged (%s) and was repaired; %d records were lost, and are learned again",
            self.name,
            reason,
            dropped,
        )
        return True

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that takes the write lock at once: one that turns to writing later can fail for good."""
        with self._open_connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_version(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    def _check_version(self, connection: sqlite3.Connection) -> None:
        """Refuse to write what newer code, beside which this process still runs, has made another of."""
        if file_versions(connection)[1] != len(MIGRATIONS):
            raise StoreError(f"the store {self.name} was taken over by newer code; restart this process")

    @contextlib.contextmanager
    def _open_connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connect()
            except StoreError:
                raise
            except Exception as error:  # what is damaged can fail in any way
                with contextlib.suppress(sqlite3.Error):
                    self._on_failure(error)
                raise StoreError(f"the store {self.name} does not work now: {error}") from error
