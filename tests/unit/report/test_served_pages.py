"""The pages of the report: every number is that of `stats`, `explain`, the commands and the store."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, urljoin

import pytest
from selectolax.lexbor import LexborHTMLParser
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from sitemap_middleware import Entry, SitemapMiddleware, sitemap
from sitemap_middleware.evidence.dates import SECONDS_PER_DAY, w3c_day_from_timestamp
from sitemap_middleware.exceptions import StoreError
from sitemap_middleware.listing.evaluated_urls import pages_as_csv
from sitemap_middleware.models import Site, StoreKey
from sitemap_middleware.observe import prober
from sitemap_middleware.report import evaluation, pages, template_rendering
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import DRIVERS, Answer, RequestSpec

BASE = "https://shop.example"
REPORT = "/internal/report"
HTML = ("content-type", "text/html; charset=utf-8")
NAMES = ("", "/pages", "/routes", "/changes", "/documents", "/health")
HOSTILE = "\"'><script>alert(1)</script><a href=javascript:alert(1)>"


def allow(_: object) -> bool:
    return True


def page_of(text: str) -> Page:
    return Page(body=f"<!doctype html><p>{text}".encode())


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


@pytest.fixture(scope="module")
def sample() -> SampleSite:
    return shop("wsgi")


def get(sample: SampleSite, path: str = "", query: str = "", **more: Any) -> Answer:
    return sample.request(REPORT + path, host="shop.example", query=query, **more)


def text_of(answer: Answer) -> str:
    return " ".join(LexborHTMLParser(answer.text).text(separator=" ").split())


def rows_of(answer: Answer) -> list[list[str]]:
    """The cells of the rows of all tables, without the headings of the first one."""
    rows = LexborHTMLParser(answer.text).css("tr")
    return [[" ".join(cell.text().split()) for cell in row.css("th, td")] for row in rows[1:]]


def links_of(answer: Answer) -> list[str]:
    return [str(node.attributes["href"]) for node in LexborHTMLParser(answer.text).css("[href]")]


def snapshot(sample: SampleSite) -> Any:
    service: Any = sample.app.service
    return service.snapshot(Site("https", "shop.example"), service.store)


@pytest.mark.parametrize("sort", ["path", "date", "seen"])
@pytest.mark.parametrize("show", ["all", "listed", "left-out"])
def test_every_page_is_reached_once_by_the_links_to_the_next_ones(sort: str, show: str, sample: SampleSite) -> None:
    found: list[str] = []
    link: str | None = f"?show={show}&sort={sort}"
    while link is not None:
        answer = get(sample, "/pages", link.partition("?")[2])
        found += [row[0] for row in rows_of(answer)]
        after = re.search(r'<a rel="next" href="([^"]*)"', answer.text)
        link = after[1].replace("&amp;", "&") if after else None
    lines = sample.app.service.url_report([snapshot(sample)])
    expected = {
        template_rendering.readable(line.url.removeprefix(BASE))
        for line in lines
        if show == "all" or line.listed == (show == "listed")
    }
    assert sorted(found) == sorted(expected)
    if sort == "path":
        assert found == sorted(found)


def test_pages_are_searched_in_any_case_and_by_characters_that_urls_encode(sample: SampleSite) -> None:
    for query, paths in (
        ("q=LOAF-01", [f"/loaves/loaf-01{n}" for n in range(10)]),
        (f"q={quote('zoë')}", ["/authors/zoë"]),
        ("group=it%20answered%20403", ["/kitchen"]),
    ):
        assert [row[0] for row in rows_of(get(sample, "/pages", query))] == paths
    assert "No page matches." in text_of(get(sample, "/pages", "q=nothing"))


def test_reasons_that_differ_in_a_detail_are_one_group() -> None:
    pages = {
        "/": Page(),
        **{f"/copy-{n}": Page().with_headers(("link", f'<{BASE}/{n}>; rel="canonical"')) for n in range(3)},
        **{f"/away-{n}": Page(200, [HTML], b"<meta http-equiv=refresh content='0;url=/%d'>" % n) for n in range(3)},
        **{f"/error-{n}": Page(n) for n in range(400, 425)},
    }
    sample = SampleSite("wsgi", pages, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    sample.visit(*pages)
    rows = [row[:2] for row in rows_of(get(sample)) if row[1] == "3"]
    assert rows == [["it leads to another page at once", "3"], ["its canonical URL is another", "3"]]


def test_findings_say_what_to_do_and_lead_to_its_pages() -> None:
    links = "".join(f"<a href={path}>x</a>" for path in ("/lost", "/gone", "/secret", "/forbidden", "/about", "/staff"))
    pages = {
        "/": Page(body=f"<!doctype html>{links}".encode()),
        **{path: page_of(path) for path in ("/about", "/alone", "/forbidden", "/staff", "/gone", "/retired")},
        "/q/{term}": Page(),
        "/lost": Page(404),
        "/secret": Page(403),
        "/robots.txt": Page(200, [("content-type", "text/plain")], b"User-agent: *\nDisallow: /forbidden"),
    }
    marks = {"/staff": sitemap(exclude=True), "/q/{term}": sitemap(learn=True)}
    sample = SampleSite("wsgi", pages, marks=marks, base_url=BASE, report=REPORT, authorize=allow, priority=0.9)
    sample.visit(*(path for path in pages if "{" not in path), *(f"/q/{number}" for number in range(5)))
    sample.clock.pass_(60)
    sample.pages |= {"/gone": Page(410), "/retired": Page(410)}
    sample.visit("/gone", "/retired")
    listed = ["/", "/about", "/alone", "/q/0"]
    expected = {
        "errors": ["/gone", "/lost"],
        "forbidden": ["/forbidden"],
        "linked": ["/secret"],
        "repeated": [f"/q/{number}" for number in range(1, 5)],
        "unlinked": ["/alone"],
        "priority": listed,
        "undated": listed,
    }
    found = re.findall(r'href="(?:\w+/)?pages\?show=(\w+)">[^<]*: <strong>(\d+)<', get(sample).text)
    assert found == [(rule, str(len(paths))) for rule, paths in expected.items()]
    assert {rule: [row[0] for row in rows_of(get(sample, "/pages", f"show={rule}"))] for rule in expected} == expected
    assert "no page that was read links to it" in text_of(get(sample, "/page", "path=/alone"))


def found_in(sample: SampleSite) -> dict[str, list[str]]:
    """The findings: the first words of each, with the pages in its list, if it has one."""
    items = LexborHTMLParser(get(sample).text).css(".findings li a")
    shows = [(item.text(), str(item.attributes["href"]).partition("pages?")[2]) for item in items]
    return {
        text.partition(":")[0]: [row[0] for row in rows_of(get(sample, "/pages", query))] if query else []
        for text, query in shows
    }


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_listed_pages_that_fail_now_or_equal_others_are_found(protocol: str) -> None:
    paths = ("/", "/twin", "/other-twin", "/fails", "/fine")
    pages = {path: page_of(path[-4:]) for path in paths}
    sample = SampleSite(protocol, pages, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    sample.visit(*paths)
    sample.clock.pass_(60)
    sample.pages |= {"/fails": Page(500), "/fine": Page(503)}
    sample.visit("/fails", "/fine")
    sample.pages["/fine"] = page_of("/fine")
    sample.visit("/fine")
    found = found_in(sample)
    assert found["Pages that answer errors"] == ["/fails"]
    assert found["Pages that repeat another page"] == ["/other-twin", "/twin"]
    assert "it answered a visitor with 500" in text_of(get(sample, "/pages", "show=errors"))
    assert sample.locs() == sorted(BASE + path for path in paths)


def test_errors_that_the_app_raises_and_slow_pages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bugs: list[Exception] = []

    def page(_: object) -> HTMLResponse:
        if bugs:
            raise bugs[0]
        return HTMLResponse("<!doctype html><p>A page.")

    monkeypatch.setattr(prober, "SLOW_SECONDS", 0.0)
    app = Starlette(routes=[Route("/", page), Route("/robots.txt", lambda _: PlainTextResponse(""))])
    options = {"base_url": BASE, "report": REPORT, "authorize": allow, "clock": (clock := Clock())}
    app.add_middleware(SitemapMiddleware, store="memory://", **options)
    request = partial(RequestSpec, host="shop.example")
    slow = DRIVERS["asgi"](app, request(f"{REPORT}/pages", query="show=slow"))
    assert "it took 0.0 seconds to answer" in slow.text
    bugs.append(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        DRIVERS["asgi"](app, request("/"))
    clock.pass_(3600)
    errors = DRIVERS["asgi"](app, request(f"{REPORT}/pages", query="show=errors"))
    assert "it raised ZeroDivisionError for a visitor" in errors.text


def test_what_is_wrong_with_the_site_itself_is_found() -> None:
    pages = {"/": page_of("<a href=/posts/rye>rye</a>"), "/posts/{slug}": Page(), "/robots.txt": Page(500)}
    options = {"base_url": BASE, "report": REPORT, "authorize": allow, "exclude": ["/drafst/*"]}
    sample = SampleSite("wsgi", pages, verify=True, **options)
    sample.visit("/")
    assert "The sitemap is not served the app's robots.txt fails, so it is not known what" in text_of(get(sample))
    expected = [
        "The sitemap is not served",
        "Routes whose values or dates fail, and patterns that match nothing",
        "Routes with parameters whose pages nobody names",
    ]
    assert [*found_in(sample)][:3] == expected
    sample.pages["/robots.txt"] = Page(200, [("content-type", "text/plain")], b"User-agent: *\nDisallow: /")
    sample.clock.pass_(3600)
    assert [*found_in(sample)][:1] == ["robots.txt forbids the sitemap itself"]


def test_a_sitemap_that_no_crawler_requests_is_found() -> None:
    sample = SampleSite("wsgi", {"/": Page()}, base_url=BASE, report=REPORT, authorize=allow)
    agent, other = ("user-agent", "Mozilla/5.0 (compatible; Googlebot/2.1)"), ("user-agent", "UptimeRobot/2.0")
    for days, headers, is_found in ((0, (), False), (31, (other,), True), (31, (agent,), False), (29, (), False)):
        sample.clock.pass_(days * SECONDS_PER_DAY)
        sample.request("/sitemap.xml", headers=headers)
        sample.app.flush()
        assert any("No crawler" in text for text in found_in(sample)) == is_found


def test_the_table_of_pages_is_downloaded_whole(sample: SampleSite) -> None:
    answer = get(sample, "/pages.csv", "show=listed")
    listed = (line for line in sample.app.service.url_report([snapshot(sample)]) if line.listed)
    assert answer.headers[0] == ("content-type", "text/csv; charset=utf-8")
    assert answer.text == pages_as_csv(sorted(listed))


def test_routes_lead_to_their_pages(sample: SampleSite) -> None:
    reports = sample.app.service.route_report([snapshot(sample)])
    routes = get(sample, "/routes")
    assert [row[0] for row in rows_of(routes)] == [report.route.path for report in reports]
    linked = {link for link in links_of(routes) if "route=" in link}
    counts = sorted(len(rows_of(get(sample, "/pages", link.partition("?")[2]))) for link in linked)
    assert counts == sorted(min(100, report.known + report.provided) or 1 for report in reports)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "query", ["", "page=x", "page=-1", "page=0", "page=99999999999999999999", "group=x", "show=listed", "sort=no&show=no",
              "since=2025-02-30", "since=9999-01-01", "since=x", "q=%ff%00", "a" * 9000, "&".join("q=1" for _ in range(99))]
)  # fmt: skip
def test_any_query_is_answered(name: str, query: str, sample: SampleSite) -> None:
    assert get(sample, name, query).status == 200


@pytest.mark.parametrize("since", ["90m", "2025-02-30", "9999-01-01", "<b>"])
def test_changes_since_what_is_no_day_say_which_are_shown(since: str, sample: SampleSite) -> None:
    week_ago = w3c_day_from_timestamp(int(sample.clock()) - 7 * 86400)
    text = text_of(get(sample, "/changes", f"since={quote(since)}"))
    assert f"“{since}” is no date up to today" in text
    assert f"These are the changes since {week_ago}." in text
    assert re.search(r"\d first seen, \d+ changed, .*First seen", text)
    for good in (f"since={week_ago}", ""):
        assert "is no date" not in text_of(get(sample, "/changes", good))


def test_a_page_that_is_not_known_is_explained(sample: SampleSite) -> None:
    for asked in ("/nowhere", "https://elsewhere.example/"):
        answer = get(sample, "/page", f"path={asked}")
        assert answer.status == 404
        assert f"Left out {sample.app.explain(asked).reason}" in text_of(answer)


def test_a_page_that_values_name_no_more_is_shown_with_its_route_evidence_and_history() -> None:
    slugs = ["rye"]
    marks = {"/posts/{slug}": sitemap(values=lambda: slugs)}
    site = SampleSite("wsgi", {"/posts/{slug}": Page()}, marks=marks, base_url=BASE, report=REPORT, authorize=allow)
    site.visit("/posts/rye")
    slugs.clear()
    text = text_of(get(site, "/page", "path=/posts/rye"))
    assert re.search("not include it .*Route /posts/<slug> .*type text/html .*content 1 was seen once", text)


def test_a_page_is_asked_for_by_its_path_or_its_url(sample: SampleSite) -> None:
    for path in ("/authors/zoë", f"{BASE}/authors/zoë?x=1", "/authors/zo%C3%AB", "authors/zoë"):
        answer = get(sample, "/page", f"path={quote(path)}")
        assert (answer.status, '<h1 class="path">/authors/zoë</h1>' in answer.text) == (200, True)


def test_links_are_relative_and_lead_to_pages_of_the_report() -> None:
    sample = SampleSite("wsgi", {"/": Page()}, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    mounted: dict[str, Any] = {"host": "shop.example", "root": "/mounted"}
    for name in NAMES:
        for link in links_of(sample.request(REPORT + name, **mounted)):
            if not link.startswith((f"{BASE}/mounted/", "#")):
                assert not link.startswith("/"), link
                path = urljoin(REPORT + name, link).partition("?")[0]
                assert sample.request(path, query="path=/mounted/", **mounted).status == 200, link


def test_hostile_text_is_escaped_everywhere() -> None:
    page = Page().with_headers(("link", f'<https://elsewhere.example/{quote(HOSTILE)}>; rel="canonical"'))
    pages = {"/{slug}": page, "/x": Page(200, [("content-type", "text/html; charset=utf-8")])}
    sample = SampleSite(
        "asgi", pages, marks={"/{slug}": sitemap(learn=True)}, base_url=BASE, robots=False, report=REPORT,
        authorize=allow, exclude=["/x*"],
    )  # fmt: skip
    sample.visit(f"/{HOSTILE.replace('/', '')}", "/x", "/" + chr(0x202E) + "evil")
    for path, query in (*((name, "") for name in NAMES), ("/page", f"path={quote(HOSTILE)}"), ("/pages", f"q={quote(HOSTILE)}"),
                        ("/changes", f"since={quote(HOSTILE)}"), (f"/{HOSTILE}", "")):  # fmt: skip
        answer = get(sample, path, query)
        assert b"<script" not in answer.body
        assert b"<a href=javascript" not in answer.body
        assert not any(link.lower().startswith("javascript") for link in links_of(answer))
        assert not re.search(r"<[^>]*\s(?:on\w+|style)=", answer.text)


def test_what_takes_long_is_evaluated_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "WAIT_SECONDS", 0.0)
    sample = shop("wsgi")
    jobs: list[Any] = []
    monkeypatch.setattr(evaluation, "run_in_background", jobs.append)
    assert "The pages are being evaluated" in text_of(get(sample))
    assert get(sample, "/documents").status == get(sample, "/health").status == 200
    assert len(jobs) == 1
    jobs.pop()()
    assert "What the sitemap lists" in text_of(get(sample))


def test_values_that_fail_are_told() -> None:
    pages = {"/": Page(), "/{slug}": Page(), "/posts/{slug}": Page()}
    marks = {"/{slug}": sitemap(values=lambda: 1 / 0), "/posts/{slug}": sitemap(values=["rye"])}
    sample = SampleSite("wsgi", pages, marks=marks, base_url=BASE, report=REPORT, authorize=allow, robots=False)
    assert "Pages are missing here: the values of" in text_of(get(sample))
    assert "/posts/rye" in text_of(get(sample, "/pages"))


class StoreThatFills(MemoryStore):
    is_full = False

    def version(self, site: StoreKey) -> int:
        if self.is_full:
            raise StoreError("the disk is full")
        return super().version(site)


def test_a_store_that_fails_is_told() -> None:
    store = StoreThatFills()
    sample = shop("wsgi", store=store)
    store.is_full = True
    answer = get(sample)
    assert (answer.status, "the disk is full" in answer.text) == (503, True)
    assert "the disk is full" in get(sample, "/health").text


def test_a_fault_of_the_report_itself_is_answered_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sample = shop("wsgi")
    monkeypatch.setattr(pages, "parse_qs", None)
    answer = get(sample, "/pages", "q=1")
    assert (answer.status, answer.text) == (500, "The report could not be made: internal error, see the log.\n")
    assert "the report could not be made" in caplog.text


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
        "/stated": "date it states 2025-05-02",
        "/noindex": "refused its X-Robots-Tag says noindex",
        "/meta": "refused its robots meta tag says noindex",
        "/away": "it leads to another page at once",
        "/later": "waits for confirmation an answer of 403",
    }
    for path, text in expected.items():
        assert text in text_of(get(sample, "/page", f"path={path}"))


def test_a_share_is_all_or_nothing_only_if_it_is() -> None:
    shares = {(0, 0): "–", (0, 7): "0 %", (7, 7): "100 %", (998, 999): "99.9 %", (1, 100_000): "0.1 %"}
    assert {share: template_rendering.percent(*share) for share in shares} == shares
