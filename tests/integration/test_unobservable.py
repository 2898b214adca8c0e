"""What we cannot look at reaches the server as it is, and the log says so once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware

from ..support.recording import environ, scope
from ..support.sample_sites import Clock

HTML = [("Content-Type", "text/html")]


def wrapped(app: Any, **options: Any) -> Any:
    return SitemapMiddleware(app, **{"store": "memory://", "include": "/", "verify": False, "clock": Clock()} | options)


HOSTILE_VALUES: list[Any] = [None, 5, b"Googlebot", object(), [], {"no": "text"}]
ENVIRON_NAMES = ["HTTP_USER_AGENT", "HTTP_IF_NONE_MATCH", "HTTP_ACCEPT_ENCODING", "HTTP_COOKIE", "HTTP_X_FORWARDED_FOR"]
PATHS = ["/", "/sitemap.xml", "/robots.txt", "/report"]


def hostile_environs() -> Iterator[dict[str, Any]]:
    for name in [*ENVIRON_NAMES, "REMOTE_ADDR"]:
        for value in HOSTILE_VALUES:
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

    site = wrapped(app, base_url="http://testserver", report="/report")
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

    site = wrapped(app, base_url="http://testserver", report="/report")
    asyncio.run(ask_all())
    site.close()
