"""Hosts: whose name stands in a loc, who gets a sitemap at all, and whose pages it shows."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Host, Route
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.sansio.utils import host_is_trusted

from sitemap_middleware import SitemapMiddleware

from ...support.documents import locs
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import BOTH, Answer, RequestSpec, asgi, wsgi

HTML = [("content-type", "text/html")]
SITEMAP = "/sitemap.xml"


def home(protocol: str, **options: Any) -> SampleSite:
    return SampleSite(protocol, {"/": Page()}, **options)


def is_refused(answer: Answer) -> bool:
    """Whether it is our own 404, which tells what to do about it."""
    if answer.status != 404:
        return False
    assert 'base_url="https://example.com"' in answer.text
    assert 'allowed_hosts=("example.com",)' in answer.text
    assert answer.text.count("\n") == 1
    return True


HOSTILE = (
    "evil.example#",
    "example.com@evil.example",
    "example.com:99999",
    "example.com, evil.example",
    "example.com\r\nX-Injected: 1",
    "example.com<loc>",
    "example..com",
    "exämple.com",
    "example.com" * 1000,
    "",
)
"""Hosts that are none; some would be trusted if they were read less than wholly."""

odd = pytest.mark.parametrize("host", [*HOSTILE, None], ids=lambda host: repr(host)[:40])


# What a loc begins with


@BOTH
@odd
def test_hostile_host_gets_the_sites_own_sitemap(protocol: str, host: str | None) -> None:
    site = home(protocol, base_url="https://example.com")
    site.request("/", host=host)
    assert site.locs(host=host) == ["https://example.com/"]


@pytest.mark.slow
@BOTH
@odd
@pytest.mark.parametrize("trusted", ["example.com", ".example.com", None])
def test_without_base_url_a_hostile_host_gets_none(protocol: str, host: str | None, trusted: str | None) -> None:
    site = home(protocol, **({"allowed_hosts": trusted} if trusted else {}))
    site.request("/", host=host)
    assert is_refused(site.request(SITEMAP, host=host))


@BOTH
@pytest.mark.parametrize(
    ("host", "scheme", "loc"),
    [
        ("example.com", "http", "http://example.com/"),
        ("example.com", "https", "https://example.com/"),
        ("Example.COM", "http", "http://example.com/"),
        ("example.com.", "http", "http://example.com/"),
        ("example.com:80", "http", "http://example.com/"),
        ("example.com:443", "https", "https://example.com/"),
        ("example.com:443", "http", "http://example.com:443/"),
    ],
)
def test_allowed_host_has_one_spelling_in_locs(protocol: str, host: str, scheme: str, loc: str) -> None:
    assert home(protocol, allowed_hosts="example.com").locs(host=host, scheme=scheme) == [loc]


@BOTH
def test_forwarded_headers_are_never_believed(protocol: str) -> None:
    forwarded = [
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-prefix", "/evil"),
        ("x-forwarded-for", "203.0.113.6"),
        ("forwarded", "host=evil.example;proto=https"),
    ]
    site = home(protocol, allowed_hosts="example.com")
    site.request("/", host="example.com", headers=forwarded)
    assert site.locs(host="example.com", headers=forwarded) == ["http://example.com/"]
    assert is_refused(site.request(SITEMAP, host="10.0.0.7", headers=[("x-forwarded-host", "example.com")]))


# Who gets a sitemap


@BOTH
@pytest.mark.parametrize(
    ("allowed", "host", "served"),
    [
        (["example.com"], "example.com", True),
        (["example.com"], "example.com:8000", True),
        (["example.com"], "badexample.com", False),
        (["example.com:8000"], "example.com:8000", True),
        (["example.com:8000"], "example.com:8001", False),
        (["*.example.com"], "www.example.com", True),
        (["*.example.com"], "example.com", False),
        ([".example.com"], "example.com", True),
        (["[2001:db8::1]"], "[2001:DB8::1]:8000", True),
        (["example.com"], "localhost", False),
    ],
)
def test_allowed_hosts_and_no_others_are_served(protocol: str, allowed: list[str], host: str, *, served: bool) -> None:
    answer = home(protocol, allowed_hosts=allowed).request(SITEMAP, host=host)
    assert (answer.status == 200) is served
    assert is_refused(answer) is not served


@BOTH
@pytest.mark.parametrize("host", ["localhost:8000", "foo.localhost", "127.8.8.8", "[::1]", "testserver"])
def test_unnamed_development_machine_is_served(protocol: str, host: str) -> None:
    assert home(protocol).locs(host=host) == [f"http://{host}/"]


@BOTH
@pytest.mark.parametrize("host", ["example.com", "alocalhost", "128.0.0.1", "127.0.0.1.example.com", "10.0.0.7"])
def test_other_hosts_are_refused_if_none_is_named(protocol: str, host: str) -> None:
    assert is_refused(home(protocol).request(SITEMAP, host=host))


# What the frameworks trust


HOSTS = ("example.com", "example.com:8000", "www.example.com", "badexample.com", "xn--bcher-kva.example", "localhost")


@pytest.mark.parametrize("trusted", [[".example.com"], ["example.com:5000"], ["www.example.com", "localhost"],
                                     ["bücher.example"], "example.com"], ids=str)  # fmt: skip
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_flask_trusts_is_served_and_no_other(host: str, trusted: Any) -> None:
    site = home("wsgi")
    site.bare.config["TRUSTED_HOSTS"] = trusted
    answer = site.request(SITEMAP, host=host)
    assert (answer.status == 200) is host_is_trusted(host, trusted)
    assert is_refused(answer) is (answer.status != 200)


async def front(_: Request) -> HTMLResponse:
    return HTMLResponse("home")


def added(trusted: list[str]) -> Any:
    app = Starlette(routes=[Route("/", front)])
    app.add_middleware(SitemapMiddleware, store="memory://")
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=trusted)
    return app


def around(trusted: list[str]) -> Any:
    app = Starlette(routes=[Route("/", front)], middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=trusted)])
    return SitemapMiddleware(app, store="memory://", verify=False)


@pytest.mark.parametrize("wrapped", [added, around])
@pytest.mark.parametrize("trusted", [["example.com"], ["*.example.com"], ["www.example.com", "localhost"]], ids=str)
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_starlette_trusts_is_served_and_no_other(host: str, trusted: list[str], wrapped: Any) -> None:
    app = wrapped(trusted)
    answer = asgi(app, RequestSpec(SITEMAP, host=host))
    assert (answer.status == 200) is (asgi(app, RequestSpec("/", host=host)).status == 200)
    assert answer.status != 200 or locs(answer.body) == [f"http://{host}/"]


# Whose pages


GONE = Page(404, HTML)
A, B = {"host": "a.example"}, {"host": "b.example"}


def sees(site: SampleSite, path: str, *, gone: bool = False, **spec: Any) -> None:
    site.clock.pass_(1)
    route = "/p/{x}" if path.startswith("/p/") else path
    site.pages[route] = GONE if gone else Page()
    site.request(path, **spec)
    site.app.flush()


@BOTH
@pytest.mark.parametrize(
    ("first", "other", "begin", "other_begin"),
    [
        (A, B, "http://a.example", "http://b.example"),
        (A, {**A, "scheme": "https"}, "http://a.example", "https://a.example"),
        (A, {"host": "a.example:8000"}, "http://a.example", "http://a.example:8000"),
        (A, {**A, "root": "/shop"}, "http://a.example", "http://a.example/shop"),
        ({**A, "root": "/b"}, {**A, "root": "/shop"}, "http://a.example/b", "http://a.example/shop"),
    ],
    ids=["two hosts", "two schemes", "two ports", "a root path and none", "two root paths"],
)
def test_pages_of_one_site_never_show_in_another(
    protocol: str, first: dict[str, str], other: dict[str, str], begin: str, other_begin: str
) -> None:
    pages = {"/": Page(), "/p/{x}": Page()}
    site = SampleSite(protocol, pages, learn="/p/{x}", allowed_hosts=["a.example", "b.example"])
    sees(site, "/p/secret", **first)
    sees(site, "/p/own", **other)
    sees(site, "/", gone=True, **first)
    assert site.locs(**first) == [f"{begin}/p/secret"]
    assert site.locs(**other) == [f"{other_begin}/", f"{other_begin}/p/own"]


@pytest.mark.parametrize(("base_url", "root"), [("https://example.com", "/shop"), (None, "")])
def test_a_root_path_is_found_after_a_health_check_without_it(base_url: str | None, root: str) -> None:
    site = SampleSite("wsgi", {"/": Page()}, base_url=base_url)
    for requested in ("", "/shop", "", "/other"):
        site.request("/", root=requested)
    assert site.app.service.site_resolver.default_site().root == root


def test_a_host_shows_the_pages_that_the_app_routes_to_it_later() -> None:
    app = Starlette(routes=[Route("/", front)])
    clock = Clock()
    middleware = SitemapMiddleware(app, store="memory://", verify=False, allowed_hosts=["shop.example"], clock=clock)
    request = RequestSpec(SITEMAP, host="shop.example")
    assert locs(asgi(middleware, request).body) == ["http://shop.example/"]
    clock.pass_(2)
    app.router.routes.insert(0, Host("shop.example", Starlette(routes=[Route("/cart", front)])))
    assert locs(asgi(middleware, request).body) == ["http://shop.example/cart"]


# Behind a proxy


@pytest.mark.parametrize("is_inside", [False, True])
def test_proxy_headers_inside_are_warned_of(caplog: pytest.LogCaptureFixture, *, is_inside: bool) -> None:
    app = home("wsgi").bare
    options = {"store": "memory://", "verify": False}
    site = SitemapMiddleware(ProxyFix(app), **options) if is_inside else ProxyFix(SitemapMiddleware(app, **options))
    wsgi(site, RequestSpec(SITEMAP))
    assert ("ProxyFix runs inside" in caplog.text) is is_inside
