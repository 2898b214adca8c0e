"""The pages of the report: every number is that of `stats`, `explain`, the commands and the store."""

from __future__ import annotations

import gc
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sitemap_middleware import Entry, sitemap
from sitemap_middleware.crawlers.counted_visits import CrawlerVisit
from sitemap_middleware.dates import SECONDS_PER_DAY, w3c_day_from_timestamp
from sitemap_middleware.models import Site
from sitemap_middleware.report import background_evaluation, health, served_pages
from sitemap_middleware.report.evaluated_urls_database import SiteIndex

from ...support.forking import fork_children, run_in_fresh_process
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import Answer

BASE = "https://shop.example"
REPORT = "/internal/report"
PROTOCOLS = ("wsgi", "asgi")
HTML = ("content-type", "text/html; charset=utf-8")
NAMES = ("", "/pages", "/sitemap", "/changes", "/documents", "/crawlers", "/health")
HOSTILE = "\"'><script>alert(1)</script><a href=javascript:alert(1)>"


def allow(_: object) -> bool:
    return True


def shop(protocol: str, **options: Any) -> SampleSite:
    today = date(2025, 6, 15)
    items = [Entry({"slug": f"loaf-{n:03}"}, lastmod=today - timedelta(days=3 * n)) for n in range(120)]
    pages = {
        "/": Page(),
        "/about": Page().with_headers(("last-modified", "Thu, 01 May 2025 06:30:00 GMT")),
        "/kitchen": Page(403),
        "/old": Page(),
        "/canonical": Page().with_headers(("link", '<https://shop.example/about>; rel="canonical"')),
        "/hidden": Page(),
        "/loaves/{slug}": Page(),
        "/authors/{name}": Page(),
    }
    marks = {
        "/hidden": sitemap(exclude=True),
        "/loaves/{slug}": sitemap(values=lambda: items),
        "/authors/{name}": sitemap(learn=True),
    }
    options = {"base_url": BASE, "robots": False, "report": REPORT, "authorize": allow, **options}
    sample = SampleSite(protocol, pages, marks=marks, **options)
    sample.visit("/", "/about", "/kitchen", "/old", "/canonical", "/authors/eve", "/authors/zoë")
    sample.clock.pass_(2 * SECONDS_PER_DAY)
    pages["/old"] = sample.pages["/old"] = Page(410)
    sample.visit("/", "/old", "/authors/eve")
    return sample


def get(sample: SampleSite, path: str = "", query: str = "", **more: Any) -> Answer:
    return sample.request(REPORT + path, host="shop.example", query=query, **more)


class Text(HTMLParser):
    """The text of a page, the links, and its tables as rows of cells."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self._cell = False
        self.feed(answer.text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.links += [value for name, value in attrs if name == "href"]
        if tag == "tr":
            self.rows.append([])
        self._cell = tag in ("td", "th") or (self._cell and tag not in ("tr", "table"))
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[-1][-1] += data
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def cells(self) -> list[list[str]]:
        return [[" ".join(cell.split()) for cell in row] for row in self.rows]


def snapshot(sample: SampleSite) -> Any:
    service: Any = sample.app.service
    return service.snapshot(Site("https", "shop.example"), service.store)


def tile(answer: Answer, label: str) -> str:
    match = re.search(rf'{label}</span> <span class="value">([^<]*)', answer.text)
    assert match is not None, label
    return match[1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
class TestNumbers:
    def test_the_overview_has_those_of_stats_and_of_the_command_list(self, protocol: str) -> None:
        sample = shop(protocol)
        answer = get(sample)
        lines = list(sample.app.service.url_report([snapshot(sample)]))
        listed = [line for line in lines if line.listed]
        assert tile(answer, "Listed") == f"{sample.app.stats()['listed']:,}" == f"{len(listed):,}"
        assert len(sample.locs(host="shop.example")) == len(listed)
        assert tile(answer, "Left out") == str(len(lines) - len(listed))
        cells = Text(answer).cells
        sources = Counter(line.lastmod_from or "no date is known" for line in listed)
        for source, count in sources.items():
            assert any(row[:2] == [source, f"{count:,}"] for row in cells), source
        reports = sample.app.service.route_report([snapshot(sample)])
        assert sum((Counter(report.lastmod) for report in reports), Counter())["Last-Modified"] == 1
        assert tile(answer, "Documents") == str(sample.app.stats()["documents"])

    def test_pages_have_the_verdicts_of_explain(self, protocol: str) -> None:
        sample = shop(protocol)
        for path in ("/", "/about", "/kitchen", "/old", "/canonical", "/hidden", "/loaves/loaf-001", "/authors/eve"):
            explanation = sample.app.explain(path)
            detail = Text(get(sample, "/page", f"path={quote(path)}"))
            found = Text(get(sample, "/pages", f"q={quote(path)}")).cells
            assert next(row for row in found if row[0] == path)[1:3] == [
                "Listed" if explanation.listed else "Left out",
                explanation.reason,
            ]
            assert explanation.reason in detail.text
            if explanation.listed:
                lastmod = (explanation.entry and explanation.entry.lastmod) or "none"
                assert f"lastmod {lastmod} ({explanation.lastmod_source})" in detail.text

    def test_changes_are_those_of_the_command(self, protocol: str) -> None:
        sample = shop(protocol)
        for days in (0, 1, 7, 30, 365):
            since = (int(sample.clock()) // SECONDS_PER_DAY - days) * SECONDS_PER_DAY
            page = Text(get(sample, "/changes", f"since={w3c_day_from_timestamp(since)}"))
            expected = list(sample.app.service.changes([snapshot(sample)], since))
            counts = Counter(change.kind for change in expected)
            assert f"{counts['new']} new, {counts['changed']} changed, {counts['dropped']} dropped." in page.text
            shown = {(f"{BASE}{row[0]}", row[1].lower()) for row in page.cells[1:]}
            assert shown <= {(change.url, change.kind) for change in expected}
            assert len(shown) == min(100, len(expected))

    def test_weeks_add_up_to_the_changes_of_all_of_them(self, protocol: str) -> None:
        sample = shop(protocol)
        now = int(sample.clock())
        since = background_evaluation.first_week(now) * SECONDS_PER_DAY
        weeks = [row for row in Text(get(sample)).cells if re.fullmatch(r"\d{4}-\d\d-\d\d", row[0])]
        expected = Counter(change.kind for change in sample.app.service.changes([snapshot(sample)], since))
        assert len(weeks) == background_evaluation.WEEKS
        for column, kind in enumerate(("new", "changed", "dropped"), 1):
            assert sum(int(row[column]) for row in weeks) == expected[kind]

    def test_documents_have_the_sizes_that_are_served(self, protocol: str) -> None:
        sample = shop(protocol, sections={"guides": ["/guides/rye"]})
        rows = Text(get(sample, "/documents")).cells[1:]
        assert rows[0][0] == "/sitemap.xml index"
        assert "/sitemap-guides.xml" in [row[0] for row in rows]
        assert len(rows) == sample.app.stats()["documents"] == 5
        for row in rows:
            path = row[0].split()[0]
            body = sample.request(path, host="shop.example").body
            gzipped = sample.request(path, host="shop.example", headers=[("accept-encoding", "gzip")]).body
            assert row[2] == site_size(len(body))
            assert row[3] == site_size(len(gzipped))
            assert row[1] == str(body.count(b"<loc>"))

    def test_health_has_the_figures_of_stats(self, protocol: str) -> None:
        sample = shop(protocol)
        answer = get(sample, "/health")
        cells = {row[0].split()[0]: row[1] for row in Text(answer).cells if len(row) == 2}
        stats = sample.app.stats()
        for name, value in stats.items():
            if name != "last_flush_age_seconds":
                assert cells[name] == f"{value:,.1f}".removesuffix(".0"), name
        assert "https://shop.example" in answer.text

    def test_crawlers_have_the_figures_of_the_store(self, protocol: str) -> None:
        sample = shop(protocol)
        key = Site("https", "shop.example").store_key
        now = int(sample.clock())
        sample.app.service.store.add_crawler_visits(
            key,
            [
                CrawlerVisit("/about", "Googlebot", True, 200, now - 50, now - 5, 7),
                CrawlerVisit("/about", "Googlebot", False, 200, now - 50, now - 5, 11, True),
                CrawlerVisit("/kitchen", "Bingbot", True, 403, now - 9, now - 9, 2),
                CrawlerVisit("/secret", "Bingbot", True, 200, now - 9, now - 9, 3),
                CrawlerVisit("/sitemap.xml", "Bingbot", True, 200, now - 9, now - 9, 4),
            ],
        )
        answer = get(sample, "/crawlers")
        rows = Text(answer).cells
        assert ["Googlebot", "7", "1", "0", "0", "11"] in [row[:6] for row in rows]
        assert ["Bingbot", "9", "0", "2", "0", "0"] in [row[:6] for row in rows]
        for row in (["/secret", "Bingbot", "200", "3"], ["/kitchen", "Bingbot", "403", "2"]):
            assert row in rows
        assert tile(answer, "Fetches of the sitemap") == "4"
        assert tile(get(sample), "Crawler visits") == "16"
        assert "Googlebot, fake: 11 visits answered 200" in Text(get(sample, "/page", "path=/about")).text
        assert tile(answer, "Listed, never crawled") == str(int(sample.app.stats()["listed"]) - 1)


def site_size(count: int) -> str:
    return f"{count / 1000:.1f} kB" if count >= 1000 else f"{count} bytes"


@pytest.mark.parametrize("sort", ["path", "date", "seen"])
@pytest.mark.parametrize("show", ["all", "listed", "left-out"])
def test_every_page_is_reached_once_by_the_links_to_the_next_ones(sort: str, show: str) -> None:
    sample = shop("wsgi")
    found: list[str] = []
    link: str | None = f"?show={show}&sort={sort}"
    while link is not None:
        answer = get(sample, "/pages", link.partition("?")[2])
        found += [row[0] for row in Text(answer).cells[1:]]
        after = re.search(r'<a rel="next" href="([^"]*)"', answer.text)
        link = after[1].replace("&amp;", "&") if after else None
    lines = sample.app.service.url_report([snapshot(sample)])
    expected = {line.url.removeprefix(BASE) for line in lines if show == "all" or line.listed == (show == "listed")}
    assert len(found) == len(set(found))
    assert set(found) == expected
    if sort == "path":
        assert found == sorted(found)


def test_pages_are_searched_in_any_case_and_by_characters_that_urls_encode() -> None:
    sample = shop("wsgi")
    assert [row[0] for row in Text(get(sample, "/pages", "q=LOAF-01")).cells[1:]] == [
        f"/loaves/loaf-01{n}" for n in range(10)
    ]
    assert [row[0] for row in Text(get(sample, "/pages", f"q={quote('zoë')}")).cells[1:]] == ["/authors/zo%C3%AB"]
    assert "No page matches." in Text(get(sample, "/pages", "q=nothing")).text


def test_a_group_is_one_reason_or_one_source() -> None:
    sample = shop("wsgi")
    number = re.search(r'href="report/pages\?group=(\d+)">it answered 403', get(sample).text)
    assert number is not None
    assert [row[0] for row in Text(get(sample, "/pages", f"group={number[1]}")).cells[1:]] == ["/kitchen"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "query", ["", "after=x", "at=-1&after=/", "at=99999999999999999999&after=/", "group=x", "group=99", "sort=no&show=no",
              "since=2025-02-30", "since=9999-01-01", "since=x", "q=%ff%00", "a" * 9000, "&".join("q=1" for _ in range(99))]
)  # fmt: skip
def test_any_query_is_answered(name: str, query: str) -> None:
    assert get(shop_once(), name, query).status == 200


_shops: list[SampleSite] = []


def shop_once() -> SampleSite:
    if not _shops:
        _shops.append(shop("wsgi"))
    return _shops[0]


@pytest.mark.parametrize("since", ["90m", "2025-02-30", "9999-01-01", "<b>"])
def test_changes_since_what_is_no_day_say_which_are_shown(since: str) -> None:
    sample = shop_once()
    week_ago = w3c_day_from_timestamp(int(sample.clock()) - 7 * 86400)
    page = Text(get(sample, "/changes", f"since={quote(since)}"))
    assert f"“{since}” is no date up to today" in page.text
    assert f"These are the changes since {week_ago}." in page.text
    for good in (f"since={week_ago}", ""):
        assert "is no date" not in Text(get(sample, "/changes", good)).text


def test_a_bar_of_a_group_stands_for_its_share() -> None:
    sample = SampleSite(
        "wsgi",
        {"/": Page(), "/a": Page(403), "/b": Page(403), "/c": Page(404), "/d": Page(410)},
        base_url=BASE, report=REPORT, authorize=allow, robots=False,
    )  # fmt: skip
    sample.visit("/", "/a", "/b", "/c", "/d")
    bars = [bar for bar in re.findall(r"<rect[^>]*>", get(sample).text) if 'class="left-out"' in bar]
    widths = [re.search(r'\bwidth="(\d+)"', bar)[1] for bar in bars]  # type: ignore[index] # each has one
    assert widths == ["50", "25", "25"]


def test_a_page_that_is_not_known_is_explained() -> None:
    sample = shop_once()
    answer = get(sample, "/page", "path=/nowhere")
    assert answer.status == 404
    assert sample.app.explain("/nowhere").reason in Text(answer).text
    assert get(sample, "/page").status == 404


def test_links_are_relative_and_lead_to_pages_of_the_report() -> None:
    sample = SampleSite("wsgi", {"/": Page()}, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    for name in NAMES:
        answer = sample.request(REPORT + name, host="shop.example", root="/mounted")
        for link in Text(answer).links:
            if not link.startswith((f"{BASE}/mounted/", "#")):
                assert not link.startswith("/"), link
                target = link.removeprefix("../").removeprefix("report/").partition("?")[0]
                path = REPORT if target in ("report", "") else f"{REPORT}/{target}"
                assert sample.request(path, host="shop.example", root="/mounted", query="path=/").status == 200, link


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("root", ["", "/mounted"])
def test_on_a_developers_machine_documents_are_linked_where_it_serves_them(protocol: str, root: str) -> None:
    sample = SampleSite(protocol, {"/": Page()}, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    for name in ("", "/sitemap", "/documents"):
        links = Text(sample.request(REPORT + name, host="localhost:5000", root=root)).links
        assert f"http://localhost:5000{root}/sitemap.xml" in links
        assert not any(link.startswith(BASE) and link.endswith(".xml") for link in links)
    assert sample.request("/sitemap.xml", host="localhost:5000", root=root).status == 200
    for more in ({"host": "shop.example"}, {"host": "localhost", "headers": [("x-forwarded-for", "192.0.2.1")]}):
        links = Text(sample.request(REPORT, root=root, **more)).links
        assert any(link.startswith(BASE) and link.endswith("/sitemap.xml") for link in links)


def test_hostile_text_is_escaped_everywhere() -> None:
    page = Page().with_headers(("link", f'<https://elsewhere.example/{quote(HOSTILE)}>; rel="canonical"'))
    pages = {"/{slug}": page, "/x": Page(200, [("content-type", "text/html; charset=utf-8")])}
    sample = SampleSite(
        "asgi", pages, marks={"/{slug}": sitemap(learn=True)}, base_url=BASE, robots=False, report=REPORT,
        authorize=allow, exclude=["/x*"],
    )  # fmt: skip
    sample.visit(f"/{HOSTILE.replace('/', '')}", "/x", "/" + chr(0x202E) + "evil")
    now = int(sample.clock())
    visit = CrawlerVisit(f"/{HOSTILE}", HOSTILE, True, 404, now, now, 1)
    sample.app.service.store.add_crawler_visits(Site("https", "shop.example").store_key, [visit])
    for path, query in (*((name, "") for name in NAMES), ("/page", f"path={quote(HOSTILE)}"), ("/pages", f"q={quote(HOSTILE)}"),
                        ("/changes", f"since={quote(HOSTILE)}"), (f"/{HOSTILE}", "")):  # fmt: skip
        answer = get(sample, path, query)
        assert b"<script" not in answer.body
        assert b"<a href=javascript" not in answer.body
        assert not any(link.lower().startswith("javascript") for link in Text(answer).links)
        assert not re.search(r"<[^>]*\s(?:on\w+|style)=", answer.text)


def test_a_large_search_is_sent_in_parts_the_first_before_it_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    render_parts, query = served_pages.render_parts, SiteIndex.query

    def recorded_parts(*arguments: Any) -> Iterator[bytes]:
        for part in render_parts(*arguments):
            order.append("part")
            yield part

    def recorded_query(*arguments: Any) -> Any:
        order.append("search")
        return query(*arguments)

    monkeypatch.setattr(served_pages, "render_parts", recorded_parts)
    monkeypatch.setattr(SiteIndex, "query", recorded_query)
    monkeypatch.setattr(served_pages, "STREAMED_PAGES", 10)
    for protocol in PROTOCOLS:
        sample = shop(protocol)
        streamed = get(sample, "/pages", "q=loaf")
        assert streamed.header("content-length") is None
        assert len(Text(streamed).cells) == 101
        assert order[:2] == ["part", "search"]
        assert get(sample, "/pages", "q=loaf", method="HEAD").body == b""
        order.clear()


def test_it_shows_at_once_what_changed_in_a_small_site() -> None:
    sample = shop("wsgi")
    assert "Left out" in Text(get(sample, "/page", "path=/kitchen")).text
    sample.pages["/kitchen"] = Page()
    sample.clock.pass_(10)
    sample.request("/kitchen")
    assert "Listed" in Text(get(sample, "/page", "path=/kitchen")).text


def test_a_large_site_is_evaluated_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_evaluation, "SMALL_SITE_PAGES", 0)
    sample = shop("wsgi")
    jobs: list[Any] = []
    monkeypatch.setattr(
        "sitemap_middleware.adapters.wsgi_request.WSGIRequest.run_in_background", lambda _, job: jobs.append(job)
    )
    assert "The pages are being evaluated" in Text(get(sample)).text
    assert get(sample, "/documents").status == get(sample, "/health").status == 200
    assert len(jobs) == 1
    jobs.pop()()
    assert "What the sitemap lists" in Text(get(sample)).text


def test_an_old_evaluation_of_a_large_site_is_shown_with_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = shop("wsgi")
    get(sample)
    monkeypatch.setattr(background_evaluation, "QUICK_SECONDS", -1)
    jobs: list[Any] = []
    monkeypatch.setattr(
        "sitemap_middleware.adapters.wsgi_request.WSGIRequest.run_in_background", lambda _, job: jobs.append(job)
    )
    sample.clock.pass_(30)
    sample.visit("/about", "/kitchen")
    assert "Pages evaluated 30 seconds ago" in Text(get(sample)).text
    assert jobs == []
    sample.clock.pass_(3600)
    assert "Pages evaluated 1 hour ago" in Text(get(sample)).text
    jobs.pop()()
    assert "Pages evaluated 0 seconds ago" in Text(get(sample)).text


def test_values_that_fail_are_told() -> None:
    def fail() -> Any:
        raise LookupError("no table")

    sample = SampleSite(
        "wsgi", {"/": Page(), "/{slug}": Page()}, marks={"/{slug}": sitemap(values=fail)}, base_url=BASE, report=REPORT,
        authorize=allow, robots=False,
    )  # fmt: skip
    assert "Pages are missing here: the values of" in Text(get(sample)).text


def test_a_store_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from sitemap_middleware.exceptions import StoreError

    sample = shop("wsgi")

    def fail(*_: object) -> Any:
        raise StoreError("the disk is full")

    monkeypatch.setattr(type(sample.app.service.store), "blocks", fail)
    answer = get(sample)
    assert (answer.status, "the disk is full" in answer.text) == (503, True)
    assert "the disk is full" in get(sample, "/health").text


def test_a_fault_of_the_report_itself_is_answered_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sample = shop("wsgi")
    monkeypatch.setattr(served_pages, "parse_qs", None)
    answer = get(sample, "/pages", "q=1")
    assert (answer.status, answer.text) == (500, "The report could not be made: internal error, see the log.\n")
    assert "the report could not be made" in caplog.text


def test_each_site_has_a_report_of_its_own_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_evaluation, "MAX_SITES", 1)
    sample = SampleSite(
        "wsgi", {"/": Page()}, allowed_hosts=["a.example", "b.example"], report=REPORT, authorize=allow, robots=False,
        clock=Clock(),
    )  # fmt: skip
    for host in ("a.example", "b.example", "a.example"):
        assert f"http://{host}" in sample.request(REPORT, host=host).text


def open_databases() -> set[sqlite3.Connection]:
    gc.collect()
    return {found for found in gc.get_objects() if issubclass(type(found), sqlite3.Connection)}


def evaluated_in_a_child(folder: Path) -> tuple[str, list[int | None], str]:
    """The report, the exit code of a forked child that shows it, and the report after that."""
    sample = shop("wsgi", store=f"sqlite:///{folder}/sitemap.sqlite3")
    before = get(sample, "/pages").text
    sample.app.close()
    exit_codes = fork_children(show_report, [(sample, open_databases())], 60)
    return before, exit_codes, get(sample, "/pages").text


def show_report(sample: SampleSite, of_parent: set[sqlite3.Connection]) -> None:
    assert "/authors/eve" in get(sample, "/pages").text
    assert len(open_databases() - of_parent) == 2, "the store's, and that of the evaluation"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_evaluates_the_pages_itself_and_leaves_the_parents_database_open(tmp_path: Path) -> None:
    before, exit_codes, after = run_in_fresh_process(evaluated_in_a_child, tmp_path)
    assert exit_codes == [0]
    assert after == before


def test_the_database_of_an_evaluation_is_closed_when_nothing_uses_it() -> None:
    before = open_databases()
    index = SiteIndex(0)
    (database,) = open_databases() - before
    del index
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")


def test_a_store_that_fails_during_the_evaluation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from sitemap_middleware.exceptions import StoreError

    sample = shop("wsgi")

    def fail(*_: object) -> Any:
        raise StoreError("the disk is full")

    monkeypatch.setattr(type(sample.app.service.store), "find_pages", fail)
    answer = get(sample)
    assert (answer.status, "the disk is full" in answer.text) == (503, True)


def test_a_server_with_one_thread_evaluates_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sitemap_middleware.adapters.wsgi_request.WSGIRequest.runs_probes_inline", property(lambda _: True)
    )
    assert "What the sitemap lists" in Text(get(shop("wsgi"))).text


def test_the_evaluation_of_a_large_site_pauses_four_times_as_long_as_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_evaluation, "PAUSE_PAGES", 50)
    sample = shop("wsgi")
    ticks = iter(range(1000))
    sample.app.service.clock = lambda: next(ticks)
    pauses: list[float] = []
    found = background_evaluation.evaluate(sample.app.service, snapshot(sample), pause=pauses.append)
    assert found.index.pages == 128
    assert pauses == [4.0, 4.0]


def test_a_store_that_keeps_no_visits_has_none() -> None:
    sample = shop("wsgi")
    taken = snapshot(sample)

    class Plain:
        def __getattr__(self, name: str) -> Any:
            if name == "crawler_visits":
                raise AttributeError(name)
            return getattr(taken.store, name)

    assert background_evaluation.evaluate(sample.app.service, replace(taken, store=Plain())).crawlers is None


def test_the_evidence_of_a_page_has_what_its_response_said() -> None:
    html = b"<!doctype html><title>t</title><meta property='article:modified_time' content='2025-05-02'><main>x</main>"
    pages = {
        "/stated": Page(200, [HTML], html),
        "/noindex": Page().with_headers(("x-robots-tag", "noindex"), ("cache-control", "private")),
        "/meta": Page(200, [HTML], b"<!doctype html><meta name=robots content=noindex><title>t</title>"),
        "/away": Page(200, [HTML], b"<!doctype html><meta http-equiv=refresh content='0;url=/stated'><title>t</title>"),
        "/later": Page(),
    }
    sample = SampleSite("wsgi", pages, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    sample.visit(*pages)
    sample.clock.pass_(60)
    sample.pages["/later"] = Page(403)
    sample.visit("/later")
    expected = {
        "/stated": "Date it states 2025-05-02",
        "/noindex": "X-Robots-Tag noindex Cache-Control private",
        "/meta": "Robots meta tag noindex",
        "/away": "Not a page of its own",
        "/later": "Waits for confirmation an answer of 403",
    }
    for path, text in expected.items():
        assert text in Text(get(sample, "/page", f"path={path}")).text


def test_every_figure_of_stats_is_named() -> None:
    sample = shop_once()
    for name in sample.app.stats():
        assert health.label(name) != name.replace("_", " ")
