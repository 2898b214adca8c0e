"""robots.txt: the app's own is obeyed and given a Sitemap line; where there is none, a minimal one is served."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.robots import Rules, minimal, with_sitemap

from .support.documents import locs
from .support.twins import Page, Twin
from .support.wire import Ask, asgi, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
TEXT = [("content-type", "text/plain")]
LINE = "Sitemap: https://example.com/sitemap.xml\n"
FORBIDDING = "User-agent: *\nDisallow: /private\n"


def site(protocol: str, robots: Page | None = None, **options: Any) -> Twin:
    pages = {"/": Page(), "/private": Page(), "/public": Page()}
    if robots is not None:
        pages["/robots.txt"] = robots
    return Twin(protocol, pages, base_url="https://example.com", **options)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", True),
        ("User-agent: *\nDisallow:\n", True),
        ("User-agent: *\nDisallow: /\n", False),
        ("User-agent: *\nDisallow: /private\n", True),
        ("User-agent: Googlebot\nDisallow: /\n", False),
        ("User-agent: bingbot\nDisallow: /\n", False),
        ("User-agent: otherbot\nDisallow: /\n", True),
        ("User-agent: *\nDisallow: /\nAllow: /page$\n", True),
        ("\x00\xff nonsense :::\n", True),
    ],
)
def test_rules_are_those_for_the_crawlers_that_read_sitemaps(text: str, *, allowed: bool) -> None:
    assert Rules(text).allow("https://example.com/page") is allowed


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", "\nSitemap: x\n"),
        ("User-agent: *", "User-agent: *\n\nSitemap: x\n"),
        ("User-agent: *\n", "User-agent: *\n\nSitemap: x\n"),
        ("sitemap : y", "sitemap : y"),
        ("User-agent: *\n Sitemap: y\n", "User-agent: *\n Sitemap: y\n"),
    ],
)
def test_a_sitemap_line_is_added_where_there_is_none(text: str, whole: str) -> None:
    assert with_sitemap(text, "x") == whole


@BOTH
def test_an_app_without_one_gets_a_minimal_one(protocol: str) -> None:
    twin = site(protocol)
    answer = twin.ask("/robots.txt")
    assert (answer.status, answer.text) == (200, minimal("https://example.com/sitemap.xml"))
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    head = twin.ask("/robots.txt", method="HEAD")
    assert (head.body, head.header("content-length")) == (b"", str(len(answer.body)))
    assert twin.ask("/robots.txt", method="POST").status == 404


@BOTH
def test_the_apps_own_is_obeyed_and_given_a_sitemap_line(protocol: str) -> None:
    twin = site(protocol, Page(200, [*TEXT, ("x-own", "kept"), ("etag", '"old"')], FORBIDDING.encode()))
    answer = twin.ask("/robots.txt")
    assert answer.text == f"{FORBIDDING}\n{LINE}"
    assert (answer.header("x-own"), answer.header("etag")) == ("kept", None)
    assert answer.header("content-length") == str(len(answer.body))
    assert twin.locs() == ["https://example.com/", "https://example.com/public"]
    assert twin.app.explain("/private").reason == "the app's own robots.txt forbids it"


def test_that_of_an_app_that_ends_once_its_client_has_left_is_obeyed() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": FORBIDDING.encode()})
        while (await receive())["type"] != "http.disconnect":
            pass  # as Quart does from 0.23 on

    wrapped = SitemapMiddleware(app, store="memory://", base_url="https://example.com", include=("/", "/private"))
    assert locs(asgi(wrapped, Ask("/sitemap.xml")).body) == ["https://example.com/"]


@BOTH
def test_a_change_of_it_counts_once_max_age_has_passed(protocol: str) -> None:
    twin = site(protocol, Page(200, TEXT, FORBIDDING.encode()), max_age=60)
    assert len(twin.locs()) == 2
    twin.pages["/robots.txt"] = Page(200, TEXT, b"User-agent: *\nDisallow: /public\n")
    twin.clock.pass_(59)
    assert "https://example.com/public" in twin.locs()
    twin.clock.pass_(1)
    assert twin.locs() == ["https://example.com/", "https://example.com/private"]
    twin.pages["/robots.txt"] = Page(503, TEXT, b"")
    twin.clock.pass_(60)
    assert twin.locs() == ["https://example.com/", "https://example.com/private"], "what cannot be had is as it was"
    twin.pages["/robots.txt"] = Page(404, TEXT, b"")
    twin.clock.pass_(60)
    assert len(twin.locs()) == 3


@BOTH
@pytest.mark.parametrize(
    "robots",
    [
        Page(200, TEXT, f"{FORBIDDING}{LINE}".encode()),
        Page(200, [("content-type", "text/html")], b"<p>A page.</p>"),
        Page(200, [*TEXT, ("content-encoding", "gzip")], b"\x1f\x8b"),
        Page(301, [("location", "https://example.org/robots.txt")], b""),
        Page(500, TEXT, b"broken"),
    ],
    ids=["has a Sitemap line", "a page", "encoded", "a redirect", "a failure"],
)
def test_what_needs_no_line_or_is_no_robots_txt_is_the_apps_to_answer(protocol: str, robots: Page) -> None:
    twin = site(protocol, robots)
    answer = twin.ask("/robots.txt")
    assert (answer.status, answer.body) == (robots.status, robots.body)


@BOTH
def test_robots_false_turns_both_off(protocol: str) -> None:
    twin = Twin(
        protocol,
        {"/": Page(), "/private": Page(), "/robots.txt": Page(200, TEXT, FORBIDDING.encode())},
        robots=False,
    )
    assert twin.ask("/robots.txt").text == FORBIDDING
    assert len(twin.locs()) == 2


@BOTH
def test_below_a_root_path_there_is_none_of_ours(protocol: str) -> None:
    twin = site(protocol)
    assert twin.ask("/robots.txt", root="/shop").status == 404


@BOTH
def test_a_host_that_is_not_known_gets_what_the_app_says(protocol: str) -> None:
    twin = Twin(protocol, {"/": Page()}, allowed_hosts="example.com")
    assert twin.ask("/robots.txt", host="evil.example").status == 404
    assert twin.ask("/robots.txt", host="example.com").status == 200


def test_an_app_of_no_known_framework_is_asked_as_a_crawler_asks() -> None:
    asked: list[dict[str, Any]] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] != "/robots.txt":
            start_response("200 OK", [("Content-Type", "text/html")])
            return [b"home"]
        asked.append(environ)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [FORBIDDING.encode()]

    wrapped = SitemapMiddleware(app, store="memory://", base_url="https://example.com", include=["/", "/private"])
    answer = wsgi(wrapped, Ask("/sitemap.xml", headers=[("cookie", "me=1")]))
    assert b"/private" not in answer.body
    (environ,) = asked
    assert environ["HTTP_USER_AGENT"] == "sitemap-middleware"
    assert environ["HTTP_HOST"] == "testserver"
    assert "HTTP_COOKIE" not in environ


def test_an_asgi_app_that_fails_when_asked_forbids_nothing() -> None:
    async def app(scope: dict[str, Any], _: Any, send: Any) -> None:
        if scope["path"] == "/robots.txt":
            raise RuntimeError("no robots here")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"home"})

    wrapped = SitemapMiddleware(app, store="memory://", base_url="https://example.com", include="/")
    assert b"<loc>https://example.com/</loc>" in asgi(wrapped, Ask("/sitemap.xml")).body
