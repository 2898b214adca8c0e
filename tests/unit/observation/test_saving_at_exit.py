"""Pending observations are saved when the process ends."""

from __future__ import annotations

import signal
import threading

from sitemap_middleware.observation.saving_at_exit import flush_at_exit, flush_on_sigterm


class Locked:
    """A buffer whose lock the interrupted code holds, as that of an event that is being set."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requested = threading.Event()

    def prepare(self) -> None:
        """Nothing is to be imported."""

    def begin_shutdown(self) -> None:
        """Nothing runs."""

    def request_flush(self) -> None:
        with self.lock:
            self.requested.set()

    def flush_finally(self, timeout: float) -> None:
        """Nothing is pending."""

    def stop(self) -> None:
        """Nothing runs."""

    def release_store(self) -> None:
        """Nothing is open."""


def test_sigterm_handler_waits_for_no_lock_that_the_interrupted_code_holds() -> None:
    before = signal.getsignal(signal.SIGTERM)
    numbers: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    buffer = Locked()
    try:
        flush_at_exit(buffer)
        flush_on_sigterm()
        with buffer.lock:
            signal.raise_signal(signal.SIGTERM)
            assert numbers == [signal.SIGTERM]
        assert buffer.requested.wait(5)
    finally:
        signal.signal(signal.SIGTERM, before)
