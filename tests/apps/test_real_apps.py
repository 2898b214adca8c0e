"""Published apps under real servers: they answer the same when wrapped, and their sitemaps are right.

Each app is started twice from one module of `tests/apps`, bare and wrapped, and
crawled as a search engine crawls: without cookies, along the app's own links.
The bare one is crawled twice, so that what it never answers twice alike is known.
"""

from __future__ import annotations

import html
import http.client
import io
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

import pytest

from sitemap_middleware.evidence.html_facts import parse_html

from ..support import documents, servers

pytestmark = pytest.mark.slow

PAGES = 60
HOST = "localhost"
CRAWLER = (
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    " Chrome/120.0.0.0 Safari/537.36"
)
LINK = re.compile(r"""\s(?:href|src)=(["'])(.*?)\1""")


@dataclass(frozen=True)
class App:
    """An app, and what is known of it from reading it."""

    server: Any
    module: str
    listed: Mapping[str, str | None]
    """Every path that its sitemap shall list, with its lastmod."""
    unlisted: Mapping[str, str]
    """Paths that it shall not list, with words of the reason; one of each kind is enough."""
    seeds: tuple[str, ...] = ("/",)
    """Where the crawl begins: the home page, and what no link leads to."""
    skipped: tuple[str, ...] = ()
    """Beginnings of paths that are not asked for."""
    varies: tuple[tuple[str, bytes], ...] = ()
    """What the bare app itself never answers twice alike: beginnings of paths, and patterns there."""


APPS = {
    "httpbin": App(
        server=servers.gunicorn,
        module="httpbin_site",
        # Of its 30 static routes, four answer HTML.
        listed={"/": None, "/encoding/utf8": None, "/forms/post": None, "/html": None},
        unlisted={
            "/json": "application/json",
            "/xml": "application/xml",
            "/image/png": "image/png",
            "/deny": "text/plain",
            "/bearer": "401",
            "/cookies/set": "302",
            "/image": "406",
            "/links/10/0": "has parameters",
            "/drip": "exclude",
        },
        seeds=("/", "/json", "/bearer", "/cookies/set", "/cookies/delete", "/redirect-to", "/response-headers"),
        skipped=("/delay/", "/drip"),  # they take seconds, as they should
        varies=(
            ("/uuid", rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
            ("/cache", rb"Last-Modified: [^\r]*|ETag: [0-9a-f]{32}"),  # now, and a random one
            ("/digest-auth/", rb'(nonce|opaque)="[0-9a-f]{32}"'),
            ("/gzip", rb"(?s)(?<=\x1f\x8b\x08\x00)...."),  # the time in gzip's own header
            ("/bytes/", rb"(?s)\r\n\r\n.*"),
            ("/stream-bytes/", rb"(?s)\r\n\r\n.*"),
        ),
    ),
    "piccolo_admin": App(
        server=servers.uvicorn,
        module="piccolo_site",
        # One page for people. The login form is a class behind two mounts and a middleware, no router, so no route is known of it.
        listed=dict.fromkeys(("/",)),
        unlisted={
            "/openapi.json": "application/json",
            "/api/docs/": "401",
            "/api/tables/movie/": "401",
            "/api/tables/director/": "declares a response of application/json",
            "/public/docs/": "documentation of an API",
            "/public/meta/": "application/json",
            "/public/translations/{language_code:str}/": "declares a response of application/json",
            "/public/login/": "no static route",
        },
        seeds=(
            "/",
            "/openapi.json",
            "/api/docs/",
            "/api/docs/oauth2-redirect/",
            "/api/tables/movie/",
            "/public/docs/",
            "/public/docs/oauth2-redirect/",
            "/public/login/",
            "/public/meta/",
            "/public/translations/",
        ),
        varies=(("/", rb"(?<=set-cookie: csrftoken=)[\w-]+"), ("/", rb'(?<=name="csrftoken" value=")[\w-]+')),
    ),
    "Datasette": App(
        server=servers.uvicorn,
        module="datasette_site",
        # The database, its two tables and their two rows each. Sorted and filtered views of them have queries.
        listed={
            "/": None,
            "/library": None,
            **dict.fromkeys(("/library/author", "/library/author/1", "/library/author/2")),
            **dict.fromkeys(("/library/book", "/library/book/1", "/library/book/2")),
        },
        unlisted={
            "/library.json": "application/json",
            "/library/book/3": "nothing has shown that this is a page",
            "/-/static/codemirror-5.57.0.min.css": "exclude",
        },
        seeds=("/", "/library/book/3"),
        varies=(("/library", rb"(?<=Queries took )[\d.]+"), ("/library", rb'(?<="query_ms": )[\d.e-]+')),
    ),
}


@dataclass(frozen=True)
class Reply:
    """A response: its status line and headers as the bytes that came, its body without the framing of chunks."""

    status: int
    head: bytes
    body: bytes
    location: str
    is_html: bool


class _Replay:
    """As much of a socket as `HTTPResponse` asks for."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._raw)


def send_request(port: int, method: str, target: str) -> Reply:
    lines = (
        f"{method} {target} HTTP/1.1",
        f"Host: {HOST}",
        f"User-Agent: {CRAWLER}",
        "Accept: text/html,application/xhtml+xml,*/*;q=0.8",
        "Connection: close",
    )
    with socket.create_connection(("127.0.0.1", port), 30) as connection, connection.makefile("rb") as stream:
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        raw = stream.read()
    response = http.client.HTTPResponse(_Replay(raw), method=method)  # type: ignore[arg-type] # as much as it asks for
    response.begin()
    kind, location = response.headers.get_content_type(), response.headers.get("Location", "")
    return Reply(response.status, raw.partition(b"\r\n\r\n")[0], response.read(), location, kind == "text/html")


def links(target: str, reply: Reply) -> Iterator[str]:
    """The targets on the same host that a page leads to, in its order."""
    page = reply.body.decode("utf-8", "replace") if reply.is_html else ""
    for link in [reply.location, *(html.unescape(match[1]) for match in LINK.findall(page))]:
        parts = urlsplit(urldefrag(urljoin(f"http://{HOST}{target}", link))[0])
        if link and parts.netloc == HOST:
            yield quote(parts._replace(scheme="", netloc="").geturl() or "/", safe="/%?=&+:;,@!$'()*~")


def crawl(app: App, port: int) -> dict[tuple[str, str], Reply]:
    """What an app answers to GET and HEAD of the pages that its links lead to, so many at most."""
    waiting = list(app.seeds)
    replies: dict[tuple[str, str], Reply] = {}
    for target in waiting:
        replies["GET", target] = reply = send_request(port, "GET", target)
        replies["HEAD", target] = send_request(port, "HEAD", target)
        for link in links(target, reply):
            if link not in waiting and len(waiting) < PAGES and not link.startswith(app.skipped or "\0"):
                waiting.append(link)
    return replies


def common(app: App, target: str, reply: Reply) -> bytes:
    """A response without what the bare app does not answer twice alike, and without its Date."""
    raw = re.sub(rb"(?im)^(date: )[^\r]*", rb"\1", reply.head) + b"\r\n\r\n" + reply.body
    for beginning, pattern in app.varies:
        if target.startswith(beginning):
            raw = re.sub(pattern, b"", raw)
    return raw


@pytest.mark.parametrize("name", APPS)
def test_a_real_app_answers_as_before_and_has_a_true_sitemap(name: str, tmp_path: Path) -> None:
    app = APPS[name]
    env = {"PYTHONHASHSEED": "0"}  # sets in one order in every process
    with app.server(f"tests.apps.{app.module}:bare", tmp_path, env=env) as bare:
        first = crawl(app, bare.port)
        crawled = time.monotonic()
        with app.server(f"tests.apps.{app.module}:wrapped", tmp_path, env=env, ready="/__explain__") as wrapped:
            ours = crawl(app, wrapped.port)
            time.sleep(max(0.0, crawled + 1.1 - time.monotonic()))  # what bears the second shall be seen to vary
            second = crawl(app, bare.port)

            assert first.keys() == ours.keys() == second.keys()
            for (method, target), reply in first.items():
                expected = common(app, target, reply)
                assert common(app, target, second[method, target]) == expected, f"varies too: {method} {target}"
                assert common(app, target, ours[method, target]) == expected, f"differs: {method} {target}"
            assert contents(first, ours, second) == set(), "the content, as a reader sees it, is another each time"

            sitemap = wrapped.get("/sitemap.xml", {"Host": HOST})
            explanations = explained(wrapped, [target for method, target in ours if method == "GET"], app)

    entries = documents.entries(sitemap.body)
    assert {loc: entry.get("lastmod") for loc, entry in entries.items()} == {
        f"http://{HOST}{path}": lastmod for path, lastmod in app.listed.items()
    }
    assert {path for path, (listed, _) in explanations.items() if listed} == {unquote(path) for path in app.listed}
    for path, words in app.unlisted.items():
        listed, reason = explanations[path]
        assert not listed, path
        assert words in reason, path


def contents(*crawls: Mapping[tuple[str, str], Reply]) -> set[str]:
    """The pages whose digest differed between crawls."""
    digests: dict[str, set[int]] = {}
    for replies in crawls:
        for (method, target), reply in replies.items():
            if method == "GET" and reply.status == 200 and reply.is_html:
                reading = parse_html(reply.body)
                assert reading is not None, target
                digests.setdefault(target, set()).add(reading.digest)
    return {target for target, page_digests in digests.items() if len(page_digests) > 1}


def explained(server: servers.Server, targets: list[str], app: App) -> dict[str, tuple[bool, str]]:
    """What the middleware says of every route of its app and of every path that was asked for: listed or not, and why."""
    paths = dict.fromkeys([unquote(target) for target in targets if "?" not in target] + list(app.unlisted))
    questions = ["/__explain__", *(f"/__explain__?path={quote(path, safe='/')}" for path in paths)]
    rows = [row for question in questions for row in json.loads(server.get(question).body)]
    return {row["path"]: (row["listed"], row["reason"]) for row in rows}
