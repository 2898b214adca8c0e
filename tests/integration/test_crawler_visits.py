"""Visits of crawlers from live traffic: what is counted, who is believed, and what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, StoreError, hosts
from sitemap_middleware.crawlers.counted_visits import OTHER_PATHS, CrawlerVisit
from sitemap_middleware.crawlers.ip_address_ranges import pack_ranges, parse_ranges
from sitemap_middleware.crawlers.known_crawlers import crawler_of_agent
from sitemap_middleware.exceptions import OptionError
from sitemap_middleware.models import StoreKey
from sitemap_middleware.observation import noted_crawler_requests, verified_visit_counting, visits_awaiting_dns
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ..support.waiting import join_threads

BASE = "https://example.com"
GOOGLE, STRANGER, PROXY = "66.249.66.1", "93.184.216.34", "10.0.0.2"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36"


class DNS:
    """Google's address has Google's name; others have none."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def names(self, address: str) -> Iterable[str]:
        self.asked.append(address)
        self.may_answer.wait(10)
        return ["crawl-66-249-66-1.googlebot.com"] if address == GOOGLE else []

    def addresses(self, _: str) -> Iterable[str]:
        return [GOOGLE]


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A site over one of the protocols."""

    def __init__(self, **options: Any) -> None:
        self.dns, self.clock = DNS(), Clock()
        defaults = {
            "base_url": BASE,
            "store": MemoryStore(),
            "crawlers": self.dns,
            "clock": self.clock,
            "verify": False,
        }
        self.options = {**defaults, **options}
        self.middleware: SitemapMiddleware

    def get(self, path: str, agent: str = GOOGLEBOT, address: str = GOOGLE, **headers: str) -> int:
        raise NotImplementedError

    @property
    def store(self) -> Any:
        return self.options["store"]

    def visits(self) -> set[CrawlerVisit]:
        self.middleware.flush()
        return self.stored()

    def stored(self) -> set[CrawlerVisit]:
        return set(self.store.crawler_visits(StoreKey(BASE)))

    def visit(self, path: str, status: int = 200, count: int = 1, **more: Any) -> CrawlerVisit:
        now = int(self.clock.now)
        return CrawlerVisit(path, "Googlebot", True, status, now, now, count)._replace(**more)


class WSGISite(Site):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        app = flask.Flask(__name__)
        app.config["PROPAGATE_EXCEPTIONS"] = True
        app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
        app.add_url_rule("/posts/<slug>", "post", lambda slug: f"<h1>{slug}</h1>")
        app.add_url_rule("/reset/<token>", "reset", lambda token: f"<h1>{len(token)}</h1>")
        app.add_url_rule("/gone", "gone", lambda: flask.abort(410))
        app.add_url_rule("/broken", "broken", broken)
        self.middleware = app.wsgi_app = SitemapMiddleware(app.wsgi_app, **self.options)  # type: ignore[method-assign]
        self._client = app.test_client()

    def get(self, path: str, agent: str = GOOGLEBOT, address: str = GOOGLE, **headers: str) -> int:
        fields = {"User-Agent": agent, **{name.replace("_", "-"): value for name, value in headers.items()}}
        try:
            answer = self._client.get(path, base_url=BASE, headers=fields, environ_overrides={"REMOTE_ADDR": address})
        except ZeroDivisionError:
            return 500
        return answer.status_code


class ASGISite(Site):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)

        async def home(_: Request) -> Response:
            return HTMLResponse("<h1>Home</h1>")

        async def post(request: Request) -> Response:
            return HTMLResponse(f"<h1>{request.path_params['slug']}</h1>")

        async def gone(_: Request) -> Response:
            return HTMLResponse("<h1>Gone</h1>", 410)

        async def fail(_: Request) -> Response:
            return broken()

        routes = [
            Route("/", home),
            Route("/posts/{slug}", post),
            Route("/reset/{token}", home),
            Route("/gone", gone),
            Route("/broken", fail),
        ]
        app = Starlette(routes=routes)
        app.add_middleware(SitemapMiddleware, **self.options)
        self._app = app
        self.get("/", agent=CHROME)
        self.middleware = SitemapMiddleware.of(app)

    def get(self, path: str, agent: str = GOOGLEBOT, address: str = GOOGLE, **headers: str) -> int:
        fields = {"host": "example.com", "user-agent": agent}
        fields |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "scheme": "https",
            "root_path": "",
            "client": (address, 1000),
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        }
        statuses = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            statuses.append(message.get("status"))

        with contextlib.suppress(ZeroDivisionError):
            asyncio.run(self._app(scope, receive, send))  # type: ignore[arg-type] # a coroutine
        return statuses[0] or 0


def broken() -> Any:
    return 1 / 0


SITES: dict[str, Callable[..., Site]] = {"WSGI": WSGISite, "ASGI": ASGISite}


@pytest.fixture(params=SITES)
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(**options: Any) -> Site:
        made.append(SITES[request.param](**options))
        return made[-1]

    yield make
    for site in made:
        site.dns.may_answer.set()
        site.middleware.close()


def test_every_visit_of_a_verified_crawler_is_counted_by_path_and_status(make: Callable[..., Site]) -> None:
    site = make()
    for _ in range(3):
        assert [site.get(path) for path in ("/", "/posts/1", "/gone", "/nowhere")] == [200, 200, 410, 404]
    assert site.visits() == {
        site.visit("/", count=3),
        site.visit("/posts/1", count=3),
        site.visit("/gone", 410, count=3),
        site.visit("/nowhere", 404, count=3),
    }
    stats = site.middleware.stats()
    assert {name: stats[f"crawler_visits_{name}"] for name in ("verified", "unverified", "fake", "dropped")} == {
        "verified": 12,
        "unverified": 0,
        "fake": 0,
        "dropped": 0,
    }


def test_visits_between_those_of_people_are_counted(make: Callable[..., Site]) -> None:
    site = make()
    for _ in range(5):
        site.get("/", agent=CHROME, address=STRANGER)
        site.get("/")
    assert site.visits() == {site.visit("/", count=5)}
    site.clock.now += 100
    site.get("/", agent=CHROME, address=STRANGER)
    site.get("/")
    assert site.visits() == {site.visit("/", count=6)._replace(first=int(site.clock.now) - 100)}


def test_people_are_not_counted_and_not_looked_up(make: Callable[..., Site]) -> None:
    site = make()
    site.get("/", agent=CHROME, address=STRANGER)
    site.get("/", agent="", address=STRANGER)
    assert site.visits() == set()
    assert site.dns.asked == []


def test_a_fake_crawler_is_counted_without_what_it_asked_for(make: Callable[..., Site]) -> None:
    site = make()
    for number in range(50):
        site.get(f"/posts/{number}", address=STRANGER)
        site.get(f"/invented/{number}", address=STRANGER)
    fake = site.visit(OTHER_PATHS, verified=False, fake=True)
    assert site.visits() == {fake._replace(count=50), fake._replace(status=404, count=50)}


def test_an_unknown_proxy_makes_visits_unverified(make: Callable[..., Site]) -> None:
    site = make()
    site.get("/", address=PROXY, X_Forwarded_For=GOOGLE)
    site.get("/", address=STRANGER, X_Forwarded_For=GOOGLE)
    site.get("/", address=STRANGER, Via="1.1 cache")
    site.get("/invented", address=PROXY, X_Forwarded_For=GOOGLE)
    unverified = site.visit("/", verified=False)
    assert site.visits() == {unverified._replace(count=3), unverified._replace(path=OTHER_PATHS, status=404)}
    assert PROXY not in site.dns.asked


def test_an_address_that_the_server_took_from_its_proxy_is_the_senders(make: Callable[..., Site]) -> None:
    site = make()
    site.get("/", X_Forwarded_For=GOOGLE)
    site.get("/", address=STRANGER, X_Forwarded_For=STRANGER)
    assert site.visits() == {site.visit("/"), site.visit(OTHER_PATHS, verified=False, fake=True)}


def test_fetches_of_the_sitemap_and_of_robots_txt_are_counted(make: Callable[..., Site]) -> None:
    site = make()
    site.get("/", agent=CHROME)
    for _ in range(2):
        assert (site.get("/sitemap.xml"), site.get("/robots.txt")) == (200, 200)
    site.get("/sitemap.xml", address=PROXY)
    many = {f"X-{number}": "1" for number in range(12)}
    assert [site.get("/sitemap.xml", agent=CHROME, **many) for _ in range(2)] == [200, 200]
    assert site.get("/sitemap.xml") == 200
    assert site.visits() == {
        site.visit("/sitemap.xml", count=3),
        site.visit("/robots.txt", count=2),
        site.visit("/sitemap.xml", verified=False),
    }


def test_a_view_that_raises_is_an_error_served_to_the_crawler(make: Callable[..., Site]) -> None:
    site = make()
    assert [site.get("/broken"), site.get("/broken"), site.get("/broken", agent=CHROME)] == [500, 500, 500]
    assert site.visits() == {site.visit("/broken", 500, count=2)}


def test_requests_for_foreign_hosts_are_not_counted(make: Callable[..., Site]) -> None:
    site = make()
    site.get("/", Host="evil.example")
    site.get("/sitemap.xml", Host="evil.example")
    assert site.visits() == set()


def test_published_ranges_in_the_store_are_used(make: Callable[..., Site]) -> None:
    site = make()
    (url,) = crawler_of_agent("GPTBot").range_urls
    ranges = pack_ranges({url: parse_ranges(b'["20.171.206.0/24"]')}, 1000)
    site.get("/", agent=GPTBOT, address="20.171.206.7")
    gptbot = site.visit("/", crawler="GPTBot")
    assert site.visits() == {gptbot._replace(verified=False)}
    site.store.save(verified_visit_counting.RANGES_OWNER, {verified_visit_counting.RANGES_RECORD: ranges})
    first = site.clock.now
    site.clock.now += verified_visit_counting.RANGES_INTERVAL_SECONDS
    site.get("/", agent=GPTBOT, address="20.171.206.7")
    assert site.visits() == {site.visit("/", crawler="GPTBot"), gptbot._replace(verified=False, first=int(first))}


def test_nothing_is_counted_if_that_is_turned_off(make: Callable[..., Site]) -> None:
    site = make(crawlers=False)
    for path in ("/", "/", "/broken", "/sitemap.xml"):
        site.get(path)
    assert site.visits() == set()


def test_addresses_are_not_stored(make: Callable[..., Site], tmp_path: Path) -> None:
    site = make(store=SQLiteStore(tmp_path / "sitemap.sqlite3"))
    site.get("/")
    site.get("/", address=STRANGER)
    site.visits()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Googlebot" in stored
    assert GOOGLE.encode() not in stored
    assert STRANGER.encode() not in stored


def test_too_many_requests_are_dropped_and_counted(make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted_crawler_requests, "MAX_NOTED_REQUESTS", 3)
    site = make()
    for _ in range(5):
        site.get("/")
    assert site.visits() == {site.visit("/", count=3)}
    assert site.middleware.stats()["crawler_visits_dropped"] == 2


def test_many_addresses_do_not_wait_for_dns_at_once(make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_awaiting_dns, "MAX_WAITING_SENDERS", 0)
    site = make()
    site.get("/")
    assert site.visits() == {site.visit("/", verified=False)}


def test_dns_that_hangs_delays_no_request_and_not_the_end(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_visit_counting, "LAST_VERIFICATION_WAIT_SECONDS", 0.01)
    site = make()
    site.dns.may_answer.clear()
    site.get("/", address=STRANGER)
    site.middleware.service.crawler_visits.on_flush(is_last=False)
    site.get("/")
    site.middleware.service.crawler_visits.finish()
    assert site.stored() == {site.visit("/", verified=False)}


def test_visits_wait_for_a_store_that_fails(make: Callable[..., Site]) -> None:
    class Failing(MemoryStore):
        fails = True

        def add_crawler_visits(self, *visits: Any) -> None:
            if self.fails:
                raise StoreError("no room")
            super().add_crawler_visits(*visits)

        def load(self, *names: Any) -> dict[str, bytes]:
            if self.fails:
                raise StoreError("no room")
            return super().load(*names)

    site = make(store=Failing())
    site.get("/")
    assert site.visits() == set()
    site.store.fails = False
    assert site.visits() == {site.visit("/")}


def test_visits_are_saved_from_time_to_time(make: Callable[..., Site]) -> None:
    site = make()
    counts = site.middleware.service.crawler_visits
    saved = []
    for seconds in (0, 1, verified_visit_counting.SAVE_INTERVAL_SECONDS, -10_000):
        site.clock.now += seconds
        site.get("/")
        counts.on_flush(is_last=False)
        join_threads("sitemap-crawlers", 10)
        counts.on_flush(is_last=False)
        saved.append(sum(visit.count for visit in site.stored()))
    assert saved[-1] >= 3
    assert saved[1] < 2


def test_a_store_without_visits_is_used_as_before(make: Callable[..., Site]) -> None:
    class Custom(MemoryStore):
        @property
        def add_crawler_visits(self) -> Any:  # type: ignore[override]
            raise AttributeError

    site = make(store=Custom())
    site.get("/")
    assert site.visits() == set()
    assert site.middleware.stats()["crawler_visits_verified"] == 1


def test_visits_are_kept_if_no_thread_can_be_started(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    site = make()
    site.get("/")
    with monkeypatch.context() as ending:
        ending.setattr(threading.Thread, "start", fail)
        site.middleware.service.crawler_visits.finish()
    assert site.stored() == {site.visit("/", verified=False)}


def test_sites_beyond_the_quota_have_no_visits_in_the_store(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "MAX_UNNAMED_SITES", 2)
    site = make(base_url=None, allowed_hosts=".example.com")
    names = [f"{number}.example.com" for number in range(4)]
    for host in names:
        site.get("/", Host=host)
    site.middleware.flush()
    counted = [host for host in names if list(site.store.crawler_visits(StoreKey(f"https://{host}")))]
    assert 0 < len(counted) <= 2


def test_the_option_takes_a_flag_or_a_resolver() -> None:
    with pytest.raises(OptionError, match=r"crawlers='dns' is neither True, False nor a resolver"):
        WSGISite(crawlers="dns")


def test_a_fault_in_counting_is_logged_and_ends_nothing(
    make: Callable[..., Site], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(DNS):
        def names(self, address: str) -> Iterable[str]:
            raise ValueError(address)

    site = make(crawlers=Broken())
    assert site.get("/") == 200
    site.middleware.flush()
    assert "visits of crawlers could not be counted" in caplog.text


def test_a_request_with_more_fields_than_crawlers_send_is_learned_from(make: Callable[..., Site]) -> None:
    site = make()
    more = {f"X_Trace_{number}": "1" for number in range(8)}
    site.get("/", agent=CHROME, address=STRANGER)
    for path in ("/robots.txt", "/", "/"):
        site.get(path, **more)
    assert site.visits() == {site.visit("/robots.txt"), site.visit("/", count=2)}


def test_paths_with_secrets_are_not_stored(make: Callable[..., Site]) -> None:
    site = make()
    site.get("/reset/0123456789")
    assert site.visits() == {site.visit(OTHER_PATHS)}


CDN = {f"X_Trace_{number}": "1" for number in range(9)}
BROWSER = {f"Sec_Field_{number}": "1" for number in range(12)}


def test_headers_of_a_cdn_hide_no_visit_of_a_page_that_people_see(make: Callable[..., Site]) -> None:
    site = make()
    for _ in range(20):
        site.get("/", agent=CHROME, address=STRANGER, **BROWSER, **CDN)
        site.get("/", **CDN)
    assert site.visits() == {site.visit("/", count=20)}


def test_headers_that_browsers_send_too_hide_no_fetch_of_the_sitemap(make: Callable[..., Site]) -> None:
    site = make()
    for _ in range(2):
        site.get("/", agent=CHROME, address=STRANGER, **CDN)
        site.get("/robots.txt", **CDN)
    assert site.visits() == {site.visit("/robots.txt", count=2)}


def test_as_many_headers_as_somebody_else_sends_hide_visits_until_the_next_flush(make: Callable[..., Site]) -> None:
    site = make()
    for agent in (CHROME, CHROME, GOOGLEBOT):
        site.get("/", agent=agent, **CDN)
    assert site.visits() == set()
    site.get("/", **CDN)
    site.get("/", agent=CHROME, **CDN)
    site.get("/", **CDN)
    assert site.visits() == {site.visit("/", count=2)}


def test_numbers_of_headers_that_are_passed_over_are_bounded(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_crawler_requests, "MAX_SKIPPED_COUNTS", 1)
    site = make()
    site.get("/", agent=CHROME)
    for number in range(3):
        site.get("/", agent=CHROME, **BROWSER, **{f"X_{each}": "1" for each in range(number)})
    assert len(site.middleware.service.tracker.crawlers.skipped_counts) == 1


def test_long_paths_and_addresses_and_headers_are_not_kept(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_crawler_requests, "MAX_NOTED_CHARS", 100)
    site = make()
    site.get("/", X_Forwarded_For="1" * 50_000)
    site.get("/", address="1" * 101)
    site.get("/posts/" + "1" * 3000)
    requests = site.middleware.service.tracker.crawlers
    assert "11111" not in repr(requests.take())
    site.get("/posts/" + "1" * 101)
    assert requests.dropped == 1
    site.visits()
    site.get("/posts/" + "1" * 80)
    assert site.visit("/posts/" + "1" * 80) in site.visits()


def test_visits_that_need_no_dns_do_not_wait_for_it(make: Callable[..., Site]) -> None:
    site = make()
    (url,) = crawler_of_agent("Googlebot").range_urls
    ranges = pack_ranges({url: parse_ranges(b'["66.249.66.0/27"]')}, 1000)
    site.store.save(verified_visit_counting.RANGES_OWNER, {verified_visit_counting.RANGES_RECORD: ranges})
    site.dns.may_answer.clear()
    site.get("/", address=STRANGER)
    counts = site.middleware.service.crawler_visits
    counts.on_flush(is_last=False)
    site.get("/posts/1")
    counts.on_flush(is_last=False)
    assert counts.counts() == {"verified": {"Googlebot": 1}, "unverified": {}, "fake": {}}


# Metrics


def test_metrics_tell_the_known_crawlers_apart_and_no_other_agents(make: Callable[..., Site]) -> None:
    registry, reader = CollectorRegistry(), InMemoryMetricReader()
    provider = MeterProvider([reader])
    for metrics in (registry, provider.get_meter("shop")):
        site = make(metrics=metrics, path="/named.xml")
        for agent in (
            GOOGLEBOT,
            GOOGLEBOT,
            GPTBOT,
            CHROME,
            'Googlebot-Evil"} 1',
            "Mozilla/5.0 (EvilBot; Googlebot-Image)",
        ):
            site.get("/", agent=agent)
        site.visits()
        assert site.middleware.stats()["crawler_visits_verified"] == 4
    samples = [sample for family in registry.collect() for sample in family.samples if "crawler" in sample.labels]
    assert {(sample.name, sample.labels["crawler"]): sample.value for sample in samples} == {
        ("sitemap_crawler_visits_verified_total", "Googlebot"): 3,
        ("sitemap_crawler_visits_verified_total", "Googlebot-Image"): 1,
        ("sitemap_crawler_visits_unverified_total", "GPTBot"): 1,
    }
    data = reader.get_metrics_data()
    assert data is not None
    points = {
        (metric.name, str((point.attributes or {})["crawler"])): point.value  # type: ignore[union-attr]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if "crawler" in (point.attributes or {})
    }
    assert points == {
        ("sitemap.crawler.visits.verified", "Googlebot"): 3,
        ("sitemap.crawler.visits.verified", "Googlebot-Image"): 1,
        ("sitemap.crawler.visits.unverified", "GPTBot"): 1,
    }
    assert all(sample.labels["sitemap"] == f"{BASE}/named.xml" for sample in samples)
    provider.shutdown()
