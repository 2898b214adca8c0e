"""Private pages, in every way that a page can be private: none is ever listed, through the whole house and both protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from ..support.documents import locs
from ..support.sample_sites import Clock
from ..support.wire import DRIVERS, RequestSpec

SEED = 20_240_501
BASE = "https://example.com"
HTML = ("content-type", "text/html; charset=utf-8")
BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
Fields = list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    status: int = 200
    fields: tuple[tuple[str, str], ...] = ()
    head: str = ""

    def body(self, path: str) -> bytes:
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


def counts_at_once(answer: Answer, *, learned: bool) -> bool:
    """Whether one visitor's answer is enough, or may depend on the visitor and waits for another one's."""
    if "content-type" in dict(answer.fields) or answer.status in {405, 451}:
        return False
    plain = answer.status in {200, 404, 410}
    return plain or learned  # of learned pages, a refusal or a redirect to a login counts at once


ROBOTS = "User-agent: *\nDisallow: /closed/\nDisallow: /*/hidden-\n"

LEARN = ("/posts/{slug}", "/closed/{slug}", "/drafts/{slug}")


class Club:
    """An app with private and public pages, wrapped; what each path answers can be changed between requests."""

    def __init__(self, protocol: str, static: list[str]) -> None:
        self.answers: dict[str, Answer] = {}
        self.members: set[str] = set()
        """Paths that answer 200 to those alone who bear a cookie or a login."""
        self._protocol = protocol
        self.clock = Clock()
        make = self._flask if protocol == "wsgi" else self._starlette
        self.app = SitemapMiddleware(
            make(static),
            base_url=BASE,
            store="memory://",
            learn=LEARN,
            list_unseen=False,
            clock=self.clock,
        )

    def visit(self, path: str, **changes: Any) -> None:
        DRIVERS[self._protocol](self.app, RequestSpec(path, host="example.com", scheme="https", **changes))

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
        return answer.status, [*answer.fields, *([] if typed else [HTML])], answer.body(path)

    def _routes(self, static: list[str]) -> list[str]:
        tokens = ["/reset/{token}", "/invite/{invite_code}", "/share/{apiKey}", "/docs/{page:path}"]
        return ["/robots.txt", *static, *LEARN, *tokens, "/members/{name}"]

    def _flask(self, static: list[str]) -> Any:
        app = flask.Flask("club", static_folder=None)

        def view(**_: str) -> flask.Response:
            known = "cookie" in flask.request.headers or "authorization" in flask.request.headers
            status, fields, body = self._answer(flask.request.path, known=known)
            return flask.Response(body, status, fields)

        for number, route in enumerate(self._routes(static)):
            rule = route.replace("{page:path}", "<path:page>").replace("{", "<").replace("}", ">")
            app.add_url_rule(rule, f"view{number}", view)
        return app

    def _starlette(self, static: list[str]) -> Any:
        async def view(request: Request) -> Response:
            known = "cookie" in request.headers or "authorization" in request.headers
            status, fields, body = self._answer(request.url.path, known=known)
            response = Response(body, status)
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
    private = dict(_private(random, 130, ["/posts/", "/static-"]))
    site = Club(protocol, [path for path in [*private, "/static-public"] if path.startswith("/static-")])
    site.answers = {**private, "/static-public": PUBLIC, "/posts/public": PUBLIC}
    for path in site.answers:
        site.visit(path)
    for seconds in (0, 0, 1, 3, 5, 20, 100, 1000, 86_400):
        site.clock.pass_(seconds)
        assert site.listed() == {"/static-public", "/posts/public"}
        for path in site.answers:
            site.visit(path, method=method)


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_page_that_turns_private_is_dropped_once_confirmed_and_returns_when_public(protocol: str, kind: str) -> None:
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
        site.answers[path] = answer = KINDS[kind](random, path)
        site.visit(path)
        if not counts_at_once(answer, learned=path.startswith("/posts/")):
            assert site.listed() == listed
            site.clock.pass_(60)
            site.visit(path, headers=[("user-agent", "another visitor's")])
        listed.remove(path)
        assert site.listed() == listed
    for path in set(paths) - listed:
        site.clock.pass_(1)
        site.answers[path] = PUBLIC
        site.visit(path)
    assert site.listed() == set(paths)


@BOTH
def test_a_page_that_turns_private_within_the_second_is_gone_too(protocol: str) -> None:
    random = Random(SEED)
    for kind, private in KINDS.items():
        site = Club(protocol, ["/static-0"])
        site.answers = {"/static-0": PUBLIC, "/posts/one": PUBLIC}
        site.visit("/static-0")
        site.visit("/posts/one")
        assert site.listed() == {"/static-0", "/posts/one"}
        site.answers["/posts/one"] = answer = private(random, "/posts/one")
        site.visit("/posts/one")
        at_once = counts_at_once(answer, learned=True)
        assert site.listed() == ({"/static-0"} if at_once else {"/static-0", "/posts/one"}), kind


@BOTH
def test_robots_txt_and_cookie_rules_win_over_visits(protocol: str) -> None:
    site = Club(protocol, [])
    site.answers = dict.fromkeys(["/posts/one", "/posts/hidden-one", "/closed/one"], PUBLIC)
    for path in site.answers:
        site.visit(path)
    site.answers["/posts/one"] = Answer(403)
    site.visit("/posts/one", headers=[("cookie", "session=1")])
    assert site.listed() == {"/posts/one"}, "the answer to one signed-in visitor is not evidence about the page"
    site.visit("/posts/one")
    assert site.listed() == set()
