"""`sqlite:///path`: a store in one file, shared by the processes of one machine; and `memory://`.

A damaged file is moved aside with a warning, and a new one is created. A database of another program is never written
to: every call raises `StoreError`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from ..exceptions import StoreError
from ..util import ForkSafeLock, reset_after_fork
from .base import SCHEMA_VERSION, EngineStatus
from .sql import Cursor, DamagedError, SqlStore

if sys.platform != "win32":
    import fcntl

log: logging.Logger = logging.getLogger("sitemap_middleware")

Result = TypeVar("Result")

APPLICATION_ID: Final = 0x534D4150
"""Marks a file, in its header, as one of this package (SQLite, "PRAGMA application_id")."""

BUSY_TIMEOUT_SECONDS: Final = 5.0

CHECKPOINT_PAGES: Final = 16_000
"""Database pages in the WAL before SQLite copies them to the file, which writes each page a second time."""

_parent_connections: Final[list[sqlite3.Connection]] = []
"""Connections opened before a fork. Referenced here so that garbage collection does not close them in the child."""


class _SQLiteBase(SqlStore):
    """Opens its one connection at the first call, and again in the child after a fork."""

    clock = "CAST(strftime('%s', 'now') AS INTEGER)"

    def __init__(self) -> None:
        self._open: list[sqlite3.Connection] = []
        """The connection, if it is open."""
        # Not in __del__: garbage collection may finalize the connection first, and Python 3.13 then warns about it.
        weakref.finalize(self, _close_all, self._open).atexit = False
        self._lock = ForkSafeLock()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Drop the parent's connection without closing it (SQLite, "How To Corrupt", 2.6)."""
        _parent_connections.extend(self._open)
        self._open.clear()

    def _run(self, work: Callable[[Cursor], Result], *, write: bool) -> Result:
        with self._lock:
            try:
                connection = self._connection()
                # IMMEDIATE: one that reads first and then writes fails at once if another one wrote meanwhile.
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                cursor = connection.cursor()
                try:
                    result = work(cursor)
                    cursor.close()
                    connection.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                        cursor.close()  # an unfinished one, held by the traceback, would hold locks
                        connection.execute("ROLLBACK")
                    raise
            except StoreError:
                raise
            except Exception as error:  # damaged data can raise anything
                with contextlib.suppress(sqlite3.Error):
                    self._on_failure(error)
                raise StoreError(f"the store {self.name} does not work now: {error}") from error
            return result

    def _connection(self) -> sqlite3.Connection:
        """The open connection, with all tables."""
        if not self._open:
            self._open.append(self._connect())
        return self._open[0]

    def _connect(self) -> sqlite3.Connection:
        raise NotImplementedError

    def _on_failure(self, error: Exception) -> None:
        """React to an error of sqlite3's: the connection may be unusable."""

    def close(self) -> None:
        with self._lock:
            _close_all(self._open)


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        with contextlib.suppress(sqlite3.Error):
            connections.pop().close()


class MemoryStore(_SQLiteBase):
    """`memory://`: for tests, development, and machines without a writable disk. A forked child starts with an empty
    one.
    """

    name = "memory://"

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for statement in self.create_statements():
            connection.execute(statement)
        return connection

    def close(self) -> None:
        """Do nothing: closing would lose the data."""


class SQLiteStore(_SQLiteBase):
    """A store in one file.

    Args:
        path: the file.
        readonly: whether to create and change nothing. Then every call fails if there is no such file.
    """

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False) -> None:
        self.path: Path = Path(path).absolute()
        self.name: str = f"sqlite:///{self.path}"
        self._readonly = readonly
        self._inode = 0
        """Inode of the file that was opened last; 0 before the first one."""
        self._may_be_corrupt = self._is_damaged = False
        super().__init__()

    def check_writable(self) -> None:
        """Raise `StoreError` if the file cannot be written to."""
        self._run(lambda _: None, write=True)

    def open_readonly(self) -> SQLiteStore:
        """The same file for reading only (`StoreExtras`)."""
        return SQLiteStore(self.path, readonly=True)

    def status(self) -> EngineStatus:
        """Details for the `status` command (`StoreExtras`)."""
        files = [Path(f"{self.path}{suffix}") for suffix in ("", "-wal", "-shm")]
        size = sum(file.stat().st_size for file in files if file.exists())
        return EngineStatus(f"SQLite {sqlite3.sqlite_version}", size, self.sites())

    def _on_failure(self, error: Exception) -> None:
        self._may_be_corrupt = _is_corruption(error)
        self._is_damaged = isinstance(error, DamagedError)
        _close_all(self._open)

    def _connection(self) -> sqlite3.Connection:
        if self._open and _inode(self.path) != self._inode:
            log.warning("store %s was deleted or replaced; what it held will be learned again", self.path)
            _close_all(self._open)
        return super()._connection()

    def _connect(self) -> sqlite3.Connection:
        if self._readonly:
            connection = self._open_for_reading()
            self._inode = _inode(self.path)
            return connection
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(self.path.parent):
            if not self.path.exists():
                for suffix in ("-wal", "-shm"):  # left by a deleted file; they would corrupt a new one
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            try:
                connection = self._open_file()
            except DamagedError as reason:
                self._move_aside(str(reason))
                connection = self._open_file()
            self._inode = _inode(self.path)
        return connection

    def _open_for_reading(self) -> sqlite3.Connection:
        if not self.path.exists():
            raise StoreError(f"no store exists at {self.path}")
        # Without a WAL no process has the file open. "immutable" then keeps SQLite from creating a WAL to read it.
        immutable = "" if Path(f"{self.path}-wal").exists() else "&immutable=1"
        connection = self._new_connection(f"{self.path.as_uri()}?mode=ro{immutable}")
        try:
            self._check_readable(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_readable(self, connection: sqlite3.Connection) -> None:
        if _application_id(connection) != APPLICATION_ID:
            raise StoreError(f"{self.name} is not a sitemap store")
        if not self._has_tables(connection):
            raise StoreError(
                f"the store {self.name} is of another version: install the sitemap-middleware that the app runs with"
            )

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        query = f"SELECT count(*) FROM sqlite_master WHERE name LIKE '%\\_{SCHEMA_VERSION}' ESCAPE '\\'"  # noqa: S608
        return bool(connection.execute(query).fetchone()[0] >= len(self.create_statements()))

    def _open_file(self) -> sqlite3.Connection:
        connection = self._new_connection(self.path.as_uri())
        try:
            self._check_file(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            if not self._has_tables(connection):
                connection.execute("BEGIN IMMEDIATE")
                for statement in self.create_statements():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute("COMMIT")
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.DatabaseError) and _is_corruption(error):
                raise DamagedError(f"is corrupt ({error})") from None
            raise
        return connection

    def _new_connection(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = _decode  # a damaged text must not keep the others from being read
        return connection

    def _check_file(self, connection: sqlite3.Connection) -> None:
        """Raise an error, before anything is written, if the file is another program's or damaged."""
        owner = _application_id(connection)
        if owner != APPLICATION_ID and (
            owner or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        ):
            raise StoreError(
                f"the store {self.name} is a database of another program; name another file for the sitemap"
            )
        if self._may_be_corrupt and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise DamagedError("is corrupt")
        self._may_be_corrupt = False
        if self._is_damaged:
            self._is_damaged = False
            raise DamagedError("is damaged")

    def _move_aside(self, reason: str) -> None:
        new_path = self.path.with_name(f"{self.path.name}.aside-{_inode(self.path)}")
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").replace(f"{new_path}{suffix}")
        log.warning("store %s %s; it was moved to %s and a new one created", self.path, reason, new_path)


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from opening, creating or moving the file meanwhile.

    SQLite's locks do not cover all of this. The folder is locked because closing the database file itself would drop
    the locks that SQLite holds on it in this process.
    """
    if sys.platform == "win32":
        yield  # Windows does not let a process move a file that another one has open
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
        while not _try_lock(handle):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"another process has had its folder, {folder}, locked for {BUSY_TIMEOUT_SECONDS:g} seconds"
                )
            time.sleep(0.01)
        try:
            yield
        finally:  # closing is not enough: a child forked meanwhile holds the lock, too
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    """Lock without waiting; return whether that succeeded."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _application_id(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _inode(path: Path) -> int:
    """The inode of a file; 0 if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _is_corruption(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
