"""Lets other threads run between the pieces of long work in the background."""

from __future__ import annotations

import time
from typing import Final

PAUSE_SECONDS: Final = 0.00005
"""Seconds of a pause, besides what the system adds: a thread that waits for the interpreter wakes up meanwhile."""


def yield_to_other_threads() -> None:
    """Release the interpreter for a moment.

    A thread that computes all the time keeps it for 5 ms each time that another one asks for it, and an event loop asks
    several times in each turn. Call this after pieces of one or two milliseconds.
    """
    time.sleep(PAUSE_SECONDS)
