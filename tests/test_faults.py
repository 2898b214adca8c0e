"""What befalls a store that is elsewhere: the app's pages never notice, the last good sitemap stays up, nothing is lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.guard import LONGEST

from .support import postgres
from .support.proxy import Proxy
from .support.redis_servers import shared
from .support.twins import Clock, Page, Twin
from .support.wire import DRIVERS, Ask

PAGES = {"/": Page(), "/a": Page(), "/gone": Page(404), "/login": Page(302)}


def in_postgres() -> tuple[Path, Callable[[int], str]]:
    server = postgres.server()
    schema = server.fresh().partition("schema=")[2]
    return (
        server.folder / ".s.PGSQL.5432",
        lambda port: f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={schema}",
    )


def in_redis() -> tuple[Path, Callable[[int], str]]:
    server = shared()
    return server.folder / "socket", lambda port: f"redis://127.0.0.1:{port}/0?prefix=faults-{port}"


@pytest.fixture(params=[in_postgres, in_redis], ids=["postgresql", "redis"])
def proxied(request: pytest.FixtureRequest) -> Iterator[tuple[Proxy, str]]:
    target, url = request.param()
    proxy = Proxy(target)
    yield proxy, url(proxy.port)
    proxy.close()


class Running(Clock):
    """A clock that runs, and can be put on."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def __call__(self) -> float:
        return super().__call__() + time.monotonic() - self._began


def _as_bare(site: Twin) -> bool:
    """Whether the app's pages are what they are without us."""
    return all(site.ask(path) == DRIVERS[site.protocol](site.bare, Ask(path)) for path in PAGES)


@pytest.mark.parametrize("befalls", [Proxy.cut, Proxy.hang], ids=["is cut off", "hangs"])
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_a_store_that_is_lost_costs_no_page_and_nothing_that_was_seen(
    protocol: str,
    befalls: Callable[[Proxy], None],
    proxied: tuple[Proxy, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy, url = proxied
    site = Twin(protocol, PAGES, store=open_store(url, "store"), clock=Running())
    assert len(site.locs()) == 4
    before = site.ask("/sitemap.xml").body
    befalls(proxy)
    site.clock.pass_(1)
    assert _as_bare(site)
    site.app.flush()  # as the recorder's thread does: it is who waits for a store that hangs
    assert site.ask("/sitemap.xml").body == before
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "fails, since 2025-06-15T15:0" in caplog.text
    assert "postgres@" not in caplog.text
    proxy.mend()
    site.clock.pass_(LONGEST)
    site.app.flush()
    assert sorted(site.locs()) == ["http://testserver/", "http://testserver/a"]
    assert [record.getMessage().partition(",")[0] for record in caplog.records][1:] == [
        "the sitemap's store works again"
    ]
    site.app.close()


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_a_store_that_cannot_be_had_as_the_app_starts_is_waited_for(protocol: str, proxied: tuple[Proxy, str]) -> None:
    proxy, url = proxied
    proxy.cut()
    site = Twin(protocol, PAGES, store=open_store(url, "store"))
    assert _as_bare(site)
    refused = site.ask("/sitemap.xml")
    assert (refused.status, refused.header("retry-after")) == (503, "60")
    proxy.mend()
    site.clock.pass_(1)
    assert sorted(site.locs()) == ["http://testserver/", "http://testserver/a"]
    site.app.close()


def test_two_machines_that_share_a_store_serve_the_same_once_both_reach_it(proxied: tuple[Proxy, str]) -> None:
    proxy, url = proxied
    far = Twin("asgi", PAGES, store=open_store(url, "store"))
    path = proxy.target
    with_near = Proxy(path)
    near = Twin("wsgi", PAGES, store=open_store(url.replace(f":{proxy.port}/", f":{with_near.port}/"), "store"))
    far.visit("/", "/a")
    assert near.ask("/sitemap.xml").body == far.ask("/sitemap.xml").body
    proxy.cut()
    near.clock.pass_(1)
    near.visit("/gone")
    far.clock.pass_(1)
    far.visit("/login")
    assert len(near.locs()) == 3
    assert len(far.locs()) == 4, "it knows of neither"
    proxy.mend()
    for site in (far, near):
        site.clock.pass_(1)
        site.app.flush()
    answers = [site.ask("/sitemap.xml") for site in (near, far)]
    assert answers[0].body == answers[1].body
    assert answers[0].header("etag") == answers[1].header("etag")
    assert sorted(near.locs()) == ["http://testserver/", "http://testserver/a"]
    for site in (near, far):
        site.app.close()
    with_near.close()
