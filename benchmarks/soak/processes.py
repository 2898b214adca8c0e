"""Memory, CPU time and children of Linux processes, and the trend of their memory."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

BINS: Final = 20
"""Means of as many stretches of time are what the line is laid through: neighbouring samples are nearly the same."""

T_95: Final = 2.101
"""Student's t for 95 %, with two degrees of freedom fewer than there are bins."""

_TICK: Final = os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Its children, all the way down."""
    pids: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                pids += [int(child), *children(int(child))]
    return pids


def workers(pid: int) -> list[int]:
    """Of a server's children, those that serve."""
    return [child for child in children(pid) if not _tracks(child)]


def _tracks(pid: int) -> bool:
    """Whether it is multiprocessing's resource tracker, or is gone."""
    try:
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def began(pid: int) -> int:
    """When a process began, in ticks since the machine did."""
    return int(_stat(pid)[19])


def resident(pid: int) -> int:
    """Resident bytes of a process; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    """The fields of proc(5) from the third on, which is the process's state."""
    return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()


@dataclass
class Used:
    """CPU seconds of processes that come and go, as far as they were looked at."""

    seconds: float = 0.0
    _last: dict[tuple[int, int], int] = field(default_factory=dict)

    def measure(self, pids: Iterable[int]) -> None:
        for pid in pids:
            with suppress(OSError):
                stat = _stat(pid)
                ticks, key = int(stat[11]) + int(stat[12]), (pid, int(stat[19]))
                self.seconds += (ticks - self._last.get(key, 0)) / _TICK
                self._last[key] = ticks


@dataclass(frozen=True, slots=True)
class Slope:
    """How memory changes, in % an hour of what it is; with the 95 % interval."""

    percent: float
    low: float
    high: float


def slope(samples: Sequence[tuple[float, float]]) -> Slope | None:
    """By least squares, of (seconds, bytes); None if there are too few."""
    if len(samples) < 2 * BINS:
        return None
    start, end = samples[0][0], samples[-1][0]
    bins: list[list[float]] = [[] for _ in range(BINS)]
    for at, size in samples:
        bins[min(BINS - 1, int((at - start) / (end - start) * BINS))].append(size)
    points = [
        ((number + 0.5) * (end - start) / BINS, statistics.fmean(pids)) for number, pids in enumerate(bins) if pids
    ]
    if len(points) < BINS:
        return None
    hours, sizes = [at / 3600 for at, _ in points], [size for _, size in points]
    line = statistics.linear_regression(hours, sizes)
    mean = statistics.fmean(hours)
    rest = sum((size - line.intercept - line.slope * at) ** 2 for at, size in zip(hours, sizes, strict=True))
    error = math.sqrt(rest / (BINS - 2) / sum((at - mean) ** 2 for at in hours))
    scale = 100 / statistics.fmean(sizes)
    return Slope(line.slope * scale, (line.slope - T_95 * error) * scale, (line.slope + T_95 * error) * scale)
