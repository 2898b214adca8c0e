"""`memory://`: a store in the memory of one process."""

from __future__ import annotations

import sqlite3

from .base_store import BaseSQLiteStore
from .schema import create_schema


class MemoryStore(BaseSQLiteStore):
    """For tests, development, and machines without a writable disk. A forked child starts with an empty one."""

    name = "memory://"

    def close(self) -> None:
        """Do nothing: closing would lose the data. `release` closes."""

    def connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            create_schema(self._connection)
        return self._connection

    def _on_failure(self, _: Exception) -> None:
        """Keep the connection: closing would lose the data."""
