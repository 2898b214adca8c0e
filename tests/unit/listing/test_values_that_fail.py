"""`@sitemap(values=...)`: where the app's code runs, and what becomes of a sitemap when it fails, hangs or never ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import flask
import pytest
import quart
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.documents import publisher
from sitemap_middleware.listing import provider_reader
from sitemap_middleware.listing.provider_reader import MAX_BATCH_ITEMS

from ...support.documents import entries
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.values_sites import (
    LOCAL,
    NOW,
    ValuesSite,
    on_fastapi,
    on_flask,
    on_flask_below_a_dispatcher,
    on_flask_in_starlette,
    on_quart,
    on_rules,
    on_starlette,
    text,
)
from ...support.waiting import join_threads, until
from ...support.wire import Answer, RequestSpec, asgi_async

ANYWHERE = pytest.mark.parametrize("make", [on_flask, on_quart, on_starlette])


# The app's own context


@pytest.mark.parametrize("prefix", ["", "/blog"])
def test_a_lastmod_function_runs_in_the_app_context_and_its_failure_is_shown(prefix: str) -> None:
    def changed_on() -> str:
        day: str = flask.current_app.config["CHANGED"]
        return day

    app = on_rules(("/posts/<slug>", text(["rye"], lastmod=changed_on), {}))
    site = ValuesSite(DispatcherMiddleware(flask.Flask("outer"), {prefix: app}) if prefix else app, max_age=0)
    app.config["CHANGED"] = "2025-01-02"
    assert site.entries() == {f"{LOCAL}{prefix}/posts/rye": {"lastmod": "2025-01-02"}}
    del app.config["CHANGED"]
    failure, service = "its lastmod function failed: KeyError: 'CHANGED'", site.app.service
    assert failure in str(site.app.explain(f"{prefix}/posts/rye"))
    reports = service.route_report([service.snapshot(service.site_resolver.sites()[0], service.store)])
    assert [report.verdict.reason for report in reports if report.failing] == [f"values: 1 page, 1 listed; {failure}"]


@pytest.mark.parametrize("make", [on_flask, on_flask_below_a_dispatcher, on_flask_in_starlette, on_quart])
def test_providers_run_in_the_app_context_sync_and_async(make: Any) -> None:
    framework = quart if make is on_quart else flask
    ended = []

    def posts() -> Iterator[Any]:
        framework.g.slug = framework.current_app.name
        yield {"slug": framework.g.slug}
        ended.append("sync")

    async def async_posts() -> AsyncIterator[Any]:
        await asyncio.sleep(0)
        yield {"slug": framework.current_app.name}
        assert framework.current_app.name == "site"
        ended.append("async")

    for form in (async_posts, *([] if make is on_quart else [posts])):
        assert ValuesSite(make(form)).locs() == [f"{LOCAL}/posts/site"]
    assert ended == ["async", *([] if make is on_quart else ["sync"])]


@pytest.mark.parametrize("make", [on_fastapi, on_quart])
def test_async_provider_runs_on_the_apps_loop_and_reads_its_database(make: Any) -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        free: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()

        async def posts() -> AsyncIterator[Any]:
            assert asyncio.get_running_loop() is loop
            database = await free.get()  # a pool's lock is bound to the loop of the app
            try:
                async with asyncio.timeout(60), database.execute("SELECT slug FROM post ORDER BY slug") as cursor:
                    async for row in cursor:
                        yield row
            finally:
                free.put_nowait(database)

        async with aiosqlite.connect(":memory:") as database:
            database.row_factory = aiosqlite.Row
            await database.execute("CREATE TABLE post (slug TEXT)")
            await database.executemany("INSERT INTO post VALUES (?)", [(f"{number:04}",) for number in range(2500)])
            site = SitemapMiddleware(make(posts), store="memory://", clock=Clock(NOW), verify=False)
            waiting = asyncio.create_task(asgi_async(site, RequestSpec("/sitemap.xml")))
            await asyncio.sleep(0)
            free.put_nowait(database)
            answer = await waiting
            assert free.qsize() == 1
            return list(entries(answer.body))

    assert asyncio.run(main()) == [f"{LOCAL}/posts/{number:04}" for number in range(2500)]


def test_busy_provider_lets_the_apps_loop_run() -> None:
    async def main() -> int:
        since_beat = most = 0

        async def posts() -> AsyncIterator[Any]:
            nonlocal since_beat, most
            for _ in range(20_000):
                since_beat += 1
                most = max(most, since_beat)
                yield {"slug": "a"}

        async def beat() -> None:
            nonlocal since_beat
            while True:
                since_beat = 0
                await asyncio.sleep(0)

        site = SitemapMiddleware(on_starlette(posts), store="memory://", clock=Clock(NOW), verify=False)
        beating = asyncio.create_task(beat())
        await asgi_async(site, RequestSpec("/sitemap.xml"))
        beating.cancel()
        return most

    assert 0 < asyncio.run(main()) <= MAX_BATCH_ITEMS


# Failures

FAILS = "the sitemap shows the last good pages, or none: the values of @sitemap on "
LAST_GOOD = [f"{LOCAL}/posts/good"]


class Fickle:
    """A provider that fails in one way, as long as it is told to."""

    def __init__(self, fail: Callable[[threading.Event], Any]) -> None:
        self.fail = fail
        self.failing = True
        self.asked = 0
        self.release = threading.Event()

    def __call__(self) -> Any:
        self.asked += 1
        return self.fail(self.release) if self.failing else [{"slug": "good"}]


def raises(_: Any) -> Any:
    raise RuntimeError("the database is down")


def raises_half_way(_: Any) -> Iterator[Any]:
    yield {"slug": "half"}
    raise RuntimeError("the database is down")


def ends_with_an_exit(_: Any) -> Iterator[Any]:
    yield {"slug": "half"}
    raise SystemExit(1)


def gives_nothing_to_iterate(_: Any) -> Any:
    return None


async def raises_async(_: Any) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    raise RuntimeError("the database is down")


async def is_cancelled_async(_: Any) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    raise asyncio.CancelledError


def hangs_at_once(release: threading.Event) -> Any:
    release.wait(60)
    return []


def hangs_half_way(release: threading.Event) -> Iterator[Any]:
    yield {"slug": "half"}
    release.wait(60)
    yield {"slug": "late"}


async def hangs_async(release: threading.Event) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    while not release.is_set():  # noqa: ASYNC110 (it is set by another thread)
        await asyncio.sleep(0.001)


def never_ends(_: Any) -> Iterator[Any]:
    number = 0
    while True:
        number += 1
        yield {"slug": f"{number}"}


RAISING = [raises, raises_half_way, ends_with_an_exit, gives_nothing_to_iterate, raises_async, is_cancelled_async]
HANGING = [hangs_at_once, hangs_half_way, hangs_async, never_ends]


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_reader, "ITEM_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(provider_reader, "MAX_PROVIDER_ITEMS", 2000)


@pytest.mark.usefixtures("_hasty")
@ANYWHERE
@pytest.mark.parametrize("fail", [*RAISING, *HANGING])
def test_a_provider_that_fails_leaves_the_last_good_document_up(
    make: Any, fail: Any, caplog: pytest.LogCaptureFixture
) -> None:
    provider = Fickle(fail)
    site = ValuesSite(make(provider), max_age=10)

    def recover() -> None:
        """The provider works again, what it left hanging ends, and the sitemap is whole."""
        provider.failing = False
        provider.release.set()
        join_threads("sitemap_middleware-values", 10)
        site.clock.pass_(61)
        assert site.locs() == LAST_GOOD
        assert site.app.explain("/elsewhere").note is None

    answer = site.sitemap()
    assert (answer.status, answer.header("retry-after")) == (503, "60")
    assert "the values of a route fail, and the log says why" in answer.text
    note = "note: the sitemap has the last good pages, or none, of what fails: "
    assert str(site.app.explain("/elsewhere")).startswith(note)
    recover()
    caplog.clear()
    first = site.sitemap()
    provider.failing, provider.asked = True, 0
    provider.release.clear()
    for _ in range(3):
        site.clock.pass_(11)
        again = site.sitemap()
        assert (again.status, again.body, again.header("etag")) == (200, first.body, first.header("etag"))
    assert [FAILS in record.getMessage() for record in caplog.records] == [True]
    assert provider.asked == (3 if fail in RAISING else 1)  # one that hung is not asked again for a while
    explanation = site.app.explain("/posts/half")
    assert not explanation.listed
    assert " failed: " in explanation.reason
    recover()
    assert caplog.messages[1:] == ["the sitemap's values can be read again"]


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("fail", [raises_half_way, raises_async, hangs_at_once, never_ends])
def test_a_failing_provider_costs_its_own_pages_only(
    protocol: str, fail: Any, caplog: pytest.LogCaptureFixture
) -> None:
    provider = Fickle(fail)
    marks = {"/posts/{slug}": sitemap(values=provider), "/shops/{slug}": sitemap(values=["one"])}
    sample = SampleSite(protocol, {"/about": Page(), **dict.fromkeys(marks, Page())}, marks=marks, max_age=10)
    others = [f"{LOCAL}/about", f"{LOCAL}/shops/one"]
    for _ in range(3):
        assert sample.locs() == others
        assert "/sitemap.xml" in sample.request("/robots.txt").text
        sample.clock.pass_(11)
    assert [FAILS in message for message in caplog.messages] == [True]
    assert " failed: " in sample.app.explain("/posts/good").reason
    note = "the sitemap has the last good pages, or none, of what fails"
    assert str(sample.app.explain("/about").note).startswith(note)
    provider.release.set()
    for failing in (False, True):
        provider.failing = failing
        join_threads("sitemap_middleware-values", 10)
        sample.clock.pass_(61)
        assert sample.locs() == [others[0], *LAST_GOOD, others[1]]
        provider.release.clear()
    provider.release.set()


def test_values_that_fail_keep_no_page_that_may_no_longer_be_listed(tmp_path: Path) -> None:
    pages, given = {"/posts/{slug}": Page(), "/robots.txt": Page(404)}, ["abcde"]
    marks = {"/posts/{slug}": sitemap(values=given.pop)}
    options: dict[str, Any] = {"store": f"sqlite:///{tmp_path}/sitemap.db", "clock": Clock(NOW), "marks": marks}
    assert len(SampleSite("wsgi", pages, **options).locs()) == 5
    options["clock"].pass_(11)
    pages["/robots.txt"] = Page(200, [("content-type", "text/plain")], b"User-agent: *\nDisallow: /posts/b")
    site = SampleSite("wsgi", pages, exclude=["/posts/a"], **options)
    for path, page in (("/posts/c", Page().with_headers(("x-robots-tag", "noindex"))), ("/posts/d", Page(404))):
        pages["/posts/{slug}"] = page
        site.visit(path)
    assert site.locs() == [f"{LOCAL}/posts/e"]
    assert SampleSite("wsgi", pages, exclude=["/posts/e"], **options).request("/sitemap.xml").status == 503


@ANYWHERE
@pytest.mark.parametrize("fail", HANGING)
def test_closing_app_waits_for_no_provider(make: Any, fail: Any, caplog: pytest.LogCaptureFixture) -> None:
    provider = Fickle(fail)
    site = ValuesSite(make(provider))
    answers: list[Answer] = []
    requester = threading.Thread(target=lambda: answers.append(site.sitemap()))
    requester.start()
    until(lambda: provider.asked == 1)
    began = time.monotonic()
    site.app.close()
    requester.join(8)  # a provider that hangs is waited for longer
    assert time.monotonic() - began < 8
    assert (answers[0].status, answers[0].header("retry-after")) == (503, "60")
    assert not caplog.records
    provider.release.set()


def test_an_iterator_that_is_used_up_is_no_empty_list() -> None:
    items = [{"slug": "good"}]
    for once in ((post for post in items), iter(items)):
        site = ValuesSite(on_flask(lambda once=once: once), max_age=10)
        assert site.locs() == LAST_GOOD
        site.clock.pass_(11)
        if hasattr(once, "close"):  # others bear no weak reference, and would have to be kept to be known again
            assert site.locs() == LAST_GOOD
            assert "is exhausted" in site.app.explain("/posts/good").reason


def test_a_request_that_is_cancelled_ends_its_provider() -> None:
    ended = []

    async def main() -> None:
        started = asyncio.Event()

        async def posts() -> AsyncIterator[Any]:
            try:
                started.set()
                await asyncio.sleep(600)
                yield {"slug": "late"}
            finally:
                ended.append(True)

        async def unused(*_: Any) -> Any:
            raise AssertionError

        site = SitemapMiddleware(on_starlette(posts), store="memory://", clock=Clock(NOW), verify=False)
        scope = {"type": "http", "method": "GET", "path": "/sitemap.xml", "headers": [(b"host", b"testserver")]}
        request = asyncio.create_task(site(scope, unused, unused))
        await started.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(main())
    assert ended == [True]


def test_requests_during_generation_get_the_last_sitemap_or_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(publisher, "FIRST_WAIT_SECONDS", 0.01)
    started, release = threading.Event(), threading.Event()
    items = [{"slug": "good"}]

    def posts() -> Iterator[Any]:
        started.set()
        release.wait(30)
        yield from items

    site = ValuesSite(on_flask(posts), max_age=10)

    def remade_while(look: Callable[[], Any]) -> Any:
        started.clear()
        release.clear()
        maker = threading.Thread(target=site.sitemap)
        maker.start()
        assert started.wait(30)
        result = look()
        release.set()
        maker.join(30)
        join_threads("sitemap-background")
        return result

    answer = remade_while(site.sitemap)
    assert (answer.status, answer.header("retry-after")) == (503, "60")
    assert "it is being generated" in answer.text
    assert site.locs() == LAST_GOOD
    items.append({"slug": "new"})
    site.clock.pass_(11)
    assert remade_while(site.locs) == LAST_GOOD
    assert site.locs() == [*LAST_GOOD, f"{LOCAL}/posts/new"]
