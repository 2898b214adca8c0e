"""Saves pending observations when the process ends: normally, by SIGTERM, as a forked child, or as a uWSGI worker."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Protocol

from ..private_stdlib import call_before_threads_are_joined

SHUTDOWN_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that the end of a process waits for the last flush of all buffers together."""


class Buffer(Protocol):
    """A buffer whose background thread is to save what is pending when the process ends."""

    def begin_shutdown(self) -> None:
        """Stop background work that would keep the process waiting."""

    def prepare(self) -> None:
        """Import what a flush needs."""

    def request_flush(self) -> None:
        """Have the thread begin the shutdown and flush, without waiting for it."""

    def flush_finally(self, timeout: float) -> None:
        """Flush in this thread, for the last time."""

    def stop(self) -> threading.Thread | None:
        """Have the thread flush and end, without waiting for it; return the one that was stopped last, if any."""

    def release_store(self) -> None:
        """Close the store."""


buffers: Final[weakref.WeakSet[Buffer]] = weakref.WeakSet()
"""The buffers of this process that are to be flushed at its end."""

_pending_signals: Final[list[int]] = []
"""The signal that is to end the process when a thread has flushed."""


def flush_at_exit(buffer: Buffer) -> None:
    """Have a buffer flushed when the process ends, if the buffer still exists then."""
    buffers.add(buffer)


def install_exit_hooks() -> None:
    """Install the hooks that `atexit` does not cover. Called when a background thread starts, in each process."""
    _flush_at_child_exit()
    _flush_at_uwsgi_exit()


def flush_on_sigterm() -> None:
    """Install a handler that flushes before SIGTERM ends the process.

    If nobody else handles the signal, the process then ends as it would have. If a
    server does, its handler is called as before; the handler only has the threads
    flush, because the server may restore the default handler when it has shut down
    and send itself the signal again (uvicorn). Only the main thread of the main
    interpreter can handle signals; anywhere else this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    current = signal.getsignal(signal.SIGTERM)
    handler: Callable[[int, FrameType | None], object] | None = None
    if current is signal.SIG_DFL:
        handler = _flush_and_terminate
    elif callable(current) and current is not _flush_and_terminate and not isinstance(current, _SigtermHandler):
        handler = _SigtermHandler(current)
    if handler is not None:
        with contextlib.suppress(ValueError):  # a sub-interpreter has a main thread, but no signals
            signal.signal(signal.SIGTERM, handler)


def _flush_and_terminate(  # pragma: no cover (its process ends in it)
    number: int, frame: FrameType | None
) -> None:
    if _is_importing(frame):
        # The flush may wait for this import, so the interrupted code goes on meanwhile.
        signal.signal(number, signal.SIG_DFL)  # only this thread can
        _pending_signals.append(number)
        with contextlib.suppress(RuntimeError):  # no thread can start any more
            _thread.start_new_thread(_close_all_and_kill, (number,))
            return
    close_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _close_all_and_kill(number: int) -> None:  # pragma: no cover (its process ends in it)
    close_all()
    os.kill(os.getpid(), number)


def _close_at_exit() -> None:  # pragma: no cover (its process ends in it)
    close_all()
    for number in _pending_signals:  # the interrupted code came to its end first
        os.kill(os.getpid(), number)


def _is_importing(frame: FrameType | None) -> bool:  # pragma: no cover (its process ends soon)
    """Whether a module is being imported, and so locked, by the code that runs in a frame."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib."):
        frame = frame.f_back
    return frame is not None


class _SigtermHandler:
    """Requests a flush of all buffers, waits for none, and calls the handler that was there before."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        # A signal may interrupt code that holds the locks that a request needs, such as the last flush: another thread
        # waits for these. `threading.Thread` takes locks itself.
        with contextlib.suppress(RuntimeError):  # no thread can start any more: the last flush has begun
            _thread.start_new_thread(_request_flushes, ())
        # A server that shuts down within milliseconds must not do so while the flush still waits for imports.
        with contextlib.suppress(Exception):
            for buffer in list(buffers):
                buffer.prepare()
        self._handler(number, frame)


def _request_flushes() -> None:
    for buffer in list(buffers):
        buffer.request_flush()


def _begin_shutdown() -> None:
    for buffer in list(buffers):
        with contextlib.suppress(Exception):
            buffer.begin_shutdown()


def close_all(timeout: float = SHUTDOWN_TIMEOUT_SECONDS) -> None:
    """Have all buffers flush at the same time, and close the stores of those that finish before one deadline.

    A second call, by another thread or a signal handler, waits for the same flushes.
    """
    deadline = time.monotonic() + timeout
    stopped = [(buffer, buffer.stop()) for buffer in list(buffers)]
    for buffer, thread in stopped:
        with contextlib.suppress(Exception):
            if thread is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
            if thread is None or not thread.is_alive():
                buffer.release_store()


def _flush_at_child_exit() -> None:
    """Before Python 3.13, a process that multiprocessing forked does not call the functions of `atexit`."""
    multiprocessing: Any = sys.modules.get("multiprocessing")
    util = sys.modules.get("multiprocessing.util")
    if util is not None and multiprocessing.parent_process() is not None:
        util.Finalize(None, close_all, exitpriority=100)


class _UwsgiExitHook:
    """Flushes all buffers, then calls the hook that was there before."""

    def __init__(self, previous: Callable[[], object] | None) -> None:
        self._previous = previous

    def __call__(self) -> None:
        for buffer in list(buffers):
            with contextlib.suppress(Exception):
                buffer.flush_finally(SHUTDOWN_TIMEOUT_SECONDS)
        if self._previous is not None:
            self._previous()


def _flush_at_uwsgi_exit() -> None:
    """A uWSGI worker with ``--gevent`` or ``--async`` calls only the hook of uWSGI's own module, not `atexit`."""
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is not None:
        previous = getattr(uwsgi, "atexit", None)
        if not isinstance(previous, _UwsgiExitHook):
            uwsgi.atexit = _UwsgiExitHook(previous)


atexit.register(_close_at_exit)
call_before_threads_are_joined(_begin_shutdown)
