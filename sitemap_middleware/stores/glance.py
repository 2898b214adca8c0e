"""A look into a store from outside of the app that keeps it: nothing is made, migrated, set aside or written."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from pathlib import Path

from ..errors import StoreError
from ..model import Page
from .base import Store
from .default import DefaultStore
from .memory import MemoryStore
from .sqlite import _BUSY_SECONDS, _PAGES, APPLICATION_ID, MIGRATIONS, SQLiteStore, _page, _versions


def glance(store: Store, site: str) -> tuple[list[Page], str | None]:
    """The pages of a site; and, where that is not all that the running app knows, why it is not.

    Raises `StoreError` where the store cannot be read.
    """
    if isinstance(store, DefaultStore):
        store = store.named
    if isinstance(store, MemoryStore):
        return store.pages(site), "the store is memory://, so what the running app has seen is known to it alone"
    if not isinstance(store, SQLiteStore):
        return store.pages(site), None
    if not store.path.exists():
        return [], f"there is no store yet at {store.path}, so nothing is known of what the app answers"
    return _read(store.path, site), None


def _read(file: Path, site: str) -> list[Page]:
    # A file that no one has open is read as it lies there: SQLite would put two more beside it, even to read.
    alone = "" if Path(f"{file}-wal").exists() else "&immutable=1"
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.as_uri()}?mode=ro{alone}", uri=True, timeout=_BUSY_SECONDS)
        ) as connection:
            owner, version = _versions(connection)
            if owner != APPLICATION_ID:
                raise StoreError(f"the store sqlite:///{file} is no store of a sitemap")
            if version != len(MIGRATIONS):
                raise StoreError(
                    f"the store sqlite:///{file} is of version {version}, and this code reads version"
                    f" {len(MIGRATIONS)}; an app that runs with this code brings an older one up to date"
                )
            return [_page(row) for row in connection.execute(f"{_PAGES} ORDER BY path", (site,))]
    except (sqlite3.Error, OSError, struct.error) as error:
        raise StoreError(f"the store sqlite:///{file} cannot be read: {error}") from error
