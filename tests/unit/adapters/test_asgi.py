"""The middleware as an ASGI application: what it answers itself, and what it leaves to the app."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.routing.framework_detection import EXTENSION_NAME

from ...support.recording import scope
from ...support.sample_sites import Clock


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": b"A page."})


def wrapped(inner: Any = app) -> Any:
    return SitemapMiddleware(inner, store="memory://", include="/", clock=Clock(), verify=False)


def answered(site: Any, request: Any) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(site(request, None, send))
    return sent


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, ("/", b"testserver", "http", "", "GET", b"")),
        (
            {"headers": ((b"accept", b"*/*"), (b"host", b"testserver"), (b"host", b"x"))},
            ("/", b"testserver", "http", "", "GET", b""),
        ),
        ({"path": "/x", "scheme": "https"}, ("/x", b"testserver", "https", "", "GET", b"")),
        ({"path": "/x/y", "root_path": "/x"}, ("/x/y", b"testserver", "http", "/x", "GET", b"")),
    ],
    ids=["usual", "two hosts", "another URL", "a root"],
)
def test_page_is_found_by_the_key_of_its_request(changes: dict[str, Any], key: Any) -> None:
    site = wrapped()
    for _ in range(3):
        assert len(answered(site, scope(**changes))) == 2
    assert list(site.service.tracker.tracked_pages) == [key]


def test_app_is_bound_to_the_middleware_once_it_is_seen() -> None:
    apps = [Starlette(routes=[Mount("/", app)]) for _ in range(2)]
    site: Any = wrapped(apps[0].router)  # as `add_middleware` wraps it
    for bound in apps:
        answered(site, scope(app=bound))
    assert [getattr(bound.state, EXTENSION_NAME, None) for bound in apps] == [site, None]


@pytest.mark.parametrize(
    ("request_scope", "message"),
    [
        ({"type": "http", "headers": []}, "a request could not be looked at"),
        ({"headers": []}, "a request could not be looked at"),
    ],
    ids=["no path", "no type"],
)
def test_fault_is_logged_with_its_error_and_the_app_answers(
    request_scope: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(answered(wrapped(), request_scope)) == 2
    (record,) = caplog.records
    assert record.getMessage() == f"{message}; further faults like this are not logged"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


@pytest.mark.parametrize("kind", ["websocket", "lifespan", "new"])
def test_anything_but_a_request_is_passed_on_as_it_is(kind: str) -> None:
    given: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        given.append((scope, receive))
        await send({"type": "x"})

    request = {"type": kind, "path": "/", "headers": []}
    assert answered(wrapped(inner), request) == [{"type": "x"}]
    assert given == [(request, None)]
    assert given[0][0] is request


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ({"type": "lifespan.startup.complete"}, {"db": 7}),
        ({"type": "lifespan.startup.failed"}, None),
        ({"type": "lifespan.shutdown.complete"}, None),
    ],
    ids=lambda value: value["type"] if value and "type" in value else "",
)
def test_state_is_copied_once_the_app_has_started(message: Any, state: Any) -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["db"] = 7
        await send(message)
        scope["state"]["db"] = 8

    site = wrapped(inner)
    assert answered(site, {"type": "lifespan", "state": {}}) == [message]
    assert site.state == state
