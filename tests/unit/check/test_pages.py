"""What pages and robots.txt show: each case gives exactly one code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sitemap_middleware.check.findings import FAMILIES
from sitemap_middleware.check.output import summary
from sitemap_middleware.check.run_check import check_coverage
from sitemap_middleware.check.run_state import SAMPLE_PAGES, CheckSettings, Pages, Run
from sitemap_middleware.listing.evaluated_urls import EvaluatedUrl

from .web_site import NAMESPACE, Reply, WebSite, check_url, codes, index, served, urlset, xml

NOW = 1_769_860_800.0  # 2026-01-31T12:00:00Z
PATH = "/sitemap.xml"
HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.fixture
def site() -> Iterator[WebSite]:
    with served() as site:
        site.add("/robots.txt", robots(f"Sitemap: {site.origin}{PATH}"))
        site.add("/", html("<h1>Home</h1><p>Welcome to our bakery in the old town.</p>"))
        yield site


def robots(*lines: str) -> Reply:
    return Reply(200, "\n".join(lines).encode(), {"Content-Type": "text/plain"})


def html(body: str, head: str = "", **headers: str) -> Reply:
    page = f"<!doctype html><html><head><title>Page</title>{head}</head><body>{body}</body></html>"
    return Reply(200, page.encode(), HTML | {name.replace("_", "-"): value for name, value in headers.items()})


def list_pages(site: WebSite, *paths: str, lastmod: str = "2025-06-01") -> None:
    date = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    urls = "".join(f"<url><loc>{site.origin}{path}</loc>{date}</url>" for path in paths)
    site.add(PATH, xml(f"<urlset {NAMESPACE}>{urls}</urlset>"))


def check(site: WebSite, pages: Pages = Pages.ALL, **options: Any) -> Run:
    return check_url(f"{site.origin}{PATH}", CheckSettings(pages=pages), with_pages=True, now=NOW, **options)


def page(reply: Reply) -> Callable[[WebSite], None]:
    return lambda site: site.add("/a", reply)


def redirect(target: str, *, to: Reply | None = None) -> Callable[[WebSite], None]:
    def add(site: WebSite) -> None:
        site.add("/a", Reply(301, headers={"Location": target}))
        if to is not None:
            site.add(target, to)

    return add


def missing_page_with_status_200(site: WebSite) -> None:
    site.default = html("<h1>Sorry</h1><p>There is nothing here. Try our search.</p>")


def forbidden(site: WebSite) -> None:
    site.add("/robots.txt", robots("User-agent: *", "Disallow: /a", f"Sitemap: {site.origin}{PATH}"))


def linked(site: WebSite) -> None:
    list_pages(site, "/", "/a", "/b/")
    site.add("/", html('<a href="/">Home</a>' * 200 + '<a href="b?#top">B</a>' + '<a href="mailto:us">Us</a>' * 200))
    site.add("/a", html('<a href="/a">A</a>'))
    site.add("/b/", html("Bread"))


def modified(date: str) -> Reply:
    return html("Text", f'<meta property="article:modified_time" content="{date}">')


PAGE_CASES: dict[str, tuple[str, Callable[[WebSite], None]]] = {
    "404": ("page-status", page(Reply(404))),
    "overloaded all the time": ("page-status", page(Reply(503))),
    "redirect": ("page-redirect", redirect("/b", to=html("Another page"))),
    "redirect to a page that is gone": ("page-status", redirect("/b")),
    "redirects in a circle": ("page-redirect-loop", redirect("/a")),
    "redirect to a login page": ("page-login", redirect("/users/sign_in", to=html("Sign in"))),
    "redirect with the page to return to": ("page-login", redirect("/account?next=%2Fa", to=html("Sign in"))),
    "401": ("page-login", page(Reply(401))),
    "forbidden by robots.txt": ("page-robots", forbidden),
    "noindex": ("page-noindex", page(html("Text", '<meta name="robots" content="noindex, follow">'))),
    "noindex of a PDF": (
        "page-noindex",
        page(Reply(200, b"%PDF-1.7", {"Content-Type": "application/pdf", "X-Robots-Tag": "noindex"})),
    ),
    "canonical elsewhere": ("page-canonical", page(html("Text", '<link rel="canonical" href="/b">'))),
    "canonical in a header": ("page-canonical", page(html("Text", Link='</b>; rel="canonical"'))),
    "refresh": ("page-refresh", page(html("Text", '<meta http-equiv="refresh" content="0; url=/b">'))),
    "missing page with status 200": ("page-soft-not-found", missing_page_with_status_200),
    "linked by none": ("page-orphan", linked),
    "JSON": ("page-type", page(Reply(200, b"{}", {"Content-Type": "application/json"}))),
    "modified later": ("page-lastmod-behind", page(modified("2025-06-20T10:00:00Z"))),
    "modified before": ("page-lastmod-ahead", page(modified("2025-03-01"))),
    "nothing after the headers": ("page-failed", lambda site: site.close("/a")),
}


@pytest.mark.parametrize("case", [*PAGE_CASES])
def test_faulty_page_gives_exactly_its_code(site: WebSite, case: str) -> None:
    code, make = PAGE_CASES[case]
    list_pages(site, "/a")
    make(site)
    assert codes(check(site)) == [code]


def test_orphans_are_told_only_of_sites_whose_pages_were_all_read(site: WebSite) -> None:
    linked(site)
    assert [finding.url for finding in check(site).findings] == [f"{site.origin}/a"]
    assert codes(check(site, Pages.SAMPLE)) == []
    list_pages(site, "/", "/a", "/b/", "/busy")
    site.add("/busy", Reply(503))
    assert codes(check(site)) == ["page-status"], "that page may link to it"
    list_pages(site, "/", "/a", "/b/")
    site.add("/", html("No links"))
    assert codes(check(site)) == [], "they may be written by scripts"
    linked(site)
    site.add("/robots.txt", robots("User-agent: sitemap-middleware-check", "Disallow: /b/"))
    assert "page-orphan" not in codes(check(site)), "this program alone may not read that page"


def test_only_pages_that_were_got_are_requested_or_orphans(site: WebSite) -> None:
    linked(site)
    with served() as closed:
        urls = [f"{site.origin}{path}" for path in ("/", "/b/", "/x", "/moved", "/gone")]
    site.add(PATH, xml(urlset(*urls, f"{closed.origin}/")))
    site.add("/robots.txt", robots("User-agent: *", "Disallow: /x", f"Sitemap: {site.origin}{PATH}"))
    site.add("/moved", Reply(301, headers={"Location": "/b/"}))
    result = check(site)
    assert sorted(codes(result)) == ["loc-local", "page-redirect", "page-robots", "page-status"]
    assert "4 of 6 pages requested (the others are forbidden or out of reach)" in summary(result)
    site.add("/robots.txt", Reply(500))
    result = check(site, obey_robots=False)
    assert {finding.text for finding in result.findings if finding.code in ("page-robots", "fetch-robots")} == {
        f"{site.origin}/robots.txt answers 500: crawlers then stay away from the host (RFC 9309, 2.3.1.4)"
    }


GOOD_PAGES = {
    "plain": html("Text"),
    "its own canonical": html("Text", '<link rel="canonical" href="/a">'),
    "the same date": modified("2025-06-01T23:59:00+02:00"),
    "a date one day later": modified("2025-06-02"),
    "a date that is none": modified("yesterday"),
    "a canonical that is not a URL": html("Text", '<link rel="canonical" href="https://[/b">'),
    "late refresh": html("Text", '<meta http-equiv="refresh" content="600; url=/b">'),
    "PDF": Reply(200, b"%PDF-1.7", {"Content-Type": "application/pdf"}),
    "no type": Reply(200, b"Text"),
    "cut off": html("Text" * 500)._replace(length=10_000),
}


@pytest.mark.parametrize("case", [*GOOD_PAGES])
def test_good_page_gives_no_message(site: WebSite, case: str) -> None:
    list_pages(site, "/a")
    site.add("/a", GOOD_PAGES[case])
    result = check(site)
    assert (codes(result), result.requested) == ([], 1)


def test_home_page_for_each_url_is_no_missing_page(site: WebSite) -> None:
    """One shell of HTML, which scripts fill in the browser, says nothing; nor is the home page itself a mistake."""
    site.default = site.replies["/"][0]
    for paths in ("/", "/a", "/b"), ("/",):
        list_pages(site, *paths)
        assert codes(check(site)) == []


def test_sample_has_the_first_page_and_others_of_all_parts_and_stays_when_a_page_is_added(site: WebSite) -> None:
    paths = [f"/{number}" for number in range(2 * SAMPLE_PAGES + 1)]
    for path in ("/new", *paths):
        site.add(path, html(f"Page {path} about the number {path}"))

    def requested(*listed: str) -> set[str]:
        list_pages(site, *listed, lastmod="")
        site.requests.clear()
        result = check(site, Pages.SAMPLE)
        assert (codes(result), result.requested) == ([], SAMPLE_PAGES)
        return {*site.requests} & {*listed}

    first = requested(*paths)
    assert "/0" in first
    assert {int(path[1:]) // 10 for path in first} >= {*range(10)}
    assert len(first - requested("/new", *paths)) <= 2


def test_page_that_only_this_program_may_not_request(site: WebSite) -> None:
    lines = ["User-agent: sitemap-middleware-check", "Disallow: /a", f"Sitemap: {site.origin}{PATH}"]
    site.add("/robots.txt", robots(*lines))
    list_pages(site, "/a")
    assert (codes(check(site)), "/a" in site.requests) == ([], False)
    assert codes(check(site, obey_robots=False)) == ["page-status"]


def test_host_on_which_nothing_can_be_compared(site: WebSite) -> None:
    lines = ["User-agent: sitemap-middleware-check", "Disallow: /sitemap-check", f"Sitemap: {site.origin}{PATH}"]
    site.add("/robots.txt", robots(*lines))
    list_pages(site, "/a")
    missing_page_with_status_200(site)
    assert codes(check(site)) == []


ROBOTS_CASES: dict[str, tuple[str, Callable[[str], Reply]]] = {
    "no line": ("robots-no-sitemap-line", lambda _: robots("User-agent: *", "Disallow:")),
    "no file": ("robots-no-sitemap-line", lambda _: Reply(404)),
    "relative": ("robots-relative", lambda _: robots(f"Sitemap: {PATH}")),
    "another host": (
        "robots-other-host",
        lambda origin: robots(f"Sitemap: {origin}{PATH}", "Sitemap: https://cdn.example.net/sitemap.xml"),
    ),
    "missing": (
        "robots-sitemap-missing",
        lambda origin: robots(f"Sitemap: {origin}{PATH}", f"Sitemap: {origin}/old.xml"),
    ),
    "HTML": ("robots-html", lambda _: html("Our robots")),
    "too large": ("robots-too-large", lambda origin: robots(f"Sitemap: {origin}{PATH}", *["# nothing"] * 60_000)),
}


@pytest.mark.parametrize("case", [*ROBOTS_CASES])
def test_faulty_robots_file_gives_exactly_its_code(site: WebSite, case: str) -> None:
    code, make = ROBOTS_CASES[case]
    list_pages(site, "/")
    site.add("/robots.txt", make(site.origin))
    assert codes(check(site)) == [code]


@pytest.mark.parametrize(("name", "cases"), [("page", PAGE_CASES), ("robots", ROBOTS_CASES)])
def test_each_rule_of_pages_and_robots_has_a_faulty_one(name: str, cases: dict[str, tuple[str, Any]]) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    assert {code for code, _ in cases.values()} == {rule.code for rule in family.rules}


def test_robots_may_be_refused_or_name_several_sitemaps_in_any_case_or_an_index(site: WebSite) -> None:
    list_pages(site, "/")
    site.add_sitemap("/b.xml", "/")
    site.add("/index.xml", xml(index(f"{site.origin}{PATH}")))
    in_any_case = robots(f"SITEMAP: {site.origin}/b.xml", f"  sitemap : {site.origin}{PATH}\r")
    for reply in Reply(403), in_any_case, robots(f"Sitemap: {site.origin}/index.xml"):
        site.add("/robots.txt", reply)
        assert codes(check(site)) == []


@pytest.mark.parametrize("pages", [Pages.ALL, Pages.SAMPLE])
def test_page_that_is_listed_again_is_requested_once(site: WebSite, pages: Pages) -> None:
    list_pages(site, "/gone", "/caf%C3%A9", "/caf%c3%a9", "/gone")
    result = check(site, pages)
    assert (site.requests.count("/gone"), result.requested) == (1, 2)
    assert summary(result).startswith("4 URLs (2 duplicates) in 1 document, 2 pages requested")
    assert codes(result).count("page-status") == 2


def known_url(listed: bool, reason: str, status: int | None, failure: str = "") -> EvaluatedUrl:
    nothing = EvaluatedUrl._make([None] * len(EvaluatedUrl._fields))._replace(url="https://example.com/a", last_seen=1)
    return nothing._replace(listed=listed, reason=reason, status=status, failure=failure)


@pytest.mark.parametrize(
    ("known", "code"),
    [
        (known_url(True, "it answered 200", 404), "coverage-listed-bad"),
        (known_url(False, "it says noindex", 200), "coverage-not-listed"),
        (known_url(True, "it answered 200", 200, failure="it answered a visitor with 500"), "coverage-failing"),
        (known_url(True, "it answered 200", 200), None),
        (known_url(True, "the values of its route include it", None), None),
        (known_url(False, "it answered 404", 404), None),
    ],
)
def test_difference_gives_exactly_its_code(known: EvaluatedUrl, code: str | None) -> None:
    found = [(problem[0], url) for problem, url in check_coverage([known], {})]
    assert found == ([(code, known.url)] if code else [])
