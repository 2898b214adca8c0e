"""`@sitemap(values=...)`: the forms of providers and items, what an item says of its page, and the path by the router."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import functools
import importlib.metadata
import logging
import uuid
from collections import UserDict, namedtuple
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import flask
import pytest
import quart
from fastapi import APIRouter
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.routing import BaseConverter

from sitemap_middleware import Entry, OptionError, sitemap
from sitemap_middleware.protocol.value_checks import parse_date

from ...support.sample_sites import Page, SampleSite
from ...support.stores import all_pages
from ...support.values_sites import (
    LOCAL,
    ValuesSite,
    a_view,
    on_fastapi,
    on_flask,
    on_flask_below_a_dispatcher,
    on_flask_in_starlette,
    on_quart,
    on_rules,
    on_starlette,
    on_starlette_mounted,
    text,
)
from ...support.waiting import until
from ...support.wire import BOTH

ROUTERS = pytest.mark.parametrize("make", [on_flask, on_starlette])
DAY = 24 * 60 * 60
SLUGS: list[Any] = [{"slug": "one"}, {"slug": "zwölf & mehr"}]
PAGES = [f"{LOCAL}/posts/one", f"{LOCAL}/posts/zw%C3%B6lf%20&%20mehr"]


# Forms of providers


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


def one_row_filled_again() -> Iterator[Any]:
    row: dict[str, Any] = {}
    for slug in SLUGS:
        row.update(slug)
        yield row


async def one_object_filled_again() -> AsyncIterator[Any]:
    row = SimpleNamespace()
    for slug in SLUGS:
        row.slug = slug["slug"]
        yield row


FORMS: list[Any] = [
    SLUGS,
    generator,
    Posts(),
    Posts,
    async_generator,
    functools.partial(async_generator),
    async_function,
    async_function_of_a_generator,
    AsyncPosts(),
    AsyncPosts,
    one_row_filled_again,
    one_object_filled_again,
    [*SLUGS, *SLUGS],
]


@pytest.mark.parametrize("make", [on_flask, on_quart, on_starlette])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: getattr(form, "__name__", type(form).__name__))
def test_a_routes_pages_are_enumerated_in_every_form(make: Any, form: Any) -> None:
    assert ValuesSite(make(form)).locs() == PAGES


@pytest.mark.parametrize(
    "make",
    [
        on_flask,
        on_flask_below_a_dispatcher,
        on_quart,
        on_starlette,
        on_starlette_mounted,
        on_fastapi,
        on_flask_in_starlette,
    ],
)
def test_pages_of_mounted_apps_are_explained_and_have_the_root_path_once(make: Any) -> None:
    site = ValuesSite(make(async_generator))
    assert site.locs(root="/shop") == [page.replace("/posts", "/shop/posts") for page in PAGES]
    explanation = site.app.explain("/posts/one")
    assert explanation.listed
    assert explanation.reason == "the values of its route include it, and no response forbids it"

    async def within_an_event_loop() -> bool:
        return site.app.explain("/posts/one").listed

    assert asyncio.run(within_an_event_loop())


@ROUTERS
def test_a_provider_of_nothing_lists_nothing(make: Any) -> None:
    site = ValuesSite(make([]))
    assert site.sitemap().status == 404
    assert site.app.explain("/posts/one").reason == "its route has values, and they do not include it"


# Forms of items

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Kind(enum.Enum):
    BREAD = "bread"


class Topic(str, enum.Enum):  # noqa: UP042 (as most apps have it)
    CAKE = "cake"


class Number(enum.IntEnum):
    SEVEN = 7


@ROUTERS
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("zwölf & mehr", "zw%C3%B6lf%20&%20mehr"),
        (0, "0"),
        (2.5, "2.5"),
        (Decimal("1.10"), "1.10"),
        (UUID, str(UUID)),
        (dt.date(2024, 5, 1), "2024-05-01"),
        (Kind.BREAD, "bread"),
        (Topic.CAKE, "cake"),
        (Number.SEVEN, "7"),
    ],
)
def test_a_bare_value_is_that_of_the_only_parameter(make: Any, value: Any, path: str) -> None:
    assert ValuesSite(make([value])).paths() == ValuesSite(make([{"slug": value}])).paths() == [f"/posts/{path}"]


@dataclass(slots=True)
class Post:
    slug: str
    lang: str = "de"


class Model(BaseModel):
    slug: str
    lang: str = "de"


class Computed:
    lang = "de"

    @property
    def slug(self) -> str:
        return "rye"


class KeyedRow:
    """As rows of sqlite3 and asyncpg are: a mapping in all but type."""

    def __init__(self, **columns: Any) -> None:
        self._columns = columns

    def keys(self) -> list[str]:
        return list(self._columns)

    def __getitem__(self, key: str) -> Any:
        return self._columns[key]


class TupleRow(tuple[Any, ...]):
    """Like SQLAlchemy's rows: a tuple with named fields, some of which a tuple's methods hide."""

    __slots__ = ()

    @property
    def _mapping(self) -> Mapping[str, Any]:
        return dict(zip(("slug", "lang", "count"), self, strict=True))


Named = namedtuple("Named", ["slug", "lang"])  # noqa: PYI024 (as libraries make them)


class Text(str):
    """A text of another class, as template engines and ORMs have them."""

    __slots__ = ()


@ROUTERS
@pytest.mark.parametrize(
    "item",
    [
        {"slug": Text("rye"), "lang": "de"},
        Entry({"slug": "rye", "lang": "de"}),
        KeyedRow(slug="rye", lang="de"),
        Post("rye"),
        Model(slug="rye"),
        Computed(),
        Named("rye", "de"),
        TupleRow(("rye", "de", 3)),
        SimpleNamespace(slug="rye", lang="de", title="Rye"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_an_item_gives_the_parameters_by_name(make: Any, item: Any) -> None:
    assert ValuesSite(make([item], "/<lang>/<slug>")).paths() == ["/de/rye"]


def test_an_object_gives_no_more_than_the_route_needs_and_a_row_no_method_of_a_tuple() -> None:
    for rule, listed in (("/posts/<slug>", ["/posts/rye"]), ("/posts/<count>", ["/posts/3"]), ("/posts/<page>", [])):
        assert ValuesSite(on_flask([TupleRow(("rye", "de", 3))], rule)).paths() == listed


# What an item says of its page


@BOTH
def test_entry_wins_over_decorator_and_decorator_over_options(protocol: str) -> None:
    items = [
        Entry({"slug": "a"}, lastmod=dt.date(2024, 5, 1), priority=0.1, changefreq="daily"),
        Entry({"slug": "b"}, lastmod=dt.datetime(2024, 5, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        {"slug": "c"},
    ]
    mark = sitemap(values=items, priority=0.2, lastmod=lambda: dt.date(2023, 1, 1))
    site = SampleSite(protocol, {"/posts/{slug}": Page()}, marks={"/posts/{slug}": mark}, changefreq="yearly")
    assert site.entries() == {
        f"{LOCAL}/posts/a": {"lastmod": "2024-05-01", "changefreq": "daily", "priority": "0.1"},
        f"{LOCAL}/posts/b": {"lastmod": "2024-05-01T10:00:00Z", "changefreq": "yearly", "priority": "0.2"},
        f"{LOCAL}/posts/c": {"lastmod": "2023-01-01", "changefreq": "yearly", "priority": "0.2"},
    }


@ROUTERS
@pytest.mark.parametrize(
    "convert", [lambda fields: SimpleNamespace(**fields), dict, UserDict], ids=["object", "dict", "mapping"]
)
def test_an_object_and_a_mapping_may_have_the_fields_of_an_entry(make: Any, convert: Any) -> None:
    given: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
        "a": (
            {"lastmod": "2024-05-01T10:00:00Z", "priority": 0.8, "changefreq": "weekly"},
            {"lastmod": "2024-05-01T10:00:00Z", "priority": "0.8", "changefreq": "weekly"},
        ),
        "b": (
            {"lastmod": dt.date(2024, 5, 2), "priority": Decimal("0.3")},
            {"lastmod": "2024-05-02", "priority": "0.3"},
        ),
        "c": ({"lastmod": None, "priority": None, "changefreq": None}, {}),
        "d": ({"lastmod": "2024-05-01", "priority": 7.5}, {"lastmod": "2024-05-01"}),
        "e": ({"priority": 1}, {}),  # the priority of a ticket, rather than that of its page
        "f": ({"priority": "high", "changefreq": 30}, {}),
        "g": ({"changefreq": "often"}, {}),
    }
    found = ValuesSite(make([convert({"slug": slug, **fields}) for slug, (fields, _) in given.items()])).entries()
    assert found == {f"{LOCAL}/posts/{slug}": written for slug, (_, written) in given.items()}


@ROUTERS
def test_a_parameter_may_be_named_like_a_field_of_an_entry(make: Any) -> None:
    items = [SimpleNamespace(priority="high"), {"priority": "low"}, {"priority": "none", "lastmod": "2024-05-01"}]
    assert ValuesSite(make(items, "/tickets/<priority>")).entries() == {
        f"{LOCAL}/tickets/high": {},
        f"{LOCAL}/tickets/low": {},
        f"{LOCAL}/tickets/none": {"lastmod": "2024-05-01"},
    }


class Detached:
    """A database row whose session is closed."""

    slug = "detached"

    @property
    def lastmod(self) -> dt.date:
        raise RuntimeError("detached")


class NotATime(dt.datetime):
    """Like pandas.NaT: a datetime by its class only."""

    def __new__(cls) -> Self:
        return super().__new__(cls, 1, 1, 1)

    def astimezone(self, _zone: Any = None) -> Any:
        raise ValueError("NaT")


@ROUTERS
def test_a_date_that_is_none_leaves_the_page_listed_and_is_reported_once(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    items = [
        Entry({"slug": "a"}, lastmod="May 2024"),
        {"slug": "b", "lastmod": "", "priority": 0.8},
        SimpleNamespace(slug="c", lastmod=20240501),
        {"slug": "d", "lastmod": NotATime()},
        Detached(),
        Entry({"slug": "e"}, lastmod="2024-05-01"),
    ]
    site = ValuesSite(make(items), max_age=0)
    for _ in range(2):
        assert {loc.rpartition("/")[2]: fields for loc, fields in site.entries().items()} == {
            "a": {},
            "b": {"priority": "0.8"},
            "c": {},
            "d": {},
            "detached": {},
            "e": {"lastmod": "2024-05-01"},
        }
    (warning,) = [record.getMessage() for record in caplog.records if "is not a date" in record.getMessage()]
    source = 'its values give \'May 2024\', which is not a date; write it as "2024-05-01" or "2024-05-01T10:00:00Z"'
    assert warning == f"{LOCAL}/posts/a has no lastmod: {source}"
    explanation = site.app.explain("/posts/a")
    assert explanation.lastmod_source == f"it has no date, and no change of its content was observed; {source}"
    assert (explanation.skipped, site.app.stats()["skipped"]) == ((), 0)


# Items that make no page


class Unkeyed:
    def keys(self) -> list[str]:
        raise RuntimeError("no")


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Unbound:
    """Like werkzeug's LocalProxy out of its context: whatever is asked raises."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("out of context")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Unconvertible:
    def __str__(self) -> str:
        raise Unprintable


HOSTILE: list[tuple[Any, str]] = [
    (None, "None is not a text, a number or a similar value; give a mapping such as {'slug': ...}"),
    (b"slug", "b'slug' is not a text"),
    (("slug", "a"), "it is of type tuple, which does not say what is its slug; give a mapping such as {'slug': ...}"),
    (Unkeyed(), "it is of type Unkeyed, and has no value slug that can be read"),
    (Hostile(), "it is of type Hostile, and has no value slug that can be read (RuntimeError)"),
    (Unbound(), "Unbound(): it is of type Unbound, and has no value slug that can be read (RuntimeError); the route"),
    (SimpleNamespace(slug=lambda: "a"), "of type SimpleNamespace, and has no value slug that can be read"),
    (SimpleNamespace(id=1), "and has no value slug that can be read (AttributeError); the route's parameters: slug (/"),
    (object(), "object(): it is of type object, and has no value slug that can be read"),
    ({}, "slug is missing"),
    (Entry({}), "Entry({}): the route's slug is missing"),
    (
        {"slug": "b", "lastmod": "2024-05-01", "titel": "B"},
        "the route has no parameter titel: select only its parameters, lastmod, priority",
    ),
    ({"slug": ""}, ""),
    ({"slug": "a/b"}, ""),
    ({"slug": ".."}, "no loc can be written"),
    ({"slug": "\x00"}, "no loc can be written"),
    ({"slug": "x" * 3000}, "2,048 characters"),
    ({"slug": Unconvertible()}, "Unprintable"),
]


@ROUTERS
@pytest.mark.parametrize(
    ("item", "reason"), HOSTILE, ids=lambda value: "None" if value is None else repr(type(value))[8:-2]
)
def test_an_item_that_makes_no_page_is_skipped_counted_and_named(
    make: Any, item: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = ValuesSite(make([SLUGS[0], item, SLUGS[1]]))
    assert site.locs() == PAGES
    assert site.app.stats()["skipped"] == 1
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "1 of 3 items were left out" in warning
    assert reason in warning
    explanation = site.app.explain("/posts/one")
    assert explanation.listed
    assert explanation.skipped[0] == "1 of 3 items were left out"
    assert reason in explanation.skipped[1]
    assert "values: 1 of 3 items were left out" in str(explanation)


@ROUTERS
def test_one_value_does_not_tell_two_parameters(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert ValuesSite(make(["rye"], "/<lang>/<slug>")).locs() == []
    assert (
        "it is one value, and the route has 2 parameters (lang, slug); give a mapping such as {'lang': ..., 'slug'"
        in (caplog.text)
    )


def test_the_first_skipped_item_of_each_reason_is_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    site = ValuesSite(on_flask([*SLUGS, *({"id": number} for number in range(9))]), max_age=0)
    for _ in range(2):
        assert site.locs() == PAGES
        site.clock.pass_(1)
    assert site.app.stats()["skipped"] == 9
    assert len(caplog.records) == 1
    assert "9 of 11 items were left out; {'id': 0}: the route's slug is missing" in caplog.text
    assert len(site.app.explain("/posts/x").skipped) == 2, "an item for each reason"


@pytest.mark.slow
@ROUTERS
@given(params=st.dictionaries(st.sampled_from(["slug", "other", ""]), st.text(max_size=6), max_size=2))
def test_any_text_is_skipped_or_leads_back_to_its_route(make: Any, params: dict[str, str]) -> None:
    site = ValuesSite(make([params]))
    locs = site.locs()
    assert len(locs) + site.app.stats()["skipped"] == 1
    for loc in locs:
        path = unquote(urlsplit(loc).path)
        assert path == f"/posts/{params['slug']}"
        assert site.request(path).text == "A post."


# Values, and what else decides about a page

UNFIT = [
    Page(410),
    Page(301, [("location", "/elsewhere")]),
    Page().with_headers(("x-robots-tag", "noindex")),
    Page(body=b"<!doctype html><meta name=robots content=noindex><p>A page."),
    Page(200, [("content-type", "application/json")]),
]


@BOTH
@pytest.mark.parametrize("page", UNFIT, ids=lambda page: f"{page.status} {page.headers[-1][1]}")
def test_gone_or_noindex_page_is_left_out_until_it_recovers(protocol: str, page: Page) -> None:
    pages = {"/": Page(), "/posts/{slug}": page}
    site = SampleSite(protocol, pages, marks={"/posts/{slug}": sitemap(values=SLUGS)})
    assert site.locs() == [f"{LOCAL}/", *PAGES]
    for _ in range(3):  # learned pages that are not listed are forgotten within days; these are not learned
        site.clock.pass_(DAY)
        site.visit("/", "/posts/one")
        assert site.locs() == [f"{LOCAL}/", PAGES[1]]
    assert not site.app.explain("/posts/one").listed
    site.pages["/posts/{slug}"] = Page()
    for _ in range(2):
        site.clock.pass_(DAY)
        site.visit("/posts/one")
    assert site.locs() == [f"{LOCAL}/", *PAGES]


@pytest.mark.parametrize("page", UNFIT[:2], ids=["410", "301"])
def test_page_that_recovers_unseen_is_requested_again_after_an_hour_or_a_refresh(page: Page) -> None:
    pages = {"/": Page(), "/posts/{slug}": page}
    site = SampleSite("wsgi", pages, marks={"/posts/{slug}": sitemap(values=SLUGS)}, verify=True)
    site.visit("/", "/posts/one")
    assert site.locs() == [f"{LOCAL}/", PAGES[1]]
    for answer, seconds, found in ((Page(), 1800, PAGES[1:]), (Page(), 1801, PAGES), (page, 60, PAGES[1:])):
        pages["/posts/{slug}"] = answer
        site.clock.pass_(seconds)
        if answer is page:
            site.visit("/posts/one")
        until(lambda found=found: site.locs() == [f"{LOCAL}/", *found])  # type: ignore[misc]
    pages["/posts/{slug}"] = Page()
    site.app.refresh()
    until(lambda: site.locs() == [f"{LOCAL}/", *PAGES])


def test_pages_that_may_not_be_requested_do_not_keep_others_from_being_asked_again() -> None:
    slugs = [*(f"draft-{number}" for number in range(30)), "real"]
    pages, marks = {"/": Page(), "/posts/{slug}": Page(410)}, {"/posts/{slug}": sitemap(values=slugs)}
    site = SampleSite("wsgi", pages, marks=marks, verify=True, exclude="/posts/draft-*")
    site.visit("/", *(f"/posts/{slug}" for slug in slugs))
    assert site.locs() == [f"{LOCAL}/"]
    pages["/posts/{slug}"] = Page()
    site.clock.pass_(3601)
    until(lambda: site.locs() == [f"{LOCAL}/", f"{LOCAL}/posts/real"])


@BOTH
def test_a_page_that_is_not_enumerated_is_never_listed_and_leaves_no_trace(protocol: str) -> None:
    marks = {"/posts/{slug}": sitemap(values=SLUGS)}
    for options in ({}, {"learn": "/posts/*"}, {"learn": "/posts/{slug}"}, {"learn": "/posts/<slug>"}):
        site = SampleSite(protocol, {"/posts/{slug}": Page()}, marks=marks, **options)
        site.visit("/posts/three")
        assert site.locs() == PAGES
        assert site.app.explain("/posts/three").reason == "its route has values, and they do not include it"
        site.pages["/posts/{slug}"] = Page(404)
        site.visit("/posts/made-up", "/posts/one")
        known = {page.path: page.learned for page in all_pages(site.app.service.store, "loopback:http/")}
        assert "/posts/made-up" not in known
        assert known["/posts/one"] is False, "it is not learned"


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
    for mark, options in (({"exclude": True}, {}), ({}, {"exclude": "/posts/*"})):
        site = SampleSite(
            protocol, pages, marks={"/posts/{slug}": sitemap(values=posts, **mark)}, robots=False, **options
        )
        assert site.locs() == [f"{LOCAL}/"]
        assert "exclude" in site.app.explain("/posts/one").reason
        assert not calls


def test_static_routes_of_a_provider_come_where_it_gives_them_or_last() -> None:
    numbers = [{"page": 2}, Entry({"page": 1}, priority=0.9), {"page": 3}]
    for items, found in ((numbers, ["/p/2", "/", "/p/3"]), ([{"page": 2}], ["/p/2", "/"])):
        view = text(items)
        more: dict[str, Any] = {"endpoint": "posts"}
        app = on_rules(
            ("/", view, {**more, "defaults": {"page": 1}}), ("/p/<int:page>", view, more), ("/p/4", text(), {})
        )
        site = ValuesSite(app)
        assert site.paths() == ["/p/4", *found]
        assert site.entries().get(f"{LOCAL}/") == ({"priority": "0.9"} if items is numbers else {})


# Building by the framework's own router


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


@pytest.mark.parametrize("framework", [flask, quart])
def test_a_converter_that_fails_holds_up_no_other_page(framework: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = with_known(framework, b="A post.")
    site = ValuesSite(app)
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
    add("/any/<any(a, b):x>", "a", "c")
    add("/length/<string(length=2):x>", "ab", "abc" if WERKZEUG >= (2, 2, 3) else "")  # before, it took "abc"
    add("/uuid/<uuid:x>", str(UUID), "1")
    add("/lower/<lower:x>", "Hello World")
    add("/below/<below:x>", "a/b", "a")
    add("/sub<path:x>/", "/a", "a/b")
    languages = [{"x": "a", "lang": "en"}, {"x": "b", "lang": "de"}, {"x": "c"}]
    app.add_url_rule("/default/<x>", "default", text(languages), defaults={"lang": "en"})
    site = ValuesSite(app)
    found = "/any/a /below/a/b /default/a /default/c /int/1 /int/7 /int/8 /length/ab /lower/hello-world /suba/b/"
    assert sorted(site.paths()) == [*found.split(), f"/uuid/{UUID}"]
    site.request("/below/a/b")
    assert site.app.explain("/below/a/b").page is not None


def test_starlettes_convertors_build_and_refuse() -> None:
    items = {
        "/int/{x:int}": (7, "8", -1, "nine"),
        "/float/{x:float}": (1.5,),
        "/uuid/{x:uuid}": (str(UUID), "1"),
        "/path/{x:path}": ("a/b", ""),
    }
    routes = [Route(path, a_view([{"x": item} for item in given])) for path, given in items.items()]
    found = f"/float/1.5 /int/7 /int/8 /path/ /path/a/b /uuid/{UUID}"
    assert sorted(ValuesSite(Starlette(routes=routes)).paths()) == found.split()


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
        site = ValuesSite(app)
        assert sorted(site.paths()) == ["/posts/2024/b", "/posts/a"]
        assert site.app.stats()["skipped"] == 1
        assert len(calls) == 1
        calls.clear()


def test_path_taken_by_an_earlier_route_is_left_out() -> None:
    posts = [{"slug": slug} for slug in ("new", "7", "about")]
    view, plain = a_view(posts), a_view()
    earlier = [Route("/posts/{id:int}", plain), Route("/posts/new", plain)]
    apps = [
        on_rules(("/posts/new", text(), {}), ("/posts/<int:id>", text(), {}), ("/posts/<slug>", text(posts), {})),
        Starlette(routes=[*earlier, Route("/posts/{slug}", view)]),
        Starlette(routes=[*earlier, Mount("/posts", Router([Route("/{slug}", view)]))]),
    ]
    for app in apps:
        site = ValuesSite(app)
        assert "/posts/about" in site.paths()
        assert site.app.stats()["skipped"] == 2
        assert site.app.explain("/posts/7").reason.startswith("its route /posts/")


def test_a_path_that_another_app_takes_is_no_page_of_this_one() -> None:
    pages = [{"page": "api/x"}, {"page": "x"}]
    outer, inner = on_rules(("/<path:page>", text(pages), {})), flask.Flask("inner", static_folder=None)
    for app in (
        DispatcherMiddleware(outer, {"/api": inner}),
        Starlette(routes=[Mount("/api", Router()), Route("/{page:path}", a_view(pages))]),
    ):
        site = ValuesSite(app)
        assert site.paths() == ["/x"]
        site.request("/api/x")
        site.request("/x")
        assert site.known() == ["/x"]


# What is refused where it is written


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (generator(), "can be read only once"),
        (async_generator(), "can be read only once"),
        ({"slug": "a"}, "is a single item"),
        (7, "is not iterable"),
        (dict.get, "that needs none"),
    ],
)
def test_values_that_cannot_be_are_refused_where_they_are_written(wrong: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        sitemap(values=wrong)(lambda: "")
    assert str(raised.value).startswith("@sitemap on test_values_that_cannot_be_are_refused_where_they_are_written.")


def test_a_coroutine_is_refused_for_it_can_be_awaited_but_once() -> None:
    coroutine = async_function()
    with pytest.raises(OptionError, match="the function itself without calling it"):
        sitemap(values=coroutine)(text())
    coroutine.close()


@pytest.mark.parametrize(
    "holder", [flask.Flask("x"), flask.Blueprint("x", "x"), APIRouter(), Starlette(), Mount("/x", Router())]
)
def test_values_on_what_holds_many_routes_are_refused(holder: Any) -> None:
    with pytest.raises(OptionError, match="put them on its view"):
        sitemap(values=SLUGS)(holder)


def test_values_on_a_route_without_parameters_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    both = sitemap(values=["rye"])(lambda slug="": slug)
    app = on_rules(("/", text(["a"]), {}), ("/posts/", both, {"endpoint": "p"}), ("/posts/<slug>", both, {}))
    site = ValuesSite(app)
    for _ in range(2):
        assert sorted(site.paths()) == ["/", "/posts/", "/posts/rye"]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "its values are not used, because / has no parameters; leave them out" in warning


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Entry("slug"),
            "Entry: 'slug' is not a mapping of the route's parameters; give one such as Entry({\"slug\"",
        ),
        (
            lambda: Entry(slug="a"),
            "Entry(slug='a'): the route's parameters are one mapping; write Entry({'slug': 'a'})",
        ),
        (Entry, "write Entry({'slug': 'first-post'})"),
        (lambda: Entry({"slug": "a"}, lastmod=dt.date.today), "is not a date"),
        (lambda: Entry({"slug": "a"}, lastmod=NotATime()), "is not a date"),
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


NINE = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        (" 2024-05-01\n", dt.date(2024, 5, 1)),
        ("2024-05-01t10:00:00z", dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)),
        ("2024-05-01 10:00:30.125", dt.datetime(2024, 5, 1, 10, 0, 30, 125_000)),  # noqa: DTZ001 (likewise)
        ("2024-05-01 10:00:00 +0900", dt.datetime(2024, 5, 1, 10, tzinfo=NINE)),
        ("yesterday", None),
        ("2024-02-30", None),
        ("٢٠٢٤-05-01", None),
    ],
)
def test_a_date_may_be_its_text_in_iso_8601(written: str, moment: dt.date | None) -> None:
    assert parse_date(written) == moment
    assert type(parse_date(written)) is type(moment)
    if moment is None:
        with pytest.raises(OptionError, match='is not a date; write it as "2024-05-01"') as raised:
            sitemap(lastmod=written)(lambda: "")
        assert repr(written) in str(raised.value)
        assert Entry({"slug": "rye"}, lastmod=written).unusable_lastmod == written
    else:
        assert Entry({"slug": "rye"}, lastmod=written) == Entry({"slug": "rye"}, lastmod=moment)
