"""The option `sections`: pages that no route of the app gives, in documents with names of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import flask
import pytest

from sitemap_middleware import Entry, OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.pytest_plugin.sitemap_in_test import read_sitemap

from ...support.documents import entries, locs
from ...support.sample_sites import Page, SampleSite
from ...support.waiting import until
from ...support.wire import Answer

BASE = "https://example.com"


class Site(SampleSite):
    """A site of one protocol with a home page, a post and a page that nobody lists."""

    def __init__(self, protocol: str, sections: Any, root: str = "", **options: Any) -> None:
        self.root = root
        pages = dict.fromkeys(("/", "/posts/{slug}", "/users/{name}"), Page())
        marks = {"/posts/{slug}": sitemap(values=["rye"])}
        super().__init__(protocol, pages, marks=marks, base_url=BASE, sections=sections, **options)

    def get(self, path: str) -> Answer:
        return self.request(path, root=self.root, scheme="https")

    def listed(self, section: str) -> list[str]:
        while (answer := self.get(f"/sitemap-{section}.xml")).status == 503:
            assert answer.header("x-sitemap-status") == "generating"  # a slow machine
        return [] if answer.status == 404 else [loc.removeprefix(BASE) for loc in entries(answer.body)]


EVERYWHERE = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])


@EVERYWHERE
def test_each_named_section_is_a_document_of_the_index(protocol: str) -> None:
    site = Site(protocol, {"guides": [Entry(loc="/guides/rye", lastmod="2024-05-01")], "shop-2024-a": ["/shop"]})
    *documents, of_view = locs(site.get("/sitemap.xml").body)
    assert documents == [f"{BASE}/sitemap-{name}.xml" for name in ("routes-1", "guides", "shop-2024-a")]
    assert site.listed(of_view.removeprefix(f"{BASE}/sitemap-").removesuffix(".xml")) == ["/posts/rye"]
    assert entries(site.get("/sitemap-guides.xml").body) == {f"{BASE}/guides/rye": {"lastmod": "2024-05-01"}}
    assert site.listed("shop-2024-a") == ["/shop"]
    assert site.listed("routes-1") == ["/"]
    assert site.get("/sitemap-none.xml").status == site.get("/sitemap-routes.xml").status == 404
    assert site.get("/sitemap-guides-2.xml").status == 404


@pytest.mark.parametrize(
    ("given", "loc"),
    [
        ("/about", "/about"),
        ("https://example.com/about", "/about"),
        ("https://EXAMPLE.com:443/about", "/about"),
        ("https://example.com", "/"),
        ("/über uns", "/%C3%BCber%20uns"),
        ("/%C3%BCber%20uns", "/%C3%BCber%20uns"),
        ("/about#team", "/about"),
        ("//example.com/about", "/about"),
        ("/a/../about", "/about"),
    ],
)
def test_a_loc_is_a_path_as_links_have_it_or_a_url(given: str, loc: str) -> None:
    home = {"exclude": "/"}
    assert Site("wsgi", {"guides": [given]}, **home).listed("guides") == ([loc] if loc != "/" else [])
    outside = Site("wsgi", {"guides": [given]}, root="/shop", **home)
    assert outside.listed("guides") == [loc]


@EVERYWHERE
def test_pages_outside_the_root_path_may_be_listed(protocol: str) -> None:
    site = Site(protocol, {"guides": ["/about", "/shop/guides/rye", "/shopping", "/shop", "/shop/posts/rye"]}, "/shop")
    assert site.listed("guides") == ["/about", "/shop/guides/rye", "/shopping"]
    assert site.listed("routes-1") == ["/shop/"]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("https://example.org/a", "'https://example.org/a' is on another host; a sitemap lists pages of its own host"),
        ("http://example.com/a", "is on another host"),
        ("//example.org/a", "is on another host"),
        (
            "about",
            "'about' is neither a path nor a URL; give a path such as \"/about\", or a URL of https://example.com",
        ),
        ("", "is neither a path nor a URL"),
        ("/find?q=rye", "it has a query string"),
        ("https://[/a", "is not a URL"),
        ("https://", "is a URL without a host"),
        ("/a/%2e%2e/b", "no loc can be written that would lead to this path again"),
        ("/" + "a" * 2048, "its loc would have 2,048 characters or more"),
        (7, 'it does not say which page it is; give its path such as "/about", or Entry(loc="/about")'),
        ({"slug": "a"}, "it does not say which page it is"),
        (Entry({"slug": "a"}), "it does not say which page it is"),
        (SimpleNamespace(slug="a"), "has no value loc"),
        (None, "None is not a text"),
        ("/", "'https://example.com/': it is a page of the app's own route /, which is listed as such"),
        ("/posts/rye", "it is a page of the app's own route /posts/<slug>, which is listed as such"),
    ],
)
def test_an_item_that_is_no_page_of_this_host_is_skipped_with_the_reason(
    item: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site("wsgi", {"guides": [item, "/b"]})
    assert site.listed("guides") == ["/b"]
    assert reason in caplog.text
    assert "of the values of SitemapMiddleware: sections['guides'], 1 of 2 items were left out" in caplog.text
    assert site.app.stats()["skipped"] == 1


def test_explain_and_the_report_know_them() -> None:
    site = Site("wsgi", {"broken": lambda: 1 // 0, "guides": [Entry(loc="/guides/a", lastmod="2024-05-01")]})
    explanation = site.app.explain("/guides/a")
    assert explanation.listed
    assert explanation.reason == "the option sections includes it"
    assert explanation.entry is not None
    assert explanation.entry.loc == f"{BASE}/guides/a"
    assert not site.app.explain("/guides/b").listed


def test_a_test_of_the_app_sees_them() -> None:
    site = Site("wsgi", {"guides": ["/guides/a", "/"]})
    assert read_sitemap(site.app).paths == ["/", "/guides/a", "/posts/rye"]


def test_refresh_reads_them_again() -> None:
    guides = ["/a"]
    site = Site("wsgi", {"guides": lambda: guides})
    assert site.listed("guides") == ["/a"]
    guides.append("/b")
    site.app.refresh()
    until(lambda: site.listed("guides") == ["/a", "/b"])  # at once, unless the machine is slow


def test_a_view_named_like_a_section_gets_another_name() -> None:
    site = Site("wsgi", {"view1": ["/a"]})
    assert site.listed("view1") == ["/a"]
    assert site.listed("view1-2-1") == ["/posts/rye"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (["/a"], "SitemapMiddleware: sections=['/a'] is not a mapping; give the items by the name of their section"),
        ({"Guides": []}, "'Guides' cannot name a section; give up to 50 of a-z, 0-9 and single hyphens"),
        ({"guides-2": []}, "no number, routes or pages at the end"),
        ({"routes": []}, "no number, routes or pages at the end"),
        ({"a" * 51: []}, "cannot name a section"),
        ({"guides": None}, "sections['guides']: values=None is not iterable"),
        ({"guides": "/a"}, "sections['guides']: values='/a' is a single item; give a list"),
        ({"guides": iter([])}, "can be read only once"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_option_is_refused_with_the_cure(sections: Any, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        Site("wsgi", sections)
    assert message in str(raised.value)


@pytest.mark.parametrize("make", [lambda: Entry(loc=7), lambda: Entry({"slug": "a"}, loc="/a")])  # type: ignore[arg-type] # refused
def test_an_entry_has_a_loc_or_parameters(make: Any) -> None:
    with pytest.raises(OptionError, match="loc is the URL or path of a page, and takes the place of the parameters"):
        make()
    assert Entry(loc="/a") == Entry({"loc": "/a"})


def test_an_entry_with_a_loc_is_not_one_of_a_route(caplog: pytest.LogCaptureFixture) -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/<slug>", "page", sitemap(values=["a", Entry(loc="/b")])(lambda slug: slug))
    site = SitemapMiddleware(app, base_url=BASE, store="memory://")
    assert read_sitemap(site).paths == ["/a"]
    assert "Entry({'loc': '/b'}): the route's slug is missing" in caplog.text
