"""A set of paths, in little memory however many they are."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Final

_ADD: Final = "INSERT OR IGNORE INTO path VALUES (?)"
_FIND: Final = "SELECT 1 FROM path WHERE hash = ?"


class PathSet:
    """Knows paths by 64 bits of each, in a database that SQLite keeps for itself alone: on disk, once it is large."""

    def __init__(self) -> None:
        import sqlite3  # it is imported only where it is used

        self._lock = threading.Lock()
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("CREATE TABLE path (hash INTEGER PRIMARY KEY)")

    def add(self, paths: Sequence[str]) -> list[bool]:
        """Put paths in; of each, whether it was not there before."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                return [self._connection.execute(_ADD, (hash(path),)).rowcount == 1 for path in paths]
            finally:
                self._connection.execute("COMMIT")

    def __del__(self) -> None:
        """A set that nobody holds lets go by itself; since Python 3.13 SQLite's handles complain if they must."""
        with contextlib.suppress(Exception):
            self._connection.close()

    def __contains__(self, path: str) -> bool:
        with self._lock:
            return self._connection.execute(_FIND, (hash(path),)).fetchone() is not None
