"""Connects worker threads with the app's event loop, on asyncio or Trio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context as ContextVariables
from typing import Any, Final

from anyio import CancelScope, CapacityLimiter, Event, current_time
from anyio.lowlevel import RunVar, checkpoint

from ..exceptions import ValuesError
from ..listing.provider_items import as_values_error
from ..listing.provider_reader import BatchQueue, iterate_in_batches
from ..models import Context
from ..protocol.extensions import leave_out

MAX_THREADS: Final = 20
"""Threads that handle requests for sitemaps. They are extra ones, because a sitemap may wait for
pages such as robots.txt, which the app serves on AnyIO's forty default threads."""

_threads: Final = RunVar[CapacityLimiter]("sitemap_middleware.threads")

_background_tasks: Final[set[asyncio.Task[None]]] = set()
"""Running tasks. The event loop itself keeps only weak references to them."""


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
    try:
        bridge = AsyncBridge(call_soon, source, context, queue)
    except Exception as error:
        raise as_values_error(error) from None
    try:
        while (batch := bridge.get(seconds)) is not None:
            yield batch
    finally:
        bridge.cancel()


class AsyncBridge:
    """Reads a source in one task on the event loop, and passes the batches to a thread. It may outlive the request."""

    def __init__(
        self, call_soon: Callable[..., object], source: Any, context: Context | None, handover: BatchQueue
    ) -> None:
        self._handover = handover
        self._call_soon = call_soon
        self._bounds: CancelScope | None = None
        self._room: Event
        self._is_cancelled = False
        call_soon(start_task, self._run, source, context)

    async def _run(self, source: Any, context: Context | None) -> None:
        self._bounds, self._room = CancelScope(), Event()  # here, because they belong to the event loop
        leave_out.set(self._handover.leave_out)
        with self._bounds:
            if self._is_cancelled:
                return
            try:
                await iterate_in_batches(source, context, self._handover.read_item, self._put, current_time)
            except (Exception, SystemExit) as error:
                self._handover.finish(error)
            except BaseException as error:  # Trio ends if a task of its own raises
                self._handover.finish(ValuesError("it was cancelled before its end"))
                if isinstance(error, KeyboardInterrupt):
                    raise
            else:
                self._handover.finish()

    async def _put(self, batch: list[Any]) -> None:
        while True:
            self._room = Event()
            if self._handover.put(batch, waits=False):
                await checkpoint()  # a source that never waits does not yield, and the app's requests must run
                return
            await self._room.wait()

    def get(self, seconds: float) -> list[Any] | None:
        """The next batch, None after the last; called on a thread. Fails as `BatchQueue.get` does."""
        batch: list[Any] | None = self._handover.get(seconds)
        self._call_in_loop(self._make_room)
        return batch

    def _make_room(self) -> None:
        self._room.set()

    def cancel(self) -> None:
        """Stop reading the source."""
        self._handover.cancel()
        self._call_in_loop(self._stop)

    def _stop(self) -> None:
        self._is_cancelled = True
        if self._bounds is not None:
            self._bounds.cancel()

    def _call_in_loop(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._call_soon(function)
