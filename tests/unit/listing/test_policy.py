"""Which candidates are listed, and the reasons that `explain` gives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import flask
import pytest

from sitemap_middleware import Entry, SitemapMiddleware, sitemap
from sitemap_middleware.evidence.merge import merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.http.robots_parser import RobotsRules
from sitemap_middleware.listing import site_signals_cache
from sitemap_middleware.listing.candidates import Candidate, SiteSnapshot, decode_path
from sitemap_middleware.listing.policy import EvaluationContext, ListingPolicy
from sitemap_middleware.listing.site_signals_cache import CachedSiteSignals
from sitemap_middleware.models import HiddenReason, Route, RouteSettings, Site
from sitemap_middleware.models import Page as StoredPage
from sitemap_middleware.options.table import Options
from sitemap_middleware.routing.route_table import RouteTable
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.documents import locs
from ...support.sample_sites import Page, SampleSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
BASE = "https://example.com"
SITE = Site("https", "example.com")
DAY = 24 * 60 * 60
NOW = 1_750_000_000
HTML = [("content-type", "text/html; charset=utf-8")]
JSON = [("content-type", "application/json")]

Marks = dict[str, Any]

UNREAD = "its HTML was not read yet, and may say noindex"
ONCE_READ = "it is read when a visitor gets all of it, or include names it"


def site(pages: dict[str, Page], marks: Marks | None = None, protocol: str = "wsgi", **options: Any) -> SampleSite:
    return SampleSite(protocol, pages, marks=marks, base_url=BASE, **options)


def reason_for(sample: SampleSite, path: str) -> str:
    """The reason for which a path is listed or not; what the sitemap says agrees with it."""
    listed = f"{BASE}{path}" in sample.locs()  # first, because `explain` requests no robots.txt
    explanation = sample.app.explain(path)
    assert explanation.listed is listed
    return ("listed: " if explanation.listed else "not listed: ") + explanation.reason


# Static routes that nobody has visited


@BOTH
@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("/about", {}, "listed: it is a static route, and no response forbids it"),
        ("/about", {"list_unseen": False}, "not listed: it was not visited yet, and list_unseen is off"),
        (
            "/about",
            {"include": ["/about"], "list_unseen": False},
            "listed: the option include matches it, and no response forbids it",
        ),
        ("/about", {"exclude": ["/a*"]}, "not listed: the option exclude matches it: '/a*'"),
        ("/about", {"exclude": ["/a*"], "include": ["/about"]}, "not listed: the option exclude matches it: '/a*'"),
        (
            "/data.json",
            {},
            "not listed: its suffix stands for application/json, and no response has shown that it is a page",
        ),
        (
            "/data.json",
            {"include": ["/data.json"]},
            "listed: the option include matches it, and no response forbids it",
        ),
        (
            "/data.json",
            {"media_types": ["application/json"]},
            "listed: it is a static route, and no response forbids it",
        ),
        ("/page.html", {}, "listed: it is a static route, and no response forbids it"),
        ("/paper.pdf", {}, "listed: it is a static route, and no response forbids it"),
    ],
)
def test_unvisited_static_route(protocol: str, path: str, options: Any, reason: str) -> None:
    sample = site({path: Page(), "/other": Page()}, protocol=protocol, **options)
    assert reason_for(sample, path) == reason


def test_path_of_the_sitemap_is_not_a_page() -> None:
    sample = site({"/map.xml": Page(), "/other": Page()}, path="/map.xml")
    assert sample.app.explain("/map.xml").reason == "it is the sitemap itself"


@pytest.mark.parametrize("path", ["/logout", "/cart/delete-all", "/_internal", "/.well-known/thing", "/api/items"])
def test_path_that_looks_like_an_action_or_an_api_waits_for_a_visit(path: str) -> None:
    sample = site({path: Page(), "/other": Page()})
    reason = reason_for(sample, path)
    assert reason.startswith("not listed: ")
    assert reason.endswith(", and no response has shown that it is a page; the option include lists it at once")
    sample.visit(path)
    assert reason_for(sample, path) == "listed: it answered 200 with text/html"


def test_included_path_that_looks_like_an_action_is_listed_and_not_requested() -> None:
    sample = site({"/logout": Page(status=404), "/other": Page()}, include=["/logout"], verify=True)
    assert reason_for(sample, "/logout") == "listed: the option include matches it, and no response forbids it"


def test_health_check_is_not_listed_even_after_a_visit() -> None:
    sample = site({"/healthz": Page(), "/other": Page()})
    sample.visit("/healthz")
    assert reason_for(sample, "/healthz").endswith("; the option include lists it")
    included = site({"/healthz": Page(), "/other": Page()}, include=["/healthz"])
    included.visit("/healthz")
    assert reason_for(included, "/healthz") == "listed: it answered 200 with text/html"


@BOTH
@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ({"exclude": True}, "not listed: it is marked @sitemap(exclude=True)"),
        ({"priority": 0.9}, "listed: it is a static route, and no response forbids it"),
    ],
)
def test_marks_of_a_static_route(protocol: str, mark: Any, reason: str) -> None:
    sample = site({"/about": Page(), "/other": Page()}, {"/about": sitemap(**mark)}, protocol)
    assert reason_for(sample, "/about") == reason
    sample.visit("/about")
    assert reason_for(sample, "/about").startswith(reason.partition(":")[0])


def test_probes_decide_on_unvisited_routes() -> None:
    sample = site({"/good": Page(), "/gone": Page(410), "/data": Page(headers=JSON)}, verify=True)
    before = sample.app.explain("/good")
    assert (before.listed, before.reason) == (False, "it was not requested yet: request /sitemap.xml once")
    assert reason_for(sample, "/good") == "listed: it answered 200 with text/html"
    assert "410" in reason_for(sample, "/gone")
    assert "application/json" in reason_for(sample, "/data")


def test_robots_txt_forbids_what_would_be_listed_and_leaves_other_reasons() -> None:
    robots = Page(200, [("content-type", "text/plain")], b"User-agent: *\nDisallow: /p\n")
    pages = {"/robots.txt": robots, "/private": Page(), "/public": Page(404), "/other": Page()}
    sample = site(pages)
    assert reason_for(sample, "/private") == "not listed: the app's robots.txt disallows it"
    sample.visit("/private", "/public")
    assert reason_for(sample, "/private") == "not listed: the app's robots.txt disallows it"
    assert "404" in reason_for(sample, "/public")
    assert reason_for(site(pages, robots=False), "/private").startswith("listed: ")


def test_a_staging_site_is_not_said_to_have_a_robots_txt_of_the_app() -> None:
    sample = site({"/": Page()}, robots="disallow")
    reason = 'the option robots="disallow" keeps the site out of search engines'
    assert reason_for(sample, "/") == f"not listed: {reason}"


# Pages that were observed


@pytest.mark.parametrize(
    ("page", "listed", "word"),
    [
        (Page(), True, "it answered 200 with text/html"),
        (Page(headers=[("content-type", "application/pdf")], body=b"%PDF"), True, "application/pdf"),
        (Page(404), False, "404"),
        (Page(410), False, "410"),
        (Page(301, [*HTML, ("location", "/other")]), False, "301"),
        (Page(403), False, "403"),
        (Page(headers=JSON, body=b"{}"), False, "application/json"),
        (Page().with_headers(("x-robots-tag", "noindex")), False, "noindex"),
        (Page().with_headers(("cache-control", "private")), False, "private"),
        (Page().with_headers(("link", '</other>; rel="canonical"')), False, "/other"),
        (Page().with_headers(("content-disposition", "attachment")), False, "download"),
        (Page().with_headers(("refresh", "0;url=/other")), False, "/other"),
    ],
)
def test_observed_page(page: Page, listed: bool, word: str) -> None:
    sample = site({"/page": page, "/other": Page()})
    sample.visit("/page")
    reason = reason_for(sample, "/page")
    assert reason.startswith("listed: " if listed else "not listed: ")
    assert word in reason


def test_custom_media_type_is_listed_if_the_option_names_it() -> None:
    pages = {"/feed": Page(headers=[("content-type", "application/atom+xml")]), "/other": Page()}
    sample = site(pages, media_types=["text/html", "application/atom+xml"])
    sample.visit("/feed")
    assert reason_for(sample, "/feed") == "listed: it answered 200 with application/atom+xml"


# Learned pages

LEARNED: Marks = {"/posts/{slug}": sitemap(learn=True)}


def learned(page: Page | None = None, protocol: str = "wsgi", **options: Any) -> SampleSite:
    return site({"/posts/{slug}": page or Page(), "/other": Page()}, LEARNED, protocol, **options)


@BOTH
def test_learned_page_is_listed_after_a_visit_until_it_is_forgotten(protocol: str) -> None:
    sample = learned(protocol=protocol, max_age_days=30)
    assert "no visit has shown" in sample.app.explain("/posts/a").reason
    sample.visit("/posts/a")
    assert reason_for(sample, "/posts/a") == "listed: it answered 200 with text/html"
    sample.clock.pass_(30 * DAY)
    assert reason_for(sample, "/posts/a").startswith("listed: ")
    sample.clock.pass_(1)
    assert sample.app.explain("/posts/a").reason == "it was not visited in the last 30 days"
    sample.visit("/other")  # merging removes pages from the store that are too old
    assert reason_for(sample, "/posts/a") == (
        "not listed: its route /posts/{slug} is learned, but no visit has shown that it is a page"
    ).replace("{slug}", "<slug>" if protocol == "wsgi" else "{slug}")


def test_static_page_is_not_forgotten() -> None:
    sample = learned(max_age_days=30)
    sample.visit("/other")
    sample.clock.pass_(365 * DAY)
    assert reason_for(sample, "/other") == "listed: it answered 200 with text/html"


def test_page_that_only_the_other_slash_differs_from_is_listed_once() -> None:
    sample = SampleSite(
        "wsgi", {"/posts/{slug}": Page(), "/posts/{slug}/": Page()}, marks={}, base_url=BASE, learn=["/posts/*"]
    )
    sample.visit("/posts/a", "/posts/a/")
    listed = sample.locs()
    assert len([loc for loc in listed if "/posts/a" in loc]) in {1, 2}
    for path in ("/posts/a", "/posts/a/"):
        assert sample.app.explain(path).listed is (f"{BASE}{path}" in listed)


def test_equal_pages_of_a_learned_route_are_soft_404s() -> None:
    sample = learned()
    for number in range(40):
        sample.visit(f"/posts/{number}")
        sample.clock.pass_(1)
    sample.clock.pass_(4000)
    assert reason_for(sample, "/posts/0").startswith("listed: ")
    assert reason_for(sample, "/posts/39") == (
        "not listed: it has the same content as /posts/0, which was known before it"
    )


# Values


@BOTH
def test_page_of_values_is_listed_until_a_response_forbids_it(protocol: str) -> None:
    marks = {"/posts/{slug}": sitemap(values=[{"slug": "a"}, {"slug": "b"}])}
    pages = {"/posts/{slug}": Page(404), "/other": Page()}
    sample = site(pages, marks, protocol)
    assert reason_for(sample, "/posts/a") == "listed: the values of its route include it, and no response forbids it"
    assert reason_for(sample, "/posts/c") == "not listed: its route has values, and they do not include it"
    sample.visit("/posts/a")
    assert "404" in reason_for(sample, "/posts/a")
    assert reason_for(sample, "/posts/b").startswith("listed: ")
    pages["/posts/{slug}"] = Page()
    sample.clock.pass_(61)
    sample.visit("/posts/a")
    assert reason_for(sample, "/posts/a") == "listed: it answered 200 with text/html"


def test_excluded_page_of_values_is_not_listed() -> None:
    marks = {"/posts/{slug}": sitemap(values=[{"slug": "a"}, {"slug": "b"}])}
    sample = site({"/posts/{slug}": Page(), "/other": Page()}, marks, exclude=["/posts/b"])
    assert locs(sample.request("/sitemap.xml").body) == [f"{BASE}/other", f"{BASE}/posts/a"]


# URLs


def test_url_that_is_too_long_is_not_listed() -> None:
    path = "/" + "x" * 2100
    sample = site({path: Page(), "/other": Page()})
    assert not sample.app.explain(path).listed
    assert "2,04" in sample.app.explain(path).reason
    assert sample.locs() == [f"{BASE}/other"]


@pytest.mark.parametrize(
    ("path", "decoded"), [("/a", "/a"), ("/%C3%A9", "/é"), ("/a%2Fb", "/a/b"), ("/100%25", "/100%"), ("/a+b", "/a+b")]
)
def test_path_is_decoded_as_the_router_sees_it(path: str, decoded: str) -> None:
    assert decode_path(path) == decoded


# The policy by itself: what one candidate is evaluated as, whether a probe may request it


def route(path: str = "/page", **more: Any) -> Route:
    return Route(path, more.pop("endpoint", "view"), **more)


def observed(path: str = "/page", **more: Any) -> StoredPage:
    merged = merge(
        None, Observation(path, path, NOW, more.pop("status", 200), more.pop("media_type", "text/html"), **more)
    )
    assert merged is not None
    return merged._replace(read_at=NOW)


def options_of(**options: Any) -> Options:
    return SitemapMiddleware(flask.Flask("policy"), base_url=BASE, store="memory://", **options).service.options


def policy_of(probed: Mapping[str, str] = MappingProxyType({}), **options: Any) -> ListingPolicy:
    return ListingPolicy(options_of(**options), lambda _, path: probed.get(path))


def context(rules: str = "", *, made: bool = False) -> EvaluationContext:
    snapshot = SiteSnapshot(SITE, RouteTable([], options_of()), MemoryStore(), RobotsRules(rules), NOW)
    signals = CachedSiteSignals("", lambda: (SiteSignals(), frozenset()))
    return EvaluationContext(snapshot, signals, frozenset(), "", {}, made)


@pytest.mark.parametrize(
    ("options", "candidate", "verdict"),
    [
        # never visited
        (
            {"verify": False},
            Candidate("/page", route(hidden=HiddenReason("it declares a redirect")), None),
            (False, "it declares a redirect, and no response has shown that it is a page", False),
        ),
        (
            {"include": ["/page"]},
            Candidate("/page", route(hidden=HiddenReason("it declares a redirect")), None),
            (True, "the option include matches it, and no response forbids it", True),
        ),
        (
            {"include": ["/items/{id}"], "verify": False},
            Candidate("/items/1", route("/items/{id}"), None),
            (True, "the option include matches it, and no response forbids it", False),
        ),
        # excluded
        (
            {},
            Candidate("/docs", route("/docs", internal="it is the framework's own page"), observed("/docs")),
            (False, "it is the framework's own page", False),
        ),
        (
            {"include": ["/docs"]},
            Candidate("/docs", route("/docs", internal="it is the framework's own page"), observed("/docs")),
            (True, "it answered 200 with text/html", False),
        ),
        (
            {"include": ["/docs/{name}"]},
            Candidate("/docs/a", route("/docs/{name}", internal="it is the framework's own page"), observed("/docs/a")),
            (True, "it answered 200 with text/html", False),
        ),
        (
            {"exclude": ["/items/{id}"]},
            Candidate("/items/1", route("/items/{id}", static=False), observed("/items/1", learned=True)),
            (False, "the option exclude matches it: '/items/{id}'", False),
        ),
        # health checks
        (
            {},
            Candidate("/healthz", route("/healthz", last_modified=NOW), observed("/healthz")),
            (True, "it answered 200 with text/html", False),
        ),
        # observed
        (
            {},
            Candidate(
                "/items/1",
                route("/items/{id}", static=False),
                observed("/items/1", learned=True),
                equal_page="/items/1/",
            ),
            (False, "it is the same page as /items/1/", False),
        ),
        # its HTML was not read
        (
            {},
            Candidate("/page", route(), observed()._replace(read_at=0)),
            (True, "it answered 200 with text/html", True),
        ),
        (
            {"verify": False},
            Candidate("/page", route(), observed()._replace(read_at=0)),
            (
                False,
                f"{UNREAD}, and verify is off: {ONCE_READ}",
                False,
            ),
        ),
        (
            {"include": ["/page"]},
            Candidate("/page", route(), observed()._replace(read_at=0)),
            (True, "it answered 200 with text/html", False),
        ),
        (
            {},
            Candidate("/page", route(), observed()._replace(read_at=0, unread_reason="is compressed by br")),
            (True, "it answered 200 with text/html; it was not read completely: it is compressed by br", False),
        ),
        (
            {},
            Candidate("/page", route(), observed(media_type="application/pdf")._replace(read_at=0)),
            (True, "it answered 200 with application/pdf", False),
        ),
        (
            {},
            Candidate("/delete", route("/delete"), observed("/delete")._replace(read_at=0)),
            (
                False,
                f"{UNREAD}, and 'delete' is the name of an action: {ONCE_READ}",
                False,
            ),
        ),
        (
            {},
            Candidate("/page", route(), observed(status=404)._replace(read_at=0)),
            (False, "it answered 404", False),
        ),
        # given by the developer
        (
            {},
            Candidate(
                "/p/1",
                route("/p/{id}", static=False),
                observed("/p/1", expires_at=NOW - 1),
                entry=Entry({"id": 1}),
            ),
            (False, "", False),
        ),
    ],
)
def test_verdict_on_a_candidate(options: Any, candidate: Candidate, verdict: tuple[bool, str, bool]) -> None:
    loc, (listed, reason, unverified, _) = policy_of(**options).evaluate(context(), candidate)
    assert (listed, unverified) == (verdict[0], verdict[2])
    assert type(listed) is type(unverified) is bool
    assert reason == verdict[1] or not verdict[1]
    assert loc == (f"{BASE}{candidate.path}" if listed else None)


UNANSWERED = "it has not answered with a page yet"


NO_EVIDENCE = f"{UNANSWERED}; an error such as 500, a timeout or a refused Host does not count"


@pytest.mark.parametrize(
    ("made", "probed", "reason"),
    [
        (False, {}, "it was not requested yet: request /sitemap.xml once"),
        (False, {"/page é": ""}, NO_EVIDENCE),
        (False, {"/page é": "got 502"}, f"{UNANSWERED}: the last request of the middleware got 502"),
        (True, {}, NO_EVIDENCE),
        (True, {"/page é": "got 500"}, f"{UNANSWERED}: the last request of the middleware got 500"),
    ],
)
def test_reason_says_what_the_page_answered(made: bool, probed: dict[str, str], reason: str) -> None:
    candidate = Candidate("/page%20%C3%A9", route("/page é"), None)
    _, verdict = policy_of(probed).evaluate(context(made=made), candidate)
    assert verdict[:3] == (False, reason, True)


@pytest.mark.parametrize("length", [2047, 2048])
def test_loc_has_at_most_2047_characters(length: int) -> None:
    path = "/" + "x" * (length - len(BASE) - 1)
    loc, verdict = policy_of(verify=False).evaluate(context(), Candidate(path, route(path), None))
    assert (loc is not None) is verdict.listed is (length == 2047)
    assert type(verdict.listed) is bool


@pytest.mark.parametrize(
    ("options", "requested", "may"),
    [
        ({}, route(), True),
        ({"exclude": ["/page"]}, route(), False),
        ({}, route("/logout"), False),
        ({}, route("/page", endpoint="delete_account"), False),
        ({}, route("/page", internal="it is the framework's own page"), False),
        ({}, route("/page", settings=RouteSettings(exclude=True)), False),
        ({}, route("/sitemap.xml"), False),
    ],
)
def test_probes_request_only_what_would_be_listed(options: Any, requested: Route, *, may: bool) -> None:
    assert policy_of(**options).may_be_probed(requested, requested.path) is may


@pytest.mark.parametrize("sample_pages", [10_000, 4], ids=["small site", "large site"])
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_equal_pages_of_a_block_are_explained_as_they_are_listed(
    protocol: str, sample_pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", sample_pages)
    sample = SampleSite(protocol, {"/posts/{slug}": Page()}, learn=("/posts/*",), robots=False)
    paths = ["/posts/Rye", "/posts/rye", "/posts/007", "/posts/7", *(f"/posts/own-{number}" for number in range(4))]
    for number, path in enumerate(paths):
        body = f"<!doctype html><main><p>Text {'of two' if number < 2 else 'of bread' * (number // 2 + number)}"
        sample.pages["/posts/{slug}"] = Page(body=body.encode())
        sample.visit(path)
        sample.clock.pass_(1)
    listed_paths = {loc.removeprefix("http://testserver") for loc in sample.locs()}
    assert len(listed_paths) == len(paths) - 1
    assert {path for path in paths if sample.app.explain(path).listed} == listed_paths
    service = sample.app.service
    snapshot = service.snapshot_now(service.site_resolver.default_site())
    lines = service.url_report([snapshot])
    assert {line.url.removeprefix("http://testserver") for line in lines if line.listed} == listed_paths
    assert sample.app.explain("/posts/rye").reason == (
        "it has the same content as /posts/Rye, which was known before it"
    )
