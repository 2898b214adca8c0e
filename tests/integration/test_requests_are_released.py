"""Nothing of a visitor's request stays in memory after its end, although the middleware requests pages later."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import weakref
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware

from ..support.recording import environ, scope
from ..support.sample_sites import Page, SampleSite
from ..support.waiting import join_threads, until


class Kept(dict[str, Any]):
    """Stands for what servers, frameworks and apps put into a request."""


class Body(io.BytesIO):
    """The body of a request."""


def wsgi_request(site: Any, path: str) -> list[weakref.ref[Any]]:
    things: list[Any] = [Kept(), Body(), Kept(), Body()]
    of_server = {"wsgi.multithread": True, "wsgi.input": things[1], "wsgi.errors": things[3], "HTTP_HOST": "localhost"}
    of_server |= {"wsgi.file_wrapper": things[2].get, "app.user": things[0], "SERVER_SOFTWARE": "gunicorn"}
    sent = environ(path=path, HTTP_ACCEPT="text/html", REMOTE_ADDR="203.0.113.9") | of_server
    b"".join(site(sent, lambda *_: lambda _data: None))
    return [weakref.ref(thing) for thing in things]


def asgi_request(site: Any, path: str) -> list[weakref.ref[Any]]:
    things = [Kept(), Kept(), Kept()]

    async def run(user: Kept, state: Kept, received: Kept) -> None:
        headers = [(b"host", b"localhost"), (b"accept", b"text/html")]
        of_server = {"client": ("203.0.113.9", 4711), "state": state, "app.user": user}

        async def receive() -> dict[str, Any]:
            return received | {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Any) -> None:
            assert received == {}

        await site(scope(path=path, headers=headers, **of_server), receive, send)

    asyncio.run(run(*things))
    join_threads("sitemap-background", 5)
    return [weakref.ref(thing) for thing in things]


REQUESTS = {"wsgi": wsgi_request, "asgi": asgi_request}


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="others collect garbage at some time")
@pytest.mark.parametrize("protocol", REQUESTS)
@pytest.mark.parametrize(
    "paths", [("/",), ("/", "/about", "/"), ("/missing",), ("/", "/sitemap.xml"), ("/robots.txt",)]
)
def test_request_is_released_after_its_end(protocol: str, paths: tuple[str, ...]) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()}, verify=True, base_url="http://localhost")
    site: SitemapMiddleware = sample.app
    references = [reference for path in paths for reference in REQUESTS[protocol](site, path)]
    site.flush()
    until(lambda: gc.collect() >= 0 and all(reference() is None for reference in references))
    site.close()
