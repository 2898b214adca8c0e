"""One line gives a real app a true sitemap: the shortest way through every layer, by both protocols."""

import pytest

from sitemap_middleware import sitemap

from ..support.sample_sites import Page, SampleSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])


@BOTH
def test_unvisited_site_lists_static_routes_without_dates(protocol: str) -> None:
    site = SampleSite(protocol, {"/": Page(), "/about": Page(), "/posts/{slug}": Page()})
    assert site.entries() == {"http://testserver/": {}, "http://testserver/about": {}}


@BOTH
def test_a_visit_dates_a_page_by_its_last_modified(protocol: str) -> None:
    site = SampleSite(protocol, {"/": Page().with_headers(("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"))})
    site.visit("/")
    assert site.entries() == {"http://testserver/": {"lastmod": "2023-11-14T22:13:20Z"}}


@BOTH
def test_a_mark_is_written(protocol: str) -> None:
    mark = sitemap(priority=0.8, changefreq="weekly")
    site = SampleSite(protocol, {"/": Page(), "/x": Page()}, marks={"/": mark, "/x": sitemap(exclude=True)})
    assert site.entries() == {"http://testserver/": {"changefreq": "weekly", "priority": "0.8"}}
