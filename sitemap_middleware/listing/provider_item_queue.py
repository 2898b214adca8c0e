"""Hands the items of `values`, in batches, from the thread that calls the provider to the thread that renders them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, Final

from ..exceptions import ValuesError, ValuesTimeout
from ..yield_to_other_threads import yield_to_other_threads
from .provider_item_parameters import UNCHANGING_TYPES, read_item

_MAX_QUEUED_BATCHES: Final = 2
"""Batches that may wait to be taken."""

_MAX_REASON_CHARS: Final = 200
"""Characters of an exception's text that are shown."""


class ConsumerGone(Exception):
    """Raised in the producer once nobody takes batches any more."""


class BatchQueue:
    """Batches that one thread puts and another takes."""

    def __init__(self, names: Collection[str] = ()) -> None:
        """`names`: the parameters that are read from items which are objects."""
        self._names = names
        self._changed = threading.Condition()
        self._batches: deque[Any] = deque()
        self._cancelled = False
        self._finished = False
        self._error: BaseException | None = None

    # For the producer

    def read_item(self, item: Any) -> Any:
        """Read the attributes of an item on the producer's thread: an ORM object may be usable only there."""
        return read_item(item, self._names)

    def put_items(self, items: Iterable[Any], max_items: int) -> None:
        """Put items in batches of at most so many, smaller ones if the consumer has taken all before."""
        names, waiting = self._names, self._batches
        rest, ended = iter(items), False
        unchanging: type | None = None  # of the latest item, as of most
        while not ended:
            batch: list[Any] = []
            add = batch.append
            for item in islice(rest, max_items):
                kind = type(item)
                if kind is unchanging:
                    add(item)
                elif kind in UNCHANGING_TYPES:
                    unchanging = kind
                    add(item)
                else:
                    add(read_item(item, names))
                if not waiting:
                    break
            else:
                ended = len(batch) < max_items
            if batch:
                self.put(batch)
            if len(batch) == max_items:
                yield_to_other_threads()

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
        self._error = error
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def try_put(self, batch: Any) -> bool:
        """Put a batch if there is room; return whether there was. Raises `ConsumerGone`."""
        with self._changed:
            if self._cancelled:
                raise ConsumerGone
            if len(self._batches) >= _MAX_QUEUED_BATCHES:
                return False
            self._batches.append(batch)
            self._changed.notify_all()
            return True

    def put(self, batch: Any) -> None:
        """Wait for room, and put a batch. Raises `ConsumerGone`."""
        with self._changed:
            self._changed.wait_for(lambda: self._cancelled or len(self._batches) < _MAX_QUEUED_BATCHES)
            if self._cancelled:
                raise ConsumerGone
            self._batches.append(batch)
            self._changed.notify_all()

    # For the consumer

    def get(self, seconds: float) -> Any:
        """The next batch; None after the last one.

        Raises:
            ValuesTimeout: there is none within these seconds.
            ValuesError: the producer failed, or the queue was cancelled.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._batches or self._finished or self._cancelled, seconds):
                raise ValuesTimeout(f"it gave nothing for {seconds:g} seconds")
            if self._cancelled:
                raise ValuesError("it was cancelled, because the app shuts down")
            if self._batches:
                self._changed.notify_all()
                return self._batches.popleft()
        if self._error is not None:
            raise as_values_error(self._error)
        return None

    def cancel(self) -> None:
        """Stop taking batches."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()


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
