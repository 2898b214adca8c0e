"""`postgresql://`: a store in a schema of a PostgreSQL database, shared by processes on any machine (psycopg 3).

The schema is created when the store is first used, and again if it was dropped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import parse_qsl

import psycopg
from psycopg import conninfo

from ..options.store_urls import without_password
from .base import SCHEMA_VERSION
from .sql import SqlStore

Result = TypeVar("Result")

DEFAULT_SCHEMA: Final = "sitemap"
_SCHEMA_NAME: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_SCHEMA_OPTION: Final = re.compile(r"(?<=[?&])schema=([^&]*)&?")

TIMEOUT_SECONDS: Final = 5.0
"""Timeout for opening a connection, and for any response, enforced here: the server may hang or be unreachable."""

DEFAULT_PARAMETERS: Final[Mapping[str, object]] = {
    "connect_timeout": round(TIMEOUT_SECONDS),
    "client_encoding": "utf8",
    "application_name": "sitemap_middleware",
}
"""Parameters of libpq, which the URL may override."""


class _Connection(psycopg.Connection[Any]):
    """A connection with a timeout for every response. TCP alone notices no server process that is merely stopped."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(_with_timeout(gen), *args, **options)


def _with_timeout(gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """One of psycopg's generators, which yield what they wait for."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > deadline:
                raise psycopg.OperationalError(f"the server has not answered for {TIMEOUT_SECONDS:g} seconds")
            awaited = gen.send(ready)
    except StopIteration as stop:
        return stop.value


class PostgreSQLStore(SqlStore):
    """A store in the schema that the option `schema` of the URL names.

    Args:
        url: the URL; a ValueError, whose message shows no password, if it is malformed.
        create: whether to create the schema if it does not exist.
    """

    placeholder = "%s"
    types: ClassVar[Mapping[str, str]] = {"text": "TEXT", "path": 'TEXT COLLATE "C"', "bytes": "BYTEA"}
    clock = "extract(epoch FROM clock_timestamp())"
    now = SqlStore.read_clock
    # SET LOCAL, because PgBouncer may run the next transaction in another session. The server gives up, and frees its
    # locks, when this process has done so.
    begin = (
        f"BEGIN; SET LOCAL statement_timeout = '{TIMEOUT_SECONDS:g}s'; SET LOCAL lock_timeout = '{TIMEOUT_SECONDS:g}s';"
        f" SET LOCAL idle_in_transaction_session_timeout = '{2 * TIMEOUT_SECONDS:g}s'"
    )

    def __init__(self, url: str, *, create: bool = True) -> None:
        super().__init__()
        self.url: str = url
        self._create = create
        self.name: str = without_password(url)
        base, mark, options = url.partition("?")
        self.schema: str = dict(parse_qsl(options)).get("schema", DEFAULT_SCHEMA)
        if not _SCHEMA_NAME.fullmatch(self.schema):
            raise ValueError(
                f"names a schema {self.schema!r}: use up to 63 lower-case letters, digits and underscores, but no pg_"
                " prefix"
            )
        self.table_prefix: str = f'"{self.schema}".'
        try:
            parameters = conninfo.conninfo_to_dict(_SCHEMA_OPTION.sub("", f"{base}{mark}{options}").rstrip("?&"))
        except psycopg.Error:  # its message shows the URL
            raise ValueError("is not a PostgreSQL URL, or has a parameter that libpq does not know") from None
        self._parameters: dict[str, Any] = {**DEFAULT_PARAMETERS, **parameters}

    def open_readonly(self) -> PostgreSQLStore:
        """Another store of this URL, which does not create the schema: its calls fail instead."""
        return PostgreSQLStore(self.url, create=False)

    def connect(self) -> _Connection:
        connection = _Connection.connect(
            **self._parameters,
            autocommit=True,
            prepare_threshold=None,  # PgBouncer may run the next transaction in another session
        )
        try:
            self._create_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _create_tables(self, connection: _Connection) -> None:
        found = connection.execute("SELECT to_regclass(%s)", (f"{self.table_prefix}page_{SCHEMA_VERSION}",)).fetchone()
        if found != (None,):
            return
        if not self._create:
            raise LookupError("it has no tables of this version; the app creates them when it first learns a page")
        connection.execute(self.begin)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x534D4150,))  # CREATE ... IF NOT EXISTS may race
        exists = connection.execute("SELECT to_regnamespace(%s)", (self.schema,)).fetchone()
        if exists == (None,):  # an account may have rights on the schema, but not on the database
            connection.execute(f'CREATE SCHEMA "{self.schema}"')
        for statement in self.create_statements():
            connection.execute(statement)
        connection.execute("COMMIT")
