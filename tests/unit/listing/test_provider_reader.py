"""`@sitemap(values=...)`: providers of a route's pages, in every form and framework, and their failures."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import importlib.metadata
import inspect
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import aiosqlite
import flask
import pytest
import quart
from a2wsgi import WSGIMiddleware
from anyio.from_thread import run_sync as run_on_loop
from fastapi import APIRouter, FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Host, Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.routing import BaseConverter

from sitemap_middleware import Entry, OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.adapters.event_loop_and_threads import collect_on_loop
from sitemap_middleware.documents import publisher
from sitemap_middleware.exceptions import ValuesError, ValuesTimeout
from sitemap_middleware.listing import provider_reader as providers
from sitemap_middleware.listing.provider_items import ProviderReport
from sitemap_middleware.listing.provider_reader import MAX_BATCH_ITEMS, BatchQueue

from ...support.documents import entries
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.stores import all_pages
from ...support.waiting import join_threads
from ...support.wire import DRIVERS, Answer, RequestSpec, asgi_async

LOCAL = "http://testserver"
BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
NOW = 1_750_000_000
"""2025-06-15T15:06:40Z."""
DAY = 24 * 60 * 60
SLUGS: list[Any] = [{"slug": "one"}, {"slug": "zwölf & mehr"}]
PAGES = [f"{LOCAL}/posts/one", f"{LOCAL}/posts/zw%C3%B6lf%20&%20mehr"]


def text(values: Any = None, **more: Any) -> Any:
    """A new view for Flask each time, for a mark stays on what it was put on."""

    def view(**_: Any) -> str:
        return "A post."

    return view if values is None else sitemap(values=values, **more)(view)


# Every framework


def on_flask(values: Any) -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/posts/<slug>", "post", text(values))
    return app


def on_flask_blueprint(values: Any) -> Any:
    app, blueprint = flask.Flask("site", static_folder=None), flask.Blueprint("blog", "blog", url_prefix="/posts")
    blueprint.add_url_rule("/<slug>", "post", text(values))
    app.register_blueprint(blueprint)
    return app


def on_flask_below_a_dispatcher(values: Any) -> Any:
    inner, outer = flask.Flask("site", static_folder=None), flask.Flask("outer", static_folder=None)
    inner.add_url_rule("/<slug>", "post", text(values))
    return DispatcherMiddleware(outer, {"/posts": inner})


def on_quart(values: Any) -> Any:
    app = quart.Quart("site", static_folder=None)

    @app.route("/posts/<slug>")
    @sitemap(values=values)
    async def post(slug: str) -> str:
        return "A post."

    return app


def a_view(values: Any) -> Any:
    async def post(request: Request) -> Response:
        return HTMLResponse("A post.")

    return sitemap(values=values)(post)


def on_starlette(values: Any) -> Any:
    return Starlette(routes=[Route("/posts/{slug}", a_view(values))])


def on_starlette_mounted(values: Any) -> Any:
    return Starlette(routes=[Mount("/posts", Router([Route("/{slug}", a_view(values))]))])


def on_fastapi(values: Any) -> Any:
    app, router = FastAPI(), APIRouter()

    @router.get("/{slug}")
    @sitemap(values=values)
    def post(slug: str) -> HTMLResponse:
        return HTMLResponse("A post.")

    app.include_router(router, prefix="/posts")
    return app


def on_flask_in_starlette(values: Any) -> Any:
    inner = flask.Flask("site", static_folder=None)
    inner.add_url_rule("/<slug>", "post", text(values))
    return Starlette(routes=[Mount("/posts", WSGIMiddleware(inner))])


MAKERS: list[Callable[[Any], Any]] = [
    on_flask,
    on_flask_blueprint,
    on_flask_below_a_dispatcher,
    on_quart,
    on_starlette,
    on_starlette_mounted,
    on_fastapi,
    on_flask_in_starlette,
]
EVERYWHERE = pytest.mark.parametrize("make", MAKERS)


class Site:
    """An app of any framework, wrapped, with its clock."""

    def __init__(self, app: Any, **options: Any) -> None:
        self.clock = options.setdefault("clock", Clock(NOW))
        self.app = SitemapMiddleware(app, **{"verify": False, "store": "memory://", **options})
        self.protocol = "asgi" if inspect.iscoroutinefunction(type(self.app).__call__) else "wsgi"

    def request(self, path: str, **changes: Any) -> Answer:
        return DRIVERS[self.protocol](self.app, RequestSpec(path, **changes))

    def sitemap(self, **changes: Any) -> Answer:
        return self.request("/sitemap.xml", **changes)

    def entries(self, **changes: Any) -> dict[str, dict[str, str]]:
        answer = self.sitemap(**changes)
        assert answer.status in (200, 404), answer.text
        return entries(answer.body) if answer.status == 200 else {}

    def locs(self, **changes: Any) -> list[str]:
        return list(self.entries(**changes))

    def known(self, host: str = "testserver") -> list[str]:
        """The paths of pages with observations."""
        self.app.flush()
        site, _ = self.app.service.site_resolver.resolve("http", host, "")
        return [page.path for page in all_pages(self.app.service.store, site.store_key)]


# Every form


def generator() -> Iterator[Any]:
    yield from SLUGS


async def async_generator() -> AsyncIterator[Any]:
    for slug in SLUGS:
        await asyncio.sleep(0)
        yield slug


async def async_function() -> list[Any]:
    await asyncio.sleep(0)
    return SLUGS


async def async_function_of_a_generator() -> AsyncIterator[Any]:
    return async_generator()


class Posts:
    def __iter__(self) -> Iterator[Any]:
        return iter(SLUGS)


class AsyncPosts:
    def __aiter__(self) -> AsyncIterator[Any]:
        return async_generator()


class Row:
    """As rows of databases are: a mapping in all but type."""

    def __init__(self, **columns: Any) -> None:
        self._columns = columns

    def keys(self) -> list[str]:
        return list(self._columns)

    def __getitem__(self, key: str) -> Any:
        return self._columns[key]


def one_row_filled_again() -> Iterator[Any]:
    row: dict[str, Any] = {}
    for slug in SLUGS:
        row.update(slug)
        yield row


async def one_row_filled_again_async() -> AsyncIterator[Any]:
    row: dict[str, Any] = {}
    for slug in SLUGS:
        row.update(slug)
        yield row


FORMS: list[Any] = [
    SLUGS,
    tuple(SLUGS),
    generator,
    lambda: SLUGS,
    Posts(),
    Posts,
    async_generator,
    functools.partial(async_generator),
    async_function,
    async_function_of_a_generator,
    AsyncPosts(),
    AsyncPosts,
    [Entry(slug) for slug in SLUGS],
    [Row(**slug) for slug in SLUGS],
    one_row_filled_again,
    one_row_filled_again_async,
    [*SLUGS, *SLUGS],
]


@EVERYWHERE
@pytest.mark.parametrize("form", FORMS, ids=lambda form: getattr(form, "__name__", type(form).__name__))
def test_a_routes_pages_are_enumerated_in_every_form_and_framework(make: Any, form: Any) -> None:
    assert Site(make(form)).locs() == PAGES


@EVERYWHERE
def test_each_page_enumerated_leads_to_the_view(make: Any) -> None:
    site = Site(make(SLUGS))
    for loc in site.locs():
        answer = site.request(unquote(urlsplit(loc).path))
        assert (answer.status, answer.text) == (200, "A post.")


@EVERYWHERE
def test_a_root_path_stands_before_it_once(make: Any) -> None:
    assert Site(make(SLUGS)).locs(root="/shop") == [page.replace("/posts", "/shop/posts") for page in PAGES]


def test_providers_are_asked_again_once_max_age_has_passed() -> None:
    posts = [{"slug": "a"}]
    site = Site(on_flask(lambda: posts), max_age=60)
    assert site.locs() == [f"{LOCAL}/posts/a"]
    posts.append({"slug": "b"})
    site.clock.pass_(59)
    assert site.locs() == [f"{LOCAL}/posts/a"]
    site.clock.pass_(1)
    assert site.locs() == [f"{LOCAL}/posts/a", f"{LOCAL}/posts/b"]


async def nothing() -> AsyncIterator[Any]:
    for post in ():
        yield post


@EVERYWHERE
@pytest.mark.parametrize("form", [[], nothing])
def test_a_provider_of_nothing_lists_nothing(make: Any, form: Any) -> None:
    site = Site(make(form))
    assert site.sitemap().status == 404
    assert site.app.explain("/posts/one").reason == "its route has values, and they do not include it"


def test_probing_requests_no_provided_page_and_reads_no_provider_twice() -> None:
    calls = []

    def posts() -> list[Any]:
        calls.append("posts")
        return SLUGS

    def view(slug: str) -> str:
        calls.append(slug)
        return "A post."

    app = on_rules(("/posts/<slug>", sitemap(values=posts)(view), {}), ("/", text(), {}))
    assert Site(app, verify=True).locs() == [f"{LOCAL}/", *PAGES]
    assert calls == ["posts"]


def test_many_pages_are_all_there() -> None:
    def many() -> Iterator[Any]:
        for number in range(3000):
            yield {"slug": f"{number:04}"}

    async def many_async() -> AsyncIterator[Any]:
        for post in many():
            yield post

    wanted = [f"{LOCAL}/posts/{number:04}" for number in range(3000)]
    for make, form in ((on_flask, many), (on_flask, many_async), (on_starlette, many), (on_starlette, many_async)):
        assert Site(make(form)).locs() == wanted


# The fields of an entry

MODIFIED = "Fri, 01 May 2020 06:30:00 GMT"


@BOTH
def test_entry_wins_over_decorator_and_decorator_over_options(protocol: str) -> None:
    items = [
        Entry({"slug": "a"}, lastmod=dt.date(2024, 5, 1), priority=0.1, changefreq="daily"),
        Entry({"slug": "b"}, lastmod=dt.datetime(2024, 5, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        {"slug": "c"},
    ]
    mark = sitemap(values=items, priority=0.2, lastmod=dt.date(2023, 1, 1))
    site = SampleSite(protocol, {"/posts/{slug}": Page()}, marks={"/posts/{slug}": mark}, changefreq="yearly")
    assert site.entries() == {
        f"{LOCAL}/posts/a": {"lastmod": "2024-05-01", "changefreq": "daily", "priority": "0.1"},
        f"{LOCAL}/posts/b": {"lastmod": "2024-05-01T10:00:00Z", "changefreq": "yearly", "priority": "0.2"},
        f"{LOCAL}/posts/c": {"lastmod": "2023-01-01", "changefreq": "yearly", "priority": "0.2"},
    }


@BOTH
def test_developer_date_wins_and_other_pages_get_the_observed_one(protocol: str) -> None:
    items = [Entry({"slug": "a"}, lastmod=dt.date(2024, 5, 1)), {"slug": "b"}]
    page = Page().with_headers(("last-modified", MODIFIED))
    site = SampleSite(protocol, {"/posts/{slug}": page}, marks={"/posts/{slug}": sitemap(values=items)})
    site.visit("/posts/a", "/posts/b")
    assert site.entries() == {
        f"{LOCAL}/posts/a": {"lastmod": "2024-05-01"},
        f"{LOCAL}/posts/b": {"lastmod": "2020-05-01T06:30:00Z"},
    }
    assert site.app.explain("/posts/a").lastmod_source == "the developer's date"
    assert site.app.explain("/posts/b").lastmod_source == "Last-Modified"


UNFIT = [
    Page(404),
    Page(410),
    Page(301, [("location", "/elsewhere")]),
    Page().with_headers(("x-robots-tag", "noindex")),
    Page(body=b"<!doctype html><meta name=robots content=noindex><p>A page."),
    Page(200, [("content-type", "application/json")]),
]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("store", ["memory://", "sqlite:///seen.sqlite3"])
@pytest.mark.parametrize("page", UNFIT, ids=lambda page: f"{page.status} {page.headers[-1][1]}")
@pytest.mark.parametrize("first", ["seen first", "enumerated first"])
def test_gone_or_noindex_page_is_left_out_until_it_recovers(protocol: str, store: str, page: Page, first: str) -> None:
    pages = {"/": Page(), "/posts/{slug}": page}
    site = SampleSite(protocol, pages, marks={"/posts/{slug}": sitemap(values=SLUGS)}, store=store)
    if first == "enumerated first":
        assert site.locs() == [f"{LOCAL}/", *PAGES]
        site.clock.pass_(1)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/", PAGES[1]]
    assert not site.app.explain("/posts/one").listed
    site.clock.pass_(1)
    site.visit("/posts/one")
    for _ in range(3):  # learned pages that are not listed are forgotten within days; these are not learned
        site.clock.pass_(DAY)
        site.visit("/")
        assert site.locs() == [f"{LOCAL}/", PAGES[1]]
    site.pages["/posts/{slug}"] = Page()
    site.clock.pass_(DAY)
    site.visit("/posts/one")
    site.clock.pass_(DAY)
    site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/", *PAGES]
    site.app.close()


@BOTH
def test_a_page_that_is_not_enumerated_is_never_listed(protocol: str) -> None:
    marks = {"/posts/{slug}": sitemap(values=SLUGS)}
    for options in ({}, {"learn": "/posts/*"}, {"learn": "/posts/{slug}"}, {"learn": "/posts/<slug>"}):
        site = SampleSite(protocol, {"/posts/{slug}": Page()}, marks=marks, **options)
        site.visit("/posts/one", "/posts/three")
        assert site.locs() == PAGES
        assert site.app.explain("/posts/three").reason == "its route has values, and they do not include it"


def test_provided_page_is_not_dropped_as_a_slash_variant() -> None:
    site = Site(Starlette(routes=[Route("/docs/{name:path}", a_view([{"name": "a"}, {"name": "a/"}]))]))
    site.request("/docs/a")
    site.request("/docs/a/")
    assert site.locs() == [f"{LOCAL}/docs/a", f"{LOCAL}/docs/a/"]


@BOTH
def test_unknown_paths_leave_no_trace_once_the_pages_are_known(protocol: str) -> None:
    site = SampleSite(protocol, {"/posts/{slug}": Page(404)}, marks={"/posts/{slug}": sitemap(values=SLUGS)})
    site.locs()
    site.visit("/posts/made-up", "/posts/one")
    (known,) = all_pages(site.app.service.store, "loopback:http/")
    assert (known.path, known.learned) == ("/posts/one", False)


@BOTH
def test_exclusion_and_robots_txt_go_before_values(protocol: str) -> None:
    calls = []

    def posts() -> list[Any]:
        calls.append(1)
        return [{"slug": "one"}, {"slug": "draft-1"}, {"slug": "secret"}]

    robots = Page(200, [("content-type", "text/plain")], b"User-agent: *\nDisallow: /posts/secret\n")
    pages = {"/": Page(), "/posts/{slug}": Page(), "/robots.txt": robots}
    site = SampleSite(protocol, pages, marks={"/posts/{slug}": sitemap(values=posts)}, exclude="/posts/draft-*")
    assert site.locs() == [f"{LOCAL}/", f"{LOCAL}/posts/one"]
    assert calls.pop()
    site = SampleSite(protocol, pages, marks={"/posts/{slug}": sitemap(values=posts, exclude=True)})
    assert site.locs() == [f"{LOCAL}/"]
    assert not calls


def test_provider_lists_hidden_pages_and_file_like_names() -> None:
    app = FastAPI()

    @app.get("/files/{name}", include_in_schema=False)
    @sitemap(values=[{"name": "a.json"}])
    def file(name: str) -> dict[str, str]:
        return {"name": name}

    site = Site(app, list_unseen=False)
    assert site.locs() == [f"{LOCAL}/files/a.json"]
    site.request("/files/a.json")
    assert site.locs() == []


def test_a_callable_lastmod_of_the_mark_dates_pages_without_a_date() -> None:
    posts = [Entry({"slug": "a"}, lastmod=dt.date(2024, 1, 1)), {"slug": "b"}]
    view = text(posts, lastmod=lambda: dt.date(2023, 1, 1))
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/posts/<slug>", "post", view)
    assert [fields["lastmod"] for fields in Site(app).entries().values()] == ["2024-01-01", "2023-01-01"]


def test_priority_auto_takes_enumerated_pages_for_articles() -> None:
    site = Site(on_flask(SLUGS), priority="auto")
    assert [fields["priority"] for fields in site.entries().values()] == ["0.6", "0.6"]


# Values of classes of the app's own

MARKUP = "<&>"


class OwnText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return MARKUP

    def strip(self, *_: object) -> str:
        return MARKUP

    def replace(self, *_: object) -> str:
        return MARKUP


class OwnDate(dt.date):
    def isoformat(self) -> str:
        return MARKUP

    def __str__(self) -> str:
        return MARKUP


class OwnDatetime(dt.datetime):
    def isoformat(self, *_: object) -> str:
        return MARKUP

    def astimezone(self, *_: object) -> Any:
        return MARKUP

    def toordinal(self) -> Any:
        return MARKUP


class OwnFloat(float):
    def __str__(self) -> str:
        return MARKUP

    def __round__(self, *_: object) -> Any:
        return MARKUP

    def __abs__(self) -> Any:
        return MARKUP


class OwnInt(int):
    def __str__(self) -> str:
        return MARKUP

    def __float__(self) -> float:
        return OwnFloat(1)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"lastmod": OwnText("2024-05-01")}, {"lastmod": "2024-05-01"}),
        ({"lastmod": OwnDate(2024, 5, 1)}, {"lastmod": "2024-05-01"}),
        ({"lastmod": OwnDatetime(2024, 5, 1, 10)}, {"lastmod": "2024-05-01T10:00:00Z"}),
        ({"lastmod": OwnDatetime(2024, 5, 1, 10, tzinfo=dt.UTC)}, {"lastmod": "2024-05-01T10:00:00Z"}),
        ({"changefreq": OwnText("daily")}, {"changefreq": "daily"}),
        ({"priority": OwnFloat(0.25)}, {"priority": "0.25"}),
        ({"priority": OwnInt(1)}, {"priority": "1.0"}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*__float__ returned non-float:DeprecationWarning")
def test_a_value_is_written_as_its_base_class_writes_it(given: dict[str, Any], written: dict[str, str]) -> None:
    on_page, on_route = Site(on_flask([Entry({"slug": "one"}, **given)])), flask.Flask("site", static_folder=None)
    on_route.add_url_rule("/posts/<slug>", "post", text([{"slug": "one"}], **given))
    assert on_page.entries() == Site(on_route).entries() == {PAGES[0]: written}


class Post(Entry):
    """An entry that gives its own account of its page."""

    def __init__(self, slug: str, **fields: Any) -> None:
        super().__init__({"slug": slug}, **fields)


class Unmade(Entry):
    def __init__(self) -> None:
        pass


def test_entry_of_a_class_of_the_app_says_the_same(caplog: pytest.LogCaptureFixture) -> None:
    site = Site(on_flask([Post("one", lastmod="2024-05-01", priority=0.5), Post("two", lastmod="soon")]))
    assert site.entries() == {
        PAGES[0]: {"lastmod": "2024-05-01", "priority": "0.5"},
        f"{LOCAL}/posts/two": {},
    }
    assert "have a lastmod that is not a date, so it is not used, such as 'soon' of /posts/two" in caplog.text


def test_entry_that_was_never_initialised_costs_itself_only(caplog: pytest.LogCaptureFixture) -> None:
    assert Site(on_flask([SLUGS[0], Unmade(), SLUGS[1]])).locs() == PAGES
    assert "one item was left out: it is of type Unmade, and cannot be read (AttributeError)" in caplog.text


# Hostile items


class Unkeyed:
    def keys(self) -> list[str]:
        raise RuntimeError("no")


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Unconvertible:
    def __str__(self) -> str:
        raise Unprintable


HOSTILE: list[tuple[Any, str]] = [
    (None, "None is not a text, a number or a similar value; give a mapping such as {'slug': ...}"),
    (True, "True is not a text"),
    (b"slug", "b'slug' is not a text"),
    (("slug", "a"), "it is of type tuple, which does not say what is its slug; give a mapping such as {'slug': ...}"),
    (["slug"], "of type list"),
    (Unkeyed(), "it is of type Unkeyed, and has no attribute slug"),
    (Hostile(), "it is of type Hostile, and its slug cannot be read (RuntimeError)"),
    (SimpleNamespace(slug=lambda: "a"), "of type SimpleNamespace, and its slug is a method"),
    (SimpleNamespace(slug=None), "slug=None is not a text"),
    (SimpleNamespace(title="a"), "has no attribute slug"),
    ({}, "slug is missing"),
    (Entry({}), "slug is missing"),
    ({"slog": "a"}, "slug is missing"),
    ({"slug": "a", "page": 1}, "has no parameter page"),
    ({"slug": "a", 1: 1}, "has no parameter 1"),
    ({"slug": None}, "slug=None is not a text"),
    ({"slug": b"a"}, "slug=b'a' is not a text"),
    ({"slug": ""}, ""),
    ({"slug": "a/b"}, ""),
    ({"slug": "/a"}, ""),
    ({"slug": "."}, "no loc can be written"),
    ({"slug": ".."}, "no loc can be written"),
    ({"slug": "a\nb"}, ""),
    ({"slug": "\x00"}, "no loc can be written"),
    ({"slug": "\ud800"}, ""),
    ({"slug": "x" * 3000}, "2,048 characters"),
    ({"slug": Unconvertible()}, "Unprintable"),
]


@EVERYWHERE
@pytest.mark.parametrize(
    ("item", "reason"), HOSTILE, ids=lambda value: repr(value)[:30] if value is not None else "None"
)
def test_an_item_that_makes_no_page_is_skipped_counted_and_named(
    make: Any, item: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(make([SLUGS[0], item, SLUGS[1]]))
    assert site.locs() == PAGES
    assert site.app.stats()["skipped"] == 1
    (warning,) = [
        record.getMessage()
        for record in caplog.records
        if (record.name, record.levelno) == ("sitemap_middleware", logging.WARNING)
    ]
    assert "1 of the 3 items" in warning
    assert reason in warning
    explanation = site.app.explain("/posts/one")
    assert explanation.listed
    assert explanation.skipped[0] == "1 of 3 items were left out"
    assert reason in explanation.skipped[1]
    assert "values: 1 of 3 items were left out" in str(explanation)


def test_first_skipped_items_are_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    site = Site(on_flask([*SLUGS, *({"id": number} for number in range(9))]), max_age=0)
    for _ in range(2):
        assert site.locs() == PAGES
        site.clock.pass_(1)
    assert site.app.stats()["skipped"] == 9
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().endswith("; and 6 more")
    assert site.app.explain("/posts/x").skipped[0] == "9 of 11 items were left out, such as the 3 that follow"
    assert [line.partition(" ")[0] for line in site.app.explain("/posts/x").skipped] == ["9", *["{'id':"] * 3]


@pytest.mark.slow
@EVERYWHERE
@given(params=st.dictionaries(st.sampled_from(["slug", "other", ""]), st.text(max_size=6), max_size=2))
def test_any_text_is_skipped_or_leads_back_to_its_route(make: Any, params: dict[str, str]) -> None:
    site = Site(make([params]))
    locs = site.locs()
    assert len(locs) + site.app.stats()["skipped"] == 1
    for loc in locs:
        path = unquote(urlsplit(loc).path)
        assert path == f"/posts/{params['slug']}"
        assert site.request(path).text == "A post."


@pytest.mark.slow
@pytest.mark.parametrize("make", [on_flask, on_starlette, on_fastapi])
@given(name=st.text(max_size=8))
def test_a_catch_alls_paths_lead_back_as_they_are(make: Any, name: str) -> None:
    seen = []
    if make is on_flask:
        app = flask.Flask("site", static_folder=None)
        app.add_url_rule(
            "/<path:name>", "file", sitemap(values=[{"name": name}])(lambda name: seen.append(name) or "x")
        )
    else:
        app = FastAPI() if make is on_fastapi else Starlette()

        @sitemap(values=[{"name": name}])
        async def file(request: Request) -> Response:
            seen.append(request.path_params["name"])
            return HTMLResponse("x")

        app.add_route("/{name:path}", file)
    site = Site(app)
    for loc in site.locs():
        seen.clear()  # a catch-all may answer robots.txt, so it was asked
        assert site.request(unquote(urlsplit(loc).path)).status == 200
        assert seen == [name]


# Building by the framework's own router


def on_rules(*rules: tuple[str, Any, dict[str, Any]], **options: Any) -> flask.Flask:
    app = flask.Flask("site", static_folder=None, **options)
    for number, (rule, view, more) in enumerate(rules):
        app.add_url_rule(rule, more.pop("endpoint", f"view{number}"), view, **more)
    return app


class Lower(BaseConverter):
    def to_url(self, value: Any) -> str:
        return super().to_url(str(value).lower().replace(" ", "-"))


WERKZEUG = tuple(map(int, importlib.metadata.version("werkzeug").split(".")))


class Below(BaseConverter):
    regex = "[a-z]+/[a-z]+"
    part_isolating = False  # Werkzeug below 2.2.3 does not see it from the regex


def with_known(framework: Any, **known: str) -> Any:
    """An app with a converter that asks what the app knows, as of its database: within the app's context alone."""

    class Known(BaseConverter):
        def to_python(self, value: str) -> str:
            slugs: dict[str, str] = framework.current_app.config["KNOWN"]
            return slugs[value]

    app = (flask.Flask if framework is flask else quart.Quart)("site", static_folder=None)
    app.config["KNOWN"] = known
    app.url_map.converters["known"] = Known
    app.add_url_rule("/posts/<known:x>", "post", text([{"x": "a"}]))
    app.add_url_rule("/about", "about", text())
    return app


def test_a_converter_that_asks_the_app_is_asked_within_its_context() -> None:
    site = Site(with_known(flask, a="A post."))
    for path in ("/about", "/posts/a"):
        assert site.request(path).status == 200
    assert site.known() == ["/about", "/posts/a"]
    assert site.locs() == [f"{LOCAL}/about", f"{LOCAL}/posts/a"]


@pytest.mark.parametrize("framework", [flask, quart])
def test_a_converter_that_fails_holds_up_no_other_page(framework: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = with_known(framework, b="A post.")
    site = Site(app)
    for path in ("/posts/b", "/about"):
        assert site.request(path).status == 200
    app.config["KNOWN"].clear()
    assert site.known() == ["/about"]
    (record,) = caplog.records
    assert record.getMessage().endswith("; further faults like this are not logged")


def test_flasks_converters_build_and_refuse() -> None:
    app = flask.Flask("site", static_folder=None)
    app.url_map.converters.update(lower=Lower, below=Below)

    def add(rule: str, *items: Any) -> None:
        app.add_url_rule(rule, rule, text([{"x": item} for item in items]))

    add("/int/<int:x>", 7, "8", -1, "nine", 1.5)
    add("/float/<float:x>", 1.5)
    add("/any/<any(a, b):x>", "a", "c")
    add("/length/<string(length=2):x>", "ab", "abc" if WERKZEUG >= (2, 2, 3) else "")  # before, it took "abc"
    add("/uuid/<uuid:x>", "12345678-1234-5678-1234-567812345678", "1")
    add("/lower/<lower:x>", "Hello World")
    add("/below/<below:x>", "a/b", "a")
    add("/sub<path:x>/", "/a", "a/b")
    languages = [{"x": "a", "lang": "en"}, {"x": "b", "lang": "de"}, {"x": "c"}]
    app.add_url_rule("/default/<x>", "default", text(languages), defaults={"lang": "en"})
    site = Site(app)
    assert [loc.removeprefix(LOCAL) for loc in sorted(site.locs())] == [
        "/any/a",
        "/below/a/b",
        "/default/a",
        "/default/c",
        "/float/1.5",
        "/int/1",
        "/int/7",
        "/int/8",
        "/length/ab",
        "/lower/hello-world",
        "/suba/b/",
        "/uuid/12345678-1234-5678-1234-567812345678",
    ]
    site.request("/below/a/b")
    assert site.app.stats()["seen"] == 1
    assert site.app.explain("/below/a/b").page is not None


def test_starlettes_convertors_build_and_refuse() -> None:
    def route(path: str, *items: Any) -> Route:
        return Route(path, a_view([{"x": item} for item in items]))

    site = Site(
        Starlette(
            routes=[
                route("/int/{x:int}", 7, "8", -1, "nine"),
                route("/float/{x:float}", 1.5),
                route("/uuid/{x:uuid}", "12345678-1234-5678-1234-567812345678", "1"),
                route("/path/{x:path}", "a/b", ""),
            ]
        )
    )
    assert [loc.removeprefix(LOCAL) for loc in sorted(site.locs())] == [
        "/float/1.5",
        "/int/7",
        "/int/8",
        "/path/",
        "/path/a/b",
        "/uuid/12345678-1234-5678-1234-567812345678",
    ]


def test_a_default_leads_to_the_rule_that_has_it() -> None:
    numbers = [{"page": number} for number in (1, 2)]
    view = text([Entry(numbers[0], priority=0.9), numbers[1]])
    app = on_rules(
        ("/posts/", view, {"endpoint": "posts", "defaults": {"page": 1}}),
        ("/posts/page/<int:page>", view, {"endpoint": "posts"}),
    )
    assert Site(app).entries() == {f"{LOCAL}/posts/": {"priority": "0.9"}, f"{LOCAL}/posts/page/2": {}}


def test_two_rules_of_one_endpoint_share_items_by_their_parameters() -> None:
    calls = []

    def posts() -> Iterator[Any]:
        calls.append(1)
        yield from ({"slug": "a"}, {"year": 2024, "slug": "b"}, {"year": 2024})

    view = text(posts)
    for app in (
        on_rules(
            ("/posts/<slug>", view, {"endpoint": "post"}), ("/posts/<int:year>/<slug>", view, {"endpoint": "post"})
        ),
        Starlette(routes=[Route("/posts/{slug}", view), Route("/posts/{year:int}/{slug}", view)]),
    ):
        site = Site(app)
        assert sorted(site.locs()) == [f"{LOCAL}/posts/2024/b", f"{LOCAL}/posts/a"]
        assert site.app.stats()["skipped"] == 1
        assert len(calls) == 1
        calls.clear()


def test_blueprint_registered_twice_lists_pages_twice_and_reads_once() -> None:
    calls = []

    def posts() -> list[Any]:
        calls.append(1)
        return [{"slug": "a"}]

    blueprint = flask.Blueprint("blog", "blog")
    blueprint.add_url_rule("/<slug>", "post", text(posts))
    app = flask.Flask("site", static_folder=None)
    app.register_blueprint(blueprint, url_prefix="/en", name="en")
    app.register_blueprint(blueprint, url_prefix="/de", name="de")
    assert sorted(Site(app).locs()) == [f"{LOCAL}/de/a", f"{LOCAL}/en/a"]
    assert len(calls) == 1


def test_path_taken_by_an_earlier_route_is_left_out() -> None:
    posts = [{"slug": slug} for slug in ("new", "7", "about")]
    view = a_view(posts)
    plain = a_view(None)
    apps = [
        on_rules(("/posts/new", text(), {}), ("/posts/<int:id>", text(), {}), ("/posts/<slug>", text(posts), {})),
        Starlette(routes=[Route("/posts/{id:int}", plain), Route("/posts/new", plain), Route("/posts/{slug}", view)]),
        Starlette(
            routes=[
                Route("/posts/new", plain),
                Route("/posts/{id:int}", plain),
                Mount("/posts", Router([Route("/{slug}", view)])),
            ]
        ),
    ]
    for app in apps:
        site = Site(app)
        assert f"{LOCAL}/posts/about" in site.locs()
        assert site.app.stats()["skipped"] == 2
        assert site.app.explain("/posts/7").reason.startswith("its route /posts/")


def test_a_path_that_another_app_takes_is_no_page_of_this_one() -> None:
    pages = [{"page": "api/x"}, {"page": "x"}]
    outer, inner = on_rules(("/<path:page>", text(pages), {})), flask.Flask("inner", static_folder=None)
    for app in (
        DispatcherMiddleware(outer, {"/api": inner}),
        Starlette(routes=[Mount("/api", Router()), Route("/{page:path}", a_view(pages))]),
    ):
        site = Site(app)
        assert site.locs() == [f"{LOCAL}/x"]
        site.request("/api/x")
        site.request("/x")
        assert site.known() == ["/x"]


def test_rules_of_a_subdomain_or_a_host_are_built_on_it_alone() -> None:
    by_subdomain = flask.Flask("site", static_folder=None, subdomain_matching=True)
    by_subdomain.config["SERVER_NAME"] = "example.com"
    by_subdomain.add_url_rule("/<slug>", "blog", text(SLUGS), subdomain="blog")
    by_host = flask.Flask("site", static_folder=None, host_matching=True)
    by_host.add_url_rule("/<slug>", "blog", text(SLUGS), host="blog.example.com")
    by_starlette = Starlette(routes=[Host("blog.example.com", Router([Route("/{slug}", a_view(SLUGS))]))])
    for app in (by_subdomain, by_host, by_starlette):
        site = Site(app, base_url="http://example.com")
        assert site.locs(host="example.com") == []
        assert site.locs(host="blog.example.com") == [
            page.replace("testserver/posts", "blog.example.com") for page in PAGES
        ]
        site.request("/one", host="blog.example.com")
        assert site.known(host="blog.example.com") == ["/one"]


def test_endpoint_on_two_subdomains_is_built_on_the_first_one() -> None:
    app = flask.Flask("site", static_folder=None, subdomain_matching=True)
    app.config["SERVER_NAME"] = "example.com"
    view = text([{"slug": "x"}])
    for subdomain in ("a", "b"):
        app.add_url_rule("/<slug>", "post", view, subdomain=subdomain)
    site = Site(app, base_url="http://example.com")
    assert site.locs(host="a.example.com") == ["http://a.example.com/x"]
    assert site.locs(host="b.example.com") == []
    assert site.app.stats()["skipped"] == 1


# The app's own context


@pytest.mark.parametrize("make", [on_flask, on_flask_blueprint, on_flask_below_a_dispatcher, on_flask_in_starlette])
def test_providers_run_in_flasks_app_context_sync_and_async(make: Any) -> None:
    ended = []

    def posts() -> Iterator[Any]:
        assert flask.current_app.name == "site"
        flask.g.slugs = SLUGS
        yield from flask.g.slugs
        ended.append("sync")

    async def async_posts() -> AsyncIterator[Any]:
        assert flask.current_app.name == "site"
        await asyncio.sleep(0)
        yield SLUGS[0]
        assert flask.current_app.name == "site"
        yield SLUGS[1]
        ended.append("async")

    for form in (posts, async_posts, lambda: [{"slug": flask.current_app.name}]):
        site = Site(make(form))
        assert site.locs() in (PAGES, [f"{LOCAL}/posts/site"])
    assert ended == ["sync", "async"]


def test_async_providers_run_in_quarts_app_context() -> None:
    async def posts() -> AsyncIterator[Any]:
        yield {"slug": quart.current_app.name}

    assert Site(on_quart(posts)).locs() == [f"{LOCAL}/posts/site"]


@pytest.mark.parametrize("make", [on_starlette, on_fastapi, on_quart])
def test_async_provider_runs_on_the_apps_loop_and_reads_its_database(make: Any) -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        free: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()

        async def posts() -> AsyncIterator[Any]:
            assert asyncio.get_running_loop() is loop
            database = await free.get()  # a pool's lock is bound to the loop of the app
            try:
                async with asyncio.timeout(60), database.execute("SELECT slug FROM post ORDER BY slug") as cursor:
                    async for row in cursor:
                        yield row
            finally:
                free.put_nowait(database)

        async with aiosqlite.connect(":memory:") as database:
            database.row_factory = aiosqlite.Row
            await database.execute("CREATE TABLE post (slug TEXT)")
            await database.executemany("INSERT INTO post VALUES (?)", [(f"{number:04}",) for number in range(2500)])
            site = SitemapMiddleware(make(posts), store="memory://", clock=Clock(NOW), verify=False)
            waiting = asyncio.create_task(asgi_async(site, RequestSpec("/sitemap.xml")))
            await asyncio.sleep(0)
            free.put_nowait(database)
            answer = await waiting
            assert free.qsize() == 1
            return list(entries(answer.body))

    assert asyncio.run(main()) == [f"{LOCAL}/posts/{number:04}" for number in range(2500)]


def test_busy_provider_lets_the_apps_loop_run() -> None:
    async def main() -> int:
        since_beat = most = 0

        async def posts() -> AsyncIterator[Any]:
            nonlocal since_beat, most
            for _ in range(20_000):
                since_beat += 1
                most = max(most, since_beat)
                yield {"slug": "a"}

        async def beat() -> None:
            nonlocal since_beat
            while True:
                since_beat = 0
                await asyncio.sleep(0)

        site = SitemapMiddleware(on_starlette(posts), store="memory://", clock=Clock(NOW), verify=False)
        beating = asyncio.create_task(beat())
        await asgi_async(site, RequestSpec("/sitemap.xml"))
        beating.cancel()
        return most

    assert 0 < asyncio.run(main()) <= MAX_BATCH_ITEMS


# Failures

FAILS = "the sitemap shows the last good pages, or none: the values of @sitemap on "
LAST_GOOD = [f"{LOCAL}/posts/good"]


class Fickle:
    """A provider that is well at first, then fails in one way, then is well again."""

    def __init__(self, fail: Callable[[threading.Event], Any]) -> None:
        self.fail = fail
        self.failing = False
        self.asked = 0
        self.release = threading.Event()

    def __call__(self) -> Any:
        self.asked += 1
        return self.fail(self.release) if self.failing else [{"slug": "good"}]


def raises(_: Any) -> Any:
    raise RuntimeError("the database is down")


def raises_half_way(_: Any) -> Iterator[Any]:
    yield {"slug": "half"}
    raise RuntimeError("the database is down")


def ends_with_an_exit(_: Any) -> Iterator[Any]:
    yield {"slug": "half"}
    raise SystemExit(1)


def gives_nothing_to_iterate(_: Any) -> Any:
    return None


def makes_a_bad_entry(_: Any) -> Iterator[Any]:
    yield Entry({"slug": "half"}, priority=7)


async def raises_async(_: Any) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    raise RuntimeError("the database is down")


async def exits_async(_: Any) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    raise SystemExit(1)


async def is_cancelled_async(_: Any) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    raise asyncio.CancelledError


async def gives_nothing_to_iterate_async(_: Any) -> Any:
    return None


def hangs_at_once(release: threading.Event) -> Any:
    release.wait(60)
    return []


def hangs_half_way(release: threading.Event) -> Iterator[Any]:
    yield {"slug": "half"}
    release.wait(60)
    yield {"slug": "late"}


async def hangs_async(release: threading.Event) -> AsyncIterator[Any]:
    yield {"slug": "half"}
    while not release.is_set():  # noqa: ASYNC110 (it is set by another thread)
        await asyncio.sleep(0.001)


def never_ends(_: Any) -> Iterator[Any]:
    number = 0
    while True:
        number += 1
        yield {"slug": f"{number}"}


async def never_ends_async(_: Any) -> AsyncIterator[Any]:
    for item in never_ends(None):
        yield item


RAISING = [
    raises,
    raises_half_way,
    ends_with_an_exit,
    gives_nothing_to_iterate,
    makes_a_bad_entry,
    raises_async,
    exits_async,
    is_cancelled_async,
    gives_nothing_to_iterate_async,
]
HANGING = [hangs_at_once, hangs_half_way, hangs_async, never_ends, never_ends_async]


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "ITEM_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(providers, "MAX_PROVIDER_ITEMS", 2000)


def recover(site: Site, provider: Fickle) -> None:
    """The provider works again, what it left hanging ends, and the sitemap is whole."""
    provider.failing = False
    provider.release.set()
    join_threads("sitemap_middleware-values", 10)
    site.clock.pass_(61)
    assert site.locs() == LAST_GOOD


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("make", [on_flask, on_quart, on_starlette])
@pytest.mark.parametrize("fail", [*RAISING, *HANGING])
def test_a_provider_that_fails_leaves_the_last_good_document_up(
    make: Any, fail: Any, caplog: pytest.LogCaptureFixture
) -> None:
    provider = Fickle(fail)
    site = Site(make(provider), max_age=10)
    first = site.sitemap()
    provider.failing = True
    for _ in range(3):
        site.clock.pass_(11)
        again = site.sitemap()
        assert (again.status, again.body, again.header("etag")) == (200, first.body, first.header("etag"))
    assert [FAILS in record.getMessage() for record in caplog.records] == [True]
    assert provider.asked == (4 if fail in RAISING else 2)  # one that hung is not asked again for a while
    explanation = site.app.explain("/posts/half")
    assert not explanation.listed
    assert " failed: " in explanation.reason
    recover(site, provider)
    assert caplog.records[-1].getMessage() == "the sitemap's values can be read again"
    assert len(caplog.records) == 2


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("make", [on_flask, on_quart, on_starlette])
@pytest.mark.parametrize("fail", [*RAISING, *HANGING])
def test_provider_that_fails_before_the_first_document_gives_503(make: Any, fail: Any) -> None:
    provider = Fickle(fail)
    provider.failing = True
    site = Site(make(provider))
    answer = site.sitemap()
    assert (answer.status, answer.header("retry-after")) == (503, "60")
    assert "the values of a route fail, and the log says why" in answer.text
    explanation = site.app.explain("/elsewhere")
    assert str(explanation).startswith("note: the sitemap itself was answered with 503 at its latest request: ")
    recover(site, provider)
    assert site.app.explain("/elsewhere").note is None


def two_on_flask(first: Any, second: Any) -> Any:
    app = on_flask(first)
    app.add_url_rule("/about", "about", text(None))
    app.add_url_rule("/shops/<slug>", "shop", text(second))
    return app


def two_on_starlette(first: Any, second: Any) -> Any:
    routes = [Route("/posts/{slug}", a_view(first)), Route("/shops/{slug}", a_view(second))]
    return Starlette(routes=[*routes, Route("/about", a_view(None))])


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("make", [two_on_flask, two_on_starlette])
@pytest.mark.parametrize("fail", [raises, raises_half_way, ends_with_an_exit, raises_async, hangs_at_once, never_ends])
def test_a_failing_provider_costs_its_own_pages_only(make: Any, fail: Any, caplog: pytest.LogCaptureFixture) -> None:
    provider = Fickle(fail)
    provider.failing = True
    site = Site(make(provider, ["one"]), max_age=10, verify=True)
    others = [f"{LOCAL}/about", f"{LOCAL}/shops/one"]
    for _ in range(3):
        assert sorted(site.locs()) == others
        assert "/sitemap.xml" in site.request("/robots.txt").text
        site.clock.pass_(11)
    assert [FAILS in message for message in caplog.messages] == [True]
    assert " failed: " in site.app.explain("/posts/good").reason
    assert str(site.app.explain("/about").note).startswith(
        "the sitemap has the last good pages, or none, of what fails"
    )
    provider.failing = False
    provider.release.set()
    join_threads("sitemap_middleware-values", 10)
    site.clock.pass_(61)
    assert sorted(site.locs()) == [others[0], *LAST_GOOD, others[1]]
    assert site.app.explain("/about").note is None
    provider.failing = True
    provider.release.clear()
    site.clock.pass_(61)
    assert sorted(site.locs()) == [others[0], *LAST_GOOD, others[1]]
    provider.release.set()


@pytest.mark.usefixtures("_hasty")
def test_hanging_thread_is_left_alone_and_never_doubled() -> None:
    provider = Fickle(hangs_half_way)
    provider.failing = True
    site = Site(on_flask(provider))
    for _ in range(3):
        assert site.sitemap().status == 503
        site.clock.pass_(1000)
    assert provider.asked == 1
    assert "has not returned" in site.app.explain("/posts/x").reason
    provider.release.set()


@pytest.mark.parametrize("make", [on_flask, on_quart, on_starlette])
@pytest.mark.parametrize("fail", HANGING)
def test_closing_app_waits_for_no_provider(make: Any, fail: Any, caplog: pytest.LogCaptureFixture) -> None:
    provider = Fickle(fail)
    provider.failing = True
    site = Site(make(provider))
    answers: list[Answer] = []
    requester = threading.Thread(target=lambda: answers.append(site.sitemap()))
    requester.start()
    _until(lambda: provider.asked == 1)
    began = time.monotonic()
    site.app.close()
    requester.join(8)  # a provider that hangs is waited for longer
    assert time.monotonic() - began < 8
    assert (answers[0].status, answers[0].header("retry-after")) == (503, "60")
    assert not caplog.records
    provider.release.set()


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def test_a_provider_that_takes_too_long_altogether_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(NOW)

    def slow() -> Iterator[Any]:
        for number in range(1000):
            clock.pass_(5)
            yield {"slug": f"{number}"}

    site = Site(on_flask(slow), clock=clock)
    assert site.sitemap().status == 503
    assert "did not end within 3600 seconds" in caplog.text


def test_an_iterator_that_is_used_up_is_no_empty_list() -> None:
    items = [{"slug": "good"}]
    for once in ((post for post in items), iter(items)):
        site = Site(on_flask(lambda once=once: once), max_age=10)
        assert site.locs() == LAST_GOOD
        site.clock.pass_(11)
        if hasattr(once, "close"):  # others bear no weak reference, and would have to be kept to be known again
            assert site.locs() == LAST_GOOD
            assert "is exhausted" in site.app.explain("/posts/good").reason


def test_a_request_that_is_cancelled_ends_its_provider() -> None:
    ended = []

    async def main() -> None:
        started = asyncio.Event()

        async def posts() -> AsyncIterator[Any]:
            try:
                started.set()
                await asyncio.sleep(600)
                yield {"slug": "late"}
            finally:
                ended.append(True)

        async def unused(*_: Any) -> Any:
            raise AssertionError

        site = SitemapMiddleware(on_starlette(posts), store="memory://", clock=Clock(NOW), verify=False)
        scope = {"type": "http", "method": "GET", "path": "/sitemap.xml", "headers": [(b"host", b"testserver")]}
        request = asyncio.create_task(site(scope, unused, unused))
        await started.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(main())
    assert ended == [True]


def test_requests_during_generation_get_the_last_sitemap_or_retry_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publisher, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(publisher, "FIRST_WAIT_SECONDS", 0.01)
    started, release = threading.Event(), threading.Event()
    items = [{"slug": "good"}]

    def posts() -> Iterator[Any]:
        started.set()
        release.wait(30)
        yield from items

    site = Site(on_flask(posts), max_age=10)

    def remade_while(look: Callable[[], Any]) -> Any:
        started.clear()
        release.clear()
        maker = threading.Thread(target=site.sitemap)
        maker.start()
        assert started.wait(30)
        result = look()
        release.set()
        maker.join(30)
        join_threads("sitemap-background")
        return result

    answer = remade_while(site.sitemap)
    assert (answer.status, answer.header("retry-after")) == (503, "60")
    assert "it is being generated" in answer.text
    assert site.locs() == LAST_GOOD
    items.append({"slug": "new"})
    site.clock.pass_(11)
    assert remade_while(site.locs) == LAST_GOOD
    assert site.locs() == [*LAST_GOOD, f"{LOCAL}/posts/new"]


def test_a_thread_that_nobody_listens_to_any_more_ends() -> None:
    ended = threading.Event()

    def posts() -> Iterator[Any]:
        try:
            for number in range(100_000):
                yield {"slug": f"{number}"}
        finally:
            ended.set()

    site = Site(on_flask(posts))
    service, report = site.app.service, ProviderReport()
    (own,) = service.sites()
    ((provider, routes),) = service.app_routes.reload().providers(own).values()
    pages = service.providers.pages(own, provider, routes, None, report)
    assert next(pages)
    pages.close()
    assert ended.wait(30)


# What is refused

once = generator()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (once, "can be read only once"),
        ([].__iter__(), "can be read only once"),
        (async_generator(), "can be read only once"),
        ("slug", "is a single item"),
        ({"slug": "a"}, "is a single item"),
        (7, "is not iterable"),
        (Entry({"slug": "a"}), "is not iterable"),
        (str.join, "that needs none"),
        (dict.get, "that needs none"),
    ],
)
def test_values_that_cannot_be_are_refused_where_they_are_written(wrong: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        sitemap(values=wrong)(text())
    assert str(raised.value).startswith("@sitemap on text.<locals>.view (")


def test_a_coroutine_is_refused_for_it_can_be_awaited_but_once() -> None:
    coroutine = async_function()
    with pytest.raises(OptionError, match="the function itself without calling it"):
        sitemap(values=coroutine)(text())
    coroutine.close()


def test_values_and_learn_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="values and learn=True exclude each other"):
        sitemap(values=SLUGS, learn=True)(text())


@pytest.mark.parametrize(
    "holder", [flask.Flask("x"), flask.Blueprint("x", "x"), APIRouter(), Starlette(), Mount("/x", Router())]
)
def test_values_on_what_holds_many_routes_are_refused(holder: Any) -> None:
    with pytest.raises(OptionError, match="put them on its view"):
        sitemap(values=SLUGS)(holder)


def test_values_of_a_view_win_over_learning_of_its_blueprint() -> None:
    app, blueprint = flask.Flask("site", static_folder=None), flask.Blueprint("blog", "blog")
    blueprint.add_url_rule("/posts/<slug>", "post", text(SLUGS))
    app.register_blueprint(sitemap(learn=True)(blueprint))
    site = Site(app)
    site.request("/posts/three")
    assert site.locs() == PAGES


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Entry("slug"),
            "Entry: 'slug' is not a mapping of the route's parameters; give one such as Entry({\"slug\"",
        ),
        (lambda: Entry(None), "Entry: None is not a mapping"),
        (
            lambda: Entry(slug="a"),
            "Entry(slug='a'): the route's parameters are one mapping; write Entry({'slug': 'a'})",
        ),
        (Entry, "write Entry({'slug': 'first-post'})"),
        (
            lambda: Entry({"slug": "a"}, dt.date(2024, 5, 1)),
            "only the parameters may be positional; write lastmod=, priority= or changefreq= before the others",
        ),
        (lambda: Entry({"slug": "a"}, lastmod=dt.date.today), "is not a date"),
        (
            lambda: Entry({"slug": "a"}, lastmod=dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=1)))),
            "is outside the calendar in UTC",
        ),
        (lambda: Entry({"slug": "a"}, priority=7), "Entry({'slug': 'a'}): priority=7 is not valid; give"),
        (lambda: Entry({"slug": "a"}, changefreq="often"), "Entry({'slug': 'a'}): changefreq='often' is not valid"),
        (lambda: Entry({"slug": "a"}, lastmodified=1), "no option 'lastmodified'; did you mean lastmod?"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_with_the_cure(make: Any, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        make()
    assert message in str(raised.value)


# For people


@EVERYWHERE
def test_explain_reports_provided_pages_inside_an_event_loop(make: Any) -> None:
    site = Site(make(async_generator))
    explanation = site.app.explain("/posts/one")
    assert explanation.listed
    assert explanation.reason == "the values of its route include it, and no response forbids it"

    async def within() -> bool:
        return site.app.explain("/posts/one").listed

    assert asyncio.run(within())


@EVERYWHERE
def test_explain_does_not_read_values_of_an_excluded_route(make: Any) -> None:
    calls = []

    def posts() -> Iterator[Any]:
        calls.append("posts")
        yield {"slug": "one"}

    explanation = Site(make(posts), exclude="/posts/*").app.explain("/posts/one")
    assert not explanation.listed
    assert explanation.reason == "the option exclude matches it: '/posts/*'"
    assert not calls


@EVERYWHERE
def test_page_from_include_and_values_is_listed_once(make: Any) -> None:
    site = Site(make([{"slug": "one"}, {"slug": "two"}]), include="/posts/one")
    assert sorted(site.locs()) == [f"{LOCAL}/posts/one", f"{LOCAL}/posts/two"]


def test_async_values_without_an_event_loop_fail_like_any_values() -> None:
    handover = BatchQueue()
    with pytest.raises(ValuesError):
        next(collect_on_loop(run_on_loop, nothing, None, handover, 1.0))
    with pytest.raises(ValuesTimeout):
        handover.get(0)


def test_the_survey_counts_what_values_give() -> None:
    app = on_rules(
        ("/posts/<slug>", text([*SLUGS, {}]), {}),
        ("/empty/<slug>", text([]), {}),
        ("/down/<slug>", text(lambda: raises(None)), {}),
        ("/out/<slug>", text(SLUGS, exclude=True), {}),
    )
    core = Site(app).app.service
    reports = {report.route.path: report for report in core.route_report([core.snapshot(core.sites()[0], core.store)])}
    assert reports["/posts/<slug>"].verdict.reason.startswith(
        "values: 2 pages, 2 listed; 1 of 3 items were left out; {}"
    )
    assert reports["/posts/<slug>"].verdict.listed
    assert reports["/empty/<slug>"].verdict.reason == "values: 0 pages, 0 listed"
    assert "RuntimeError: the database is down" in reports["/down/<slug>"].verdict.reason
    assert reports["/out/<slug>"].verdict.reason == "it is marked @sitemap(exclude=True)"
    assert not any(report.undecided for report in reports.values())
