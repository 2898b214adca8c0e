"""The command crawlers, of an app with visits in its store; ranges are served by a local server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import flask
import pytest
from click.testing import Result

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.cli.main import command, commands_for
from sitemap_middleware.crawlers import ip_range_download
from sitemap_middleware.crawlers.counted_visits import OTHER_PATHS, CrawlerVisit
from sitemap_middleware.crawlers.ip_address_ranges import unpack_ranges
from sitemap_middleware.models import StoreKey
from sitemap_middleware.observation.verified_visit_counting import RANGES_OWNER, RANGES_RECORD
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ...support.command_line import cli_runner
from ..check.web_site import Reply, WebSite, served

BASE = "https://bakery.example"
VISIT = CrawlerVisit("/", "Googlebot", True, 200, first=1_790_000_000, last=1_790_000_000, count=3)
VISITS = [
    VISIT,
    VISIT._replace(path="/breads/rye"),
    VISIT._replace(path="/breads/rye", crawler="GPTBot", verified=False),
    VISIT._replace(path="/old", count=2),
    VISIT._replace(path="/gone", status=404, last=1_800_000_000),
    VISIT._replace(path="/sitemap.xml", count=9),
    VISIT._replace(path="/robots.txt", count=8),
    VISIT._replace(path=OTHER_PATHS, status=404, verified=False, fake=True, count=70),
]


def make_app(store: str) -> flask.Flask:
    app = flask.Flask(__name__)
    app.add_url_rule("/", "home", lambda: "<h1>Bakery</h1>")
    view = sitemap(values=["rye", "spelt"])(lambda slug: f"<h1>{slug}</h1>")
    app.add_url_rule("/breads/<slug>", "bread", view)
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=BASE, store=store, crawlers=False)  # type: ignore[method-assign]
    return app


@pytest.fixture
def app(tmp_path: Path) -> Iterator[flask.Flask]:
    app = make_app(f"sqlite:///{tmp_path}/sitemap.sqlite3")
    app.test_client().get("/sitemap.xml", base_url=BASE)
    store = app.wsgi_app.service.store  # type: ignore[attr-defined]
    store.add_crawler_visits(StoreKey(BASE), VISITS)
    yield app
    app.wsgi_app.close()  # type: ignore[attr-defined]


def run(app: flask.Flask, *arguments: str) -> Result:
    return cli_runner().invoke(commands_for(app), ["crawlers", *arguments])


def test_the_figures_are_printed(app: flask.Flask) -> None:
    answer = run(app)
    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        f"{BASE}: pages listed 3, crawled 2",
        "by crawler:",
        "  Googlebot  visits 28, pages 2, errors 3, fake 70, last 2027-01-15T08:00:00Z",
        "  GPTBot  visits 0, pages 0, errors 0, unverified 3",
        "by route:",
        "  other  Googlebot: visits 5, pages 0, last 2027-01-15T08:00:00Z",
        "  /  Googlebot: visits 3, pages 1, last 2026-09-21T14:13:20Z",
        "  /breads/<slug>  Googlebot: visits 3, pages 1, last 2026-09-21T14:13:20Z",
        "listed, and never crawled:",
        "  /breads/spelt",
        "crawled, and not listed:",
        "  /old  200 to Googlebot: visits 2, last 2026-09-21T14:13:20Z",
        "errors:",
        "  /gone  404 to Googlebot: visits 3, last 2027-01-15T08:00:00Z",
        "the sitemap and robots.txt:",
        "  /sitemap.xml  200 to Googlebot: visits 9, last 2026-09-21T14:13:20Z",
        "  /robots.txt  200 to Googlebot: visits 8, last 2026-09-21T14:13:20Z",
    ]


def test_json_has_the_same_figures(app: flask.Flask) -> None:
    figures = json.loads(run(app, "--json").stdout)
    assert figures["site"] == BASE
    assert figures["crawlers"][0] == {
        "crawler": "Googlebot",
        "visits": 28,
        "pages": 2,
        "errors": 3,
        "last": "2027-01-15T08:00:00Z",
        "unverified": 0,
        "fake": 70,
    }
    assert figures["crawlers"][1]["last"] is None
    assert figures["sections"][1] == {
        "section": "/",
        "crawler": "Googlebot",
        "visits": 3,
        "pages": 1,
        "last": "2026-09-21T14:13:20Z",
    }
    assert (figures["listed"], figures["crawled"], figures["never_crawled"]) == (3, 2, ["/breads/spelt"])
    assert [line["path"] for line in figures["not_listed"]] == ["/old"]
    assert figures["errors"][0]["status"] == 404
    assert [line["path"] for line in figures["documents"]] == ["/sitemap.xml", "/robots.txt"]
    assert figures["notes"] == []


def test_unverified_visits_and_a_moment_are_options(app: flask.Flask) -> None:
    assert "GPTBot: visits 3, pages 1" in run(app, "--unverified").stdout
    ancient = VISIT._replace(path="/ancient", first=1_500_000_000, last=1_500_000_000)  # in 2017
    app.wsgi_app.service.store.add_crawler_visits(StoreKey(BASE), [ancient])  # type: ignore[attr-defined]
    assert "/ancient" in run(app).stdout
    recent = run(app, "--since", "2020-01-01")
    assert recent.exit_code == 0
    assert "/old" in recent.stdout
    assert "/ancient" not in recent.stdout
    assert run(app, "--since", "soon").exit_code == 2


def test_long_lists_are_cut_but_not_in_json(app: flask.Flask) -> None:
    many = [VISIT._replace(path=f"/orphan/{number:02}") for number in range(30)]
    app.wsgi_app.service.store.add_crawler_visits(StoreKey(BASE), many)  # type: ignore[attr-defined]
    assert "and 11 more: --json prints all" in run(app).stdout
    assert len(json.loads(run(app, "--json").stdout)["not_listed"]) == 31


def test_an_app_without_visits_and_a_store_without_them_have_no_lists(tmp_path: Path) -> None:
    app = make_app("memory://")
    answer = run(app)
    assert answer.exit_code == 0
    assert "by crawler" not in answer.stdout
    app.wsgi_app.close()  # type: ignore[attr-defined]


# --update


FILES = {
    "/google.json": Reply(
        200,
        b'{"creationTime": "x", "prefixes": [{"ipv4Prefix": "66.249.64.0/19"}, {"ipv6Prefix": "2001:db8::/32"}]}',
    ),
    "/gptbot.json": Reply(200, b'{"prefixes": ["20.171.206.0/24"]}'),
    "/page.json": Reply(200, b"<html>Sorry</html>"),
    "/gone.json": Reply(404, b"{}"),
}


@pytest.fixture
def operator() -> Iterator[WebSite]:
    """The site of an operator, with its files."""
    with served() as site:
        for path, reply in FILES.items():
            site.add(path, reply)
        yield site


def test_ranges_are_fetched_and_kept_in_the_store(
    app: flask.Flask, operator: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"{operator.origin}/google.json", f"{operator.origin}/gptbot.json"]
    monkeypatch.setattr(ip_range_download, "RANGE_URLS", urls)
    answer = run(app, "--update")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[0].endswith("files fetched 2, networks 3")
    store = app.wsgi_app.service.store  # type: ignore[attr-defined]
    ranges, updated_at = unpack_ranges(store.load(RANGES_OWNER, [RANGES_RECORD])[RANGES_RECORD])
    assert {url: list(map(str, networks)) for url, networks in ranges.items()} == {
        urls[0]: ["66.249.64.0/19", "2001:db8::/32"],
        urls[1]: ["20.171.206.0/24"],
    }
    assert updated_at > 0


@pytest.mark.parametrize("name", ["{}", "sqlite:///{}"])
def test_ranges_are_kept_in_a_store_that_is_named_without_an_app(
    name: str, operator: WebSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, file = f"{operator.origin}/google.json", tmp_path / "sitemap.sqlite3"
    monkeypatch.setattr(ip_range_download, "RANGE_URLS", [url])
    with contextlib.closing(SQLiteStore(file)) as store:
        store.save(RANGES_OWNER, {})
        answer = cli_runner().invoke(command, ["crawlers", name.format(file), "--update"])
        assert answer.exit_code == 0, answer.output
        ranges, _ = unpack_ranges(store.load(RANGES_OWNER, [RANGES_RECORD])[RANGES_RECORD])
    assert [*ranges] == [url]


def test_figures_need_the_app_and_not_its_store_alone(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.sqlite3"
    SQLiteStore(file).close()
    answer = cli_runner().invoke(command, ["crawlers", f"sqlite:///{file}"])
    assert answer.exit_code == 2
    assert "MODULE:ATTRIBUTE" in answer.stderr


def test_a_file_that_cannot_be_read_is_named_and_its_last_ranges_stay(
    app: flask.Flask, operator: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ip_range_download, "RANGE_URLS", [f"{operator.origin}/google.json"])
    assert run(app, "--update").exit_code == 0
    operator.add("/google.json", Reply(200, b"[]"))
    urls = [f"{operator.origin}{path}" for path in ("/google.json", "/page.json", "/gone.json")] + [
        "http://127.0.0.1:1/x"
    ]
    monkeypatch.setattr(ip_range_download, "RANGE_URLS", urls)
    answer = run(app, "--update", "--json")
    assert answer.exit_code == 2
    problems = json.loads(answer.stdout)["problems"]
    assert [problems[url] for url in urls[:3]] == ['it has no list "prefixes"', "it is not JSON", "it answered 404"]
    assert "refused" in problems[urls[3]]
    assert f"{urls[1]}: it is not JSON" in answer.stderr
    store = app.wsgi_app.service.store  # type: ignore[attr-defined]
    ranges, _ = unpack_ranges(store.load(RANGES_OWNER, [RANGES_RECORD])[RANGES_RECORD])
    assert list(ranges) == [urls[0]]


def test_a_store_in_memory_keeps_no_ranges() -> None:
    app = make_app("memory://")
    answer = run(app, "--update")
    assert answer.exit_code == 2
    assert "the store is memory://" in answer.stderr
    app.wsgi_app.close()  # type: ignore[attr-defined]


def test_every_range_of_the_known_crawlers_is_fetched() -> None:
    assert len(ip_range_download.RANGE_URLS) == len(set(ip_range_download.RANGE_URLS)) > 10
    assert "crawlers" in command.commands
