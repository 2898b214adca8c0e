"""A page that gives the same answer many times in one second is not observed for the rest of that second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.observation.tracked_page import REPEATS_BEFORE_PAUSE

from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import RequestSpec

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
BROWSER = [
    *((f"sec-ch-ua-{name}", "?0") for name in ("mobile", "platform", "model", "arch", "bitness")),
    ("accept", "text/html"),
    ("accept-encoding", "gzip, br"),
    ("accept-language", "en"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Chrome/141.0"),
]
"""More fields than crawlers send."""
GOOGLEBOT = [("user-agent", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")]


class BusySite(SampleSite):
    """A site whose page / was just requested many times."""

    def __init__(self, protocol: str, repeats: int = REPEATS_BEFORE_PAUSE, **options: Any) -> None:
        super().__init__(protocol, {"/": Page(), "/about": Page()}, **options)
        self.visit("/", "/about")  # their bodies are read
        self.clock.pass_(2)
        self.browse(1 + repeats)

    def browse(self, times: int = 1, **changes: Any) -> None:
        for _ in range(times):
            self.request(RequestSpec("/", headers=BROWSER, **changes))

    def delete(self) -> None:
        """The page / is gone; visitors have not been told yet."""
        self.pages["/"] = Page(404)

    @property
    def is_seen_as_gone(self) -> bool:
        self.app.flush()
        return not self.app.explain("/").listed

    @property
    def seen(self) -> int:
        return self.app.stats()["seen"]


@BOTH
def test_change_of_a_busy_page_is_seen_in_the_next_second(protocol: str) -> None:
    site = BusySite(protocol)
    site.delete()
    site.browse(3)
    assert not site.is_seen_as_gone
    site.clock.pass_(1)
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_change_of_a_page_that_is_requested_less_often_is_seen_at_once(protocol: str) -> None:
    site = BusySite(protocol, REPEATS_BEFORE_PAUSE - 1)
    site.delete()
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_requests_are_counted_by_second(protocol: str) -> None:
    site = BusySite(protocol, REPEATS_BEFORE_PAUSE - 1)
    site.clock.pass_(1)
    site.browse(REPEATS_BEFORE_PAUSE)
    site.delete()
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_another_answer_starts_the_count_again(protocol: str) -> None:
    site = BusySite(protocol, REPEATS_BEFORE_PAUSE - 1)
    page, site.pages["/"] = site.pages["/"], Page(304)
    site.browse()
    site.pages["/"] = page
    site.browse(REPEATS_BEFORE_PAUSE - 1)
    site.delete()
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_another_answer_ends_the_pause_though_it_says_nothing_of_the_page(protocol: str) -> None:
    site = BusySite(protocol)
    site.pages["/"] = Page(304)
    site.request(RequestSpec("/", headers=GOOGLEBOT))
    site.delete()
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_other_pages_are_observed_meanwhile(protocol: str) -> None:
    site = BusySite(protocol)
    site.pages["/about"] = Page(404)
    site.request(RequestSpec("/about", headers=BROWSER))
    site.app.flush()
    assert not site.app.explain("/about").listed


@BOTH
def test_requests_for_the_page_by_another_url_are_observed_meanwhile(protocol: str) -> None:
    site = BusySite(protocol, 0, base_url="http://testserver")
    site.browse(scheme="https")
    site.browse(REPEATS_BEFORE_PAUSE)
    site.delete()
    site.browse(scheme="https")
    assert site.is_seen_as_gone


@BOTH
def test_every_request_is_counted(protocol: str) -> None:
    site = BusySite(protocol)
    before = site.seen
    site.browse(7)
    assert site.seen == before + 7


@BOTH
@pytest.mark.parametrize("crawlers", [True, False])
def test_request_that_may_be_a_crawlers_is_observed_meanwhile(protocol: str, *, crawlers: bool) -> None:
    site = BusySite(protocol, crawlers=crawlers)
    visits = site.app.stats()["crawler_visits_unverified"]
    site.delete()
    site.request(RequestSpec("/", headers=GOOGLEBOT))
    assert site.is_seen_as_gone
    site.app.close()
    assert site.app.stats()["crawler_visits_unverified"] - visits == int(crawlers)


@BOTH
def test_request_with_a_new_number_of_fields_is_observed_meanwhile(protocol: str) -> None:
    """Until another one with as many was looked at, it may be a crawler's."""
    site = BusySite(protocol)
    site.delete()
    site.request(RequestSpec("/", headers=[*BROWSER, ("referer", "http://testserver/about")]))
    assert site.is_seen_as_gone


@BOTH
def test_page_is_observed_once_the_clock_went_back(protocol: str) -> None:
    site = BusySite(protocol)
    site.delete()
    site.clock.pass_(-0.25)
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_pause_ends_with_the_second_in_which_it_began(protocol: str) -> None:
    site = BusySite(protocol, 0)
    site.clock.pass_(1.75)
    site.browse(1 + REPEATS_BEFORE_PAUSE)
    site.delete()
    site.clock.pass_(0.25)
    site.browse()
    assert site.is_seen_as_gone


@BOTH
@pytest.mark.parametrize(
    "drop",
    [
        pytest.param(lambda tracker: tracker.forget(), id="forgotten"),
        pytest.param(lambda tracker: tracker.start_over(), id="lost_by_the_store"),
        pytest.param(lambda tracker: tracker.reset_after_fork(), id="forked"),
    ],
)
def test_page_is_observed_once_its_last_answer_is_dropped(protocol: str, drop: Callable[[Any], None]) -> None:
    site = BusySite(protocol)
    drop(site.app.service.tracker)
    site.delete()
    site.browse()
    assert site.is_seen_as_gone


@BOTH
def test_page_is_observed_once_its_last_answer_was_retracted(protocol: str) -> None:
    site = BusySite(protocol)
    tracker = site.app.service.tracker
    (page,) = {page for page, _ in tracker.tracked_pages.values() if page.path == "/"}
    page.last_answer.retract()
    site.delete()
    site.browse()
    assert site.is_seen_as_gone


def test_page_is_observed_once_the_routes_are_others() -> None:
    async def endpoint(_: Any) -> HTMLResponse:
        return HTMLResponse("A page.", status)

    status = 200
    app, clock = Starlette(routes=[Route("/", endpoint)]), Clock()
    site = SitemapMiddleware(app, store="memory://", verify=False, clock=clock)
    client: Any = SampleSite("asgi", {})
    client.app = site
    for _ in range(2 + REPEATS_BEFORE_PAUSE):
        client.request(RequestSpec("/", headers=BROWSER))
    app.router.routes.append(Route("/new", endpoint))
    assert len(client.locs()) == 2
    status = 404
    client.request(RequestSpec("/", headers=BROWSER))
    assert client.locs() == ["http://testserver/new"]


@BOTH
def test_app_answers_though_the_clock_fails(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    class FailingClock(Clock):
        fails = False

        def __call__(self) -> float:
            if self.fails:
                raise RuntimeError("no time")
            return super().__call__()

    clock = FailingClock()
    site = BusySite(protocol, clock=clock)
    clock.fails = True
    assert site.request(RequestSpec("/", headers=BROWSER)).status == 200
    clock.fails = False
    assert "no time" in caplog.text


def test_app_is_given_the_servers_own_start_response_meanwhile() -> None:
    def app(_: Any, start_response: Any) -> list[bytes]:
        given.append(start_response)
        start_response("200 OK", [("Content-Type", "text/html")])
        return body

    def start_response(status: str, headers: Any, exc_info: Any = None) -> None: ...

    given: list[Any] = []
    body = [b"A page."]
    site: Any = SitemapMiddleware(app, store="memory://", include="/", verify=False, clock=Clock())
    fields = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in BROWSER}
    for _ in range(3 + REPEATS_BEFORE_PAUSE):
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_HOST": "localhost", "wsgi.url_scheme": "http"}
        assert site({**environ, **fields}, start_response) is body
    assert [start is start_response for start in given[-2:]] == [False, True]
    site.close()


def test_app_is_given_the_servers_own_send_meanwhile() -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        given.append(send)
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body"})

    async def send(_: Any) -> None: ...

    async def requests() -> None:
        for _ in range(2 + REPEATS_BEFORE_PAUSE):
            scope = {"type": "http", "method": "GET", "path": "/", "headers": [*fields]}
            await site(scope, None, send)

    given: list[Any] = []
    fields = [(b"host", b"localhost"), *((name.encode(), value.encode()) for name, value in BROWSER)]
    site: Any = SitemapMiddleware(app, store="memory://", include="/", verify=False, clock=Clock())
    asyncio.run(requests())
    assert [given_send is send for given_send in given[-2:]] == [False, True]
    site.close()


def test_error_of_the_app_passes_through_meanwhile() -> None:
    def app(_: Any, start_response: Any) -> list[bytes]:
        if fails:
            raise LookupError("the app's own")
        start_response("404 Not Found", [])
        return []

    fails = False
    site: Any = SitemapMiddleware(app, store="memory://", include="/", verify=False, clock=Clock())
    fields = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in BROWSER}
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_HOST": "localhost", "wsgi.url_scheme": "http"}
    for _ in range(1 + REPEATS_BEFORE_PAUSE):
        site({**environ, **fields}, lambda *_: None)
    fails = True
    with pytest.raises(LookupError, match="the app's own"):
        site({**environ, **fields}, lambda *_: None)
    site.close()


def test_change_is_seen_in_the_next_second_whatever_many_threads_did() -> None:
    def browse() -> None:
        start.wait()
        site.browse(3 * REPEATS_BEFORE_PAUSE)

    site = BusySite("wsgi", 0)
    for _ in range(3):
        start = threading.Barrier(4)
        threads = [threading.Thread(target=browse) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        site.clock.pass_(1)
    site.delete()
    site.browse()
    assert site.is_seen_as_gone
