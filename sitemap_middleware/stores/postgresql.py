"""`postgresql://`: a store in a schema of a PostgreSQL database, shared by processes on any machine (psycopg 3).

The schema is created when the store is first used, and again if it was dropped.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import parse_qsl

import psycopg
from psycopg import conninfo, errors

from ..exceptions import StoreError
from ..http.urls import hide_passwords, without_password
from ..util import reset_after_fork
from .base import SCHEMA_VERSION, EngineStatus
from .sql import Cursor, SqlStore

Result = TypeVar("Result")

DEFAULT_SCHEMA: Final = "sitemap"
_SCHEMA_NAME: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_SCHEMA_OPTION: Final = re.compile(r"(?<=[?&])schema=([^&]*)&?")

MAX_CONNECTIONS: Final = 4
"""Connections of one store in one process. They are opened as needed, and reused."""

CONNECT_TIMEOUT_SECONDS: Final = 5
"""Timeout for opening a connection, and for a free one of the four."""

RESPONSE_TIMEOUT_SECONDS: Final = 5.0
"""Timeout for any response, enforced here: the server may hang or be unreachable."""

MAX_CONNECTION_AGE_SECONDS: Final = 30 * 60.0
"""Age at which a connection is replaced, so that changes of DNS take effect."""

DEFAULT_PARAMETERS: Final[Mapping[str, object]] = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "client_encoding": "utf8",
    "application_name": "sitemap_middleware",
}
"""Parameters of libpq, which the URL may override."""

# SET LOCAL, because PgBouncer may run the next transaction in another session. The server gives up, and frees its
# locks, when this process has done so.
_BEGIN: Final = (
    f"BEGIN; SET LOCAL statement_timeout = '{RESPONSE_TIMEOUT_SECONDS:g}s';"
    f" SET LOCAL lock_timeout = '{RESPONSE_TIMEOUT_SECONDS:g}s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{2 * RESPONSE_TIMEOUT_SECONDS:g}s'"
)

_parent_connections: Final[list[_Connection]] = []
"""Connections inherited by a forked child, referenced forever: closing them would end the parent's sessions."""


class _Connection(psycopg.Connection[Any]):
    """A connection with a timeout for every response. TCP alone notices no server process that is merely stopped."""

    opened_at: float = 0.0
    is_prepared: bool = False
    """Whether the tables are known to exist."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(_with_timeout(gen), *args, **options)


class _TimeoutError(psycopg.OperationalError):
    """The server did not answer in time."""


def _with_timeout(gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """One of psycopg's generators, which yield what they wait for."""
    deadline = time.monotonic() + RESPONSE_TIMEOUT_SECONDS
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > deadline:
                raise _TimeoutError(f"the server has not answered for {RESPONSE_TIMEOUT_SECONDS:g} seconds")
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
    types: ClassVar[Mapping[str, str]] = {"text": "TEXT", "name": 'TEXT COLLATE "C"', "bytes": "BYTEA"}
    clock = "extract(epoch FROM clock_timestamp())::bigint"

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._url = url
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
        self._idle: list[_Connection] = []
        self._used: set[_Connection] = set()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Abandon the connections of the parent in a forked child, which must neither use nor close them."""
        _parent_connections.extend((*self._idle, *self._used))
        self._idle, self._used = [], set()
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def now(self) -> float:
        """The server's clock, in POSIX seconds (`StoreExtras`)."""
        query = "SELECT extract(epoch FROM clock_timestamp())::double precision"
        ((now,),) = self._run(lambda cursor: self._select(cursor, query), write=False)
        return float(now)

    def open_readonly(self) -> PostgreSQLStore:
        """Another store of this URL, which does not create the schema: its calls fail instead (`StoreExtras`)."""
        return PostgreSQLStore(self._url, create=False)

    def status(self) -> EngineStatus:
        """Details for the `status` command (`StoreExtras`)."""
        size = (
            "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'"
        )

        def read(cursor: Cursor) -> tuple[str, int | None]:
            ((version,),) = self._select(cursor, "SHOW server_version")
            ((count,),) = self._select(cursor, size, self.schema)
            return f"PostgreSQL {version}", count

        return EngineStatus(*self._run(read, write=False), self.sites())

    def close(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def __del__(self) -> None:
        """Close the idle connections of a store that was never closed."""
        with contextlib.suppress(Exception):
            self.close()

    def _run(self, work: Callable[[Cursor], Result], *, write: bool) -> Result:
        for is_last in (False, True):
            try:
                return self._run_once(work, write=write)
            except (_TimeoutError, errors.QueryCanceled, errors.LockNotAvailable) as error:
                raise self._store_error(error) from None
            except (psycopg.OperationalError, errors.UndefinedTable) as error:
                # A connection was lost while it was idle, or two processes waited for each other, or the schema was
                # dropped: the next attempt opens a connection, which creates it.
                self.close()
                if is_last:
                    raise self._store_error(error) from None
            except psycopg.Error as error:
                raise self._store_error(error) from None
            except (OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise self._store_error(error) from error
        raise AssertionError

    def _store_error(self, error: Exception) -> StoreError:
        message = hide_passwords(" ".join(str(error).split()), self._url)
        return StoreError(f"the store {self.name} does not work now: {message}")

    def _run_once(self, work: Callable[[Cursor], Result], *, write: bool) -> Result:
        with self._connection() as connection:
            if not connection.is_prepared:
                self._prepare(connection)
            cursor = connection.cursor()
            if not write:
                return work(cursor)  # each query is a transaction of its own, and takes one round trip
            cursor.execute(_BEGIN)
            result = work(cursor)
            cursor.execute("COMMIT")
            return result

    def _prepare(self, connection: _Connection) -> None:
        """Create the tables behind a new connection if need be."""
        found = connection.execute("SELECT to_regclass(%s)", (f"{self.table_prefix}page_{SCHEMA_VERSION}",)).fetchone()
        if found == (None,):
            if not self._create:
                raise errors.InvalidSchemaName(
                    "it has no tables of this version; the app creates them when it first learns a page"
                )
            connection.execute(_BEGIN)
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x534D4150,))  # CREATE ... IF NOT EXISTS may race
            exists = connection.execute("SELECT to_regnamespace(%s)", (self.schema,)).fetchone()
            if exists == (None,):  # an account may have rights on the schema, but not on the database
                connection.execute(f'CREATE SCHEMA "{self.schema}"')
            for statement in self.create_statements():
                connection.execute(statement)
            connection.execute("COMMIT")
        connection.is_prepared = True

    @contextlib.contextmanager
    def _connection(self) -> Iterator[_Connection]:
        """A connection in autocommit mode. Any exception closes it."""
        free = self._free
        if not free.acquire(timeout=CONNECT_TIMEOUT_SECONDS):
            raise _TimeoutError(f"{MAX_CONNECTIONS} connections have been busy for {CONNECT_TIMEOUT_SECONDS} seconds")
        try:
            connection = self._idle_connection() or self._connect()
            self._used.add(connection)
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            finally:
                self._used.discard(connection)
            self._idle.append(connection)
        finally:
            free.release()

    def _idle_connection(self) -> _Connection | None:
        with contextlib.suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not connection.closed and time.monotonic() < connection.opened_at + MAX_CONNECTION_AGE_SECONDS:
                    return connection
                connection.close()
        return None

    def _connect(self) -> _Connection:
        connection = _Connection.connect(
            **self._parameters,
            autocommit=True,
            prepare_threshold=None,  # PgBouncer may run the next transaction in another session
        )
        connection.opened_at = time.monotonic()
        return connection
