"""The environ of the middleware's own requests to a WSGI app: the connection of the live request, and no visitor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from io import BytesIO
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters import in_process_wsgi_client
from sitemap_middleware.adapters.in_process_wsgi_client import probe_environ, resolve_response
from sitemap_middleware.adapters.probe_headers_without_visitor import PROBE_ACCEPT, PROBE_CLIENT_ADDRESS
from sitemap_middleware.adapters.wsgi_request import request_of
from sitemap_middleware.request_response import PROBE_USER_AGENT, ProbeRequest, Response

from ...support.probe_bodies import BODIES, FILM, TEXT

CONNECTION: dict[str, Any] = {
    "HTTPS": "on",
    "REMOTE_PORT": "50000",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "443",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "SERVER_SOFTWARE": "a server",
    "wsgi.errors": object(),
    "wsgi.file_wrapper": object(),
    "wsgi.input_terminated": True,
    "wsgi.multiprocess": False,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.url_scheme": "https",
    "wsgi.version": (1, 0),
}
VISIT: dict[str, Any] = {
    "REQUEST_METHOD": "POST",
    "PATH_INFO": "/sitemap.xml",
    "SCRIPT_NAME": "/sh\xc3\xb6p",
    "QUERY_STRING": "a=b",
    "HTTP_HOST": "example.com",
    "HTTP_COOKIE": "a=b",
    "HTTP_USER_AGENT": "Ada",
    "HTTP_ACCEPT": "application/json",
    "REMOTE_ADDR": "10.0.0.1",
    "REMOTE_USER": "ada",
    "CONTENT_TYPE": "text/plain",
    "CONTENT_LENGTH": "7",
    "wsgi.input": BytesIO(b"visitor"),
    "werkzeug.request": object(),
}


def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return []


def environ_of(probe: ProbeRequest, live: dict[str, Any]) -> dict[str, Any]:
    request = request_of(live, SitemapMiddleware(app, store="memory://"))
    return probe_environ(probe, request, live, request.decoded_headers(), "")


def test_environ_has_the_connection_and_nothing_of_the_visitor() -> None:
    environ = environ_of(ProbeRequest("/caf\xe9"), CONNECTION | VISIT)
    body = environ.pop("wsgi.input")
    assert body.read() == b""
    assert environ == CONNECTION | {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/caf\xc3\xa9",
        "SCRIPT_NAME": "/sh\xc3\xb6p",
        "QUERY_STRING": "",
        "HTTP_HOST": "example.com",
        "HTTP_USER_AGENT": PROBE_USER_AGENT,
        "HTTP_ACCEPT": PROBE_ACCEPT,
        "REMOTE_ADDR": PROBE_CLIENT_ADDRESS,
    }


def test_connection_that_the_server_does_not_describe_is_not_made_up() -> None:
    environ = environ_of(ProbeRequest("/"), VISIT)
    assert not CONNECTION.keys() & environ.keys()


def test_address_is_that_of_the_proxy_if_there_is_one() -> None:
    environ = environ_of(ProbeRequest("/"), CONNECTION | VISIT | {"HTTP_X_FORWARDED_FOR": "10.0.0.9"})
    assert (environ["REMOTE_ADDR"], environ["HTTP_X_FORWARDED_FOR"]) == ("10.0.0.1", PROBE_CLIENT_ADDRESS)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_scheme_replaces_that_of_the_connection(scheme: str) -> None:
    environ = environ_of(ProbeRequest("/", scheme=scheme), CONNECTION | VISIT)
    assert (environ["wsgi.url_scheme"], environ["HTTP_X_FORWARDED_PROTO"], "HTTPS" in environ) == (
        *(scheme, scheme),
        False,
    )


def test_interrupt_ends_the_server_on_the_main_thread() -> None:
    def interrupted(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        raise KeyboardInterrupt

    future: Future[Any] = Future()
    with pytest.raises(KeyboardInterrupt):
        resolve_response(interrupted, {}, future, allow_truncated=False)
    assert future.exception(0) is not None


@BODIES
def test_body_is_read_up_to_its_limit(
    media_type: str, parts: list[bytes], body: bytes | None, *, allow_truncated: bool
) -> None:
    is_closed: list[bool] = []

    def chunked(_: Any, start_response: Any) -> Iterator[bytes]:
        start_response("500 No", [])
        start_response("203 Yes", [("Content-Type", media_type)], (None, None, None))
        try:
            yield from parts
        finally:
            is_closed.append(True)

    future: Future[Response | None] = Future()
    resolve_response(chunked, {}, future, allow_truncated=allow_truncated)
    headers = [("content-type", media_type)]
    assert future.result(0) == (None if body is None else Response(203, headers, body))
    assert is_closed == [True]


@pytest.mark.parametrize(("media_type", "body"), [(TEXT, None), (FILM, b"")])
def test_slow_text_does_not_count_and_of_a_slow_film_the_headers_do(
    media_type: str, body: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process_wsgi_client, "PROBE_TIMEOUT_SECONDS", -1)

    def slow(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", media_type)])
        return [b"a"]

    future: Future[Response | None] = Future()
    resolve_response(slow, {}, future, allow_truncated=True)
    assert future.result(0) == (None if body is None else Response(200, [("content-type", media_type)], body))
