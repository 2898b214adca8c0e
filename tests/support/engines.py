"""Real store engines for one test each, with methods that break and repair them."""

from __future__ import annotations

import itertools
import resource
import sqlite3
from pathlib import Path

import pytest

from sitemap_middleware.stores import Store, open_store, postgresql
from sitemap_middleware.stores import sqlite as sqlite_module
from sitemap_middleware.stores.sqlite import SQLiteStore

from . import postgres
from .proxy import Proxy
from .redis_servers import USUAL, RedisServer

PATIENCE_SECONDS = 10.0
"""Seconds for which a store of an engine waits for an answer, where a test does not say otherwise before it is made."""

_numbers = itertools.count()


class PostgreSQL:
    """A new schema in a shared server, reached over TCP by a role that needs its password."""

    def __init__(self, _: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patience = PATIENCE_SECONDS
        self._monkeypatch = monkeypatch
        self.server = postgres.server()
        self.schema = f"faults_{next(_numbers)}"
        self.proxy = Proxy(self.server.folder / postgres.SOCKET)
        self.say(
            f"DO $$ BEGIN CREATE ROLE {postgres.ASKED}; EXCEPTION WHEN duplicate_object THEN END $$",
            f"CREATE ROLE {self.schema} LOGIN PASSWORD 'first' IN ROLE {postgres.ASKED}",
            f"GRANT CREATE ON DATABASE postgres TO {self.schema}",
        )

    @property
    def url(self) -> str:
        server = f"{self.schema}:first@127.0.0.1:{self.proxy.port}"
        return f"postgresql://{server}/postgres?schema={self.schema}&connect_timeout={max(2, round(self.patience))}"

    def store(self) -> Store:
        self._monkeypatch.setattr(postgresql, "TIMEOUT_SECONDS", self.patience)
        return open_store(self.url, "store")

    def say(self, *statements: str) -> None:
        with self.server.connected() as connection:
            for statement in statements:
                connection.execute(statement)

    def end_connections(self) -> None:
        """End the open connections: changed settings of a role or a server apply only to new ones."""
        self.say(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{self.schema}'")

    def close(self) -> None:
        self.proxy.close()
        self.say(f"DROP OWNED BY {self.schema} CASCADE", f"DROP ROLE {self.schema}")


class Redis:
    """A new server that keeps what it acknowledged, reached over TCP by a user with a password."""

    def __init__(self, _: Path, __: pytest.MonkeyPatch) -> None:
        self.patience = PATIENCE_SECONDS
        options = ("--appendonly", "yes", "--appendfsync", "always", "--user", "app", "on", ">first", "~*", "+@all")
        self.server = RedisServer(USUAL, *options)
        self.proxy = Proxy(self.server.folder / "socket")

    @property
    def url(self) -> str:
        return f"redis://app:first@127.0.0.1:{self.proxy.port}/0?socket_timeout={self.patience}"

    def store(self) -> Store:
        return open_store(self.url, "store")

    def say(self, *commands: str) -> None:
        for command in commands:
            self.server.request(*command.split())

    def allow(self, password: str) -> None:
        """Have the user's password be this one; what is connected by another is ended."""
        self.say(f"ACL SETUSER app on resetpass >{password} ~* +@all", "CLIENT KILL USER app")

    def close(self) -> None:
        self.proxy.close()
        self.server.remove()


class SQLite:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patience = PATIENCE_SECONDS
        self._monkeypatch = monkeypatch
        self.folder = folder / "kept"
        self.file = self.folder / "pages.sqlite3"
        self._holder: sqlite3.Connection | None = None

    def store(self) -> Store:
        self._monkeypatch.setattr(sqlite_module, "BUSY_TIMEOUT_SECONDS", self.patience)
        return SQLiteStore(self.file)

    def lock(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._holder = sqlite3.connect(self.file, isolation_level=None)
        self._holder.execute("BEGIN EXCLUSIVE")

    def unlock(self) -> None:
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    @staticmethod
    def fill_disk() -> None:
        """Have whatever this process writes to a file fail."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    @staticmethod
    def free_disk() -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    def close(self) -> None:
        self.unlock()


Engine = PostgreSQL | Redis | SQLite
