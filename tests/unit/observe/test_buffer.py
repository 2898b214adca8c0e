"""The buffer of responses is bounded, and ends with its middleware."""

from __future__ import annotations

import gc
import threading
import weakref

import flask
import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.observe import buffer

from ...support.sample_sites import Page, SampleSite
from ...support.stores import FrailStore, all_pages
from ...support.waiting import until
from ...support.wire import RequestSpec, wsgi


def test_bodies_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "MAX_PENDING_BODY_BYTES", 1000)
    monkeypatch.setattr(buffer, "FLUSH_INTERVAL_SECONDS", 3600)
    store = FrailStore()
    sample = SampleSite("wsgi", {"/{name}": Page()}, learn="/{name}", store=store)

    def waiting(path: str, size: int) -> tuple[int, int]:
        sample.pages["/{name}"] = Page(body=b"x" * size)
        sample.request(path)
        sample.clock.pass_(86_400)  # so that the next body is read, too
        stats = sample.app.stats()
        return stats["pending"], stats["dropped"]

    sizes = (500, 499, 2, 1, 1, 0)
    assert [waiting(f"/{number}", size) for number, size in enumerate(sizes)] == [
        *((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 2))
    ]
    sample.app.flush()
    assert [page.path for page in all_pages(store, "loopback:http/")] == ["/0", "/1", "/3", "/5"]
    assert waiting("/a", 1000) == (1, 2), "a flush has made room"
    store.down = True
    sample.app.flush()
    assert waiting("/a", 1000) == (1, 2), "what replaces another counts once"
    assert waiting("/b", 1) == (1, 3), "what could not be saved counts"


def flush_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sitemap"}


def test_middleware_that_nothing_refers_to_is_collected() -> None:
    app = flask.Flask("site")
    app.add_url_rule("/", "home", lambda: "home")
    wrapped = SitemapMiddleware(app, store="memory://", verify=False)
    before = flush_threads()
    assert wsgi(wrapped, RequestSpec("/")).status == 200
    assert len(flush_threads() - before) == 1
    service = weakref.ref(wrapped.service)
    del wrapped
    until(lambda: (gc.collect(), service() is None)[1])
