"""Learned pages: of parametrised routes that ask for it, those that answered a stranger with a page."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

from .support.documents import entries
from .support.twins import Page, Twin
from .support.wire import Ask, asgi, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
LOCAL = "http://testserver"


def posts(protocol: str, **mark: Any) -> Twin:
    marks = {"/posts/{slug}": sitemap(**mark)} if mark else {}
    return Twin(protocol, {"/": Page(), "/posts/{slug}": Page()}, marks=marks, priority="auto")


@BOTH
def test_pages_of_a_parametrised_route_are_not_listed_unless_it_asks_for_it(protocol: str) -> None:
    site = posts(protocol)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]
    assert "not learned" in site.app.explain("/posts/one").reason


@BOTH
def test_a_marked_routes_pages_are_listed_once_they_were_seen(protocol: str) -> None:
    site = posts(protocol, learn=True, changefreq="monthly")
    assert site.locs() == [f"{LOCAL}/"]
    site.visit("/posts/one", "/posts/zwölf & mehr", "/posts/")
    assert site.entries() == {
        f"{LOCAL}/": {"priority": "1.0"},
        f"{LOCAL}/posts/one": {"changefreq": "monthly", "priority": "0.6"},
        f"{LOCAL}/posts/zw%C3%B6lf%20&%20mehr": {"changefreq": "monthly", "priority": "0.6"},
    }


@BOTH
def test_a_learned_page_that_is_gone_is_gone_from_the_very_next_sitemap(protocol: str) -> None:
    site = posts(protocol, learn=True)
    site.visit("/posts/one")
    site.pages["/posts/{slug}"] = Page(404)
    site.ask("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]


@BOTH
def test_what_only_the_signed_in_ask_for_is_not_learned(protocol: str) -> None:
    site = posts(protocol, learn=True)
    site.ask("/posts/one", headers=[("cookie", "session=1")])
    site.ask("/posts/two", headers=[("authorization", "Basic x")])
    site.ask("/posts/three", query="token=1")
    assert site.locs() == [f"{LOCAL}/"]


@BOTH
def test_exclusion_goes_before_learning(protocol: str) -> None:
    site = posts(protocol, learn=True, exclude=True)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]
    site = Twin(protocol, {"/posts/{slug}": Page()}, learn="/posts/{slug}", exclude="/posts/draft-*")
    site.visit("/posts/one", "/posts/draft-one")
    assert site.locs() == [f"{LOCAL}/posts/one"]


def test_the_mark_vouches_for_catch_alls_and_for_parameters_named_like_secrets() -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/docs/<path:page>", "docs", sitemap(learn=True)(lambda page: page))
    app.add_url_rule("/codes/<code>", "codes", sitemap(learn=True)(lambda code: code))
    site = SitemapMiddleware(app.wsgi_app, store="memory://")
    for path in ("/docs/a/b", "/codes/7"):
        wsgi(site, Ask(path))
    assert list(entries(wsgi(site, Ask("/sitemap.xml")).body)) == [f"{LOCAL}/codes/7", f"{LOCAL}/docs/a/b"]


def test_an_option_that_names_the_routes_own_template_takes_its_mark_along() -> None:
    async def post(_: Any) -> HTMLResponse:
        return HTMLResponse("A post.")

    app = Starlette(routes=[Route("/posts/{slug}", sitemap(priority=0.9)(post))])
    site = SitemapMiddleware(app, store="memory://", learn="/posts/{slug}")
    asgi(site, Ask("/posts/one"))
    assert entries(asgi(site, Ask("/sitemap.xml")).body) == {f"{LOCAL}/posts/one": {"priority": "0.9"}}
