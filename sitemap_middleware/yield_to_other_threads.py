"""Lets other threads run between the pieces of long work in the background."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.00005
"""Seconds of a pause, besides what the system adds: a thread that waits for the interpreter wakes up meanwhile."""


def yield_to_other_threads() -> None:
    """Release the interpreter for a moment.

    A thread that computes all the time keeps it for 5 ms each time that another one asks for it, and an event loop asks
    several times in each turn. Call this after pieces of one or two milliseconds.
    """
    time.sleep(PAUSE_SECONDS)


def in_pieces(items: Iterable[T], size: int) -> Iterator[T]:
    """Yield the items, and yield to other threads after each `size` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            yield_to_other_threads()
