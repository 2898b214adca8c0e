"""The next item is made while one is used, and what goes wrong is told in its place."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from sitemap_middleware.access_logs.prefetch_thread import prefetched


class Source:
    """Makes numbers; an error takes the place of the last one."""

    def __init__(self, *numbers: int | Exception) -> None:
        self._numbers = numbers
        self.threads = set[threading.Thread]()
        self.made = [threading.Event() for _ in numbers]
        self.is_closed = False

    def items(self) -> Generator[int]:
        try:
            for number, made in zip(self._numbers, self.made, strict=True):
                self.threads.add(threading.current_thread())
                made.set()
                if isinstance(number, Exception):
                    raise number
                yield number
        finally:
            self.is_closed = True


def test_all_items_come_in_their_order_from_one_other_thread() -> None:
    source = Source(3, 1, 2, 0)
    assert [*prefetched(source.items())] == [3, 1, 2, 0]
    assert len(source.threads) == 1
    assert threading.current_thread() not in source.threads


def test_no_items_are_none() -> None:
    assert [*prefetched(Source().items())] == []


def test_the_next_item_is_made_while_one_is_used_and_no_other() -> None:
    source = Source(1, 2, 3)
    ahead = prefetched(source.items())
    assert next(ahead) == 1
    assert source.made[1].wait(30)
    assert not source.made[2].is_set()
    ahead.close()
    assert not source.made[2].is_set()


def test_an_error_is_raised_after_the_items_before_it() -> None:
    source, taken = Source(1, 2, OSError("the disk is full")), []
    with pytest.raises(OSError, match="the disk is full"):
        taken.extend(prefetched(source.items()))
    assert source.is_closed
    assert not any(thread.is_alive() for thread in source.threads)


def test_nothing_runs_and_nothing_is_open_once_it_is_closed() -> None:
    source = Source(1, 2, 3)
    ahead = prefetched(source.items())
    next(ahead)
    ahead.close()
    assert source.is_closed
    assert not any(thread.is_alive() for thread in source.threads)
