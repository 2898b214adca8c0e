"""`yield_to_other_threads`: other threads run between the pieces of long work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from sitemap_middleware.yield_to_other_threads import in_pieces, yield_to_other_threads


@pytest.fixture
def _no_switches() -> Iterator[None]:
    """Have each thread keep the interpreter until it gives way or waits."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(interval)


# That the other thread does not run without the pauses is not tested: the system may always let it run.


@pytest.mark.usefixtures("_no_switches")
def test_another_thread_runs_before_the_work_ends() -> None:
    def work() -> None:
        for _ in range(20):
            sum(range(50_000))
            yield_to_other_threads()

    assert runs_beside(work)


@pytest.mark.usefixtures("_no_switches")
@pytest.mark.parametrize("size", [1, 10])
def test_another_thread_runs_between_pieces(size: int) -> None:
    def work() -> None:
        for _ in in_pieces(range(20 * size), size):
            sum(range(50_000))

    assert runs_beside(work)


def test_pieces_leave_out_nothing() -> None:
    assert [*in_pieces(range(10), 3)] == [*range(10)]


def runs_beside(work: Callable[[], None]) -> bool:
    """Whether this thread runs before the work of another one ends."""
    thread = threading.Thread(target=work)
    thread.start()  # returns when this thread runs again
    ran_meanwhile = thread.is_alive()
    thread.join()
    return ran_meanwhile
