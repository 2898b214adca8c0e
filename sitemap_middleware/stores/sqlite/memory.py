"""`memory://`: pages kept by this process, for as long as it lives."""

from __future__ import annotations

import sqlite3

from .base_store import BaseSQLiteStore
from .schema import migrate


class MemoryStore(BaseSQLiteStore):
    """A store for one process: tests, development, and disks that cannot be written.

    A forked child begins a new one.
    """

    name = "memory://"

    def close(self) -> None:
        """Nothing is let go: it would be lost."""

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            migrate(self._connection)
        return self._connection

    def _on_failure(self, _: Exception) -> None:
        """Likewise, nothing is let go."""
