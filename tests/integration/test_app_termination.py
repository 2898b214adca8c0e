"""What an app raises when the middleware asks it for a page, and what fails behind a request: no server ends by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import flask
import httpx
import pytest
import trio
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.messages import PROBE_TIMEOUT_SECONDS
from sitemap_middleware.observe.prober import RETRY_SECONDS, ROUND_INTERVAL_SECONDS
from sitemap_middleware.stores.sqlite import MemoryStore

from ..support.documents import locs
from ..support.recording import environ
from ..support.sample_sites import Clock
from ..support.stores import StoreWithClock

BASE = "http://localhost"


class Odd(BaseException):
    """An error that is not an `Exception`, such as those of greenlets and timeouts."""


RAISED = pytest.mark.parametrize(
    "raised", [RuntimeError, SystemExit, GeneratorExit, asyncio.CancelledError, Odd], ids=lambda kind: kind.__name__
)
LOOPS = pytest.mark.parametrize("run", [pytest.param(asyncio.run, id="asyncio"), pytest.param(trio.run, id="trio")])


def status_and_body(app: Any, *, multithread: bool = False) -> tuple[str, bytes]:
    started: list[Any] = []
    request = environ(path="/sitemap.xml") | {"HTTP_HOST": "localhost", "wsgi.multithread": multithread}
    body = b"".join(app(request, lambda *arguments: started.extend(arguments)))
    return started[0], body


def raising_wsgi(error: type[BaseException], *, path: str = "/b", **options: Any) -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/a", "a", lambda: "A page")

    def fail() -> str:
        raise error

    app.add_url_rule(path, "fail", fail)
    return SitemapMiddleware(app, store="memory://", base_url=BASE, verify=True, **options)


@RAISED
@pytest.mark.parametrize("multithread", [False, True])
def test_a_wsgi_page_that_raises_is_not_listed(raised: type[BaseException], *, multithread: bool) -> None:
    status, body = status_and_body(raising_wsgi(raised), multithread=multithread)
    assert status == "200 OK"
    assert locs(body) == [f"{BASE}/a"]


def test_single_threaded_server_stops_while_a_page_is_probed() -> None:
    with pytest.raises(KeyboardInterrupt):
        status_and_body(raising_wsgi(KeyboardInterrupt))


@LOOPS
@RAISED
@pytest.mark.parametrize(("path", "status"), [("/b", 200), ("/robots.txt", 503)])
def test_an_asgi_page_that_raises_ends_nothing(
    path: str, status: int, raised: type[BaseException], run: Callable[[Any], Any]
) -> None:
    async def fail(_: Any) -> Any:
        raise raised

    async def page(_: Any) -> Any:
        return HTMLResponse("A page")

    routes = [Route("/a", page), Route(path, fail)]
    app = SitemapMiddleware(Starlette(routes=routes), store="memory://", base_url=BASE, verify=True)

    async def served() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
            return await client.get("/sitemap.xml")

    answer = run(served()) if run is asyncio.run else run(served)
    assert answer.status_code == status
    if status == 200:
        assert locs(answer.content) == [f"{BASE}/a"]


# A view that hangs, on a server with one thread


def hanging(clock: Clock, store: Any, requested_paths: list[str], how: Callable[[], Any]) -> Any:
    """A worker of a server with one thread, which shares a store with those before it."""
    app = flask.Flask("site", static_folder=None)

    def page() -> Any:
        requested_paths.append(flask.request.path)
        return how() if flask.request.path == "/b" else "A page"

    for name in "abc":
        app.add_url_rule(f"/{name}", name, page)
    return SitemapMiddleware(app, store=store, base_url=BASE, clock=clock, robots=False, verify=True)


def killed() -> Any:
    raise KeyboardInterrupt  # nothing of the worker runs after that


def test_page_that_killed_its_worker_is_probed_again_after_an_hour() -> None:
    clock, requested_paths = Clock(), list[str]()
    store = StoreWithClock(clock)
    with pytest.raises(KeyboardInterrupt):
        status_and_body(hanging(clock, store, requested_paths, killed))
    assert requested_paths == ["/a", "/b"]
    clock.pass_(ROUND_INTERVAL_SECONDS)
    assert locs(status_and_body(hanging(clock, store, requested_paths, killed))[1]) == [f"{BASE}/a", f"{BASE}/c"]
    assert requested_paths.count("/b") == 1, "by the worker that took its place"
    clock.pass_(RETRY_SECONDS)
    listed = locs(status_and_body(hanging(clock, store, requested_paths, lambda: "A page"))[1])
    assert listed == [f"{BASE}/a", f"{BASE}/b", f"{BASE}/c"]
    assert requested_paths.count("/b") == 2


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        pytest.param(PROBE_TIMEOUT_SECONDS, RuntimeError, id="after its time"),
        pytest.param(1, SystemExit, id="as a worker of gunicorn is told to end"),
    ],
)
def test_truncated_page_is_not_probed_by_other_workers(seconds: float, error: type[BaseException]) -> None:
    clock, store, requested_paths = Clock(), MemoryStore(), []

    def slow() -> Any:
        clock.pass_(seconds)
        raise error

    status_and_body(hanging(clock, store, requested_paths, slow))
    clock.pass_(ROUND_INTERVAL_SECONDS)
    status_and_body(hanging(clock, store, requested_paths, slow))
    assert requested_paths.count("/b") == 1
