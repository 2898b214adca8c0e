"""Reads an SQLite file that an app may be using: creates, migrates, repairs and writes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ...exceptions import StoreError
from ..engine_status import EngineStatus, LeaseStatus
from .base_store import BaseSQLiteStore
from .schema import APPLICATION_ID, MIGRATIONS, file_versions
from .store import BUSY_TIMEOUT_SECONDS


class ReadOnlySQLiteStore(BaseSQLiteStore):
    """A store's file, opened for reading. Every call raises `StoreError` if this version cannot read it."""

    def __init__(self, file: Path) -> None:
        self.name = f"sqlite:///{file}"
        self.file = file
        super().__init__()

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """Details for the `status` command (`StoreExtras`)."""
        files = [Path(f"{self.file}{suffix}") for suffix in ("", "-wal", "-shm")]
        size = sum(file.stat().st_size for file in files if file.exists())
        with self._open_connection() as connection:
            keys = [key for (key,) in connection.execute("SELECT key FROM site ORDER BY key")]
            changed = dict(connection.execute("SELECT site, max(since) FROM document GROUP BY site"))
            query = "SELECT site, name, until FROM lease WHERE until > ? ORDER BY site, name"
            leases = list(map(LeaseStatus._make, connection.execute(query, (now,))))
            version = f"{sqlite3.sqlite_version}, file version {file_versions(connection)[1]}"
        return EngineStatus("SQLite", version, size, list(sites) or keys, changed, leases)

    def last_seen(self, site: str) -> int | None:
        """When a page of a site was last seen, in POSIX seconds. Reads every page of the site."""
        query = "SELECT max(last_seen) FROM page WHERE site = (SELECT id FROM site WHERE key = ?)"
        with self._open_connection() as connection:
            last_seen: int | None = connection.execute(query, (site,)).fetchone()[0]
            return last_seen

    def _connect(self) -> sqlite3.Connection:
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
        if version != len(MIGRATIONS):
            raise StoreError(
                f"the store {self.name} is of version {version}, and this code reads version"
                f" {len(MIGRATIONS)}; an app that runs with this code brings an older one up to date"
            )

    def _on_failure(self, _: Exception) -> None:
        self._close()

    def _repair(self, _: BaseException) -> bool:
        """Never: the app repairs its file itself."""
        return False
