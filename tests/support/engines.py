"""Real store engines for one test each, with methods that break and repair them."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import cast

import pytest

from sitemap_middleware.stores import Store, open_store, postgresql
from sitemap_middleware.stores import sqlite as sqlite_module
from sitemap_middleware.stores.base import SCHEMA_VERSION
from sitemap_middleware.stores.sqlite import SQLiteStore

from . import postgres
from .proxy import Proxy
from .redis_servers import USUAL, RedisServer
from .servers import free_port
from .waiting import until

PATIENCE_SECONDS = 10.0
"""Seconds for which a store of an engine waits for an answer, where a test does not say otherwise before it is made."""

_numbers = itertools.count()


class PostgreSQL:
    """A new schema in a shared server, reached over TCP by a role that needs its password."""

    def __init__(self, _: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patience = PATIENCE_SECONDS
        self._monkeypatch = monkeypatch
        self.server = postgres.server()
        self.other: postgres.Server | None = None
        """That takes its place."""
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

    def standby(self) -> postgres.Server:
        """Another server, which knows all, and takes no writes."""
        server = postgres.Server(of=self.server)
        with self.server.connected() as primary, server.connected() as standby:
            ((position,),) = primary.execute("SELECT pg_current_wal_lsn()").fetchall()
            caught_up = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
            until(lambda: standby.execute(caught_up).fetchall() == [(True,)])
        return server

    def end_connections(self) -> None:
        """End the open connections: changed settings of a role or a server apply only to new ones."""
        self.say(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{self.schema}'")

    def close(self) -> None:
        self.proxy.close()
        if self.other is not None:
            self.other.remove()
        self.say(
            f"DROP OWNED BY {self.schema} CASCADE",
            f"DROP ROLE {self.schema}",
        )


class Redis:
    """A new server that keeps what it acknowledged, reached over TCP by a user with a password."""

    def __init__(self, _: Path, __: pytest.MonkeyPatch) -> None:
        self.patience = PATIENCE_SECONDS
        self.port = free_port()
        self.other: RedisServer | None = None
        """That takes its place."""
        self.server = self._started("--port", str(self.port), "--appendonly", "yes", "--appendfsync", "always")
        self.proxy = Proxy(self.server.folder / "socket")

    @property
    def url(self) -> str:
        return f"redis://app:first@127.0.0.1:{self.proxy.port}/0?socket_timeout={self.patience}"

    def store(self) -> Store:
        return open_store(self.url, "store")

    def say(self, *commands: str) -> None:
        for command in commands:
            self.server.request(*command.split())

    def replica(self) -> RedisServer:
        """Another one, which knows all, and takes no writes."""
        server = self._started("--replicaof", "127.0.0.1", str(self.port))
        until(lambda: _info(server, "replication")["master_link_status"] == "up")
        assert self.server.request("WAIT", "1", "10000") == 1
        return server

    def _started(self, *options: str) -> RedisServer:
        return RedisServer(USUAL, *options, "--user", "app", "on", ">first", "~*", "+@all")

    def saves(self, *, well: bool) -> None:
        """Have it write its file, and wait until it did or could not."""
        self.say("BGSAVE")
        wanted = "ok" if well else "err"
        until(lambda: _info(self.server, "persistence")["rdb_last_bgsave_status"] == wanted)

    def allow(self, password: str) -> None:
        """Have the user's password be this one; what is connected by another is ended."""
        self.say(f"ACL SETUSER app on resetpass >{password} ~* +@all", "CLIENT KILL USER app")

    def close(self) -> None:
        self.proxy.close()
        if self.other is not None:
            self.other.remove()
        self.server.remove()


def _info(server: RedisServer, section: str) -> dict[str, str]:
    return cast("dict[str, str]", server.request("INFO", section))


class PreparedSQLiteStore(SQLiteStore):
    """A store whose connections first run the engine's statements, which simulate the state of its disk."""

    def __init__(self, engine: SQLite) -> None:
        super().__init__(engine.file)
        self._engine = engine

    def _connection(self) -> sqlite3.Connection:
        connection = super()._connection()
        for statement in self._engine.statements:
            connection.execute(statement)
        return connection


FILLED = [f"{table}_{SCHEMA_VERSION}" for table in ("page", "record")]


class SQLite:
    """A file in a new folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patience = PATIENCE_SECONDS
        self._monkeypatch = monkeypatch
        self.folder = folder / "kept"
        self.file = self.folder / "pages.sqlite3"
        self.statements: tuple[str, ...] = ()
        self._holder: sqlite3.Connection | None = None

    def store(self) -> Store:
        self._monkeypatch.setattr(sqlite_module, "BUSY_TIMEOUT_SECONDS", self.patience)
        return PreparedSQLiteStore(self)

    def set_pragma(self, pragma: str) -> None:
        self.statements = (f"PRAGMA {pragma}",)

    def fill_disk(self) -> None:
        """Every write needs another megabyte, by which the file may not grow: SQLite reports a full disk."""
        triggers = (
            f"CREATE TEMP TRIGGER IF NOT EXISTS filling_{table} AFTER INSERT ON main.{table}"
            " BEGIN INSERT INTO filler VALUES (zeroblob(1000000)); END"
            for table in FILLED
        )
        self.statements = ("CREATE TABLE IF NOT EXISTS filler (bytes BLOB)", *triggers, "PRAGMA max_page_count = 1")

    def empty_disk(self) -> None:
        self.statements = (
            *(f"DROP TRIGGER IF EXISTS filling_{table}" for table in FILLED),
            "PRAGMA max_page_count = 1000000",
        )

    def lock(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._holder = sqlite3.connect(self.file, isolation_level=None)
        self._holder.execute("BEGIN EXCLUSIVE")

    def unlock(self) -> None:
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def close(self) -> None:
        self.unlock()


Engine = PostgreSQL | Redis | SQLite
