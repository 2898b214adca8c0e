"""A set of paths that needs little memory, even for millions."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress
from typing import Final

MAX_PATHS_IN_MEMORY: Final = 65_536

_INSERT_SQL: Final = "INSERT OR IGNORE INTO path VALUES (?)"
_SELECT_SQL: Final = "SELECT 1 FROM path WHERE hash = ?"


class PathSet:
    """A set of 64-bit hashes of paths.

    Beyond `MAX_PATHS_IN_MEMORY` they are in a temporary SQLite database, which moves to disk when it grows large.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hashes: set[int] = set()
        self._added = array("q")
        """The same in the order in which they were added, in a tenth of the memory."""
        self._has_repeats = False
        """Whether a path was added twice. Most providers give each once."""
        self._completed: array[int] | None = None
        """The same after `complete`; sorted at the first search."""
        self._is_sorted = False
        self._connection: sqlite3.Connection | None = None

    def add(self, paths: Sequence[str]) -> list[bool]:
        """Add paths; return for each whether it is new."""
        hashes = [*map(hash, paths)]
        with self._lock:
            if self._connection is None and len(self._hashes) + len(hashes) > MAX_PATHS_IN_MEMORY:
                self._connection = self._open()
            if self._connection is not None:
                return _insert(self._connection, hashes)
            known, before = self._hashes, len(self._hashes)
            if not self._has_repeats or known.isdisjoint(hashes):
                known.update(hashes)
                if len(known) == before + len(hashes):
                    self._added.fromlist(hashes)
                    return [True] * len(hashes)
                if self._has_repeats:
                    known.difference_update(hashes)
                else:  # this once it is not known which of them were new
                    known = self._hashes = set(self._added)
                    self._has_repeats = True
            are_new = [not (value in known or known.add(value)) for value in hashes]  # type: ignore[func-returns-value] # None: falsy
            self._added.fromlist([*compress(hashes, are_new)])
            return are_new

    def complete(self) -> None:
        """Note that no path will be added: the set then takes less memory."""
        with self._lock:
            self._completed = self._added
            self._hashes = set()

    def __contains__(self, path: str) -> bool:
        value = hash(path)
        with self._lock:
            if self._connection is not None:
                return self._connection.execute(_SELECT_SQL, (value,)).fetchone() is not None
            if self._completed is None:
                return value in self._hashes
            if not self._is_sorted:
                self._completed, self._is_sorted = array("q", sorted(self._completed)), True
            place = bisect_left(self._completed, value)
            return place < len(self._completed) and self._completed[place] == value

    def _open(self) -> sqlite3.Connection:
        """A database with the hashes up to now."""
        connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        # Not by __del__: in a reference cycle the connection may go first, and Python 3.13 warns of that.
        weakref.finalize(self, connection.close).atexit = False
        connection.execute("CREATE TABLE path (hash INTEGER PRIMARY KEY)")
        _insert(connection, sorted(self._hashes))
        self._hashes, self._added = set(), array("q")
        return connection


def _insert(connection: sqlite3.Connection, hashes: list[int]) -> list[bool]:
    connection.execute("BEGIN")
    try:
        if len({*hashes}) == len(hashes):
            before = connection.total_changes
            connection.execute("SAVEPOINT all_new")
            connection.executemany(_INSERT_SQL, [(value,) for value in hashes])
            if connection.total_changes - before == len(hashes):
                return [True] * len(hashes)
            connection.execute("ROLLBACK TO all_new")
        return [connection.execute(_INSERT_SQL, (value,)).rowcount == 1 for value in hashes]
    finally:
        connection.execute("COMMIT")
