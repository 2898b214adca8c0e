"""Times variants that differ by little, in alternating batches, on a busy machine.

The variants run in short alternating batches, in a new random order each round,
so that noise affects all of them alike. The result is the median over the rounds
of the difference, or the ratio, of two batches of one round. The seconds are CPU
time of all threads of this process: they leave out other processes, but include
the middleware's own thread.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Spread:
    """A median, and the quartiles around it."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        ordered = list(values)
        low, _, high = quantiles(ordered, n=4, method="inclusive")
        return cls(median(ordered), low, high)


class Rounds:
    """The seconds of one run of each variant, round by round."""

    def __init__(self, seconds: Mapping[str, list[float]]) -> None:
        self._seconds = seconds

    def of(self, name: str) -> Spread:
        return Spread.of(self._seconds[name])

    def added(self, name: str, to: str) -> Spread:
        """How many seconds longer one variant takes than another."""
        return Spread.of(seconds - base for seconds, base in self._paired(name, to))

    def ratio(self, name: str, to: str) -> Spread:
        """How many times as long one variant takes as another."""
        return Spread.of(seconds / base for seconds, base in self._paired(name, to))

    def _paired(self, name: str, other: str) -> Iterable[tuple[float, float]]:
        return zip(self._seconds[name], self._seconds[other], strict=True)


def rounds(variants: Mapping[str, Callable[[int], object]], many: int, batch: float) -> Rounds:
    """Time variants against each other.

    Args:
        variants: by name, what runs one of them so many times.
        many: how many rounds; each variant has one batch in each.
        batch: seconds that a batch takes, more or less; a slow variant runs fewer times in one.
    """
    times = {name: _calibrated(run, batch) for name, run in variants.items()}
    # The collector stays on, for what a middleware allocates is part of its cost; what was made before is kept from it.
    gc.collect()
    gc.freeze()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    order = list(variants)
    shuffle = random.Random(0).shuffle
    for _ in range(many):
        shuffle(order)
        for name in order:
            run, count = variants[name], times[name]
            began = time.process_time()
            run(count)
            seconds[name].append((time.process_time() - began) / count)
    gc.unfreeze()
    return Rounds(seconds)


def _calibrated(run: Callable[[int], object], seconds: float) -> int:
    """How many runs take so long, not counting the first, which initialises what is lazy."""
    run(1)
    times = 1
    while True:
        began = time.process_time()
        run(times)
        taken = time.process_time() - began
        if taken > seconds / 4:
            return max(1, round(times * seconds / taken))
        times *= 4
