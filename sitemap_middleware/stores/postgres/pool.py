"""Connections of psycopg 3, a few a process: opened when one is needed, and kept while they are sound."""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final

import psycopg

from ...fork_safety import reset_after_fork

MAX_CONNECTIONS: Final = 4
"""Connections of one store in one process."""

CONNECT_TIMEOUT_SECONDS: Final = 5
"""For which a connection is waited for, and a server that has none left."""

LOCK_TIMEOUT_SECONDS: Final = 10
"""For which others are waited for: hundreds may start at once."""

STATEMENT_TIMEOUT_SECONDS: Final = 15
"""For which the server works at one statement."""

RESPONSE_TIMEOUT_SECONDS: Final = 20.0
"""After which a server that does not answer at all is given up."""

MAX_CONNECTION_AGE_SECONDS: Final = 30 * 60.0
"""Seconds after which a connection is made anew, so that a name that leads elsewhere by now is followed."""

DEFAULT_PARAMETERS: Final[Mapping[str, object]] = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * STATEMENT_TIMEOUT_SECONDS,
    "application_name": "sitemap_middleware",
}
"""What a URL does not say otherwise."""

SERVER_FULL_MESSAGES: Final = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "connection slots",
)

_parent_connections: Final[list[Connection]] = []
"""A parent's connections, kept from being closed in the child: the parent still talks through them."""


class Connection(psycopg.Connection[Any]):
    """A connection that waits for no answer for ever: a process that is stopped keeps its sockets open."""

    created_at: float
    is_new = True
    """Nothing was asked of it since it was taken: what says nothing now was lost while it was idle."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **more: Any) -> Any:
        return super().wait(
            _with_timeout(gen, CONNECT_TIMEOUT_SECONDS if self.is_new else RESPONSE_TIMEOUT_SECONDS), *args, **more
        )


def _with_timeout(answer: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    end = time.monotonic() + seconds
    try:
        wanted = next(answer)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise psycopg.OperationalError(f"the server has not answered for {seconds:g} seconds")
            wanted = answer.send(ready)
    except StopIteration as over:
        return over.value


class Pool:
    """Connections to where a URL leads."""

    def __init__(self, parameters: Mapping[str, object]) -> None:
        self._parameters = {**DEFAULT_PARAMETERS, **parameters}
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: what the parent talks through must be neither used nor closed."""
        _parent_connections.extend((*self._idle, *self._used))
        self._idle, self._used = [], set()
        self._semaphore = threading.BoundedSemaphore(MAX_CONNECTIONS)

    @contextlib.contextmanager
    def connection(self) -> Iterator[tuple[Connection, bool]]:
        """A connection, in autocommit mode, and whether it is a new one. Whatever fails with it ends it."""
        room = self._semaphore
        if not room.acquire(timeout=CONNECT_TIMEOUT_SECONDS):
            raise psycopg.OperationalError(
                f"{MAX_CONNECTIONS} connections have been busy for {CONNECT_TIMEOUT_SECONDS} seconds"
            )
        try:
            connection = self._take_idle()
            new = connection is None
            connection = connection or self._connect()
            self._used.add(connection)
            connection.is_new = True
            try:
                yield connection, new
            except BaseException:
                connection.close()
                raise
            finally:
                self._used.discard(connection)
            self._idle.append(connection)
        finally:
            room.release()

    def close(self) -> None:
        """Let go of what is idle."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _take_idle(self) -> Connection | None:
        """The connection that was used last, and may be used again."""
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
        end = time.monotonic() + CONNECT_TIMEOUT_SECONDS
        while True:
            try:
                connection = Connection.connect(
                    **self._parameters,  # type: ignore[arg-type] # whatever libpq takes
                    autocommit=True,
                    prepare_threshold=None,  # what is prepared is not to be had again through PgBouncer
                )
            except psycopg.OperationalError as error:
                if time.monotonic() > end or not any(text in str(error) for text in SERVER_FULL_MESSAGES):
                    raise
                time.sleep(0.05)
            else:
                connection.created_at = time.monotonic()
                return connection


def _is_closed_by_server(connection: Connection) -> bool:
    """Whether a server has something to say that it was not asked for: that it ends, or has ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))
