"""Apps of every shape behave as without us: call by call, byte by byte, error by error, and in the same order.

Each is asked five times, bare and wrapped: first, again in the same second, again
a second later, by HEAD, and once while it fails. The records of
`tests.support.recording` must be equal.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any
from wsgiref.validate import validator

import pytest
from hypothesis import settings

from sitemap_middleware import SitemapMiddleware

from ..apps import asgi_shapes, framework_apps, wsgi_shapes
from ..apps.wsgi_layers import LAYERS
from ..conftest import EXAMPLES, Tally
from ..support.documents import locs
from ..support.recording import ASGIServer, Record, WSGIServer, environ, scope, sent_by_wsgiref, unclosed
from ..support.sample_sites import Clock
from ..support.wire import RequestSpec, asgi, wsgi

EXCHANGES = (
    ("GET", 0, False),
    ("GET", 0, False),
    ("GET", 1, False),
    ("HEAD", 0, False),
    ("GET", 0, True),
    ("GET", 0, False),
)
"""Method, seconds after the one before, and whether the app fails; after a failure it is well again."""

Wrap = Callable[[Any], Any]


class Ours:
    """Wraps apps in the middleware, with a clock that a test moves; and does away with what it made."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.stack = ExitStack()

    def __call__(self, app: Any) -> Any:
        site = SitemapMiddleware(app, store="memory://", include="/", verify=False, robots=False, clock=self.clock)
        self.stack.callback(site.close)
        return site

    def close(self) -> None:
        """Do away with what was made so far: each has a thread."""
        self.stack.close()


@pytest.fixture
def ours() -> Iterator[Ours]:
    wrapper = Ours()
    yield wrapper
    wrapper.close()


def arranged(layer: Wrap, ours: Wrap) -> dict[str, Wrap]:
    """The layer alone, and us at each of its sides."""
    return {
        "around": lambda app: ours(_two(layer(app))),
        "within": lambda app: layer(ours(app)),
        "both": lambda app: ours(_two(layer(ours(app)))),
    }


def _two(app: Any) -> Any:
    """An app whose signature shows its protocol, whatever it wraps."""

    def two(environ: Any, start_response: Any) -> Any:
        return app(environ, start_response)

    return two


def wsgi_record(make: Callable[[wsgi_shapes.Shape], Any], wrap: Wrap, clock: Clock, most: int = 100) -> Record:
    record: Record = []
    shape = wsgi_shapes.Shape(record)
    app = wrap(make(shape))
    for method, seconds, fails in EXCHANGES:
        clock.pass_(seconds)
        shape.fails = fails
        record.append(("request", method, fails))
        WSGIServer(record).run(app, environ(method), most)
    return record


def faults(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the middleware logged, except the warning that it is installed twice."""
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("sitemap")]
    return [line for line in messages if not line.startswith("two SitemapMiddleware")]


SHAPES = wsgi_shapes.VALID | wsgi_shapes.WRONG


def some_of(shapes: dict[str, Any]) -> dict[str, Any]:
    """All shapes in the newest environment, every fourth in the others."""
    all_of_them = settings.default.max_examples > EXAMPLES["few"]
    return shapes if all_of_them else dict(islice(shapes.items(), 0, None, 4))


IN_PARTS = pytest.mark.parametrize(
    "part", ["every fourth shape", pytest.param("the other shapes", marks=pytest.mark.uncovered)]
)


def part_of(shapes: dict[str, Any], part: str) -> dict[str, Any]:
    wanted = part == "every fourth shape"
    return {name: shape for number, (name, shape) in enumerate(shapes.items()) if (number % 4 == 0) is wanted}


@pytest.mark.slow
@IN_PARTS
@pytest.mark.parametrize("layer", LAYERS)
def test_wsgi_app_of_any_shape_behaves_the_same_when_wrapped(
    layer: str, part: str, ours: Ours, tally: Tally, caplog: pytest.LogCaptureFixture
) -> None:
    shapes = wsgi_shapes.VALID if layer == "Werkzeug's lint" else SHAPES  # with others it fails by itself
    for name, make in part_of(shapes, part).items():
        bare = wsgi_record(make, LAYERS[layer], Clock())
        assert sum(event[0] == "request" for event in bare) == len(EXCHANGES)
        for place, wrap in arranged(LAYERS[layer], ours).items():
            assert wsgi_record(make, wrap, ours.clock) == bare, f"{name}, {place}"
            ours.close()
            tally.count(exchanges=len(EXCHANGES))
    assert not faults(caplog), "no fault of the app's is logged as one of ours"


@pytest.mark.parametrize("most", [1, 2])
def test_client_that_leaves_has_the_body_closed_the_same(most: int, ours: Ours, tally: Tally) -> None:
    for name, make in some_of(SHAPES).items():
        bare = wsgi_record(make, LAYERS["none"], Clock(), most)
        assert wsgi_record(make, ours, ours.clock, most) == bare, name
        ours.close()
        tally.count(exchanges=len(EXCHANGES))


@pytest.mark.parametrize("function", [False, True], ids=["a class", "a function"])
def test_file_wrapper_of_the_server_is_recognised_the_same(*, function: bool, ours: Ours) -> None:
    bodies: list[Any] = []
    request_environ = environ()
    if function:
        request_environ["wsgi.file_wrapper"] = lambda file, *_: file

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "text/html")])
        bodies.append(environ["wsgi.file_wrapper"](io.BytesIO(b"A page."), 8192))
        return bodies[0]

    assert ours(app)(request_environ, lambda *_: None) is bodies[0]


@IN_PARTS
@pytest.mark.parametrize("layer", ["none", "textbook", "looking"])
def test_wsgiref_sends_the_same_bytes_when_wrapped(layer: str, part: str, ours: Ours, tally: Tally) -> None:
    for name, make in part_of(SHAPES, part).items():
        if "Stop" in name and "Iteration" not in name:
            continue  # it ends the server
        sent = []
        for wrap in (LAYERS[layer], *arranged(LAYERS[layer], ours).values()):
            shape = wsgi_shapes.Shape([])
            app = wrap(make(shape))
            sent.append([])
            for method, seconds, fails in EXCHANGES:
                ours.clock.pass_(seconds)
                shape.fails = fails
                sent[-1].append(sent_by_wsgiref(app, environ(method)))
        assert sent[1:] == [sent[0]] * 3, name
        ours.close()
        tally.count(exchanges=3 * len(EXCHANGES))


@pytest.mark.parametrize("name", wsgi_shapes.VALID)
def test_validator_accepts_valid_wrapped_apps(name: str, ours: Ours) -> None:
    shape = wsgi_shapes.Shape([])
    inside = validator(wsgi_shapes.VALID[name](shape))
    app = validator(ours(_two(inside)))
    for method, seconds, _ in EXCHANGES[:3]:
        ours.clock.pass_(seconds)
        body = app(environ(method), lambda *_: lambda _: None)
        list(body)
        body.close()


class Attributed(wsgi_shapes.Closed):
    kind = "own"


def test_layers_treat_the_body_as_the_apps_own(ours: Ours) -> None:
    body: Any = Attributed(wsgi_shapes.Shape([]))
    site = ours(wsgi_shapes.returning(lambda _: body)(wsgi_shapes.Shape([])))
    wrapped_body = site(environ(), lambda *_: None)
    assert wrapped_body is not body
    assert wrapped_body.kind == "own"
    wrapped_body.kind = "changed"
    assert body.kind == "changed"
    del wrapped_body.kind
    assert body.kind == wrapped_body.kind == "own"
    chunks = iter(wrapped_body)
    assert chunks.gi_frame is not None
    assert iter(wrapped_body) is not chunks
    assert b"".join(wrapped_body) == b"".join(wsgi_shapes.PARTS)


def test_environ_mutated_by_the_app_is_harmless(ours: Ours) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        environ[None] = environ[5] = object()
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"A page."]

    site = ours(app)
    for _ in range(2):
        record: Record = []
        WSGIServer(record).run(site, environ())
        assert record[-1] == ("write", b"A page.")


@pytest.mark.parametrize("spoilt", [{"PATH_INFO": None}, {"PATH_INFO": []}, {"HTTP_HOST": {}}], ids=str)
def test_a_request_that_cannot_be_looked_at_is_the_apps(
    spoilt: dict[str, Any], ours: Ours, caplog: pytest.LogCaptureFixture
) -> None:
    record: Record = []
    site = ours(wsgi_shapes.VALID["a list"](wsgi_shapes.Shape(record)))
    for _ in range(2):
        WSGIServer(record).run(site, {**environ(), **spoilt})
    assert [event for event in record if event[0] == "write"] == [("write", part) for part in wsgi_shapes.PARTS] * 2
    assert len(caplog.records) <= 1


class Refusing(logging.Filter):
    def filter(self, _: Any) -> bool:
        raise RuntimeError("a filter of the app's")


def test_failing_log_filter_is_harmless(ours: Ours) -> None:
    record: Record = []
    log, refusing = logging.getLogger("sitemap_middleware"), Refusing()
    log.addFilter(refusing)
    try:
        WSGIServer(record).run(ours(wsgi_shapes.VALID["a list"](wsgi_shapes.Shape(record))), environ(path=None))
    finally:
        log.removeFilter(refusing)
    assert record[-1] == ("write", wsgi_shapes.PARTS[1])


@pytest.mark.parametrize("scope_", [{"type": "http", "headers": iter([])}, {"no": "type"}], ids=["headers", "type"])
def test_a_scope_that_cannot_be_looked_at_is_the_apps(scope_: dict[str, Any], ours: Ours) -> None:
    record: Record = []
    asyncio.run(ASGIServer(record).run(ours(asgi_shapes.SHAPES["one body"](asgi_shapes.Shape(record))), scope_))
    assert record[-2]["body"] == b"".join(wsgi_shapes.PARTS)


NOINDEX = (b'<!doctype html><title>A page</title><meta name="robots" content="noindex">', b"<p>Words of it.")

UNREAD = {
    "the server's file wrapper",  # the server sends it by itself
    "a list of none",
    "a list of an own kind",  # gives another page
    "not modified",
    "started again by place",  # a 500 in the end
    "started again three times",
    "started again and fine",  # as above, with another body
}


@pytest.mark.parametrize("layer", ["none", "textbook", "as a generator", "looking", "collecting"])
def test_robots_meta_is_read_from_any_kind_of_body(layer: str, ours: Ours) -> None:
    for name in sorted(wsgi_shapes.VALID.keys() - UNREAD):
        make = SHAPES[name]
        site = ours(_two(LAYERS[layer](make(wsgi_shapes.Shape([], NOINDEX)))))
        WSGIServer([]).run(site, environ())
        site.flush()
        assert wsgi(site, RequestSpec("/sitemap.xml")).status == 404, name
        ours.close()


@pytest.mark.parametrize("name", framework_apps.WSGI)
def test_framework_behaves_the_same_when_wrapped(name: str, ours: Ours, tally: Tally) -> None:
    app, paths = framework_apps.WSGI[name]()
    for layer in ("none", "textbook", "Werkzeug's profiler"):
        records = []
        for wrap in (LAYERS[layer], *arranged(LAYERS[layer], ours).values()):
            wrapped, record = wrap(app), []
            for path in paths:
                for method, seconds, _ in EXCHANGES:
                    ours.clock.pass_(seconds)
                    record.append((path, method))
                    WSGIServer(record).run(wrapped, environ(method, path))
                    tally.count(exchanges=1)
            records.append(record)
        ours.close()
        for record in records[1:]:
            assert record == records[0], layer


# ASGI


def asgi_record(make: Callable[[asgi_shapes.Shape], Any], wrap: Wrap, clock: Clock, leaves_after: int = 100) -> Record:
    record: Record = []
    shape = asgi_shapes.Shape(record)
    app = wrap(make(shape))
    for method, seconds, fails in EXCHANGES:
        clock.pass_(seconds)
        shape.fails = fails
        record.append(("request", method, fails))
        asyncio.run(ASGIServer(record, leaves_after=leaves_after).run(app, scope(method)))
    return record


@pytest.mark.slow
@IN_PARTS
@pytest.mark.parametrize("layer", asgi_shapes.LAYERS)
def test_asgi_app_of_any_shape_behaves_the_same_when_wrapped(
    layer: str, part: str, ours: Ours, tally: Tally, caplog: pytest.LogCaptureFixture
) -> None:
    wrap, shapes = asgi_shapes.LAYERS[layer], part_of(asgi_shapes.SHAPES, part)
    with unclosed() as left_bare:
        bare = {name: asgi_record(make, wrap, Clock()) for name, make in shapes.items()}
    for place, arrangement in arranged_asgi(wrap, ours).items():
        with unclosed() as left:
            for name, make in shapes.items():
                assert asgi_record(make, arrangement, ours.clock) == bare[name], f"{name}, {place}"
                ours.close()
                tally.count(exchanges=len(EXCHANGES))
        assert left == left_bare, place
    assert not faults(caplog), "no fault of the app's is logged as one of ours"


def arranged_asgi(layer: Wrap, ours: Wrap) -> dict[str, Wrap]:
    return {
        "around": lambda app: ours(layer(app)),
        "within": lambda app: layer(ours(app)),
        "both": lambda app: ours(layer(ours(app))),
    }


@pytest.mark.parametrize("leaves_after", [0, 1, 2])
def test_a_client_that_leaves_an_asgi_app_is_the_apps_to_hear_of(leaves_after: int, ours: Ours, tally: Tally) -> None:
    for name, make in some_of(asgi_shapes.SHAPES).items():
        bare = asgi_record(make, lambda app: app, Clock(), leaves_after)
        assert asgi_record(make, ours, ours.clock, leaves_after) == bare, name
        ours.close()
        tally.count(exchanges=len(EXCHANGES))


@pytest.mark.parametrize("name", asgi_shapes.READ)
def test_robots_meta_is_read_however_an_asgi_page_is_sent(name: str, ours: Ours) -> None:
    site = ours(asgi_shapes.SHAPES[name](asgi_shapes.Shape([], NOINDEX)))
    asyncio.run(ASGIServer([]).run(site, scope()))
    site.flush()
    assert asgi(site, RequestSpec("/sitemap.xml")).status == 404


@pytest.mark.parametrize("name", asgi_shapes.UNREAD)
def test_incomplete_body_is_not_read(name: str, ours: Ours) -> None:
    site = ours(asgi_shapes.SHAPES[name](asgi_shapes.Shape([], NOINDEX)))
    asyncio.run(ASGIServer([]).run(site, scope()))
    site.flush()
    assert locs(asgi(site, RequestSpec("/sitemap.xml")).body) == ["http://testserver/"]


@pytest.mark.slow
@pytest.mark.parametrize("name", framework_apps.ASGI)
def test_asgi_framework_behaves_the_same_when_wrapped(name: str, ours: Ours, tally: Tally) -> None:
    app, paths = framework_apps.ASGI[name]()
    for layer, wrap in asgi_shapes.LAYERS.items():
        records = []
        for arrangement in (wrap, *arranged_asgi(wrap, ours).values()):
            wrapped, record = arrangement(app), []
            with unclosed() as left:
                for path in paths:
                    for method, seconds, _ in EXCHANGES:
                        ours.clock.pass_(seconds)
                        record.append((path, method))
                        asyncio.run(ASGIServer(record).run(wrapped, scope(method, path)))
                        tally.count(exchanges=1)
            records.append((record, left))
        ours.close()
        for record_and_left in records[1:]:
            assert record_and_left == records[0], layer
