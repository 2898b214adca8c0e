"""Paths that are built in bulk are those that the app's own router builds one by one, whatever other routes there are."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, Router
from werkzeug.routing import BaseConverter, Rule

from sitemap_middleware import sitemap
from sitemap_middleware.models import PathBuilder
from sitemap_middleware.routing.bulk_path_builder import Shape, build_many, may_overlap
from sitemap_middleware.routing.plain_routes import each_route
from sitemap_middleware.routing.route_change_detector import Snapshot
from sitemap_middleware.routing.route_discovery import discover_routes

TEXTS = ["a", "b", "new", "12", "a-b", "a.html", "é", "a b", "%41", "a%2Fb", "x" * 50]
ODD = [
    "",
    "/",
    "a/b",
    "/a",
    ".",
    "..",
    "a\n",
    "\t",
    "\ud800",
    "\ufffd",
    0,
    7,
    -7,
    10**20,
    2.5,
    True,
    None,
    UUID(int=7),
    b"a",
]
VALUES = st.sampled_from([*TEXTS, *ODD]) | st.text(max_size=4)
ITEMS = st.lists(
    st.fixed_dictionaries({"x": VALUES}, optional={"y": VALUES, "z": VALUES}) | st.fixed_dictionaries({"y": VALUES}),
    max_size=12,
)
FLASK_SEGMENTS = ["a", "b", "new", "12", "<x>", "<int:x>", "<path:x>", "<any(a,b):x>", "<string(length=3):x>", "a-<x>",
                  "<x>.html", "<y>", "<float:y>", "<uuid:y>", "<odd:y>"]  # fmt: skip
STARLETTE_SEGMENTS = ["a", "b", "new", "12", "{x}", "{x:int}", "{x:path}", "{x:float}", "{x:uuid}", "a-{x}", "{x}.html",
                      "{y}", "{y:int}"]  # fmt: skip


class Odd(BaseConverter):
    """A converter of an app."""

    regex = "[ab].*"


def templates(segments: list[str]) -> st.SearchStrategy[str]:
    """Templates of these segments, in which no parameter occurs twice."""
    chosen = st.lists(st.sampled_from(segments), min_size=1, max_size=3).filter(
        lambda found: (
            max(sum("x" in part and part[0] in "<{a" for part in found), sum("y" in part for part in found)) < 2
        )
    )
    return st.tuples(chosen, st.sampled_from(["", "/"])).map(lambda found: f"/{'/'.join(found[0])}{found[1]}")


def view(_: Any = None, **__: Any) -> Any:
    return PlainTextResponse("a page")


def builders(app: Any) -> list[PathBuilder]:
    """The builders of an app's routes that have values."""
    return [route.builder for route in each_route(discover_routes(app, Snapshot())) if route.builder]


def in_bulk(builder: PathBuilder, items: list[dict[str, Any]]) -> list[str | None]:
    """The paths that are built in bulk. Each is what the router builds alone."""
    paths = build_many(builder, items)
    assert len(paths) == len(items)
    for path, item in zip(paths, items, strict=True):
        assert path is None or builder.build(item) == path
    return paths


def on_flask(own: str, *others: str, **options: Any) -> PathBuilder:
    app = flask.Flask("site", static_folder=None)
    app.url_map.converters["odd"] = Odd
    app.add_url_rule(own, "own", sitemap(values=[])(lambda **_: "a page"), **options)
    for number, other in enumerate(others):
        app.add_url_rule(other, f"other{number}", lambda **_: "another page")
    (builder,) = builders(app)
    return builder


def on_starlette(*paths: str, own: str) -> PathBuilder:
    routes = [Route(path, lambda _: PlainTextResponse("another page")) for path in paths]
    (builder,) = builders(Starlette(routes=[*routes, Route(own, sitemap(values=[])(view))]))
    return builder


@given(
    st.lists(
        st.tuples(
            templates(FLASK_SEGMENTS),
            st.sampled_from(["one", "two", "three", "four", "five"]),
            st.sampled_from([["GET"], ["POST"], ["GET", "POST"]]),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    ITEMS,
)
def test_flask_takes_every_path_that_is_built_in_bulk(rules: Any, items: Any) -> None:
    app = flask.Flask("site", static_folder=None)
    app.url_map.converters["odd"] = Odd
    for template, endpoint, methods, is_strict in rules:
        app.url_map.add(Rule(template, endpoint=endpoint, methods=methods, strict_slashes=is_strict))
        app.view_functions[endpoint] = sitemap(values=[])(lambda **_: "a page")
    for builder in builders(app):
        in_bulk(builder, items)


@given(
    st.lists(
        st.tuples(templates(STARLETTE_SEGMENTS), st.sampled_from(["route", "mount", "post"])), min_size=1, max_size=6
    ),
    ITEMS,
)
def test_starlette_takes_every_path_that_is_built_in_bulk(routes: Any, items: Any) -> None:
    def made(template: str, kind: str) -> Any:
        if kind == "mount":
            return Mount(template.rstrip("/"), Router([Route("/{z}", sitemap(values=[])(view))]))
        return Route(template, sitemap(values=[])(view), methods=["POST" if kind == "post" else "GET"])

    for builder in builders(Starlette(routes=[made(template, kind) for template, kind in routes])):
        in_bulk(builder, items)


ORDINARY = [{"x": "a"}, {"x": "é"}, {"x": "a-b"}]


@pytest.mark.parametrize(
    "builder",
    [
        on_flask("/posts/<x>", "/", "/users/<x>", "/posts/<x>/edit", "/<path:x>", "/posts"),
        on_flask("/posts/<string:x>/", "/posts"),
        on_flask("/posts/<x>", "/<y>/a", "/posts/new"),
        on_starlette("/", "/users/{x}", "/posts/{x}/edit", "/posts/{y:int}/{x}", own="/posts/{x}"),
    ],
    ids=["flask", "flask with a slash", "flask, other values", "starlette"],
)
def test_ordinary_paths_are_built_in_bulk(builder: PathBuilder) -> None:
    items = [item for item in ORDINARY if item["x"] != "a"]
    assert None not in in_bulk(builder, items)


@pytest.mark.parametrize(
    ("builder", "item"),
    [
        (on_flask("/posts/<x>", "/posts/new"), {"x": "new"}),
        (on_flask("/posts/<x>", "/posts/new/"), {"x": "new"}),
        (on_flask("/posts/<x>", "/posts/<path:y>"), {"x": "a"}),
        (on_flask("/<x>", "/files/<path:y>"), {"x": "files"}),
        (on_flask("/posts/<x>"), {"x": "a/b"}),
        (on_flask("/posts/<x>"), {"x": ""}),
        (on_flask("/posts/<x>"), {"x": "a\n"}),
        (on_flask("/posts/<x>"), {"x": None}),
        (on_flask("/posts/<x>"), {"x": "a", "y": "b"}),
        (on_flask("/posts/<x>"), {"y": "a"}),
        (on_flask("/posts/<int:x>"), {"x": -1}),
        (on_flask("/posts/<int:x>"), {"x": "1"}),
        (on_flask("/posts/<path:x>"), {"x": "a"}),
        (on_flask("/posts/<odd:x>"), {"x": "a"}),
        (on_flask("/posts/<string(length=1):x>"), {"x": "a"}),
        (on_flask("/posts/<x>", defaults={"y": 1}), {"x": "a"}),
        (on_starlette("/posts/new", own="/posts/{x}"), {"x": "new"}),
        (on_starlette("/{y:path}", own="/posts/{x}"), {"x": "a"}),
        (on_starlette("/{y}/{x}", own="/posts/{x}"), {"x": "a"}),
        (on_starlette(own="/posts/{x:path}"), {"x": "a"}),
        (on_starlette(own="/posts/{x:int}"), {"x": -1}),
        (on_starlette(own="/posts (old)/{x}"), {"x": "a"}),
    ],
)
def test_paths_that_another_route_may_take_are_left_to_the_router(builder: PathBuilder, item: dict[str, Any]) -> None:
    assert in_bulk(builder, [item]) == [None]


def test_one_unusual_item_does_not_keep_the_others_from_being_built_in_bulk() -> None:
    builder = on_flask("/posts/<x>")
    items = [{"x": str(number)} for number in range(9)]
    items[4] = {"x": "a/b"}
    paths = in_bulk(builder, items)
    assert [number for number, path in enumerate(paths) if path is None] == [4]


def test_several_parameters_are_built_in_bulk() -> None:
    items = [{"x": "a", "y": number} for number in range(3)]
    expected = ["/a/0.html", "/a/1.html", "/a/2.html"]
    assert in_bulk(on_flask("/<x>/<int:y>.html"), items) == expected
    assert in_bulk(on_starlette(own="/{x}/{y:int}.html"), items) == expected


def test_rules_that_are_added_later_count() -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/posts/<x>", "own", sitemap(values=[])(lambda x: x))
    (builder,) = builders(app)
    assert in_bulk(builder, [{"x": "new"}]) == ["/posts/new"]
    app.add_url_rule("/posts/new", "new", lambda: "a form")
    assert in_bulk(builder, [{"x": "new"}]) == [None]


def test_a_router_that_builds_other_paths_is_asked_for_each() -> None:
    app = flask.Flask("site", static_folder=None)

    class Shouting(Rule):
        def build(self, values: Any, append_unknown: bool = True) -> Any:
            return super().build({name: value.upper() for name, value in values.items()}, append_unknown)

    app.url_rule_class = Shouting
    app.add_url_rule("/posts/<x>", "own", sitemap(values=[])(lambda x: x))
    (builder,) = builders(app)
    assert in_bulk(builder, [{"x": "a"}]) == [None]


def test_a_converter_that_was_changed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = on_flask("/posts/<x>")
    converter = type(builder._rule._converters["x"])  # type: ignore[attr-defined] # as an app may do
    monkeypatch.setattr(converter, "to_url", lambda _, value: f"{value}!")
    assert in_bulk(builder, [{"x": "a"}, {"x": "b"}]) == [None, None]
    monkeypatch.setattr(converter, "to_url", lambda *_: 1 / 0)
    assert build_many(builder, [{"x": "a"}]) == [None]


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (("a", None), ("a", None), True),
        (("a", None), ("b", None), False),
        (("a", None), ("a", "b"), True),
        (("a", None), ("a",), False),
        ((None, "a"), (None, "b"), False),
        ((None, "a"), ("b", None), True),
    ],
)
def test_templates_overlap_if_no_segment_forbids_it(
    own: tuple[str | None, ...], other: tuple[str | None, ...], expected: bool
) -> None:
    assert may_overlap(Shape(own, False), Shape(other, False), literals_first=False) is expected
