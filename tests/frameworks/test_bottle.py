"""What only Bottle has: its syntax of rules, mounts, and several methods at one path."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from typing import Any

import bottle
import pytest
from bottle import Bottle, Router
from flask import Flask

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.routing.bottle_routes import _template

from ..support.sample_sites import listed


def page(**_: Any) -> str:
    return "<h1>A page"


def wrapped(app: Any, **options: Any) -> Any:
    return SitemapMiddleware(app, base_url="http://testserver", store="memory://", **options)


@pytest.mark.parametrize(
    ("rule", "template", "names"),
    [
        ("/about", "/about", ()),
        ("/<name>", "/<name>", ("name",)),
        ("/<number:int>/<share:float>", "/<int:number>/<float:share>", ("number", "share")),
        ("/files/<file:path>", "/files/<path:file>", ("file",)),
        ("/<name:re:[a-z]+>.html", "/<name>.html", ("name",)),
        ("/<rest:re:.*>", "/<path:rest>", ("rest",)),
        ("/<:re:[a-z]+>/<:int>", "/<anon0>/<int:anon1>", ("anon0", "anon1")),
        ("/:name/:kind#[a-z]+#", "/<name>/<kind>", ("name", "kind")),
        (r"/a\<b>", "/a<b>", ()),
        (r"/a\:b", "/a:b", ()),
    ],
)
def test_rules_are_written_as_in_options(rule: str, template: str, names: tuple[str, ...]) -> None:
    assert _template(rule, Router.rule_syntax) == (template, names)


def test_the_first_route_that_takes_get_answers() -> None:
    app = Bottle()
    app.route("/<name>", callback=page)
    app.route("/about", method="ANY", callback=page)  # Bottle tries all routes for GET before those for any method
    app.route("/contact", callback=page)
    assert listed(wrapped(app)) == ["/contact"]


def test_values_that_lead_to_another_route_are_left_out() -> None:
    app = Bottle()
    app.route("/posts/latest", callback=page)
    app.route("/posts/<slug>", callback=sitemap(values=["one", "latest", "a/b", "\u00e4 %"])(lambda **_: "A page"))
    site = wrapped(app)
    assert listed(site) == ["/posts/latest", "/posts/one", "/posts/%C3%A4%20%25"]
    assert site.stats()["skipped"] == 2


def test_mounted_apps_of_other_frameworks_have_their_own_routes() -> None:
    app, inner = Bottle(), Flask("inner", static_folder=None)
    app.route("/", callback=page)
    inner.add_url_rule("/", "home", page)
    inner.add_url_rule("/about", "about", page)
    inner.add_url_rule("/posts/<slug>", "post", page)
    app.mount("/inner/", inner.wsgi_app)
    site = wrapped(app)
    assert listed(site) == ["/", "/inner/", "/inner/about"]
    assert "/inner/posts/<slug>" in str(site.explain("/inner/posts/one"))
    assert "route:" not in str(site.explain("/inner/nowhere"))
    assert not site.explain("/nowhere").listed


def test_a_mount_without_a_slash_is_read_once() -> None:
    app, inner = Bottle(), Flask("inner", static_folder=None)
    inner.add_url_rule("/about", "about", page)
    app.mount("/inner", inner.wsgi_app)
    assert listed(wrapped(app)) == ["/inner/about"]
    assert len(SitemapMiddleware.of(wrapped(app)).service.app_routes.table.routes) == 1


def test_a_copy_of_bottle_in_a_project_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    path = bottle.__file__
    loader = importlib.machinery.SourceFileLoader("project.vendor.bottle", path)
    spec = importlib.util.spec_from_file_location("project.vendor.bottle", path, loader=loader)
    assert spec is not None
    copy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "project.vendor.bottle", copy)
    loader.exec_module(copy)
    app = copy.Bottle()
    app.route("/about", callback=page)
    app.route("/posts/<slug>", callback=sitemap(values=lambda: ["rye"])(lambda **_: "A page"))
    assert listed(wrapped(app)) == ["/about", "/posts/rye"]
