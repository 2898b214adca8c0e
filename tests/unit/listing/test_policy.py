"""Which candidates are listed, and the reasons that `explain` gives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import flask
import pytest

from sitemap_middleware import Entry, SitemapMiddleware
from sitemap_middleware.evidence.merge import merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.http.robots_parser import RobotsRules
from sitemap_middleware.listing import site_signals_cache
from sitemap_middleware.listing.candidates import Candidate, SiteSnapshot
from sitemap_middleware.listing.policy import EvaluationContext, ListingPolicy
from sitemap_middleware.listing.site_signals_cache import CachedSiteSignals
from sitemap_middleware.models import HiddenReason, Route, RouteSettings, Site
from sitemap_middleware.models import Page as StoredPage
from sitemap_middleware.options.table import Options
from sitemap_middleware.routing.route_table import RouteTable
from sitemap_middleware.stores.sqlite import MemoryStore

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
INCLUDED = "listed: the option include matches it, and no response forbids it"
STATIC = "listed: it is a static route, and no response forbids it"
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
        ("/about", {}, STATIC),
        ("/about", {"list_unseen": False}, "not listed: it was not visited yet, and list_unseen is off"),
        ("/about", {"include": ["/about"], "list_unseen": False}, INCLUDED),
        ("/about", {"exclude": ["/a*"], "include": ["/about"]}, "not listed: the option exclude matches it: '/a*'"),
        (
            "/data.json",
            {},
            "not listed: its suffix stands for application/json, and no response has shown that it is a page",
        ),
        ("/data.json", {"media_types": ["application/json"]}, STATIC),
        ("/map.xml", {"path": "/map.xml"}, "not listed: it is the sitemap itself"),
    ],
)
def test_unvisited_static_route(protocol: str, path: str, options: Any, reason: str) -> None:
    sample = site({path: Page(), "/other": Page()}, protocol=protocol, **options)
    assert reason_for(sample, path) == reason


@pytest.mark.parametrize("path", ["/logout", "/cart/delete-all", "/_internal", "/.well-known/thing", "/api/items"])
def test_path_that_looks_like_an_action_or_an_api_waits_for_a_visit(path: str) -> None:
    sample = site({path: Page(), "/other": Page()})
    reason = reason_for(sample, path)
    assert reason.startswith("not listed: ")
    assert reason.endswith(", and no response has shown that it is a page; the option include lists it at once")
    sample.visit(path)
    assert reason_for(sample, path) == "listed: it answered 200 with text/html"


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
    signals = CachedSiteSignals("", SiteSignals)
    return EvaluationContext(snapshot, signals, frozenset(), "", {}, made)


ANSWERED = "listed: it answered 200 with text/html"
HIDDEN = HiddenReason("it declares a redirect")
DOCS: dict[str, Any] = {"internal": "it is the framework's own page"}
READ_NEVER = observed()._replace(read_at=0)


@pytest.mark.parametrize(
    ("options", "candidate", "reason"),
    [
        # never visited
        (
            {"verify": False},
            Candidate("/page", route(hidden=HIDDEN), None),
            "not listed: it declares a redirect, and no response has shown that it is a page",
        ),
        ({"include": ["/page"]}, Candidate("/page", route(hidden=HIDDEN), None), f"unverified: {INCLUDED}"),
        ({"include": ["/i/{id}"], "verify": False}, Candidate("/i/1", route("/i/{id}"), None), INCLUDED),
        # excluded
        ({}, Candidate("/docs", route("/docs", **DOCS), observed("/docs")), f"not listed: {DOCS['internal']}"),
        ({"include": ["/docs"]}, Candidate("/docs", route("/docs", **DOCS), observed("/docs")), ANSWERED),
        ({"include": ["/d/{name}"]}, Candidate("/d/a", route("/d/{name}", **DOCS), observed("/d/a")), ANSWERED),
        (
            {"exclude": ["/items/{id}"]},
            Candidate("/items/1", route("/items/{id}", static=False), observed("/items/1", learned=True)),
            "not listed: the option exclude matches it: '/items/{id}'",
        ),
        # a file is no health check
        ({}, Candidate("/healthz", route("/healthz", last_modified=NOW), observed("/healthz")), ANSWERED),
        # its HTML was not read
        ({}, Candidate("/page", route(), READ_NEVER), f"unverified: {ANSWERED}"),
        (
            {"verify": False},
            Candidate("/page", route(), READ_NEVER),
            f"not listed: {UNREAD}, and verify is off: {ONCE_READ}",
        ),
        ({"include": ["/page"]}, Candidate("/page", route(), READ_NEVER), ANSWERED),
        (
            {},
            Candidate("/page", route(), READ_NEVER._replace(unread_reason="is compressed by br")),
            f"{ANSWERED}; it was not read completely: it is compressed by br",
        ),
        (
            {},
            Candidate("/page", route(), READ_NEVER._replace(media_type="application/pdf")),
            "listed: it answered 200 with application/pdf",
        ),
        (
            {},
            Candidate("/delete", route("/delete"), READ_NEVER._replace(path="/delete")),
            f"not listed: {UNREAD}, and 'delete' is the name of an action: {ONCE_READ}",
        ),
        ({}, Candidate("/page", route(), observed(status=404)._replace(read_at=0)), "not listed: it answered 404"),
        # given by the developer
        (
            {},
            Candidate("/page", route(), observed(expires_at=NOW - 1), entry=Entry({"id": 1})),
            "not listed: its unavailable_after has passed",
        ),
    ],
)
def test_verdict_on_a_candidate(options: Any, candidate: Candidate, reason: str) -> None:
    loc, verdict = policy_of(**options).evaluate(context(), candidate)
    shown = f"{'listed' if verdict.listed else 'not listed'}: {verdict.reason}"
    assert (f"unverified: {shown}" if verdict.unverified else shown) == reason
    assert loc == (f"{BASE}{candidate.path}" if verdict.listed else None)


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
    assert sample.app.explain("/posts/rye").reason == ("it has the same content as /posts/Rye, which is listed instead")
