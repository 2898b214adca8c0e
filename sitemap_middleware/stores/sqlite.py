"""`sqlite:///path`: a store in one file, shared by the processes of one machine; and `memory://`.

A damaged file is moved aside with a warning, and a new one is created. A database of another program is never written
to: every call raises `StoreError`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from ..exceptions import StoreError
from ..util import log
from .base import SCHEMA_VERSION
from .sql import Cursor, SqlStore

if sys.platform != "win32":
    import fcntl

Result = TypeVar("Result")

APPLICATION_ID: Final = 0x534D4150
"""Marks a file, in its header, as one of this package (SQLite, "PRAGMA application_id")."""

BUSY_TIMEOUT_SECONDS: Final = 5.0


class _SQLiteBase(SqlStore):
    clock = "CAST(strftime('%s', 'now') AS INTEGER)"
    begin = "BEGIN IMMEDIATE"  # a transaction that reads first, and then writes, fails if another one wrote meanwhile

    def _new_connection(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        # A damaged text must not keep the others from being read.
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        return connection


class MemoryStore(_SQLiteBase):
    """`memory://`: for tests, development, and machines without a writable disk. A forked child starts with an empty
    one.
    """

    name = "memory://"

    def connect(self) -> sqlite3.Connection:
        connection = self._new_connection("file::memory:")
        for statement in self.create_statements():
            connection.execute(statement)
        return connection

    def _end_transaction(self) -> None:
        for connection in self._open:
            connection.rollback()

    def close(self) -> None:
        """Do nothing: closing would lose the data."""


class SQLiteStore(_SQLiteBase):
    """A store in one file. If `readonly`, it creates and changes nothing, and every call fails without that file."""

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False) -> None:
        super().__init__()
        self.path: Path = Path(path).absolute()
        self.name: str = f"sqlite:///{self.path}"
        self._readonly = readonly
        self._inode = 0
        """Inode of the file that is open."""

    def check_writable(self) -> None:
        """Raise `StoreError` if the file cannot be written to."""
        self._run(lambda _: None, write=True)

    def open_readonly(self) -> SQLiteStore:
        """The same file for reading only."""
        return SQLiteStore(self.path, readonly=True)

    def _run_once(self, work: Callable[[Cursor], Result], *, write: bool) -> Result:
        was_open = bool(self._open)
        try:
            return super()._run_once(work, write=write)
        except sqlite3.Error as error:
            if not self._readonly and _is_corruption(error):
                self._move_aside(error)
                if was_open:  # else the call is tried again; who is told knows that something is lost
                    raise StoreError(f"the store {self.name} does not work now: {error}") from error
            raise

    def _connection(self) -> sqlite3.Connection:
        if self._open and _inode(self.path) != self._inode:
            log.warning("store %s was deleted or replaced; what it held will be learned again", self.path)
            self._open.pop().close()
        connection: sqlite3.Connection = super()._connection()
        return connection

    def connect(self) -> sqlite3.Connection:
        if self._readonly:
            self._inode = _inode(self.path)
            if not self._inode:
                raise StoreError(f"no store exists at {self.path}")
            # Without a WAL no process has the file open. "immutable" then keeps SQLite from creating a WAL to read it.
            immutable = "" if Path(f"{self.path}-wal").exists() else "&immutable=1"
            return self._opened(f"{self.path.as_uri()}?mode=ro{immutable}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(self.path.parent):
            self._inode = _inode(self.path)
            if not self._inode:
                for suffix in ("-wal", "-shm"):  # left by a deleted file; they would corrupt a new one
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            connection = self._opened(self.path.as_uri())
            self._inode = _inode(self.path)
        return connection

    def _opened(self, uri: str) -> sqlite3.Connection:
        """A connection to the file, which has the tables of this version."""
        connection = self._new_connection(uri)
        try:
            has_tables = self._has_tables(connection)
            if not self._readonly:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            elif not has_tables:  # another process is about to create them
                connection.close()
                return MemoryStore().connect()
            if not has_tables:
                connection.execute(self.begin)
                for statement in self.create_statements():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        """Whether the file has the tables of this version. Raises `StoreError` if it is another program's."""
        ((owner,),) = connection.execute("PRAGMA application_id")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        if owner != APPLICATION_ID and (owner or tables):
            raise StoreError(
                f"the store {self.name} is a database of another program; name another file for the sitemap"
            )
        has_tables = f"page_{SCHEMA_VERSION}" in tables
        if self._readonly and tables and not has_tables:
            raise StoreError(
                f"the store {self.name} is of another version: install the sitemap-middleware that the app runs with"
            )
        return has_tables

    def _move_aside(self, error: sqlite3.Error) -> None:
        new_path = self.path.with_name(f"{self.path.name}.aside-{self._inode}")
        with folder_lock(self.path.parent):
            if _inode(self.path) != self._inode:
                return  # another process has done so, or has replaced the file
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").replace(f"{new_path}{suffix}")
        log.warning("store %s is corrupt (%s); it was moved to %s and a new one created", self.path, error, new_path)


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
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough: a child forked meanwhile holds the lock, too
        os.close(handle)


def _inode(path: Path) -> int:
    """The inode of a file; 0 if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _is_corruption(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
