"""Runs jobs in separate processes, and measures the memory that they take."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MB = 2**20


def job(run: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module returns in a process that is new, as after a start of the app."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run, *arguments).result()


def memory(name: str) -> int:
    """Bytes of this process: "VmRSS", what is in memory now, or "VmHWM", the most that was. On Linux."""
    return int(Path("/proc/self/status").read_text("ascii").partition(f"{name}:")[2].split()[0]) * 1024


@contextmanager
def resident() -> Iterator[SimpleNamespace]:
    """The extra memory of what is done within, as the system sees it: `at_most`, in bytes, over that before."""
    extra = SimpleNamespace(at_most=0)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the most that was is what is now (proc(5))
    idle = memory("VmRSS")
    yield extra
    extra.at_most = memory("VmHWM") - idle
