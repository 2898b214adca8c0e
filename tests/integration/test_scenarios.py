"""One table of scenarios: what a site answers, what a client requests, and what the sitemap lists after that.

Each row is played twice, through a WSGI app and through an ASGI app that answer
alike. The two answers to the request for the sitemap must be one and the same,
and what the row says.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from sitemap_middleware import SitemapMiddleware

from ..support.documents import entries
from ..support.sample_sites import Page, SampleSite
from ..support.stores import FrailStore
from ..support.wire import Answer, RequestSpec, wsgi

HOME, PAGE = "http://testserver/", "http://testserver/page"
SITEMAP = RequestSpec("/sitemap.xml")
NOW, HOUR = 1_750_000_000, 3600
"""The clock of every row begins at Sun, 15 Jun 2025 15:06:40 GMT."""

# Those who play


class Framework(SampleSite):
    """Flask by WSGI, Starlette by ASGI."""

    def __init__(self, protocol: str, paths: Sequence[str], **options: Any) -> None:
        self.store = FrailStore()
        self.tags: dict[str, str] = {}
        super().__init__(protocol, {path: Page(body=b"A page.") for path in paths}, store=self.store, **options)


class Plain(Framework):
    """A callable of no framework: it answers every method alike, and may leave out what frameworks put in."""

    def __init__(self, protocol: str, paths: Sequence[str], **options: Any) -> None:
        super().__init__(protocol, paths, **options)
        self.bare = self._wsgi if protocol == "wsgi" else self._asgi
        self.app = SitemapMiddleware(
            self.bare, store=self.store, clock=self.clock, include=[path for path in paths if path != "/sitemap.xml"]
        )

    def request(self, spec: RequestSpec | str, **changes: Any) -> Answer:
        if self.protocol == "asgi":
            return super().request(spec, **changes)
        return wsgi(self.app, spec if isinstance(spec, RequestSpec) else RequestSpec(spec, **changes), validate=False)

    def _wsgi(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        page = self.pages[environ["PATH_INFO"]]
        start_response(f"{page.status} {HTTPStatus(page.status).phrase}", page.headers)
        return [page.body]

    async def _asgi(self, scope: Any, _: Any, send: Any) -> None:
        page = self.pages[scope["path"]]
        headers = [(name.encode(), value.encode()) for name, value in page.headers]
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": page.body})


# What happens before the sitemap is asked for

Step = Callable[[Framework], None]
Header = tuple[str, str]


def shows(status: int = 200, *extra: Header, path: str = "/page", spec: RequestSpec | None = None) -> Step:
    """A page answers so from now on, and is asked for once, a second later. It is HTML unless a type is among its headers."""
    typed = any(name == "content-type" for name, _ in extra)
    headers = list(extra) if typed else [("content-type", "text/html; charset=utf-8"), *extra]
    return _answers(Page(status, headers, b"A page."), path, spec)


def shows_only(status: int, *headers: Header) -> Step:
    """The same, of a page with these headers and no others, and no body."""
    return _answers(Page(status, list(headers), b""), "/page", None)


def _answers(page: Page, path: str, spec: RequestSpec | None) -> Step:
    def step(site: Framework) -> None:
        site.clock.pass_(1)
        site.pages[path] = page
        site.request(spec or path)
        site.app.flush()

    return step


def stamps(seconds_before: int) -> Step:
    """Four answers with time between them; each has a Last-Modified this many seconds before the answer."""

    def step(site: Framework) -> None:
        for gap in (0, 90, HOUR, 24 * HOUR):
            site.clock.pass_(gap)
            shows(200, ("last-modified", formatdate(site.clock() - seconds_before, usegmt=True)))(site)

    return step


def passes(seconds: int) -> Step:
    return lambda site: site.clock.pass_(seconds)


def sitemap_requested(site: Framework) -> None:
    """Request the sitemap a first time, which renders it; note its tags."""
    for name, accepted in (("etag", "identity"), ("gzip", "gzip")):
        answer = site.request(RequestSpec("/sitemap.xml", headers=[("accept-encoding", accepted)]))
        site.tags[name] = answer.header("etag") or ""


def store_fails(site: Framework) -> None:
    site.store.down = True


def store_works(site: Framework) -> None:
    site.store.down = False


# The table


@dataclass(frozen=True)
class Row:
    """One scenario. `locs` is None if there is no document; `dates` holds every lastmod of the document."""

    says: str
    steps: tuple[Step, ...] = ()
    locs: tuple[str, ...] | None = (HOME, PAGE)
    dates: Mapping[str, str] = field(default_factory=dict)
    spec: RequestSpec = SITEMAP
    status: int = 200
    headers: Mapping[str, str | None] = field(default_factory=dict)
    text: str = ""
    warns: tuple[str, ...] = ()
    paths: tuple[str, ...] = ("/", "/page")
    options: Mapping[str, Any] = field(default_factory=dict)
    play: type[Framework] = Framework


def listed(says: str, *steps: Step, **more: Any) -> Row:
    return Row(f"{says} is listed", steps, **more)


def unlisted(says: str, *steps: Step, **more: Any) -> Row:
    return Row(f"{says} is not listed", steps, (HOME,), **more)


def dated(says: str, *steps: Step) -> Row:
    return Row(f"{says} is a lastmod", steps, dates={PAGE: "2023-11-14T22:13:20Z"})


def undated(says: str, *steps: Step, **more: Any) -> Row:
    return Row(f"{says} is not a lastmod", steps, **more)


def mute(says: str, *headers: Header, status: int = 404, **more: Any) -> Row:
    """A request that would unlist the page if it counted as evidence."""
    return Row(f"{says} is not evidence", (shows(status, spec=RequestSpec("/page", headers=list(headers), **more)),))


def sitemap_request(*headers: Header, **more: Any) -> RequestSpec:
    """The request for the sitemap, changed; {etag} and {gzip} in a value stand for the tags that it bears plain and gzipped."""
    return replace(SITEMAP, headers=list(headers), **more)


def unchanged(says: str, *headers: Header, **more: Any) -> Row:
    return Row(f"{says} gets 304", spec=sitemap_request(*headers), status=304, **more)


def whole(says: str, *headers: Header, **more: Any) -> Row:
    return Row(f"{says} gets the whole document", spec=sitemap_request(*headers), **more)


def coded(accepted: str, coding: str | None) -> Row:
    says = f"Accept-Encoding {accepted!r} gets {'gzip' if coding else 'the document as it is'}"
    return Row(says, spec=sitemap_request(("accept-encoding", accepted)), headers={"content-encoding": coding})


def at(says: str, *locs: str, **more: Any) -> Row:
    """A site of as many pages as locs, by default the home page alone."""
    return Row(says, locs=locs, **{"paths": ("/",), **more})


def refused(says: str, status: int, text: str, *steps: Step, **more: Any) -> Row:
    return Row(f"{says} is {status}", steps, None, status=status, text=text, **more)


DAY, EARLIER = [("last-modified", f"{day} Nov 2023 22:13:20 GMT") for day in ("Tue, 14", "Mon, 13")]
ROBOTS, CACHE, LINK, TYPE, MODIFIED = "x-robots-tag", "cache-control", "link", "content-type", "last-modified"

STATUSES = (
    listed("a static page never seen"),
    listed("a page that answers 200", shows(200)),
    *[unlisted(f"a page that answers {n}", shows(n, ("location", "/other"))) for n in (301, 302, 303, 307, 308)],
    *[unlisted(f"a page that answers {n}", shows(n)) for n in (206, 401, 403, 404, 410, 451)],
    unlisted("a page that answers 204", shows_only(204), play=Plain),
    *[listed(f"a page that answers 200 and then {n}", shows(200), shows(n)) for n in (429, 500, 502, 503)],
    listed("a page that answered nothing but 503", shows(503)),
    unlisted("a page that answers 404 and then 503", shows(404), shows(503)),
    listed("a page that answers 200, 404, and 200 again", shows(200), shows(404), shows(200)),
    unlisted("a page that answers 404, 200, and 404 again", shows(404), shows(200), shows(404)),
    listed("a page that redirects from http to https alone", shows(301, ("location", "https://testserver/page"))),
    listed("a page that redirects to itself on www alone", shows(308, ("location", "http://www.testserver/page"))),
    unlisted("a page that redirects to its twin with a slash", shows(308, ("location", "/page/"))),
    Row("a route with a parameter is not listed by its template", paths=("/", "/page", "/posts/{slug}")),
)

RESPONSE_HEADERS = (
    unlisted("X-Robots-Tag noindex", shows(200, (ROBOTS, "noindex"))),
    unlisted("X-Robots-Tag none", shows(200, (ROBOTS, "none"))),
    unlisted("X-Robots-Tag NoIndex among others", shows(200, (ROBOTS, "nofollow, NoIndex"))),
    unlisted("X-Robots-Tag googlebot: noindex", shows(200, (ROBOTS, "googlebot: noindex"))),
    unlisted("a second X-Robots-Tag of noindex", shows(200, (ROBOTS, "noarchive"), (ROBOTS, "noindex"))),
    listed("X-Robots-Tag otherbot: noindex", shows(200, (ROBOTS, "otherbot: noindex"))),
    listed("X-Robots-Tag nofollow", shows(200, (ROBOTS, "nofollow"))),
    listed("a page whose noindex was taken back", shows(200, (ROBOTS, "noindex")), shows(200)),
    unlisted("Cache-Control private", shows(200, (CACHE, "max-age=60, private"))),
    unlisted("Cache-Control private of one field", shows(200, (CACHE, 'private="set-cookie"'))),
    unlisted("Cache-Control private of all fields", shows(200, (CACHE, 'private="*"'))),
    listed("Cache-Control public", shows(200, (CACHE, "public, max-age=60"))),
    listed("Cache-Control no-store", shows(200, (CACHE, "no-store"))),
    listed("a canonical Link to itself in another spelling", shows(200, (LINK, "</p%61ge>; rel=canonical"))),
    unlisted("a canonical Link to another path", shows(200, (LINK, "</other>; rel=canonical"))),
    unlisted("a canonical Link after another Link", shows(200, (LINK, "</a>; rel=next, </b>; rel=canonical"))),
    listed("a Link of another relation to another path", shows(200, (LINK, "</other>; rel=next"))),
    listed("a page that varies by Cookie and sets one", shows(200, ("vary", "Cookie"), ("set-cookie", "a=b"))),
    listed("HTML with parameters in any case", shows(200, (TYPE, 'Text/HTML ; charset="utf-8"'))),
    listed("XHTML", shows(200, (TYPE, "application/xhtml+xml"))),
    listed("PDF", shows(200, (TYPE, "application/pdf"))),
    unlisted("a page of no type", shows_only(200), play=Plain),
    unlisted("JSON", shows(200, (TYPE, "application/json"))),
    unlisted("plain text", shows(200, (TYPE, "text/plain; charset=utf-8"))),
    unlisted("XML", shows(200, (TYPE, "application/xml"))),
    listed("a type that media_types names", shows(200, (TYPE, "a/b")), options={"media_types": "a/b"}),
)

FOUR = {"paths": ("/", "/a", "/b", "/page"), "locs": (HOME, f"{HOME}a", f"{HOME}b", PAGE)}
DATES = (
    dated("a Last-Modified", shows(200, DAY)),
    dated("a Last-Modified as RFC 850 has it", shows(200, (MODIFIED, "Tuesday, 14-Nov-23 22:13:20 GMT"))),
    dated("a Last-Modified that stands twice", shows(200, DAY, DAY)),
    dated("a Last-Modified that moved once", shows(200, EARLIER), passes(HOUR), shows(200, DAY)),
    dated("the Last-Modified of a page that then fails for a while", shows(200, DAY), shows(500)),
    undated("a Last-Modified taken back", shows(200, DAY), shows(200)),
    undated("an empty Last-Modified", shows(200, (MODIFIED, ""))),
    undated("a Last-Modified that stands twice and differs", shows(200, DAY, EARLIER)),
    undated("a Last-Modified of the year 9999", shows(200, (MODIFIED, "Fri, 31 Dec 9999 23:59:59 GMT"))),
    undated("a Last-Modified of the year 1970", shows(200, (MODIFIED, "Thu, 01 Jan 1970 00:00:00 GMT"))),
    undated("a Last-Modified an hour from now", shows(200, (MODIFIED, formatdate(NOW + HOUR, usegmt=True)))),
    undated("a Last-Modified of bytes that are not text", shows(200, (MODIFIED, "\xff\xfe\x80"))),
    undated("the time of every answer", stamps(0)),
    undated("an hour before every answer", stamps(HOUR)),
    undated("one Last-Modified of all pages", *[shows(200, DAY, path=path) for path in FOUR["paths"]], **FOUR),
    Row(
        "a date apart from that of all other pages is a lastmod",
        (*[shows(200, EARLIER, path=path) for path in FOUR["paths"]], shows(200, DAY)),
        dates={PAGE: "2023-11-14T22:13:20Z"},
        **FOUR,
    ),
)

WHO_TEACHES = (
    *[
        unlisted(
            f"a page that answers {who} by 404", shows(404, spec=RequestSpec("/page", headers=[("accept", kinds)]))
        )
        for who, kinds in (("a browser", "text/html,*/*"), ("a crawler", "*/*"))
    ],
    mute("a request with a Cookie", ("cookie", "session=1")),
    mute("a request with Authorization", ("authorization", "Basic dTpw")),
    mute("a request with a query string", query="page=2"),
    mute("a request for a Range", ("range", "bytes=0-1"), status=206),
    mute("a request that accepts JSON alone", ("accept", "application/json")),
    mute("a request of htmx", ("hx-request", "true")),
    mute("a request of a script", ("x-requested-with", "XMLHttpRequest")),
    mute("a HEAD", method="HEAD"),
    mute("a POST", method="POST"),
    Row("an answer of 304 is not evidence", (shows_only(304),), play=Plain),
)

OWN = {"paths": ("/", "/page", "/sitemap.xml"), "play": Plain}
METHODS = (
    Row("GET gets the document"),
    Row("GET gets the document before an app whose routes cannot be known", **OWN),
    Row("HEAD gets the headers of GET and no body", spec=sitemap_request(method="HEAD")),
    Row("max_age is for how long the document may be kept", options={"max_age": 60}),
    *[
        Row(
            f"{method} /sitemap.xml reaches the app",
            locs=None,
            spec=sitemap_request(method=method),
            text="A page.",
            **OWN,
        )
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    ],
)

NONE_MATCH, SINCE, GZIP = "if-none-match", "if-modified-since", ("accept-encoding", "gzip")
AT, AFTER, BEFORE = (formatdate(NOW + seconds, usegmt=True) for seconds in (0, HOUR, -1))
CONDITIONS = (
    unchanged("the document's tag", (NONE_MATCH, "{etag}")),
    unchanged("the document's tag among others", (NONE_MATCH, '"a", {etag}, W/"b"')),
    unchanged("any tag", (NONE_MATCH, "*")),
    unchanged("the gzipped document's tag", GZIP, (NONE_MATCH, "{gzip}")),
    whole("another tag", (NONE_MATCH, '"another"')),
    whole("the gzipped document's tag without gzip", (NONE_MATCH, "{gzip}")),
    whole("the plain document's tag with gzip", GZIP, (NONE_MATCH, "{etag}")),
    whole("a tag of before a change", (NONE_MATCH, "{etag}"), steps=(sitemap_requested, shows(404)), locs=(HOME,)),
    unchanged("a date at the change", (SINCE, AT)),
    unchanged(
        "a date after the change", (SINCE, AFTER), headers={MODIFIED: AT}, steps=(sitemap_requested, passes(2 * HOUR))
    ),
    whole("a date before the change", (SINCE, BEFORE)),
    whole("a date that is none", (SINCE, "the day before")),
    whole("another tag with a date at the change", (NONE_MATCH, '"another"'), (SINCE, AT)),
    unchanged("the tag with a date before the change", (NONE_MATCH, "{etag}"), (SINCE, BEFORE)),
    Row("HEAD with the tag gets 304", spec=sitemap_request((NONE_MATCH, "{etag}"), method="HEAD"), status=304),
    Row(
        "Last-Modified says since when the document is this one",
        (sitemap_requested, passes(HOUR)),
        headers={MODIFIED: AT},
    ),
)

CODINGS = (
    coded("gzip", "gzip"),
    coded("gzip, deflate, br, zstd", "gzip"),
    coded("*", "gzip"),
    coded("gzip;q=0.5", "gzip"),
    coded("gzip;q=0.5, identity;q=1", None),
    coded("gzip;q=0", None),
    coded("gzip;q=0, *", None),
    coded("br", None),
    coded("", None),
)

BASE, IDN = {"base_url": "https://example.com"}, {"base_url": "https://Bücher.example:8443"}
ALLOWED = {"allowed_hosts": "b.example"}
MAP = {
    "paths": ("/map/{x}",),
    "steps": (shows(path="/map/{x}", spec=RequestSpec("/map/s")),),
    "spec": RequestSpec("/map/s.xml"),
    "options": {"path": "/map/s.xml", "learn": "/map/{x}"},
}
PLACES = (
    at("a root path is prefixed once", f"{HOME}a/", f"{HOME}a/b", spec=sitemap_request(root="/a"), paths=("/", "/b")),
    at("a root path of any letters is percent-encoded", f"{HOME}sh%C3%B6p/", spec=sitemap_request(root="/shöp")),
    at("base_url begins every loc", "https://example.com/", options=BASE),
    at(
        "a root path stands behind base_url",
        "https://example.com/shop/",
        spec=sitemap_request(root="/shop"),
        options=BASE,
    ),
    at("a base_url of any letters is written in ASCII", "https://xn--bcher-kva.example:8443/", options=IDN),
    at(
        "the port of a development machine is kept",
        "http://localhost:8000/",
        spec=sitemap_request(host="localhost:8000"),
    ),
    at("https is kept", "https://testserver/", spec=sitemap_request(scheme="https")),
    at("an allowed host is a site", "http://b.example/", spec=sitemap_request(host="B.example:80"), options=ALLOWED),
    at("a path of any letters is percent-encoded", f"{HOME}%C3%BCber%20uns", paths=("/über uns",)),
    at("a slash at the end is kept", f"{HOME}docs", f"{HOME}pages/", paths=("/docs", "/pages/")),
    at("an ampersand and an apostrophe stand as they are", f"{HOME}a&b's", paths=("/a&b's",)),
    at("the sitemap can be elsewhere, and does not list itself", f"{HOME}map/s", **MAP),
    at("a route by whose parameter /sitemap.xml passes is not the app's own for it", HOME, paths=("/", "/{page}")),
)

NOTHING = (
    "There is nothing to list in /sitemap.xml: no page is known that may be listed."
    " The command sitemap-middleware routes says why.\n"
)
NO_ROUTES = (
    "There is nothing to list in /sitemap.xml, and no routes of the app could be found: "
    "give SitemapMiddleware routes=app, or name pages by include and learn.\n"
)
NO_STORE = "The sitemap cannot be made now: its store does not answer.\n"
NO_HOST = (
    "No sitemap for this host: it is not in allowed_hosts and base_url is not set. Set SITEMAP_BASE_URL,"
    ' or pass base_url="https://example.com" or allowed_hosts=("example.com",) to SitemapMiddleware.\n'
)
FAILS, WORKS = ("store unavailable since 2025-06-15T15:06:4", "store available again")
STALE = (sitemap_requested, store_fails, shows(404))
RIVAL = {
    "paths": ("/", "/sitemap.xml"),
    "steps": (shows(path="/sitemap.xml"),),
    "warns": ("the app itself has a route for /sitemap.xml and keeps it",),
}
TROUBLE = (
    refused("nothing to list", 404, NOTHING, shows(404), shows(401, path="/")),
    refused("an app without a route", 404, NO_ROUTES, paths=(), warns=("there is no sitemap, and no routes",)),
    refused("a HEAD for nothing", 404, "", shows(404), shows(401, path="/"), spec=sitemap_request(method="HEAD")),
    refused(
        "a host that is not the site's",
        404,
        NO_HOST,
        spec=sitemap_request(host="evil.example"),
        warns=("no sitemap for the host",),
    ),
    refused(
        "a request without a host", 404, NO_HOST, spec=sitemap_request(host=None), warns=("no sitemap for the host",)
    ),
    refused("a store that fails at once", 503, NO_STORE, store_fails, headers={"retry-after": "60"}, warns=(FAILS,)),
    Row("a store that fails later leaves the last good document", STALE, warns=(FAILS,)),
    unlisted(
        "a page that answered 404 while the store failed", *STALE, sitemap_requested, store_works, warns=(FAILS, WORKS)
    ),
    Row("the app's own route for /sitemap.xml wins, with one warning", locs=None, text="A page.", **RIVAL),
)

ROWS = (*STATUSES, *RESPONSE_HEADERS, *DATES, *WHO_TEACHES, *METHODS, *CONDITIONS, *CODINGS, *PLACES, *TROUBLE)


# How a row is played, and what is true of every answer


@dataclass(frozen=True)
class Outcome:
    """What came of a row; the same by both protocols."""

    status: int
    headers: frozenset[Header]
    body: bytes
    document: bytes
    """What a GET without conditions or codings gets after that."""
    got: frozenset[Header]
    warned: tuple[str, ...]


def played(row: Row, protocol: str, caplog: pytest.LogCaptureFixture) -> Outcome:
    caplog.clear()
    site = row.play(protocol, row.paths, **row.options)
    for step in row.steps:
        step(site)
    if not site.tags and any("{" in value for _, value in row.spec.headers):
        sitemap_requested(site)
    filled = [(name, value.format(**site.tags)) for name, value in row.spec.headers]
    answer = site.request(replace(row.spec, headers=filled))
    plain = site.request(replace(row.spec, headers=[], method="GET"))
    warned = tuple(record.getMessage() for record in caplog.records if record.name == "sitemap_middleware")
    return Outcome(answer.status, frozenset(answer.headers), answer.body, plain.body, frozenset(plain.headers), warned)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says)
def test_scenario(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    outcome = played(row, "wsgi", caplog)
    assert outcome == played(row, "asgi", caplog)
    headers = dict(outcome.headers)
    assert outcome.status == row.status
    assert len(outcome.warned) == len(row.warns)
    assert all(message.startswith(prefix) for message, prefix in zip(outcome.warned, row.warns, strict=True))
    if row.locs is None:
        assert outcome.body.decode() == row.text
        if row.status != 200:
            assert_refusal(headers, outcome)
    else:
        listed_entries = entries(outcome.document)
        assert tuple(listed_entries) == row.locs
        assert {loc: entry["lastmod"] for loc, entry in listed_entries.items() if entry} == row.dates
        assert_document(row, headers, outcome)
    assert {name: headers.get(name) for name in row.headers} == row.headers


def assert_document(row: Row, headers: dict[str, str], outcome: Outcome) -> None:
    """The headers of a document and of a 304 for it; the body if there is one."""
    assert re.fullmatch(r'"[0-9a-f]{32}(-gzip)?"', headers["etag"])
    assert headers["cache-control"] == f"public, max-age={row.options.get('max_age', 300)}"
    assert headers["vary"] == "Accept-Encoding"
    assert headers["x-robots-tag"] == "noindex"
    assert MODIFIED in headers or row.headers == {MODIFIED: None}
    if row.status == 304:
        assert outcome.body == b""
        assert not {"content-type", "content-length", "content-encoding"} & headers.keys()
        return
    assert headers["content-type"] == "application/xml; charset=utf-8"
    assert headers["etag"].endswith('-gzip"') == (headers.get("content-encoding") == "gzip")
    if row.spec.method == "HEAD":
        assert (outcome.headers, outcome.body) == (outcome.got, b"")
        return
    assert int(headers["content-length"]) == len(outcome.body)
    assert (gzip.decompress(outcome.body) if "content-encoding" in headers else outcome.body) == outcome.document


def assert_refusal(headers: dict[str, str], outcome: Outcome) -> None:
    """One line of plain text, which is not to be kept."""
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-robots-tag"] == "noindex"
    assert outcome.document.count(b"\n") == 1
    assert int(headers["content-length"]) == len(outcome.document)


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_a_route_that_takes_every_path_leaves_the_sitemap_to_us(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = Framework(protocol, ["/"])
    if protocol == "wsgi":
        site.bare.add_url_rule("/<path:rest>", "rest", lambda rest: rest)
    else:
        site.bare.add_route("/{rest:path}", lambda request: PlainTextResponse(request.path_params["rest"]))
    assert site.request("/anything/else").text == "anything/else"
    assert site.locs() == [HOME]
    assert not caplog.records
