"""`sqlite:///path`: pages kept in one file, shared by the processes of one machine (the standard library's sqlite3)."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import struct
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from ..errors import StoreError
from ..forks import renew_in_children
from ..history import packed, unpacked
from ..model import Caps, Folded, Observation, Page
from .base import NO_MORE
from .census import Census

log = logging.getLogger("sitemap_middleware")

APPLICATION_ID: Final = 0x534D4150
"""Stands in the file's header and says that it is ours (SQLite, "PRAGMA application_id")."""

MIGRATIONS: Final = (
    """
    CREATE TABLE site (key TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE page (
        site TEXT NOT NULL, path TEXT NOT NULL, route TEXT NOT NULL,
        first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        status INTEGER NOT NULL, media_type TEXT NOT NULL, noindex INTEGER NOT NULL, private INTEGER NOT NULL,
        canonical TEXT, modified INTEGER, moments BLOB NOT NULL, PRIMARY KEY (site, path)
    ) WITHOUT ROWID;
    CREATE TABLE document (
        site TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (site, name)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE page ADD COLUMN read_at INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE page ADD COLUMN html_noindex INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE page ADD COLUMN html_canonical TEXT;
    ALTER TABLE page ADD COLUMN stated TEXT;
    ALTER TABLE page ADD COLUMN contents BLOB NOT NULL DEFAULT x'';
    """,
    """
    ALTER TABLE page ADD COLUMN learned INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE census (
        site TEXT NOT NULL, route TEXT NOT NULL, pages INTEGER NOT NULL, PRIMARY KEY (site, route)
    ) WITHOUT ROWID;
    CREATE TABLE lease (site TEXT NOT NULL, name TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (site, name))
    WITHOUT ROWID;
    """,
)
"""Step N brings a file of version N to version N + 1. A step that was released is never altered."""

_NAMES: Final = tuple(field.name for field in fields(Page))
_MOMENTS, _CONTENTS = _NAMES.index("moments"), _NAMES.index("contents")
_COLUMNS: Final = ", ".join(_NAMES)
_MARKS: Final = ", ".join("?" for _ in _NAMES)
_values: Final = attrgetter(*_NAMES)
_BUSY_SECONDS: Final = 5.0

_PAGES: Final = f"SELECT {_COLUMNS} FROM page WHERE site = ?"  # noqa: S608 (column names of our own)
_PAGE: Final = f"{_PAGES} AND path = ?"
_PUBLISH: Final = (
    "INSERT INTO document VALUES (?, ?, ?, ?) ON CONFLICT (site, name)"
    " DO UPDATE SET etag = excluded.etag, since = excluded.since WHERE etag <> excluded.etag"
)
_KEEP: Final = f"INSERT OR REPLACE INTO page (site, {_COLUMNS}) VALUES (?, {_MARKS})"  # noqa: S608 (likewise)
_COUNTS: Final = "SELECT route, pages FROM census WHERE site = ?"
_COUNT: Final = (
    "INSERT INTO census VALUES (?, ?, ?) ON CONFLICT (site, route) DO UPDATE SET pages = pages + excluded.pages"
)
_GROWN: Final = "INSERT INTO site (key, version) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET version = version + 1"
_ELSEWHERE: Final = "(coalesce(canonical, '') <> '' OR coalesce(html_canonical, '') <> '')"
_PROMISING: Final = f"(status = 200 AND NOT (noindex OR html_noindex OR private OR {_ELSEWHERE}))"
_FORGOTTEN: Final = f"FROM page WHERE site = ? AND learned AND (last_seen < ? OR (last_seen < ? AND NOT {_PROMISING}))"
_LEASE: Final = (
    "INSERT INTO lease VALUES (?, ?, ?) ON CONFLICT (site, name) DO UPDATE SET until = excluded.until WHERE until <= ?"
)


class SQLiteStore:
    """A store in one file. It opens when first used, and again in the child after a fork.

    A file that is corrupt, or of a newer version than this code knows, is set
    aside under another name with one warning. A sound database that is not ours
    is left alone, and every call is a `StoreError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._suspect = False
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: a parent's connection must be neither used nor closed (SQLite, "How To Corrupt", 2.6)."""
        self._lock = threading.Lock()
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None

    def fold(self, site: str, observations: Sequence[Observation], caps: Caps = NO_MORE) -> Folded:
        with self._transaction() as connection:
            known = _load(connection, site, [seen.path for seen in observations])
            census = Census(dict(connection.execute(_COUNTS, (site,))), caps)
            changed = census.take(known, observations)
            connection.executemany(_KEEP, [(site, *_row(page)) for page in changed.values()])
            _note(connection, site, changed, census.moved)
            return census.folded(changed)

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        with self._transaction() as connection:
            bounds = (site, unseen_since, unlisted_since)
            gone = Counter(dict(connection.execute(f"SELECT route, count(*) {_FORGOTTEN} GROUP BY route", bounds)))
            connection.execute(f"DELETE {_FORGOTTEN}", bounds)
            moved = Counter({route: -count for route, count in gone.items()})
            _note(connection, site, gone, moved)
            return gone.total()

    def pages(self, site: str) -> list[Page]:
        with self._opened() as connection:
            return [_page(row) for row in connection.execute(f"{_PAGES} ORDER BY path", (site,))]

    def version(self, site: str) -> int:
        with self._opened() as connection:
            row = connection.execute("SELECT version FROM site WHERE key = ?", (site,)).fetchone()
            return int(row[0]) if row else 0

    def published(self, site: str, name: str, etag: str, now: int) -> int:
        query = "SELECT since FROM document WHERE site = ? AND name = ? AND etag = ?"
        with self._opened() as connection:
            row = connection.execute(query, (site, name, etag)).fetchone()
        if row is None:
            with self._transaction() as connection:
                connection.execute(_PUBLISH, (site, name, etag, now))
                row = connection.execute(query, (site, name, etag)).fetchone()
        return int(row[0])

    def lease(self, site: str, name: str, now: int, seconds: int) -> bool:
        with self._transaction() as connection:
            return connection.execute(_LEASE, (site, name, now + seconds, now)).rowcount == 1

    def check_writable(self) -> None:
        """Raise `StoreError` where this file could not be written now."""
        with self._transaction():
            pass

    def close(self) -> None:
        with self._lock:
            self._close()

    def __del__(self) -> None:
        """A store that nobody holds lets go by itself; since Python 3.13 SQLite's handles complain if they must."""
        with contextlib.suppress(Exception):
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that takes the write lock at once: one that turns to writing later can fail for good."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connect()
            except (sqlite3.Error, OSError, OverflowError, UnicodeError, struct.error) as error:
                self._suspect = _says_corrupt(error)
                with contextlib.suppress(sqlite3.Error):
                    self._close()
                raise StoreError(f"the store sqlite:///{self.path} does not work now: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None:
            if _inode(self.path) == self._inode:
                return self._connection
            self._close()  # the file was deleted or set aside: go on in the one of that name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(self.path.parent):
            if not self.path.exists():
                for suffix in ("-wal", "-shm"):  # of a file that was deleted: they would spoil the next
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            try:
                self._connection = self._open()
            except _Unusable as reason:
                self._set_aside(str(reason))
                self._connection = self._open()
            self._inode = _inode(self.path)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
        )
        try:
            self._check(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            _migrate(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if _says_corrupt(error):
                raise _Unusable(f"is corrupt ({error})") from None
            raise
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is not ours or not of our time, before anything in it is changed."""
        owner, version = _versions(connection)
        if owner != APPLICATION_ID and (
            owner or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        ):
            raise StoreError(
                f"the store sqlite:///{self.path} is a database of another program; give the sitemap a file of its own"
            )
        if owner == APPLICATION_ID and version > len(MIGRATIONS):
            raise _Unusable(f"is of version {version}, newer than this code's {len(MIGRATIONS)}")
        if self._suspect and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _Unusable("is corrupt")
        self._suspect = False

    def _set_aside(self, reason: str) -> None:
        aside = self.path.with_name(f"{self.path.name}.aside-{_inode(self.path)}")
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").replace(f"{aside}{suffix}")
        log.warning("the sitemap's store %s %s; it is set aside as %s and a new one begun", self.path, reason, aside)


class _Unusable(Exception):
    """A file of ours that this code cannot go on with."""


_inherited: Final[list[sqlite3.Connection]] = []
"""A parent's connections, kept from being closed in the child."""


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Have other processes wait while one opens, begins, migrates or sets aside the file.

    SQLite itself has only some of these wait for each other. The folder is what
    is locked: to open and close a database beside SQLite would drop its locks.
    """
    if sys.platform == "win32":
        yield  # it lets no one move a file that is open elsewhere
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _says_corrupt(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def _versions(connection: sqlite3.Connection) -> tuple[int, int]:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    return int(owner), int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this code's version, in one step or not at all."""
    owner, version = _versions(connection)
    if (owner, version) == (APPLICATION_ID, len(MIGRATIONS)):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in MIGRATIONS[version:]:
        for statement in filter(str.strip, step.split(";")):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def _load(connection: sqlite3.Connection, site: str, paths: Sequence[str]) -> dict[str, Page]:
    known: dict[str, Page] = {}
    for path in paths:
        row = connection.execute(_PAGE, (site, path)).fetchone()
        if row is not None:
            known[path] = _page(row)
    return known


def _note(connection: sqlite3.Connection, site: str, changed: Sized, moved: Counter[str]) -> None:
    """Take note that pages have changed, and by how much the count of each route has."""
    if changed:
        connection.execute(_GROWN, (site,))
    connection.executemany(_COUNT, [(site, route, by) for route, by in moved.items() if by])


def _row(page: Page) -> tuple[Any, ...]:
    return tuple(packed(value) if isinstance(value, tuple) else value for value in _values(page))


def _page(row: tuple[Any, ...]) -> Page:
    values = list(row)  # SQLite's 0 and 1 are as good as False and True
    values[_MOMENTS], values[_CONTENTS] = unpacked(row[_MOMENTS]), unpacked(row[_CONTENTS])
    return Page(*values)
