"""Assert that doubling the work about doubles the time, as far as a busy machine can measure it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def ratio(make: Callable[[int], T], work: Callable[[T], object], size: int) -> float:
    """How many times as long twice the size takes: the least of several runs of each, by the thread's own clock."""
    small, large = make(size), make(2 * size)
    result = 0.0
    for _ in range(4):
        result = _least(work, large) / max(_least(work, small), 1e-4)
        if result < 2.6:
            break
    return result


def _least(work: Callable[[T], object], thing: T) -> float:
    times = []
    for _ in range(3):
        began = time.thread_time()
        work(thing)
        times.append(time.thread_time() - began)
    return min(times)
