"""The buffer of responses is bounded, and ends with its middleware."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import flask
import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.messages import CapturedResponse
from sitemap_middleware.models import Site
from sitemap_middleware.observe.buffer import MAX_PENDING_BODY_BYTES, ResponseBuffer

from ...support.waiting import until
from ...support.wire import RequestSpec, wsgi

SITE = Site("https", "example.com")


class Merged(list[CapturedResponse]):
    """Collects merged batches; fails while `failing` is set."""

    failing = False

    def __call__(self, batch: list[CapturedResponse]) -> None:
        if self.failing:
            raise RuntimeError("the store is down")
        self.extend(batch)

    @property
    def paths(self) -> list[str]:
        return sorted(response.path for response in self)


def new_buffer(merged: Merged, *, capacity: int = 10, interval: float = 3600) -> ResponseBuffer:
    buffer = ResponseBuffer(merged, time.time)
    buffer.capacity, buffer.interval = capacity, interval
    return buffer


def flush_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sitemap"}


def test_bodies_are_bounded_in_bytes() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    half = bytes(MAX_PENDING_BODY_BYTES // 2)
    for number, body in enumerate((half, half[1:], b"xx", b"x", b"x", b"")):
        buffer.record(CapturedResponse(SITE, f"/{number}", at=1000, status=200, body=body))
    assert buffer.dropped == 2
    buffer.flush()
    assert merged.paths == ["/0", "/1", "/3", "/5"]
    buffer.record(CapturedResponse(SITE, "/", at=1000, status=200, body=half + half))
    assert (buffer.pending, buffer.dropped) == (1, 2), "a flush has made room"
    merged.failing = True
    with pytest.raises(RuntimeError):
        buffer.flush()
    buffer.record(CapturedResponse(SITE, "/", at=1001, status=200, body=half + half))
    buffer.record(CapturedResponse(SITE, "/other", at=1001, status=200, body=b"x"))
    assert (buffer.pending, buffer.dropped) == (1, 3), "what could not be saved counts, and what replaces it"


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
