"""Reads the items of `@sitemap(values=...)` from the app's code, and builds the paths of their pages.

That code may be slow, hang, fail or never end. It runs on a separate thread, or on the
app's event loop, within time limits. A thread that hangs cannot be stopped: it is
left behind, and its provider is not called again while it hangs.
"""

from __future__ import annotations

import reprlib
import threading
import weakref
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import Any, Final

from ..entry import EMPTY_ENTRY, Entry
from ..exceptions import ValuesError, ValuesTimeout
from ..fork_safety import reset_after_fork
from ..models import Context, PathBuilder, Provider, Route, Site
from ..provider_source import unread
from ..request_response import AsyncCollector
from ..routing.named_section_route import SectionBuilder
from ..urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, loc_of, quote_path, resolve_loc
from .async_batches import MAX_BATCH_ITEMS, iterate_in_own_loop
from .batch_queue import BatchQueue, as_values_error, describe_error
from .path_set import PathSet
from .provider_item_parameters import AttributeParams, checked_params, entry_of_fields, item_params, split_fields

ITEM_TIMEOUT_SECONDS: Final = 10.0
"""Seconds without an item after which a provider counts as hanging."""

PROVIDER_TIMEOUT_SECONDS: Final = 60 * 60.0
"""Seconds after which a provider that has not ended is abandoned."""

MAX_PROVIDER_ITEMS: Final = 10_000_000
"""A provider that gives more items than this counts as endless."""

RETRY_SECONDS: Final = 60.0
"""Seconds until a provider that hung is called again."""

MAX_SKIP_EXAMPLES: Final = 3
"""Maximum number of skipped items that are shown."""

_parent_databases: Final[list[object]] = []
"""Databases of the parent process: SQLite forbids a forked child to use or close them."""


@dataclass(slots=True)
class ProviderReport:
    """Counts of one enumeration."""

    count: int = 0
    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    undated: int = 0
    """Items whose lastmod is not a date."""
    undated_example: str = ""
    failure: ValuesError | None = None

    def skip(self, item: Any, reason: str) -> None:
        """Count an item that makes no page, and show it if it is among the first."""
        self.skipped += 1
        if len(self.examples) < MAX_SKIP_EXAMPLES:
            self.examples.append(f"{_describe_item(item)} was left out: {reason}")

    def count_undated(self, path: str, text: str) -> None:
        """Count an item whose lastmod is not a date, and show the first."""
        self.undated += 1
        self.undated_example = self.undated_example or f"{reprlib.repr(text)} of {path}"

    def messages(self) -> tuple[str, ...]:
        """Describe to people what is wrong with the items."""
        lines: list[str] = []
        if self.skipped:
            lines += [f"{self.skipped} of {self.count} items were left out", *self.examples]
        if self.undated:
            example = self.undated_example
            lines.append(f"{self.undated} of {self.count} items have a lastmod that is not a date, such as {example}")
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class ProvidedPage:
    """One page that a provider enumerates."""

    path: str
    """Percent-encoded."""
    route: Route
    entry: Entry
    loc: str | None = None
    """The loc, if the page is that of a named section."""


class Providers:
    """Calls providers, and remembers which of them hang, and which paths they gave."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._hanging: dict[Provider, threading.Thread] = {}
        self._timed_out: dict[Provider, float] = {}
        self._returned: dict[Provider, weakref.ref[Any]] = {}
        """The iterator that a provider returned last."""
        self._paths: dict[tuple[str, Provider], PathSet] = {}
        """By store key and provider: the paths of the latest enumeration that came to its end."""
        self._queues = set[BatchQueue]()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: forget the parent's databases and queues."""
        _parent_databases.append(self._paths)
        self._paths = {}
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
    ) -> Iterator[ProvidedPage]:
        """The pages that a provider enumerates of its routes, each once.

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
        names = frozenset(name for _, builder in builders for name in builder.names)
        paths = PathSet()
        try:
            with closing(self._items(provider, builders[0][1], names, async_collector)) as items:
                while batch := list(islice(items, MAX_BATCH_ITEMS)):
                    report.count += len(batch)
                    pages = [page for item in batch for page in _pages_of_item(site, item, builders, report)]
                    yield from compress(pages, paths.add([page.path for page in pages]))
        except ValuesError as error:
            raise ValuesError(f"the values of {provider.place} failed: {error}") from error.__cause__
        self._paths[site.store_key, provider] = paths

    def is_provided(self, site: Site, route: Route, path: str) -> bool | None:
        """Whether the values of a route included a percent-encoded path when they were last read to their end.

        None if the route has no values, or if this process has not read them.
        """
        paths = None if route.settings.values is None else self._paths.get((site.store_key, route.settings.values))
        return None if paths is None else path in paths

    def were_read(self, site: Site, provider: Provider) -> bool:
        """Whether this process has read the items of a provider to their end."""
        return (site.store_key, provider) in self._paths

    def _items(
        self, provider: Provider, builder: PathBuilder, names: Collection[str], async_collector: AsyncCollector | None
    ) -> Generator[Any]:
        """The items of a provider, within its limits. All its failures are `ValuesError`s."""
        thread, timed_out_at = self._hanging.get(provider), self._timed_out.get(provider)
        if thread is not None and thread.is_alive():
            raise ValuesError("it hangs: its last call has not returned")
        if timed_out_at is not None and 0 <= self._clock() - timed_out_at < RETRY_SECONDS:
            raise ValuesError(f"it hung, and is called again after {RETRY_SECONDS:g} seconds")
        try:
            with closing(self._batches(provider, builder, names, async_collector)) as batches:
                yield from self._within_limits(batches)
        except ValuesTimeout:
            self._timed_out[provider] = self._clock()
            raise

    def _within_limits(self, batches: Iterable[list[Any]]) -> Iterator[Any]:
        """The items of batches, up to the limits."""
        started_at, count = self._clock(), 0
        for batch in batches:
            yield from batch
            count += len(batch)
            if count > MAX_PROVIDER_ITEMS:
                raise ValuesTimeout(f"it gave more than {MAX_PROVIDER_ITEMS} items, so it seems to have no end")
            if self._clock() - started_at > PROVIDER_TIMEOUT_SECONDS:
                raise ValuesTimeout(f"it did not end within {PROVIDER_TIMEOUT_SECONDS:g} seconds")

    def _batches(
        self, provider: Provider, builder: PathBuilder, names: Collection[str], async_collector: AsyncCollector | None
    ) -> Generator[list[Any]]:
        """The items of a provider in batches.

        It is called on a thread. If the call returns something async, that is read on an event loop.
        """
        for batch in self._threaded(provider, names, lambda queue: self._produce(provider, builder, queue)):
            if not isinstance(batch, _AsyncBatch):
                yield batch
                continue
            context = _app_context(builder)
            if async_collector is None:
                yield from self._threaded(provider, names, _in_own_loop(batch.source, context))
            else:
                with (
                    self._queue(names) as queue,
                    closing(async_collector(batch.source, context, queue, ITEM_TIMEOUT_SECONDS)) as batches,
                ):
                    yield from batches

    def _threaded(
        self, provider: Provider, names: Collection[str], produce: Callable[[BatchQueue], None]
    ) -> Generator[Any]:
        """The batches that a producer puts, which runs on a new thread."""
        with self._queue(names) as queue:
            thread = threading.Thread(
                target=copy_context().run,
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

    def _produce(self, provider: Provider, builder: PathBuilder, queue: BatchQueue) -> None:
        """Call the provider, and put its items. Runs on the provider's thread."""
        with ExitStack() as stack:
            context = builder.context()
            if isinstance(context, AbstractContextManager):
                stack.enter_context(context)
            source = unread(provider.source)
            if not isinstance(source, Iterable | AsyncIterable):
                source = source()
                self._refuse_exhausted(provider, source)
            if isinstance(source, AsyncIterable | Awaitable) and not isinstance(source, Iterable):
                queue.put(_AsyncBatch(source))
                return
            items = iter(source)
            if isinstance(items, Generator):
                stack.enter_context(closing(items))
            batch: list[Any] = []
            for item in items:
                batch.append(queue.read_item(item))
                if len(batch) >= MAX_BATCH_ITEMS or queue.is_drained:
                    queue.put(batch)
                    batch = []
            if batch:
                queue.put(batch)

    def _refuse_exhausted(self, provider: Provider, source: Any) -> None:
        """Refuse the iterator that the callable returned before: it is exhausted."""
        if not hasattr(source, "__next__") and not hasattr(source, "__anext__"):
            return
        previous = self._returned.get(provider)
        if previous is not None and previous() is source:
            raise ValuesError("it returned the same iterator again, which is exhausted; return a new one each time")
        with suppress(TypeError):  # some iterators take no weak references
            self._returned[provider] = weakref.ref(source)


@dataclass(frozen=True, slots=True)
class _AsyncBatch:
    """Put in place of a batch if a provider returned something async."""

    source: Any


def _in_own_loop(source: Any, context: Context | None) -> Callable[[BatchQueue], None]:
    """A producer that reads an async source on a separate event loop."""
    return lambda queue: iterate_in_own_loop(source, context, queue.read_item, queue.put)


def _app_context(builder: PathBuilder) -> Context | None:
    try:
        return builder.context()
    except Exception as error:
        raise as_values_error(error) from error


def _pages_of_item(
    site: Site, item: Any, builders: Sequence[tuple[Route, PathBuilder]], report: ProviderReport
) -> Iterator[ProvidedPage]:
    """The pages of one item: one for each route that it fits. An item that fits none is reported."""
    entry, params = EMPTY_ENTRY, item
    if isinstance(item, Entry):
        entry, params = item, item.params
    elif isinstance(item, AttributeParams):
        entry = entry_of_fields(item.fields)
    reason = ""
    fits = False
    for route, builder in builders:
        page_entry, failure = entry, None
        try:
            path = builder.build(checked_params(params) if type(params) is dict else item_params(params, builder.names))
        except Exception as error:
            failure = error
            own_params, fields = split_fields(item, builder.names)
            if fields:
                try:
                    path, page_entry, failure = builder.build(checked_params(own_params)), entry_of_fields(fields), None
                except Exception as error_without_fields:
                    failure = error_without_fields
        if failure is not None:
            reason = reason or f"{describe_error(failure)} ({route.path})"
            continue
        loc: str | None = None
        if isinstance(builder, SectionBuilder):
            try:
                path, loc = resolve_loc(site, path)
            except ValueError as error:
                reason = str(error)
                continue
        quoted = path if loc else quote_path(path)
        if quoted is None or (loc or loc_of(site, quoted)) is None:
            reason = UNREACHABLE_REASON if quoted is None else LOC_LENGTH_REASON
            continue
        if not fits and page_entry.unusable_lastmod is not None:
            report.count_undated(quoted, page_entry.unusable_lastmod)
        fits = True
        yield ProvidedPage(quoted, route, page_entry, loc)
    if not fits:
        report.skip(item, reason)


def _describe_item(item: Any) -> str:
    return f"Entry({reprlib.repr(item.params)})" if isinstance(item, Entry) else reprlib.repr(item)
