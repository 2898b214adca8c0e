"""Learned pages: paths of parametrised routes with `learn`, listed once an anonymous visit got a page."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.stores.sqlite import MemoryStore

from ..support.documents import entries
from ..support.sample_sites import Page, SampleSite
from ..support.stores import all_pages
from ..support.wire import BOTH, RequestSpec, asgi

LOCAL = "http://testserver"
HOUR = 60 * 60
DAY = 24 * HOUR


@BOTH
def test_exclusion_goes_before_learning(protocol: str) -> None:
    marks = {"/posts/{slug}": sitemap(learn=True, exclude=True)}
    site = SampleSite(protocol, {"/": Page(), "/posts/{slug}": Page()}, marks=marks)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/"]
    site = SampleSite(protocol, {"/posts/{slug}": Page()}, learn="/posts/{slug}", exclude="/posts/draft-*")
    site.visit("/posts/one", "/posts/draft-one")
    assert site.locs() == [f"{LOCAL}/posts/one"]


def test_learn_option_with_a_routes_template_keeps_its_decorator_settings() -> None:
    async def post(_: Any) -> HTMLResponse:
        return HTMLResponse("A post.")

    app = Starlette(routes=[Route("/posts/{slug}", sitemap(priority=0.9)(post))])
    site = SitemapMiddleware(app, store="memory://", learn="/posts/{slug}")
    asgi(site, RequestSpec("/posts/one"))
    assert entries(asgi(site, RequestSpec("/sitemap.xml")).body) == {f"{LOCAL}/posts/one": {"priority": "0.9"}}


@BOTH
def test_made_up_paths_that_lead_nowhere_are_not_even_kept(protocol: str) -> None:
    store = MemoryStore()
    site = SampleSite(protocol, {"/posts/{slug}": Page(404)}, learn="/posts/{slug}", store=store)
    site.visit(*(f"/posts/{number}" for number in range(20)))
    assert all_pages(store, "loopback:http/") == []
    assert "nothing has shown that this is a page: there was no visit" in site.app.explain("/posts/3").reason


@BOTH
def test_learning_limits_hold_and_one_warning_names_the_options(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    pages = {"/": Page(), "/posts/{slug}": Page(), "/tags/{tag}": Page()}
    site = SampleSite(protocol, pages, learn=("/posts/{slug}", "/tags/{tag}"), max_pages_per_route=2, max_pages=3)
    site.visit("/", *(f"/{kind}/{number}" for kind in ("posts", "tags") for number in range(4)))
    assert site.locs() == [f"{LOCAL}{path}" for path in ("/", "/posts/0", "/posts/1", "/tags/0")]
    site.visit("/posts/9")
    assert site.app.stats()["refused"] == 6
    (warning,) = [record.getMessage() for record in caplog.records if "new pages are not stored" in record.getMessage()]
    assert "max_pages_per_route=2" in warning
    assert "max_pages=3" in warning


@BOTH
def test_a_learned_page_that_nobody_asks_for_any_more_is_forgotten(protocol: str) -> None:
    store = MemoryStore()
    site = SampleSite(
        protocol, {"/": Page(), "/posts/{slug}": Page()}, learn="/posts/{slug}", max_age_days=30, max_age=0, store=store
    )
    site.visit("/", "/posts/old", "/posts/new")
    site.clock.pass_(30 * DAY)
    assert sorted(site.locs()) == [f"{LOCAL}{path}" for path in ("/", "/posts/new", "/posts/old")]
    site.visit("/posts/new")
    site.clock.pass_(1)
    assert site.app.explain("/posts/old").reason == "it was not visited in the last 30 days"
    assert sorted(site.locs()) == [f"{LOCAL}{path}" for path in ("/", "/posts/new")]
    site.clock.pass_(HOUR)
    site.visit("/posts/new")
    assert [page.path for page in all_pages(store, "loopback:http/")] == ["/", "/posts/new"]


@BOTH
def test_page_with_and_without_a_slash_is_listed_as_its_route_is_written(protocol: str) -> None:
    page = Page(body=b"<main>one and the same</main>")
    pages = {"/posts/{slug}": page, "/posts/{slug}/": page, "/tags/{tag}": Page(), "/tags/{tag}/": Page(404)}
    site = SampleSite(protocol, pages, learn=("/posts/*", "/tags/*"), max_age=0)
    site.visit("/posts/one", "/posts/one/", "/posts/two/", "/tags/a", "/tags/a/")
    assert site.locs() == [f"{LOCAL}{path}" for path in ("/posts/one", "/posts/two/", "/tags/a")]
    assert site.app.explain("/posts/one/").reason == "it is the same page as /posts/one"


@BOTH
def test_a_redirect_is_never_listed_but_its_target_is(protocol: str) -> None:
    pages = {"/posts/{slug}": Page(), "/old/{slug}": Page(301, [("location", "/posts/one")])}
    site = SampleSite(protocol, pages, learn=("/posts/{slug}", "/old/{slug}"), max_age=0)
    site.visit("/old/one", "/posts/one")
    assert site.locs() == [f"{LOCAL}/posts/one"]
    site.pages["/posts/{slug}"], site.pages["/old/{slug}"] = Page(308, [("location", "/old/one")]), Page()
    site.clock.pass_(1)
    site.visit("/posts/one", "/old/one")
    site.clock.pass_(3600)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/old/one"]


@BOTH
@pytest.mark.parametrize("template", ["/posts/{slug}", "/posts/{number}/{slug}"])
def test_spellings_and_words_that_strangers_invent_keep_a_real_page_out_for_an_hour_at_most(
    protocol: str, template: str
) -> None:
    def path_of(number: int, spelling: str) -> str:
        return f"/posts/{number}/{spelling}" if "number" in template else f"/posts/{'x' * number}{spelling}"

    site = SampleSite(protocol, {template: Page()}, learn=template, max_pages_per_route=6, robots=False)

    def visit(number: int, *spellings: str) -> None:
        site.pages[template] = Page(body=b"<!doctype html><main><p>Post %d" % number)
        site.visit(*(path_of(number, spelling) for spelling in spellings))
        site.clock.pass_(60)

    for number in range(1, 6):
        site.clock.pass_(HOUR)
        visit(number, "a")
        visit(number, "a", *(f"a{'.' * times}" for times in range(1, 40)))
        if "{number}" in template:
            visit(number, *(f"buy-{times}" for times in range(40)))
    assert [loc.rpartition("/posts/")[2] for loc in site.locs()] == [
        path_of(number, "a").removeprefix("/posts/") for number in range(1, 6)
    ]


@BOTH
def test_of_equal_pages_the_one_that_pages_link_to_is_listed(protocol: str) -> None:
    home = Page(body=b'<!doctype html><p>Questions</p><a href="/q/1/how-to">How to</a>')
    site = SampleSite(protocol, {"/": home, "/q/{number}/{slug}": Page()}, learn="/q/{number}/{slug}", robots=False)
    site.visit("/q/1/buy-now")
    site.clock.pass_(60)
    site.visit("/q/1/how-to", "/q/1/look-here", "/")
    assert site.locs() == [f"{LOCAL}/", f"{LOCAL}/q/1/how-to"]
    assert site.app.explain("/q/1/buy-now").reason == (
        "it has the same content as /q/1/how-to, which is listed instead"
    )


@BOTH
def test_same_answer_within_a_second_is_merged_once(protocol: str) -> None:
    site = SampleSite(protocol, {"/": Page()})
    site.visit("/")
    site.visit("/")  # whose body is not due
    site.request("/")
    site.clock.pass_(0.25)
    site.visit("/")
    assert (site.app.stats()["merged"], site.app.stats()["seen"]) == (3, 4)
    site.clock.pass_(1)
    site.visit("/")
    assert site.app.stats()["merged"] == 4


def test_a_path_that_the_router_would_write_otherwise_is_not_learned() -> None:
    site = SampleSite("wsgi", {"/item/{int:number}": Page()}, learn="/item/<int:number>")
    site.visit("/item/007", "/item/7")
    assert site.locs() == [f"{LOCAL}/item/7"]
    assert site.app.explain("/item/007").reason == "its route /item/<int:number> writes this path otherwise"
