"""`@sitemap(section=…)` and `sections=True`: documents by kind of page, each with its own lastmod in the index."""

from __future__ import annotations

from typing import Any

import flask
import pytest

from sitemap_middleware import Entry, OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.documents import xml
from sitemap_middleware.stores import base

from ...support.documents import entries, locs
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import RequestSpec, wsgi
from .test_named_sections import EVERYWHERE

BASE = "https://example.com"


def documents(site: SampleSite) -> dict[str, list[str]]:
    """The paths in each document of the index, by the document's name."""
    found = {}
    for loc in locs(site.request("/sitemap.xml").body):
        path = loc.removeprefix(BASE)
        paths = [page.removeprefix(BASE) for page in locs(site.request(path).body)]
        found[path.removeprefix("/sitemap-").removesuffix(".xml")] = paths
    return found


def journal(protocol: str, **options: Any) -> SampleSite:
    """A home page, posts that are enumerated, tags and people that are learned."""
    pages = dict.fromkeys(("/", "/posts", "/posts/{slug}", "/tags/{name}", "/people/{name}"), Page())
    marks = {
        "/posts": sitemap(section="posts"),
        "/posts/{slug}": sitemap(values=["a", "b", "c"], section="posts", lastmod="2024-05-01"),
        "/tags/{name}": sitemap(learn=True, section="posts"),
        "/people/{name}": sitemap(learn=True),
    }
    return SampleSite(protocol, pages, marks=marks, base_url=BASE, **options)


@EVERYWHERE
def test_pages_are_in_the_documents_of_their_section(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 2)
    monkeypatch.setattr(base, "PART_PAGES", 2)
    site = journal(protocol)
    site.visit("/people/1", "/tags/x", "/tags/y", "/people/2")
    assert documents(site) == {
        "routes-1": ["/"],
        "posts-routes": ["/posts"],
        "posts": ["/posts/a", "/posts/b"],
        "posts-2": ["/posts/c"],
        "pages-1": ["/people/1"],
        "posts-pages": ["/tags/x"],
        "pages-2": ["/people/2"],
        "posts-pages-2": ["/tags/y"],
    }
    assert site.request("/sitemap-people.xml").status == 404
    index = entries(site.request("/sitemap.xml").body)
    assert index[f"{BASE}/sitemap-posts-2.xml"] == {"lastmod": "2024-05-01"}
    assert index[f"{BASE}/sitemap-routes-1.xml"] == {}


@EVERYWHERE
def test_a_page_that_goes_leaves_only_its_own_document_changed(protocol: str) -> None:
    site = journal(protocol, verify=False)
    site.visit("/people/1", "/tags/x", "/tags/y")
    before = {name: site.request(f"/sitemap-{name}.xml").header("etag") for name in documents(site)}
    site.clock.pass_(2)
    site.pages["/tags/{name}"] = Page(404)
    site.visit("/tags/x")
    site.clock.pass_(2)
    assert documents(site)["posts-pages"] == ["/tags/y"]
    changed = {name for name, etag in before.items() if site.request(f"/sitemap-{name}.xml").header("etag") != etag}
    assert changed == {"posts-pages"}


def test_by_endpoint_each_route_with_parameters_has_its_documents() -> None:
    app = flask.Flask("shop", static_folder=None)
    app.add_url_rule("/", "home", lambda: "<h1>Home")
    app.add_url_rule("/a/<x>", "shop.A", sitemap(learn=True)(lambda x: f"<h1>{x}"))
    app.add_url_rule("/b/<x>", "Item 2", sitemap(values=[Entry({"x": "1"}), Entry({"x": "2"})])(lambda x: f"<p>{x}"))
    app.add_url_rule("/c/<x>", "routes", sitemap(values=["1"])(lambda x: f"<p>c{x}"))
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", sections=True, clock=Clock())
    wsgi(site, RequestSpec("/a/1", host="example.com"))
    index = locs(wsgi(site, RequestSpec("/sitemap.xml", host="example.com")).body)
    names = [loc.removeprefix(f"{BASE}/sitemap-") for loc in index]
    assert names == ["routes-1.xml", "item_2.xml", "routes_.xml", "shop.a.xml"]
    assert locs(wsgi(site, RequestSpec("/sitemap-item_2.xml", host="example.com")).body) == [
        f"{BASE}/b/1",
        f"{BASE}/b/2",
    ]
    site.close()


@pytest.mark.parametrize("name", ["posts-2", "posts-pages", "pages", "Posts", "", 3])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(OptionError, match=r"@sitemap on .*cannot name a section; give up to 50 of a-z"):
        sitemap(section=name)(lambda: "")
