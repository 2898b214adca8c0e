"""A set of paths that needs little memory, even for millions."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Final

_INSERT_SQL: Final = "INSERT OR IGNORE INTO path VALUES (?)"
_SELECT_SQL: Final = "SELECT 1 FROM path WHERE hash = ?"


class PathSet:
    """A set of 64-bit hashes of paths, in a temporary SQLite database, which moves to disk when it grows large."""

    def __init__(self) -> None:
        import sqlite3  # only apps with providers need it

        self._lock = threading.Lock()
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("CREATE TABLE path (hash INTEGER PRIMARY KEY)")
        # Not by __del__: in a reference cycle the connection may go first, and Python 3.13 warns of that.
        weakref.finalize(self, self._connection.close).atexit = False

    def add(self, paths: Sequence[str]) -> list[bool]:
        """Add paths, and tell of each whether it is new."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                return [self._connection.execute(_INSERT_SQL, (hash(path),)).rowcount == 1 for path in paths]
            finally:
                self._connection.execute("COMMIT")

    def __contains__(self, path: str) -> bool:
        with self._lock:
            return self._connection.execute(_SELECT_SQL, (hash(path),)).fetchone() is not None
