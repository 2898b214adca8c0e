"""The buffer of captured responses, and the background thread that saves them.

On the request path, recording a response is one dict assignment. The thread starts
with the first response: a server that forks its workers after loading the app has
one thread in each worker, and none in the parent.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Final

from ..evidence.delisting_confirmation import is_conclusive
from ..exceptions import StoreError
from ..http.captured_response import CapturedResponse
from ..util import reset_after_fork
from .saving_at_exit import SHUTDOWN_TIMEOUT_SECONDS, buffers

log: logging.Logger = logging.getLogger("sitemap_middleware")

MAX_PENDING_RESPONSES: Final = 10_000
"""Pages with a pending response, and pending body samples. This bounds the memory, whatever is requested."""

FLUSH_INTERVAL_SECONDS: Final = 2.0
"""Seconds between two flushes, and so the most that is lost by kill -9, and by a SIGTERM that no server handles."""

MAX_PENDING_BODY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of pending body samples."""

_COMMON_STATUSES: Final = frozenset({200, 404, 410})


def _do_nothing() -> None:
    """The default of callbacks."""


class ResponseBuffer:
    """Takes captured responses on the request path, and hands them in batches to a function on a background thread."""

    def __init__(
        self,
        ingest: Callable[[list[CapturedResponse]], None],
        has_route: Callable[[CapturedResponse], bool],
        capacity: int = MAX_PENDING_RESPONSES,
        interval: float = FLUSH_INTERVAL_SECONDS,
        *,
        clock: Callable[[], float] = float,  # always 0.0
        on_last_flush: Callable[[], None] = _do_nothing,
        on_shutdown: Callable[[], None] = _do_nothing,
        on_exit: Callable[[], object] = _do_nothing,
    ) -> None:
        """Start empty, and without a thread.

        Args:
            ingest: saves a batch. If it raises, the batch stays pending.
            has_route: whether a page is one of the app's. Other pages fill half of the capacity at most.
            capacity: pages with a pending response, at most.
            interval: seconds between two flushes.
            clock: returns POSIX seconds.
            on_last_flush: called before the last flush: a store that failed before is to be tried once more.
            on_shutdown: called when the process is about to end, before the last flush.
            on_exit: called when the process ends, after the last flush. It closes the store.
        """
        self.seen: int = 0
        self.dropped: int = 0
        self._ingest = ingest
        self._has_route = has_route
        self._capacity = capacity
        self._half = capacity // 2
        self.interval: float = interval
        """Seconds between two flushes, by a thread that starts after this was set."""
        self._clock = clock
        self._on_last_flush = on_last_flush
        self._on_shutdown = on_shutdown
        self._on_exit = on_exit
        self.reset_after_fork()
        reset_after_fork(self)
        buffers.add(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent's thread is not there, and the parent saves what it captured."""
        self._pending: dict[tuple[str, ...], CapturedResponse] = {}
        self._samples: list[CapturedResponse] = []
        self._sample_bytes = 0
        self._creation_lock = threading.Lock()
        self._flush_lock: threading.Lock | None = None
        self._wakeup = threading.Event()
        self._saving = 0
        self._is_reported = True
        """Whether it was logged what could not be saved, or no thread has run since."""
        self._thread: threading.Thread | None = None
        self._stopped_thread: threading.Thread | None = None
        """The thread that was stopped last. It may still flush."""
        self._flushed_at = 0.0

    @property
    def pending(self) -> int:
        """Responses and body samples that have not been saved."""
        return len(self._pending) + len(self._samples)

    @property
    def last_flush_age_seconds(self) -> float:
        """Seconds since nothing was pending; 0 if no thread runs."""
        return 0.0 if self._thread is None else max(0.0, self._clock() - self._flushed_at)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is pending, and no flush is in progress."""
        lock = self._flush_lock
        return not self._pending and not self._samples and not (lock is not None and lock.locked())

    def record(self, captured: CapturedResponse) -> None:
        """Keep the latest response of a page until the next flush. Never blocks; a full buffer drops and counts it."""
        pending, key = self._pending, _key_of(captured)
        if captured.status >= 400 and not is_conclusive(captured.status) and captured.page_key in pending:
            return  # an error that any odd request can trigger does not replace a good response
        if len(pending) >= self._half and key not in pending and not self._has_room(captured):
            self.dropped += 1
            return
        self.seen += 1
        pending[key] = captured
        if self._thread is None:
            self._start()

    def record_late(self, captured: CapturedResponse) -> None:
        """Record a response whose body has ended, unless a response that began later is recorded."""
        recorded = self._pending.get(captured.page_key)
        if recorded is None or recorded.at <= captured.at:
            self.record(captured)

    def record_sample(self, captured: CapturedResponse) -> bool:
        """Keep a response with its body until the next flush; if there are too many, drop and count it.

        Returns:
            Whether it was kept.
        """
        size = len(captured.body or b"")
        if self._sample_bytes + size > MAX_PENDING_BODY_BYTES or len(self._samples) >= self._capacity:
            self.dropped += 1
            return False
        self._sample_bytes += size
        self._samples.append(captured)
        return True

    def discard(self, captured: CapturedResponse) -> None:
        """Remove a recorded response that failed before its end."""
        if self._pending.get(_key_of(captured)) is captured:
            self._pending.pop(_key_of(captured), None)

    def _has_room(self, captured: CapturedResponse) -> bool:
        return len(self._pending) < self._capacity and self._has_route(captured)

    def flush(self, timeout: float = -1) -> None:
        """Save all that is pending, in this thread. If saving fails, it stays pending and the error is raised.

        Args:
            timeout: seconds to wait for a flush in progress; without end if negative.
        """
        lock = self._get_flush_lock()
        if not lock.acquire(timeout=timeout):
            return
        try:
            batch = self.take_batch()
            if batch:
                self._saving = len(batch)
                try:
                    self._ingest(batch)
                except BaseException:
                    self._put_back(batch)
                    raise
                finally:
                    self._saving = 0
            self._flushed_at = self._clock()
        finally:
            lock.release()

    def try_flush(self, timeout: float = -1) -> None:
        """Flush, as `flush` does. An error is logged, and what could not be saved stays pending."""
        try:
            self.flush(timeout)
        except StoreError as error:
            log.debug("observations not saved: %s", error)  # the circuit breaker has logged it
        except Exception:
            log.exception("the observations of the last seconds could not be saved")

    def take_batch(self) -> list[CapturedResponse]:
        """Remove all that is pending, and return it in the order in which it came."""
        batch: list[CapturedResponse] = []
        with contextlib.suppress(KeyError):  # a response was discarded meanwhile
            batch.extend(self._pending.popitem()[1] for _ in range(len(self._pending)))
        batch.reverse()
        samples, self._samples, self._sample_bytes = self._samples, [], 0
        return batch + samples

    def _put_back(self, batch: list[CapturedResponse]) -> None:
        """Keep a batch that could not be saved, unless newer responses have taken its place."""
        for captured in batch:
            if captured.body is not None or captured.file_path is not None:
                self.record_sample(captured)
            elif len(self._pending) < self._capacity:
                self._pending.setdefault(_key_of(captured), captured)
            elif _key_of(captured) not in self._pending:
                self.dropped += 1

    def _get_flush_lock(self) -> threading.Lock:
        """The lock held while flushing. Made when first used, because gevent may replace locks after a fork."""
        with self._creation_lock:
            if self._flush_lock is None:
                self._flush_lock = threading.Lock()
            return self._flush_lock

    def ensure_thread(self) -> None:
        """Start the background thread if necessary. It calls `begin_shutdown` when the process ends."""
        if self._thread is None:
            self._start()

    def close(self, timeout: float = SHUTDOWN_TIMEOUT_SECONDS) -> bool:
        """Flush, and stop the thread, waiting so many seconds at most. The next response starts another one.

        What could not be saved is logged, once.

        Returns:
            Whether the thread has ended.
        """
        thread = self.stop()
        if thread is not None:
            with contextlib.suppress(RuntimeError):  # another thread is starting it: it flushes, and ends by itself
                thread.join(timeout)
        unsaved = self.pending + self._saving
        if unsaved and not self._is_reported:
            self._is_reported = True
            log.warning(
                "%d observations of the sitemap were not saved within %g seconds at the end; what is lost is learned"
                " again with the next visits",
                unsaved,
                timeout,
            )
        return thread is None or not thread.is_alive()

    def stop(self) -> threading.Thread | None:
        """Have the thread flush and end, without waiting for it; return the one that was stopped last, if any.

        Another thread may call this at any moment of a call. If that moment is just before the thread is woken, it
        ends after its interval.
        """
        thread = self._thread
        if thread is not None:
            self._stopped_thread = thread  # first: whoever finds no thread waits for this one
            self._thread = None
            self._wakeup.set()
        return self._stopped_thread

    def begin_shutdown(self) -> None:
        """Stop background work that would keep the process waiting."""
        self._on_shutdown()

    def release_store(self) -> None:
        """Close the store, after the last flush."""
        self._on_exit()

    def _start(self) -> None:
        with self._creation_lock:
            if self._thread is not None:
                return
            self._is_reported = False
            self._flushed_at = self._clock()
            self._wakeup = threading.Event()
            thread = threading.Thread(
                target=_run_thread,
                args=(weakref.ref(self), self._wakeup, self.interval),
                name="sitemap",
                daemon=True,
            )
            self._thread = thread
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            self._thread = None

    def _flush_in_background(self, *, is_last: bool) -> None:
        try:
            if is_last:
                self._on_last_flush()
            self.try_flush()
        except Exception:
            log.exception("the observations of the last seconds could not be saved")


def _key_of(captured: CapturedResponse) -> tuple[str, ...]:
    """Identifies a response among those that wait.

    One that may depend on the visitor, the Host, or headers that claim another URL is kept beside others.
    """
    is_plain = captured.status == 200 or not captured.has_other_host
    if captured.status in _COMMON_STATUSES and not captured.routing_headers and is_plain:
        return captured.page_key
    return (*captured.page_key, str(captured.status))


def _run_thread(buffer_ref: weakref.ref[ResponseBuffer], wakeup: threading.Event, interval: float) -> None:
    """Flush at intervals, until the buffer is gone or has another thread."""
    is_last = False
    while not is_last:
        wakeup.wait(interval)
        wakeup.clear()
        buffer = buffer_ref()
        if buffer is None:
            return
        is_last = buffer._thread is not threading.current_thread()
        buffer._flush_in_background(is_last=is_last)
        del buffer  # the thread must not keep it alive
