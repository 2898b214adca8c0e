"""Connects worker threads with the app's event loop, on asyncio or Trio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context as ContextVariables
from dataclasses import dataclass
from typing import Any, Final

from anyio import CancelScope, CapacityLimiter, sleep
from anyio.lowlevel import RunVar, checkpoint

from ..exceptions import ValuesError
from ..listing.provider_items import as_values_error
from ..listing.provider_reader import BatchQueue, iterate_in_batches
from ..models import Context
from ..protocol.extensions import leave_out

MAX_THREADS: Final = 20
"""Threads that handle requests for sitemaps. They are extra ones, because a sitemap may wait for
pages such as robots.txt, which the app serves on AnyIO's forty default threads."""

ROOM_SECONDS: Final = 0.005
"""Seconds after which an async source looks again whether the thread has taken a batch."""

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
