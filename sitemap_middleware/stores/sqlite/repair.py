"""The repair of a damaged SQLite database: what can be read stays, all else is dropped, and is learned again."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import Final

from ...evidence.verdict import is_listable
from ..base import UNLEARNED_BLOCK
from ..page_codec import TooLargeError, unpack_page
from ..rebuild import RebuiltSite
from ..row_ids import MAX_NUMBER, block_of_row, path_hashes, position_of_row, site_of_row
from ..version_numbers import next_version
from .schema import PATH_HASH_BITS, migrate

BATCH_PAGES: Final = 5000
"""Pages that are looked at together."""

_COLUMN_TYPES: Final = {
    "route": {"id": "integer", "site": "integer", "path": "text"},
    "document": {"site": "text", "name": "text", "etag": "text", "since": "integer"},
    "thing": {"site": "text", "name": "text", "value": "blob"},
    "lease": {"site": "text", "name": "text", "owner": "text", "until": "integer"},
    "block": dict.fromkeys(("site", "number", "document", "pages", "given", "cost", "version"), "integer"),
}
"""What the values of a row must be for it to stay."""

_REPAIR_STATEMENTS: Final = tuple(
    f"UPDATE {table} SET {column} = {value} WHERE typeof({column}) <> 'integer' OR {column} < 0"  # noqa: S608
    for table, column, value in (
        ("site", "version", 0),
        ("site", "twins", 1),
        ("route", "pages", 0),
        ("page", "site", 0),
        ("page", "last_seen", 0),
        ("page", "promising", 0),
    )
)
"""What is found out anew, or need not be known."""

_SCHEMA_ERROR_MESSAGES: Final = (
    "no such table",
    "no such column",
    "has no column",
    "no such index",
    "does not match any",
    "values but",
)


def is_damage(error: BaseException | None) -> bool:
    """Whether a call failed in a way in which it may fail as long as nobody mends what is stored."""
    if isinstance(error, sqlite3.OperationalError):
        return any(text in str(error) for text in _SCHEMA_ERROR_MESSAGES)
    if isinstance(error, TooLargeError):
        return False
    return isinstance(error, sqlite3.IntegrityError | ValueError | TypeError | LookupError | AttributeError)


def repair(connection: sqlite3.Connection) -> int:
    """Repair all tables, within a transaction. Returns how many records were dropped."""
    for statement in _REPAIR_STATEMENTS:
        with suppress(sqlite3.OperationalError):  # a table that is missing
            connection.execute(statement)
    dropped = _rebuild_tables(connection)
    for table, types in _COLUMN_TYPES.items():
        wrong = " OR ".join(f"typeof({column}) <> '{kind}'" for column, kind in types.items())
        dropped += connection.execute(f"DELETE FROM {table} WHERE {wrong}").rowcount  # noqa: S608 (names of our own)
    wrong = f"typeof(key) <> 'text' OR id NOT BETWEEN 1 AND {MAX_NUMBER - 1}"
    dropped += connection.execute(f"DELETE FROM site WHERE {wrong}").rowcount  # noqa: S608 (a number of our own)
    dropped += connection.execute("DELETE FROM route WHERE site NOT IN (SELECT id FROM site)").rowcount
    connection.execute("DELETE FROM mark")
    connection.execute("DELETE FROM late_mark")
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
    """Make tables that are missing, and make those anew that are not as they should be, with the rows that fit."""
    there, dropped = dict(_schema(connection, "table")), 0
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as pristine:
        migrate(pristine)
        wanted = dict(_schema(pristine, "table"))
        indexes = dict(_schema(pristine, "index"))
        columns = {table: _columns(pristine, table) for table in wanted}
    for table, statement in wanted.items():
        if there.get(table) == statement:
            continue
        if table in there:
            fits = set(columns[table]) <= set(_columns(connection, table))
            connection.execute(f'ALTER TABLE "{table}" RENAME TO "damaged_{table}"')
        connection.execute(statement)
        if table in there:
            if fits:
                names = ", ".join(columns[table])
                old = connection.execute(f"SELECT count(*) FROM damaged_{table}").fetchone()[0]  # noqa: S608
                copied = f"INSERT OR IGNORE INTO {table} ({names}) SELECT {names} FROM damaged_{table}"  # noqa: S608
                dropped += old - connection.execute(copied).rowcount
            connection.execute(f"DROP TABLE damaged_{table}")
    for statement in set(indexes.values()).difference(dict(_schema(connection, "index")).values()):
        query = "DELETE FROM route WHERE id NOT IN (SELECT min(id) FROM route GROUP BY site, path)"
        dropped += connection.execute(query).rowcount
        connection.execute(statement)
    return dropped


def _schema(connection: sqlite3.Connection, kind: str) -> list[tuple[str, str]]:
    query = "SELECT name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    return connection.execute(query, (kind,)).fetchall()


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]


def _check_pages(connection: sqlite3.Connection, sites: dict[int, RebuiltSite[int]]) -> int:
    """Drop the pages that cannot be read, and have all others found again by their marks."""
    routes = {number: (site, path) for number, site, path in connection.execute("SELECT id, site, path FROM route")}
    seen: set[tuple[int, int]] = set()
    dropped, last = 0, -1
    query = f"SELECT id, path, route, facts FROM page WHERE id > ? ORDER BY id LIMIT {BATCH_PAGES}"  # noqa: S608 (a number)
    while rows := connection.execute(query, (last,)).fetchall():
        last = rows[-1][0]
        bad: list[tuple[int]] = []
        good: list[tuple[int, int, bool, int]] = []
        marks: list[tuple[int, int]] = []
        for row, path, route, facts in rows:
            site = site_of_row(row)
            try:
                of, route_path = routes[route]
                page = unpack_page(path, route_path, facts)
                mark = path_hashes(site, (path,), PATH_HASH_BITS)[path]
                rebuilt = sites[site]
            except (LookupError, TypeError, ValueError):
                bad.append((row,))
                continue
            if of != site or (site, mark) in seen or page.learned is not (block_of_row(row) != UNLEARNED_BLOCK):
                bad.append((row,))
                continue
            rebuilt.add(block_of_row(row), position_of_row(row), path, route)
            seen.add((site, mark))
            good.append((site, page.last_seen, is_listable(page), row))
            marks.append((mark, row))
        connection.executemany("DELETE FROM page WHERE id = ?", bad)
        connection.executemany("UPDATE page SET site = ?, last_seen = ?, promising = ? WHERE id = ?", good)
        connection.executemany("INSERT INTO mark VALUES (?, ?)", sorted(marks))
        dropped += len(bad)
    return dropped
