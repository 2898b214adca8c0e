"""What the middleware's own requests make of malformed responses: they fail at once, as at a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from sitemap_middleware.adapters import asgi_client
from sitemap_middleware.adapters.asgi_client import request_app
from sitemap_middleware.adapters.wsgi_client import resolve_response
from sitemap_middleware.http.messages import Response

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
BODY = {"type": "http.response.body", "body": b"text"}
HEADERS = [("Content-Type", "text/plain")]


def asked_of_asgi(monkeypatch: pytest.MonkeyPatch, *messages: Any) -> Future[Response | None]:
    monkeypatch.setattr(asgi_client, "PAGE_TIMEOUT_SECONDS", 600)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    future: Future[Response | None] = Future()
    asyncio.run(asyncio.wait_for(request_app(app, {"type": "http"}, future), 30))
    return future


def asked_of_wsgi(app: Callable[..., Any]) -> Future[Response | None]:
    future: Future[Response | None] = Future()
    resolve_response(app, {}, future)
    return future


MALFORMED = {
    "text as body": (START, BODY | {"body": "text"}),
    "no status": ({"type": "http.response.start"}, BODY),
    "text as headers": (START | {"headers": [("content-type", "text/plain")]}, BODY),
    "nothing": (),
    "no end": (START, BODY | {"more_body": True}),
}


@pytest.mark.parametrize("messages", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_message_fails_the_request_at_once(messages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_of_asgi(monkeypatch, *messages).exception(0) is not None


WELL_FORMED = {
    "no headers": ({"type": "http.response.start", "status": 200}, BODY),
    "headers as an iterator": (START | {"headers": iter([(b"content-type", b"text/plain")])}, BODY),
    "a bytearray": (START, BODY | {"body": bytearray(b"text")}),
    "a last part without a body": (START, BODY | {"more_body": True}, {"type": "http.response.body"}),
}


@pytest.mark.parametrize("messages", WELL_FORMED.values(), ids=WELL_FORMED.keys())
def test_what_servers_accept_is_a_response(messages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    response = asked_of_asgi(monkeypatch, *messages).result(0)
    assert response is not None
    assert (response.status, response.body) == (200, b"text")


def _generator(start_response: Any, *chunks: Any) -> Iterator[Any]:
    start_response("200 OK", HEADERS)
    yield from chunks


class Closing:
    """A body whose `close` fails."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"text"])

    def close(self) -> None:
        raise OSError("the file has gone")


MALFORMED_WSGI: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda start: start("200 OK", HEADERS) and None,
    "a list of text": lambda start: start("200 OK", HEADERS) and ["text"],
    "no start": lambda _: [b"text"],
    "a status without a number": lambda start: start("OK", HEADERS) and [b"text"],
    "headers without a value": lambda start: start("200 OK", [("Content-Type",)]) and [b"text"],
}


@pytest.mark.parametrize("app", MALFORMED_WSGI.values(), ids=MALFORMED_WSGI.keys())
def test_a_malformed_wsgi_response_fails_the_request_at_once(app: Callable[[Any], Any]) -> None:
    assert asked_of_wsgi(lambda _, start_response: app(start_response)).exception(0) is not None


WELL_FORMED_WSGI: dict[str, Callable[[Any], Any]] = {
    "a tuple": lambda start: start("200 OK", HEADERS) and (b"te", b"xt"),
    "a generator": lambda start: _generator(start, b"te", b"", b"xt"),
    "written": lambda start: start("200 OK", HEADERS)(b"text") or [],
    "all by name": lambda start: start(status="200 OK", headers=HEADERS) and [b"text"],
    "a start replaced": lambda start: (
        start("500 No", []) and start("200 OK", HEADERS, (None, None, None)) and [b"text"]
    ),
    "a close that fails": lambda start: start("200 OK", HEADERS) and Closing(),
}


@pytest.mark.parametrize("app", WELL_FORMED_WSGI.values(), ids=WELL_FORMED_WSGI.keys())
def test_what_wsgi_servers_accept_is_a_response(app: Callable[[Any], Any]) -> None:
    response = asked_of_wsgi(lambda _, start_response: app(start_response)).result(0)
    assert response is not None
    assert (response.status, response.body) == (200, b"text")
