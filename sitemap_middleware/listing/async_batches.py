"""The pump: takes all that an async iterable gives, in one task. With the ASGI adapter, the only place that awaits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, Final

from ..models import Context

MAX_BATCH_ITEMS: Final = 500
"""Items that are handed over at once, at most."""

BATCH_SECONDS: Final = 0.01
"""Seconds for which items are gathered before they are handed over: the loop has other work to do."""

PutBatch = Callable[[list[Any]], Awaitable[None]]

ReadItem = Callable[[Any], Any]
"""An item as it is now."""


async def iterate_in_batches(
    source: Any, context: Context | None, taken: ReadItem, give: PutBatch, now: Callable[[], float]
) -> None:
    """Give all items of a source, within a context, in batches.

    One task from first to last: what a generator opens between two items (a
    transaction, a timeout) must be closed in the task that opened it.
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
        since = now()
        async for item in items:
            batch.append(taken(item))
            if len(batch) >= MAX_BATCH_ITEMS or not 0 <= now() - since < BATCH_SECONDS:
                await give(batch)
                batch, since = [], now()
        if batch:
            await give(batch)


def iterate_in_own_loop(
    source: Any, context: Context | None, taken: ReadItem, give: Callable[[list[Any]], None]
) -> None:
    """The same on an event loop of its own, in the thread that calls it."""

    async def given(batch: list[Any]) -> None:
        give(batch)

    async def pumped() -> None:
        await iterate_in_batches(source, context, taken, given, asyncio.get_running_loop().time)

    asyncio.run(pumped())


async def _iterate(source: Any) -> AsyncGenerator[Any]:
    """The items of an iterable of either kind."""
    if not isinstance(source, AsyncIterable):
        for item in source:
            yield item
        return
    async with AsyncExitStack() as stack:
        if isinstance(source, AsyncGenerator):
            await stack.enter_async_context(aclosing(source))
        async for item in source:
            yield item
