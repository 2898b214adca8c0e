"""The buffer of captured responses, and the background thread that saves them.

On the request path, recording a response is one dict assignment. The thread starts with the first response: a server
that forks its workers after loading the app has one thread in each worker, and none in the parent.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import Final

from ..evidence.merge import CONFIRMATION_SECONDS
from ..exceptions import StoreError
from ..http.messages import CapturedResponse
from ..util import ForkSafeLock, log, reset_after_fork

MAX_PENDING_RESPONSES: Final = 10_000
"""Pending responses, at most. This bounds the memory, whatever is requested."""

MAX_PENDING_BODY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of their bodies, at most."""

FLUSH_INTERVAL_SECONDS: Final = 2.0
"""Seconds between two flushes, and so the most that is lost by kill -9, and by a SIGTERM that no server handles."""

SHUTDOWN_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that the end of a process waits for the last flush."""


class ResponseBuffer:
    """Takes captured responses on the request path, and hands them in batches to a function on a background thread."""

    def __init__(self, save: Callable[[list[CapturedResponse]], None], clock: Callable[[], float]) -> None:
        """`save` saves a batch, which may be empty. If it raises, the batch stays pending."""
        self.seen: int = 0
        self.dropped: int = 0
        self._save = save
        self._clock = clock
        self.capacity: int = MAX_PENDING_RESPONSES
        self.interval: float = FLUSH_INTERVAL_SECONDS
        self._flush_lock = ForkSafeLock()
        self._start_lock = ForkSafeLock()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent's thread is not there, and the parent saves what it captured."""
        self._pending: dict[tuple[object, ...], CapturedResponse] = {}
        self._body_bytes = 0
        self._saving = 0
        self._wakeup = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped: threading.Thread | None = None
        """The thread that was stopped last. It may still flush."""
        self._flushed_at = 0.0

    @property
    def pending(self) -> int:
        """Responses that have not been saved."""
        return len(self._pending)

    @property
    def last_flush_age_seconds(self) -> float:
        """Seconds since nothing was pending; 0 if no thread runs."""
        return 0.0 if self._thread is None else max(0.0, self._clock() - self._flushed_at)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is pending, and no batch is being saved."""
        return not self._pending and not self._saving

    def record(self, captured: CapturedResponse) -> None:
        """Keep the latest response of a page until the next flush. Never blocks; a full buffer drops and counts it."""
        if not self._keep(_key_of(captured), captured):
            self.dropped += 1
            return
        self.seen += 1
        if self._thread is None:
            self.ensure_thread()

    def _keep(self, key: tuple[object, ...], captured: CapturedResponse) -> bool:
        """Keep a response, in place of an earlier one under this key, if there is room; return whether there was."""
        before = self._pending.get(key)
        body_bytes = self._body_bytes + len(captured.body or b"") - len((before and before.body) or b"")
        if (before is None and len(self._pending) >= self.capacity) or body_bytes > MAX_PENDING_BODY_BYTES:
            return False
        self._pending[key], self._body_bytes = captured, body_bytes
        return True

    def flush(self, timeout: float = -1) -> None:
        """Save all that is pending, in this thread. If saving fails, it stays pending and the error is raised.

        It waits so many seconds for a flush in progress, without end if negative.
        """
        if not self._flush_lock.acquire(timeout):
            return
        try:
            batch = [self._pending.popitem()[1] for _ in range(len(self._pending))][::-1]  # as they came
            self._body_bytes, self._saving = 0, len(batch)
            try:
                self._save(batch)
            except BaseException:
                for captured in batch:
                    if (key := _key_of(captured)) not in self._pending:  # else it has been answered again
                        self._keep(key, captured)
                raise
            finally:
                self._saving = 0
            self._flushed_at = self._clock()
        finally:
            self._flush_lock.release()

    def try_flush(self, timeout: float = -1) -> None:
        """Flush, as `flush` does. An error is logged, and what could not be saved stays pending."""
        try:
            self.flush(timeout)
        except StoreError as error:
            log.debug("observations not saved: %s", error)  # the circuit breaker has logged it
        except Exception:
            log.exception("the observations of the last seconds could not be saved")

    def ensure_thread(self) -> None:
        """Start the background thread if necessary."""
        with self._start_lock:
            if self._thread is not None:
                return
            self._flushed_at = self._clock()
            self._wakeup = threading.Event()
            arguments = weakref.ref(self), self._wakeup, self.interval
            self._thread = threading.Thread(target=_run_thread, args=arguments, name="sitemap", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter is shutting down
                self._thread = None

    def wake(self) -> None:
        """Have the background thread flush now."""
        self.ensure_thread()
        self._wakeup.set()

    def stop(self) -> None:
        """Have the thread flush and end, without waiting for it."""
        with self._start_lock:
            if self._thread is not None:
                self._stopped, self._thread = self._thread, None
                self._wakeup.set()

    def close(self, timeout: float = SHUTDOWN_TIMEOUT_SECONDS) -> None:
        """Flush, and stop the thread, waiting so many seconds at most. The next response starts another one.

        What could not be saved is logged, once.
        """
        self.stop()
        if self._stopped is None:
            return
        self._stopped.join(timeout)
        if not self._stopped.is_alive():
            self._stopped = None
        if unsaved := self.pending + self._saving:
            self._stopped = None
            log.warning(
                "%d observations of the sitemap were not saved within %g seconds at the end; what is lost is learned"
                " again with the next visits",
                unsaved,
                timeout,
            )


def _key_of(captured: CapturedResponse) -> tuple[object, ...]:
    """Identifies a response among those that wait: of one kind, the latest counts.

    Our own requests for a page are kept apart, because they are compared with each other; and so are other answers
    than 200 of different minutes, of which one confirms the other.
    """
    minute = None if captured.status == 200 else captured.at // CONFIRMATION_SECONDS
    kind = captured.status, captured.is_doubtful, captured.body is None, minute
    return (*captured.page_key, *kind, captured.at if captured.is_probe else None)


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
        with contextlib.suppress(Exception):  # a log handler of the app may raise
            buffer.try_flush()
        del buffer  # the thread must not keep it alive
