"""Documents are found by the key of an ASGI request for as long as nothing may have changed them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.ready_documents import ReadyDocuments
from sitemap_middleware.rendering.responses import REVALIDATE_SECONDS
from sitemap_middleware.request_response import Response

KEY = "/sitemap.xml", b"example.com", "https", "", "GET", b""
GZIP = (b"accept-encoding", b"gzip")
BROWSER = (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
GOOGLEBOT = (b"user-agent", b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")


async def page(_: Any) -> None: ...


class RunningClock:
    """A clock that goes on by a microsecond whenever it is read."""

    now = 1_750_000_000.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now


class Site:
    """A site whose sitemap was requested a moment ago."""

    def __init__(self, *fields: tuple[Any, Any], **options: Any) -> None:
        self.clock = RunningClock()
        self.app = Starlette(routes=[Route("/", page)])
        defaults = {"base_url": "https://example.com", "store": "memory://", "verify": False, "clock": self.clock}
        self.middleware: Any = SitemapMiddleware(self.app, **{**defaults, **options})
        self.fields = fields
        for _ in range(2):
            self.get(*fields)

    @property
    def documents(self) -> ReadyDocuments:
        documents: ReadyDocuments = self.middleware.service.sitemap_handler.ready
        return documents

    def get(self, *fields: tuple[Any, Any]) -> list[Any]:
        """The messages that answer a request with these header fields."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        path, host, scheme, root, method, query = KEY
        scope = {"type": "http", "path": path, "scheme": scheme, "root_path": root, "method": method}
        headers = [(b"host", host), *fields]
        asyncio.run(self.middleware({**scope, "query_string": query, "headers": headers}, None, send))
        return sent

    def found(self, *fields: tuple[Any, Any]) -> Response | None:
        return self.documents.response(KEY, [(b"host", KEY[1]), *fields])


@pytest.mark.parametrize("fields", [(), (GZIP,), (BROWSER, GZIP), (BROWSER, (b"if-none-match", b'"other"'))])
def test_a_request_like_one_a_moment_ago_is_answered_alike(fields: tuple[tuple[bytes, bytes], ...]) -> None:
    site = Site(*fields)
    response = site.found(*fields)
    assert response is not None
    start, body = site.get(*fields)
    assert (start["status"], start["headers"], body["body"]) == (200, response.encoded, response.body)


def test_the_etag_of_a_client_is_compared() -> None:
    site = Site(GZIP)
    etag = dict(site.get(GZIP)[0]["headers"])[b"etag"]
    known = (b"if-none-match", etag)
    assert site.found(GZIP, known) is None  # no request had it yet
    assert site.get(GZIP, known)[0]["status"] == 304
    response = site.found(GZIP, known)
    assert response is not None
    assert response.status == 304
    late = (b"if-modified-since", b"Mon, 01 Jan 2035 00:00:00 GMT")
    assert [message["status"] for message in (site.get(GZIP, late)[0], site.get(GZIP, late)[0])] == [304, 304]


CHANGES: dict[str, Callable[[Site], object]] = {
    "a second passes": lambda site: setattr(site.clock, "now", site.clock.now + 1),
    "the clock is set back": lambda site: setattr(site.clock, "now", site.clock.now - 60),
    "everything is flushed": lambda site: site.middleware.flush(),
    "all are requested again": lambda site: site.middleware.service.refresh(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_found_once_it_may_have_changed(change: str) -> None:
    site = Site()
    CHANGES[change](site)
    assert site.found() is None
    assert site.get()[0]["status"] == 200


def test_a_document_is_found_again_after_a_new_check() -> None:
    site = Site()
    site.clock.now += REVALIDATE_SECONDS / 2
    assert site.found() is not None


def test_a_request_that_is_to_refresh_the_document_finds_nothing() -> None:
    site = Site()
    site.clock.now += REVALIDATE_SECONDS
    assert [site.found(), site.found()] == [None, None]
    for _ in range(2):
        site.get()  # the first refreshes it
    assert site.found() is not None


def test_another_key_or_other_headers_find_nothing() -> None:
    site = Site(GZIP)
    assert site.documents.response(("/other.xml", *KEY[1:]), [GZIP]) is None
    assert site.documents.response((*KEY[:4], "HEAD", b""), [GZIP]) is None
    assert site.found((b"accept-encoding", b"br")) is None


def test_requests_of_crawlers_are_left_to_what_notes_them() -> None:
    assert Site(GOOGLEBOT).found(GOOGLEBOT) is None
    assert Site(GOOGLEBOT, crawlers=False).found(GOOGLEBOT) is not None
    site = Site(BROWSER)
    assert [site.get(agent)[0]["status"] for agent in (GOOGLEBOT, BROWSER, GOOGLEBOT)] == [200] * 3
    site.middleware.flush()
    assert site.middleware.stats()["crawler_visits_unverified"] == 2


@pytest.mark.parametrize(
    "agents", [(BROWSER, GOOGLEBOT), (GOOGLEBOT, BROWSER), ((b"user-agent", b""), GOOGLEBOT), (GOOGLEBOT, GOOGLEBOT)]
)
def test_a_request_with_two_user_agents_is_a_crawlers_if_either_is(agents: tuple[tuple[bytes, bytes], ...]) -> None:
    site = Site(BROWSER)
    for expected in (1, 2):
        assert site.found(*agents) is None
        assert site.get(*agents)[0]["status"] == 200
        site.middleware.flush()
        assert site.middleware.stats()["crawler_visits_unverified"] == expected


def test_a_header_of_another_type_finds_nothing() -> None:
    site = Site()
    assert site.found((b"accept-encoding", "gzip")) is None
