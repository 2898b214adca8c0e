"""Waiting for what happens on another thread or in another process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
"""Much longer than anything takes, even on a loaded machine."""


def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS, *, every: float = 0.02) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it was not true within {seconds:g} seconds"
        time.sleep(every)


def join_threads(name: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for the end of all threads of this name, so many seconds for each at most."""
    for thread in threading.enumerate():
        if thread.name == name:
            until(lambda thread=thread: thread.ident)  # another thread may be starting it: it cannot be joined yet
            thread.join(seconds)
