"""`yield_to_other_threads`: other threads run between the pieces of long work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from sitemap_middleware.yield_to_other_threads import yield_to_other_threads


@pytest.fixture
def _no_switches() -> Iterator[None]:
    """Have each thread keep the interpreter until it gives way or waits."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_no_switches")
def test_another_thread_runs_before_the_work_ends() -> None:
    def work() -> None:
        for _ in range(20):
            sum(range(50_000))
            yield_to_other_threads()

    thread = threading.Thread(target=work)
    thread.start()  # returns when this thread runs again
    ran_meanwhile = thread.is_alive()
    thread.join()
    assert ran_meanwhile
