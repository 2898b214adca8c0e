"""Values: what `@sitemap(values=...)` enumerates, asked of the app's own code and made into paths.

That code may be slow, hang, fail or never end. It runs on a thread of its own,
or on the app's event loop, and is waited for within a budget. A thread that
hangs cannot be ended: it is left behind, and its provider is not asked again
while it hangs.
"""

from __future__ import annotations

import reprlib
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import Any, Final

from ..entry import EMPTY_ENTRY, Entry
from ..exceptions import ValuesError, ValuesTimeout
from ..fork_safety import reset_after_fork
from ..http import AsyncCollector
from ..models import Context, PathBuilder, Provider, Route, Site
from ..urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, loc_of, quote_path
from .async_batches import MAX_BATCH_ITEMS, iterate_in_own_loop
from .path_set import PathSet
from .provider_items import checked_params, item_params, read_item

ITEM_TIMEOUT_SECONDS: Final = 10.0
"""Seconds without an item after which a provider is taken to hang."""

PROVIDER_TIMEOUT_SECONDS: Final = 60 * 60.0
"""Seconds within which it must have given all its items."""

MAX_PROVIDER_ITEMS: Final = 10_000_000
"""Items of one provider, past which it is taken to have no end."""

RETRY_SECONDS: Final = 60.0
"""Seconds for which one that hung is not asked again."""

MAX_SKIP_EXAMPLES: Final = 3
"""Items left out that are named."""

_MAX_QUEUED_BATCHES: Final = 4
"""Batches that may wait to be taken."""

_MAX_REASON_CHARS: Final = 200
"""Characters of a reason that are shown."""

_parent_databases: Final[list[object]] = []
"""What a parent process had open, kept from being closed in the child."""


@dataclass(slots=True)
class ProviderReport:
    """What came of one provider's items."""

    count: int = 0
    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    failure: ValuesError | None = None

    def skip(self, item: Any, reason: str) -> None:
        """Count an item that makes no page; name it, if it is among the first."""
        self.skipped += 1
        if len(self.examples) < MAX_SKIP_EXAMPLES:
            self.examples.append(f"{_describe_item(item)} was left out: {reason}")

    def messages(self) -> tuple[str, ...]:
        """What people are told of the items that were left out."""
        if not self.skipped:
            return ()
        return (f"{self.skipped} of {self.count} items were left out", *self.examples)


@dataclass(frozen=True, slots=True)
class ProvidedPage:
    """One page that a provider gave."""

    path: str
    """Percent-encoded."""
    route: Route
    entry: Entry


class Providers:
    """Asks providers, and remembers which of them hang, and which paths they gave."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._closed: dict[Provider, threading.Thread] = {}
        self._timed_out: dict[Provider, float] = {}
        self._returned: dict[Provider, weakref.ref[Any]] = {}
        self._known: dict[tuple[str, Provider], PathSet] = {}
        self._open = set[BatchQueue]()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: a parent's databases must be neither used nor closed."""
        _parent_databases.append(self._known)
        self._known = {}
        self._open = set()

    def close(self) -> None:
        """Wait for no provider any longer: who waits gets a `ValuesError`."""
        for handover in list(self._open):
            handover.cancel()

    def pages(
        self,
        site: Site,
        provider: Provider,
        routes: Sequence[Route],
        drain: AsyncCollector | None,
        report: ProviderReport,
    ) -> Iterator[ProvidedPage]:
        """The pages that a provider gives of its routes, each once; `ValuesError` where it fails.

        An item that makes a page of none of the routes is skipped, and reported.
        """
        built = [(route, route.builder) for route in routes if route.builder]
        names = frozenset(name for _, builder in built for name in builder.names)
        paths = PathSet()
        try:
            with closing(self._items(provider, built[0][1], names, drain)) as items:
                while batch := list(islice(items, MAX_BATCH_ITEMS)):
                    report.count += len(batch)
                    made = [one for item in batch for one in _pages_of_item(site, item, built, report)]
                    yield from compress(made, paths.add([one.path for one in made]))
        except ValuesError as error:
            raise ValuesError(f"the values of {provider.place} cannot be had: {error}") from error.__cause__
        self._known[site.store_key, provider] = paths

    def is_provided(self, site: Site, route: Route, path: str) -> bool | None:
        """Whether the values of a route included a percent-encoded path when they were last read to their end.

        None if the route has no values, or if this process has not read them.
        """
        paths = None if route.settings.values is None else self._known.get((site.store_key, route.settings.values))
        return None if paths is None else path in paths

    def _items(
        self, provider: Provider, builder: PathBuilder, names: Collection[str], drain: AsyncCollector | None
    ) -> Generator[Any]:
        """What a provider gives, within its budget. All its failures are `ValuesError`."""
        thread, hung = self._closed.get(provider), self._timed_out.get(provider)
        if thread is not None and thread.is_alive():
            raise ValuesError("it hangs, and has not come back since it was asked")
        if hung is not None and 0 <= self._clock() - hung < RETRY_SECONDS:
            raise ValuesError(f"it hung, and is not asked again within {RETRY_SECONDS:g} seconds")
        try:
            with closing(self._batches(provider, builder, names, drain)) as batches:
                yield from self._within_limits(batches)
        except ValuesTimeout:
            self._timed_out[provider] = self._clock()
            raise

    def _within_limits(self, batches: Iterable[list[Any]]) -> Iterator[Any]:
        """The items of batches, as long as they keep to the budget."""
        began, count = self._clock(), 0
        for batch in batches:
            yield from batch
            count += len(batch)
            if count > MAX_PROVIDER_ITEMS:
                raise ValuesTimeout(f"it gave more than {MAX_PROVIDER_ITEMS} items, and seems to have no end")
            if self._clock() - began > PROVIDER_TIMEOUT_SECONDS:
                raise ValuesTimeout(f"it did not come to its end within {PROVIDER_TIMEOUT_SECONDS:g} seconds")

    def _batches(
        self, provider: Provider, builder: PathBuilder, names: Collection[str], drain: AsyncCollector | None
    ) -> Generator[list[Any]]:
        """What a provider gives, in batches: called on a thread, drained on a loop where that shows it to be async."""
        for batch in self._threaded(provider, names, lambda handover: self._produce(provider, builder, handover)):
            if not isinstance(batch, _AsyncBatch):
                yield batch
                continue
            context = _app_context(builder)
            if drain is None:
                yield from self._threaded(provider, names, _in_own_loop(batch.source, context))
            else:
                with (
                    self._queue(names) as handover,
                    closing(drain(batch.source, context, handover, ITEM_TIMEOUT_SECONDS)) as drained,
                ):
                    yield from drained

    def _threaded(
        self, provider: Provider, names: Collection[str], work: Callable[[BatchQueue], None]
    ) -> Generator[Any]:
        """What a thread gives that does this work."""
        with self._queue(names) as handover:
            thread = threading.Thread(
                target=copy_context().run,
                args=(handover.run_producer, work),
                name="sitemap_middleware-values",
                daemon=True,
            )
            thread.start()
            try:
                while (batch := handover.get(ITEM_TIMEOUT_SECONDS)) is not None:
                    yield batch
            except ValuesTimeout:
                self._closed[provider] = thread
                raise

    @contextmanager
    def _queue(self, names: Collection[str]) -> Iterator[BatchQueue]:
        """One that can be left from outside, for as long as it is taken from."""
        handover = BatchQueue(names)
        self._open.add(handover)
        try:
            yield handover
        finally:
            handover.cancel()
            self._open.discard(handover)

    def _produce(self, provider: Provider, builder: PathBuilder, handover: BatchQueue) -> None:
        """On its thread: ask the provider and hand over what it gives."""
        with ExitStack() as stack:
            context = builder.context()
            if isinstance(context, AbstractContextManager):
                stack.enter_context(context)
            found = provider.source
            if not isinstance(found, Iterable | AsyncIterable):
                found = found()
                self._refuse_exhausted(provider, found)
            if isinstance(found, AsyncIterable | Awaitable):
                handover.put(_AsyncBatch(found))
                return
            items = iter(found)
            if isinstance(items, Generator):
                stack.enter_context(closing(items))
            batch: list[Any] = []
            for item in items:
                batch.append(handover.read_item(item))
                if len(batch) >= MAX_BATCH_ITEMS or handover.is_drained:
                    handover.put(batch)
                    batch = []
            if batch:
                handover.put(batch)

    def _refuse_exhausted(self, provider: Provider, found: Any) -> None:
        """A callable must make an iterator anew each time: the one it returned before is at its end."""
        if not hasattr(found, "__next__") and not hasattr(found, "__anext__"):
            return
        before = self._returned.get(provider)
        if before is not None and before() is found:
            raise ValuesError("it returned the very iterator that it returned before, which is used up")
        with suppress(TypeError):  # it takes no weak references
            self._returned[provider] = weakref.ref(found)


@dataclass(frozen=True, slots=True)
class _AsyncBatch:
    """Stands for a batch: the provider turned out to be async."""

    source: Any


class _ConsumerGone(Exception):
    """Nobody takes any more."""


class BatchQueue:
    """Batches that one thread gives and another takes, a few at a time."""

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = names
        self._changed = threading.Condition()
        self._batches: deque[Any] = deque()
        self._cancelled = False
        self._finished = False
        self._error: BaseException | None = None

    def read_item(self, item: Any) -> Any:
        """An item as it is to be handed over; called where the provider runs."""
        return read_item(item, self._names)

    @property
    def is_drained(self) -> bool:
        """Whether the taker has nothing to take."""
        return not self._batches

    def run_producer(self, work: Callable[[BatchQueue], None]) -> None:
        """Do the work that gives, to its end, whatever that is."""
        try:
            work(self)
        except BaseException as error:  # SystemExit, too, is no more than a failure here
            self.finish(error)
        else:
            self.finish()

    def finish(self, error: BaseException | None = None) -> None:
        """Give no more, for this failed, if anything did."""
        self._error = error
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def try_put(self, batch: Any) -> bool:
        """Put a batch there, if there is room; whether there was."""
        with self._changed:
            if self._cancelled:
                raise _ConsumerGone
            if len(self._batches) >= _MAX_QUEUED_BATCHES:
                return False
            self._batches.append(batch)
            self._changed.notify_all()
            return True

    def put(self, batch: Any) -> None:
        """Wait until there is room, and put a batch there."""
        with self._changed:
            self._changed.wait_for(lambda: self._cancelled or len(self._batches) < _MAX_QUEUED_BATCHES)
            if self._cancelled:
                raise _ConsumerGone
            self._batches.append(batch)
            self._changed.notify_all()

    def get(self, seconds: float) -> Any:
        """The next batch, None after the last; `ValuesTimeout` where none comes in time, `ValuesError` where giving failed."""  # noqa: E501
        with self._changed:
            if not self._changed.wait_for(lambda: self._batches or self._finished or self._cancelled, seconds):
                raise ValuesTimeout(f"it gave nothing for {seconds:g} seconds")
            if self._cancelled:
                raise ValuesError("it is no longer waited for")
            if self._batches:
                self._changed.notify_all()
                return self._batches.popleft()
        if self._error is not None:
            raise as_values_error(self._error)
        return None

    def cancel(self) -> None:
        """Take no more."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()


def as_values_error(error: BaseException) -> ValuesError:
    """What a provider raised, as an error of ours."""
    if isinstance(error, ValuesError):
        return error
    failed = ValuesError(_one_line(error))
    failed.__cause__ = error
    return failed


def _in_own_loop(source: Any, context: Context | None) -> Callable[[BatchQueue], None]:
    """The work of taking from an async source on an event loop of its own."""
    return lambda handover: iterate_in_own_loop(source, context, handover.read_item, handover.put)


def _app_context(builder: PathBuilder) -> Context | None:
    try:
        return builder.context()
    except Exception as error:
        raise as_values_error(error) from error


def _pages_of_item(
    site: Site, item: Any, built: Sequence[tuple[Route, PathBuilder]], report: ProviderReport
) -> Iterator[ProvidedPage]:
    """The pages of one item, as a rule one; where there is none, the item is reported."""
    entry = item if isinstance(item, Entry) else EMPTY_ENTRY
    given = item.params if isinstance(item, Entry) else item
    reason = ""
    found = False
    for route, builder in built:
        try:
            path = builder.build(checked_params(given) if type(given) is dict else item_params(given, builder.names))
        except Exception as error:
            reason = reason or _one_line(error)
            continue
        quoted = quote_path(path)
        if quoted is None or loc_of(site, quoted) is None:
            reason = UNREACHABLE_REASON if quoted is None else LOC_LENGTH_REASON
            continue
        found = True
        yield ProvidedPage(quoted, route, entry)
    if not found:
        report.skip(item, reason)


def _one_line(error: BaseException) -> str:
    """An exception in one line; a plain ValueError by its text alone."""
    try:
        said = " ".join(str(error).split())[:_MAX_REASON_CHARS]
    except Exception:
        said = ""
    if type(error) is ValueError and said:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _describe_item(item: Any) -> str:
    return f"Entry({reprlib.repr(item.params)})" if isinstance(item, Entry) else reprlib.repr(item)
