"""A look into a store from outside of the app that keeps it: nothing is made, migrated, set aside or written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ..exceptions import StoreError
from .base import Store
from .engine_status import EngineStatus, LeaseStatus
from .fallback import FallbackStore
from .sqlite.base_store import BaseSQLiteStore
from .sqlite.memory import MemoryStore
from .sqlite.schema import APPLICATION_ID, MIGRATIONS, file_versions
from .sqlite.store import BUSY_TIMEOUT_SECONDS, SQLiteStore


def open_readonly(store: Store) -> tuple[Store, str | None]:
    """A store to read from; and, where that is not all that the running app knows, why it is not.

    Every call is a `StoreError` where it cannot be read.
    """
    if isinstance(store, FallbackStore):
        store = store.effective_store
    if isinstance(store, MemoryStore):
        return store, "the store is memory://, so what the running app has seen is known to it alone"
    if not isinstance(store, SQLiteStore):
        own = getattr(store, "open_readonly", None)
        return (own() if callable(own) else store), None
    if not store.path.exists():
        return MemoryStore(), (
            f"there is no store yet at {store.path}, so nothing is known of what the app answers: ask the running app"
            " for its sitemap once; if it was asked, run this in its folder, or set SITEMAP_STORE as it is set there"
        )
    return ReadOnlySQLiteStore(store.path), None


class ReadOnlySQLiteStore(BaseSQLiteStore):
    """A file of ours as it lies there."""

    def __init__(self, file: Path) -> None:
        self.name = f"sqlite:///{file}"
        self.file = file
        super().__init__()

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """What else there is to know."""
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
        """When a page of a site was last seen, as far as that is written down; each page is looked at."""
        query = "SELECT max(last_seen) FROM page WHERE site = (SELECT id FROM site WHERE key = ?)"
        with self._open_connection() as connection:
            found: int | None = connection.execute(query, (site,)).fetchone()[0]
            return found

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            # A file that no one has open is read as it is: SQLite would put two more beside it, even to read.
            alone = "" if Path(f"{self.file}-wal").exists() else "&immutable=1"
            self._connection = sqlite3.connect(
                f"{self.file.as_uri()}?mode=ro{alone}", uri=True, timeout=BUSY_TIMEOUT_SECONDS, check_same_thread=False
            )
            owner, version = file_versions(self._connection)
            if owner != APPLICATION_ID:
                self._close()  # what is asked next fails likewise
                raise StoreError(f"the store {self.name} is no store of a sitemap")
            if version != len(MIGRATIONS):
                self._close()
                raise StoreError(
                    f"the store {self.name} is of version {version}, and this code reads version"
                    f" {len(MIGRATIONS)}; an app that runs with this code brings an older one up to date"
                )
        return self._connection

    def _on_failure(self, _: Exception) -> None:
        self._close()

    def _repair(self, _: BaseException) -> bool:
        """Nothing is written: the app itself repairs what is damaged."""
        return False
