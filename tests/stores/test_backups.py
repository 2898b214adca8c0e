"""What the operator's guide says of backups of the SQLite file, and of newer and deleted ones, holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.stores.sqlite.schema import SCHEMA_VERSION
from sitemap_middleware.stores.sqlite.store import SQLiteStore

SITE = "https://example.com"


def store_with(file: Path, *paths: str) -> SQLiteStore:
    store = SQLiteStore(file)
    store.merge(SITE, [Observation(path, path, 1000, 200, "text/html") for path in paths])
    return store


def paths(file: Path) -> list[str]:
    store = SQLiteStore(file)
    stored = [page.path for page in store.pages(SITE)]
    store.close()
    return stored


@pytest.mark.parametrize("how", ["backup", "VACUUM INTO"])
def test_a_copy_made_while_the_store_is_in_use_is_a_store(how: str, tmp_path: Path) -> None:
    store = store_with(tmp_path / "sitemap.sqlite3", "/a", "/b")
    with closing(sqlite3.connect(tmp_path / "sitemap.sqlite3")) as source:
        if how == "backup":
            with closing(sqlite3.connect(tmp_path / "backup.sqlite3")) as backup:
                source.backup(backup)
        else:
            source.execute("VACUUM INTO ?", (str(tmp_path / "backup.sqlite3"),))
    store.merge(SITE, [Observation("/c", "/c", 2000, 200, "text/html")])
    store.close()
    assert paths(tmp_path / "backup.sqlite3") == ["/a", "/b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.sqlite3", "sitemap.sqlite3"]


def test_a_newer_file_that_was_set_aside_can_be_moved_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "sitemap.sqlite3"
    store_with(file, "/a").close()
    with closing(sqlite3.connect(file)) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert paths(file) == []
    assert f"is of version {SCHEMA_VERSION + 1}, newer than this code's {SCHEMA_VERSION}" in caplog.text
    (aside,) = tmp_path.glob("sitemap.sqlite3.aside-*")
    aside.replace(file)
    with closing(sqlite3.connect(file)) as newer:  # as the newer code finds it
        assert newer.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)
        assert newer.execute("SELECT path FROM page").fetchall() == [("/a",)]


def test_a_file_that_is_deleted_while_it_is_in_use_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.sqlite3"
    store = store_with(file, "/a")
    for path in tmp_path.iterdir():
        path.unlink()
    store.merge(SITE, [Observation("/b", "/b", 2000, 200, "text/html")])
    store.close()
    assert paths(file) == ["/b"]
