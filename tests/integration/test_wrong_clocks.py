"""Clocks that are wrong: one worker, or one hour, with a false time must not harm what all workers share."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from sitemap_middleware import SitemapMiddleware, Store
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import PageLimits
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import MAX_LEASE_SECONDS
from sitemap_middleware.stores.store_clock import MAX_WORKERS, MEASUREMENT_SECONDS, StoreClock

from ..support import postgres
from ..support.redis_servers import shared, shared_cluster
from ..support.sample_sites import Clock, Page, SampleSite

LOCAL = "http://testserver"
SITE = "loopback:http/"
HOUR = 3600
DAY = 24 * HOUR

SHARED: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'pages.sqlite3'}",
    "postgresql": lambda _: postgres.server().fresh(),
    "redis": lambda folder: f"{shared().url}?prefix={folder}",
    "cluster": lambda folder: f"{shared_cluster().url}?prefix={folder}",
}


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return SHARED[request.param](tmp_path)


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


def open_for_test(url: str) -> Store:
    store = open_store(url, "store")
    _closing.callback(store.close)
    return store


def visits(site: SampleSite, *paths: str) -> None:
    for path in paths:
        site.request(path)
    site.app.flush()


@pytest.mark.parametrize("ahead", [6 * 60, DAY, 400 * DAY])
@pytest.mark.parametrize("falsely", [Page(404), Page().with_headers(("x-robots-tag", "noindex"))])
def test_page_seen_by_a_fast_clock_recovers_with_the_next_visit(ahead: int, falsely: Page) -> None:
    clock = Clock()
    site = worker("memory://", clock)
    visits(site, "/", "/posts/one")
    good, site.pages["/posts/{slug}"] = site.pages["/posts/{slug}"], falsely
    clock.pass_(ahead)
    visits(site, "/posts/one")
    assert site.locs() == [f"{LOCAL}/"]
    site.pages["/posts/{slug}"] = good
    clock.pass_(30 - ahead)
    visits(site, "/posts/one")
    assert f"{LOCAL}/posts/one" in site.locs()
    site.pages["/posts/{slug}"] = falsely
    clock.pass_(60)
    visits(site, "/posts/one")
    assert site.locs() == [f"{LOCAL}/"]


def test_body_is_read_again_after_the_clock_is_set_back() -> None:
    clock = Clock()
    site = worker("memory://", clock)
    clock.pass_(100 * DAY)
    visits(site, "/posts/one")
    clock.pass_(-100 * DAY)
    site.pages["/posts/{slug}"] = Page(body=b'<!doctype html><meta name="robots" content="noindex"><p>A page')
    visits(site, "/posts/one")
    assert site.locs() == [f"{LOCAL}/"]


def test_observations_of_a_clock_set_back_are_refused_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    site = worker("memory://", clock)
    visits(site, "/", "/posts/one")
    site.pages["/posts/{slug}"] = Page(404)
    clock.pass_(DAY)
    site.request("/posts/one")
    site.request("/posts/two")
    clock.pass_(-DAY)
    site.app.flush()
    assert len(site.locs()) == 2
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"{DAY} seconds ahead" in line
    assert "NTP" in line


def test_worker_with_a_fast_clock_does_not_expire_pages_of_others(url: str) -> None:
    right, wrong = Clock(), Clock()
    wrong.pass_(400 * DAY)
    good, bad = worker(url, right), worker(url, wrong)
    posts = [f"/posts/{number}" for number in range(3)]
    visits(good, "/", *posts)
    visits(bad, posts[0])
    wrong.pass_(HOUR + 1)
    right.pass_(HOUR + 1)
    visits(good, posts[1])
    visits(bad, posts[2])
    assert len(open_for_test(url).pages(SITE)) == 4
    assert len(good.locs()) == 4


def test_deleted_page_is_dropped_although_a_fast_worker_has_seen_it(url: str) -> None:
    right, wrong = Clock(), Clock()
    wrong.pass_(DAY)
    good, bad = worker(url, right), worker(url, wrong)
    visits(bad, "/", "/posts/one")
    good.pages["/posts/{slug}"] = bad.pages["/posts/{slug}"] = Page(404)
    visits(good, "/posts/one")
    assert f"{LOCAL}/posts/one" not in good.locs()


@pytest.mark.slow
@pytest.mark.parametrize("seconds_behind", [HOUR, DAY])
def test_worker_with_a_slow_clock_does_not_block_others(
    seconds_behind: int, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    right, wrong = Clock(), Clock()
    wrong.pass_(-seconds_behind)
    slow = worker(url, wrong)
    others = [worker(url, right) for _ in range(2)]
    visits(slow, "/", "/posts/one", "/posts/two")
    gone, there = Page(404), Page()
    for other in others:
        for page in (gone, there):
            for site in (slow, *others):
                site.pages["/posts/{slug}"] = page
                site.clock.pass_(60)
            visits(other, "/posts/one")
            for site in (slow, *others):
                assert (f"{LOCAL}/posts/one" in site.locs()) is (page is there)
            visits(slow, "/posts/one")
            assert (f"{LOCAL}/posts/one" in other.locs()) is (page is there)
    visits(others[0], "/posts/three")
    assert all(len(site.locs()) == 4 for site in (slow, *others))
    assert caplog.records == []


def test_very_slow_clock_drops_a_page_only_until_its_next_visit(url: str) -> None:
    """Of two clocks that differ, nobody can tell which one is right, so the next visit by the other one counts."""
    right, wrong = Clock(), Clock()
    wrong.pass_(-400 * DAY)
    good, slow = worker(url, right), worker(url, wrong)
    visits(good, "/", "/posts/one", "/posts/two")
    visits(slow, "/posts/one")
    assert good.locs() == [f"{LOCAL}/", f"{LOCAL}/posts/two"]
    right.pass_(60)
    visits(good, "/posts/one")
    assert good.locs() == [f"{LOCAL}/", f"{LOCAL}/posts/one", f"{LOCAL}/posts/two"]
    good.pages["/posts/{slug}"] = Page(404)
    right.pass_(60)
    visits(good, "/posts/one")
    assert good.locs() == [f"{LOCAL}/", f"{LOCAL}/posts/two"]


def test_pages_are_forgotten_all_the_same_after_a_long_silence(url: str) -> None:
    clock = Clock()
    visits(worker(url, clock), "/", "/posts/one", "/posts/two")
    clock.pass_(400 * DAY)
    later = worker(url, clock)
    visits(later, "/posts/two")
    clock.pass_(400 * DAY + HOUR)
    visits(later, "/posts/two")
    assert [page.path for page in open_for_test(url).pages(SITE)] == ["/", "/posts/two"]


@pytest.mark.parametrize("engine", ["postgresql", "redis", "cluster"])
@pytest.mark.parametrize("ahead", [DAY, 400 * DAY, -DAY])
def test_without_a_clock_given_the_servers_time_decides(
    engine: str, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = SHARED[engine](tmp_path)
    good = worker(url, None)
    posts = [f"/posts/{number}" for number in range(3)]
    visits(good, "/", *posts)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + ahead)
    bad = worker(url, None, {"/": Page(), "/posts/{slug}": Page(404)})
    visits(bad, *posts)
    assert len(open_for_test(url).pages(SITE)) == 4
    assert len(good.locs()) == len(bad.locs()) == 4
    (line,) = [record.getMessage() for record in caplog.records]
    match = re.search(r"clock is (\d+) seconds (ahead of|behind) the store's clock", line)
    assert match is not None
    assert abs(int(match[1]) - abs(ahead)) < 9
    assert match[2] == ("ahead of" if ahead > 0 else "behind")


def test_what_a_clock_far_behind_sees_is_listed_without_a_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = SHARED["redis"](tmp_path)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - DAY)
    dated = Page().with_headers(("last-modified", "Mon, 02 Jun 2025 09:13:07 GMT"))
    slow = worker(url, None, {"/": dated, "/posts/{slug}": Page()})
    visits(slow, "/")
    assert slow.locs() == [f"{LOCAL}/"]
    assert slow.app.explain("/").entry.lastmod is None
    monkeypatch.setattr(time, "time", real)
    right = worker(url, None, {"/": dated, "/posts/{slug}": Page()})
    visits(right, "/")
    assert right.app.explain("/").entry.lastmod == "2025-06-02T09:13:07Z"


def test_a_lease_taken_by_a_clock_that_is_ahead_does_not_count(url: str) -> None:
    store = open_for_test(url)
    assert store.lease(SITE, "job", "ahead", 1000 + DAY, HOUR)
    assert store.lease(SITE, "job", "right", 1000, HOUR)
    assert not store.lease(SITE, "job", "late", 1000 + HOUR - MAX_LEASE_SECONDS, HOUR)
    assert not store.lease(SITE, "job", "other", 1000, HOUR)


def test_store_that_does_not_report_its_time_is_queried_again_later(tmp_path: Path) -> None:
    store = open_for_test("redis://127.0.0.1:1/0")
    keeper = StoreClock(store, time.time)
    assert abs(keeper.now(SITE) - time.time()) < MEASUREMENT_SECONDS
    assert keeper.agreed_time(SITE, "me") >= keeper.now(SITE) - 1


@pytest.mark.parametrize("damaged", [b"", b"damaged", b"x" * 48])
def test_damaged_worker_clocks_are_written_again(damaged: bytes) -> None:
    store = open_store("memory://", "store")
    store.save(SITE, {"clock": damaged})
    keeper = StoreClock(store, lambda: 1000.0)
    assert keeper.agreed_time(SITE, "0123456789abcdef") == 1000
    assert StoreClock(store, lambda: 5000.0).agreed_time(SITE, "fedcba9876543210") == 1000


def test_few_worker_clocks_are_remembered_and_no_one_misleads_the_others() -> None:
    store = open_store("memory://", "store")
    for number in range(2 * MAX_WORKERS):
        StoreClock(store, lambda: 1000.0).agreed_time(SITE, f"{number:016}")
    assert len(store.load(SITE, ["clock"])["clock"]) < 30 * MAX_WORKERS
    StoreClock(store, lambda: 1.0).agreed_time(SITE, "behind".ljust(16))
    clock = Clock(1060.0)
    keeper = StoreClock(store, clock)
    assert keeper.agreed_time(SITE, "right".ljust(16)) == 1000
    clock.pass_(HOUR)
    assert keeper.agreed_time(SITE, "right".ljust(16)) == 1000 + HOUR


def test_files_of_a_deployment_are_known_although_their_pages_were_seen_by_a_fast_clock_alone(tmp_path: Path) -> None:
    clock, store = Clock(), open_for_test("memory://")
    copied, ahead = int(clock.now) - 9 * DAY, int(clock.now) + DAY
    for number in range(4):
        (tmp_path / f"{number}.html").write_text("<p>A page.")
        os.utime(tmp_path / f"{number}.html", (copied, copied))
    seen = [Observation(path, path, ahead, 200, "text/html", last_modified=copied) for path in ("/2.html", "/3.html")]
    store.merge(SITE, seen, PageLimits())
    files = Starlette(routes=[Mount("/", StaticFiles(directory=tmp_path, html=True))])
    app = SitemapMiddleware(files, store=store, clock=clock, base_url=LOCAL, verify=False)
    _closing.callback(app.close)
    for number in range(4):
        entry = app.explain(f"/{number}.html").entry
        assert entry is not None
        assert entry.lastmod is None
