"""The scope of the middleware's own requests to an ASGI app: the connection of the live request, and no visitor."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters import in_process_asgi_client
from sitemap_middleware.adapters.asgi_request import key_with_defaults, request_of_scope
from sitemap_middleware.adapters.in_process_asgi_client import ResponseCollector, probe_scope, request_app
from sitemap_middleware.adapters.probe_headers_without_visitor import PROBE_ACCEPT, PROBE_CLIENT_ADDRESS
from sitemap_middleware.request_response import PROBE_USER_AGENT, ProbeRequest, Response

from ...support.probe_bodies import BODIES, FILM, TEXT

CONNECTION: dict[str, Any] = {
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "scheme": "https",
    "server": ("localhost", 443),
    "app": object(),
}
VISIT: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/sh\xf6p/sitemap.xml",
    "raw_path": b"/sh%C3%B6p/sitemap.xml",
    "root_path": "/sh\xf6p",
    "query_string": b"a=b",
    "headers": [(b"host", b"example.com"), (b"cookie", b"a=b"), (b"user-agent", b"Ada"), (b"accept", b"text/plain")],
    "client": ("10.0.0.1", 50000),
    "user": object(),
    "session": {"a": "b"},
    "extensions": {"http.response.pathsend": {}},
}
HEADERS = [
    (b"user-agent", PROBE_USER_AGENT.encode()),
    (b"accept", PROBE_ACCEPT.encode()),
    (b"host", b"example.com"),
]


async def app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("no request is sent to it")


def scope_of(probe: ProbeRequest, live: dict[str, Any], state: Any = None) -> dict[str, Any]:
    request = request_of_scope(live, key_with_defaults(live), SitemapMiddleware(app, store="memory://"))
    return dict(probe_scope(probe, request, live, request.decoded_headers(), "", state=state))


def test_scope_has_the_connection_and_nothing_of_the_visitor() -> None:
    assert scope_of(ProbeRequest("/caf\xe9"), CONNECTION | VISIT) == CONNECTION | {
        "type": "http",
        "method": "GET",
        "path": "/sh\xf6p/caf\xe9",
        "raw_path": b"/sh%C3%B6p/caf%C3%A9",
        "root_path": "/sh\xf6p",
        "query_string": b"",
        "headers": HEADERS,
        "client": (PROBE_CLIENT_ADDRESS, 50000),
        "extensions": {},
    }


def test_connection_that_the_server_does_not_describe_is_not_made_up() -> None:
    scope = scope_of(ProbeRequest("/"), {**VISIT, "client": None})
    assert not CONNECTION.keys() & scope.keys()
    assert scope["client"] == (PROBE_CLIENT_ADDRESS, 0)


def test_address_is_that_of_the_proxy_if_there_is_one() -> None:
    headers = [*VISIT["headers"], (b"x-forwarded-for", b"10.0.0.9")]
    assert scope_of(ProbeRequest("/"), CONNECTION | VISIT | {"headers": headers})["client"] == ("10.0.0.1", 50000)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_scheme_replaces_that_of_the_connection(scheme: str) -> None:
    scope = scope_of(ProbeRequest("/", scheme=scheme), CONNECTION | VISIT)
    assert scope["scheme"] == scheme
    assert (b"x-forwarded-proto", scheme.encode()) in scope["headers"]


@pytest.mark.parametrize(
    ("live", "state", "expected"),
    [({}, None, None), ({"state": {"user": 7}}, None, {}), ({}, {"db": 7}, {"db": 7}), ({"state": {}}, {}, {})],
    ids=["no state", "state of the visitor", "state of the lifespan", "empty state"],
)
def test_state_is_a_copy_of_the_lifespans(live: Any, state: Any, expected: Any) -> None:
    scope = scope_of(ProbeRequest("/"), VISIT | live, state)
    assert scope.get("state") == expected
    assert scope.get("state") is None or scope["state"] is not state


def test_request_has_no_body_and_its_client_leaves_after_the_response() -> None:
    received: list[Any] = []

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        received.append(await receive())
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"a"})
        received.append(await receive())

    assert asked(listening) == Response(200, [], b"a")
    assert received == [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]


def asked(app: Any, *, allow_truncated: bool = False) -> Response | None:
    future: Future[Response | None] = Future()
    asyncio.run(asyncio.wait_for(request_app(app, {"type": "http"}, future, allow_truncated=allow_truncated), 30))
    return future.result(0)


@BODIES
def test_body_is_read_up_to_its_limit(
    media_type: str, parts: list[bytes], body: bytes | None, *, allow_truncated: bool
) -> None:
    async def sending(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 203, "headers": [(b"Content-Type", media_type.encode())]})
        for part in parts:
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    headers = [("content-type", media_type)]
    expected = None if body is None else Response(203, headers, body)
    assert asked(sending, allow_truncated=allow_truncated) == expected


@pytest.mark.parametrize(
    ("messages", "body"),
    [
        ([], None),
        ([{"type": "http.response.start", "status": 200, "headers": [(b"content-type", TEXT.encode())]}], None),
        ([{"type": "http.response.start", "status": 200, "headers": [(b"content-type", FILM.encode())]}], b""),
    ],
    ids=["no start", "text", "film"],
)
def test_of_an_app_that_hangs_only_the_headers_of_a_film_count(
    messages: Any, body: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process_asgi_client, "PROBE_TIMEOUT_SECONDS", 0.01)

    async def hanging(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)
        await asyncio.sleep(60)

    expected = None if body is None else Response(200, [("content-type", FILM)], body)
    assert asked(hanging, allow_truncated=True) == expected


def test_error_names_both_statuses_of_a_response_that_is_started_twice() -> None:
    async def send_twice() -> None:
        collector = ResponseCollector()
        for status in (200, 404):
            await collector.send({"type": "http.response.start", "status": status})

    with pytest.raises(RuntimeError, match="the app started a response of status 404 after one of 200"):
        asyncio.run(send_twice())
