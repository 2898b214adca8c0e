"""Calls the app's code for `@sitemap(values=...)`, within time limits, and yields its items as pages.

That code may be slow, hang, fail or never end. It runs on a separate thread, or on the app's event loop, and puts its
items in batches into a queue. A thread that hangs cannot be stopped: it is left behind, and its provider is not called
again while it hangs.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    aclosing,
    closing,
    suppress,
)
from contextvars import Context as ContextVariables
from functools import partial
from queue import Empty, Queue
from typing import Any, Final

from ..exceptions import ValuesError, ValuesTimeout
from ..http.messages import AsyncCollector
from ..models import Context, PathBuilder, Provider, Route, Site
from ..options.entry import unread
from ..protocol.extensions import leave_out
from ..util import BoundedCache, WarnOnce, reset_after_fork, yield_to_other_threads
from .provider_items import Item, ProvidedPage, ProviderReport, as_values_error, pages_of_item, read_item

ITEM_TIMEOUT_SECONDS: Final = 10.0
"""Seconds without an item after which a provider counts as hanging."""

MAX_PROVIDER_ITEMS: Final = 10_000_000
"""A provider that gives more items than this counts as endless."""

RETRY_SECONDS: Final = 60.0
"""Seconds until a provider that hung is called again."""

MAX_BATCH_ITEMS: Final = 500
"""Items of a batch, at most. They are looked up in the store together."""

THREAD_BATCH_SECONDS: Final = 0.1
"""How long a thread fills a batch before it puts it, so that a slow provider is seen to go on."""

LOOP_BATCH_SECONDS: Final = 0.01
"""The same on an event loop: a source that never waits keeps the loop for so long."""

MAX_ENUMERATIONS: Final = 1000
"""Enumerations whose paths are remembered, each of one provider for one site."""

_MAX_QUEUED_BATCHES: Final = 2


class Providers:
    """Calls providers, and remembers which of them hang, and which paths they gave."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._hung: dict[Provider, tuple[float, threading.Thread]] = {}
        """When a provider hung last, and the thread that called it."""
        self._returned = weakref.WeakSet[Any]()
        """The iterators that providers returned: they are exhausted."""
        self._paths = BoundedCache[tuple[str, Provider], set[int]](MAX_ENUMERATIONS)
        """By store key and provider: the hashes of the paths of the latest enumeration that came to its end."""
        self._queues = set[BatchQueue]()
        self._warn_once = WarnOnce()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: forget the parent's queues."""
        self._queues = set()

    def close(self) -> None:
        """End all enumerations: those who wait for items get a `ValuesError`."""
        for queue in list(self._queues):
            queue.cancel()

    def pages(
        self,
        site: Site,
        provider: Provider,
        routes: Sequence[Route],
        async_collector: AsyncCollector | None,
        report: ProviderReport,
    ) -> Iterator[list[ProvidedPage]]:
        """The pages that a provider enumerates of its routes, each once, in batches. The report is filled meanwhile.

        Without `async_collector`, async providers are read on a loop of their own. Raises `ValuesError` if one fails.
        """
        builders = [(route, route.builder) for route in routes if route.builder]
        names = frozenset(name for _, builder in builders for name in builder.names)
        paths = set[int]()
        try:
            with closing(self._batches(site, provider, builders[0][1], names, async_collector)) as batches:
                for batch in batches:
                    report.count += len(batch)
                    pages = []
                    for item in batch:
                        for page in pages_of_item(site, item, builders, report):
                            if (key := hash(page.path)) not in paths:
                                paths.add(key)
                                pages.append(page)
                    yield_to_other_threads()  # building the entries takes as long again
                    yield pages
        except ValuesError as error:
            report.failure = ValuesError(f"the values of {provider.place} failed: {error}")
            raise report.failure from error.__cause__
        self._paths.put((site.store_key, provider), paths)

    def gave(self, site: Site, provider: Provider, path: str) -> bool | None:
        """Whether a provider gave a percent-encoded path when this process last read it to its end; None if never."""
        paths = self._paths.get((site.store_key, provider))
        return None if paths is None else hash(path) in paths

    def complete(
        self, site: Site, provider: Provider, routes: Sequence[Route], async_collector: AsyncCollector | None
    ) -> None:
        """Read a provider whose routes match no path before it is read, unless this process has read it."""
        if provider.any_route and self._paths.get((site.store_key, provider)) is None:
            with suppress(ValuesError):  # the next reader of its pages gets the error
                deque(self.pages(site, provider, routes, async_collector, ProviderReport()), maxlen=0)

    def _batches(
        self,
        site: Site,
        provider: Provider,
        builder: PathBuilder,
        names: Collection[str],
        async_collector: AsyncCollector | None,
    ) -> Generator[list[Item]]:
        """The items of a provider in batches, within its limits. All its failures are `ValuesError`s."""
        if provider in self._hung:
            hung_at, thread = self._hung[provider]
            if thread.is_alive():
                raise ValuesError("it hangs: its last call has not returned")
            if 0 <= self._clock() - hung_at < RETRY_SECONDS:
                raise ValuesError(f"it hung, and is called again after {RETRY_SECONDS:g} seconds")
        queue, left = BatchQueue(names, partial(self._leave_out, provider.place)), list[tuple[Any, Context | None]]()
        thread = threading.Thread(
            target=ContextVariables().run,  # empty: what it gives is for everyone, whoever's request reads it
            args=(self._produce, queue, site, provider, builder, None if async_collector is None else left),
            name="sitemap_middleware-values",
            daemon=True,
        )
        self._queues.add(queue)
        count = 0
        try:
            thread.start()
            for batch in _taken(queue, left, async_collector):
                yield batch
                count += len(batch)
                if count > MAX_PROVIDER_ITEMS:
                    raise ValuesTimeout(f"it gave more than {MAX_PROVIDER_ITEMS} items, so it seems to have no end")  # noqa: TRY301
        except ValuesTimeout:
            self._hung[provider] = self._clock(), thread
            raise
        finally:
            queue.cancel()
            self._queues.discard(queue)

    def _leave_out(self, place: str, why: str) -> None:
        self._warn_once(place, "the values of %s hold what is invalid, and left out of the sitemap: %s", place, why)

    def _produce(
        self,
        queue: BatchQueue,
        site: Site,
        provider: Provider,
        builder: PathBuilder,
        left: list[tuple[Any, Context | None]] | None,
    ) -> None:
        """Call a provider and put its items into a queue. What is async is `left` for the app's event loop, if any."""
        leave_out.set(queue.leave_out)
        try:
            with ExitStack() as stack:
                if isinstance(context := builder.context(), AbstractContextManager):
                    stack.enter_context(context)
                source = self._called(site, provider)
                is_sync = isinstance(source, Iterable) or not isinstance(source, AsyncIterable | Awaitable)
                if is_sync:
                    items = iter(source)
                    if isinstance(items, Generator):
                        stack.enter_context(closing(items))
                    queue.put_items(items)
            if not is_sync and left is not None:
                left.append((source, builder.context()))
            elif not is_sync:
                asyncio.run(iterate_in_batches(source, builder.context(), queue, queue.put_and_wait))
        except BaseException as error:  # SystemExit, too, must not end the thread silently
            queue.finish(error)
        else:
            queue.finish()

    def _called(self, site: Site, provider: Provider) -> Any:
        """What a provider enumerates. Refuses the iterator that a callable returned before: it is exhausted."""
        source = unread(provider.source)
        if isinstance(source, Iterable | AsyncIterable):
            return source
        source = source(base_url=site.base_url) if provider.takes_base_url else source()
        if hasattr(source, "__next__") or hasattr(source, "__anext__"):
            with suppress(TypeError):  # some iterators take no weak references, and would have to be kept to be known
                if source in self._returned:
                    raise ValuesError(
                        "it returned the same iterator again, which is exhausted; return a new one each time"
                    )
                self._returned.add(source)
        return source


def _taken(
    queue: BatchQueue, left: Sequence[tuple[Any, Context | None]], async_collector: AsyncCollector | None
) -> Iterator[list[Item]]:
    """The batches that the producer puts, and then those of an async source that it leaves for the app's event loop."""
    yield from iter(partial(queue.get, ITEM_TIMEOUT_SECONDS), None)
    if async_collector is not None:
        for source, context in left:
            with closing(async_collector(source, context, queue, ITEM_TIMEOUT_SECONDS)) as batches:
                yield from batches


class ConsumerGone(Exception):
    """Raised in the producer once nobody takes batches any more."""


class BatchQueue:
    """Batches that one thread or task puts and a thread takes. The end, and an error, need no room."""

    def __init__(self, names: Collection[str] = (), leave_out: Callable[[str], None] | None = None) -> None:
        """`names`: the parameters that are read from items which are objects.

        `leave_out` is told why something that an item says is left out.
        """
        self._names = names
        self.leave_out = leave_out
        self._batches = Queue[Any]()
        self._room = threading.Semaphore(_MAX_QUEUED_BATCHES)
        self._cancelled = False

    # For the producer

    def read_item(self, item: Any) -> Item:
        """Read the attributes of an item on the producer's thread: an ORM object may be usable only there."""
        return read_item(item, self._names)

    def put_items(self, items: Iterable[Any]) -> None:
        """Put items in batches. Raises `ConsumerGone`."""
        batch, began = [], time.monotonic()
        for item in items:
            batch.append(self.read_item(item))
            if len(batch) >= MAX_BATCH_ITEMS or time.monotonic() - began > THREAD_BATCH_SECONDS:
                self.put(batch)
                yield_to_other_threads()
                batch, began = [], time.monotonic()
        if batch:
            self.put(batch)

    def finish(self, error: BaseException | None = None) -> None:
        """End the queue. An error reaches the consumer after the batches before it."""
        self._batches.put(error)

    def put(self, batch: Any, *, waits: bool = True) -> bool:
        """Put a batch, once there is room, or if there is; return whether there was. Raises `ConsumerGone`."""
        has_room = self._room.acquire(blocking=waits)
        if has_room:
            if self._cancelled:
                raise ConsumerGone
            self._batches.put(batch)
        return has_room

    async def put_and_wait(self, batch: Any) -> None:
        """Put a batch, on an event loop that has nothing else to do."""
        self.put(batch)

    # For the consumer

    def get(self, seconds: float) -> Any:
        """The next batch; None after the last one.

        Raises `ValuesTimeout` if there is none within these seconds, and `ValuesError` if the producer fails.
        """
        try:
            batch = self._batches.get(timeout=seconds)
        except Empty:
            raise ValuesTimeout(f"it gave nothing for {seconds:g} seconds") from None
        if self._cancelled:
            raise ValuesError("it was cancelled, because the app shuts down")
        if isinstance(batch, BaseException):
            raise as_values_error(batch)
        if batch is not None:
            self._room.release()
        return batch

    def cancel(self) -> None:
        """Stop taking batches: wakes the producer and the consumer, whichever waits."""
        self._cancelled = True
        self._room.release()
        self._batches.put(None)


async def iterate_in_batches(
    source: Any,
    context: Context | None,
    queue: BatchQueue,
    put: Callable[[list[Any]], Awaitable[None]],
) -> None:
    """Read all items of an async source within the app's context, and put them in batches.

    All in one task: what a generator opens between two items, such as a transaction, must be closed in the same.
    """
    async with AsyncExitStack() as stack:
        if isinstance(context, AbstractAsyncContextManager):
            await stack.enter_async_context(context)
        elif context is not None:
            stack.enter_context(context)
        if not isinstance(source, AsyncIterable):
            source = await source
        if not isinstance(source, AsyncIterable):
            source = _as_async(source)
        if isinstance(source, AsyncGenerator):
            await stack.enter_async_context(aclosing(source))
        batch, began = [], time.monotonic()
        async for item in source:
            batch.append(queue.read_item(item))
            if len(batch) >= MAX_BATCH_ITEMS or time.monotonic() - began > LOOP_BATCH_SECONDS:
                await put(batch)
                batch, began = [], time.monotonic()
        if batch:
            await put(batch)


async def _as_async(items: Iterable[Any]) -> AsyncGenerator[Any]:
    for item in items:
        yield item
