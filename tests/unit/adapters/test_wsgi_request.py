"""What the WSGI adapter reads of a request, and what it observes of the response (PEP 3333)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters.wsgi_request import WSGIRequest, request_of
from sitemap_middleware.request_filter.reasons import COOKIE, FOREIGN_HOST
from sitemap_middleware.request_response import (
    SYNC_SERVER_WAIT_SECONDS,
    TEST_CLIENT_WAIT_SECONDS,
    WAIT_SECONDS_KEY,
    Sender,
)

from ...support.sample_sites import Clock
from ...support.waiting import join_threads
from ...support.wire import RequestSpec, wsgi

ENVIRON: dict[str, Any] = {
    "PATH_INFO": "/about",
    "HTTP_HOST": "example.com",
    "wsgi.url_scheme": "https",
    "SCRIPT_NAME": "/shop",
    "REQUEST_METHOD": "GET",
    "QUERY_STRING": "a=b",
}


def never_called(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    raise AssertionError("no request is sent to it")


@pytest.fixture(scope="module")
def site() -> Iterator[Any]:
    middleware = SitemapMiddleware(never_called, store="memory://")
    yield middleware
    middleware.close()


def test_key_has_all_that_distinguishes_a_request(site: Any) -> None:
    expected = ("/about", "example.com", "https", "/shop", "GET", "a=b")
    assert request_of(ENVIRON, site).key == expected


@pytest.mark.parametrize(
    ("name", "position", "default"),
    [
        ("PATH_INFO", 0, ""),
        ("HTTP_HOST", 1, ""),
        ("wsgi.url_scheme", 2, None),
        ("SCRIPT_NAME", 3, ""),
        ("REQUEST_METHOD", 4, None),
        ("QUERY_STRING", 5, None),
    ],
)
def test_missing_item_of_the_environ_changes_only_its_place_in_the_key(
    site: Any, name: str, position: int, default: str | None
) -> None:
    key = request_of({other: value for other, value in ENVIRON.items() if other != name}, site).key
    whole = request_of(ENVIRON, site).key
    assert key == (*whole[:position], default, *whole[position + 1 :])


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("/about", "/about"),
        ("", ""),
        ("/caf\xc3\xa9", "/café"),
        ("/caf\xe9", "/caf\ufffd"),
        ("/\u20ac", "/?"),
        ("/\ud800", "/?"),
    ],
    ids=["ASCII", "empty", "UTF-8", "Latin-1", "no bytes", "a surrogate"],
)
def test_path_and_root_are_decoded_as_utf_8(site: Any, text: str, decoded: str) -> None:
    request = request_of({**ENVIRON, "PATH_INFO": text, "SCRIPT_NAME": "/shop"}, site)
    assert (request.path, request.root) == (decoded, "/shop")
    request = request_of({**ENVIRON, "SCRIPT_NAME": text}, site)
    assert (request.path, request.root) == ("/about", decoded)


def with_headers(site: Any, **headers: Any) -> WSGIRequest:
    return request_of({**ENVIRON, **{f"HTTP_{name.upper()}": value for name, value in headers.items()}}, site)


def test_attributes_are_those_of_the_environ(site: Any) -> None:
    request = with_headers(site, user_agent="Ada", accept="text/html")
    assert (request.method, request.scheme, request.host) == ("GET", "https", "example.com")
    assert request.user_agent == "Ada"
    assert request_of(ENVIRON, site).user_agent == ""
    assert (request.field_count, request.header_count) == (8, 3)
    assert not request.has_dynamic_root
    assert request.detached() is request
    assert request.async_collector is None


@pytest.mark.parametrize(
    ("name", "is_forwarded"),
    [
        ("HTTP_X_FORWARDED_FOR", True),
        ("HTTP_X_FORWARDED_ANYTHING", True),
        ("HTTP_CF_RAY", True),
        ("HTTP_VIA", True),
        ("HTTP_ACCEPT", False),
        ("VIA", False),
        ("XXXX_VIA", False),
    ],
)
def test_headers_of_proxies_show_that_a_request_is_forwarded(site: Any, name: str, *, is_forwarded: bool) -> None:
    assert request_of({**ENVIRON, name: "1"}, site).is_forwarded is is_forwarded


def test_sender_is_the_address_and_the_headers_of_proxies(site: Any) -> None:
    request = with_headers(site, x_real_ip="10.0.0.1", x_forwarded_for="10.0.0.2", accept="text/html")
    headers = (("x-forwarded-for", "10.0.0.2"), ("x-real-ip", "10.0.0.1"))
    assert request.sender == Sender("", headers)
    request.environ["REMOTE_ADDR"] = "10.0.0.3"
    assert request.sender == Sender("10.0.0.3", headers)
    request.environ["REMOTE_ADDR"] = None
    assert request.sender == Sender("", headers)


def test_visitors_differ_by_their_agent_and_in_redirects_by_their_language(site: Any) -> None:
    ada, ben = ({"user_agent": agent, "accept_language": "de"} for agent in ("Ada", "Ben"))
    french = {**ada, "accept_language": "fr"}

    def visitors(status: int) -> list[int]:
        return [with_headers(site, **headers).visitor(status) for headers in (ada, ben, french, {})]

    pages, redirects = visitors(403), visitors(302)
    assert pages[0] == pages[2]
    assert len(set(pages)) == 3
    assert redirects[0] == redirects[1]
    assert len(set(redirects)) == 3


def test_what_a_document_depends_on_is_read_from_the_environ(site: Any) -> None:
    request = with_headers(site, if_none_match='"a"', accept_encoding="gzip", accept="text/html")
    assert request.conditions == ("GET", "gzip", '"a"', None)


def test_headers_of_a_probe_are_text_named_in_lower_case(site: Any) -> None:
    request = with_headers(site, x_forwarded_for="10.0.0.2", odd=7)
    assert request.decoded_headers() == [("host", "example.com"), ("x-forwarded-for", "10.0.0.2")]


TEST_CLIENT = {"wsgi.multithread": False, "HTTP_USER_AGENT": "Werkzeug/3.1", "wsgi.input": BytesIO()}


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"wsgi.multithread": True}, None),
        ({"wsgi.multithread": False}, SYNC_SERVER_WAIT_SECONDS),
        (TEST_CLIENT, TEST_CLIENT_WAIT_SECONDS),
        ({**TEST_CLIENT, "REMOTE_ADDR": "127.0.0.1"}, TEST_CLIENT_WAIT_SECONDS),
        ({**TEST_CLIENT, "HTTP_USER_AGENT": "werkzeug/2.2.3"}, TEST_CLIENT_WAIT_SECONDS),
        ({**TEST_CLIENT, "HTTP_USER_AGENT": "Not Werkzeug/3.1"}, SYNC_SERVER_WAIT_SECONDS),
        ({**TEST_CLIENT, "SERVER_SOFTWARE": "a server"}, SYNC_SERVER_WAIT_SECONDS),
        ({**TEST_CLIENT, "wsgi.input": sys.stdin}, SYNC_SERVER_WAIT_SECONDS),
        ({**TEST_CLIENT, "REMOTE_ADDR": "10.0.0.1"}, SYNC_SERVER_WAIT_SECONDS),
        ({**TEST_CLIENT, "HTTP_X_FORWARDED_FOR": "10.0.0.1"}, SYNC_SERVER_WAIT_SECONDS),
        ({"wsgi.multithread": False, "wsgi.input": BytesIO()}, SYNC_SERVER_WAIT_SECONDS),
        ({**TEST_CLIENT, "wsgi.multithread": True}, None),
        ({"wsgi.multithread": False, "paste.testing": True}, TEST_CLIENT_WAIT_SECONDS),
        ({"wsgi.multithread": True, WAIT_SECONDS_KEY: 7.0}, 7.0),
        ({"wsgi.multithread": False, WAIT_SECONDS_KEY: 7.0}, 7.0),
        ({**TEST_CLIENT, WAIT_SECONDS_KEY: None}, None),
    ],
    ids=[
        "no server says so",
        "several threads",
        "one thread",
        "test client",
        "test client with an address",
        "old test client",
        "another client",
        "a server's software",
        "a server's input",
        "a remote client",
        "a forwarded request",
        "no agent",
        "test client with threads",
        "WebTest",
        "command with threads",
        "command",
        "command that does not wait",
    ],
)
def test_request_waits_for_probes_that_nothing_else_would_make(
    site: Any, environ: dict[str, Any], seconds: float | None
) -> None:
    request = request_of({**ENVIRON, **environ}, site)
    assert request.wait_seconds == seconds
    assert request.runs_probes_inline is (seconds is not None)


def test_background_job_runs_on_a_daemon_thread(site: Any) -> None:
    threads: list[threading.Thread] = []
    done = threading.Event()

    def job() -> None:
        threads.append(threading.current_thread())
        done.set()

    request_of(ENVIRON, site).run_in_background(job)
    assert done.wait(30)
    assert [(thread.name, thread.daemon) for thread in threads] == [("sitemap-background", True)]


@pytest.mark.parametrize("cookie", ["a=b", "", None])
def test_only_a_cookie_with_a_value_makes_a_request_personal(site: Any, cookie: str | None) -> None:
    request = request_of(ENVIRON if cookie is None else {**ENVIRON, "HTTP_COOKIE": cookie}, site)
    assert request.ignore_reason() is (COOKIE if cookie else None)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("HTTP_X_ORIGINAL_URL", "/other", None),
        ("HTTP_X_FORWARDED_HOST", "example.com", None),
        ("HTTP_X_FORWARDED_HOST", "other.example", FOREIGN_HOST),
        ("HTTP_FORWARDED", "host=other.example", FOREIGN_HOST),
        ("HTTP_FORWARDED", "proto=https", None),
    ],
)
def test_headers_that_state_the_requested_url_are_found(name: str, value: str, reason: Any) -> None:
    shop: Any = SitemapMiddleware(never_called, store="memory://", base_url="https://example.com")
    request = request_of({**ENVIRON, name: value}, shop)
    assert request.ignore_reason() is reason
    assert request.routing_headers == ((name, value),)
    plain = request_of(ENVIRON, shop)
    assert (plain.ignore_reason(), plain.routing_headers) == (None, ())


HTML = [("Content-Type", "text/html")]
STARTS: dict[str, Any] = {
    "by position": lambda start, status: start(status, HTML),
    "with a third argument": lambda start, status: start(status, HTML, None),
    "by name": lambda start, status: start(status=status, headers=HTML),
    "by the name of PEP 3333": lambda start, status: start(status=status, response_headers=HTML),
    "headers by name": lambda start, status: start(status, headers=HTML),
    "exc_info by name": lambda start, status: start(status, HTML, exc_info=None),
}


def lenient(app: Any) -> Any:
    """A server that takes the headers by either name."""

    def server(environ: dict[str, Any], start_response: Any) -> Any:
        def start(status: str, headers: Any = None, exc_info: Any = None, *, response_headers: Any = None) -> Any:
            return start_response(status, headers or response_headers)

        return app(environ, start)

    return server


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_response_is_observed_however_it_is_started(start: Any) -> None:
    status = "200 OK"

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start(start_response, status)
        return [b"<!doctype html><title>Tea</title>"]

    site: Any = SitemapMiddleware(app, store="memory://", include="/", clock=Clock(), list_unseen=False)
    wsgi(lenient(site), RequestSpec("/"), validate=False)
    assert site.explain("/").listed
    status = "404 Not Found"
    wsgi(lenient(site), RequestSpec("/"), validate=False)
    assert "404" in site.explain("/").reason


def test_failing_background_job_is_logged(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    def job() -> None:
        raise ValueError("a fault of ours")

    request_of(ENVIRON, site).run_in_background(job)
    join_threads("sitemap-background")
    (record,) = caplog.records
    assert record.getMessage() == "a background job of the sitemap failed"
    assert str((record.exc_info or (None, None))[1]) == "a fault of ours"
