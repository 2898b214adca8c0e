"""An app behaves the same with the middleware for any calls it makes to its server, in any order (Hypothesis).

`HYPOTHESIS_EXAMPLES=50000 python3 -m pytest tests/integration/test_app_calls.py` runs each with as many.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitemap_middleware import SitemapMiddleware

from ..support.recording import ASGIServer, Record, WSGIServer, environ, scope
from ..support.sample_sites import Clock


class Fault(Exception):
    """The app's own."""


EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))
MANY = settings(max_examples=EXAMPLES) if EXAMPLES else settings()

TEXT = st.one_of(
    st.sampled_from(["content-type", "text/html", "Content-Length", "5", "link", "<x>; rel=canonical", "noindex", ""]),
    st.text(max_size=5),
)
ODD = st.one_of(st.none(), st.integers(-1, 10**12), st.floats(), st.just(()), st.lists(st.none(), max_size=2))
VALUE = st.one_of(TEXT, TEXT.map(lambda text: text.encode("utf-8", "replace")), ODD)
PAIR = st.one_of(st.tuples(VALUE, VALUE), st.tuples(VALUE, VALUE).map(list), ODD)
PAIRS = st.one_of(
    st.just([("Content-Type", "text/html")]),
    st.just([(b"content-type", b"text/html")]),
    st.lists(PAIR, max_size=3),
    st.lists(PAIR, max_size=3).map(tuple),
    ODD,
)
STATUS = st.one_of(st.sampled_from(["200 OK", "404 Not Found", "304 Not Modified", "x", 200, 404]), VALUE)
CHUNK = st.one_of(st.sampled_from([b"<p>One", b"", b"<title>Two"]), st.binary(max_size=5), VALUE)
WSGI_CALL = st.one_of(
    st.tuples(st.just("start"), STATUS, PAIRS, st.sampled_from(["", "place", "name", "None", "None by name", "names"])),
    st.tuples(st.sampled_from(["write", "yield"]), CHUNK),
    st.tuples(st.just("fail")),
)
KINDS = st.sampled_from(["generator", "list", "tuple", "iterator"])
TYPES = st.sampled_from([f"http.response.{kind}" for kind in ("start", "body", "trailers", "pathsend", "new")])
MESSAGE = st.one_of(
    st.fixed_dictionaries({"type": st.just("http.response.start")}, optional={"status": STATUS, "headers": PAIRS}),
    st.fixed_dictionaries(
        {"type": st.just("http.response.body")}, optional={"body": CHUNK, "more_body": st.one_of(st.booleans(), ODD)}
    ),
    st.fixed_dictionaries(
        {}, optional={"type": st.one_of(TYPES, ODD), "status": STATUS, "headers": PAIRS, "body": CHUNK}
    ),
)
TIMES = 3
"""How often each app is asked: first, again in the same second, and a second later."""


def wsgi_app(calls: list[Any], kind: str, catches: bool) -> Any:
    def body_chunks(start_response: Any, calls: list[Any]) -> Iterator[Any]:
        write = None
        for call in calls:
            try:
                if call[0] == "start":
                    write = started(start_response, *call[1:])
                elif call[0] == "write" and write is not None:
                    write(call[1])
                elif call[0] == "yield":
                    yield call[1]
                elif call[0] == "fail":
                    fail()
            except Exception:
                if not catches:
                    raise

    def app(_: Any, start_response: Any) -> Any:
        if kind == "generator":
            return body_chunks(start_response, calls)
        chunks = list(body_chunks(start_response, calls))
        return {"list": list, "tuple": tuple, "iterator": iter}[kind](chunks)

    return app


def fail() -> None:
    raise Fault("the app's own")


def started(start_response: Any, status: Any, headers: Any, exc_info: str) -> Any:
    error = Fault, Fault("caught"), None
    headers = list(headers) if isinstance(headers, list) else headers
    if exc_info in ("place", "None"):
        return start_response(status, headers, error if exc_info == "place" else None)
    if exc_info in ("name", "None by name"):
        return start_response(status, headers, exc_info=error if exc_info == "name" else None)
    return start_response(status=status, headers=headers) if exc_info else start_response(status, headers)


class Ours:
    """One middleware for all examples, which knows no page at the beginning of each."""

    def __init__(self, app: Any) -> None:
        self.clock = Clock()
        self.called: Any = None
        options: dict[str, Any] = {"store": "memory://", "include": "/", "verify": False, "robots": False}
        self.site = SitemapMiddleware(app(self), clock=self.clock, **options)
        self.site.service.tracker.buffer.interval = 3600.0  # its thread draws random numbers, as Hypothesis does

    def around(self, app: Any) -> Any:
        self.called = app
        self.site.service.tracker.forget()
        return self.site


def asgi(ours: Ours) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await ours.called(scope, receive, send)

    return app


def wsgi(ours: Ours) -> Any:
    def app(environ: Any, start_response: Any) -> Any:
        return ours.called(environ, start_response)

    return app


@pytest.fixture(scope="module")
def sites() -> Iterator[dict[str, Ours]]:
    wrappers = {"wsgi": Ours(wsgi), "asgi": Ours(asgi)}
    yield wrappers
    for ours in wrappers.values():
        ours.site.close()


@MANY
@given(calls=st.lists(WSGI_CALL, max_size=6), kind=KINDS, catches=st.booleans(), most=st.integers(1, 4))
def test_any_calls_of_a_wsgi_app_reach_the_server_as_without_us(
    sites: Any, calls: Any, kind: str, catches: bool, most: int
) -> None:
    app = wsgi_app(calls, kind, catches)
    site, clock = sites["wsgi"].around(app), sites["wsgi"].clock
    bare: Record = []
    ours: Record = []
    for number in range(TIMES):
        WSGIServer(bare).run(app, environ(), most)
        WSGIServer(ours).run(site, environ(), most)
        clock.pass_(number)
    assert repr(ours) == repr(bare)  # a NaN is not equal to itself


@MANY
@given(messages=st.lists(MESSAGE, max_size=6), catches=st.booleans(), leaves_after=st.integers(1, 6))
def test_any_asgi_messages_reach_the_server_unchanged(
    sites: Any, messages: Any, catches: bool, leaves_after: int
) -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        for message in messages:
            try:
                await send(message)
            except Exception:
                if not catches:
                    raise

    async def exchanges(app: Any, record: Record, clock: Clock) -> None:
        for number in range(TIMES):
            await ASGIServer(record, leaves_after=leaves_after).run(app, scope())
            clock.pass_(number)

    bare: Record = []
    ours: Record = []
    asyncio.run(exchanges(app, bare, Clock()))
    asyncio.run(exchanges(sites["asgi"].around(app), ours, sites["asgi"].clock))
    assert repr(ours) == repr(bare)
