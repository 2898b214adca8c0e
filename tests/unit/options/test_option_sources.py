"""Where the value of an option comes from: an argument, the framework's configuration, the environment, the default."""

from __future__ import annotations

import inspect
import logging
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.urls import path as django_path
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import OptionError, SitemapMiddleware
from sitemap_middleware.options.sources import Setting, variable_name
from sitemap_middleware.options.table import OPTIONS

from ...frameworks.apps import django_site
from ...support.django_project import use
from ...support.documents import locs
from ...support.sample_sites import Page, SampleSite, plain_flask
from ...support.wire import BOTH, DRIVERS, RequestSpec

PATHS = ("/", "/a", "/b", "/kind/<any(x, y):kind>")

TEXTS: dict[str, tuple[str, Any]] = {
    "base_url": ("https://example.com", "https://example.com"),
    "allowed_hosts": ("example.com,.example.org", ("example.com", ".example.org")),
    "path": ("/map.xml", "/map.xml"),
    "store": ("memory://", "memory://"),
    "include": ("/a , /kind/<any(x, y):kind>,", ("/a", "/kind/<any(x, y):kind>")),
    "exclude": ("/a", ("/a",)),
    "learn": ("/kind/{kind}", ("/kind/{kind}",)),
    "list_unseen": ("no", False),
    "verify": ("0", False),
    "priority": ("0.5", 0.5),
    "changefreq": ("weekly", "weekly"),
    "robots": ("off", False),
    "max_age": ("60", 60),
    "cache_tag": ("sitemap", "sitemap"),
    "max_age_days": (" 7 ", 7),
    "max_pages": ("+1000", 1000),
    "max_pages_per_route": ("100", 100),
    "media_types": ("text/html, text/plain", ("text/html", "text/plain")),
    "metrics": ("prometheus", "prometheus"),
    "enabled": ("FALSE", False),
    "gone": ("yes", True),
    "indexnow": ("0123-abcd", "0123-abcd"),
    "indexnow_endpoint": ("https://www.bing.com/indexnow", "https://www.bing.com/indexnow"),
    "feed": ("/changes.atom", "/changes.atom"),
    "report": ("/sitemap-report", "/sitemap-report"),
    "images": ("10", "10"),
    "alternates": ("lang", "lang"),
    "x_default": ("en", "en"),
}
"""A text for every option that has an environment variable, and the value that it stands for."""


flask_app = partial(plain_flask, *PATHS)


def setting(name: str, app: Any = None, **options: Any) -> Setting:
    site = SitemapMiddleware(app or flask_app(), **options)
    return site.settings[name]


# Sources and their order


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.form != "object"])
def test_an_option_comes_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, value = TEXTS[name]
    monkeypatch.setenv(variable_name(name), text)
    assert setting(name) == Setting(name, value, "environment")


def test_an_argument_goes_before_the_configuration_and_that_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SITEMAP_MAX_AGE", "60")
    app = flask_app(SITEMAP_MAX_AGE="50")
    assert setting("max_age", app) == Setting("max_age", 50, "config")
    assert setting("max_age", app, max_age=300) == Setting("max_age", 300, "argument"), "also if it is the default"
    for nothing in (None, ""):
        assert setting("max_age", flask_app(SITEMAP_MAX_AGE=nothing)).source == "environment"


@pytest.mark.parametrize("words", ["1 true yes on True YES oN", "0 false no off False NO oFF"])
def test_flags_are_given_by_words(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in words.split():
        monkeypatch.setenv("SITEMAP_VERIFY", word)
        assert setting("verify").value is words.startswith("1")


def test_the_configuration_may_hold_what_no_text_can_stand_for() -> None:
    app = flask_app(SITEMAP_CLOCK=lambda: 1_750_000_000.0, SITEMAP_BASE_URL="https://example.com")
    app.wsgi_app = SitemapMiddleware(app.wsgi_app)
    assert app.wsgi_app.service.clock() == 1_750_000_000.0
    assert locs(app.test_client().get("/sitemap.xml").data) == [
        "https://example.com/",
        "https://example.com/a",
        "https://example.com/b",
    ]


# What cannot be read


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("base_url", "example.com", "='example.com' does not begin with http:// or https://"),
        ("allowed_hosts", "example.com,a/b", " holds 'a/b', which is not a host; give"),
        ("store", "mysql://me:hunter2@host/site", r"='mysql://\*\*\*@host/site' names no store; use"),
        ("list_unseen", "maybe", "='maybe' is neither True nor False; give 1, true, yes or on, or else 0, false, no"),
        ("priority", "high", "='high' is not valid; give a number from 0.0 to 1.0"),
        ("robots", "allow", "='allow' is neither True nor False; give 1, .* off, or \"disallow\""),
        ("max_age", "5 minutes", "='5 minutes' is not a number of seconds; give 0 or more"),
        ("max_pages_per_route", "9" * 5000, "='9+ … 9+' is not a number of pages"),
    ],
)
def test_an_invalid_text_is_refused_where_it_stands(
    name: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = variable_name(name)
    with pytest.raises(OptionError, match=rf'^app\.config\["{variable}"\]{message}'):
        SitemapMiddleware(flask_app(**{variable: text}))
    monkeypatch.setenv(variable, text)
    with pytest.raises(OptionError, match=f"^{variable}{message}"):
        SitemapMiddleware(flask_app())


@pytest.mark.parametrize(
    ("key", "end"),
    [
        ("SITEMAP_BASEURL", "did you mean SITEMAP_BASE_URL?"),
        ("SITEMAP_URL_SCHEME", "ignore this if it belongs to another package"),
        ("SITEMAP_", "ignore this if it belongs to another package"),
    ],
)
def test_a_key_that_no_option_has_is_warned_of_once(
    key: str, end: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = flask_app(**{key: True, "SITEMAP": 1, "SITEMAP_VERIFY": False, "OTHER": 1})
    app.wsgi_app = SitemapMiddleware(app.wsgi_app)
    app.test_client().get("/")
    monkeypatch.setenv(key, "1")
    monkeypatch.setenv("SITEMAP_VERIFY", "1")
    SitemapMiddleware(flask_app())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f'app.config["{key}"] is not read: it is no option of SitemapMiddleware; {end}',
        f"{key} in the environment is not read: it is no option of SitemapMiddleware; {end}",
    ]


@pytest.mark.parametrize("key", ["SITEMAP_CLOCK", "SITEMAP_ROUTES"])
def test_an_option_that_no_text_can_stand_for_is_warned_of(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(key, "5")
    SitemapMiddleware(flask_app())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        f"{key} in the environment is not read"
    ]


# enabled=False


@pytest.mark.parametrize("own", [True, False])
@BOTH
def test_a_middleware_that_is_off_leaves_an_app_as_it_is(protocol: str, own: bool, tmp_path: Path) -> None:
    threads = threading.active_count()
    pages = {path: Page() for path in ("/", "/a", *["/sitemap.xml"] * own)}
    sample = SampleSite(protocol, pages, enabled=False, store=f"sqlite:///{tmp_path}/site.sqlite3")
    assert inspect.iscoroutinefunction(type(sample.app).__call__) is (protocol == "asgi")  # how servers recognise ASGI
    sample.visit("/", "/a")
    assert [sample.request(path).status for path in ("/a", "/robots.txt")] == [200, 404]
    answer = sample.request("/sitemap.xml")
    assert (answer.status, answer.body == Page.body) == ((200, True) if own else (404, False))
    assert sample.app.stats()["seen"] == 0
    sample.app.close()
    assert threading.active_count() <= threads
    assert list(tmp_path.iterdir()) == []


def test_a_middleware_that_is_off_inside_an_app_leaves_it_as_it_is() -> None:
    app = Starlette(routes=[Route("/a", lambda _: HTMLResponse("a page"))])
    app.add_middleware(SitemapMiddleware, enabled=False)
    assert DRIVERS["asgi"](app, RequestSpec("/a")).text == "a page"
    assert [DRIVERS["asgi"](app, RequestSpec(path)).status for path in ("/sitemap.xml", "/robots.txt")] == [404, 404]


def test_explain_says_that_the_middleware_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    site = SitemapMiddleware(flask_app(), enabled=False)
    explanation = site.explain("/")
    assert explanation.note == "SitemapMiddleware: enabled=False turns the middleware off, so nothing is observed"
    assert (explanation.listed, explanation.reason) == (False, "the middleware is turned off")
    monkeypatch.setenv("SITEMAP_ENABLED", "no")
    assert str(SitemapMiddleware(flask_app()).explain("/").note).startswith("SITEMAP_ENABLED=False turns")


# robots="disallow", robots="noindex"

STAGING = "User-agent: *\nDisallow: /\n"


@pytest.mark.parametrize("own", [True, False])
def test_a_staging_site_disallows_everything_and_has_no_sitemap(own: bool) -> None:
    app = flask_app(SITEMAP_ROBOTS="disallow")
    if own:
        app.add_url_rule("/robots.txt", "robots", lambda: "User-agent: *\nAllow: /\n")
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://staging.example.com")
    client = app.test_client()
    for host in ("staging.example.com", "10.0.0.1:8000"):
        answer = client.get("/robots.txt", base_url=f"https://{host}")
        assert (answer.status_code, answer.text) == (200, STAGING)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        answer = client.get("/sitemap.xml", base_url=f"https://{host}")
        assert answer.status_code == 404
        assert answer.text.strip() == 'robots="disallow" keeps this site out of search engines, so there is no sitemap.'
    assert client.head("/robots.txt").data == b""
    assert client.get("/a").text == "a page"
    assert not app.wsgi_app.explain("/a").listed
    assert app.wsgi_app.explain("/a").note == (
        'app.config["SITEMAP_ROBOTS"]="disallow" keeps the site out of search engines, so there is no sitemap'
    )


@BOTH
def test_disallow_is_noindex_below_a_root_path_whose_robots_txt_nobody_reads(protocol: str) -> None:
    app = SampleSite(protocol, {"/": Page()}, base_url="https://staging.example.com", robots="disallow").app
    tags = [DRIVERS[protocol](app, RequestSpec("/", root=root)).header("x-robots-tag") for root in ("", "/shop")]
    assert tags == [None, "noindex"]


@BOTH
def test_noindex_marks_each_response_and_leaves_robots_txt_to_the_app(protocol: str) -> None:
    pages = {
        "/": Page(),
        "/post": Page().with_headers(("x-robots-tag", "nosnippet")),
        "/broken": Page(500),
        "/robots.txt": Page(headers=[("content-type", "text/plain")], body=b"User-agent: *\nAllow: /\n"),
    }
    sample = SampleSite(protocol, pages, base_url="https://staging.example.com", robots="noindex")

    def tags(path: str) -> list[str]:
        return [value for name, value in sample.request(path).headers if name == "x-robots-tag"]

    assert [tags(path) for path in ("/", "/missing", "/broken", "/robots.txt", "/sitemap.xml")] == [["noindex"]] * 5
    assert tags("/post") == ["nosnippet", "noindex"]
    assert sample.request("/robots.txt").text == "User-agent: *\nAllow: /\n"
    answer = sample.request("/sitemap.xml")
    reason = 'robots="noindex" keeps this site out of search engines, so there is no sitemap.'
    assert (answer.status, answer.text.strip()) == (404, reason)
    explanation = sample.app.explain("/")
    assert (explanation.listed, explanation.reason) == (
        False,
        'the option robots="noindex" keeps the site out of search engines',
    )


# Django's settings


@pytest.mark.parametrize(("robots", "root"), [("noindex", ""), ("disallow", "/shop")])
@BOTH
def test_noindex_in_the_settings_of_django(protocol: str, robots: str, root: str) -> None:
    def page(_: Any) -> HttpResponse:
        return HttpResponse("A page", headers={"X-Robots-Tag": "nosnippet"})

    use([django_path("", page)], MIDDLEWARE=["sitemap_middleware.django.SitemapMiddleware"], SITEMAP_ROBOTS=robots)
    app = WSGIHandler() if protocol == "wsgi" else ASGIHandler()
    for _ in range(2):
        answer = DRIVERS[protocol](app, RequestSpec("/", root=root))
        assert answer.header("x-robots-tag") == "nosnippet, noindex"
    assert DRIVERS[protocol](app, RequestSpec("/missing", root=root)).header("x-robots-tag") == "noindex"


def test_settings_of_django_are_named_as_django_does(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OptionError, match=r"^settings.SITEMAP_MAX_AGE='soon' is not a number of seconds"):
        django_site.in_settings(django_site.build(), max_age="soon")
    django_site.in_settings(django_site.build(), maxage=5)
    assert [record.getMessage() for record in caplog.records if "is not read" in record.getMessage()] == [
        "settings.SITEMAP_MAXAGE is not read: it is no option of SitemapMiddleware; did you mean SITEMAP_MAX_AGE?"
    ]
