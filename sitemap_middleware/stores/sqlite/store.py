"""`sqlite:///path`: a store in one file, shared by the processes of one machine."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...exceptions import StoreError
from .base_store import BaseSQLiteStore
from .schema import APPLICATION_ID, COMPATIBLE_VERSIONS, SCHEMA_VERSION, create_schema, file_versions

if sys.platform != "win32":
    import fcntl

log: logging.Logger = logging.getLogger("sitemap_middleware")

BUSY_TIMEOUT_SECONDS: Final = 5.0

CHECKPOINT_PAGES: Final = 16_000
"""Database pages in the WAL before SQLite copies them to the file, which writes each page a second time."""


class SQLiteStore(BaseSQLiteStore):
    """A store in one file, which is opened at the first call, and again in the child after a fork.

    A corrupt file, or one of a schema version that cannot be migrated, is moved aside with
    a warning, and a new one is created. A process that used the file before newer code replaced it
    leaves the new file alone. A database of another program is never written to: every
    call raises `StoreError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path).absolute()
        self.name: str = f"sqlite:///{self.path}"
        self._inode = 0
        """Inode of the file that was opened last; 0 before the first one."""
        self._may_be_corrupt = False
        super().__init__()

    def check_writable(self) -> None:
        """Raise `StoreError` if the file cannot be written to."""
        with self._transaction():
            pass

    def _on_failure(self, error: Exception) -> None:
        self._may_be_corrupt = _is_corruption(error)
        self._close()

    def connect(self) -> sqlite3.Connection:
        if self._connection is not None:
            if _inode(self.path) == self._inode:
                return self._connection
            log.warning("store %s was deleted or replaced; what it held will be learned again", self.path)
            self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(self.path.parent):
            if not self.path.exists():
                for suffix in ("-wal", "-shm"):  # left by a deleted file; they would corrupt a new one
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            try:
                self._connection = self._open()
            except _UnusableFile as reason:
                if self._inode and isinstance(reason, _NewerFile):  # processes with newer code use it
                    raise StoreError(f"the store {self.name} {reason}; restart this process") from None
                self._move_aside(str(reason))
                self._connection = self._open()
            self._inode = _inode(self.path)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._check_file(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            create_schema(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if _is_corruption(error):
                raise _UnusableFile(f"is corrupt ({error})") from None
            raise
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self, connection: sqlite3.Connection) -> None:
        """Raise an error, before anything is written, if the file is another program's or this code cannot use it."""
        owner, version = file_versions(connection)
        if owner != APPLICATION_ID:
            if owner or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise StoreError(
                    f"the store {self.name} is a database of another program; name another file for the sitemap"
                )
        elif version > SCHEMA_VERSION:
            raise _NewerFile(f"is of version {version}, newer than this code's {SCHEMA_VERSION}")
        elif version not in COMPATIBLE_VERSIONS:
            raise _UnusableFile(f"is of version {version}, older than this code's {SCHEMA_VERSION}")
        if self._may_be_corrupt and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _UnusableFile("is corrupt")
        self._may_be_corrupt = False

    def _move_aside(self, reason: str) -> None:
        new_path = self.path.with_name(f"{self.path.name}.aside-{_inode(self.path)}")
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").replace(f"{new_path}{suffix}")
        log.warning("store %s %s; it was moved to %s and a new one created", self.path, reason, new_path)


class _UnusableFile(Exception):
    """A file of this package that this version cannot use."""


class _NewerFile(_UnusableFile):
    """A file that newer code has created."""


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from opening, creating or moving the file meanwhile.

    SQLite's locks do not cover all of this. The folder is locked because closing the
    database file itself would drop the locks that SQLite holds on it in this process.
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


def _inode(path: Path) -> int:
    """The inode of a file; 0 if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _is_corruption(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
