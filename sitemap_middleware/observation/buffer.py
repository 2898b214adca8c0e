"""The recorder: a bounded map of what was just seen, and the one thread that folds it into the store.

On the request path it costs a dict assignment. The thread starts with the first
sighting, so that a server which forks its workers after loading the app has one
in each worker and none in between.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing.process
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from ..evidence.merge import is_conclusive
from ..exceptions import StoreError
from ..fork_safety import reset_after_fork
from ..observations import CapturedResponse

log = logging.getLogger("sitemap_middleware")

MAX_PENDING_RESPONSES: Final = 10_000
"""Pages that may wait to be folded, and bodies to be read: the memory this takes is bounded, whatever is asked for."""
FLUSH_INTERVAL_SECONDS: Final = 2.0
"""Seconds between folds, and so the most that a kill -9 can lose."""
MAX_PENDING_BODY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of sampled bodies that may wait to be read."""
_SHUTDOWN_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that the end of a process waits for its last fold."""


_COMMON_STATUSES: Final = frozenset({200, 404, 410})


def _buffer_key(sighting: CapturedResponse) -> tuple[str, ...]:
    """Where a sighting waits. What one visitor alone may have got, such as a 403, does not displace what others got."""
    return sighting.page_key if sighting.status in _COMMON_STATUSES else (*sighting.page_key, str(sighting.status))


def _do_nothing() -> None:
    """The default of callbacks."""


class ResponseBuffer:
    """Takes sightings on the request path and hands them, a batch at a time, to `fold` on a thread of its own."""

    def __init__(
        self,
        fold: Callable[[list[CapturedResponse]], None],
        expected: Callable[[CapturedResponse], bool],
        capacity: int = MAX_PENDING_RESPONSES,
        interval: float = FLUSH_INTERVAL_SECONDS,
        *,
        clock: Callable[[], float] = float,  # always 0.0
        on_shutdown: Callable[[], None] = _do_nothing,
        on_exit: Callable[[], object] = _do_nothing,
    ) -> None:
        self.seen = 0
        self.dropped = 0
        self._ingest = fold
        self._has_route = expected
        self._capacity = capacity
        self._half = capacity // 2
        self._interval = interval
        self._clock = clock
        self.on_shutdown = on_shutdown
        """Called on the thread when the process is about to end, so that nothing keeps it waiting."""
        self.on_exit = on_exit
        """Called when the process ends and all is folded: it closes the store."""
        self.reset_after_fork()
        reset_after_fork(self)
        _live_buffers.add(self)

    def reset_after_fork(self) -> None:
        """As new: in a forked child, the parent's thread does not exist and its sightings are the parent's."""
        self._pending: dict[tuple[str, ...], CapturedResponse] = {}
        self._samples: list[CapturedResponse] = []
        self._bytes = 0
        self._starting = threading.Lock()
        self._flushing: threading.Lock | None = None
        self._wakeup = threading.Event()
        self._ending = False
        self._thread: threading.Thread | None = None
        self._flushed_at = 0.0

    @property
    def pending(self) -> int:
        """How many sightings wait to be folded."""
        return len(self._pending) + len(self._samples)

    @property
    def last_flush_age_seconds(self) -> float:
        """Seconds since nothing was left to be folded; 0 while no thread is there to fold."""
        return 0.0 if self._thread is None else max(0.0, self._clock() - self._flushed_at)

    def record(self, sighting: CapturedResponse) -> None:
        """Keep the latest sighting of a page until the next fold. Never blocks; drops and counts where room lacks.

        Strangers' paths may fill half of the room; the rest is for pages known to be of the site.
        """
        waiting = self._pending
        slot: tuple[str, ...] = sighting.page_key
        if sighting.status not in _COMMON_STATUSES:
            if sighting.status >= 400 and slot in waiting and not is_conclusive(sighting.status):
                return  # what any request can bring about displaces nothing
            slot = _buffer_key(sighting)
        if len(waiting) >= self._half and slot not in waiting and not self._has_room(sighting):
            self.dropped += 1
            return
        self.seen += 1
        waiting[slot] = sighting
        if self._thread is None:
            self._start()

    def sample(self, sighting: CapturedResponse) -> None:
        """Keep a sighting with its body until the next fold; drop and count it where these would be too many."""
        if self._bytes + len(sighting.body or b"") > MAX_PENDING_BODY_BYTES or len(self._samples) >= self._capacity:
            self.dropped += 1
            return
        self._bytes += len(sighting.body or b"")
        self._samples.append(sighting)

    def _has_room(self, sighting: CapturedResponse) -> bool:
        return len(self._pending) < self._capacity and self._has_route(sighting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being folded."""
        folding = self._flushing
        return not self._pending and not self._samples and not (folding is not None and folding.locked())

    def discard(self, sighting: CapturedResponse) -> None:
        """Take back a sighting that turned out not to be one: its response failed half-way."""
        slot = _buffer_key(sighting)
        if self._pending.get(slot) is sighting:
            self._pending.pop(slot, None)

    def flush(self, seconds: float = -1) -> None:
        """Fold all that waits, now, in this thread. What could not be folded waits on; the error is the caller's.

        Args:
            seconds: for which a fold that is under way is waited for; without end where that is less than 0.
        """
        lock = self._lock()
        if not lock.acquire(timeout=seconds):
            return
        try:
            batch: list[CapturedResponse] = []
            with contextlib.suppress(KeyError):  # taken back meanwhile
                batch.extend(self._pending.popitem()[1] for _ in range(len(self._pending)))
            batch.reverse()  # to the order in which they came
            samples, self._samples, self._bytes = self._samples, [], 0
            batch += samples
            if batch:
                try:
                    self._ingest(batch)
                except BaseException:
                    for sighting in batch:
                        if sighting.body is not None:
                            self.sample(sighting)
                        elif len(self._pending) < self._capacity:
                            self._pending.setdefault(_buffer_key(sighting), sighting)
                        elif _buffer_key(sighting) not in self._pending:  # what was seen meanwhile has taken the room
                            self.dropped += 1
                    raise
            self._flushed_at = self._clock()
        finally:
            lock.release()

    def _lock(self) -> threading.Lock:
        """Held while folding. Made when first used: gevent may take the place of threads, and locks, after a fork."""
        with self._starting:
            if self._flushing is None:
                self._flushing = threading.Lock()
            return self._flushing

    def close(self, seconds: float = _SHUTDOWN_TIMEOUT_SECONDS) -> None:
        """Fold what waits and stop the thread, waiting so many seconds at most. A later sighting starts it anew."""
        thread = self.stop()
        if thread is not None:
            thread.join(seconds)

    def stop(self) -> threading.Thread | None:
        """Have the thread fold what waits and end, without waiting for it; the thread, if there is one."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._wakeup.set()
        return thread

    def ensure_thread(self) -> None:
        """Have the thread run, so that it hears of the process's end."""
        if self._thread is None:
            self._start()

    def request_flush(self) -> None:
        """Have the thread fold what waits now, and leave, without waiting for it: from a signal handler, say."""
        self._ending = True
        self._wakeup.set()

    def _start(self) -> None:
        flush_on_sigterm()  # a server may have taken the signal since, and after a fork
        with self._starting:
            if self._thread is not None:
                return
            self._flushed_at = self._clock()
            self._wakeup = threading.Event()
            thread = threading.Thread(
                target=_run_thread, args=(weakref.ref(self), self._wakeup, self._interval), name="sitemap", daemon=True
            )
            self._thread = thread
        _flush_at_child_exit()
        _flush_at_uwsgi_exit()
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            self._thread = None


def _run_thread(recorder: weakref.ref[ResponseBuffer], wake: threading.Event, interval: float) -> None:
    """The thread: it lives no longer than its recorder, and ends when it is no longer its recorder's."""
    ended = False
    while not ended:
        wake.wait(interval)
        wake.clear()
        this = recorder()
        if this is None:
            return
        ended = this._thread is not threading.current_thread()
        try:
            if this._ending:
                this._ending = False
                this.on_shutdown()
            this.flush()
        except StoreError as error:
            log.debug("observations not saved: %s", error)  # the guard before the store has said so
        except Exception:
            log.exception("the observations of the last seconds could not be saved")
        del this


_live_buffers: Final[weakref.WeakSet[ResponseBuffer]] = weakref.WeakSet()


def _shutdown_all() -> None:
    for recorder in list(_live_buffers):
        with contextlib.suppress(Exception):
            recorder.on_shutdown()


def _close_all() -> None:
    """Have all recorders fold what waits, at one time, and let go of their stores: there is one deadline for all."""
    recorders, end = list(_live_buffers), time.monotonic() + _SHUTDOWN_TIMEOUT_SECONDS
    threads = [(recorder, recorder.stop()) for recorder in recorders]
    for recorder, thread in threads:
        with contextlib.suppress(Exception):
            if thread is not None:
                thread.join(max(0.0, end - time.monotonic()))
            if thread is None or not thread.is_alive():
                recorder.on_exit()


def _flush_at_child_exit() -> None:
    """A process that multiprocessing forked runs nothing of `atexit`, before Python 3.13."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and multiprocessing.process.parent_process() is not None:
        util.Finalize(None, _close_all, exitpriority=100)


class _UwsgiExitHook:
    """Folds what waits, and then calls what was to be called before."""

    def __init__(self, before: Callable[[], object] | None) -> None:
        self._before = before

    def __call__(self) -> None:
        for recorder in list(_live_buffers):
            with contextlib.suppress(Exception):
                recorder.flush(_SHUTDOWN_TIMEOUT_SECONDS)
        if self._before is not None:
            self._before()


def _flush_at_uwsgi_exit() -> None:
    """A worker of uWSGI with ``--gevent`` or ``--async`` runs nothing of `atexit`, but the hook of its own module."""
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is not None:
        before = getattr(uwsgi, "atexit", None)
        if not isinstance(before, _UwsgiExitHook):
            uwsgi.atexit = _UwsgiExitHook(before)


def _on_sigterm(number: int, _: FrameType | None) -> None:  # pragma: no cover (its process ends before it could tell)
    _close_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class _SigtermHandler:
    """A handler of SIGTERM that has the recorders fold, waiting for none, and then is the one that was there."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        for recorder in list(_live_buffers):
            recorder.request_flush()
        self._handler(number, frame)


def flush_on_sigterm() -> None:
    """Fold before SIGTERM ends the process.

    Where nothing else has taken the signal, the process then ends as it would have.
    Where a server has, its handler is called as before; but a server may put the
    signal back when it has shut down, and send it to itself again (uvicorn), which
    leaves no other chance. Signals belong to the main thread of the main interpreter;
    anywhere else nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(signal.SIGTERM)
    ours: Callable[[int, FrameType | None], object] | None = None
    if handler is signal.SIG_DFL:
        ours = _on_sigterm
    elif callable(handler) and handler is not _on_sigterm and not isinstance(handler, _SigtermHandler):
        ours = _SigtermHandler(handler)
    if ours is not None:
        with contextlib.suppress(ValueError):  # a sub-interpreter has a main thread, but no signals
            signal.signal(signal.SIGTERM, ours)


atexit.register(_close_all)
# Threads that are no daemons, such as AnyIO's, are waited for before `atexit` has its turn.
getattr(threading, "_register_atexit", atexit.register)(_shutdown_all)
