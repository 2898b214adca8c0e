"""What we cannot look at reaches the server as it is, and the log says so once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ..support.recording import ASGIServer, Record, WSGIServer, environ, scope
from ..support.sample_sites import Clock, Page, SampleSite
from ..support.wire import RequestSpec

HTML = [("Content-Type", "text/html")]


def wrapped(app: Any, **options: Any) -> Any:
    return SitemapMiddleware(app, **{"store": "memory://", "include": "/", "verify": False, "clock": Clock()} | options)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("sitemap")]


class Undecided:
    """Is neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("neither")


def test_unreadable_body_message_reaches_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"A page.", "more_body": undecided})

    def record(app: Any) -> Record:
        record: Record = []
        asyncio.run(ASGIServer(record).run(app, scope()))
        return record

    undecided = Undecided()
    site = wrapped(app)
    assert record(site) == record(app)
    assert record(site) == record(app)
    assert warnings(caplog) == ["a response could not be observed; further faults like this are not logged"]


@pytest.mark.parametrize("body", [b"A page.", "A page.", ["A page."]])
def test_body_without_a_start_reaches_the_server(body: Any) -> None:
    def app(_environ: Any, _start_response: Any) -> Any:
        return body

    site = wrapped(app)
    for _ in range(2):
        assert site(environ(), lambda *_: None) is body


class Buggy(MemoryStore):
    """Fails by a fault of its own if anything is written."""

    def merge(self, *_: Any) -> Any:
        raise ZeroDivisionError


def test_faulty_store_leaves_pages_and_sitemap_to_be_served(caplog: pytest.LogCaptureFixture) -> None:
    sample = SampleSite("wsgi", {"/": Page()}, store=Buggy())
    sample.visit("/")
    assert sample.locs() == ["http://testserver/"]
    assert "the observations of the last seconds could not be saved" in warnings(caplog)


def test_unreadable_lifespan_message_reaches_the_server(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"no": "type"})

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(wrapped(app)({"type": "lifespan"}, None, send))
    assert sent == [{"no": "type"}]
    assert warnings(caplog) == [
        "a message of the lifespan could not be handled; further faults like this are not logged"
    ]


def test_user_agent_parsed_by_a_layer_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        environ["HTTP_USER_AGENT"] = object()
        start_response("200 OK", HTML)
        return [b"A page."]

    site = wrapped(app)
    for _ in range(3):
        record: Record = []
        WSGIServer(record).run(site, environ(HTTP_USER_AGENT="A browser"))
        assert record[-1] == ("write", b"A page.")
        site.service.options.clock.pass_(1)
    assert warnings(caplog) == ["a response could not be observed; further faults like this are not logged"]


HOSTILE_VALUES: list[Any] = [None, 5, b"Googlebot", object(), [], {"no": "text"}]
ENVIRON_NAMES = ["HTTP_USER_AGENT", "HTTP_IF_NONE_MATCH", "HTTP_ACCEPT_ENCODING", "HTTP_COOKIE", "HTTP_X_FORWARDED_FOR"]
PATHS = ["/", "/sitemap.xml", "/robots.txt", "/report"]


def hostile_environs() -> Iterator[dict[str, Any]]:
    for name in [*ENVIRON_NAMES, "REMOTE_ADDR"]:
        for value in HOSTILE_VALUES:
            # A crawler's request is looked at more closely.
            yield {"HTTP_USER_AGENT": "Googlebot/2.1", "HTTP_ACCEPT": "text/html", name: value}


class Start:
    """A `start_response` that keeps the status."""

    status = ""

    def __call__(self, status: str, _: Any, exc_info: Any = None) -> None:
        self.status = status


@pytest.mark.parametrize("path", PATHS)
def test_wsgi_values_of_any_type_raise_nothing_into_the_server(path: str) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", HTML)
        return [b"A page."]

    site = wrapped(app, base_url="http://testserver", report="/report", crawlers=True)
    for given in [{}, *hostile_environs()] * 2:  # the second time of a page and a document that are known
        site.service.options.clock.pass_(1)
        start = Start()
        body = b"".join(site(environ(path=path, **given), start))
        assert start.status in {"200 OK", "503 Service Unavailable"}, given
        assert path != "/" or (start.status, body) == ("200 OK", b"A page."), given
    site.close()


def hostile_scopes() -> Iterator[dict[str, Any]]:
    fields = [(b"host", b"testserver"), (b"accept", b"text/html"), (b"user-agent", b"Googlebot/2.1")]
    for name in [b"user-agent", b"if-none-match", b"accept-encoding", b"cookie", b"x-forwarded-for", b"host"]:
        for value in [*HOSTILE_VALUES, "text"]:
            yield {"headers": [(name, value), *fields]}
            yield {"headers": [*fields, (name, value)]}
    for field in [(), (b"a",), (b"a", b"b", b"c"), "xy", None, 5]:
        yield {"headers": [*fields, field]}
    for client in [(), 5, "text", (None, None), {}, [object()]]:
        yield {"headers": fields, "client": client}
    for headers in [None, 5, {}, iter(()), "text"]:
        yield {"headers": headers}


@pytest.mark.parametrize("path", PATHS)
def test_asgi_values_of_any_type_raise_nothing_into_the_server(path: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"A page."})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ask(given: dict[str, Any]) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await site(scope(path=path, **given), receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

    async def ask_all() -> None:
        for given in [{}, *hostile_scopes()] * 2:  # the second time of a page and a document that are known
            site.service.options.clock.pass_(1)
            status, body = await ask(given)
            assert status in {200, 404, 503}, given
            assert path != "/" or (status, body) == (200, b"A page."), given

    site = wrapped(app, base_url="http://testserver", report="/report", crawlers=True)
    asyncio.run(ask_all())
    site.close()


class Unreadable:
    """A body whose attributes cannot be looked at."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"A page."

    @property
    def read(self) -> Any:
        raise ValueError("the file is closed")


def test_opaque_body_reaches_the_server_as_the_same_object(caplog: pytest.LogCaptureFixture) -> None:
    bodies = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", HTML)
        bodies.append(Unreadable())
        return bodies[-1]

    request_environ = environ()
    request_environ["wsgi.file_wrapper"] = lambda file, *_: file  # uWSGI's is a function
    assert wrapped(app)(request_environ, lambda *_: None) is bodies[0]
    assert warnings(caplog) == ["a body could not be sampled; further faults like this are not logged"]


class Late:
    """A body that starts the response when it is first read, and can be read again."""

    def __init__(self, start_response: Any) -> None:
        self._start_response = start_response

    def __iter__(self) -> Iterator[bytes]:
        self._start_response("200 OK", HTML)
        yield b"A page."


def test_a_body_that_starts_its_response_late_can_be_read_again() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        return Late(start_response)

    site = wrapped(app)
    started: list[Any] = []
    for times in (2, 4):
        body = site(environ(), lambda *arguments: started.append(arguments))
        assert [*body, *body] == [b"A page."] * 2
        assert len(started) == times


class Faulty(MemoryStore):
    """A store of the app's own, with a fault in it."""

    faulty = True

    def merge(self, *arguments: Any) -> Any:
        if self.faulty:
            raise RuntimeError("a fault of the store's")
        return super().merge(*arguments)


def test_unexpected_flush_error_is_logged_and_observations_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Faulty()
    sample = SampleSite("wsgi", {"/": Page(), "/a": Page(404)}, store=store)
    sample.request("/a")
    sample.app.flush()
    assert warnings(caplog) == ["the observations of the last seconds could not be saved"]
    assert "a fault of the store's" in caplog.text
    store.faulty = False
    sample.app.flush()
    assert sample.locs() == ["http://testserver/"]


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_each_request_of_a_signed_in_user_is_counted(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    sample.visit("/")
    for _ in range(3):
        sample.clock.pass_(1)
        sample.request(RequestSpec("/", headers=[("cookie", "session=1")]))
    assert sample.app.stats()["ignored_credentials"] == 3
