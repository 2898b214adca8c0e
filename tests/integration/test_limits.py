"""Bounds, and the corners that other tests do not come to: what is full, what fails, what was there before."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.listing.site_signals_cache import MAX_CACHED_SITES
from sitemap_middleware.models import StoreKey
from sitemap_middleware.routing import site_resolver
from sitemap_middleware.stores.sqlite import MemoryStore, SQLiteStore

from ..support.collection_sizes import collection_sizes
from ..support.sample_sites import Page, SampleSite
from ..support.wire import BOTH, RequestSpec, asgi, wsgi

# Sites, robots, routes


@BOTH
def test_sites_in_memory_are_limited(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()}, allowed_hosts=".example.com")
    for number in range(MAX_CACHED_SITES + 5):
        assert sample.locs(host=f"s{number}.example.com") == [f"http://s{number}.example.com/"]
    assert sample.app.stats()["listed"] == MAX_CACHED_SITES


@BOTH
def test_made_up_hosts_are_evicted_and_get_the_sites_sitemap(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()}, base_url="https://example.com/")
    for number in range(200):
        assert sample.request("/", host=f"s{number}.example").status == 200
        sample.request("/", host=f"{number}..no.host")  # some frameworks answer it, some refuse
    assert sample.locs(host="s0.example") == ["https://example.com/"]
    assert max(collection_sizes(sample.app.service.site_resolver).values()) <= 100
    assert sample.app.explain("/").listed, "of the site that was asked for under other names alone"


@BOTH
def test_a_robots_txt_that_fails_is_the_apps_to_answer(protocol: str) -> None:
    page = Page(200, [("content-type", "text/plain")], b"User-agent: *\n")
    sample = SampleSite(protocol, {"/": Page(), "/robots.txt": page})
    page.headers = [("content-type", "text/plain"), ("content-length", "many")]
    page.status = "broken"  # type: ignore[assignment] # no framework takes this
    with pytest.raises((TypeError, ValueError, AssertionError)):
        sample.request("/robots.txt")


# Explaining


@BOTH
def test_paths_that_no_loc_can_name_are_explained(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/a/../b": Page()})
    assert sample.locs() == ["http://testserver/"]
    for path, reason in (
        ("/a\x00", "no loc can be written"),
        ("/a/../b", "no loc"),
        ("https://example.com/about", "it is not below http://testserver: give a path from the first slash on"),
        ("/" + "x" * 3000, "2,048 characters"),
    ):
        explanation = sample.app.explain(path)
        assert not explanation.listed
        assert reason in str(explanation)
        assert "loc:" not in str(explanation)


# Made-up requests


MANY = 500


def rows(store: Any) -> int:
    """All rows of a store's tables."""
    connection = store._connection()
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return sum(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables)


INVENTED: dict[str, Any] = {
    "hosts": lambda n: {"host": f"s{n}.evil.example"},
    "hosts that are none": lambda n: {"host": f"s{n}..example"},
    "hosts below a wildcard": lambda n: {"host": f"s{n}.example.net"},
    "ports": lambda n: {"host": f"example.com:{n + 1}"},
    "ports of a development machine": lambda n: {"host": f"localhost:{n + 1}"},
    "capitals of the host": lambda n: {
        "host": "".join(c.upper() if n >> i & 1 else c for i, c in enumerate("example.com"))
    },
    "root paths": lambda n: {"root": f"/tenant{n}"},
    "root paths for strange hosts": lambda n: {"root": f"/tenant{n}", "host": f"s{n}.evil.example"},
    "methods": lambda n: {"method": f"METHOD{n}"},
    "paths": lambda n: {"path": f"/p/{n}"},
    "paths of no route": lambda n: {"path": f"/no/{n}"},
    "queries": lambda n: {"query": f"q={n}"},
    "user agents": lambda n: {"headers": [("user-agent", f"agent {n}")]},
    "names of headers": lambda n: {"headers": [(f"x-thing-{n}", "1")]},
    "languages": lambda n: {"headers": [("accept", f"text/html;level={n}")]},
}


@pytest.mark.slow
@pytest.mark.parametrize("base_url", ["https://example.com", None], ids=["SQLite", "memory"])
@pytest.mark.parametrize("invented", INVENTED)
def test_made_up_urls_fill_neither_memory_nor_store(
    invented: str, base_url: str | None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, module in [*sys.modules.items()]:
        for limit in [*vars(module)] if name.startswith("sitemap_middleware.") else ():
            if re.fullmatch("MAX_(SITES|HOSTS|[A-Z]+_PAGES|REMEMBERED_PATHS)", limit):
                monkeypatch.setattr(module, limit, 100)
    store = SQLiteStore(tmp_path / "pages.sqlite3") if base_url else MemoryStore()
    sample = SampleSite(
        "wsgi",
        {"/": Page(), "/p/{x}": Page(404)},
        base_url=base_url,
        allowed_hosts=["*.example.net", *(["example.com"] if base_url else [])],
        store=store,
        verify=False,
        learn="/p/{x}",
    )

    def send_request(number: int) -> None:
        changes = {"path": "/", "host": "example.com"} | INVENTED[invented](number)
        for path in (changes.pop("path"), "/sitemap.xml", "/robots.txt")[: 3 if number % 10 == 0 else 1]:
            with suppress(Exception):
                wsgi(sample.app, RequestSpec(path, **changes), validate=False)
        sample.clock.pass_(1)
        if number % 100 == 0:
            sample.app.flush()

    sample.app.service.tracker.buffer.interval = 3600  # merged only by this test
    for number in range(MANY):
        send_request(number)
    sample.app.flush()
    before = collection_sizes(sample.app.service)
    grown = {place: size for place, size in before.items() if size > MANY // 2}
    assert grown == {}, "more than any of these may hold"
    assert rows(store) <= 10 * 110


def test_made_up_tenants_below_a_mount_create_no_sites(tmp_path: Any) -> None:
    store = SQLiteStore(tmp_path / "pages.sqlite3")

    async def page(request: Any) -> HTMLResponse:
        return HTMLResponse("A page.")

    inner = Starlette(routes=[Route("/", page), Route("/about", page)])
    site = SitemapMiddleware(inner, store=store, base_url="https://example.com", verify=False)
    app = Starlette(routes=[Mount("/fixed", app=site), Mount("/{tenant}", app=site)])
    for number in range(300):
        asgi(app, RequestSpec(f"/tenant{number}/about"))
        assert asgi(app, RequestSpec(f"/tenant{number}/sitemap.xml")).status == 404
    site.flush()
    assert rows(store) < 20
    assert asgi(app, RequestSpec("/fixed/about")).status == 200
    assert b"https://example.com/fixed/about" in asgi(app, RequestSpec("/fixed/sitemap.xml")).body


def test_a_long_root_path_has_no_sitemap() -> None:
    site = SitemapMiddleware(
        Starlette(routes=[Route("/", lambda _: None)]), store="memory://", base_url="https://example.com", verify=False
    )
    assert asgi(site, RequestSpec("/sitemap.xml", root="/r1")).status == 200
    answer = asgi(site, RequestSpec("/sitemap.xml", root="/" + "x" * 300))
    assert answer.status == 404
    assert "root path" in answer.text


def test_the_longest_idle_host_makes_room_for_another_at_once_but_one_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_resolver, "MAX_SITES", 20)
    store = MemoryStore()
    sample = SampleSite(
        "wsgi", {"/": Page(), "/gone": Page(404)}, allowed_hosts=[".example.com"], store=store, verify=False
    )

    def status_after_visit(host: str) -> int:
        sample.request("/", host=host)
        sample.app.flush()
        sample.clock.pass_(1)
        return sample.request("/sitemap.xml", host=host).status

    for number in range(50):
        sample.request("/gone", host=f"none{number}.example.com")
    statuses = [status_after_visit(f"s{number}.example.com") for number in range(30)]
    assert statuses == [200] * 21 + [404] * 9
    refused = sample.request("/sitemap.xml", host="s25.example.com").text
    assert "too many hosts" in refused
    assert store.version(StoreKey("http://s25.example.com")) == store.version(StoreKey("http://none1.example.com")) == 0
    assert len([message for message in caplog.messages if "too many sites" in message]) == 1
    assert sample.request("/sitemap.xml", host="s1.example.com").status == 200
    assert sample.request("/sitemap.xml", host="s0.example.com").status == 404, "it was idle for longest"
    sample.clock.pass_(site_resolver.REPLACE_SECONDS)
    assert status_after_visit("new.example.com") == 200
