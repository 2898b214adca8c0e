"""Reads an async provider in batches, within one task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, Final

from ..models import Context

MAX_BATCH_ITEMS: Final = 500
"""Items of a batch, at most."""

BATCH_SECONDS: Final = 0.01
"""How long a batch is filled before it is put: a source that never waits keeps the event loop for so long."""

PutBatch = Callable[[list[Any]], Awaitable[None]]

ReadItem = Callable[[Any], Any]
"""Copies what an item says now: `BatchQueue.read_item`."""


async def iterate_in_batches(
    source: Any, context: Context | None, read_item: ReadItem, put: PutBatch, now: Callable[[], float]
) -> None:
    """Read all items of a source within the app's context, and put them in batches.

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
        batch: list[Any] = []
        started_at = now()
        async for item in items:
            batch.append(read_item(item))
            if len(batch) >= MAX_BATCH_ITEMS or not 0 <= now() - started_at < BATCH_SECONDS:
                await put(batch)
                batch, started_at = [], now()
        if batch:
            await put(batch)


def iterate_in_own_loop(
    source: Any, context: Context | None, read_item: ReadItem, put: Callable[[list[Any]], None]
) -> None:
    """Do the same on a new event loop, in the calling thread."""

    async def put_blocking(batch: list[Any]) -> None:
        put(batch)  # this loop has nothing else to do

    async def iterate() -> None:
        await iterate_in_batches(source, context, read_item, put_blocking, asyncio.get_running_loop().time)

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
