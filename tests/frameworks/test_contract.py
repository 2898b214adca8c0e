"""What holds for every framework: the same site, written in each, has the same sitemap.

`tests/frameworks/apps` describes the site and says what the module of a framework has.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pytest

from sitemap_middleware import SitemapMiddleware

from ..support.documents import entries, locs
from ..support.wire import DRIVERS, Answer, Headers, RequestSpec
from .apps import PAGES, POSTS, UNLISTED

FRAMEWORKS = (
    "bottle",
    "django",
    "django_asgi",
    "falcon",
    "falcon_asgi",
    "fastapi",
    "flask",
    "litestar",
    "pyramid",
    "quart",
    "starlette",
)

MODULES = {name: importlib.import_module(f"tests.frameworks.apps.{name}_site") for name in FRAMEWORKS}
WAYS = [pytest.param((name, way), id=f"{name}-{way}") for name in FRAMEWORKS for way in MODULES[name].INSTALL]

BASE = "http://testserver"

SIMILAR = {302: {301, 302, 303, 307, 308}, 405: {404, 405}}
"""Statuses of equal meaning: Pyramid answers 404 if no view takes the method."""


@dataclass
class Site:
    """The site in one framework, with the middleware added in one way."""

    module: Any
    app: Any
    called: Any

    def request(self, path: str, **changes: Any) -> Answer:
        return DRIVERS[self.module.PROTOCOL](self.called, RequestSpec(path, **changes))

    def listed(self, prefix: str = BASE, **changes: Any) -> list[str]:
        """The decoded paths in the sitemap, below the prefix that every loc has; none without a sitemap."""
        answer = self.request("/sitemap.xml", **changes)
        found = locs(answer.body) if answer.status == 200 else []
        assert all(loc.startswith(f"{prefix}/") for loc in found)
        return sorted(unquote(loc.removeprefix(prefix)) for loc in found)

    @property
    def at_once(self) -> list[str]:
        """The pages that are listed before anybody visits one."""
        pages = (self.module.SPELLED.get(path, path) for path in PAGES) if hasattr(self.module, "SPELLED") else PAGES
        return sorted([*pages, *(f"/posts/{slug}" for slug in POSTS)])

    @property
    def middleware(self) -> SitemapMiddleware:
        return SitemapMiddleware.of(self.called)


def site_of(name: str, way: str = "outside", **options: Any) -> Site:
    module = MODULES[name]
    app = module.build()
    settings = {"base_url": BASE, "store": "memory://", "exclude": ["/drafts/*"]} | options
    return Site(module, app, module.INSTALL[way](app, **settings))


@pytest.fixture(params=WAYS)
def site(request: pytest.FixtureRequest) -> Site:
    return site_of(*request.param)


@pytest.fixture(params=FRAMEWORKS)
def name(request: pytest.FixtureRequest) -> str:
    framework: str = request.param
    return framework


# Which pages are listed


def test_static_routes_and_values_are_listed_from_the_first_request_on(site: Site) -> None:
    assert site.listed() == site.at_once


def test_every_listed_page_is_there_for_a_stranger(site: Site) -> None:
    for path in site.listed():
        answer = site.request(path)
        assert (answer.status, (answer.header("content-type") or "").partition(";")[0]) == (200, "text/html"), path


def test_what_is_no_page_is_not_listed_and_explain_says_why(name: str) -> None:
    site = site_of(name)
    for path, (what, status) in UNLISTED.items():
        assert site.request(path).status in SIMILAR.get(status, {status}), what
    assert not UNLISTED.keys() & {*site.listed()}
    for path, (what, _) in UNLISTED.items():
        explanation = site.middleware.explain(path)
        assert not explanation.listed, what
        assert explanation.reason != "nothing is known about it", what


def test_pages_are_learned_from_visits(site: Site) -> None:
    for path in ("/blog/tags/bread", "/blog/tags/k\u00e4se", "/people/7"):  # the last is of a route that does not learn
        assert site.request(path).status == 200
    site.middleware.flush()
    assert sorted({*site.listed()} - {*site.at_once}) == ["/blog/tags/bread", "/blog/tags/k\u00e4se"]


def test_learn_as_an_option_names_the_route_by_its_template(name: str) -> None:
    module = MODULES[name]
    site = site_of(name, learn=[module.PEOPLE])
    assert site.request("/people/7").status == 200
    site.middleware.flush()
    assert sorted({*site.listed()} - {*site.at_once}) == ["/people/7"]


def test_items_of_values_that_the_router_cannot_build_are_left_out(name: str) -> None:
    """A path with a slash in the parameter would lead to another route, or to none."""
    assert not site_of(name).middleware.explain("/posts/a/b").listed


def test_no_page_is_listed_that_an_exclude_pattern_matches(name: str) -> None:
    site = site_of(name, exclude=["/blog/*", "/drafts/*", "/about"])
    assert site.listed() == [path for path in site.at_once if not path.startswith(("/blog", "/about"))]


def test_the_settings_of_decorators_are_in_the_entries(name: str) -> None:
    found = entries(site_of(name).request("/sitemap.xml").body)
    assert found[f"{BASE}/about"] == {"lastmod": "2026-05-01", "priority": "0.8"}
    assert found[f"{BASE}/contact"] == {"changefreq": "weekly"}
    assert found[f"{BASE}/"] == {}


# Where the app is


def test_the_root_path_is_in_every_loc_once(name: str) -> None:
    site = site_of(name)
    answered = [path for path in site.at_once if site.request(path, root="/base").status == 200]
    if answered:  # of a root path below which the app has never shown a page, nothing is kept
        assert site.listed(f"{BASE}/base", root="/base") == answered
    assert answered == (site.at_once if getattr(site.module, "ROOT_PATH", True) else [])


def test_routes_of_a_host_belong_to_its_own_site(name: str) -> None:
    module = MODULES[name]
    site = site_of(name, base_url=None, allowed_hosts=["testserver", "shop.testserver"])
    assert "/of-host" not in site.listed()
    if module.HOST:
        assert "/of-host" in site.listed(f"http://{module.HOST}", host=module.HOST)


def test_pages_that_are_added_later_are_listed(name: str) -> None:
    module = MODULES[name]
    site = site_of(name)
    assert "/later" not in site.listed()
    if module.add_page is not None:
        module.add_page(site.app, "/later")
        assert site.request("/later").status == 200
        site.middleware.flush()
        assert site.listed() == sorted([*site.at_once, "/later"])


# What is served


def test_head_and_get_have_the_same_headers(name: str) -> None:
    site = site_of(name)
    got, head = site.request("/sitemap.xml"), site.request("/sitemap.xml", method="HEAD")
    assert (got.status, head.status, head.body) == (200, 200, b"")
    assert _without_date(got.headers) == _without_date(head.headers)
    assert got.header("content-type") == "application/xml; charset=utf-8"


def test_robots_txt_names_the_sitemap(site: Site) -> None:
    assert f"Sitemap: {BASE}/sitemap.xml" in site.request("/robots.txt").text


def test_pages_pass_unchanged(site: Site) -> None:
    """The response is that of the app without the middleware, byte for byte."""
    bare = Site(site.module, None, site.module.build())
    for path in (*PAGES, *UNLISTED, "/posts/first", "/posts/none", "/blog/tags/a", "/people/7", "/nowhere"):
        with_it, without = site.request(path), bare.request(path)
        assert with_it.status == without.status, path
        assert with_it.body == without.body, path
        assert _without_date(with_it.headers) == _without_date(without.headers), path


def test_explain_names_the_route_and_its_view(site: Site) -> None:
    site.listed()
    explanation = site.middleware.explain("/about")
    assert explanation.listed
    assert explanation.lastmod_source
    assert explanation.route is not None
    assert "about" in explanation.route.endpoint


def _without_date(headers: Headers) -> Headers:
    return sorted((name, value) for name, value in headers if name != "date")
