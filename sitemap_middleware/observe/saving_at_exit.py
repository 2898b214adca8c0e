"""Saves pending observations when the process ends normally.

A process that a signal ends at once loses those of the last seconds, as by kill -9: handlers of signals are the app's.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from typing import Final, Protocol

from ..util import call_before_threads_are_joined

SHUTDOWN_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that the end of a process waits for the last flush of all buffers together."""


class Buffer(Protocol):
    """A buffer whose background thread is to save what is pending when the process ends."""

    def begin_shutdown(self) -> None:
        """Stop background work that would keep the process waiting."""

    def stop(self) -> object:
        """Have the thread flush and end, without waiting for it."""

    def close(self, timeout: float) -> bool:
        """Wait so many seconds at most for the last flush; return whether it has ended."""

    def release_store(self) -> None:
        """Close the store."""


buffers: Final[weakref.WeakSet[Buffer]] = weakref.WeakSet()
"""The buffers of this process that are to be flushed at its end."""


def _begin_shutdown() -> None:
    for buffer in list(buffers):
        with contextlib.suppress(Exception):
            buffer.begin_shutdown()


def close_all(timeout: float = SHUTDOWN_TIMEOUT_SECONDS) -> None:
    """Have all buffers flush at the same time, and close the stores of those that finish before one deadline."""
    deadline = time.monotonic() + timeout
    stopped = list(buffers)
    # `close` of each stops its own, so that it knows what it has lost; but first, all are to flush at the same time.
    for buffer in stopped:
        with contextlib.suppress(Exception):
            buffer.stop()
    for buffer in stopped:
        with contextlib.suppress(Exception):
            if buffer.close(max(0.0, deadline - time.monotonic())):
                buffer.release_store()


atexit.register(close_all)
call_before_threads_are_joined(_begin_shutdown)
