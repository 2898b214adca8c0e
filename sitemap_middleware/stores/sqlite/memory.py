"""`memory://`: a store in the memory of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base_store import BaseSQLiteStore
from .schema import create_schema

if TYPE_CHECKING:
    import sqlite3


class MemoryStore(BaseSQLiteStore):
    """For tests, development, and machines without a writable disk. A forked child starts with an empty one."""

    name = "memory://"

    def close(self) -> None:
        """Do nothing: closing would lose the data. `release` closes."""

    def connect(self) -> sqlite3.Connection:
        if self._connection is None:
            import sqlite3  # the first flush needs it, not the start of the app

            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            create_schema(self._connection)
        return self._connection

    def _on_failure(self, _: Exception) -> None:
        """Keep the connection: closing would lose the data."""
