"""Repairs a damaged SQLite store in place: deletes what cannot be read and rebuilds what follows from the rest."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import Final

from ...evidence.page_verdict import is_listable
from ..base import UNLEARNED_BLOCK
from ..next_site_version import next_version
from ..page_codec import TooLargeError, unpack_page
from ..recount_after_damage import RebuiltSite
from ..sql_row_id_layout_and_path_hash import MAX_NUMBER, block_of_row, path_hashes, position_of_row, site_of_row
from .schema import PATH_HASH_BITS, create_schema

BATCH_PAGES: Final = 5000
"""Pages read at a time."""

_COLUMN_TYPES: Final = {
    "route": {"id": "integer", "site": "integer", "path": "text"},
    "document": {"site": "text", "name": "text", "etag": "text", "first_served": "integer"},
    "record": {"site": "text", "name": "text", "value": "blob"},
    "lease": {"site": "text", "name": "text", "owner": "text", "expires_at": "integer"},
    "block": dict.fromkeys(("site", "number", "document", "pages", "slots", "entry_bytes", "version"), "integer"),
}
"""The types of values. Rows with a value of another type are deleted."""

_RESET_STATEMENTS: Final = tuple(
    f"UPDATE {table} SET {column} = {value} WHERE typeof({column}) <> 'integer' OR {column} < 0"  # noqa: S608
    for table, column, value in (
        ("site", "version", 0),
        ("site", "slash_variants", 1),
        ("route", "pages", 0),
        ("page", "last_seen", 0),
        ("page", "listable", 0),
    )
)
"""Reset damaged values that are computed again below, or that are true to be on the safe side."""

_SCHEMA_ERROR_MESSAGES: Final = (
    "no such table",
    "no such column",
    "has no column",
    "no such index",
    "does not match any",
    "values but",
)


def is_damage(error: BaseException | None) -> bool:
    """Whether an error shows that stored data is damaged, so that a repeated call would fail again."""
    if isinstance(error, sqlite3.OperationalError):
        return any(text in str(error) for text in _SCHEMA_ERROR_MESSAGES)
    if isinstance(error, TooLargeError):
        return False
    return isinstance(error, sqlite3.IntegrityError | ValueError | TypeError | LookupError | AttributeError)


def repair(connection: sqlite3.Connection) -> int:
    """Repair all tables, within a transaction. Returns how many records were deleted."""
    for statement in _RESET_STATEMENTS:
        with suppress(sqlite3.OperationalError):  # the table is missing; it is created below
            connection.execute(statement)
    dropped = _rebuild_tables(connection)
    for table, types in _COLUMN_TYPES.items():
        wrong = " OR ".join(f"typeof({column}) <> '{kind}'" for column, kind in types.items())
        dropped += connection.execute(f"DELETE FROM {table} WHERE {wrong}").rowcount  # noqa: S608 (names of our own)
    wrong = f"typeof(key) <> 'text' OR id NOT BETWEEN 1 AND {MAX_NUMBER - 1}"
    dropped += connection.execute(f"DELETE FROM site WHERE {wrong}").rowcount  # noqa: S608 (a number of our own)
    dropped += connection.execute("DELETE FROM route WHERE site NOT IN (SELECT id FROM site)").rowcount
    connection.execute("DELETE FROM path_hash")
    connection.execute("DELETE FROM recent_path_hash")
    sites = {number: (key, version) for number, key, version in connection.execute("SELECT id, key, version FROM site")}
    rebuilt = {
        number: RebuiltSite[int](
            key, dict(connection.execute("SELECT number, document FROM block WHERE site = ?", (number,)).fetchall())
        )
        for number, (key, _) in sites.items()
    }
    dropped += _check_pages(connection, rebuilt)
    connection.execute("DELETE FROM block")
    connection.execute("UPDATE route SET pages = 0")
    for number, site in rebuilt.items():
        version = next_version(sites[number][1])
        connection.execute("UPDATE site SET version = ? WHERE id = ?", (version, number))
        counts = [(pages, route) for route, pages in site.routes.items()]
        connection.executemany("UPDATE route SET pages = ? WHERE id = ?", counts)
        blocks = [(number, *block, version) for block in site.blocks()]
        connection.executemany("INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?)", blocks)
    return dropped


def _rebuild_tables(connection: sqlite3.Connection) -> int:
    """Create missing tables and indexes, and replace altered tables, copying the rows that fit.

    Returns how many rows did not fit.
    """
    tables, dropped = dict(_schema(connection, "table")), 0
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as pristine:
        create_schema(pristine)
        pristine_tables = dict(_schema(pristine, "table"))
        pristine_indexes = dict(_schema(pristine, "index"))
        columns = {table: _columns(pristine, table) for table in pristine_tables}
    for table, statement in pristine_tables.items():
        if tables.get(table) == statement:
            continue
        if table in tables:
            has_all_columns = set(columns[table]) <= set(_columns(connection, table))
            connection.execute(f'ALTER TABLE "{table}" RENAME TO "damaged_{table}"')
        connection.execute(statement)
        if table in tables:
            if has_all_columns:
                names = ", ".join(columns[table])
                rows = connection.execute(f"SELECT count(*) FROM damaged_{table}").fetchone()[0]  # noqa: S608
                copy = f"INSERT OR IGNORE INTO {table} ({names}) SELECT {names} FROM damaged_{table}"  # noqa: S608
                dropped += rows - connection.execute(copy).rowcount
            connection.execute(f"DROP TABLE damaged_{table}")
    for statement in set(pristine_indexes.values()).difference(dict(_schema(connection, "index")).values()):
        query = "DELETE FROM route WHERE id NOT IN (SELECT min(id) FROM route GROUP BY site, path)"
        dropped += connection.execute(query).rowcount  # duplicates, which the unique index would refuse
        connection.execute(statement)
    return dropped


def _schema(connection: sqlite3.Connection, kind: str) -> list[tuple[str, str]]:
    """The names and the statements of all tables, or indexes."""
    query = "SELECT name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    return connection.execute(query, (kind,)).fetchall()


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]


def _check_pages(connection: sqlite3.Connection, sites: dict[int, RebuiltSite[int]]) -> int:
    """Delete unreadable pages; add the others to their sites and store their hashes. Returns how many were deleted."""
    routes = {number: (site, path) for number, site, path in connection.execute("SELECT id, site, path FROM route")}
    seen: set[tuple[int, int]] = set()
    dropped, last_row = 0, -1
    query = f"SELECT id, path, route, data FROM page WHERE id > ? ORDER BY id LIMIT {BATCH_PAGES}"  # noqa: S608 (a number)
    while rows := connection.execute(query, (last_row,)).fetchall():
        last_row = rows[-1][0]
        unreadable: list[tuple[int]] = []
        updates: list[tuple[int, bool, int]] = []
        hashes: list[tuple[int, int]] = []
        for row, path, route, data in rows:
            site = site_of_row(row)
            try:
                route_site, route_path = routes[route]
                page = unpack_page(path, route_path, data)
                path_hash = path_hashes(site, (path,), PATH_HASH_BITS)[path]
                rebuilt = sites[site]
            except (LookupError, TypeError, ValueError):
                unreadable.append((row,))
                continue
            is_in_learned_block = block_of_row(row) != UNLEARNED_BLOCK
            if route_site != site or (site, path_hash) in seen or page.learned is not is_in_learned_block:
                unreadable.append((row,))
                continue
            rebuilt.add(block_of_row(row), position_of_row(row), path, route)
            seen.add((site, path_hash))
            updates.append((page.last_seen, is_listable(page), row))
            hashes.append((path_hash, row))
        connection.executemany("DELETE FROM page WHERE id = ?", unreadable)
        connection.executemany("UPDATE page SET last_seen = ?, listable = ? WHERE id = ?", updates)
        connection.executemany("INSERT INTO path_hash VALUES (?, ?)", sorted(hashes))
        dropped += len(unreadable)
    return dropped
