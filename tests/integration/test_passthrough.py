"""The app's response is the app's: all that it sends, and every way in which it fails, passes through unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any
from wsgiref.validate import validator

import flask
import pytest
from asgiref.testing import ApplicationCommunicator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, StoreError
from sitemap_middleware.stores.sqlite import MemoryStore

from ..support.documents import locs
from ..support.recording import environ
from ..support.recording import scope as http
from ..support.sample_sites import Clock, Page, SampleSite
from ..support.wire import BOTH, DRIVERS, RequestSpec, asgi, wsgi

HTML = [("Content-Type", "text/html")]


def wrapped(app: Any) -> Any:
    """A callable of no known framework, wrapped; its home page is listed unless something seen forbids it."""
    return SitemapMiddleware(app, store="memory://", include="/", clock=Clock())


def listed(app: Any, driver: Callable[..., Any]) -> list[str]:
    app.flush()
    answer = driver(app, RequestSpec("/sitemap.xml"))
    return locs(answer.body) if answer.status == 200 else []


# Both protocols


@BOTH
def test_what_else_the_wrapped_app_has_is_found_in_its_place(protocol: str) -> None:
    bare: Any = flask.Flask("bare") if protocol == "wsgi" else Starlette()
    app: Any = SitemapMiddleware(bare, store="memory://")
    bare.extra = "the app's own"
    assert app.extra == "the app's own"
    assert app.state is bare.state if protocol == "asgi" else app.config is bare.config
    for name in ("missing", "_private"):
        assert not hasattr(app, name)


@BOTH
@pytest.mark.parametrize(
    "spec",
    [
        RequestSpec("/"),
        RequestSpec("/", method="HEAD"),
        RequestSpec("/", method="POST"),
        RequestSpec("/", headers=[("cookie", "a=b")]),
        RequestSpec("/", query="a=b"),
        RequestSpec("/", host=None),
        RequestSpec("/", host="evil.example"),
        RequestSpec("/nowhere"),
        RequestSpec("/sitemap.xml", method="POST"),
        RequestSpec("/sitemap.xml.gz"),
        RequestSpec("/sitemap-0.xml"),
        RequestSpec("/sitemap-x.xml"),
        RequestSpec("/SITEMAP.XML"),
    ],
    ids=lambda spec: f"{spec.method} {spec.path} {spec.host} {spec.query or spec.headers}",
)
def test_an_answer_of_the_app_is_the_same_with_us_and_without(protocol: str, spec: RequestSpec) -> None:
    sample = SampleSite(
        protocol, {"/": Page().with_headers(("x-extra", "ÿ"), ("set-cookie", "a=1"), ("set-cookie", "b=2"))}
    )
    assert sample.request(spec) == DRIVERS[protocol](sample.bare, spec)


class Broken(MemoryStore):
    """A store that fails, and otherwise than it should."""

    def merge(self, *_: Any) -> Any:
        raise RuntimeError("the disk is gone")

    def version(self, *_: Any) -> Any:
        raise RuntimeError("the disk is gone")


@BOTH
def test_a_sitemap_that_cannot_be_made_is_503_and_the_app_goes_on(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    sample = SampleSite(protocol, {"/": Page()}, store=Broken())
    answer = sample.request("/sitemap.xml")
    assert (answer.status, answer.header("retry-after")) == (503, "60")
    assert sample.request("/").status == 200
    assert "the sitemap could not be made" in caplog.text
    sample.app.service.close()  # or its thread logs the failure during the tests that follow


# WSGI


def ignored(*_: Any) -> Callable[[bytes], None]:
    return lambda _: None


def flask_app() -> flask.Flask:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/", "home", lambda: "home")
    app.add_url_rule("/file", "file", lambda: flask.send_file(io.BytesIO(b"a file"), "text/html"))
    return app


@pytest.mark.parametrize("path", ["/", "/nowhere", "/sitemap.xml", "/file"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("headers", [[], [("accept-encoding", "gzip")], [("if-none-match", "*")]], ids=str)
def test_the_validator_finds_no_fault_around_the_app_nor_around_us(path: str, method: str, headers: Any) -> None:
    app = flask_app()

    def validated(environ: Any, start_response: Any) -> Any:
        return validator(app.wsgi_app)(environ, start_response)

    site = SitemapMiddleware(validated, routes=app, store="memory://")
    wsgi(site, RequestSpec(path, method, headers))
    assert listed(site, wsgi) == ["http://testserver/", "http://testserver/file"]


@pytest.mark.parametrize("late", [False, True], ids=["starts at once", "starts with its first chunk"])
def test_the_first_chunk_is_delivered_before_the_second_is_made(*, late: bool) -> None:
    produced = []

    def chunks(start: Callable[[], Any]) -> Iterator[bytes]:
        start()
        for chunk in (b"one", b"two"):
            produced.append(chunk)
            yield chunk

    def app(_: Any, start_response: Any) -> Iterable[bytes]:
        if not late:
            start_response("200 OK", HTML)
        return chunks(lambda: start_response("200 OK", HTML) if late else None)

    site = wrapped(app)
    result = iter(site(environ(), ignored))
    assert produced == []
    assert next(result) == b"one"
    assert produced == [b"one"]
    assert list(result) == [b"two"]
    assert listed(site, wsgi) == ["http://testserver/"]


class Body:
    """A body that knows its length, and counts how often it is closed."""

    closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"A page."])

    def __len__(self) -> int:
        return 1

    def close(self) -> None:
        self.closed += 1


def test_the_body_is_closed_once_by_the_server_and_never_by_us() -> None:
    body = Body()

    def app(_: Any, start_response: Any) -> Body:
        start_response("200 OK", HTML)
        return body

    assert wsgi(wrapped(app), RequestSpec("/"), validate=False).body == b"A page."
    assert body.closed == 1


def test_the_environ_is_the_servers_own_and_as_it_was() -> None:
    request_environ = environ()
    before = dict(request_environ)
    received: list[Any] = []
    wrapped(lambda environ, _: received.append(environ) or [])(request_environ, ignored)
    assert received[0] is request_environ
    assert request_environ == before


# ASGI


class Server:
    """The server's side of one connection: it hands over what waits, and keeps the very messages it was sent."""

    def __init__(self, *incoming: dict[str, Any]) -> None:
        self.incoming = deque(incoming)
        self.sent: list[Any] = []

    async def receive(self) -> dict[str, Any]:
        if not self.incoming:
            await asyncio.get_running_loop().create_future()  # no further message comes
        return self.incoming.popleft()

    async def send(self, message: Any) -> None:
        self.sent.append(message)


def run(app: Any, scope: dict[str, Any], server: Server) -> None:
    asyncio.run(app(scope, server.receive, server.send))


@pytest.mark.parametrize("scope", [http(), http(method="POST"), {"type": "websocket", "path": "/"}, {"type": "telnet"}])
def test_scope_and_receive_are_the_servers_own(scope: dict[str, Any]) -> None:
    server, received, before = Server(), [], dict(scope)

    async def app(*arguments: Any) -> None:
        received.extend(arguments)

    receive, send = server.receive, server.send
    asyncio.run(wrapped(app)(scope, receive, send))
    assert received[0] is scope
    assert received[1] is receive
    assert (received[2] is send) is (scope != http())
    assert scope == before


def test_first_chunk_is_sent_before_the_second_is_produced() -> None:
    server, had = Server(), []

    async def chunks() -> Any:
        for chunk in (b"one", b"two"):
            had.append([message.get("body") for message in server.sent])
            yield chunk

    site = wrapped(Starlette(routes=[Route("/", lambda _: StreamingResponse(chunks(), media_type="text/html"))]))
    run(site, http(), server)
    assert had == [[None], [None, b"one"]]
    assert listed(site, asgi) == ["http://testserver/"]


def starlette(**options: Any) -> Starlette:
    async def home(_: Request) -> HTMLResponse:
        return HTMLResponse("home", headers={"last-modified": "Tue, 14 Nov 2023 22:13:20 GMT"})

    return Starlette(routes=[Route("/", home)], **options)


async def live(app: Any, *, visit: bool = False) -> list[Any]:
    """The life of a server: startup, perhaps a visit, shutdown; the app's message on each."""
    lifespan = ApplicationCommunicator(app, {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}})
    await lifespan.send_input({"type": "lifespan.startup"})
    messages = [await lifespan.receive_output()]
    if visit:
        await app(http(), Server({"type": "http.request"}).receive, Server().send)
    await lifespan.send_input({"type": "lifespan.shutdown"})
    messages.append(await lifespan.receive_output())
    await lifespan.wait()
    return messages


COMPLETE = [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


def test_lifespan_of_the_app_runs_and_its_state_reaches_the_server() -> None:
    ran = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, str]]:
        ran.append("startup")
        yield {"key": "value"}
        ran.append("shutdown")

    assert asyncio.run(live(SitemapMiddleware(starlette(lifespan=lifespan), store="memory://"))) == COMPLETE
    assert ran == ["startup", "shutdown"]


class Unclosable(MemoryStore):
    """A store that cannot let go."""

    def close(self) -> None:
        raise StoreError("the disk is gone")


@pytest.mark.parametrize("store", [Unclosable(), Broken()], ids=lambda store: type(store).__name__)
def test_failing_store_does_not_delay_the_shutdown(store: Any) -> None:
    assert asyncio.run(live(SitemapMiddleware(starlette(), store=store), visit=True)) == COMPLETE
