"""`sqlite:///path`: pages kept in one file, shared by the processes of one machine (the standard library's sqlite3)."""

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
from .schema import APPLICATION_ID, MIGRATIONS, file_versions, migrate

log = logging.getLogger("sitemap_middleware")

BUSY_TIMEOUT_SECONDS: Final = 5.0

CHECKPOINT_PAGES: Final = 16_000
"""Pages of the log after which they are brought into the file: each costs twice the writing, so not too often."""


class SQLiteStore(BaseSQLiteStore):
    """A store in one file. It opens when first used, and again in the child after a fork.

    A file that is corrupt, or of a newer version than this code knows, is set
    aside under another name with one warning; the latter not by a process that
    was at work before newer code came. A sound database that is not ours
    is left alone, and every call is a `StoreError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.name = f"sqlite:///{self.path}"
        self._inode = 0
        self._may_be_damaged = False
        super().__init__()

    def check_writable(self) -> None:
        """Raise `StoreError` where this file could not be written now."""
        with self._transaction():
            pass

    def _on_failure(self, error: Exception) -> None:
        self._may_be_damaged = _is_corruption(error)
        self._close()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None:
            if _inode(self.path) == self._inode:
                return self._connection
            log.warning("the sitemap's store %s was deleted or replaced; what it held is learned again", self.path)
            self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _folder_lock(self.path.parent):
            if not self.path.exists():
                for suffix in ("-wal", "-shm"):  # of a file that was deleted: they would spoil the next
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            try:
                self._connection = self._open()
            except _UnusableFile as reason:
                if self._inode and isinstance(reason, _NewerFile):  # newer code works with it beside this process
                    raise StoreError(f"the store {self.name} {reason}; restart this process") from None
                self._quarantine(str(reason))
                self._connection = self._open()
            self._inode = _inode(self.path)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._check(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            migrate(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if _is_corruption(error) or _is_schema_mismatch(error):
                raise _UnusableFile(f"is corrupt ({error})") from None
            raise
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is not ours or not of our time, before anything in it is changed."""
        owner, version = file_versions(connection)
        if owner != APPLICATION_ID and (
            owner or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        ):
            raise StoreError(
                f"the store {self.name} is a database of another program; give the sitemap a file of its own"
            )
        if owner == APPLICATION_ID and version > len(MIGRATIONS):
            raise _NewerFile(f"is of version {version}, newer than this code's {len(MIGRATIONS)}")
        if self._may_be_damaged and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _UnusableFile("is corrupt")
        self._may_be_damaged = False

    def _quarantine(self, reason: str) -> None:
        aside = self.path.with_name(f"{self.path.name}.aside-{_inode(self.path)}")
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").replace(f"{aside}{suffix}")
        log.warning("the sitemap's store %s %s; it is set aside as %s and a new one begun", self.path, reason, aside)


class _UnusableFile(Exception):
    """A file of ours that this code cannot go on with."""


class _NewerFile(_UnusableFile):
    """One of newer code."""


@contextlib.contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
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
        end = time.monotonic() + BUSY_TIMEOUT_SECONDS
        while not _try_lock(handle):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"another process has had its folder, {folder}, locked for {BUSY_TIMEOUT_SECONDS:g} seconds"
                )
            time.sleep(0.01)
        try:
            yield
        finally:  # to close it is not enough: a child that was forked meanwhile has it, too
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    """Whether the lock could be had at once."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _is_schema_mismatch(error: Exception) -> bool:
    """Whether a migration did not find the tables of the version that the file's header tells."""
    return any(text in str(error) for text in ("already exists", "no such table", "no such column", "duplicate column"))


def _is_corruption(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
