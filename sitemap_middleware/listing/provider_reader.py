"""Calls the app's code for `@sitemap(values=...)`, within time limits, and yields its items as pages.

That code may be slow, hang, fail or never end. It runs on a separate thread, or on the app's event loop. A thread that
hangs cannot be stopped: it is left behind, and its provider is not called again while it hangs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from contextvars import Context as ContextVariables
from typing import Any, Final

from ..exceptions import ValuesError, ValuesTimeout
from ..http.messages import AsyncCollector
from ..models import Context, PathBuilder, Provider, Route, Site
from ..options.entry import unread
from ..util import reset_after_fork, yield_to_other_threads
from .provider_item_paths import ProvidedPage, ProviderReport, pages_of_item
from .provider_item_queue import BatchQueue, as_values_error, iterate_in_own_loop

ITEM_TIMEOUT_SECONDS: Final = 10.0
"""Seconds without an item after which a provider counts as hanging."""

PROVIDER_TIMEOUT_SECONDS: Final = 60 * 60.0
"""Seconds after which a provider that has not ended is abandoned."""

MAX_PROVIDER_ITEMS: Final = 10_000_000
"""A provider that gives more items than this counts as endless."""

RETRY_SECONDS: Final = 60.0
"""Seconds until a provider that hung is called again."""

JOINED_ITEMS: Final = 1000
"""Items that are worked on at a time."""

JOINED_SECONDS: Final = 1.0
"""Seconds after which the items of a slow provider are used, however few they are."""


class Providers:
    """Calls providers, and remembers which of them hang, and which paths they gave."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._hanging: dict[Provider, threading.Thread] = {}
        self._timed_out: dict[Provider, float] = {}
        self._returned: dict[Provider, weakref.ref[Any]] = {}
        """The iterator that a provider returned last."""
        self._paths: dict[tuple[str, Provider], set[int]] = {}
        """By store key and provider: the hashes of the paths of the latest enumeration that came to its end."""
        self._queues = set[BatchQueue]()
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
        """The pages that a provider enumerates of its routes, each once, in batches.

        Args:
            site: the site.
            provider: the provider.
            routes: its routes.
            async_collector: reads async providers on the app's event loop; None reads them on a separate loop.
            report: counts the items, and those that fit none of the routes.

        Raises:
            ValuesError: the provider fails.
        """
        builders = [(route, route.builder) for route in routes if route.builder]
        names = frozenset(name for _, builder in builders for name in builder.parameter_names)
        paths = set[int]()
        try:
            with closing(self._items(provider, builders[0][1], names, async_collector)) as batches:
                for batch in self._joined(batches):
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
            raise ValuesError(f"the values of {provider.place} failed: {error}") from error.__cause__
        self._paths[site.store_key, provider] = paths

    def _joined(self, batches: Iterable[list[Any]]) -> Iterator[list[Any]]:
        """Batches of `JOINED_ITEMS` items, or of those that came within a second: each is one request to the store."""
        joined: list[Any] = []
        began = self._clock()
        for batch in batches:
            joined += batch
            if len(joined) >= JOINED_ITEMS or not 0 <= self._clock() - began < JOINED_SECONDS:
                yield joined
                joined, began = [], self._clock()
        if joined:
            yield joined

    def is_provided(self, site: Site, route: Route, path: str) -> bool | None:
        """Whether a route's provider gave a percent-encoded path when it was last read to its end.

        None if the route has no provider, or if this process has not read it.
        """
        paths = None if route.settings.values is None else self._paths.get((site.store_key, route.settings.values))
        return None if paths is None else hash(path) in paths

    def were_read(self, site: Site, provider: Provider) -> bool:
        """Whether this process has read the items of a provider to their end."""
        return (site.store_key, provider) in self._paths

    def _items(
        self, provider: Provider, builder: PathBuilder, names: Collection[str], async_collector: AsyncCollector | None
    ) -> Generator[list[Any]]:
        """The items of a provider in batches, within its limits. All its failures are `ValuesError`s."""
        thread, timed_out_at = self._hanging.get(provider), self._timed_out.get(provider)
        started_at, count = self._clock(), 0
        if thread is not None and thread.is_alive():
            raise ValuesError("it hangs: its last call has not returned")
        if timed_out_at is not None and 0 <= started_at - timed_out_at < RETRY_SECONDS:
            raise ValuesError(f"it hung, and is called again after {RETRY_SECONDS:g} seconds")
        try:
            with closing(self._batches(provider, builder, names, async_collector)) as batches:
                for batch in batches:
                    yield batch
                    count += len(batch)
                    _check_limits(count, self._clock() - started_at)
        except ValuesTimeout:
            self._timed_out[provider] = self._clock()
            raise

    def _batches(
        self, provider: Provider, builder: PathBuilder, names: Collection[str], async_collector: AsyncCollector | None
    ) -> Generator[list[Any]]:
        """The items of a provider in batches.

        It is called on a thread. If the call returns something async, that is read on an event loop.
        """
        asynchronous: list[Any] = []

        def produce(queue: BatchQueue) -> None:
            with ExitStack() as stack:
                context = builder.context()
                if isinstance(context, AbstractContextManager):
                    stack.enter_context(context)
                source = self._called(provider)
                if isinstance(source, AsyncIterable | Awaitable) and not isinstance(source, Iterable):
                    asynchronous.append(source)
                    return
                items = iter(source)
                if isinstance(items, Generator):
                    stack.enter_context(closing(items))
                queue.put_items(items)

        yield from self._threaded(provider, names, produce)
        for source in asynchronous:
            context = _app_context(builder)
            if async_collector is None:
                yield from self._threaded(provider, names, _in_own_loop(source, context))
                continue
            with (
                self._queue(names) as queue,
                closing(async_collector(source, context, queue, ITEM_TIMEOUT_SECONDS)) as batches,
            ):
                yield from batches

    def _threaded(
        self, provider: Provider, names: Collection[str], produce: Callable[[BatchQueue], None]
    ) -> Generator[Any]:
        """The batches that a producer puts, which runs on a new thread."""
        with self._queue(names) as queue:
            thread = threading.Thread(
                target=ContextVariables().run,  # empty: what it gives is for everyone, whoever's request reads it
                args=(queue.run_producer, produce),
                name="sitemap_middleware-values",
                daemon=True,
            )
            thread.start()
            try:
                while (batch := queue.get(ITEM_TIMEOUT_SECONDS)) is not None:
                    yield batch
            except ValuesTimeout:
                self._hanging[provider] = thread
                raise

    @contextmanager
    def _queue(self, names: Collection[str]) -> Iterator[BatchQueue]:
        """A queue that `close` can cancel."""
        queue = BatchQueue(names)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            queue.cancel()
            self._queues.discard(queue)

    def _called(self, provider: Provider) -> Any:
        """What a provider enumerates. Refuses the iterator that a callable returned before: it is exhausted."""
        source = unread(provider.source)
        if isinstance(source, Iterable | AsyncIterable):
            return source
        source = source()
        if hasattr(source, "__next__") or hasattr(source, "__anext__"):
            previous = self._returned.get(provider)
            if previous is not None and previous() is source:
                raise ValuesError("it returned the same iterator again, which is exhausted; return a new one each time")
            with suppress(TypeError):  # some iterators take no weak references
                self._returned[provider] = weakref.ref(source)
        return source


def _check_limits(count: int, seconds: float) -> None:
    """Raise `ValuesTimeout` if a provider has given too many items, or takes too long."""
    if count > MAX_PROVIDER_ITEMS:
        raise ValuesTimeout(f"it gave more than {MAX_PROVIDER_ITEMS} items, so it seems to have no end")
    if seconds > PROVIDER_TIMEOUT_SECONDS:
        raise ValuesTimeout(f"it did not end within {PROVIDER_TIMEOUT_SECONDS:g} seconds")


def _in_own_loop(source: Any, context: Context | None) -> Callable[[BatchQueue], None]:
    """A producer that reads an async source on a separate event loop."""
    return lambda queue: iterate_in_own_loop(source, context, queue)


def _app_context(builder: PathBuilder) -> Context | None:
    try:
        return builder.context()
    except Exception as error:
        raise as_values_error(error) from error
