"""robots.txt: the app's own is obeyed and gets a Sitemap line; if the app has none, a minimal one is served."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.httpsredirect import HTTPSRedirectMiddleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.documents.robots import RETRY_SECONDS
from sitemap_middleware.http.messages import MAX_PROBE_BYTES
from sitemap_middleware.http.robots_parser import (
    MAX_ROBOTS_BYTES,
    RobotsRules,
    decode_robots,
    minimal_robots,
    with_sitemap,
)
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.documents import locs
from ...support.sample_sites import Page, SampleSite
from ...support.wire import BOTH, DRIVERS, Answer, RequestSpec, asgi, wsgi

HOME = "https://example.com/"
TEXT = [("content-type", "text/plain")]
LINE = "Sitemap: https://example.com/sitemap.xml\n"
FORBIDDING = "User-agent: *\nDisallow: /private\n"


def site(protocol: str, robots: Page | None = None, **options: Any) -> SampleSite:
    pages = {"/": Page(), "/private": Page(), "/public": Page()}
    if robots is not None:
        pages["/robots.txt"] = robots
    return SampleSite(protocol, pages, base_url="https://example.com", **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User-agent: *", "User-agent: *\n\nSitemap: x\n"),
        ("User-agent: *\r", "User-agent: *\r\nSitemap: x\n"),
        ("User-agent: *\rSitemap: y\r", None),
        ("sitemap : y", None),
    ],
)
def test_missing_sitemap_line_is_added(text: str, expected: str | None) -> None:
    assert with_sitemap(text.encode(), "text/plain", "x") == (expected and expected.encode())


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
    sample = site(protocol, Page(200, TEXT, FORBIDDING.encode()), verify=True)  # nobody visits, and nobody asks
    sample.locs()
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
    sample.pages["/robots.txt"] = Page(404, TEXT, b"")
    sample.clock.pass_(60)
    assert len(sample.locs()) == 3


@BOTH
def test_robots_false_turns_both_off(protocol: str) -> None:
    sample = SampleSite(
        protocol, {"/": Page(), "/private": Page(), "/robots.txt": Page(200, TEXT, FORBIDDING.encode())}, robots=False
    )
    assert sample.request("/robots.txt").text == FORBIDDING
    assert len(sample.locs()) == 2


# As crawlers read it


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/a", True),
        ("user-agent: *\ndisallow: /*.php$", "/index.php", False),
        ("USER-AGENT: GOOGLEBOT\nDISALLOW: /", "/a", False),
        ("user-agent: Googlebot/2.1\ndisallow: /", "/a", False),
        ("user-agent: * # everyone\ndisallow: /", "/a", False),
        ("user-agent *\ndisallow /", "/a", False),
        ("user-agent: Google\ndisallow: /", "/a", True),
        ("user-agent: Googlebot-News\ndisallow: /", "/a", True),
        ("user-agent: a\nuser-agent: bingbot\ndisallow: /", "/a", False),
        ("user-agent: googlebot\ndisallow: /a\n\nuser-agent: *\nuser-agent: googlebot\ndisallow: /c", "/a", False),
        ("user-agent: googlebot\ndisallow: /a\n\nuser-agent: *\nuser-agent: googlebot\ndisallow: /c", "/c", False),
        ("user-agent: *\ndisallow: /\n\nuser-agent: googlebot\nuser-agent: bingbot\nallow: /", "/a", True),
        ("user-agent: *\rdisallow: /a\rdisallow: /b", "/b", False),
    ],
)
def test_groups_are_read_as_crawlers_read_them(text: str, path: str, *, allowed: bool) -> None:
    assert RobotsRules(decode_robots(text.encode())).allows(f"https://example.com{path}") is allowed


FORBIDS = FORBIDDING.encode()
GZIPPED = gzip.compress(FORBIDS)
LONG = FORBIDS + b"# filler\n" * (MAX_ROBOTS_BYTES // 9) + b"Disallow: /public\n"
HALF = FORBIDS + b"#" * (MAX_ROBOTS_BYTES - len(FORBIDS) - 12) + b"\nDisallow: /public\n"  # cut within the last line
READ = {
    "text": Page(200, TEXT, FORBIDS),
    "a byte order mark": Page(200, TEXT, b"\xef\xbb\xbf" + FORBIDS),
    "Latin-1": Page(200, [("content-type", "text/plain; charset=latin-1")], "# für alle\n".encode("latin-1") + FORBIDS),
    "line ends of one CR": Page(200, TEXT, FORBIDS.replace(b"\n", b"\r")),
    "gzip": Page(200, [*TEXT, ("content-encoding", "gzip")], GZIPPED),
    "too long": Page(200, TEXT, LONG),
    "longer than any response is read": Page(200, TEXT, FORBIDS + b"\n" * MAX_PROBE_BYTES),
    "cut in the middle of a rule": Page(200, TEXT, HALF),
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
    "not allowed": Page(403, TEXT, FORBIDS),
    "a page for every path": Page(
        200, [("content-type", "text/html")], b"<!doctype html><title>App</title><p>Disallow: /"
    ),
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
        "static/../static/robots%2Etxt",
        "//www.example.com/static/robots.txt",
        "HTTPS://example.com:443/static/robots.txt#rules",
    ],
)
def test_a_redirect_within_the_site_is_followed(protocol: str, target: str) -> None:
    assert around_robots(protocol, {"/robots.txt": moved(target)}).locs() == ["https://example.com/"]


@BOTH
@pytest.mark.parametrize(
    "target",
    [
        *("https://example.org/static/robots.txt", "ftp://example.com/robots.txt", "/static/robots.txt?v=1"),
        *("https://exa_mple/x", "javascript:robots"),
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
@pytest.mark.parametrize(("hops", "obeyed"), [(5, True), (6, False)])
def test_five_redirects_are_followed(protocol: str, hops: int, *, obeyed: bool) -> None:
    pages = {"/robots.txt": moved("/static/r1", 301)}
    pages |= {
        f"/static/r{number}": moved(f"/static/r{number + 1}", (302, 303, 307, 308)[number % 4])
        for number in range(1, hops)
    }
    pages[f"/static/r{hops}"] = Page(200, TEXT, FORBIDS)
    assert ("https://example.com/private" not in around_robots(protocol, pages).locs()) is obeyed


def to_https(_: str, headers: dict[str, str], __: str) -> tuple[int, list[tuple[str, str]], bytes]:
    if headers.get("x-forwarded-proto") != "https":
        return 301, [("Location", "https://example.com/robots.txt")], b""
    return 200, TEXT, FORBIDS


async def plain(_: Any) -> PlainTextResponse:
    return PlainTextResponse(FORBIDS)


def test_robots_txt_behind_a_redirect_to_https_is_obeyed() -> None:
    for headers in ([], [("x-forwarded-proto", "http"), ("cf-visitor", '{"scheme":"https"}')]):
        for protocol in ("wsgi", "asgi"):
            request = RequestSpec("/sitemap.xml", headers=headers)
            assert locs(DRIVERS[protocol](answering(protocol, to_https), request).body) == [HOME]
    routes = [Route("/", html), Route("/private", html), Route("/robots.txt", plain)]
    app = Starlette(routes=routes, middleware=[Middleware(HTTPSRedirectMiddleware)])
    site = SitemapMiddleware(app, store="memory://", base_url="https://example.com", verify=False)
    assert locs(asgi(site, RequestSpec("/sitemap.xml")).body) == [HOME]


async def iterating(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": iter([(b"x-own", b"kept")])})
    await send({"type": "http.response.body", "body": b""})


def test_headers_that_an_app_gives_as_an_iterator_are_kept() -> None:
    answer = asgi(SitemapMiddleware(iterating, store="memory://"), RequestSpec("/robots.txt", host="localhost"))
    assert (answer.status, answer.header("x-own")) == (403, "kept")


# What fails


@BOTH
@pytest.mark.parametrize("status", [429, 500, 599])
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
@pytest.mark.parametrize("status", [301, 400, 429, 503])
@pytest.mark.parametrize("before", [FORBIDS, b""], ids=["rules", "none"])
def test_later_failure_keeps_the_known_rules_also_after_a_restart(protocol: str, status: int, before: bytes) -> None:
    store = MemoryStore()
    sample = site(protocol, Page(200, TEXT, before), verify=False, store=store)
    listed = sample.locs()
    assert len(listed) == (2 if before else 3)
    failing = sample.pages["/robots.txt"] = Page(status, [*TEXT, ("location", "/robots.txt")], b"")
    sample.clock.pass_(10_000)
    assert sample.locs() == listed
    restarted = site(protocol, failing, verify=False, store=store, clock=sample.clock)
    assert restarted.app.explain("/private").listed is not bool(before), "before any request"
    assert restarted.locs() == listed


@BOTH
def test_a_compression_that_cannot_be_read_is_a_failure(protocol: str) -> None:
    cut_off = [("gzip", GZIPPED[:-9]), ("deflate", b"\xff")]
    for coding, body in [("br", FORBIDS), ("mystery", FORBIDS), ("gzip", FORBIDS), *cut_off]:
        sample = site(protocol, Page(200, [*TEXT, ("content-encoding", coding)], body), verify=False)
        assert sample.request("/sitemap.xml").status == 503
        assert sample.request("/robots.txt").body == body


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


def answering(protocol: str, rules: Rules, include: Sequence[str] = ("/", "/private")) -> SitemapMiddleware:
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
    return SitemapMiddleware(app, store="memory://", base_url="https://example.com", include=include, verify=False)


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


async def html(_: Any) -> HTMLResponse:
    return HTMLResponse("<h1>A page</h1>")


@pytest.mark.parametrize(
    ("protocol", "route", "answer"),
    [
        ("asgi", "/{lang}/", None),
        ("asgi", "/{page}", None),
        ("wsgi", "/<lang>/", "<h1>Start</h1>"),
        ("wsgi", "/<page>", "A page without markup"),
        ("wsgi", "/robots.txt", "<h1>About robots</h1>"),
        ("wsgi", "/<page>", ("no", 403)),
        ("wsgi", "/<page>", ("", 302, [("Location", "/sign-in?next=/robots.txt")])),
        ("wsgi", "/<page>", ("", 302, [("Location", "/v1/robots.txt")])),
    ],
)
def test_what_is_no_robots_txt_is_replaced_and_logged_once(
    protocol: str, route: str, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app: Any = flask.Flask("site", static_folder=None)
    if protocol == "wsgi":
        app.add_url_rule("/about", "about", lambda: "<h1>About</h1>")
        app.add_url_rule(route, "any", lambda **_: answer)
    else:
        app = Starlette(routes=[Route("/about", html), Route(route, html)])
    app, get = SitemapMiddleware(app, store="memory://", base_url="https://example.com"), DRIVERS[protocol]
    for method in ("GET", "HEAD", "GET"):
        sent = get(app, RequestSpec("/robots.txt", method=method))
        expected = minimal_robots("https://example.com/sitemap.xml")
        assert (sent.status, sent.header("content-length")) == (200, str(len(expected)))
        assert sent.text == ("" if method == "HEAD" else expected)
        assert sent.header("content-type") == "text/plain; charset=utf-8"
    assert [f"(route {route}, " in message for message in caplog.messages if "is no robots.txt" in message] == [True]
    app.flush()
    assert locs(get(app, RequestSpec("/sitemap.xml")).body) == ["https://example.com/about"]
    assert app.explain("/robots.txt").reason == "it is robots.txt, which is not a page"


def test_a_file_that_the_server_is_to_send_gets_the_line(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(FORBIDDING)

    async def robots(_: Any) -> FileResponse:
        return FileResponse(file)

    bare = Starlette(routes=[Route("/", html), Route("/robots.txt", robots)])
    app = SitemapMiddleware(bare, store="memory://", base_url=HOME)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()  # the client stays

    async def send(message: Any) -> None:
        sent.append(message)

    extensions: dict[str, Any] = {"http.response.pathsend": {}}
    scope = {"type": "http", "method": "GET", "scheme": "https", "path": "/robots.txt", "root_path": ""}
    scope |= {"query_string": b"", "headers": [(b"host", b"example.com")], "extensions": extensions}  # type: ignore[dict-item]
    asyncio.run(app(scope, receive, send))  # type: ignore[misc, call-arg, arg-type]
    assert [message.get("body") for message in sent] == [None, f"{FORBIDDING}\n{LINE}".encode()]
