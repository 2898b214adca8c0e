"""The guard before a store: one line when it fails, one when it works again, and no waiting for one that hangs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from sitemap_middleware import StoreError
from sitemap_middleware.stores.breaker import (
    BACKOFF_FACTOR,
    MIN_LOG_INTERVAL_SECONDS,
    GuardedStore,
)
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.sample_sites import Clock, Page, SampleSite

SITE = "https://example.com"
FAILS = (
    "store unavailable since 2025-06-15T15:06:40Z (the disk is full);"
    " buffering observations and serving the last good sitemap"
)


class Failing(MemoryStore):
    """A store that fails when it is told to, and takes its time to."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.takes = 0.0
        self.failing = True
        self.asked = 0

    def version(self, site: str) -> int:
        self.asked += 1
        self.clock.pass_(self.takes)
        if self.failing:
            raise StoreError("the disk is full")
        return super().version(site)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_failure_and_recovery_are_logged_once_each(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    store = Failing(clock)
    guard = GuardedStore(store, clock)
    for _ in range(3):
        with pytest.raises(StoreError, match="the disk is full"):
            guard.version(SITE)
        clock.pass_(10)
    store.failing = False
    assert [guard.version(SITE) for _ in range(3)] == [0, 0, 0]
    assert [record.getMessage() for record in caplog.records] == [FAILS, "store available again after 30 seconds"]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_an_operation_that_is_refused_is_logged_once_although_others_work(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = Failing(clock)
    guard = GuardedStore(store, clock)
    for _ in range(100):
        with pytest.raises(StoreError):
            guard.version(SITE)
        assert guard.parts(SITE) == {}
        clock.pass_(1)
    assert [record.getMessage() for record in caplog.records] == [FAILS]
    assert store.asked == 100, "it fails fast"


def test_an_outage_that_comes_and_goes_is_logged_once_a_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    store = Failing(clock)
    guard = GuardedStore(store, clock)
    for _ in range(5 * int(MIN_LOG_INTERVAL_SECONDS)):
        store.failing = not store.failing
        if store.failing:
            with pytest.raises(StoreError):
                guard.version(SITE)
        else:
            guard.version(SITE)
        clock.pass_(1)
    assert 2 * 4 <= len(caplog.records) <= 2 * 6, "a line, and that it is over"


def test_slow_failing_store_is_paused_ten_times_as_long(clock: Clock) -> None:
    store = Failing(clock)
    store.takes = 2
    guard = GuardedStore(store, clock)
    with pytest.raises(StoreError, match=r"^the disk is full$"):
        guard.version(SITE)
    clock.pass_(2 * BACKOFF_FACTOR - 1)
    with pytest.raises(StoreError, match=r"the disk is full; it will be tried again shortly"):
        guard.version(SITE)
    assert store.asked == 1
    assert guard.parts(SITE) == {}, "another operation may work"
    store.failing = False
    clock.pass_(1)
    assert guard.version(SITE) == 0


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_what_is_pending_is_saved_at_the_end_whatever_the_pause(protocol: str, clock: Clock) -> None:
    class Unwritable(Failing):
        def write(self, *arguments: Any) -> Any:
            self.version(SITE)
            return super().write(*arguments)

    store = Unwritable(clock)
    store.takes = 5
    site = SampleSite(protocol, {"/": Page(), "/gone": Page(404)}, store=store, clock=clock, base_url=SITE)
    site.visit("/gone")
    store.failing, store.takes = False, 0
    site.visit("/")
    assert store.parts(SITE) == {}
    site.app.close()
    assert {page.path: page.status for page in store.part(SITE, 0)} == {"/": 200, "/gone": 404}
