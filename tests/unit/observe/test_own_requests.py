"""How the middleware requests pages by itself: as the live request, with deadlines, and where servers and tests allow it."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import flask
import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware.httpsredirect import HTTPSRedirectMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from werkzeug.middleware.proxy_fix import ProxyFix

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters import (
    asgi_client,
    wsgi_client,
)
from sitemap_middleware.adapters import wsgi as wsgi_adapter
from sitemap_middleware.documents import robots
from sitemap_middleware.http.messages import SYNC_SERVER_WAIT_SECONDS, TEST_CLIENT_WAIT_SECONDS
from sitemap_middleware.http.proxies import SCHEME_HEADERS
from sitemap_middleware.observe import own_requests, prober

from ...support.documents import locs
from ...support.sample_sites import Clock
from ...support.waiting import join_threads
from ...support.wire import BOTH, DRIVERS, RequestSpec, asgi_async

BASE = "https://example.com"


def site(protocol: str, view: Any, *paths: str, wrap: Any = None, **options: Any) -> Any:
    """An app whose pages all answer by one view, which is given the path, headers and scheme that it sees."""
    if protocol == "wsgi":
        app = flask.Flask("site", static_folder=None)
        for number, path in enumerate(paths):
            app.add_url_rule(
                path,
                f"page{number}",
                lambda: view(flask.request.path, dict(flask.request.headers.to_wsgi_list()), flask.request.scheme),
            )
        inner: Any = wrap(app.wsgi_app) if wrap else app
        return SitemapMiddleware(inner, **{"routes": app, "store": "memory://", "robots": False, **options})

    def page(request: Request) -> Response:
        headers = {name.title(): value for name, value in request.headers.items()}
        result = view(request.url.path, headers, request.url.scheme)
        if isinstance(result, flask.Response):
            return Response(result.data, result.status_code, dict(result.headers))
        return HTMLResponse(result)

    asgi_app = Starlette(routes=[Route(path, page) for path in paths])
    inner = wrap(asgi_app) if wrap else asgi_app
    return SitemapMiddleware(inner, **{"routes": asgi_app, "store": "memory://", "robots": False, **options})


def listed(protocol: str, app: Any, **spec: Any) -> list[str]:
    answer = DRIVERS[protocol](app, RequestSpec("/sitemap.xml", **spec))
    return locs(answer.body) if answer.status == 200 else []


@BOTH
def test_probes_repeat_proxy_headers_and_nothing_of_the_visitor(protocol: str) -> None:
    seen: list[dict[str, str]] = []
    app = site(protocol, lambda _, headers, __: seen.append(headers) or "A page", "/", base_url=BASE)
    values = {"cf-visitor": '{"scheme":"https"}', "front-end-https": "on", "x-forwarded-ssl": "on"}
    fields = [(name, values.get(name, "https")) for name in sorted(SCHEME_HEADERS)]
    personal = ["cookie", "authorization", "x-forwarded-user", "x-forwarded-email", "x-forwarded-client-cert"]
    listed(protocol, app, headers=[*fields, *((name, "secret") for name in personal)], host="example.com", root="/shop")
    (headers,) = seen
    received = {name.lower(): value for name, value in headers.items()}
    assert {name: received[name] for name, _ in fields} == dict(fields)
    assert "secret" not in headers.values()


def secure_only(path: str, headers: dict[str, str], scheme: str) -> Any:
    if headers.get("X-Forwarded-Proto", scheme) != "https":
        return flask.Response("", 301, {"Location": f"{BASE}{path}"})
    return "A page"


@BOTH
@pytest.mark.parametrize(
    "forwarded", [[("x-forwarded-proto", "https")], []], ids=["the proxy says so", "nobody says so"]
)
def test_an_app_that_redirects_to_https_has_its_pages_listed(protocol: str, forwarded: Any) -> None:
    app = site(protocol, secure_only, "/", "/about", base_url=BASE)
    assert listed(protocol, app, headers=forwarded, host="example.com") == [f"{BASE}/", f"{BASE}/about"]


def test_apps_behind_proxies_and_framework_redirects_have_pages_listed() -> None:
    fixed = site("wsgi", secure_only_by_scheme, "/", wrap=lambda app: ProxyFix(app, x_proto=1, x_host=1), base_url=BASE)
    proxied = [("x-forwarded-proto", "https"), ("x-forwarded-host", "example.com")]
    assert listed("wsgi", fixed, headers=proxied, host="internal:8000") == [f"{BASE}/"]
    redirecting = site("asgi", lambda *_: "A page", "/", wrap=HTTPSRedirectMiddleware, base_url=BASE)
    assert listed("asgi", redirecting, host="example.com") == [f"{BASE}/"]


def secure_only_by_scheme(path: str, _: Any, scheme: str) -> Any:
    return "A page" if scheme == "https" else flask.Response("", 302, {"Location": f"{BASE}{path}"})


def test_foreign_host_is_ignored_if_the_app_refuses_it() -> None:
    app = site(
        "asgi",
        lambda path, *_: flask.Response("", 400) if path == "/needs-id" else "A page",
        "/",
        "/needs-id",
        wrap=lambda app: TrustedHostMiddleware(app, allowed_hosts=["example.com"]),
        base_url=BASE,
    )
    assert listed("asgi", app, host="evil.example", scheme="https") == [f"{BASE}/"]
    assert app.explain("/needs-id").reason == (
        "it has not answered with a page yet: the last request of the middleware got 400, which may be about its Host:"
        " check the app's allowed hosts"
    )


def test_a_page_that_only_the_host_of_the_visitor_has_is_not_listed() -> None:
    def view(path: str, headers: dict[str, str], _: str) -> Any:
        return flask.Response("", 400) if path == "/shop" and headers["Host"] == "example.com" else "A page"

    app = site("asgi", view, "/", "/shop", base_url=BASE)
    assert listed("asgi", app, host="shop.example", scheme="https") == [f"{BASE}/"]


@BOTH
def test_a_redirect_to_the_canonical_host_is_followed_to_it_alone(protocol: str) -> None:
    def view(path: str, headers: dict[str, str], _: str) -> Any:
        if path == "/away":
            return flask.Response("", 301, {"Location": "https://other.example/away"})
        if headers["Host"] != "example.com":
            return flask.Response("", 301, {"Location": f"{BASE}{path}"})
        return "A page"

    app = site(protocol, view, "/", "/away", base_url=BASE)
    assert listed(protocol, app, host="internal", scheme="https") == [f"{BASE}/"]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((robots, "PROBE"), (asgi_client, "PAGE"), (wsgi_client, "PROBE"), (own_requests, "PAGE")):
        monkeypatch.setattr(module, f"{name}_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(own_requests, "PROBE_GRACE_SECONDS", 0.1)
    monkeypatch.setattr(prober, "FIRST_WAIT_SECONDS", 30.0)


@pytest.mark.usefixtures("hurried")
@BOTH
def test_a_view_that_hangs_delays_only_itself(protocol: str) -> None:
    go_on, asked_for = threading.Event(), []

    def view(path: str, *_: Any) -> str:
        asked_for.append(path)
        if path == "/hangs":
            go_on.wait(20)
        return "A page"

    app = site(protocol, view, "/a", "/hangs", "/z", base_url=BASE)
    try:
        if protocol == "wsgi":
            assert listed(protocol, app, host="example.com") == [f"{BASE}/a", f"{BASE}/z"]
        else:

            async def served() -> Any:
                answer = await asgi_async(app, RequestSpec("/sitemap.xml", host="example.com"))
                go_on.set()
                return answer

            assert locs(asyncio.run(served()).body) == [f"{BASE}/a", f"{BASE}/z"]
        assert asked_for == ["/a", "/hangs", "/z"]
        assert app.explain("/hangs").reason == (
            "it has not answered with a page yet:"
            " the last request of the middleware got no complete response within 0.1 seconds"
        )
    finally:
        go_on.set()


@pytest.mark.usefixtures("hurried")
def test_only_so_many_requests_hang_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wsgi_adapter, "MAX_HANGING_REQUESTS", 2)
    go_on, clock = threading.Event(), Clock()
    asked_for: list[str] = []

    def view(path: str, *_: Any) -> str:
        asked_for.append(path)
        go_on.wait(20)
        return "A page"

    app = site("wsgi", view, "/a", "/b", "/c", base_url=BASE, clock=clock)
    assert listed("wsgi", app, host="example.com") == []
    assert asked_for == ["/a", "/b"]
    go_on.set()
    join_threads("sitemap-request", 10)
    clock.pass_(61)
    assert listed("wsgi", app, host="example.com") == [f"{BASE}/c"]


@pytest.mark.usefixtures("hurried")
def test_streams_without_end_are_known_by_their_headers() -> None:
    async def forever() -> Any:
        while True:
            yield b"data: x\n\n"
            await asyncio.sleep(0.01)

    async def events(_: Request) -> Response:
        return StreamingResponse(forever(), media_type="text/event-stream")

    async def film(_: Request) -> Response:
        return StreamingResponse(forever(), media_type="video/mp4")

    async def text(_: Request) -> Response:
        return StreamingResponse(forever(), media_type="text/html")

    app = Starlette(routes=[Route("/events", events), Route("/film", film), Route("/text", text)])
    wrapped = SitemapMiddleware(app, store="memory://", base_url=BASE, robots=False)
    assert listed("asgi", wrapped) == []
    assert "text/event-stream" in wrapped.explain("/events").reason
    assert "video/mp4" in wrapped.explain("/film").reason
    assert "has not answered with a page yet" in wrapped.explain("/text").reason


def test_an_endless_event_stream_of_flask_is_not_read() -> None:
    read = []

    def events() -> Iterator[bytes]:
        read.append(1)
        yield b"data: x\n\n"

    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/events", "events", lambda: flask.Response(events(), mimetype="text/event-stream"))
    wrapped = SitemapMiddleware(app, store="memory://", base_url=BASE, robots=False)
    assert listed("wsgi", wrapped) == []
    assert read == []


@pytest.mark.usefixtures("hurried")
def test_hanging_robots_txt_delays_the_sitemap_by_seconds_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(robots, "PROBE_GRACE_SECONDS", 0.1)
    go_on = threading.Event()

    def view(path: str, *_: Any) -> str:
        if path == "/robots.txt":
            go_on.wait(20)
        return "A page"

    app = site("wsgi", view, "/", "/robots.txt", base_url=BASE, robots=True, verify=False)
    try:
        answer = DRIVERS["wsgi"](app, RequestSpec("/sitemap.xml", host="example.com"))
        assert answer.status in (200, 503)
        assert not go_on.is_set()
    finally:
        go_on.set()


def test_background_tasks_of_an_answer_run_to_their_end() -> None:
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"A page"})
        await asyncio.sleep(0.05)
        ended.append(scope["path"])
        raise RuntimeError("nobody hears of it")

    wrapped = SitemapMiddleware(
        app, routes=Starlette(routes=[Route("/", lambda _: Response())]), store="memory://", base_url=BASE, robots=False
    )

    async def served() -> None:
        transport = httpx.ASGITransport(wrapped)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            assert locs((await client.get("/sitemap.xml")).content) == [f"{BASE}/"]
        await asyncio.sleep(0.2)

    asyncio.run(served())
    assert ended == ["/"]


# Servers with one thread, and test clients


def test_on_a_server_with_one_thread_pages_are_requested_on_it() -> None:
    threads: list[Any] = []
    app = site("wsgi", lambda *_: threads.append(threading.current_thread()) or "A page", "/", "/a")
    environ = {
        "wsgi.multithread": False,
        "HTTP_HOST": "localhost",
        "PATH_INFO": "/sitemap.xml",
        "REQUEST_METHOD": "GET",
    }
    body = b"".join(app({**environ, "wsgi.url_scheme": "http"}, lambda *_: None))
    assert locs(body) == ["http://localhost/", "http://localhost/a"]
    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize("client", ["flask", "starlette", "httpx"])
def test_test_client_gets_a_true_first_sitemap_and_no_leftover_work(client: str) -> None:
    before = set(threading.enumerate())
    pages = [f"/{number}" for number in range(30)]
    app = site("wsgi" if client == "flask" else "asgi", lambda *_: "A page", *pages, clock=Clock())
    if client == "flask":
        outer = flask.Flask("outer")
        outer.wsgi_app = app  # type: ignore[method-assign] # as Flask's docs do
        body = outer.test_client().get("/sitemap.xml", base_url="http://localhost").data
    elif client == "starlette":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it wants another version of httpx
            from starlette.testclient import TestClient

        body = TestClient(app, base_url="http://localhost").get("/sitemap.xml").content
    else:

        async def asked() -> bytes:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
                body = (await http.get("/sitemap.xml")).content
            assert len(asyncio.all_tasks()) == 1
            return body

        body = asyncio.run(asked())
    assert len(locs(body)) == 30
    started = set(threading.enumerate()) - before
    for thread in started:
        if thread.name == "sitemap-request":  # of an earlier test, whose app has not answered yet
            thread.join(10)
    left = {thread.name for thread in started if thread.is_alive() and not thread.name.startswith("AnyIO")}
    assert left <= {"sitemap"}
    assert TEST_CLIENT_WAIT_SECONDS > SYNC_SERVER_WAIT_SECONDS


# Pace


@BOTH
def test_page_that_keeps_failing_is_requested_twice_and_then_waits_for_a_visitor(protocol: str) -> None:
    clock, times = Clock(), []

    def view(*_: Any) -> Any:
        times.append(clock())
        return flask.Response("", 500) if len(times) < 3 else "A page"

    app = site(protocol, view, "/", clock=clock)
    began = clock()
    while clock() < began + 24 * 3600:
        assert listed(protocol, app, host="localhost") == []
        clock.pass_(1800)
    assert [time - began for time in times] == [0, 3600]
    DRIVERS[protocol](app, RequestSpec("/", host="localhost"))
    assert listed(protocol, app, host="localhost") == ["http://localhost/"]
