"""`refresh`: what the app has just changed is in the next sitemap of every worker that shares the store."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask
import pytest

from sitemap_middleware import OptionError, SitemapMiddleware, Store, sitemap
from sitemap_middleware.models import StoreKey
from sitemap_middleware.stores.sqlite import MemoryStore

from ..support.documents import entries
from ..support.sample_sites import Clock
from ..support.stores import FrailStore
from ..support.waiting import until
from ..support.wire import Headers, RequestSpec, wsgi
from .test_contract import ENGINES

BASE = "https://example.com"


class Shop:
    """What all workers serve: items by `values`, a page that may close, and how often each was requested or read."""

    def __init__(self) -> None:
        self.items = ["rye"]
        self.modified = "2024-05-01"
        self.closed = False
        self.robots_txt = ""
        self.reads = 0
        self.requests: list[str] = []

    def read(self) -> list[str]:
        self.reads += 1
        return list(self.items)

    def worker(self, store: Store | str, **options: Any) -> Worker:
        app = flask.Flask("shop", static_folder=None)

        @app.before_request
        def count() -> None:
            self.requests.append(flask.request.path)

        @app.get("/")
        @sitemap(lastmod=lambda: self.modified)
        def home() -> str:
            return "<h1>Home</h1>"

        @app.get("/offers")
        def offers() -> tuple[str, int]:
            return ("Closed", 404) if self.closed else ("<h1>Offers</h1>", 200)

        @app.get("/items/<slug>")
        @sitemap(values=self.read)
        def item(slug: str) -> tuple[str, int]:
            return ("<h1>Item</h1>", 200) if slug in self.items else ("Gone", 404)

        @app.get("/topics/<topic>")
        @sitemap(values=["bread"])
        def topic(topic: str) -> str:
            return topic

        @app.get("/robots.txt")
        def robots() -> tuple[str, int, Headers]:
            return self.robots_txt, 200, [("Content-Type", "text/plain")]

        return Worker(SitemapMiddleware(app, **{"base_url": BASE, "store": store, **options}))


class Worker:
    def __init__(self, app: SitemapMiddleware) -> None:
        self.app = app

    def request(self, path: str, **more: Any) -> Any:
        return wsgi(self.app, RequestSpec(path, host="example.com", scheme="https", **more))

    def listed_later(self) -> dict[str, dict[str, str]]:
        """What it lists when its memory does not count as fresh any more."""
        self.app.service.options.clock.now += 1  # type: ignore[attr-defined] # the clock of a test
        return self.listed()

    def listed(self) -> dict[str, dict[str, str]]:
        answer = self.request("/sitemap.xml")
        assert answer.status == 200, answer.text
        return {loc.removeprefix(BASE): fields for loc, fields in entries(answer.body).items()}


SITE = StoreKey("site")
ALL = ["/", "/items/rye", "/offers", "/topics/bread"]


@pytest.fixture(params=ENGINES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the store of a worker: the same database for all, or the very same object if it is this process's memory."""
    if request.param in ("memory", "postgresql", "mariadb"):  # the latter make a new database each time
        store = ENGINES[request.param](tmp_path)
        return lambda: store
    return lambda: ENGINES[request.param](tmp_path)


def test_every_worker_shows_what_was_just_changed(stores: Callable[[], Store]) -> None:
    shop, clock = Shop(), Clock()
    first, second = (shop.worker(stores(), clock=clock) for _ in range(2))
    assert sorted(first.listed()) == sorted(second.listed()) == ALL
    shop.items.append("sourdough")
    shop.closed, shop.modified = True, "2024-05-02"
    shop.robots_txt = "User-agent: *\nDisallow: /topics"
    assert sorted(first.listed()) == sorted(second.listed()) == ALL  # as of `max_age`
    first.app.refresh()
    clock.now += 1  # for so long, another worker may serve a sitemap from its memory
    for worker in (second, first):
        assert sorted(listed := worker.listed()) == ["/", "/items/rye", "/items/sourdough"]
        assert listed["/"] == {"lastmod": "2024-05-02"}


def test_a_path_stands_for_its_page_and_the_values_of_its_route(stores: Callable[[], Store]) -> None:
    shop, clock = Shop(), Clock()
    first, second = (shop.worker(stores(), clock=clock) for _ in range(2))
    assert sorted(first.listed()) == sorted(second.listed()) == ALL
    shop.requests.clear()
    shop.closed = True
    second.app.refresh("/offers")
    clock.now += 1
    assert sorted(first.listed()) == sorted(second.listed()) == ["/", "/items/rye", "/topics/bread"]
    assert shop.requests == ["/offers"]
    shop.items[:] = ["sourdough"]
    second.app.refresh("/items/sourdough")
    clock.now += 1
    assert sorted(second.listed()) == sorted(first.listed()) == ["/", "/items/sourdough", "/topics/bread"]
    assert shop.requests == ["/offers", "/items/sourdough"]


def test_refresh_of_one_app_is_not_that_of_another(stores: Callable[[], Store]) -> None:
    shop, clock = Shop(), Clock()
    first = shop.worker(stores(), clock=clock)
    other = shop.worker(stores(), clock=clock, base_url="https://other.example")
    assert sorted(first.listed()) == ALL
    shop.items.append("sourdough")
    other.app.refresh()
    other.app.refresh("/items/sourdough")
    clock.now += 1
    assert sorted(first.listed()) == ALL


@pytest.mark.parametrize("record", [b"", b"damaged", b"\0", b"[]", b"7", b"{", b'{"pages": {"/offers": "x"}}'])
def test_damaged_marks_count_as_none(record: bytes) -> None:
    store, shop = MemoryStore(), Shop()
    worker = shop.worker(store, clock=Clock())
    worker.listed()
    store.save(StoreKey("sites"), {"refresh/https://example.com/some": record})
    shop.requests.clear()
    assert sorted(worker.listed_later()) == ALL
    assert shop.requests == []
    worker.app.refresh("/offers")
    worker.listed_later()
    assert shop.requests == ["/offers"]


# One worker


def memory(**options: Any) -> tuple[Shop, Worker]:
    shop = Shop()
    return shop, shop.worker("memory://", clock=Clock(), **options)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_host_requests_the_page_that_was_named(workers: int) -> None:
    hosts, clock, store = ["a.example", "b.example"], Clock(), MemoryStore()
    shops = [Shop() for _ in range(workers)]
    apps = [shop.worker(store, clock=clock, base_url=None, allowed_hosts=hosts).app for shop in shops]

    def listed(host: str) -> list[str]:
        clock.now += 1
        answer = wsgi(apps[clock.now % workers > 0.5], RequestSpec("/sitemap.xml", host=host))
        return sorted(loc.partition(host)[2] for loc in entries(answer.body))

    for host in hosts * 2:
        assert listed(host) == ALL
    for shop in shops:
        shop.closed = True
    apps[0].refresh("/offers")
    for host in hosts * 2:
        assert "/offers" not in listed(host), host
    for shop in shops:
        shop.requests.clear()
    for host in hosts * 2:
        listed(host)
    assert "/offers" not in [path for shop in shops for path in shop.requests], "once for each host"


@pytest.mark.parametrize("path", ["/nowhere", "/logout", "/private/a", "/items/", "//", "/ü", "/a?b", "/%00"], ids=repr)
def test_a_path_that_may_not_be_requested_is_forgotten(path: str) -> None:
    shop, worker = memory(exclude="/private/*")
    worker.listed()
    shop.requests.clear()
    worker.app.refresh(path)
    assert sorted(worker.listed()) == ALL
    assert shop.requests == []


def test_nothing_is_requested_without_verify() -> None:
    shop, worker = memory(verify=False)
    assert sorted(worker.listed()) == ALL
    shop.closed = True
    shop.items.append("sourdough")
    shop.requests.clear()
    worker.app.refresh("/offers")
    worker.app.refresh("/items/sourdough")
    worker.app.refresh()
    assert sorted(worker.listed()) == sorted([*ALL, "/items/sourdough"])
    assert shop.requests == ["/robots.txt"]


@pytest.mark.parametrize("path", ["about", "", "https://example.com/about", 7], ids=repr)
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    _, worker = memory()
    with pytest.raises(OptionError, match=r"give the path of a page, such as refresh\(\"/about\"\), or nothing"):
        worker.app.refresh(path)


def test_a_refresh_during_an_outage_is_made_up_for(caplog: pytest.LogCaptureFixture) -> None:
    shop, store = Shop(), FrailStore()
    worker = shop.worker(store, clock=Clock())
    assert sorted(worker.listed()) == ALL
    shop.items.append("sourdough")
    store.down = True
    worker.app.refresh()
    assert sorted(worker.listed()) == ALL
    store.down = False
    assert "/items/sourdough" in worker.listed()
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert "store unavailable" in caplog.text


def test_on_a_server_with_one_thread_pages_wait_for_an_anonymous_request() -> None:
    shop, worker = memory()
    worker.listed()
    shop.requests.clear()
    worker.app.refresh("/offers")
    one_thread = {"wsgi.multithread": False, "HTTP_COOKIE": "session=1"}

    def app(environ: Any, start_response: Any) -> Any:
        return worker.app({**environ, **one_thread}, start_response)

    wsgi(app, RequestSpec("/sitemap.xml", host="example.com", scheme="https"))
    assert shop.requests == []
    worker.listed_later()
    assert shop.requests == ["/offers"]


def test_it_does_not_wait_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sitemap_middleware.observe.refresh_marks.WAIT_SECONDS", 0.05)
    shop, store = Shop(), FrailStore()
    worker = shop.worker(store)
    worker.listed()
    store.hangs = "any"
    shop.items.append("sourdough")
    began = time.monotonic()
    worker.app.refresh()

    async def within_a_loop() -> None:
        worker.app.refresh()

    asyncio.run(within_a_loop())
    assert time.monotonic() - began < 5
    store.answers.set()
    until(lambda: "/items/sourdough" in worker.listed())


def test_what_an_outage_kept_pending_is_marked_before_the_store_is_closed() -> None:
    shop, store = Shop(), FrailStore()
    first, second = (shop.worker(store, clock=Clock()) for _ in range(2))
    assert sorted(first.listed()) == sorted(second.listed()) == ALL
    shop.items.append("sourdough")
    store.down = True
    first.app.refresh()
    store.down = False
    first.app.close()
    assert "/items/sourdough" in second.listed_later()
