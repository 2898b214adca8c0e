"""Connections and transactions of psycopg 3. A process opens up to four connections, as needed, and reuses them."""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import psycopg

from ...fork_safety import reset_after_fork

MAX_CONNECTIONS: Final = 4
"""Connections of one store in one process."""

CONNECT_TIMEOUT_SECONDS: Final = 5
"""Timeout for opening a connection, for a free connection of the pool, and for a full server to accept one."""

LOCK_TIMEOUT_SECONDS: Final = 10
"""Timeout for a lock: hundreds of processes may start at once."""

STATEMENT_TIMEOUT_SECONDS: Final = 15
"""Timeout for one statement, enforced by the server."""

RESPONSE_TIMEOUT_SECONDS: Final = 20.0
"""Timeout for any response, enforced here: the server may hang or be unreachable."""

MAX_CONNECTION_AGE_SECONDS: Final = 30 * 60.0
"""Age at which a connection is replaced, so that changes of DNS take effect."""

DEFAULT_PARAMETERS: Final[Mapping[str, object]] = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * STATEMENT_TIMEOUT_SECONDS,
    "application_name": "sitemap_middleware",
}
"""Parameters of libpq, which the URL may override."""

SERVER_FULL_MESSAGES: Final = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "connection slots",
)
"""Parts of the messages of PostgreSQL and PgBouncer that have no connection left."""

_parent_connections: Final[list[Connection]] = []
"""Connections inherited by a forked child, referenced forever: closing them would end the parent's sessions."""


class Connection(psycopg.Connection[Any]):
    """A connection with a timeout for every response. TCP alone notices no server process that is merely stopped."""

    created_at: float
    is_unused = True
    """Nothing was executed since it left the pool. If it does not respond now, it was lost while idle."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        timeout = CONNECT_TIMEOUT_SECONDS if self.is_unused else RESPONSE_TIMEOUT_SECONDS
        return super().wait(_with_timeout(gen, timeout), *args, **options)


def _with_timeout(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """One of psycopg's generators, which yield what they wait for; it raises OperationalError after so many seconds."""
    deadline = time.monotonic() + seconds
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > deadline:
                raise psycopg.OperationalError(f"the server has not answered for {seconds:g} seconds")
            awaited = gen.send(ready)
    except StopIteration as stop:
        return stop.value


class Pool:
    """Connections with the same parameters, at most `MAX_CONNECTIONS` of them."""

    def __init__(self, parameters: Mapping[str, object]) -> None:
        self._parameters = {**DEFAULT_PARAMETERS, **parameters}
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Abandon the connections of the parent in a forked child, which must neither use nor close them."""
        _parent_connections.extend((*self._idle, *self._used))
        self._idle, self._used = [], set()
        self._semaphore = threading.BoundedSemaphore(MAX_CONNECTIONS)

    @contextlib.contextmanager
    def connection(self) -> Iterator[tuple[Connection, bool]]:
        """A connection in autocommit mode, and whether it was just opened. Any exception closes it."""
        semaphore = self._semaphore
        if not semaphore.acquire(timeout=CONNECT_TIMEOUT_SECONDS):
            raise psycopg.OperationalError(
                f"{MAX_CONNECTIONS} connections have been busy for {CONNECT_TIMEOUT_SECONDS} seconds"
            )
        try:
            connection = self._take_idle()
            is_new = connection is None
            connection = connection or self._connect()
            self._used.add(connection)
            connection.is_unused = True
            try:
                yield connection, is_new
            except BaseException:
                connection.close()
                raise
            finally:
                self._used.discard(connection)
            self._idle.append(connection)
        finally:
            semaphore.release()

    def close(self) -> None:
        """Close the idle connections."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _take_idle(self) -> Connection | None:
        """The usable connection that was used last, if any."""
        with contextlib.suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not (
                    connection.closed
                    or _is_closed_by_server(connection)
                    or time.monotonic() > connection.created_at + MAX_CONNECTION_AGE_SECONDS
                ):
                    return connection
                connection.close()
        return None

    def _connect(self) -> Connection:
        """Open a connection. If the server has none left, try again until `CONNECT_TIMEOUT_SECONDS` have passed."""
        deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
        while True:
            try:
                connection = Connection.connect(
                    **self._parameters,  # type: ignore[arg-type] # whatever libpq takes
                    autocommit=True,
                    prepare_threshold=None,  # PgBouncer may run the next transaction in another session
                )
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or not any(text in str(error) for text in SERVER_FULL_MESSAGES):
                    raise
                time.sleep(0.05)
            else:
                connection.created_at = time.monotonic()
                return connection


def _is_closed_by_server(connection: Connection) -> bool:
    """Whether an idle connection has something to read: the server sends nothing unasked, except that it closes."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class PendingResult(Protocol):
    """The result of a query that was sent."""

    def fetchall(self) -> list[Any]:
        """Wait for the rows."""


class Session:
    """A connection within a transaction. Queries name tables as if the schema were `sitemap`."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self.was_committed: bool = False
        """COMMIT was sent already."""
        self.was_rolled_back = False
        """Nothing was changed: a ROLLBACK saves the server a write to disk."""

    def __call__(self, query: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Any]:
        """Execute a query and return its rows. Without values it may be several statements."""
        cursor = self._execute(query, values)
        return cursor.fetchall() if cursor.description else []

    def send(self, query: str, values: Sequence[Any], *, flush: bool = False) -> PendingResult:
        """Send a query; within `pipeline`, without waiting for the result.

        The server buffers the results of a pipeline. `flush` makes it send this one as soon as it is ready.
        """
        result = self._execute(query, values)
        if flush and self.connection.pgconn.pipeline_status:
            self.connection.pgconn.send_flush_request()
            self.connection.pgconn.flush()
        return result

    def commit(self) -> None:
        """Send COMMIT; within `pipeline`, without waiting for the queries before it."""
        self.send("COMMIT", ())
        self.was_committed = True

    @contextlib.contextmanager
    def pipeline(self) -> Iterator[None]:
        """Use libpq's pipeline mode if it is supported: queries are sent without waiting for their results."""
        failure: BaseException | None = None
        try:
            with self.connection.pipeline() if psycopg.Pipeline.is_supported() else contextlib.nullcontext():
                try:
                    yield
                except BaseException as error:
                    failure = error
                    self.connection.close()  # else psycopg waits for the rest of the pipeline, and logs what fails
        except psycopg.Error as error:
            failure = failure or error
        if failure is not None:
            raise failure

    def _execute(self, query: str, values: Sequence[Any] | Mapping[str, Any] | None) -> psycopg.Cursor[Any]:
        qualified = query.replace("sitemap.", f'"{self.schema}".').encode()
        return self.connection.execute(qualified, values, binary=values is not None)
