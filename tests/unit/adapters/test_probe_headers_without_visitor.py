"""The middleware's own requests to the app carry neither the visitor's data nor forged headers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple

import flask
import pytest
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from werkzeug.test import create_environ, run_wsgi_app

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.messages import PROBE_ACCEPT, PROBE_CLIENT_ADDRESS, PROBE_USER_AGENT
from sitemap_middleware.http.proxies import ADDRESS_HEADERS

from ...support.documents import locs
from ...support.sample_sites import Clock
from ...support.wire import BOTH, DRIVERS, RequestSpec

HOST = "x.example"
BASE = f"https://{HOST}"

signed_in: ContextVar[str | None] = ContextVar("signed_in", default=None)
by_thread = threading.local()


class Seen(NamedTuple):
    """A request as the app sees it."""

    path: str
    headers: dict[str, str]
    address: str | None
    raw: dict[str, Any]
    """The environ, or the scope."""

    @property
    def host(self) -> str:
        return self.headers.get("x-forwarded-host", self.headers.get("host", ""))


View = Callable[[Seen], Any]


def site(protocol: str, view: View, *paths: str, wrap: Any = None, **options: Any) -> Any:
    """An app whose pages share one view, which returns text, a status, or a status and headers."""
    options = {"store": "memory://", "robots": False, "verify": True, "base_url": BASE, **options}

    def answered(seen: Seen) -> tuple[str, int, dict[str, str]]:
        result = view(seen)
        if isinstance(result, str):
            return result, 200, {}
        return ("", result, {}) if isinstance(result, int) else ("", *result)

    def endpoint() -> Any:
        request = flask.request
        headers = {name.lower(): value for name, value in request.headers.to_wsgi_list()}
        text, status, more = answered(Seen(request.path, headers, request.remote_addr, request.environ))
        return flask.Response(text, status, more, mimetype="text/html")

    def page(request: Request) -> Response:
        address = request.client.host if request.client else None
        text, status, more = answered(Seen(request.url.path, dict(request.headers), address, dict(request.scope)))
        return HTMLResponse(text, status, more)

    if protocol == "wsgi":
        app = flask.Flask("site", static_folder=None)
        for number, path in enumerate(paths):
            app.add_url_rule(path, f"page{number}", endpoint)
        return SitemapMiddleware(wrap(app) if wrap else app, routes=app, **options)
    outer = Starlette(routes=[Route(path, page) for path in paths])
    return SitemapMiddleware(wrap(outer) if wrap else outer, routes=outer, **options)


def fetch(protocol: str, app: Any, path: str = "/sitemap.xml", host: str = HOST, **headers: str) -> Any:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return DRIVERS[protocol](app, RequestSpec(path, host=host, scheme="https", headers=fields))


def listed(protocol: str, app: Any, host: str = HOST, **headers: str) -> list[str]:
    answer = fetch(protocol, app, host=host, **headers)
    return [loc.removeprefix(BASE) for loc in locs(answer.body)] if answer.status == 200 else []


# Who is signed in


def signing_in(protocol: str, app: Any) -> Any:
    """A middleware outside ours that keeps the visitor's session in a context variable, and with the request."""

    def wsgi(environ: Any, start_response: Any) -> Any:
        return copy_context().run(called, environ, start_response)  # no later test is to find the cookie

    def called(environ: Any, start_response: Any) -> Any:
        signed_in.set(environ.get("HTTP_COOKIE"))
        by_thread.user = environ.get("HTTP_COOKIE")
        environ |= {"HTTPS_CLIENT_DN": "CN=ann", "REMOTE_USER": "ann", "wsgi.user": "ann", "SERVER_USER": "ann"}
        return app(environ, start_response)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        cookie = dict(scope.get("headers", ())).get(b"cookie")
        signed_in.set(cookie and cookie.decode())
        scope.setdefault("state", {})["user"] = cookie
        scope |= {"user": "ann", "auth": "ann", "session": {"user": "ann"}, "ann": "ann"}
        await app(scope, receive, send)

    return wsgi if protocol == "wsgi" else asgi


def of_the_visitor(seen: Seen) -> list[str]:
    """Where an app finds who is signed in."""
    traces = [str(key) for key, value in seen.raw.items() if value == "ann"]
    traces += ["context"] * (signed_in.get() is not None)
    traces += ["session"] * bool(seen.raw.get("session"))
    traces += ["state"] * bool((seen.raw.get("state") or {}).get("user"))
    return traces


@BOTH
def test_what_a_signed_in_visitor_alone_may_see_is_not_published(protocol: str) -> None:
    traces: list[list[str]] = []
    app = site(
        protocol, lambda seen: traces.append(of_the_visitor(seen)) or (403 if not traces[-1] else "Pay"), "/staff"
    )
    outer = signing_in(protocol, app)
    assert listed(protocol, outer, cookie="admin=1") == []
    assert traces == [[]]
    assert listed(protocol, outer) == []


def test_trios_own_requests_have_no_context_of_the_visitor() -> None:
    traces: list[list[str]] = []
    app = site("asgi", lambda seen: traces.append(of_the_visitor(seen)) or "Pay", "/staff")
    outer, bodies = signing_in("asgi", app), []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        bodies.append(message.get("body", b""))

    headers = [(b"host", HOST.encode()), (b"cookie", b"admin=1")]
    scope = {"type": "http", "method": "GET", "path": "/sitemap.xml", "query_string": b"", "headers": headers}
    trio.run(outer, {**scope, "scheme": "https", "root_path": "", "client": None}, receive, send)
    assert locs(b"".join(bodies)) == [f"{BASE}/staff"]
    assert traces == [[]]


def test_single_threaded_server_probes_only_after_anonymous_requests() -> None:
    traces: list[Any] = []

    def view(seen: Seen) -> Any:
        traces.append((getattr(by_thread, "user", None), *of_the_visitor(seen)))
        return "A page"

    app = site("wsgi", view, "/staff")

    def sitemap(**headers: str) -> bytes:
        by_thread.user = headers.get("Cookie")
        environ = create_environ("/sitemap.xml", BASE, headers=headers, multithread=False)
        return b"".join(run_wsgi_app(app, environ)[0])

    sitemap(Cookie="admin=1")
    assert traces == []
    assert locs(sitemap()) == [f"{BASE}/staff"]
    assert traces == [(None,)]


# Where the visitor is


OFFICE = "10.0.0.7"
SPELLINGS = [
    {"x_forwarded_for": f"1.2.3.4, {OFFICE}, 10.0.0.8"},
    {"forwarded": f'For="{OFFICE}:4711"; by=10.0.0.9 , for = {OFFICE};host={HOST}'},
    {name.replace("-", "_"): OFFICE for name in ADDRESS_HEADERS},
]


@BOTH
@pytest.mark.parametrize("forwarding", SPELLINGS, ids=["X-Forwarded-For", "Forwarded", "all others"])
@pytest.mark.parametrize("path", ["/intranet", "/robots.txt"])
def test_own_requests_do_not_come_from_the_visitors_address(
    protocol: str, forwarding: dict[str, str], path: str
) -> None:
    seen: list[Seen] = []
    app = site(protocol, lambda request: seen.append(request) or "A page", path, robots=True)
    fetch(protocol, app, **forwarding)
    assert seen
    for request in seen:
        assert "10.0.0." not in str((request.headers, request.address))
        for name in forwarding:
            assert request.headers.get(name.replace("_", "-"), PROBE_CLIENT_ADDRESS) == PROBE_CLIENT_ADDRESS
        assert request.address == (PROBE_CLIENT_ADDRESS if "forwarded" in forwarding else "127.0.0.1")  # the proxy's


# What they repeat of the connection


@BOTH
def test_of_forged_connection_headers_none_is_repeated_and_each_scheme_is_the_sites(protocol: str) -> None:
    seen: list[dict[str, str]] = []
    forged = {
        **dict.fromkeys(["x_forwarded_host", "x_forwarded_server", "x_host", "x_original_host"], "evil.example"),
        **dict.fromkeys(["x_forwarded_prefix", "x_script_name", "x_original_url"], "/evil"),
        "x_forwarded_port": "666",
        "x_forwarded_proto": "https, evil",
        "x_forwarded_scheme": "javascript",
        "x_scheme": "",
        "x_forwarded_ssl": "off",
        "forwarded": "host=evil.example;proto=https",
    }
    app = site(protocol, lambda request: seen.append(request.headers) or "A page", "/page")
    assert listed(protocol, app, **forged) == ["/page"]
    (headers,) = seen
    schemes = dict.fromkeys(["x-forwarded-proto", "x-forwarded-scheme", "x-scheme"], "https") | {
        "x-forwarded-ssl": "on"
    }
    assert headers == {"host": HOST, "user-agent": PROBE_USER_AGENT, "accept": PROBE_ACCEPT, **schemes}


# Which host they are for


@BOTH
@pytest.mark.parametrize("gone", [404, 410, (301, {"Location": "https://elsewhere.example/"}), "noindex"], ids=str)
def test_sitemap_request_with_a_foreign_host_delists_nothing(protocol: str, gone: Any) -> None:
    text = '<meta name="robots" content="noindex">' if gone == "noindex" else gone
    clock = Clock()
    app = site(protocol, lambda seen: "A page" if seen.host == HOST else text, "/", "/a", clock=clock)
    for headers in ({"host": "evil.example"}, {"x_forwarded_host": "evil.example"}):
        fetch(protocol, app, **headers)
        clock.pass_(60)
    assert listed(protocol, app) == ["/", "/a"]


@BOTH
@pytest.mark.parametrize("answer", [404, "noindex"])
def test_answer_for_a_foreign_host_delists_nothing(protocol: str, answer: Any) -> None:
    """The app refuses the site's own host in probes, so they use the host of the live request."""
    refusal = '<meta name="robots" content="noindex">' if answer == "noindex" else answer
    clock = Clock()

    def view(seen: Seen) -> Any:
        if "sitemap-middleware" not in seen.headers.get("user-agent", ""):
            return "A page"
        return {HOST: 421, "internal.example": "A page"}.get(seen.headers["host"], refusal)

    app = site(protocol, view, "/", "/a", clock=clock)
    assert listed(protocol, app, host="internal.example") == ["/", "/a"]
    clock.pass_(60)
    assert listed(protocol, app, host="evil.example") == ["/", "/a"]
    clock.pass_(60)
    assert listed(protocol, app) == ["/", "/a"]
