"""The store contract on one SQLite connection, for a file and for memory (the standard library's sqlite3)."""

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

from ...evidence.observations import Observation
from ...exceptions import StoreError
from ...fork_safety import ForkSafeLock, reset_after_fork
from ...models import BaseURL, MergeResult, Page, PageLimits, StoreKey
from ..base import MAX_CLOCK_LEAD_SECONDS, MAX_LEASE_SECONDS, UNLIMITED, Block, RecordOwner
from ..compact_page_list import CompactPageList
from ..sql_row_id_layout_and_path_hash import row_id_range, site_row_id_ranges
from .pages import SELECT_ROWS, SitePages, checked_int, pages_of, read_block, select_in_batches, site_number
from .repair_in_place import is_damage, repair
from .schema import SCHEMA_VERSION, file_versions

log: logging.Logger = logging.getLogger("sitemap_middleware")

Result = TypeVar("Result")

MIN_REPAIR_INTERVAL_SECONDS: Final = 60.0
"""Seconds between two repairs, which read every page."""

_UPSERT_DOCUMENT: Final = (
    "INSERT INTO document VALUES (?, ?, ?, ?) ON CONFLICT (site, name)"
    " DO UPDATE SET etag = excluded.etag, first_served ="
    " CASE WHEN first_served - excluded.first_served BETWEEN 0 AND ?"
    " THEN first_served + 1 ELSE excluded.first_served END WHERE etag IS NOT excluded.etag"
)
_UPSERT_RECORD: Final = "INSERT OR REPLACE INTO record VALUES (?, ?, ?)"
_UPSERT_LEASE: Final = (
    "INSERT INTO lease VALUES (?, ?, ?, ?) ON CONFLICT (site, name)"
    " DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at"
    " WHERE expires_at <= ? OR owner = excluded.owner OR expires_at > ?"
)

_parent_connections: Final[list[sqlite3.Connection]] = []
"""Connections opened before a fork. Referenced here so that garbage collection does not close them in the child."""


def _close_connections(connections: list[sqlite3.Connection]) -> None:
    if not connections:
        return
    for connection in connections:
        with contextlib.suppress(sqlite3.Error):
            connection.close()


class BaseSQLiteStore(ABC):
    """Opens its connection at the first call, and again in the child after a fork."""

    name: str
    """How messages name the store."""

    def __init__(self) -> None:
        self._open_connections: list[sqlite3.Connection] = []
        """The connection, if it is open."""
        # Not in __del__: garbage collection may finalize the connection first, and Python 3.13 then warns about it.
        weakref.finalize(self, _close_connections, self._open_connections).atexit = False
        self._lock = ForkSafeLock()
        self._repaired_at = -math.inf
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Drop the parent's connection without closing it (SQLite, "How To Corrupt", 2.6)."""
        if self._connection is not None:
            _parent_connections.append(self._connection)
            self._connection = None

    def merge(self, site: StoreKey, observations: Sequence[Observation], limits: PageLimits = UNLIMITED) -> MergeResult:
        return self._write(lambda connection: SitePages(connection, site).merge(observations, limits))

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        return self._write(lambda connection: SitePages(connection, site).forget(unseen_since, unlisted_since))

    def pages(self, site: StoreKey) -> list[Page]:
        def select(connection: sqlite3.Connection) -> list[Page]:
            ranges = site_row_id_ranges(site_number(connection, site))
            rows = [row for id_range in ranges for row in connection.execute(SELECT_ROWS, id_range)]
            return sorted(pages_of(rows), key=attrgetter("path"))

        return self._read(select)

    def find_pages(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        return self._read(lambda connection: SitePages(connection, site).find_pages(paths))

    def version(self, site: StoreKey) -> int:
        def select(connection: sqlite3.Connection) -> int:
            row = connection.execute("SELECT version FROM site WHERE key = ?", (site,)).fetchone()
            return checked_int(row[0]) if row else 0

        return self._read(select)

    def blocks(self, site: StoreKey, since: int = 0) -> list[Block]:
        query = "SELECT number, document, pages, version FROM block WHERE site = ? AND version > ? ORDER BY number"

        def select(connection: sqlite3.Connection) -> list[Block]:
            rows = connection.execute(query, (site_number(connection, site), since)).fetchall()
            return [Block._make(map(checked_int, row)) for row in rows]

        return self._read(select)

    def block(self, site: StoreKey, number: int) -> list[Page]:
        def select(connection: sqlite3.Connection) -> list[Page]:
            return read_block(connection, row_id_range(site_number(connection, site), number))

        return self._read(select)

    def sample(self, site: StoreKey, limit: int) -> CompactPageList:
        return self._read(lambda connection: SitePages(connection, site).sample(limit))

    def served_since(self, site: BaseURL, name: str, etag: str, now: int) -> int:
        query = "SELECT first_served FROM document WHERE site = ? AND name = ? AND etag = ?"

        def select(connection: sqlite3.Connection) -> int | None:
            row = connection.execute(query, (site, name, etag)).fetchone()
            return checked_int(row[0]) if row else None

        def insert(connection: sqlite3.Connection) -> int | None:
            connection.execute(_UPSERT_DOCUMENT, (site, name, etag, now, MAX_CLOCK_LEAD_SECONDS))
            return select(connection)

        since = self._read(select)
        return checked_int(self._write(insert) if since is None else since)

    def load(self, site: RecordOwner, names: Collection[str]) -> dict[str, bytes]:
        query = "SELECT name, value FROM record WHERE site = ? AND name IN ({})"
        rows = self._read(lambda connection: select_in_batches(connection, query, names, site))
        return {name: value for name, value in rows if isinstance(value, bytes)}

    def save(self, site: RecordOwner, records: Mapping[str, bytes | None]) -> None:
        deleted = [(site, name) for name, value in records.items() if value is None]
        saved = [(site, name, value) for name, value in records.items() if value is not None]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM record WHERE site = ? AND name = ?", deleted)
            connection.executemany(_UPSERT_RECORD, saved)

        self._write(write)

    def lease(self, site: RecordOwner, name: str, owner: str, now: int, seconds: int) -> bool:
        values = (site, name, owner, now + seconds, now, now + MAX_LEASE_SECONDS)
        return self._write(lambda connection: connection.execute(_UPSERT_LEASE, values).rowcount == 1)

    def close(self) -> None:
        with self._lock:
            self._close()

    def release(self) -> None:
        """Close at process exit (`StoreExtras`)."""
        with self._lock:
            self._close()

    @property
    def _connection(self) -> sqlite3.Connection | None:
        return self._open_connections[0] if self._open_connections else None

    @_connection.setter
    def _connection(self, connection: sqlite3.Connection | None) -> None:
        self._open_connections[:] = [] if connection is None else [connection]

    @abstractmethod
    def connect(self) -> sqlite3.Connection:
        """The open connection, with all tables."""

    @abstractmethod
    def _on_failure(self, error: Exception) -> None:
        """React to an error of sqlite3's: the connection may be unusable."""

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def read() -> Result:
            with self.snapshot() as connection:
                return work(connection)

        return self._with_repair(read)

    def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def write() -> Result:
            with self._transaction() as connection:
                return work(connection)

        return self._with_repair(write)

    def _with_repair(self, call: Callable[[], Result]) -> Result:
        """The result of a call. If it fails because of damaged data, repair the data and call once more."""
        try:
            return call()
        except StoreError as error:
            cause = error.__cause__
            if cause is None or not is_damage(cause):
                raise
            failure = error
        # The frames in the tracebacks hold cursors, and unfinished cursors hold locks.
        cause.__traceback__ = failure.__traceback__ = None
        if not self._repair(cause):
            raise failure
        return call()

    def _repair(self, reason: BaseException) -> bool:
        """Repair all tables, unless that was done less than a minute ago. Returns whether it did."""
        now = time.monotonic()
        if now < self._repaired_at + MIN_REPAIR_INTERVAL_SECONDS:
            return False
        self._repaired_at = now
        with self._transaction() as connection:
            dropped = repair(connection)
        log.warning(
            "store %s was damaged (%s) and has been repaired; %d records were lost and will be learned again",
            self.name,
            reason,
            dropped,
        )
        return True

    def snapshot(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """The open connection, on which all statements read one state, whatever other processes write meanwhile."""
        return self._within("BEGIN")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # IMMEDIATE: a transaction that reads first and then writes fails at once if another one wrote meanwhile.
        with self._within("BEGIN IMMEDIATE") as connection:
            self._check_version(connection)
            yield connection

    @contextlib.contextmanager
    def _within(self, begin: str) -> Iterator[sqlite3.Connection]:
        """The open connection within a transaction."""
        with self.open_connection() as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    def _check_version(self, connection: sqlite3.Connection) -> None:
        """Refuse to write to a file whose version a process with newer code has changed."""
        if file_versions(connection)[1] != SCHEMA_VERSION:
            raise StoreError(f"the store {self.name} was migrated by newer code; restart this process")

    @contextlib.contextmanager
    def open_connection(self) -> Iterator[sqlite3.Connection]:
        """The open connection, for this thread alone. What fails within the block raises `StoreError`."""
        with self._lock:
            try:
                yield self.connect()
            except StoreError:
                raise
            except Exception as error:  # damaged data can raise anything
                with contextlib.suppress(sqlite3.Error):
                    self._on_failure(error)
                raise StoreError(f"the store {self.name} does not work now: {error}") from error
