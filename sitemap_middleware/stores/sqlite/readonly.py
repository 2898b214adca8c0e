"""Reads an SQLite file that an app may be using: creates, repairs and writes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ...exceptions import StoreError
from ..base import EngineStatus, LeaseStatus
from ..sql_row_id_layout_and_path_hash import site_row_id_ranges
from .base_store import BaseSQLiteStore
from .pages import site_number
from .schema import APPLICATION_ID, SCHEMA_VERSION, file_versions
from .store import BUSY_TIMEOUT_SECONDS


class ReadOnlySQLiteStore(BaseSQLiteStore):
    """A store's file, opened for reading. Every call raises `StoreError` if this version cannot read it."""

    def __init__(self, file: Path) -> None:
        self.name: str = f"sqlite:///{file}"
        self.file = file
        super().__init__()

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """Details for the `status` command (`StoreExtras`)."""
        files = [Path(f"{self.file}{suffix}") for suffix in ("", "-wal", "-shm")]
        size = sum(file.stat().st_size for file in files if file.exists())
        with self.snapshot() as connection:
            keys = [key for (key,) in connection.execute("SELECT key FROM site ORDER BY key")]
            changed = dict(connection.execute("SELECT site, max(first_served) FROM document GROUP BY site"))
            query = "SELECT site, name, expires_at FROM lease WHERE expires_at > ? ORDER BY site, name"
            leases = list(map(LeaseStatus._make, connection.execute(query, (now,))))
            version = f"{sqlite3.sqlite_version}, file version {file_versions(connection)[1]}"
        return EngineStatus("SQLite", version, size, list(sites) or keys, changed, leases)

    def last_seen(self, site: str) -> int | None:
        """When a page of a site was last seen, in POSIX seconds. Reads every page of the site."""
        query = "SELECT max(last_seen) FROM page WHERE id BETWEEN ? AND ? OR id BETWEEN ? AND ?"
        with self.snapshot() as connection:
            learned, unlearned = site_row_id_ranges(site_number(connection, site))
            last_seen: int | None = connection.execute(query, (*learned, *unlearned)).fetchone()[0]
            return last_seen

    def connect(self) -> sqlite3.Connection:
        if self._connection is None:
            # Without a WAL no process has the file open. "immutable" then keeps SQLite from creating a WAL to read it.
            immutable = "" if Path(f"{self.file}-wal").exists() else "&immutable=1"
            uri = f"{self.file.as_uri()}?mode=ro{immutable}"
            self._connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, check_same_thread=False)
            try:
                self._check_file(self._connection)
            except StoreError:
                self._close()  # so that the next call fails in the same way
                raise
        return self._connection

    def _check_file(self, connection: sqlite3.Connection) -> None:
        owner, version = file_versions(connection)
        if owner != APPLICATION_ID:
            raise StoreError(f"{self.name} is not a sitemap store")
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"the store {self.name} has version {version}, but this code reads version {SCHEMA_VERSION}: install"
                " the sitemap-middleware that the app runs with"
            )

    def _on_failure(self, _: Exception) -> None:
        self._close()

    def _repair(self, _: BaseException) -> bool:
        """Never: the app repairs its file itself."""
        return False
