"""Migrations: the steps that bring an SQLite file of any version to this code's."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from itertools import chain, groupby
from typing import Any, Final

from ...evidence.verdict import is_listable
from ...history import History, Run
from ...models import Page
from ..base import UNLEARNED_BLOCK
from ..page_codec import pack_page
from ..placement import PlacementCursor, Slot, entry_size
from ..row_ids import path_hashes, row_id

APPLICATION_ID: Final = 0x534D4150
"""Stands in the file's header and says that it is ours (SQLite, "PRAGMA application_id")."""

PATH_HASH_BITS: Final = 48
"""Bits of a page's mark, of 64: they take six bytes, which is a size that SQLite has."""

Step = str | Callable[[sqlite3.Connection], None]


def _add_placement(connection: sqlite3.Connection) -> None:
    """Give every page its place, and put what is known of it in one value."""
    rows = connection.execute(f"SELECT site, {_COLUMNS_OF_VERSION_3} FROM page_of_3 ORDER BY site, first_seen, path")  # noqa: S608 (names of our own)
    for number, (key, pages) in enumerate(groupby(rows.fetchall(), key=lambda row: row[0]), 1):
        version = connection.execute("SELECT version FROM site_of_3 WHERE key = ?", (key,)).fetchone()
        connection.execute("INSERT INTO site VALUES (?, ?, ?, ?)", (number, key, version[0] if version else 1, True))
        routes: dict[str, int] = {}
        filling, named = PlacementCursor(), 0
        blocks: dict[int, list[Any]] = {0: [number, 0, 0, 0, 0, 0, 1]}
        for page in map(_page_of_version_3, pages):
            if page.route not in routes:
                inserted = connection.execute("INSERT INTO route VALUES (NULL, ?, ?, 0)", (number, page.route))
                routes[page.route] = inserted.lastrowid or 0
            if page.learned:
                filling = filling.advance(entry_size(key, page.path))
                place = Slot(filling.block, filling.pages - 1)
                block = blocks.setdefault(filling.block, [number, filling.block, filling.document, 0, 0, 0, 1])
                block[3:6] = block[3] + 1, filling.pages, filling.bytes
                connection.execute("UPDATE route SET pages = pages + 1 WHERE id = ?", (routes[page.route],))
            else:
                place = Slot(UNLEARNED_BLOCK, named)
                named += 1
                blocks[0][3:5] = named, named
            row = (
                row_id(number, place),
                number,
                page.path,
                routes[page.route],
                page.last_seen,
                is_listable(page),
                pack_page(page),
            )
            connection.execute("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.executemany("INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?)", blocks.values())
    for table in ("page", "site", "census"):
        connection.execute(f"DROP TABLE {table}_of_3")


_COLUMNS_OF_VERSION_3: Final = (
    "path, route, first_seen, last_seen, status, media_type, noindex, private, canonical, modified, moments,"
    " read_at, html_noindex, html_canonical, stated, contents, learned"
)


_RUN_OF_VERSION_3: Final = struct.Struct("<qqq")


def _history_of_version_3(raw: bytes) -> History:
    return tuple(map(Run._make, _RUN_OF_VERSION_3.iter_unpack(raw)))


def _page_of_version_3(row: tuple[Any, ...]) -> Page:
    _, *values = row
    values[10], values[15] = _history_of_version_3(values[10]), _history_of_version_3(values[15])
    renamed = {"moments": "last_modified_history", "contents": "content_history", "stated": "stated_date"}
    names = [renamed.get(name, name) for name in _COLUMNS_OF_VERSION_3.split(", ")]
    return Page(**dict(zip(names, values, strict=True)))


def _add_path_hashes(connection: sqlite3.Connection) -> None:
    """Have pages found by their marks."""
    connection.create_function("mark_of", 2, lambda site, path: path_hashes(site, (path,), PATH_HASH_BITS)[path])
    connection.execute("INSERT INTO mark SELECT mark_of(site, path) AS mark, id FROM page ORDER BY mark, id")


MIGRATIONS: Final[tuple[tuple[Step, ...], ...]] = (
    (
        """
        CREATE TABLE site (key TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID
        """,
        """
        CREATE TABLE page (
        site TEXT NOT NULL, path TEXT NOT NULL, route TEXT NOT NULL,
        first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        status INTEGER NOT NULL, media_type TEXT NOT NULL, noindex INTEGER NOT NULL, private INTEGER NOT NULL,
        canonical TEXT, modified INTEGER, moments BLOB NOT NULL, PRIMARY KEY (site, path)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE document (
        site TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (site, name)
        ) WITHOUT ROWID
        """,
    ),
    (
        """
        ALTER TABLE page ADD COLUMN read_at INTEGER NOT NULL DEFAULT 0
        """,
        """
        ALTER TABLE page ADD COLUMN html_noindex INTEGER NOT NULL DEFAULT 0
        """,
        """
        ALTER TABLE page ADD COLUMN html_canonical TEXT
        """,
        """
        ALTER TABLE page ADD COLUMN stated TEXT
        """,
        """
        ALTER TABLE page ADD COLUMN contents BLOB NOT NULL DEFAULT x''
        """,
    ),
    (
        """
        ALTER TABLE page ADD COLUMN learned INTEGER NOT NULL DEFAULT 0
        """,
        """
        CREATE TABLE census (
        site TEXT NOT NULL, route TEXT NOT NULL, pages INTEGER NOT NULL, PRIMARY KEY (site, route)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE lease (site TEXT NOT NULL, name TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (site, name))
        WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE site RENAME TO site_of_3",
        "ALTER TABLE page RENAME TO page_of_3",
        "ALTER TABLE census RENAME TO census_of_3",
        "DROP TABLE lease",
        """
        CREATE TABLE site (
            id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, twins INTEGER NOT NULL
        )
        """,
        """
        CREATE TABLE route (
            id INTEGER PRIMARY KEY, site INTEGER NOT NULL, path TEXT NOT NULL, pages INTEGER NOT NULL
        )
        """,
        "CREATE UNIQUE INDEX route_of_path ON route (site, path)",
        """
        CREATE TABLE page (
            id INTEGER PRIMARY KEY, site INTEGER NOT NULL, path TEXT NOT NULL, route INTEGER NOT NULL,
            last_seen INTEGER NOT NULL, promising INTEGER NOT NULL, facts BLOB NOT NULL
        )
        """,
        "CREATE UNIQUE INDEX page_of_path ON page (site, path)",
        """
        CREATE TABLE block (
            site INTEGER NOT NULL, number INTEGER NOT NULL, document INTEGER NOT NULL, pages INTEGER NOT NULL,
            given INTEGER NOT NULL, cost INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (site, number)
        ) WITHOUT ROWID
        """,
        "CREATE TABLE thing (site TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (site, name))",
        """
        CREATE TABLE lease (
            site TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, until INTEGER NOT NULL,
            PRIMARY KEY (site, name)
        ) WITHOUT ROWID
        """,
        _add_placement,
    ),
    (
        "CREATE TABLE mark (mark INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (mark, page)) WITHOUT ROWID",
        "CREATE TABLE late_mark (mark INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (mark, page)) WITHOUT ROWID",
        _add_path_hashes,
        "DROP INDEX page_of_path",
    ),
)
"""Steps N bring a file of version N to version N + 1, a statement each. Those that were released are never altered."""


def file_versions(connection: sqlite3.Connection) -> tuple[int, int]:
    """Whose a file is, as its header says, and of which version."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    return int(owner), int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this code's version, in one step or not at all."""
    owner, version = file_versions(connection)
    if (owner, version) == (APPLICATION_ID, len(MIGRATIONS)):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in chain.from_iterable(MIGRATIONS[version:]):
        if callable(step):
            step(connection)
        else:
            connection.execute(step)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
