"""No page that is private, in whatever way, is ever listed."""

from __future__ import annotations

import gzip
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from werkzeug.test import Client

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.observe.prober import ROUND_INTERVAL_SECONDS
from sitemap_middleware.stores.sqlite import MemoryStore

from ..support.documents import locs
from ..support.sample_sites import Clock
from ..support.wire import BOTH, DRIVERS, RequestSpec

SEED = 20_240_501
BASE = "https://example.com"
HTML = ("content-type", "text/html; charset=utf-8")
Fields = list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    status: int = 200
    fields: tuple[tuple[str, str], ...] = ()
    head: str = ""
    raw: bytes = b""
    """The whole body, if it is no usual page."""

    def body(self, path: str) -> bytes:
        if self.raw:
            return self.raw
        own = sha256(path.encode()).hexdigest()  # a page that only repeats its path is a soft 404
        return f"<!doctype html><html><head>{self.head}</head><body><main>Of {own}</main></body></html>".encode()


PUBLIC = Answer()

Private = Callable[[Random, str], Answer]


def _login(random: Random, path: str) -> Answer:
    target = random.choice(["/login", f"/login?next={path}", "https://sso.example.org/start", "//example.com/login"])
    return Answer(random.choice([301, 302, 303, 307, 308]), (("location", target),))


def _refusal(random: Random, path: str) -> Answer:
    return Answer(random.choice([401, 402, 403, 404, 405, 410, 451]), (("www-authenticate", "Basic"),))


def _noindex_header(random: Random, path: str) -> Answer:
    values = [
        "noindex",
        "NOINDEX, nofollow",
        "none",
        "googlebot: noindex",
        "nofollow, bingbot: none",
        "noarchive,noindex",
    ]
    return Answer(fields=((random.choice(["x-robots-tag", "X-Robots-Tag"]), random.choice(values)),))


def _noindex_meta(random: Random, path: str) -> Answer:
    name, content = (
        random.choice(["robots", "ROBOTS", "googlebot", "bingbot"]),
        random.choice(["noindex", "None", "follow, NoIndex"]),
    )
    return Answer(
        head=random.choice([f'<meta name="{name}" content="{content}">', f"<META content='{content}' name={name}>"])
    )


def _private_cache(random: Random, path: str) -> Answer:
    values = ["private", "Private, max-age=0", "no-cache, private", 'private="", max-age=60', "max-age=60,private"]
    return Answer(fields=(("cache-control", random.choice(values)),))


def _canonical_header(random: Random, path: str) -> Answer:
    target = random.choice(["/elsewhere", "https://example.org/", f"{BASE}/elsewhere", f"{path}?page=1"])
    return Answer(fields=(("link", f'</a.css>; rel=preload, <{target}>; rel="canonical"'),))


def _canonical_link(random: Random, path: str) -> Answer:
    target = random.choice(["/elsewhere", "https://example.org/", f"{BASE}/elsewhere"])
    return Answer(
        head=random.choice(
            [f'<link rel="canonical" href="{target}">', f"<link href={target} rel='nofollow Canonical'>"]
        )
    )


def _no_page(random: Random, path: str) -> Answer:
    kind = random.choice(["application/json", "text/plain", "image/png", "application/octet-stream"])
    return Answer(fields=(("content-type", kind),))


KINDS: dict[str, Private] = {
    "login": _login,
    "refusal": _refusal,
    "noindex in a header": _noindex_header,
    "noindex in a meta tag": _noindex_meta,
    "private caching": _private_cache,
    "canonical in a header": _canonical_header,
    "canonical in a link": _canonical_link,
    "no page": _no_page,
}
"""Ways in which a page's own answer keeps it out."""


ROBOTS = "User-agent: *\nDisallow: /closed/\nDisallow: /*/hidden-\n"

LEARN = ("/posts/{slug}", "/closed/{slug}", "/drafts/{slug}")


class Club:
    """An app with private and public pages, wrapped; what each path answers can be changed between requests."""

    def __init__(
        self,
        protocol: str,
        static: list[str],
        *,
        verify: bool = True,
        streams: bool = False,
        sends_whole_body_first: bool = False,
        clock: Clock | None = None,
        store: Any = "memory://",
    ) -> None:
        self.answers: dict[str, Answer] = {}
        self.members: set[str] = set()
        """Paths that answer 200 to those alone who bear a cookie or a login."""
        self._protocol = protocol
        self._streams = streams
        self._sends_whole_body_first = sends_whole_body_first
        self.clock = clock or Clock()
        make = self._flask if protocol == "wsgi" else self._starlette
        self.app = SitemapMiddleware(
            make(static), base_url=BASE, store=store, learn=LEARN, list_unseen=False, verify=verify, clock=self.clock
        )

    def visit(self, path: str, **changes: Any) -> None:
        spec = {"host": "example.com", "scheme": "https", **changes}
        DRIVERS[self._protocol](self.app, RequestSpec(path, **spec))

    def listed(self) -> set[str]:
        spec = RequestSpec("/sitemap.xml", host="example.com", scheme="https")
        answer = DRIVERS[self._protocol](self.app, spec)
        return {loc.removeprefix(BASE) for loc in locs(answer.body)} if answer.status == 200 else set()

    def _answer(self, path: str, *, known: bool) -> tuple[int, Fields, bytes]:
        if path == "/robots.txt":
            return 200, [("content-type", "text/plain")], ROBOTS.encode()
        answer = self.answers.get(path, Answer(404))
        if path in self.members and not known:
            answer = Answer(302, (("location", "/login"),))
        typed = any(name == "content-type" for name, _ in answer.fields)
        fields, body = [*answer.fields, *([] if typed else [HTML])], answer.body(path)
        if self._sends_whole_body_first:
            fields.append(("content-length", str(len(body))))
        return answer.status, fields, body

    def _parts(self, body: bytes) -> Iterator[bytes]:
        size = len(body) if self._sends_whole_body_first else 20
        yield body[:size]
        yield body[size:]

    async def _async_parts(self, body: bytes) -> AsyncIterator[bytes]:
        for part in self._parts(body):
            yield part

    def _routes(self, static: list[str]) -> list[str]:
        tokens = ["/reset/{token}", "/invite/{invite_code}", "/share/{apiKey}", "/docs/{page:path}"]
        return ["/robots.txt", *static, *LEARN, *tokens, "/members/{name}"]

    def _flask(self, static: list[str]) -> Any:
        app = flask.Flask("club", static_folder=None)

        def view(**_: str) -> flask.Response:
            known = "cookie" in flask.request.headers or "authorization" in flask.request.headers
            status, fields, body = self._answer(flask.request.path, known=known)
            return flask.Response(self._parts(body) if self._streams else body, status, fields)

        for number, route in enumerate(self._routes(static)):
            rule = route.replace("{page:path}", "<path:page>").replace("{", "<").replace("}", ">")
            app.add_url_rule(rule, f"view{number}", view)
        return app

    def _starlette(self, static: list[str]) -> Any:
        async def view(request: Request) -> Response:
            known = "cookie" in request.headers or "authorization" in request.headers
            status, fields, body = self._answer(request.url.path, known=known)
            response = StreamingResponse(self._async_parts(body), status) if self._streams else Response(body, status)
            length = [pair for pair in response.raw_headers if pair[0] == b"content-length"]
            response.raw_headers = [(name.lower().encode(), value.encode()) for name, value in fields] + length
            return response

        return Starlette(routes=[Route(route, view) for route in self._routes(static)])


def _private(random: Random, count: int, prefixes: list[str]) -> Iterator[tuple[str, Answer]]:
    names = list(KINDS)
    for number in range(count):
        path = f"{random.choice(prefixes)}{number}-{random.getrandbits(24):x}"
        yield path, KINDS[names[number % len(names)]](random, path)


@BOTH
def test_of_500_private_pages_none_is_ever_listed(protocol: str) -> None:
    random = Random(SEED)
    private = dict(_private(random, 260, ["/posts/", "/static-"]))
    public = [f"/posts/public-{number}" for number in range(40)] + ["/static-public"]
    robots = [f"/closed/{number}" for number in range(60)] + [f"/posts/hidden-{number}" for number in range(20)]
    tokens = [
        f"/{route}/{random.getrandbits(64):x}" for route in ("reset", "invite", "share", "docs") for _ in range(20)
    ]
    members = [f"/posts/member-{number}" for number in range(60)] + [f"/members/{number}" for number in range(20)]
    site = Club(protocol, [path for path in [*private, *public] if path.startswith("/static-")])
    site.answers = {**private, **dict.fromkeys([*public, *robots, *tokens, *members], PUBLIC)}
    site.members = set(members)
    everything = [*private, *public, *robots, *tokens]
    assert len(everything) + len(members) - len(public) == 500
    random.shuffle(everything)
    for path in everything:
        site.visit(path)
    for path in members:
        site.visit(path, headers=[random.choice([("cookie", "session=1"), ("authorization", "Basic eDp5")])])
    assert site.listed() == set(public)
    for path in members:
        site.visit(path)
    assert site.listed() == set(public)


@BOTH
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_private_pages_are_never_listed_however_often_they_are_visited(protocol: str, method: str) -> None:
    random = Random(SEED)
    private = dict(_private(random, 64, ["/posts/", "/static-"]))
    site = Club(protocol, [path for path in [*private, "/static-public"] if path.startswith("/static-")])
    site.answers = {**private, "/static-public": PUBLIC, "/posts/public": PUBLIC}
    for path in site.answers:
        site.visit(path)
    for seconds in (0, 1, 5, 100, 86_400):
        site.clock.pass_(seconds)
        assert site.listed() == {"/static-public", "/posts/public"}
        for path in site.answers:
            site.visit(path, method=method)


META = '<meta name="robots" content="noindex"/>'
SECRET = f"<html><head>{META}</head><body><main>Of members alone</main></body></html>"


def _declared(charset: str, encoding: str = "ascii") -> Answer:
    return Answer(fields=(("content-type", f"text/html; charset={charset}"),), raw=SECRET.encode(encoding))


def _after(markup: str) -> Answer:
    """A page without a charset in its header, with some markup before its robots meta tag."""
    return Answer(fields=(("content-type", "text/html"),), raw=SECRET.replace("<head>", f"<head>{markup}").encode())


def _xhtml(markup: str) -> Answer:
    raw = SECRET.replace("<head>", f"<head>{markup}").encode()
    return Answer(fields=(("content-type", "application/xhtml+xml"),), raw=raw)


def _coded(coding: str, raw: bytes = SECRET.encode()) -> Answer:
    return Answer(fields=(("content-encoding", coding), HTML), raw=raw)


UNUSUAL: dict[str, Answer] = {
    **{f"ascii as {charset}": _declared(charset) for charset in ("cp037", "utf-16", "utf-32", "hz-gb-2312", "no-such")},
    **{f"utf-16 as {charset}": _declared(charset, "utf-16-le") for charset in ("utf-16", "unicode", "ucs-2")},
    "charset in a comment": _after("<!-- was: <meta charset=utf-16le> -->"),
    "charset in a script": _after("<script>var t='<meta charset=cp037>'</script>"),
    "charset in a meta tag": _after("<meta charset=utf-16le>"),
    **{f"plain as {coding}": _coded(coding) for coding in ("none", "utf-8", "UTF-8", "binary", "8bit", "aws-chunked")},
    **{f"plain as {coding}": _coded(coding) for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip", "compress")},
    "gzip as gzip, none": _coded("gzip, none", gzip.compress(SECRET.encode())),
    "gzip as gzip, gzip": _coded("gzip, gzip", gzip.compress(SECRET.encode())),
    "gzip without its end": _coded("gzip", gzip.compress(SECRET.encode())[:-9]),
    **{f"xhtml with {tag}": _xhtml(f"<{tag}/>") for tag in ("script src='a.js'", "title", "style", "textarea")},
    "many attributes": Answer(raw=SECRET.replace("<html", "<html" + " ".join(f" a{n}=1" for n in range(501))).encode()),
    "many elements": _after("<div>" * 1501),
}
"""Pages whose noindex a browser or a search engine reads, but a simpler reader may miss."""


@pytest.mark.slow
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_page_that_says_noindex_in_an_unusual_way_is_not_listed(kind: str, *, verify: bool) -> None:
    site = Club("wsgi" if verify else "asgi", ["/static-secret", "/static-public"], verify=verify)
    site.answers = {
        **dict.fromkeys(["/static-secret", "/posts/secret"], UNUSUAL[kind]),
        **dict.fromkeys(["/static-public", "/posts/public"], PUBLIC),
    }
    for seconds in (0, 1, ROUND_INTERVAL_SECONDS, 86_400):
        site.clock.pass_(seconds)
        for path in site.answers:
            site.visit(path)
        assert site.listed() == {"/static-public", "/posts/public"}


@pytest.mark.parametrize("seed", range(12))
@BOTH
def test_no_learned_page_is_listed_before_its_html_was_read_whatever_workers_and_hosts_have_seen(
    protocol: str, seed: int
) -> None:
    random, clock, store, path = Random(seed), Clock(), MemoryStore(), "/posts/page"
    workers = [
        Club(protocol, [], verify=False, streams=True, store=store, clock=clock) for _ in range(random.randint(1, 2))
    ]
    secret = Answer(head='<meta name="robots" content="noindex">')
    refusals = [
        Answer(403),
        Answer(404),
        Answer(fields=(("x-robots-tag", "noindex"),)),
        Answer(fields=(("cache-control", "private"),)),
        Answer(fields=(("content-type", "application/json"),)),
    ]
    is_listed = was_read = False
    for _ in range(25):
        clock.pass_(random.choice([0, 0, 0.1, 1, 6, 60, 3600, 3 * 86_400]))
        worker, leaves = random.choice(workers), random.random() < 0.5
        answer = worker.answers[path] = random.choice([PUBLIC, secret, secret, *refusals])
        worker.visit(path, leaves=leaves, host=random.choice(["example.com", "example.com", "internal:8000"]))
        was_read = was_read or (answer is PUBLIC and not leaves)
        if random.random() < 0.5:
            for each in workers:
                each.app.flush()
            was_listed, is_listed = is_listed, path in worker.listed()
            assert was_read or was_listed or not is_listed
            was_read = False


@BOTH
def test_a_learned_page_whose_headers_alone_were_seen_is_read_at_its_next_visit(protocol: str) -> None:
    clock, store, path = Clock(), MemoryStore(), "/posts/page"
    a, b = (Club(protocol, [], verify=False, streams=True, store=store, clock=clock) for _ in range(2))
    for answer, visited in ((PUBLIC, (a, b)), (Answer(404), (b,)), (PUBLIC, (a,))):
        for worker in visited:
            worker.answers[path] = answer
            clock.pass_(1)
            worker.visit(path)
            worker.app.flush()
    assert a.listed() == set(), "this worker has read the page before, and so has not read it again"
    clock.pass_(1)
    a.visit(path)
    assert a.listed() == {path}


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "gone",
    [Answer(404), Answer(fields=(("X-Robots-Tag", "noindex"),)), Answer(fields=(("Cache-Control", "private"),))],
    ids=["404", "noindex", "private"],
)
def test_a_page_that_returns_is_not_listed_by_its_headers_alone(protocol: str, gone: Answer, *, verify: bool) -> None:
    site = Club(protocol, [], verify=verify, streams=True)
    hidden = dict(_private(Random(SEED), 24, ["/posts/"]))
    site.answers = dict.fromkeys(hidden, PUBLIC)
    for path in hidden:
        site.visit(path)
    assert site.listed() == set(hidden)
    site.answers = dict.fromkeys(hidden, gone)
    site.clock.pass_(3600)
    for path in hidden:
        site.visit(path)
    assert site.listed() == set()
    site.answers = hidden
    for seconds in (1, 5, 100, 86_400):
        site.clock.pass_(seconds)
        for path in hidden:
            site.visit(path, leaves=True)
        assert site.listed() == set()


@BOTH
def test_a_static_page_whose_visitors_all_leave_before_its_end_is_requested_before_it_is_listed(protocol: str) -> None:
    private = dict(_private(Random(SEED), 40, ["/static-"]))
    site = Club(protocol, [*private, "/static-public"], streams=True)
    site.answers = {**private, "/static-public": PUBLIC}
    for path in site.answers:
        site.visit(path, leaves=True)
    assert site.listed() == {"/static-public"}


@BOTH
@pytest.mark.parametrize("verify", [True, False])
def test_where_the_middleware_may_not_ask_a_page_waits_until_its_html_was_read(protocol: str, verify: bool) -> None:
    site = Club(protocol, ["/-/login", "/static-public"], streams=True, verify=verify)
    site.answers = dict.fromkeys(["/-/login", "/static-public"], PUBLIC)
    for seconds, leaves in ((0, True), (2, False)):  # too soon for another reading: its headers alone count
        site.clock.pass_(seconds)
        for path in site.answers:
            site.visit(path, leaves=leaves)
    assert site.listed() == ({"/static-public"} if verify else set())
    assert "its HTML was not read yet, and may say noindex" in site.app.explain("/-/login").reason
    site.clock.pass_(10)
    for path in site.answers:
        site.visit(path)
    assert site.listed() == set(site.answers)


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_page_that_turns_private_is_dropped_once_asked_and_returns_when_public(protocol: str, kind: str) -> None:
    random = Random(f"{SEED} {kind}")
    paths = [f"/posts/{number}" for number in range(6)] + ["/static-0", "/static-1"]
    site = Club(protocol, ["/static-0", "/static-1"])
    site.answers = dict.fromkeys(paths, PUBLIC)
    for path in paths:
        site.visit(path)
    listed = set(paths)
    assert site.listed() == listed
    for path in random.sample(paths, 4):
        site.clock.pass_(random.choice([1, 60, 86_400]))
        site.answers[path] = KINDS[kind](random, path)
        site.visit(path)
        listed.remove(path)
        assert site.listed() == listed
    for path in set(paths) - listed:
        site.clock.pass_(1)
        site.answers[path] = PUBLIC
        site.visit(path)
    assert site.listed() == set(paths)


@pytest.mark.parametrize("has_threads", [False, True], ids=["one thread", "threads"])
def test_a_page_that_a_header_nobody_knows_opens_is_not_listed_for_it(has_threads: bool) -> None:
    """The middleware's own request, which is a stranger's, is answered before the first sitemap."""
    app = flask.Flask("site", static_folder=None)

    @app.get("/v/<slug>")
    def page(slug: str) -> tuple[str, int]:
        is_refused = slug == "private" and "X-Netid" not in flask.request.headers
        return ("Members only", 403) if is_refused else (f"<main>The page {slug}</main>", 200)

    app.add_url_rule("/members", "members", lambda: page("private"))

    middleware = SitemapMiddleware(app, base_url=BASE, learn="/v/<slug>", store="memory://")
    server = Client(middleware)
    as_served: dict[str, Any] = {"base_url": BASE, "environ_overrides": {"wsgi.multithread": has_threads}}
    for path in ("/v/private", "/v/public", "/members"):
        server.get(path, headers={"X-Netid": "1"}, **as_served)
    until = time.monotonic() + 10
    while (answer := server.get("/sitemap.xml", **as_served)).status_code != 200 and time.monotonic() < until:
        middleware.flush()
    assert locs(answer.data) == [f"{BASE}/v/public"]
