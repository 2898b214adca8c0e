"""The tables of an SQLite store, and their version."""

from __future__ import annotations

import sqlite3
from typing import Final

APPLICATION_ID: Final = 0x534D4150
"""Marks a file, in its header, as one of this package (SQLite, "PRAGMA application_id")."""

SCHEMA_VERSION: Final = 2
"""Version of the tables below, in the file's header. Raise it with every change, and migrate from each version that was
released.
"""

PATH_HASH_BITS: Final = 48
"""Bits of a path's hash: six bytes, a size in which SQLite stores integers."""

CREATE_STATEMENTS: Final = (
    """
    CREATE TABLE site (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, slash_variants INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE route (id INTEGER PRIMARY KEY, site INTEGER NOT NULL, path TEXT NOT NULL, pages INTEGER NOT NULL)
    """,
    "CREATE UNIQUE INDEX route_path ON route (site, path)",
    """
    CREATE TABLE page (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL, route INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        listable INTEGER NOT NULL, data BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE path_hash (hash INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (hash, page)) WITHOUT ROWID
    """,
    """
    CREATE TABLE recent_path_hash (
        hash INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (hash, page)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE block (
        site INTEGER NOT NULL, number INTEGER NOT NULL, document INTEGER NOT NULL, pages INTEGER NOT NULL,
        slots INTEGER NOT NULL, entry_bytes INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (site, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE document (
        site TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, first_served INTEGER NOT NULL,
        PRIMARY KEY (site, name)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE record (site TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (site, name))",
    """
    CREATE TABLE lease (
        site TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, expires_at INTEGER NOT NULL,
        PRIMARY KEY (site, name)
    ) WITHOUT ROWID
    """,
)
"""The statements that create the tables.

| table | contents |
|---|---|
| `site` | the number and the version of each site; whether some of its paths differ by a trailing slash only |
| `route` | the number of each route, and how many of its pages were learned |
| `page` | pages; `id` (`sql_row_id_layout_and_path_hash`) holds site, block and position; `data`: see `page_codec` |
| `path_hash` | the pages of each path hash |
| `recent_path_hash` | those added recently; later merges move them to `path_hash` |
| `block` | per block: its document, its pages, the slots handed out, the bytes that their entries may take |
| `document` | when a sitemap document with this ETag was first served |
| `record` | what `Store.save` keeps |
| `lease` | who may do a job, and until when |
"""

COMPATIBLE_VERSIONS: Final = (1, SCHEMA_VERSION)
"""Versions whose tables this code can use as they are. Version 2 had one more, which is no longer read."""


def file_versions(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application id and the schema version in a file's header; both are 0 in a new file."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    return int(owner), int(connection.execute("PRAGMA user_version").fetchone()[0])


def create_schema(connection: sqlite3.Connection) -> None:
    """Create the tables in a new file, all or none, unless another process did."""
    if file_versions(connection) == (APPLICATION_ID, SCHEMA_VERSION):
        return
    connection.execute("BEGIN IMMEDIATE")
    versions = file_versions(connection)  # another process may have been faster
    for statement in () if versions[1] in COMPATIBLE_VERSIONS else CREATE_STATEMENTS:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
