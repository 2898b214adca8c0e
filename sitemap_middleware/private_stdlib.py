"""Private names of the standard library that the middleware relies on, in one place.

Each has a comment: what it does, since when or until when it is there, and what happens without it.
"""

from __future__ import annotations

import atexit
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any


def mark_coroutine_function(function: Any) -> None:
    """Mark a function that returns an awaitable as a coroutine function, for `inspect` and asgiref."""
    if sys.version_info >= (3, 12):  # pragma: no cover (one of the two, by the interpreter)
        inspect.markcoroutinefunction(function)
    else:  # pragma: no cover (likewise)
        import asyncio

        # `asyncio.iscoroutinefunction` reads this mark; from Python 3.12 on there is the public function above.
        # Without it, asgiref warns when `async_to_sync` is given our `send`.
        function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined] # there is no public name


def call_before_threads_are_joined(function: Callable[[], None]) -> None:
    """Call a function when the interpreter exits, before it waits for threads that are not daemons."""
    # `threading._register_atexit` (since Python 3.9) is called before non-daemon threads, such as AnyIO's, are joined.
    # Without it, `atexit` calls the function after that, and the exit may wait for requests that run in the background.
    getattr(threading, "_register_atexit", atexit.register)(function)
