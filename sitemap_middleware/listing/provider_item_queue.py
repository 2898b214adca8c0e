"""Hands the items of `values`, in batches, from the thread or event loop that reads them to the thread that lists them.

A batch is put as soon as it is full or some time has passed, so that a slow provider is seen to go on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any, Final

from ..exceptions import ValuesError, ValuesTimeout
from ..models import Context
from ..util import yield_to_other_threads
from .provider_item_parameters import read_item

MAX_BATCH_ITEMS: Final = 500
"""Items of a batch, at most. Their paths take less than a millisecond, and their entries another."""

THREAD_BATCH_SECONDS: Final = 0.1
"""How long a thread fills a batch before it puts it."""

LOOP_BATCH_SECONDS: Final = 0.01
"""The same on an event loop: a source that never waits keeps the loop for so long."""

_MAX_QUEUED_BATCHES: Final = 2
"""Batches that may wait to be taken."""

_MAX_REASON_CHARS: Final = 200
"""Characters of an exception's text that are shown."""


class ConsumerGone(Exception):
    """Raised in the producer once nobody takes batches any more."""


@dataclass(frozen=True, slots=True)
class _End:
    """The last thing in a queue."""

    error: BaseException | None = None


class BatchQueue:
    """Batches that one thread or task puts and a thread takes. The end, and an error, need no room."""

    def __init__(self, names: Collection[str] = ()) -> None:
        """`names`: the parameters that are read from items which are objects."""
        self._names = names
        self._batches = Queue[Any]()
        self._room = threading.Semaphore(_MAX_QUEUED_BATCHES)
        self._cancelled = False

    # For the producer

    def read_item(self, item: Any) -> Any:
        """Read the attributes of an item on the producer's thread: an ORM object may be usable only there."""
        return read_item(item, self._names)

    def put_items(self, items: Iterable[Any]) -> None:
        """Put items in batches. Raises `ConsumerGone`."""
        batch, began = [], time.monotonic()
        for item in items:
            batch.append(read_item(item, self._names))
            if len(batch) >= MAX_BATCH_ITEMS or time.monotonic() - began > THREAD_BATCH_SECONDS:
                self.put(batch)
                yield_to_other_threads()
                batch, began = [], time.monotonic()
        if batch:
            self.put(batch)

    def run_producer(self, produce: Callable[[BatchQueue], None]) -> None:
        """Run a producer to its end, and finish the queue with its error if it fails."""
        try:
            produce(self)
        except BaseException as error:  # SystemExit, too, must not end the thread silently
            self.finish(error)
        else:
            self.finish()

    def finish(self, error: BaseException | None = None) -> None:
        """End the queue. An error reaches the consumer after the batches before it."""
        self._batches.put(_End(error))

    def put(self, batch: Any) -> None:
        """Wait for room, and put a batch. Raises `ConsumerGone`."""
        self._room.acquire()
        self._add(batch)

    def try_put(self, batch: Any) -> bool:
        """Put a batch if there is room; return whether there was. Raises `ConsumerGone`."""
        has_room = self._room.acquire(blocking=False)
        if has_room:
            self._add(batch)
        return has_room

    def _add(self, batch: Any) -> None:
        if self._cancelled:
            raise ConsumerGone
        self._batches.put(batch)

    # For the consumer

    def get(self, seconds: float) -> Any:
        """The next batch; None after the last one.

        Raises:
            ValuesTimeout: there is none within these seconds.
            ValuesError: the producer failed, or the queue was cancelled.
        """
        try:
            batch = self._batches.get(timeout=seconds)
        except Empty:
            raise ValuesTimeout(f"it gave nothing for {seconds:g} seconds") from None
        if self._cancelled:
            raise ValuesError("it was cancelled, because the app shuts down")
        if not isinstance(batch, _End):
            self._room.release()
            return batch
        if batch.error is not None:
            raise as_values_error(batch.error)
        return None

    def cancel(self) -> None:
        """Stop taking batches: wakes the producer and the consumer, whichever waits."""
        self._cancelled = True
        self._room.release()
        self._batches.put(_End())


async def iterate_in_batches(
    source: Any,
    context: Context | None,
    read_item: Callable[[Any], Any],
    put: Callable[[list[Any]], Awaitable[None]],
    now: Callable[[], float],
) -> None:
    """Read all items of an async source within the app's context, and put them in batches.

    This is one task from first to last: what a generator opens between two items, such as
    a transaction or a timeout, must be closed in the task that opened it.
    """
    async with AsyncExitStack() as stack:
        if isinstance(context, AbstractAsyncContextManager):
            await stack.enter_async_context(context)
        elif context is not None:
            stack.enter_context(context)
        if not isinstance(source, AsyncIterable):
            source = await source
        items = await stack.enter_async_context(aclosing(_iterate(source)))
        batch, began = [], now()
        async for item in items:
            batch.append(read_item(item))
            if len(batch) >= MAX_BATCH_ITEMS or not 0 <= now() - began < LOOP_BATCH_SECONDS:
                await put(batch)
                batch, began = [], now()
        if batch:
            await put(batch)


def iterate_in_own_loop(source: Any, context: Context | None, queue: BatchQueue) -> None:
    """Read an async source on a new event loop, in the calling thread, into a queue."""

    async def put(batch: list[Any]) -> None:
        queue.put(batch)  # this loop has nothing else to do

    async def iterate() -> None:
        await iterate_in_batches(source, context, queue.read_item, put, asyncio.get_running_loop().time)

    asyncio.run(iterate())


async def _iterate(source: Any) -> AsyncGenerator[Any]:
    """The items of an iterable, sync or async."""
    if not isinstance(source, AsyncIterable):
        for item in source:
            yield item
        return
    async with AsyncExitStack() as stack:
        if isinstance(source, AsyncGenerator):
            await stack.enter_async_context(aclosing(source))
        async for item in source:
            yield item


def as_values_error(error: BaseException) -> ValuesError:
    """An exception of the app's code as a `ValuesError`."""
    if isinstance(error, ValuesError):
        return error
    wrapped = ValuesError(describe_error(error))
    wrapped.__cause__ = error
    return wrapped


def describe_error(error: BaseException) -> str:
    """An exception in one line; a plain ValueError by its text alone."""
    try:
        text = " ".join(str(error).split())[:_MAX_REASON_CHARS]
    except Exception:
        text = ""
    if type(error) is ValueError and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
