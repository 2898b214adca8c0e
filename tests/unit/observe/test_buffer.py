"""The buffer of responses: bounded, started lazily, aware of forks, flushed before the process ends."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import flask
import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.captured_response import CapturedResponse
from sitemap_middleware.models import Site
from sitemap_middleware.observe.buffer import MAX_PENDING_BODY_BYTES, ResponseBuffer

from ...support.waiting import until
from ...support.wire import RequestSpec, wsgi

ROOT = Path(__file__).parents[3]
SITE = Site("https", "example.com")


def captured(path: str = "/", at: float = 1000, status: int = 200) -> CapturedResponse:
    return CapturedResponse(SITE, path, at=at, status=status)


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
    return ResponseBuffer(merged, time.time, capacity=capacity, interval=interval)


def flush_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sitemap"}


def test_pending_responses_are_bounded() -> None:
    merged = Merged()
    buffer = new_buffer(merged, capacity=10)
    for number in range(1000):
        buffer.record(captured(f"/{number}"))
    buffer.record(captured("/0", at=2000))
    assert (buffer.seen, buffer.dropped) == (11, 990)
    buffer.flush()
    assert len(merged) == 10
    assert max(response.at for response in merged) == 2000
    buffer.close()


# What waits for the next flush


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


def test_close_waits_no_longer_than_its_timeout() -> None:
    begun, released = threading.Event(), threading.Event()

    def hanging(_: Any) -> None:
        begun.set()
        released.wait(60)

    before = flush_threads()
    buffer = ResponseBuffer(hanging, time.time, interval=0.001)
    buffer.record(captured())
    assert begun.wait(30)
    (thread,) = flush_threads() - before
    buffer.close(timeout=0.01)
    assert thread.is_alive()
    released.set()
    thread.join(30)
    assert not thread.is_alive()


# The thread


def test_thread_flushes_and_survives_a_failing_merge(caplog: pytest.LogCaptureFixture) -> None:
    merged = Merged()
    merged.failing = True
    buffer = new_buffer(merged, interval=0.01)
    buffer.record(captured())
    until(lambda: bool(caplog.records))
    merged.failing = False
    until(lambda: bool(merged))
    assert "observations of the last seconds could not be" in caplog.text
    buffer.close()


def test_close_flushes_and_ends_the_thread_until_the_next_response() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.close()
    before = flush_threads()
    buffer.record(captured("/a"))
    (thread,) = flush_threads() - before
    buffer.close()
    assert merged.paths == ["/a"]
    assert not thread.is_alive()
    buffer.record(captured("/b"))
    buffer.close()
    assert merged.paths == ["/a", "/b"]


def test_forked_child_has_its_own_thread_and_responses(tmp_path: Path) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.record(captured("/parent"))
    child = os.fork()
    if child == 0:  # what fails here is seen by the parent as an exit status
        buffer.record(captured("/child"))
        alive = len(flush_threads()) == 1
        buffer.close()
        os._exit(0 if alive and merged.paths == ["/child"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    buffer.flush()
    assert merged.paths == ["/parent"]
    buffer.close()


def test_middleware_that_nothing_refers_to_is_collected() -> None:
    app = flask.Flask("site")
    app.add_url_rule("/", "home", lambda: "home")
    wrapped = SitemapMiddleware(app, store="memory://", verify=False)
    before = flush_threads()
    assert wsgi(wrapped, RequestSpec("/")).status == 200
    assert len(flush_threads() - before) == 1
    service = weakref.ref(wrapped.service)
    del wrapped

    def is_collected() -> bool:
        gc.collect()
        return service() is None

    until(is_collected)


DROPPED = """
import asyncio, sys
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware

async def ask(app, path):
    scope = {{
        "type": "http", "method": "GET", "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(b"host", b"localhost"), (b"accept", b"text/html")], "http_version": "1.1",
    }}
    async def receive(): return {{"type": "http.request", "body": b"", "more_body": False}}
    async def send(_): pass
    await app(scope, receive, send)

def wrapped_app():
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse("<p>hi"))])
    app = SitemapMiddleware(app, base_url="http://localhost", verify=False, store={store!r})
    asyncio.run(ask(app, "/"))
    asyncio.run(ask(app, "/sitemap.xml"))
    return app

site = wrapped_app()
if {dropped}:
    del site
"""


@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("store", ["sqlite:///{}/pages.sqlite3"])
def test_middleware_that_is_never_closed_leaves_nothing_open_at_exit(
    dropped: bool, store: str | None, tmp_path: Path
) -> None:
    code = DROPPED.format(store=store and store.format(tmp_path), dropped=dropped)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-W", "ignore::PendingDeprecationWarning", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert "Exception ignored" not in done.stderr
