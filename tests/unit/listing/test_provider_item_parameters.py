"""The forms in which `values` may give a page, and dates as text: what is taken, and what is refused with the reason."""

from __future__ import annotations

import datetime as dt
import enum
import logging
import uuid
from collections import UserDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Self

import flask
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

import sitemap_middleware
from sitemap_middleware import Entry, OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.options.value_checks import parse_date

from ...support.documents import entries
from ...support.wire import RequestSpec, asgi, wsgi

LOCAL = "http://localhost"


def on_flask(values: Any, path: str) -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule(path, "page", sitemap(values=values)(lambda **_: "page"))
    return lambda site: wsgi(site, RequestSpec("/sitemap.xml", host="localhost")), app


def on_fastapi(values: Any, path: str) -> Any:
    app = FastAPI(openapi_url=None)

    @app.get(path.replace("<", "{").replace(">", "}"), response_class=HTMLResponse)
    @sitemap(values=values)
    def page() -> str:
        return "page"

    return lambda site: asgi(site, RequestSpec("/sitemap.xml", host="localhost")), app


EVERYWHERE = pytest.mark.parametrize("make", [on_flask, on_fastapi])


def listed(make: Any, values: Any, path: str = "/posts/<slug>") -> list[str]:
    send_request, app = make(values, path)
    site = SitemapMiddleware(app, store="memory://", verify=False)
    answer = send_request(site)
    return [] if answer.status == 404 else [loc.removeprefix(LOCAL) for loc in entries(answer.body)]


class Kind(enum.Enum):
    BREAD = "bread"


class Topic(str, enum.Enum):  # noqa: UP042 (as most apps have it)
    CAKE = "cake"


class Number(enum.IntEnum):
    SEVEN = 7


UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@EVERYWHERE
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("rye", "rye"),
        ("zwölf & mehr", "zw%C3%B6lf%20&%20mehr"),
        (7, "7"),
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
@pytest.mark.parametrize("convert", [lambda value: value, lambda value: {"slug": value}], ids=["bare", "in a mapping"])
def test_a_bare_value_is_that_of_the_only_parameter(
    make: Any, value: Any, path: str, convert: Callable[[Any], Any]
) -> None:
    assert listed(make, [convert(value)]) == [f"/posts/{path}"]


@EVERYWHERE
def test_bare_values_may_come_from_sets_keys_and_enums(make: Any) -> None:
    assert listed(make, {"rye"}) == ["/posts/rye"]
    assert listed(make, {"rye": 1}.keys()) == ["/posts/rye"]
    assert listed(make, Kind) == ["/posts/bread"]


@dataclass
class Post:
    slug: str
    lang: str = "de"
    lastmod: str = "2024-05-01"


@dataclass(slots=True)
class Slotted:
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


class Row(tuple[Any, ...]):
    """Like SQLAlchemy's rows: a tuple with named fields, some of which a tuple's methods hide."""

    __slots__ = ()

    @property
    def _mapping(self) -> Mapping[str, Any]:
        return dict(zip(("slug", "lang", "count"), self, strict=True))


Named = namedtuple("Named", ["slug", "lang"])  # noqa: PYI024 (as libraries make them)


@EVERYWHERE
@pytest.mark.parametrize(
    "item",
    [
        Post("rye"),
        Slotted("rye"),
        Model(slug="rye"),
        Computed(),
        Named("rye", "de"),
        Row(("rye", "de", 3)),
        SimpleNamespace(slug="rye", lang="de", title="Rye"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_an_object_gives_the_attributes_named_like_the_parameters(make: Any, item: Any) -> None:
    assert listed(make, [item], "/<lang>/<slug>") == ["/de/rye"]
    assert listed(make, [item]) == ["/posts/rye"]


@EVERYWHERE
def test_row_is_read_by_column_names_and_not_by_tuple_methods(make: Any) -> None:
    assert listed(make, [Row(("rye", "de", 3))], "/posts/<count>") == ["/posts/3"]
    assert listed(make, [Row(("rye", "de", 3))], "/posts/<page>") == []


def rendered(make: Any, values: Any, path: str = "/posts/<slug>") -> dict[str, dict[str, str]]:
    send_request, app = make(values, path)
    site = SitemapMiddleware(app, store="memory://", verify=False)
    return {loc.removeprefix(LOCAL): fields for loc, fields in entries(send_request(site).body).items()}


@EVERYWHERE
@pytest.mark.parametrize(
    "convert",
    [lambda fields: SimpleNamespace(**fields), lambda fields: fields, UserDict],
    ids=["object", "dict", "mapping"],
)
def test_an_object_and_a_mapping_may_have_the_fields_of_an_entry(make: Any, convert: Any) -> None:
    given = [
        {"slug": "a", "lastmod": "2024-05-01T10:00:00Z", "priority": 0.8, "changefreq": "weekly"},
        {"slug": "b", "lastmod": dt.date(2024, 5, 2), "priority": Decimal("0.3")},
        {"slug": "c", "lastmod": None, "priority": None, "changefreq": None},
        {"slug": "d"},
        {"slug": "e", "lastmod": "2024-05-01", "priority": 7.5},
    ]
    assert rendered(make, [convert(fields) for fields in given]) == {
        "/posts/a": {"lastmod": "2024-05-01T10:00:00Z", "priority": "0.8", "changefreq": "weekly"},
        "/posts/b": {"lastmod": "2024-05-02", "priority": "0.3"},
        "/posts/c": {},
        "/posts/d": {},
        "/posts/e": {"lastmod": "2024-05-01"},
    }


@EVERYWHERE
@pytest.mark.parametrize("convert", [lambda fields: SimpleNamespace(**fields), dict], ids=["object", "mapping"])
@pytest.mark.parametrize(
    "field",
    [
        {"priority": 1},  # the priority of a ticket, rather than that of its page
        {"priority": "high"},
        {"priority": 7.5},
        {"changefreq": 30},
        {"changefreq": "often"},
    ],
    ids=repr,
)
def test_a_field_of_another_meaning_is_not_used(make: Any, convert: Any, field: dict[str, Any]) -> None:
    assert rendered(make, [convert({"slug": "a", **field})]) == {"/posts/a": {}}


@EVERYWHERE
def test_only_the_attribute_lastmod_of_an_object_dates_its_page(make: Any) -> None:
    items = [
        SimpleNamespace(slug="a", updated_at=dt.date(2024, 5, 1)),
        SimpleNamespace(slug="b", lastmod=dt.date.today),
    ]
    assert rendered(make, items) == {"/posts/a": {}, "/posts/b": {}}


@EVERYWHERE
def test_a_parameter_may_be_named_like_a_field_of_an_entry(make: Any) -> None:
    items = [SimpleNamespace(priority="high"), {"priority": "low"}, {"priority": "none", "lastmod": "2024-05-01"}]
    assert rendered(make, items, "/tickets/<priority>") == {
        "/tickets/high": {},
        "/tickets/low": {},
        "/tickets/none": {"lastmod": "2024-05-01"},
    }


@EVERYWHERE
def test_a_mapping_with_another_key_is_skipped_although_it_has_fields_of_an_entry(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert rendered(make, [{"slug": "a"}, {"slug": "b", "lastmod": "2024-05-01", "titel": "B"}]) == {"/posts/a": {}}
    assert "the route has no parameter titel (/posts/" in caplog.text


class Detached:
    """A database row whose session is closed."""

    slug = "detached"

    @property
    def lastmod(self) -> dt.date:
        raise RuntimeError("detached")


@EVERYWHERE
def test_a_date_that_is_none_leaves_the_page_listed_and_is_reported_once(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    items = [
        Entry({"slug": "a"}, lastmod="May 2024"),
        Entry({"slug": "b"}, lastmod="2024-02-30"),
        {"slug": "c", "lastmod": "", "priority": 0.8},
        SimpleNamespace(slug="d", lastmod=20240501),
        Detached(),
        Entry({"slug": "e"}, lastmod="2024-05-01"),
    ]
    send_request, app = make(items, "/posts/<slug>")
    site = SitemapMiddleware(app, store="memory://", verify=False, base_url=LOCAL)
    assert {loc.rpartition("/")[2]: fields for loc, fields in entries(send_request(site).body).items()} == {
        "a": {},
        "b": {},
        "c": {"priority": "0.8"},
        "d": {},
        "detached": {},
        "e": {"lastmod": "2024-05-01"},
    }
    send_request(site)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("4 of the 6 items of the values of @sitemap on ")
    assert warning.endswith(
        "have a lastmod that is not a date, so it is not used, such as 'May 2024' of /posts/a;"
        ' write it as "2024-05-01" or "2024-05-01T10:00:00Z"'
    )
    assert site.explain("/posts/a").lastmod_source == (
        'its values give \'May 2024\', which is not a date; write it as "2024-05-01" or "2024-05-01T10:00:00Z"'
    )
    assert site.explain("/posts/a").skipped == (
        "4 of 6 items have a lastmod that is not a date, such as 'May 2024' of /posts/a",
    )
    assert site.stats()["skipped"] == 0


class NotATime(dt.datetime):
    """Like pandas.NaT: a datetime by its class only."""

    def __new__(cls) -> Self:
        return super().__new__(cls, 1, 1, 1)

    def astimezone(self, _zone: Any = None) -> Any:
        raise ValueError("NaT")


@EVERYWHERE
def test_a_missing_time_of_a_data_frame_is_no_date(make: Any) -> None:
    assert rendered(make, [{"slug": "a", "lastmod": NotATime()}]) == {"/posts/a": {}}
    with pytest.raises(OptionError, match="is not a date"):
        Entry({"slug": "a"}, lastmod=NotATime())


class Unbound:
    """Like werkzeug's LocalProxy out of its context: whatever is asked raises."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("out of context")


@EVERYWHERE
def test_an_item_that_cannot_be_looked_at_is_skipped_alone(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert listed(make, ["a", Unbound(), "b"]) == ["/posts/a", "/posts/b"]
    assert "one item was left out: it is of type Unbound, and cannot be read (RuntimeError) (/posts/" in caplog.text


class Text(str):
    """A text of another class, as template engines and ORMs have them."""

    __slots__ = ()


@EVERYWHERE
def test_items_of_all_forms_may_be_mixed(make: Any) -> None:
    items = [Text("a"), None, {"slug": Text("b")}, "a", 3, b"x", [], Post("c"), "", Entry({"slug": "d"}), object()]
    assert listed(make, items) == ["/posts/a", "/posts/b", "/posts/3", "/posts/c", "/posts/d"]


@EVERYWHERE
def test_an_object_is_read_when_it_is_given(make: Any) -> None:
    def one_row_again_and_again() -> Iterator[Any]:
        row = SimpleNamespace()
        for row.slug in ("a", "b", "c"):
            yield row

    assert listed(make, one_row_again_and_again) == ["/posts/a", "/posts/b", "/posts/c"]


def test_an_async_provider_may_give_all_forms() -> None:
    async def mixed() -> Any:
        for item in ("a", Post("b"), {"slug": "c"}, Entry({"slug": "d"})):
            yield item

    for make in (on_flask, on_fastapi):
        assert listed(make, mixed) == ["/posts/a", "/posts/b", "/posts/c", "/posts/d"]


def test_of_several_routes_each_takes_what_it_needs() -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/<lang>/<slug>", "page", sitemap(values=[Post("rye")])(lambda **_: "page"))
    app.add_url_rule("/<slug>", "page")
    app.add_url_rule("/", "page", defaults={"slug": "home"})
    site = SitemapMiddleware(app, store="memory://", verify=False)
    locs = entries(wsgi(site, RequestSpec("/sitemap.xml", host="localhost")).body)
    assert sorted(loc.removeprefix(LOCAL) for loc in locs) == ["/", "/de/rye", "/rye"]


@EVERYWHERE
@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (
            "rye",
            "it is one value, and the route has 2 parameters (lang, slug); give a mapping such as {'lang': ..., 'slug':",
        ),
        (("de", "rye"), "it is of type tuple, which does not say what is its lang, slug"),
        (
            SimpleNamespace(slug="rye"),
            (
                "SimpleNamespace(slug='rye') was left out: it is of type SimpleNamespace, and has no attribute lang;"
                " the route's parameters: lang, slug (/"
            ),
        ),
        (object(), "object() was left out: it is of type object, and has no attribute lang"),
    ],
)
def test_ambiguous_item_is_skipped_with_a_reason(
    make: Any, item: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert listed(make, [item], "/<lang>/<slug>") == []
    assert reason in caplog.text


# Dates as text

NINE = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01", dt.date(2024, 5, 1)),
        (" 2024-05-01\n", dt.date(2024, 5, 1)),
        ("2024-05-01T10:00:00Z", dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)),
        ("2024-05-01t10:00:00z", dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)),
        ("2024-05-01 10:00", dt.datetime(2024, 5, 1, 10)),  # noqa: DTZ001 (as it is written)
        ("2024-05-01 10:00:30.125", dt.datetime(2024, 5, 1, 10, 0, 30, 125_000)),  # noqa: DTZ001 (likewise)
        ("2024-05-01T10:00+09:00", dt.datetime(2024, 5, 1, 10, tzinfo=NINE)),
        ("2024-05-01 10:00:00 +0900", dt.datetime(2024, 5, 1, 10, tzinfo=NINE)),
        ("2024-05-01T10:00:00+09", dt.datetime(2024, 5, 1, 10, tzinfo=NINE)),
        ("", None),
        ("yesterday", None),
        ("2024", None),
        ("2024-05", None),
        ("20240501", None),
        ("2024-W18-3", None),
        ("1.5.2024", None),
        ("2024-02-30", None),
        ("2024-05-01T25:00", None),
        ("2024-05-01T10:00:00+99:00", None),
        ("2024-05-01T", None),
        ("٢٠٢٤-05-01", None),
    ],
)
def test_a_date_may_be_its_text_in_iso_8601(text: str, moment: dt.date | None) -> None:
    assert parse_date(text) == moment
    assert type(parse_date(text)) is type(moment)
    if moment is None:
        with pytest.raises(OptionError, match='is not a date; write it as "2024-05-01"') as raised:
            sitemap(lastmod=text)(lambda: "")
        assert repr(text) in str(raised.value)
        assert Entry({"slug": "rye"}, lastmod=text).unusable_lastmod == text
    else:
        assert Entry({"slug": "rye"}, lastmod=text) == Entry({"slug": "rye"}, lastmod=moment)


def test_a_date_as_text_is_taken_everywhere() -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/a", "a", sitemap(lastmod="2024-05-01")(lambda: "a"))
    app.add_url_rule("/b", "b", sitemap(lastmod=lambda: "2024-05-02 10:00")(lambda: "b"))
    app.add_url_rule("/<c>", "c", sitemap(values=[Entry({"c": "c"}, lastmod="2024-05-03")])(lambda c: c))
    site = SitemapMiddleware(app, store="memory://", verify=False)
    listed_entries = entries(wsgi(site, RequestSpec("/sitemap.xml", host="localhost")).body)
    assert [fields["lastmod"] for _, fields in sorted(listed_entries.items())] == [
        "2024-05-01",
        "2024-05-02T10:00:00Z",
        "2024-05-03",
    ]


# Values where they say nothing


def test_values_on_a_route_without_parameters_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/", "home", sitemap(values=["a"])(lambda: "home"))
    both = sitemap(values=["rye"])(lambda slug="": slug)
    app.add_url_rule("/posts/", "posts", both)
    app.add_url_rule("/posts/<slug>", "post", both)
    site = SitemapMiddleware(app, store="memory://", verify=False)
    assert wsgi(site, RequestSpec("/sitemap.xml", host="localhost")).status == 200
    app.add_url_rule("/later", "later", lambda: "later")
    site.flush()
    listed_locs = entries(wsgi(site, RequestSpec("/sitemap.xml", host="localhost")).body)
    assert sorted(listed_locs) == [f"{LOCAL}/{path}" for path in ("", "later", "posts/", "posts/rye")]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "its values are not used, because / has no parameters; leave them out" in warning
    assert warning.startswith("@sitemap on ")


def test_the_package_tells_its_version_when_it_is_asked() -> None:
    assert sitemap_middleware.__version__.count(".") >= 1
    assert {"sitemap", "Entry", "__all__"} <= set(dir(sitemap_middleware))
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        _ = sitemap_middleware.version
