"""robots.txt: the app's own is obeyed and gets a Sitemap line; if the app has none, a minimal one is served."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.responses import FileResponse, HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.documents.robots import RETRY_SECONDS
from sitemap_middleware.http.robots_parser import (
    MAX_ROBOTS_BYTES,
    RobotsRules,
    minimal_robots,
    with_sitemap,
)
from sitemap_middleware.stores.sqlite import MemoryStore

from ..support.documents import locs
from ..support.sample_sites import Page, SampleSite
from ..support.wire import DRIVERS, Answer, RequestSpec, asgi, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
TEXT = [("content-type", "text/plain")]
LINE = "Sitemap: https://example.com/sitemap.xml\n"
FORBIDDING = "User-agent: *\nDisallow: /private\n"


def site(protocol: str, robots: Page | None = None, **options: Any) -> SampleSite:
    pages = {"/": Page(), "/private": Page(), "/public": Page()}
    if robots is not None:
        pages["/robots.txt"] = robots
    return SampleSite(protocol, pages, base_url="https://example.com", **options)


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
    assert RobotsRules(text).allows("https://example.com/page") is allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "\nSitemap: x\n"),
        ("User-agent: *", "User-agent: *\n\nSitemap: x\n"),
        ("User-agent: *\n", "User-agent: *\n\nSitemap: x\n"),
        ("User-agent: *\r", "User-agent: *\r\nSitemap: x\n"),
        ("User-agent: *\rSitemap: y\r", "User-agent: *\rSitemap: y\r"),
        ("sitemap : y", "sitemap : y"),
        ("User-agent: *\n Sitemap: y\n", "User-agent: *\n Sitemap: y\n"),
    ],
)
def test_missing_sitemap_line_is_added(text: str, expected: str) -> None:
    assert with_sitemap(text, "x") == expected


@BOTH
def test_an_app_without_one_gets_a_minimal_one(protocol: str) -> None:
    sample = site(protocol)
    answer = sample.request("/robots.txt")
    assert (answer.status, answer.text) == (200, minimal_robots("https://example.com/sitemap.xml"))
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert answer.header("cache-control") == "public, max-age=300"
    head = sample.request("/robots.txt", method="HEAD")
    assert (head.body, head.header("content-length")) == (b"", str(len(answer.body)))
    assert sample.request("/robots.txt", method="POST").status == 404


@BOTH
def test_robots_txt_of_the_app_is_obeyed_and_given_a_sitemap_line(protocol: str) -> None:
    sample = site(protocol, Page(200, [*TEXT, ("x-own", "kept"), ("etag", '"old"')], FORBIDDING.encode()))
    answer = sample.request("/robots.txt")
    assert answer.text == f"{FORBIDDING}\n{LINE}"
    assert (answer.header("x-own"), answer.header("etag")) == ("kept", None)
    assert answer.header("content-length") == str(len(answer.body))
    assert sample.locs() == ["https://example.com/", "https://example.com/public"]
    assert sample.app.explain("/private").reason == "the app's robots.txt disallows it"


@BOTH
def test_a_change_of_it_counts_once_max_age_has_passed(protocol: str) -> None:
    sample = site(protocol, Page(200, TEXT, FORBIDDING.encode()), max_age=60)
    assert len(sample.locs()) == 2
    sample.pages["/robots.txt"] = Page(200, TEXT, b"User-agent: *\nDisallow: /public\n")
    sample.clock.pass_(59)
    assert "https://example.com/public" in sample.locs()
    sample.clock.pass_(1)
    assert sample.locs() == ["https://example.com/", "https://example.com/private"]
    sample.pages["/robots.txt"] = Page(503, TEXT, b"")
    sample.clock.pass_(60)
    assert sample.locs() == ["https://example.com/", "https://example.com/private"], (
        "a failed request keeps the known rules"
    )
    sample.pages["/robots.txt"] = Page(404, TEXT, b"")
    sample.clock.pass_(60)
    assert len(sample.locs()) == 3


@BOTH
@pytest.mark.parametrize(
    "robots",
    [
        Page(200, TEXT, f"{FORBIDDING}{LINE}".encode()),
        Page(200, [*TEXT, ("content-encoding", "gzip")], b"\x1f\x8b"),
        Page(301, [("location", "https://example.org/robots.txt")], b""),
        Page(500, TEXT, b"broken"),
    ],
    ids=["has a Sitemap line", "encoded", "a redirect", "a failure"],
)
def test_unsuitable_robots_txt_is_left_to_the_app(protocol: str, robots: Page) -> None:
    sample = site(protocol, robots)
    answer = sample.request("/robots.txt")
    assert (answer.status, answer.body) == (robots.status, robots.body)


@BOTH
def test_robots_false_turns_both_off(protocol: str) -> None:
    sample = SampleSite(
        protocol,
        {"/": Page(), "/private": Page(), "/robots.txt": Page(200, TEXT, FORBIDDING.encode())},
        robots=False,
    )
    assert sample.request("/robots.txt").text == FORBIDDING
    assert len(sample.locs()) == 2


# As crawlers read it

DISALLOWED = (
    *[
        ("/fish", path, False)
        for path in ("/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fish.php?id=any")
    ],
    *[("/fish", path, True) for path in ("/Fish.asp", "/catfish", "/?id=fish", "/desert/fish")],
    *[("/fish*", path, False) for path in ("/fish", "/fishheads/yummy.html", "/fish.php?id=any")],
    *[("/fish*", path, True) for path in ("/Fish.asp", "/catfish")],
    *[("/fish/", path, False) for path in ("/fish/", "/fish/?id=any", "/fish/salmon.htm")],
    *[("/fish/", path, True) for path in ("/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp")],
    *[("/*.php", path, False) for path in ("/index.php", "/folder/filename.php?parameters", "/filename.php/")],
    *[("/*.php", path, True) for path in ("/", "/windows.PHP")],
    *[("/*.php$", path, False) for path in ("/filename.php", "/folder/filename.php")],
    *[("/*.php$", path, True) for path in ("/filename.php?parameters", "/filename.php/", "/filename.php5")],
    *[("/fish*.php", path, False) for path in ("/fish.php", "/fishheads/catfish.php?parameters")],
    *[("/foo/bar/ツ", path, False) for path in ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84")],
    ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84", False),
    ("/foo/bar/%62%61%7A", "/foo/bar/baz", False),
    ("/%7ejoe", "/~joe", False),
    ("fish", "/fish", True),
)
"""What a rule forbids, as Google documents it, and percent-encoding as RFC 9309 has it; and whether that is allowed."""


@pytest.mark.parametrize(("rule", "path", "allowed"), DISALLOWED)
def test_rules_match_as_google_documents(rule: str, path: str, *, allowed: bool) -> None:
    assert RobotsRules(f"user-agent: *\ndisallow: {rule}\n").allows(f"https://example.com{path}") is allowed


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("user-agent: *\nallow: /p\ndisallow: /", "/page", True),
        ("user-agent: *\nallow: /folder\ndisallow: /folder", "/folder/page", True),
        ("user-agent: *\nallow: /page\ndisallow: /*.htm", "/page.htm", False),
        ("user-agent: *\nallow: /$\ndisallow: /", "/", True),
        ("user-agent: *\nallow: /$\ndisallow: /", "/page", False),
        ("USER-AGENT: GOOGLEBOT\nDISALLOW: /", "/a", False),
        ("user-agent: Googlebot/2.1\ndisallow: /", "/a", False),
        ("user-agent: Googlebot*\ndisallow: /", "/a", False),
        ("user-agent: * # everyone\ndisallow: /", "/a", False),
        ("user-agent *\ndisallow /", "/a", False),
        ("user-agent: Google\ndisallow: /", "/a", True),
        ("user-agent: Googlebot-News\ndisallow: /", "/a", True),
        ("user-agent:\ndisallow: /", "/a", True),
        ("user-agent: a\nuser-agent: bingbot\ndisallow: /", "/a", False),
        ("user-agent: googlebot\ndisallow: /a\n\nuser-agent: *\nuser-agent: googlebot\ndisallow: /c", "/a", False),
        ("user-agent: googlebot\ndisallow: /a\n\nuser-agent: *\nuser-agent: googlebot\ndisallow: /c", "/c", False),
        ("user-agent: *\ndisallow: /\n\nuser-agent: googlebot\nuser-agent: bingbot\nallow: /", "/a", True),
        ("disallow: /", "/a", True),
        ("user-agent: *\rdisallow: /a\rdisallow: /b", "/b", False),
        ("user-agent: *\r\ndisallow: /a\r\n", "/a", False),
        ("junk\nuser-agent: *\n<p>: junk\ndisallow: /a # why\n", "/a", False),
    ],
)
def test_groups_are_read_as_crawlers_read_them(text: str, path: str, *, allowed: bool) -> None:
    assert RobotsRules(text).allows(f"https://example.com{path}") is allowed


FORBIDS = FORBIDDING.encode()
GZIPPED = gzip.compress(FORBIDS)
UTF16 = [("content-type", "text/plain; charset=utf-16")]
LONG = FORBIDS + b"# filler\n" * (MAX_ROBOTS_BYTES // 9) + b"Disallow: /public\n"
HALF = FORBIDS + b"#" * (MAX_ROBOTS_BYTES - len(FORBIDS) - 12) + b"\nDisallow: /public\n"  # cut within the last line
READ = {
    "text": Page(200, TEXT, FORBIDS),
    "a view that returns a str": Page(200, [("content-type", "text/html; charset=utf-8")], FORBIDS),
    "no type": Page(200, [], FORBIDS),
    "a file of unknown type": Page(200, [("content-type", "application/octet-stream")], FORBIDS),
    "markdown": Page(200, [("content-type", "text/markdown")], FORBIDS),
    "JSON by its type": Page(200, [("content-type", "application/json")], FORBIDS),
    "a charset that there is not": Page(200, [("content-type", "text/plain; charset=nonsense")], FORBIDS),
    "a charset that is none of text": Page(200, [("content-type", "text/plain; charset=hex")], FORBIDS),
    "ASCII": Page(200, [("content-type", "text/plain; charset=us-ascii")], FORBIDS),
    "a byte order mark": Page(200, TEXT, b"\xef\xbb\xbf" + FORBIDS),
    "UTF-16 by its mark": Page(200, TEXT, FORBIDDING.encode("utf-16")),
    "UTF-16 by its charset": Page(200, UTF16, FORBIDDING.encode("utf-16")),
    "UTF-16 from a Mac": Page(200, TEXT, b"\xfe\xff" + FORBIDDING.encode("utf-16-be")),
    "Latin-1": Page(200, [("content-type", "text/plain; charset=latin-1")], "# für alle\n".encode("latin-1") + FORBIDS),
    "bytes that are not UTF-8": Page(200, TEXT, b"# f\xfcr alle\n" + FORBIDS),
    "line ends of one CR": Page(200, TEXT, FORBIDS.replace(b"\n", b"\r")),
    "line ends of Windows": Page(200, TEXT, FORBIDS.replace(b"\n", b"\r\n")),
    "gzip": Page(200, [*TEXT, ("content-encoding", "gzip")], GZIPPED),
    "GZIP": Page(200, [*TEXT, ("content-encoding", "GZIP")], GZIPPED),
    "x-gzip": Page(200, [*TEXT, ("content-encoding", "x-gzip")], GZIPPED),
    "deflate": Page(200, [*TEXT, ("content-encoding", "deflate")], zlib.compress(FORBIDS)),
    "bare deflate": Page(200, [*TEXT, ("content-encoding", "deflate")], zlib.compress(FORBIDS, wbits=-15)),
    "gzip, twice": Page(200, [*TEXT, ("content-encoding", "gzip, gzip")], gzip.compress(GZIPPED)),
    "identity": Page(200, [*TEXT, ("content-encoding", "identity")], FORBIDS),
    "too long": Page(200, TEXT, LONG),
    "cut in the middle of a rule": Page(200, TEXT, HALF),
    "endless": Page(200, TEXT, FORBIDS + b"# filler\n" * 1_000_000),
    "too long once it is decompressed": Page(
        200, [*TEXT, ("content-encoding", "gzip")], gzip.compress(FORBIDS + b"\n" * 100_000_000)
    ),
    "among markup": Page(200, TEXT, b"<!doctype html>\n" + FORBIDS),
}


@BOTH
@pytest.mark.parametrize("robots", READ.values(), ids=READ)
def test_rules_are_obeyed_however_they_are_served(protocol: str, robots: Page) -> None:
    sample = site(protocol, robots, verify=False)
    assert sample.locs() == ["https://example.com/", "https://example.com/public"]


NO_RULES = {
    "nothing": Page(200, TEXT, b""),
    "not found": Page(404, TEXT, FORBIDS),
    "gone": Page(410, TEXT, FORBIDS),
    "not allowed": Page(403, TEXT, FORBIDS),
    "for members": Page(401, TEXT, FORBIDS),
    "no content": Page(204, [], b""),
    "a page for every path": Page(
        200, [("content-type", "text/html")], b"<!doctype html><title>App</title><p>Disallow: /"
    ),
    "a page that quotes a rule": Page(200, TEXT, b"<pre>User-agent: * Disallow: /</pre>"),
    "JSON": Page(200, [("content-type", "application/json")], b'{"user-agent": "*",\n "disallow": "/"}'),
    "bytes": Page(200, TEXT, bytes(range(256)) * 10),
}


@BOTH
@pytest.mark.parametrize("robots", NO_RULES.values(), ids=NO_RULES)
def test_what_crawlers_find_no_rules_in_forbids_nothing(protocol: str, robots: Page) -> None:
    assert len(site(protocol, robots, verify=False).locs()) == 3


# Redirects


def moved(location: str, status: int = 302) -> Page:
    return Page(status, [("location", location)], b"")


def around_robots(protocol: str, more: dict[str, Page], **options: Any) -> SampleSite:
    pages = {"/": Page(), "/private": Page(), "/static/robots.txt": Page(200, TEXT, FORBIDS), **more}
    options = {"base_url": "https://example.com", "verify": False, "exclude": "/static/*"} | options
    return SampleSite(protocol, pages, **options)


@BOTH
@pytest.mark.parametrize(
    "target",
    [
        "/static/robots.txt",
        "static/robots.txt",
        "/static/robots%2Etxt",
        "/static/../static/robots.txt",
        "http://www.example.com/static/robots.txt",
        "//www.example.com/static/robots.txt",
        "https://example.com/static/robots.txt",
        "https://www.example.com:443/static/robots.txt#rules",
        "HTTP://EXAMPLE.COM/static/robots.txt",
    ],
)
def test_a_redirect_within_the_site_is_followed(protocol: str, target: str) -> None:
    assert around_robots(protocol, {"/robots.txt": moved(target)}).locs() == ["https://example.com/"]


@BOTH
@pytest.mark.parametrize(
    "target",
    [
        *("https://example.org/static/robots.txt", "//evil.example/static/robots.txt", "ftp://example.com/robots.txt"),
        *("/static/robots.txt?v=1", "https://exa_mple/x", "javascript:robots"),
    ],
)
def test_redirect_to_another_site_is_not_followed_and_logged_once(
    protocol: str, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    sample = around_robots(protocol, {"/robots.txt": moved(target)}, max_age=0)
    for _ in range(3):
        assert sample.locs() == ["https://example.com/", "https://example.com/private"]
    assert len([message for message in caplog.messages if "redirects to" in message and target in message]) == 1


@BOTH
@pytest.mark.parametrize(("hops", "obeyed"), [(1, True), (5, True), (6, False), (50, False)])
def test_five_redirects_are_followed(protocol: str, hops: int, *, obeyed: bool) -> None:
    pages = {"/robots.txt": moved("/static/r1", 301)}
    pages |= {
        f"/static/r{number}": moved(f"/static/r{number + 1}", (302, 303, 307, 308)[number % 4])
        for number in range(1, hops)
    }
    pages[f"/static/r{hops}"] = Page(200, TEXT, FORBIDS)
    assert ("https://example.com/private" not in around_robots(protocol, pages).locs()) is obeyed


def secure(protocol: str, *, by_header: bool) -> Any:
    """An app that redirects every other scheme to https."""

    def where(scheme: str, forwarded: str) -> bool:
        return (forwarded if by_header else scheme) == "https"

    def wsgi_app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if not where(environ["wsgi.url_scheme"], environ.get("HTTP_X_FORWARDED_PROTO", "")):
            start_response("301 Moved", [("Location", f"https://{environ['HTTP_HOST']}{environ['PATH_INFO']}")])
            return [b""]
        start_response("200 OK", [("Content-Type", "text/html")])
        return [FORBIDS if environ["PATH_INFO"] == "/robots.txt" else b"<p>A page."]

    async def asgi_app(scope: dict[str, Any], _: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        status, sent, body = 200, [(b"content-type", b"text/html")], FORBIDS
        if not where(scope["scheme"], headers.get("x-forwarded-proto", "")):
            status, sent, body = 301, [(b"location", f"https://{headers['host']}{scope['path']}".encode())], b""
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    return wsgi_app if protocol == "wsgi" else asgi_app


@BOTH
@pytest.mark.parametrize("by_header", [False, True], ids=["by the scheme", "by a header"])
def test_robots_txt_behind_a_redirect_to_https_is_obeyed(protocol: str, *, by_header: bool) -> None:
    app = SitemapMiddleware(
        secure(protocol, by_header=by_header),
        store="memory://",
        base_url="https://example.com",
        include=("/", "/private"),
        verify=False,
    )
    assert locs(DRIVERS[protocol](app, RequestSpec("/sitemap.xml")).body) == ["https://example.com/"]


# What fails


@BOTH
@pytest.mark.parametrize("status", [429, 500, 502, 503, 599])
def test_initial_failure_blocks_the_sitemap_and_is_retried_soon(
    protocol: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    sample = site(protocol, Page(status, TEXT, b""), verify=False)
    answer = sample.request("/sitemap.xml")
    assert (answer.status, answer.header("retry-after")) == (503, "60")
    assert "robots.txt" in answer.text
    sample.pages["/robots.txt"] = Page(200, TEXT, FORBIDS)
    assert sample.request("/sitemap.xml").status == 503
    sample.clock.pass_(RETRY_SECONDS)
    assert sample.locs() == ["https://example.com/", "https://example.com/public"]
    assert [
        str(status) in message and "robots=False" in message for message in caplog.messages if "robots.txt" in message
    ] == [True]


@BOTH
@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("before", [FORBIDS, b""], ids=["rules", "none"])
def test_later_failure_keeps_the_known_rules_also_after_a_restart(protocol: str, status: int, before: bytes) -> None:
    store = MemoryStore()
    sample = site(protocol, Page(200, TEXT, before), verify=False, store=store)
    listed = sample.locs()
    assert len(listed) == (2 if before else 3)
    sample.pages["/robots.txt"] = Page(status, TEXT, b"")
    sample.clock.pass_(10_000)
    assert sample.locs() == listed
    restarted = site(protocol, Page(status, TEXT, b""), verify=False, store=store, clock=sample.clock)
    assert restarted.app.explain("/private").listed is not bool(before), "before any request"
    assert restarted.locs() == listed


def test_a_view_of_robots_txt_that_raises_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: Any) -> Any:
        raise RuntimeError("no robots now")

    app = Starlette(routes=[Route("/", lambda _: None), Route("/robots.txt", fail)])
    app.add_middleware(SitemapMiddleware, store="memory://", base_url="https://example.com", verify=False)
    assert asgi(app, RequestSpec("/sitemap.xml")).status == 503


@BOTH
def test_a_compression_that_cannot_be_read_is_a_failure(protocol: str) -> None:
    for coding, body in (
        ("br", FORBIDS),
        ("mystery", FORBIDS),
        ("gzip", FORBIDS),
        ("gzip", GZIPPED[:-9]),
        ("deflate", b"\xff"),
    ):
        sample = site(protocol, Page(200, [*TEXT, ("content-encoding", coding)], body), verify=False)
        assert sample.request("/sitemap.xml").status == 503
        assert sample.request("/robots.txt").body == body


@BOTH
def test_warning_names_the_failure_its_consequence_and_the_fix(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    fix = "make it answer with rules or with 404, or pass robots=False to SitemapMiddleware to ignore it"
    unknown = site(protocol, Page(503, TEXT, b""), verify=False)
    unknown.request("/sitemap.xml")
    assert caplog.messages == [f"the app's robots.txt fails (status 503), so there is no sitemap until it works: {fix}"]
    caplog.clear()
    known = site(protocol, Page(200, TEXT, FORBIDS), verify=False)
    known.request("/sitemap.xml")
    known.pages["/robots.txt"] = Page(200, [*TEXT, ("content-encoding", "mystery")], FORBIDS)
    for _ in range(3):
        known.clock.pass_(10_000)
        known.request("/sitemap.xml")
    assert caplog.messages == [
        f"the app's robots.txt fails (its compression is unknown), so its previous rules apply: {fix}"
    ]


@pytest.mark.parametrize("known_host", ["example.com", "backend:8000"])
def test_app_that_knows_one_host_only_gets_its_robots_txt_obeyed_and_extended(known_host: str) -> None:
    """A proxy may rewrite Host; the app may answer 400 to any other host."""
    pages = {"/robots.txt": ("text/plain", FORBIDS), "/public": ("text/html", b"<p>Open.")}

    def app(environ: Any, start_response: Any) -> list[bytes]:
        found = pages.get(environ["PATH_INFO"]) if environ["HTTP_HOST"] == known_host else None
        start_response(
            "200 OK" if found else "400 Bad Request", [("Content-Type", found[0] if found else "text/plain")]
        )
        return [found[1] if found else b"unknown host"]

    wrapped = SitemapMiddleware(
        app, store="memory://", base_url="https://example.com", include=("/public", "/private"), verify=False
    )
    asked = RequestSpec("/sitemap.xml", host=known_host, scheme="https" if known_host == "example.com" else "http")
    assert locs(wsgi(wrapped, asked).body) == ["https://example.com/public"]
    answer = wsgi(wrapped, RequestSpec("/robots.txt", host=known_host))
    assert (answer.status, answer.text) == (200, f"{FORBIDS.decode().rstrip()}\n\n{LINE}")


# Only if there is a sitemap


@BOTH
def test_an_app_of_no_known_routes_gets_one_warning_with_the_cure(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = SitemapMiddleware(secure(protocol, by_header=False), store="memory://", base_url="https://example.com")
    for _ in range(2):
        assert DRIVERS[protocol](app, RequestSpec("/robots.txt", scheme="https")).body == FORBIDS
        assert DRIVERS[protocol](app, RequestSpec("/sitemap.xml", scheme="https")).status == 404
    assert ["routes=app" in message for message in caplog.messages] == [True]


def test_robots_txt_of_a_middleware_before_the_routes_is_obeyed() -> None:
    app = flask.Flask("site", static_folder=None)
    for path in ("/", "/private"):
        app.add_url_rule(path, path, lambda: "A page.")
    inner = app.wsgi_app

    def files(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] == "/robots.txt":
            start_response("200 OK", TEXT)
            return [FORBIDS]
        return inner(environ, start_response)

    files.app = app  # type: ignore[attr-defined]
    wrapped = SitemapMiddleware(files, store="memory://", base_url="https://example.com", verify=False)
    assert locs(wsgi(wrapped, RequestSpec("/sitemap.xml")).body) == ["https://example.com/"]


@pytest.mark.parametrize("hook", [True, False], ids=["a hook before requests", "a catch-all"])
def test_robots_txt_of_flask_without_a_route_for_it_is_obeyed(*, hook: bool) -> None:
    app = flask.Flask("site", static_folder=None)
    for path in ("/", "/private"):
        app.add_url_rule(path, path, lambda: "A page.")

    def robots(path: str = "") -> Any:
        return FORBIDDING if flask.request.path == "/robots.txt" else None

    if hook:
        app.before_request(robots)
    else:
        app.add_url_rule("/<path:path>", "file", robots)
    wrapped = SitemapMiddleware(app, store="memory://", base_url="https://example.com", verify=False)
    assert locs(wsgi(wrapped, RequestSpec("/sitemap.xml")).body) == ["https://example.com/"]


# What visitors get

Rules = Callable[[str, dict[str, str], str], tuple[int, list[tuple[str, str]], bytes]]
"""An app's robots.txt by the method, the headers and the query of a request."""


def answering(protocol: str, rules: Rules) -> SitemapMiddleware:
    """An app whose robots.txt depends on the request."""

    def response(
        path: str, method: str, headers: dict[str, str], query: str
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        if path == "/robots.txt":
            return rules(method, headers, query)
        return 200, [("Content-Type", "text/html")], b"<p>A page."

    def wsgi_app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        sent = {key[5:].replace("_", "-").lower(): text for key, text in environ.items() if key.startswith("HTTP_")}
        status, headers, body = response(environ["PATH_INFO"], environ["REQUEST_METHOD"], sent, environ["QUERY_STRING"])
        start_response(f"{status} Status", headers)
        yield body[:5]
        yield body[5:]

    async def asgi_app(scope: dict[str, Any], _: Any, send: Any) -> None:
        sent = {name.decode(): text.decode() for name, text in scope["headers"]}
        status, headers, body = response(scope["path"], scope["method"], sent, scope["query_string"].decode())
        coded = [(name.lower().encode(), text.encode()) for name, text in headers]
        await send({"type": "http.response.start", "status": status, "headers": coded})
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})

    app: Any = wsgi_app if protocol == "wsgi" else asgi_app
    return SitemapMiddleware(app, store="memory://", base_url="https://example.com", include="/", verify=False)


def by_visitor(method: str, headers: dict[str, str], query: str) -> tuple[int, list[tuple[str, str]], bytes]:
    if headers.get("if-none-match") == '"v1"':
        return 304, [("ETag", '"v1"')], b""
    if "gptbot" in headers.get("user-agent", "").lower():
        body = b"User-agent: *\nDisallow: /\n"
    else:
        body = f"# for {headers.get('cookie', 'anybody')} {query}\n".encode() + FORBIDS
    sent = [*TEXT, ("ETag", '"v1"'), ("Content-Length", str(len(body)))]
    sent += [("Set-Cookie", f"{name}={headers['cookie']}; Path=/") for name in ("a", "b") if "cookie" in headers]
    if "gzip" in headers.get("accept-encoding", ""):
        body = gzip.compress(body)
        sent = [*TEXT, ("Content-Encoding", "gzip"), ("Content-Length", str(len(body)))]
    return 200, sent, b"" if method == "HEAD" else body


@BOTH
def test_the_visitors_own_request_reaches_the_app(protocol: str) -> None:
    app = answering(protocol, by_visitor)

    def get(**changes: Any) -> Answer:
        return DRIVERS[protocol](app, RequestSpec("/robots.txt", **changes))

    plain = get(query="x=1")
    assert plain.text == f"# for anybody x=1\n{FORBIDDING}\n{LINE}"
    assert (plain.header("etag"), plain.header("set-cookie")) == (None, None)
    alice = get(headers=[("cookie", "alice")])
    assert alice.text == f"# for alice \n{FORBIDDING}\n{LINE}"
    assert [text for name, text in alice.headers if name == "set-cookie"] == ["a=alice; Path=/", "b=alice; Path=/"]
    assert get(headers=[("user-agent", "GPTBot/1.2")]).text == f"User-agent: *\nDisallow: /\n\n{LINE}"
    same = get(headers=[("if-none-match", '"v1"')])
    assert (same.status, same.body, same.header("etag")) == (304, b"", '"v1"')
    zipped = get(headers=[("accept-encoding", "gzip")])
    assert (zipped.text, zipped.header("content-encoding")) == (f"# for anybody \n{FORBIDDING}\n{LINE}", None)
    assert [answer.header("content-length") for answer in (plain, alice, zipped)] == [
        str(len(answer.body)) for answer in (plain, alice, zipped)
    ]
    head = get(method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert get(method="POST").text == f"# for anybody \n{FORBIDDING}"


@BOTH
def test_what_is_no_robots_txt_for_one_visitor_alone_is_left_to_the_app(protocol: str) -> None:
    def rules(_: str, headers: dict[str, str], query: str) -> tuple[int, list[tuple[str, str]], bytes]:
        if "blocked" in headers.get("user-agent", ""):
            return 403, TEXT, b"no"
        if query:
            return 302, [*TEXT, ("Location", "/sign-in?next=/robots.txt")], b""
        return (200, TEXT, FORBIDS) if "cookie" not in headers else (200, [("Content-Type", "text/html")], b"<p>Hi")

    app = answering(protocol, rules)
    for changes, status, body in (
        ({"headers": [("user-agent", "blocked")]}, 403, b"no"),
        ({"query": "x"}, 302, b""),
        ({"headers": [("cookie", "a=b")]}, 200, b"<p>Hi"),
    ):
        answer = DRIVERS[protocol](app, RequestSpec("/robots.txt", **changes))  # type: ignore[arg-type]
        assert (answer.status, answer.body) == (status, body)


def locale_starlette() -> Any:
    return Starlette(routes=[Route("/about", html), Route("/{lang}/", html)])


def page_starlette() -> Any:
    return Starlette(routes=[Route("/about", html), Route("/{page}", html)])


async def html(_: Any) -> HTMLResponse:
    return HTMLResponse("<h1>A page</h1>")


def locale_flask() -> Any:
    return flask_of("/<lang>/", "<h1>Start</h1>")


def page_flask() -> Any:
    return flask_of("/<page>", "A page without markup")


def own_page_flask() -> Any:
    return flask_of("/robots.txt", "<h1>About robots</h1>")


def refusing_flask() -> Any:
    return flask_of("/<page>", ("no", 403))


def sign_in_flask() -> Any:
    return flask_of("/<page>", ("", 302, [("Location", "/sign-in?next=/robots.txt")]))


def lost_flask() -> Any:
    return flask_of("/<page>", ("", 302, [("Location", "/v1/robots.txt")]))


def flask_of(rule: str, answer: Any) -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/about", "about", lambda: "<h1>About</h1>")
    app.add_url_rule(rule, "any", lambda **_: answer)
    return app


@pytest.mark.parametrize(
    ("create", "route"),
    [
        (locale_starlette, "/{lang}/"),
        (page_starlette, "/{page}"),
        (locale_flask, "/<lang>/"),
        (page_flask, "/<page>"),
        (own_page_flask, "/robots.txt"),
        (refusing_flask, "/<page>"),
        (sign_in_flask, "/<page>"),
        (lost_flask, "/<page>"),
    ],
)
def test_what_is_no_robots_txt_is_replaced_and_logged_once(
    create: Callable[[], Any], route: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = SitemapMiddleware(create(), store="memory://", base_url="https://example.com")
    get = DRIVERS["asgi" if "starlette" in create.__name__ else "wsgi"]
    for method in ("GET", "HEAD", "GET"):
        answer = get(app, RequestSpec("/robots.txt", method=method))
        expected = minimal_robots("https://example.com/sitemap.xml")
        assert (answer.status, answer.header("content-length")) == (200, str(len(expected)))
        assert answer.text == ("" if method == "HEAD" else expected)
        assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert [f"(route {route}, " in message for message in caplog.messages if "is no robots.txt" in message] == [True]
    app.flush()
    assert locs(get(app, RequestSpec("/sitemap.xml")).body) == ["https://example.com/about"]
    assert app.explain("/robots.txt").reason == "it is robots.txt, which is no page"


def test_a_redirect_that_leads_to_a_robots_txt_is_the_apps(caplog: pytest.LogCaptureFixture) -> None:
    sample = around_robots("wsgi", {"/robots.txt": moved("/static/robots.txt")})
    answer = sample.request("/robots.txt")
    assert (answer.status, answer.header("location")) == (302, "/static/robots.txt")
    assert sample.locs() == ["https://example.com/"]
    assert not caplog.messages


@pytest.mark.parametrize("target", ["http://[", "//", "", "?", "https://example.org/robots.txt?v=1"])
def test_a_malformed_or_foreign_redirect_harms_no_sitemap(target: str) -> None:
    sample = around_robots("asgi", {"/robots.txt": moved(target)})
    replaced = not target.startswith("https")
    for _ in range(2):
        assert sample.request("/robots.txt").status == (200 if replaced else 302)
        assert sample.locs() == ["https://example.com/", "https://example.com/private"]


@BOTH
def test_a_robots_txt_longer_than_crawlers_read_passes_unchanged(protocol: str) -> None:
    body = FORBIDS + b"# filler\n" * MAX_ROBOTS_BYTES
    assert site(protocol, Page(200, TEXT, body)).request("/robots.txt").body == body


def test_a_file_that_the_server_is_to_send_gets_the_line(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(FORBIDDING)

    async def robots(_: Any) -> FileResponse:
        return FileResponse(file)

    app = SitemapMiddleware(
        Starlette(routes=[Route("/", html), Route("/robots.txt", robots)]),
        store="memory://",
        base_url="https://example.com",
    )
    sent: list[Any] = []

    async def ask() -> None:
        async def receive() -> Any:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "scheme": "https",
            "path": "/robots.txt",
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"example.com")],
            "extensions": {"http.response.pathsend": {}},
        }
        await app(scope, receive, send)  # type: ignore[misc, call-arg]

    asyncio.run(ask())
    assert [message.get("body") for message in sent] == [None, f"{FORBIDDING}\n{LINE}".encode()]
