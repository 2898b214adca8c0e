"""Adapters: an app's answer counts as evidence in every form that the protocols allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware

from ..support.documents import locs
from ..support.recording import environ
from ..support.sample_sites import Clock
from ..support.wire import DRIVERS, RequestSpec

HTML = [("Content-Type", "text/html")]
HEAD, REST = b'<!doctype html><meta name="robots" content="noindex">', b"<title>x</title><p>A page."


def wrapped(app: Any) -> Any:
    """A callable of no known framework, wrapped; its home page is listed unless something seen forbids it."""
    return SitemapMiddleware(app, store="memory://", include="/", clock=Clock(), verify=False)


def is_listed(app: Any, protocol: str) -> bool:
    app.flush()
    answer = DRIVERS[protocol](app, RequestSpec("/sitemap.xml"))
    return answer.status == 200 and locs(answer.body) == ["http://testserver/"]


# WSGI


def when_iterated(start_response: Any) -> Any:
    start_response("200 OK", HTML)
    yield HEAD
    yield REST


class Parts:
    def __iter__(self) -> Any:
        return iter([HEAD, REST])


WAYS: dict[str, Callable[[Any], Any]] = {
    "by position": lambda start: start("200 OK", HTML) and [HEAD, REST],
    "by name": lambda start: start(status="200 OK", headers=HTML) and [HEAD, REST],
    "by the name of wsgiref": lambda start: start(status="200 OK", response_headers=HTML) and [HEAD, REST],
    "half by name": lambda start: start("200 OK", headers=HTML) and [HEAD, REST],
    "by writing": lambda start: start("200 OK", HTML)(HEAD) or [REST],
    "by writing by name": lambda start: start("200 OK", HTML)(data=HEAD) or [REST],
    "when iterated": when_iterated,
    "as an iterable": lambda start: start("200 OK", HTML) and Parts(),
}


@pytest.mark.parametrize("answer", WAYS.values(), ids=WAYS)
def test_a_wsgi_page_is_read_however_it_is_answered(answer: Any) -> None:
    site = wrapped(lambda _, start_response: answer(start_response))
    body = site(environ(), lambda *_, **__: lambda *_, **__: None)
    assert b"".join(iter(body)).endswith(REST)
    if hasattr(body, "close"):
        body.close()
    assert not is_listed(site, "wsgi")


# ASGI

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
BODY = {"type": "http.response.body"}
SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"testserver")]}


def sends(*messages: dict[str, Any]) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    return app


async def received() -> dict[str, Any]:
    return {"type": "http.request"}


async def sent(message: Any) -> None:
    pass


@pytest.mark.parametrize(
    "messages",
    [
        [START, BODY | {"body": HEAD + REST}],
        [START, BODY | {"body": HEAD, "more_body": True}, BODY | {"body": REST}],
        [START, BODY | {"body": HEAD, "more_body": True}, BODY | {"more_body": True}, BODY],
        [START, {"type": "http.response.debug"}, BODY | {"body": HEAD}],
        [START | {"status": 404}, START, BODY | {"body": HEAD}],
        [{"type": "http.response.start", "status": 404}, BODY],
    ],
    ids=["whole", "in parts", "in parts without bytes", "after a message of debugging", "started again", "no headers"],
)
@pytest.mark.parametrize("more", [{}, {"scheme": "http", "root_path": "", "query_string": b""}], ids=["short", "full"])
def test_asgi_page_is_read_however_it_is_sent_and_with_a_minimal_scope(
    messages: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    site = wrapped(sends(*messages))
    asyncio.run(site(SCOPE | more, received, sent))
    assert not is_listed(site, "asgi")


@pytest.mark.parametrize(
    "messages",
    [
        [START, BODY | {"body": HEAD, "more_body": True}],
        [START, BODY | {"body": HEAD, "more_body": True}, {"type": "http.response.pathsend", "path": "/x"}],
        [START, BODY | {"body": REST}, BODY | {"body": HEAD}],
    ],
    ids=["broken off", "sent on from a file", "sent on after its end"],
)
def test_incomplete_body_is_not_read(messages: list[dict[str, Any]]) -> None:
    site = wrapped(sends(*messages))
    asyncio.run(site(SCOPE, received, sent))
    assert is_listed(site, "asgi")
