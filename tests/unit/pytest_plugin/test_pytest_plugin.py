"""The pytest plugin: what `sitemap_of` returns for each kind of app, and that the plugin imports nothing at start-up."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import flask
import pluggy
import pytest
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.routing import Route

from sitemap_middleware import Entry, OptionError, SitemapError, SitemapMiddleware, pytest_plugin, sitemap
from sitemap_middleware.pytest_plugin.sitemap_in_test import SitemapOf

sitemap_of = pytest_plugin.sitemap_of  # as if the package were installed

BASE = "https://example.com"
POSTS = [Entry({"slug": "rye"}, lastmod=date(2024, 5, 1)), {"slug": "zwölf & mehr"}]


def flask_app(**options: Any) -> flask.Flask:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
    app.add_url_rule("/account", "account", lambda: ("Sign in first", 401))
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=lambda: POSTS)(lambda slug: slug))
    app.add_url_rule("/users/<name>", "user", lambda name: name)
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, **{"base_url": BASE, **options})  # type: ignore[method-assign] # as Flask's docs do
    return app


def wrapped_flask_app() -> Any:
    app = flask_app()
    inside = app.wsgi_app
    app.wsgi_app = inside.app  # type: ignore[attr-defined, method-assign] # the middleware's own
    return SitemapMiddleware(app, base_url=BASE)


def endpoint(status: int = 200) -> Any:
    async def respond(request: Any) -> HTMLResponse:
        return HTMLResponse(request.path_params.get("slug", "<h1>Home</h1>"), status)

    return respond


def starlette_app(**options: Any) -> Starlette:
    routes = [
        Route("/", endpoint()),
        Route("/account", endpoint(401)),
        Route("/posts/{slug}", sitemap(values=lambda: POSTS)(endpoint())),
        Route("/users/{slug}", endpoint()),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(SitemapMiddleware, base_url=BASE, **options)
    return app


APPS = [flask_app(), wrapped_flask_app(), starlette_app()]
APPS.append(SitemapMiddleware(Starlette(routes=starlette_app().routes), base_url=BASE))


@pytest.mark.parametrize("app", APPS)
def test_it_tells_what_is_listed_and_why_the_rest_is_not(app: Any, sitemap_of: SitemapOf) -> None:
    site = sitemap_of(app)
    assert site.locs == [f"{BASE}/", f"{BASE}/posts/rye", f"{BASE}/posts/zw%C3%B6lf%20&%20mehr"]
    assert site.paths == list(site) == ["/", "/posts/rye", "/posts/zwölf & mehr"]
    assert len(site) == 3
    assert site.dates == {"/posts/rye": "2024-05-01"}
    assert "/posts/rye" in site
    assert f"{BASE}/posts/rye" in site
    assert "/account" not in site
    assert dict(site.reasons) == {"/account": "it answered 401"}
    assert site.reasons["/posts/none"] == "its route has values, and they do not include it"
    assert "has parameters, and neither values nor learn" in site.reasons["/users/ada"]
    with pytest.raises(KeyError, match="/posts/rye is listed"):
        site.reasons["/posts/rye"]
    assert site.reasons.get("/account") == "it answered 401"
    assert site.reasons.get("/posts/none") == site.reasons["/posts/none"]
    assert site.reasons.get("/posts/rye") is None
    assert site.reasons.get("/posts/rye", "listed") == "listed"
    assert repr(site).splitlines() == [
        "pages listed: 3",
        "/",
        "/posts/rye (2024-05-01)",
        "/posts/zwölf & mehr",
        "not listed: 1",
        "/account: it answered 401",
    ]


@pytest.mark.parametrize(
    ("options", "base_url", "first"),
    [
        ({"base_url": None}, None, "http://localhost/"),
        ({"base_url": None, "allowed_hosts": ["*.example.com", "shop.example.com"]}, None, "https://shop.example.com/"),
        ({"allowed_hosts": ["shop.example.com"]}, "https://shop.example.com", "https://shop.example.com/"),
        ({"allowed_hosts": ["shop.example.com"]}, None, f"{BASE}/"),
    ],
)
def test_the_site_is_that_of_the_options(
    options: dict[str, Any], base_url: str | None, first: str, sitemap_of: SitemapOf
) -> None:
    assert sitemap_of(flask_app(**options), base_url=base_url).locs[0] == first


@pytest.mark.parametrize("base_url", [None, f"{BASE}/shop"])
def test_the_root_path_is_that_of_the_visits_or_of_base_url(base_url: str | None, sitemap_of: SitemapOf) -> None:
    app = flask_app()
    app.add_url_rule("/checkout", "checkout", lambda: "<h1>Pay</h1>")
    app.test_client().get("/checkout", base_url=f"{BASE}/shop")
    assert f"{BASE}/shop/checkout" in sitemap_of(app, base_url=base_url)


def test_another_site_is_refused(sitemap_of: SitemapOf) -> None:
    with pytest.raises(OptionError, match=r"base_url='https://example\.org' is not a site of this app; leave it out"):
        sitemap_of(flask_app(), base_url="https://example.org")
    with pytest.raises(OptionError, match=r"have the app's base_url or allowed_hosts name it"):
        sitemap_of(SitemapMiddleware(flask.Flask("app"), store="memory://"), base_url="https://example.org")


def test_a_sitemap_that_cannot_be_made_fails_the_test(sitemap_of: SitemapOf) -> None:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/<slug>", "page", sitemap(values=lambda: 1 // 0)(lambda slug: slug))
    site = SitemapMiddleware(app, base_url=BASE)
    with pytest.raises(SitemapError, match=r"answered 503 for /sitemap.xml: The sitemap cannot be made now"):
        sitemap_of(site)


# The plugin in runs of pytest


Outcome = Literal["passed", "failed"]
Phase = Literal["setup", "call", "teardown"]


def sections_of_report(item: Any, phase: Phase, outcome: Outcome) -> list[tuple[str, str]]:
    report = pytest.TestReport("test", ("test.py", 1, "test"), {}, outcome, None, phase)
    hook = pytest_plugin.pytest_runtest_makereport(item)
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(pluggy.Result.from_call(lambda: report))
    return report.sections


@pytest.mark.parametrize("outcome", ["passed", "failed"])
@pytest.mark.parametrize("reads", [0, 2])
def test_the_report_of_a_failed_test_has_the_latest_sitemap(
    outcome: Outcome, reads: int, request: pytest.FixtureRequest, sitemap_of: SitemapOf
) -> None:
    latest = [sitemap_of(make()) for make in (flask_app, starlette_app)[:reads]][-1:]
    expected = [("sitemap", repr(site)) for site in latest if outcome == "failed"]
    assert sections_of_report(request.node, "call", outcome) == expected
    assert sections_of_report(request.node, "teardown", outcome) == expected
