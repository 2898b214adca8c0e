"""Store failures: the app's pages are unaffected, the last good sitemap is served, and no observation is lost.

Each fault is caused in a real engine, as it would be in use, and repaired
again. Faults of a single engine, and the answers of each call during a fault, are in
the tests of that engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.observe.buffer import MAX_PENDING_RESPONSES
from sitemap_middleware.stores.breaker import MAX_BACKOFF_SECONDS

from ..support.engines import PATIENCE_SECONDS, Engine, PostgreSQL, Redis, SQLite
from ..support.failing_store import LISTED, LISTED_UNSEEN, VISITED, pages_unchanged, site_of, warnings_of
from ..support.sample_sites import Clock
from ..support.waiting import until
from ..support.wire import RequestSpec, asgi_async


class Fault(NamedTuple):
    what: str
    of: type[Engine]
    break_: Callable[[Any], object]
    repair: Callable[[Any], object]
    says: str
    """The expected log line, as a regular expression."""
    when: str = "in use, at start"
    patience: float = PATIENCE_SECONDS
    """Seconds for which a store waits for an answer."""


# How to cause those faults that take more than a line


def postgres_allows(setting: str) -> Callable[[PostgreSQL], None]:
    """A setting of the role, for connections made from now on."""

    def alter(engine: PostgreSQL) -> None:
        engine.say(f"ALTER ROLE {engine.schema} {setting}")
        engine.end_connections()

    return alter


FAULTS = (
    Fault("is cut off", PostgreSQL, lambda it: it.proxy.cut(), lambda it: it.proxy.repair(), "server closed|connection"),
    Fault("is cut off", Redis, lambda it: it.proxy.cut(), lambda it: it.proxy.repair(), "Connection|closed"),
    Fault("has no folder", SQLite, lambda it: it.folder.touch(), lambda it: it.folder.unlink(), "File exists", "at start"),
    Fault("hangs", PostgreSQL, lambda it: it.proxy.hang(), lambda it: it.proxy.repair(), "has not answered for|timeout", patience=0.5),
    Fault("hangs", Redis, lambda it: it.proxy.hang(), lambda it: it.proxy.repair(), "(?i)timeout", patience=0.5),
    Fault("is on a full disk", SQLite, lambda it: it.fill_disk(), lambda it: it.free_disk(), "disk"),
    Fault("is locked", SQLite, lambda it: it.lock(), lambda it: it.unlock(), "database is locked", patience=0.1),
    Fault(
        "is read-only", PostgreSQL,
        postgres_allows("SET default_transaction_read_only = on"), postgres_allows("RESET default_transaction_read_only"),
        "read-only transaction",
    ),
    Fault(
        "may not be written", PostgreSQL,
        lambda it: it.say(f"REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {it.schema} FROM {it.schema}"),
        lambda it: it.say(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {it.schema} TO {it.schema}"),
        "permission denied", "in use",
    ),
    Fault(
        "may not be made", PostgreSQL,
        lambda it: it.say(f"REVOKE CREATE ON DATABASE postgres FROM {it.schema}"),
        lambda it: it.say(f"GRANT CREATE ON DATABASE postgres TO {it.schema}"),
        "permission denied for database", "at start",
    ),
    Fault("is out of memory", Redis, lambda it: it.say("CONFIG SET maxmemory 1"), lambda it: it.say("CONFIG SET maxmemory 0"), "OOM|maxmemory"),
    Fault("has another password", PostgreSQL, postgres_allows("PASSWORD 'other'"), postgres_allows("PASSWORD 'first'"), "password authentication failed"),
    Fault("has another password", Redis, lambda it: it.allow("other"), lambda it: it.allow("first"), "invalid username-password|WRONGPASS"),
)  # fmt: skip


def faults(when: str) -> list[Any]:
    names = {PostgreSQL: "PostgreSQL", Redis: "Redis", SQLite: "SQLite"}
    return [pytest.param(fault, id=f"{names[fault.of]} {fault.what}") for fault in FAULTS if when in fault.when]


@contextlib.contextmanager
def befallen(engine: Engine, fault: Fault) -> Iterator[None]:
    fault.break_(engine)
    try:
        yield
    finally:
        fault.repair(engine)


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("fault", faults("in use"))
def test_failing_store_costs_no_page_no_sitemap_and_no_observation(
    fault: Fault, protocol: str, start_engine: Callable[[type[Engine]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = start_engine(fault.of)
    engine.patience = fault.patience
    with site_of(engine, protocol) as site:
        assert sorted(site.locs()) == LISTED_UNSEEN
        before = site.request("/sitemap.xml")
        with befallen(engine, fault):
            site.clock.pass_(1)
            assert pages_unchanged(site)
            site.app.flush()  # as the background thread does: it is who waits for a store that hangs
            assert site.request("/sitemap.xml") == before
            (warning,) = warnings_of(caplog)
            assert "unavailable since 2025-06-15T15:0" in warning
            assert re.search(fault.says, warning)
            assert "first" not in warning, "it shows the password"
            until(lambda: site.app.stats()["pending"] >= len(VISITED))  # a flush may still wait for a store that hangs
            assert site.app.stats()["dropped"] == 0
        site.clock.pass_(MAX_BACKOFF_SECONDS)
        assert sorted(site.locs()) == LISTED
        assert site.app.stats()["pending"] == 0
        assert [line.partition(" after ")[0] for line in warnings_of(caplog)[1:]] == ["store available again"]


@pytest.mark.parametrize("fault", faults("at start"))
def test_a_store_that_fails_as_the_app_starts_is_waited_for(
    fault: Fault, start_engine: Callable[[type[Engine]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = start_engine(fault.of)
    engine.patience = fault.patience
    with site_of(engine, "asgi") as site:
        with befallen(engine, fault):
            assert pages_unchanged(site)
            refused = site.request("/sitemap.xml")
            assert (refused.status, refused.header("retry-after")) == (503, "60")
            assert refused.text == "The sitemap cannot be made now: its store does not answer.\n"
            (warning,) = warnings_of(caplog)
            assert re.search(fault.says, warning)
        site.app.flush()  # waits for a merge that still hangs and whose failure would start a new backoff
        site.clock.pass_(MAX_BACKOFF_SECONDS)
        assert sorted(site.locs()) == LISTED
        assert [line.partition(" after ")[0] for line in warnings_of(caplog)[1:]] == ["store available again"]


# A store that is slow, or hangs


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("of", [PostgreSQL, Redis])
def test_a_store_that_is_slow_is_waited_for_by_no_page(
    of: type[PostgreSQL | Redis],
    protocol: str,
    start_engine: Callable[[type[Engine]], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = start_engine(of)
    with site_of(engine, protocol) as site:
        assert sorted(site.locs()) == LISTED_UNSEEN
        engine.proxy.hang()
        assert pages_unchanged(site)
        flushing = threading.Thread(target=site.app.flush)
        flushing.start()
        assert pages_unchanged(site)
        assert flushing.is_alive()
        engine.proxy.go_on()
        flushing.join(10)
        assert sorted(site.locs()) == LISTED
        assert warnings_of(caplog) == []


def test_sitemap_requests_waiting_for_a_store_leave_app_threads_free(
    start_engine: Callable[[type[Engine]], Any],
) -> None:
    def page(request: Request) -> HTMLResponse:  # Starlette runs it on a thread
        return HTMLResponse("A page.")

    engine = start_engine(Redis)
    app = SitemapMiddleware(Starlette(routes=[Route("/", page)]), store=engine.store(), verify=False)

    async def send_request() -> None:
        engine.proxy.hang()
        requests = [asyncio.create_task(asgi_async(app, RequestSpec("/sitemap.xml"))) for _ in range(100)]
        for _ in range(20):
            await asyncio.sleep(0)
        answer = await asgi_async(app, RequestSpec("/"))
        assert answer.text == "A page."
        assert not any(task.done() for task in requests)
        engine.proxy.go_on()
        assert {(await task).status for task in requests} == {200}

    asyncio.run(send_request())
    app.close()


@pytest.mark.slow
def test_however_long_a_store_fails_what_waits_is_bounded(start_engine: Callable[[type[Engine]], Any]) -> None:
    def bare(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b""]

    engine = start_engine(SQLite)
    engine.folder.touch()
    store = engine.store()
    app = SitemapMiddleware(
        bare, base_url="https://example.com", learn="/posts/*", store=store, clock=Clock(), verify=False
    )
    buffer = app.service.tracker.buffer
    buffer.interval = 3600  # its thread would take out what waits as that is counted
    assert buffer.capacity == MAX_PENDING_RESPONSES
    buffer.capacity = 500
    environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "QUERY_STRING": "", "wsgi.url_scheme": "https"}
    environ |= {"HTTP_HOST": "example.com", "SERVER_NAME": "example.com", "SERVER_PORT": "443"}
    for number in range(700):
        list(app({**environ, "PATH_INFO": f"/posts/{number}"}, lambda *_: None))
    app.flush()
    stats = app.stats()
    assert stats["pending"] == 500
    assert stats["dropped"] == 200
    assert stats["store_failures"] > 0
    engine.folder.unlink()
    app.flush()
    assert sum(part.pages for part in store.parts("https://example.com").values()) == 500
    app.close()
