"""A look into a store from outside of the app that keeps it: nothing is made, migrated, set aside or written."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..errors import StoreError
from .base import Store
from .default import DefaultStore
from .memory import MemoryStore
from .migrations import APPLICATION_ID, MIGRATIONS, versions
from .sqlite import BUSY_SECONDS, SQLiteStore
from .tables import Tables


def glance(store: Store) -> tuple[Store, str | None]:
    """A store to read from; and, where that is not all that the running app knows, why it is not.

    Every call is a `StoreError` where it cannot be read.
    """
    if isinstance(store, DefaultStore):
        store = store.named
    if isinstance(store, MemoryStore):
        return store, "the store is memory://, so what the running app has seen is known to it alone"
    if not isinstance(store, SQLiteStore):
        return store, None
    if not store.path.exists():
        return MemoryStore(), f"there is no store yet at {store.path}, so nothing is known of what the app answers"
    return _Glance(store.path), None


class _Glance(Tables):
    """A file of ours as it lies there."""

    def __init__(self, file: Path) -> None:
        self.name = f"sqlite:///{file}"
        self._file = file
        super().__init__()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            # A file that no one has open is read as it is: SQLite would put two more beside it, even to read.
            alone = "" if Path(f"{self._file}-wal").exists() else "&immutable=1"
            self._connection = sqlite3.connect(
                f"{self._file.as_uri()}?mode=ro{alone}", uri=True, timeout=BUSY_SECONDS, check_same_thread=False
            )
            owner, version = versions(self._connection)
            if owner != APPLICATION_ID:
                raise StoreError(f"the store {self.name} is no store of a sitemap")
            if version != len(MIGRATIONS):
                raise StoreError(
                    f"the store {self.name} is of version {version}, and this code reads version"
                    f" {len(MIGRATIONS)}; an app that runs with this code brings an older one up to date"
                )
        return self._connection

    def _failed(self, _: Exception) -> None:
        self._close()
