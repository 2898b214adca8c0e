"""What the ASGI adapter reads of a request, and what it observes of the response (ASGI 3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters.asgi_request import ASGIRequest, key_with_defaults, request_of_scope
from sitemap_middleware.request_filter.reasons import COOKIE, FOREIGN_HOST
from sitemap_middleware.request_response import TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY, Sender

from ...support.recording import scope
from ...support.sample_sites import Clock

HTML = [(b"content-type", b"text/html")]


async def never_called(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("no request is sent to it")


@pytest.fixture(scope="module")
def site() -> Iterator[Any]:
    middleware = SitemapMiddleware(never_called, store="memory://")
    yield middleware
    middleware.close()


def request_of(site: Any, headers: Any = (), **changes: Any) -> ASGIRequest:
    live = scope(headers=list(headers), **changes)
    return request_of_scope(live, key_with_defaults(live), site)


def test_key_has_all_that_distinguishes_a_request() -> None:
    headers = [(b"accept", b"*/*"), (b"host", b"example.com"), (b"host", b"example.net")]
    whole = scope(path="/about", root_path="/shop", scheme="https", query_string=b"a=b", method="HEAD", headers=headers)
    assert key_with_defaults(whole) == ("/about", b"example.com", "https", "/shop", "HEAD", b"a=b")
    least = {"type": "http", "path": "/about", "method": "GET", "headers": []}
    assert key_with_defaults(least) == ("/about", b"", "http", None, "GET", None)


@pytest.mark.parametrize(
    ("root", "path", "below"),
    [
        ("", "/about", "/about"),
        ("/shop", "/shop/about", "/about"),
        ("/shop/", "/shop/about", "/about"),
        ("/shop", "/about", "/about"),
        ("/shop", "/shopping", "/shopping"),
        ("/shop", "/shop", "/shop"),
        ("/", "/about", "/about"),
    ],
)
def test_path_is_below_the_root(site: Any, root: str, path: str, below: str) -> None:
    assert request_of(site, root_path=root, path=path).path == below


def test_attributes_are_those_of_the_scope(site: Any) -> None:
    request = request_of(site, [(b"host", b"ex\xe4mple.com"), (b"user-agent", b"Ada")], root_path="/shop")
    assert (request.method, request.scheme, request.host, request.root) == ("GET", "http", "exämple.com", "/shop")
    assert request.user_agent == b"Ada"
    assert request_of(site).user_agent == b""
    assert (request.field_count, request.header_count) == (2, 2)
    assert not request.runs_probes_inline
    assert request.async_collector is not None


@pytest.mark.parametrize(
    ("root", "parameters", "is_dynamic"),
    [
        ("/en/shop", {"language": "en"}, True),
        ("/en/shop", {"prefix": "/en/"}, True),
        ("/7/shop", {"number": 7}, True),
        ("/shop", {"language": "en"}, False),
        ("/shop", {}, False),
        ("/shop", None, False),
        (None, {"language": "en"}, False),
    ],
)
def test_root_is_dynamic_if_it_contains_a_parameter_of_the_path(
    site: Any, root: str | None, parameters: Any, *, is_dynamic: bool
) -> None:
    assert request_of(site, root_path=root, path_params=parameters).has_dynamic_root is is_dynamic


@pytest.mark.parametrize(
    ("name", "is_forwarded"),
    [(b"x-forwarded-for", True), (b"CF-Ray", True), (b"via", True), (b"x-\xff", False), (b"accept", False)],
)
def test_headers_of_proxies_show_that_a_request_is_forwarded(site: Any, name: bytes, *, is_forwarded: bool) -> None:
    assert request_of(site, [(b"accept", b"1"), (name, b"1")]).is_forwarded is is_forwarded


@pytest.mark.parametrize(
    ("client", "address"), [(("10.0.0.1", 80), "10.0.0.1"), (None, ""), ((), ""), (("",), "")], ids=repr
)
def test_sender_is_the_client_and_its_headers(site: Any, client: Any, address: str) -> None:
    headers = [(b"x-real-ip", b"10.0.0.2")]
    assert request_of(site, headers, client=client).sender == Sender(address, tuple(headers))


def test_visitors_differ_by_their_agent_and_in_redirects_by_their_language(site: Any) -> None:
    def visitors(status: int) -> list[int]:
        headers = [
            [(b"user-agent", agent), (b"accept-language", language)]
            for agent, language in ((b"Ada", b"de"), (b"Ben\xff", b"de"), (b"Ada", b"fr"))
        ]
        return [request_of(site, pairs).visitor(status) for pairs in (*headers, [])]

    pages, redirects = visitors(403), visitors(302)
    assert pages[0] == pages[2]
    assert len(set(pages)) == 3
    assert redirects[0] == redirects[1]
    assert len(set(redirects)) == 3


def test_several_agents_are_joined_as_servers_of_wsgi_join_them(site: Any) -> None:
    first, second = (b"user-agent", b"Mozilla/5.0"), (b"user-agent", b"bingbot/2.0")
    assert request_of(site, [first, (b"accept", b"*/*"), second]).user_agent == b"Mozilla/5.0,bingbot/2.0"
    assert request_of(site, [(b"user-agent", b""), second]).user_agent == b"bingbot/2.0"
    of_both = request_of(site, [first, second]).visitor(403)
    assert of_both not in {request_of(site, [field]).visitor(403) for field in (first, second)}


def test_what_a_document_depends_on_is_text(site: Any) -> None:
    headers = [(b"if-none-match", b'"\xe4"'), (b"accept-encoding", b"gzip"), (b"accept", b"text/html")]
    assert request_of(site, headers).conditions == ("GET", "gzip", '"ä"', None)
    dated = [(b"if-modified-since", b"Mon, 23 Nov 2026 08:00:00 GMT")]
    assert request_of(site, dated).conditions == ("GET", None, None, "Mon, 23 Nov 2026 08:00:00 GMT")


def test_headers_of_a_probe_are_text_named_in_lower_case(site: Any) -> None:
    assert request_of(site, [(b"X-Real-IP", b"\xe4")]).decoded_headers() == [("x-real-ip", "ä")]


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, None),
        ({"client": None}, None),
        ({"client": ("10.0.0.1", 50000)}, None),
        ({"client": ("testclient", 50000)}, TEST_CLIENT_WAIT_SECONDS),
        ({"client": ["testclient", 50000]}, TEST_CLIENT_WAIT_SECONDS),
        ({"client": ("127.0.0.1", 123)}, TEST_CLIENT_WAIT_SECONDS),
        ({"client": ("testclient", 50000), WAIT_SECONDS_KEY: 7.0}, 7.0),
        ({WAIT_SECONDS_KEY: 7.0}, 7.0),
    ],
    ids=["server", "no client", "another client", "Starlette", "a list", "HTTPX", "a test of a command", "command"],
)
def test_request_waits_for_probes_that_nothing_else_would_make(site: Any, changes: Any, seconds: float | None) -> None:
    assert request_of(site, **changes).wait_seconds == seconds


def test_only_a_cookie_makes_a_request_personal(site: Any) -> None:
    assert request_of(site, [(b"host", b"localhost")]).ignore_reason() is None
    assert request_of(site, [(b"cookie", b"a=b")]).ignore_reason() is COOKIE


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (b"x-original-url", b"/other", None),
        (b"x-forwarded-host", b"shop.example", None),
        (b"x-forwarded-host", b"other.example", FOREIGN_HOST),
        (b"forwarded", b"host=other.example", FOREIGN_HOST),
        (b"forwarded", b"proto=https", None),
    ],
)
def test_headers_that_state_the_requested_url_are_found(name: bytes, value: bytes, reason: Any) -> None:
    shop: Any = SitemapMiddleware(never_called, store="memory://", base_url="https://shop.example")
    request = request_of(shop, [(b"host", b"shop.example"), (b"accept", b"text/html"), (name, value)])
    assert request.ignore_reason() is reason
    assert request.routing_headers == ((name, value),)
    plain = request_of(shop, [(b"host", b"shop.example")])
    assert (plain.ignore_reason(), plain.routing_headers) == (None, ())


def test_detached_request_is_equal_and_starts_jobs_from_any_thread(site: Any) -> None:
    async def run() -> None:
        request = request_of(site, [(b"host", b"localhost")])
        detached = request.detached()
        assert detached is not request
        attributes = ("adapter", "scope", "fields", "key")
        assert [getattr(detached, name) for name in attributes] == [getattr(request, name) for name in attributes]
        threads: list[threading.Thread] = []
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def job() -> None:
            threads.append(threading.current_thread())
            loop.call_soon_threadsafe(done.set)

        threading.Thread(target=detached.run_in_background, args=(job,)).start()
        async with asyncio.timeout(30):
            await done.wait()
        assert threads[0] is not threading.main_thread()

    asyncio.run(run())


# The response as it passes

PAGE = b"<!doctype html><title>Tea</title>"
NOINDEX = b"<meta name=robots content=noindex>"
START = {"type": "http.response.start", "status": 200, "headers": HTML}


def body(content: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def reason_after(*messages: Any, raises: bool = False, earlier: Any = ()) -> str:
    """Why the page is not listed once its app sent the messages; empty if it is listed."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in scope["answer"]:
            await send(message)
        if raises and scope["answer"] is messages:
            raise ValueError("the app's own")

    async def send(message: Any) -> None:
        pass

    clock = Clock()
    site: Any = SitemapMiddleware(app, store="memory://", include="/", clock=clock, list_unseen=False)
    for answer in (earlier, messages) if earlier else (messages,):
        try:
            asyncio.run(site(scope(answer=answer), None, send))
        except ValueError:
            assert raises
        site.flush()
        clock.pass_(3600)
    explanation = site.explain("/")
    return "" if explanation.listed else explanation.reason


GOOD = (START, body(PAGE))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (GOOD, ""),
        ((START, {"type": "http.response.body", "body": PAGE}), ""),
        ((START, body(PAGE, more=True), body(NOINDEX)), "noindex"),
        ((START, body(NOINDEX, more=True), {"type": "http.response.body"}), "noindex"),
        ((START, {"type": "http.response.debug", "info": {}}, body(NOINDEX)), "noindex"),
        ((START, {"type": "http.response.push", "path": "/x"}, body(NOINDEX)), "noindex"),
        (({"type": "http.response.start", "status": 404}, body(b"")), "404"),
        (({**START, "status": 404}, body(b"")), "404"),
    ],
    ids=["page", "one message", "two parts", "empty end", "debug", "push", "no headers", "404"],
)
def test_response_is_observed_whatever_its_messages(messages: Any, reason: str) -> None:
    found = reason_after(*messages)
    assert reason in found
    assert bool(reason) is bool(found)


@pytest.mark.parametrize(
    "skipped",
    [{"type": "http.response.zerocopysend", "file": 7}, {"type": "new", "body": b"x"}],
    ids=["zero copy", "unknown"],
)
def test_sample_is_dropped_if_a_part_may_be_missing(skipped: Any) -> None:
    assert "noindex" not in reason_after(START, body(NOINDEX, more=True), skipped, body(b""))


def test_error_before_the_end_retracts_the_response_and_one_after_it_does_not() -> None:
    gone = {**START, "status": 404}
    assert reason_after(gone, raises=True, earlier=GOOD) == ""
    assert reason_after(gone, body(b"", more=True), raises=True, earlier=GOOD) == ""
    assert "404" in reason_after(gone, body(b""), raises=True, earlier=GOOD)


def test_response_that_is_started_again_replaces_the_first_one() -> None:
    gone, broken = ({**START, "status": status} for status in (404, 500))
    assert reason_after(gone, broken, body(b""), earlier=GOOD) == ""
    assert "404" in reason_after(broken, gone, body(b""), earlier=GOOD)


@pytest.mark.parametrize(
    "messages",
    [
        GOOD,
        (START, {"type": "http.response.body", "body": PAGE}),
        (START, {"type": "http.response.body", "more_body": True}, *GOOD[1:]),
        (START, body(PAGE, more=True), {"type": "http.response.body"}),
        (START, body(PAGE[:5], more=True), body(PAGE[5:])),
    ],
    ids=["one part", "no more_body", "no body at first", "no body at last", "two parts"],
)
def test_sample_is_what_was_sent(messages: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async def send(message: Any) -> None:
        pass

    site: Any = SitemapMiddleware(app, store="memory://", include="/", clock=Clock())
    buffer = site.service.tracker.buffer
    buffer.interval = 3600.0
    asyncio.run(site(scope(), None, send))
    assert [response.body for response in buffer.take_batch()] == [None, PAGE]
    site.close()
