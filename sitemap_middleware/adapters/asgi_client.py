"""What runs on the event loop of an ASGI app, of asyncio or Trio: requests of paths within the process, as by a server,
and the reading of async `values` for worker threads.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context as ContextVariables
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import quote

from anyio import CancelScope, CapacityLimiter, Event, current_time, move_on_after, sleep
from anyio.lowlevel import RunVar, checkpoint
from starlette.types import ASGIApp, Message, Scope

from ..exceptions import ValuesError
from ..http.messages import (
    MAX_PROBE_BYTES,
    PAGE_TIMEOUT_SECONDS,
    Request,
    Response,
    as_exception,
    is_endless,
    truncated_response,
)
from ..listing.provider_items import as_values_error
from ..listing.provider_reader import BatchQueue, iterate_in_batches
from ..models import Context
from ..protocol.extensions import leave_out

CLEANUP_TIMEOUT_SECONDS: Final = 0.1
"""Seconds that a complete response waits for the app to close its files. Else they may stay open."""

MAX_THREADS: Final = 20
"""Threads that handle requests for sitemaps. They are extra ones, because a sitemap may wait for
pages such as robots.txt, which the app serves on AnyIO's forty default threads."""

ROOM_SECONDS: Final = 0.005
"""Seconds after which an async source looks again whether the thread has taken a batch."""

_threads: Final = RunVar[CapacityLimiter]("sitemap_middleware.threads")

_background_tasks: Final[set[asyncio.Task[None]]] = set()
"""Running tasks. The event loop itself keeps only weak references to them."""

_CONNECTION_KEYS: Final = ("asgi", "http_version", "scheme", "server", "app")
"""The keys of a scope that are about the connection or the app rather than the one request."""


class AppWithState(Protocol):
    """An app, and what its lifespan gave."""

    app: ASGIApp
    lifespan_state: dict[str, Any] | None


@dataclass(slots=True, eq=False, kw_only=True)
class ASGIRequest(Request):
    """A request over ASGI, whose own requests run on the app's event loop."""

    running: AppWithState
    scope: Scope
    """That of this request. Only what is about its connection is used."""
    call_soon: Callable[..., object]
    """Has the event loop of the app call a function. It may be called on any thread."""

    def request_app(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> Future[Response | None]:
        future: Future[Response | None] = Future()
        call = partial(request_app, self.running.app, self._scope(path, scheme, headers), future)
        # in an empty context: without the live request's user and other variables
        self.call_soon(ContextVariables().run, start_task, call)
        return future

    def plain(self) -> dict[str, Any]:
        scope = {name: self.scope[name] for name in (*_CONNECTION_KEYS, "client", "state") if name in self.scope}
        if "state" in scope:
            scope["state"] = {}
        return {"scope": scope}

    def _scope(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> Scope:
        """The scope of a request of the middleware itself. It holds nothing of the visitor's."""
        full_path = f"{self.root}{path}"
        scope: Scope = {name: self.scope[name] for name in _CONNECTION_KEYS if name in self.scope}
        if self.running.lifespan_state is not None:
            scope["state"] = dict(self.running.lifespan_state)  # servers give each request its own copy
        elif "state" in self.scope:
            scope["state"] = {}
        address, port = self.scope.get("client") or (None, 0)
        own: Scope = {
            "type": "http",
            "method": "GET",
            "scheme": scheme or scope.get("scheme", "http"),
            "path": full_path,
            "raw_path": quote(full_path).encode(),
            "query_string": b"",
            "root_path": self.root,
            "extensions": {},
            "client": (self.own_address(address), port),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        }
        scope.update(own)
        return scope


async def request_app(app: ASGIApp, scope: Scope, future: Future[Response | None]) -> None:
    """Call the app, with a deadline, and set the result of the future when the app has returned.

    What the app does after its response, in background tasks, has no deadline. The
    result waits for these only for `CLEANUP_TIMEOUT_SECONDS`.
    """
    deadline = CancelScope(deadline=current_time() + PAGE_TIMEOUT_SECONDS)
    has_returned = Event()

    async def set_result() -> None:
        with move_on_after(CLEANUP_TIMEOUT_SECONDS):
            await has_returned.wait()
        if not future.done():
            future.set_result(collector.response())

    def on_complete() -> None:
        deadline.deadline = math.inf
        start_task(set_result)

    collector = ResponseCollector(MAX_PROBE_BYTES, on_endless=deadline.cancel, on_complete=on_complete)
    failure: Exception = RuntimeError("the app did not answer")
    try:
        with deadline:
            await app(scope, collector.receive, collector.send)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Trio ends if a system task raises; a cancelled task of asyncio ends here anyway
        failure = as_exception(error)
    finally:
        has_returned.set()
        if future.done():
            pass
        elif collector.is_complete:
            future.set_result(collector.response())
        elif deadline.cancel_called:
            future.set_result(truncated_response(collector.response(), too_long=collector.is_too_long))
        else:
            future.set_exception(failure)


def decoded_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as text, with names in lower case."""
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]


@dataclass(eq=False)
class ResponseCollector:
    """The `receive` and `send` of a request without a body, whose client disconnects when the response is complete.

    Some apps wait for the disconnect before they return (ASGI, "Disconnect - receive event").
    """

    max_bytes: int | None = None
    on_endless: Callable[[], object] = bool
    """Called if the body is longer than `max_bytes`, or has no end, to stop the app."""
    on_complete: Callable[[], object] = bool
    status: int = 0
    _headers: list[tuple[str, str]] = field(default_factory=list)
    _body: bytearray = field(default_factory=bytearray)
    _requested: bool = False
    _completed: Event = field(default_factory=Event)

    async def receive(self) -> Message:
        if not self._requested:
            self._requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._completed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message. Most malformed ones raise an exception, as in servers, so that the app fails at once."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            self._headers = decoded_headers(message.get("headers", ()))
            if self.max_bytes is not None and is_endless(dict(self._headers).get("content-type", "").lower()):
                self.on_endless()
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if self.is_too_long:
                self.on_endless()
            elif not message.get("more_body", False) and not self._completed.is_set():
                self._completed.set()
                self.on_complete()

    @property
    def is_complete(self) -> bool:
        """Whether the app has sent the whole response."""
        return self._completed.is_set()

    @property
    def is_too_long(self) -> bool:
        """Whether the body is longer than `max_bytes`."""
        return self.max_bytes is not None and len(self._body) > self.max_bytes

    def response(self) -> Response:
        """The response so far."""
        return Response(self.status, self._headers, bytes(self._body))


# Worker threads and the event loop


def loop_caller() -> Callable[..., object]:
    """Return a function that schedules calls on the running event loop, from any thread."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        from trio.lowlevel import current_trio_token  # the loop that runs is Trio's, so it is there

        soon: Callable[..., object] = current_trio_token().run_sync_soon
        return soon


def thread_limiter() -> CapacityLimiter:
    """The limiter of the threads that handle requests for sitemaps, one for each event loop."""
    try:
        return _threads.get()
    except LookupError:
        limiter = CapacityLimiter(MAX_THREADS)
        _threads.set(limiter)
        return limiter


def start_task(function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
    """Start a task that is not tied to a request, on the running event loop, in an empty context."""
    try:
        task = asyncio.get_running_loop().create_task(function(*arguments), context=ContextVariables())
    except RuntimeError:
        from trio.lowlevel import spawn_system_task  # the loop that runs is Trio's, so it is there

        spawn_system_task(function, *arguments, context=ContextVariables())
    else:
        _background_tasks.add(task)
        task.add_done_callback(_background_tasks.discard)


def collect_on_loop(
    call_soon: Callable[..., object], source: Any, context: Context | None, queue: BatchQueue, seconds: float
) -> Generator[list[Any]]:
    """Yield the batches of an async source on this thread; one task on an event loop reads it.

    Raises `ValuesError` if the source fails, or gives no batch within so many seconds.
    """
    reader = AsyncReader(source, context, queue)
    try:
        call_soon(start_task, reader.run)
    except Exception as error:
        raise as_values_error(error) from None
    try:
        while (batch := queue.get(seconds)) is not None:
            yield batch
    finally:
        queue.cancel()
        with suppress(RuntimeError):  # the loop is closed
            call_soon(reader.stop)


@dataclass(slots=True, eq=False)
class AsyncReader:
    """Reads a source on the event loop, and passes the batches to a thread. It may outlive the request."""

    source: Any
    context: Context | None
    queue: BatchQueue
    _bounds: CancelScope | None = None
    _is_stopped: bool = False

    async def run(self) -> None:
        """Read the source. Runs in a task of its own."""
        self._bounds = CancelScope()  # here, because it belongs to the event loop
        leave_out.set(self.queue.leave_out)
        with self._bounds:
            if self._is_stopped:
                return
            try:
                await iterate_in_batches(self.source, self.context, self.queue, self._put)
            except (Exception, SystemExit) as error:
                self.queue.finish(error)
            except BaseException as error:  # Trio ends if a task of its own raises
                self.queue.finish(ValuesError("it was cancelled before its end"))
                if isinstance(error, KeyboardInterrupt):
                    raise
            else:
                self.queue.finish()

    async def _put(self, batch: list[Any]) -> None:
        # A source that never waits does not yield, and the app's requests must run: so at least once.
        await checkpoint()
        while not self.queue.put(batch, waits=False):  # noqa: ASYNC110 (a thread takes the batches)
            await sleep(ROOM_SECONDS)

    def stop(self) -> None:
        """Stop reading the source. Runs on the event loop."""
        self._is_stopped = True
        if self._bounds is not None:
            self._bounds.cancel()
