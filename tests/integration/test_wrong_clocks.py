"""Clocks that are wrong: one worker, or one hour, with a false time must not harm what all workers share."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sitemap_middleware.stores import open_store

from ..support import postgres
from ..support.redis_servers import shared
from ..support.sample_sites import Clock, Page, SampleSite
from ..support.stores import all_pages

LOCAL = "http://testserver"
SITE = "loopback:http/"
DAY = 86_400

SHARED: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'pages.sqlite3'}",
    "postgresql": lambda _: postgres.server().fresh(),
    "redis": lambda folder: f"{shared().url}?prefix={folder}",
}


_closing = contextlib.ExitStack()


@pytest.fixture(autouse=True)
def _close_what_a_test_opens() -> Iterator[None]:
    with _closing:
        yield


def worker(url: str, clock: Callable[[], float] | None, pages: dict[str, Page] | None = None) -> SampleSite:
    pages = pages or {"/": Page(), "/posts/{slug}": Page()}
    sample = SampleSite("wsgi", pages, learn="/posts/{slug}", max_age=0, store=url, clock=clock, verify=False)
    _closing.callback(sample.app.close)
    return sample


@pytest.mark.parametrize("ahead", [6 * 60, DAY, 400 * DAY])
@pytest.mark.parametrize("falsely", [Page(404), Page().with_headers(("x-robots-tag", "noindex"))])
def test_page_seen_by_a_fast_clock_recovers_with_the_next_visit(ahead: int, falsely: Page) -> None:
    clock = Clock()
    site = worker("memory://", clock)
    site.visit("/", "/posts/one")
    good, site.pages["/posts/{slug}"] = site.pages["/posts/{slug}"], falsely
    clock.pass_(ahead)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]
    site.pages["/posts/{slug}"] = good
    clock.pass_(30 - ahead)
    site.visit("/posts/one")
    assert f"{LOCAL}/posts/one" in site.locs()
    site.pages["/posts/{slug}"] = falsely
    clock.pass_(60)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]


def test_body_is_read_again_after_the_clock_is_set_back() -> None:
    clock = Clock()
    site = worker("memory://", clock)
    clock.pass_(100 * DAY)
    site.visit("/posts/one")
    clock.pass_(-100 * DAY)
    site.pages["/posts/{slug}"] = Page(body=b'<!doctype html><meta name="robots" content="noindex"><p>A page')
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", SHARED)
def test_worker_with_a_slow_clock_does_not_block_others(
    engine: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = SHARED[engine](tmp_path)
    right, wrong = Clock(), Clock()
    wrong.pass_(-DAY)
    slow = worker(url, wrong)
    others = [worker(url, right) for _ in range(2)]
    slow.visit("/", "/posts/one", "/posts/two")
    gone, there = Page(404), Page()
    for other in others:
        for page in (gone, there):
            for site in (slow, *others):
                site.pages["/posts/{slug}"] = page
                site.clock.pass_(60)
            other.visit("/posts/one")
            for site in (slow, *others):
                assert (f"{LOCAL}/posts/one" in site.locs()) is (page is there)
            slow.visit("/posts/one")
            assert (f"{LOCAL}/posts/one" in other.locs()) is (page is there)
    others[0].visit("/posts/three")
    assert all(len(site.locs()) == 4 for site in (slow, *others))
    assert caplog.records == []


@pytest.mark.parametrize("engine", ["postgresql", "redis"])
@pytest.mark.parametrize("ahead", [DAY, 400 * DAY, -DAY])
def test_without_a_clock_given_the_servers_time_decides(
    engine: str, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = SHARED[engine](tmp_path)
    good = worker(url, None)
    posts = [f"/posts/{number}" for number in range(3)]
    good.visit("/", *posts)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + ahead)
    bad = worker(url, None, {"/": Page(), "/posts/{slug}": Page(404)})
    bad.visit(*posts)
    store = open_store(url, "store")
    _closing.callback(store.close)
    assert len(all_pages(store, SITE)) == 4
    assert len(good.locs()) == len(bad.locs()) == 4
    (line,) = [record.getMessage() for record in caplog.records]
    match = re.search(r"clock is (\d+) seconds (ahead of|behind) the store's clock", line)
    assert match is not None
    assert abs(int(match[1]) - abs(ahead)) < 9
    assert match[2] == ("ahead of" if ahead > 0 else "behind")
