"""What the operator's guide says of backups of the SQLite file holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sitemap_middleware.stores.sqlite import SQLiteStore

from .test_contract import everything, page, write


@pytest.mark.parametrize("how", ["backup", "VACUUM INTO"])
def test_a_copy_made_while_the_store_is_in_use_is_a_store(how: str, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "sitemap.sqlite3")
    write(store, page("/a"), page("/b"))
    with closing(sqlite3.connect(tmp_path / "sitemap.sqlite3")) as source:
        if how == "backup":
            with closing(sqlite3.connect(tmp_path / "backup.sqlite3")) as backup:
                source.backup(backup)
        else:
            source.execute("VACUUM INTO ?", (str(tmp_path / "backup.sqlite3"),))
    write(store, page("/c"))
    store.close()
    copy = SQLiteStore(tmp_path / "backup.sqlite3")
    assert everything(copy) == {0: ["/a", "/b"]}
    copy.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.sqlite3", "sitemap.sqlite3"]
