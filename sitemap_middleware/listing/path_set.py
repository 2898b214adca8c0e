"""A set of paths, in little memory however many they are."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Final

_INSERT_SQL: Final = "INSERT OR IGNORE INTO path VALUES (?)"
_SELECT_SQL: Final = "SELECT 1 FROM path WHERE hash = ?"


class PathSet:
    """Knows paths by 64 bits of each, in a database that SQLite keeps for itself alone: on disk, once it is large."""

    def __init__(self) -> None:
        import sqlite3  # it is imported only where it is used

        self._lock = threading.Lock()
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("CREATE TABLE path (hash INTEGER PRIMARY KEY)")
        # Not by __del__: in a circle of garbage the connection may go first, and since Python 3.13 it complains.
        weakref.finalize(self, self._connection.close).atexit = False

    def add(self, paths: Sequence[str]) -> list[bool]:
        """Put paths in; of each, whether it was not there before."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                return [self._connection.execute(_INSERT_SQL, (hash(path),)).rowcount == 1 for path in paths]
            finally:
                self._connection.execute("COMMIT")

    def __contains__(self, path: str) -> bool:
        with self._lock:
            return self._connection.execute(_SELECT_SQL, (hash(path),)).fetchone() is not None
