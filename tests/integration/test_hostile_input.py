"""Hostile requests and responses raise no error in the middleware, leave the app's answer unchanged, and every loc is true.

True means that the document is valid, and that each loc, percent-decoded and
asked for again, leads to the very page that answered. The properties run with a
few examples in every test run, and with 100,000 by ``--long``.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from ..support.documents import entries, lastmod, locs
from ..support.sample_sites import Clock
from ..support.wire import BOTH, DRIVERS, PROTOCOLS, Answer, RequestSpec, wsgi

EXAMPLES = pytest.mark.parametrize("examples", ["few", pytest.param("many", marks=pytest.mark.long)])

LEGAL = re.compile(r"https?://[a-z0-9.:\[\]_-]+(/([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*)")
"""A loc of RFC 3986's characters alone, in one spelling, without query or fragment."""
OURS = re.compile(r"/sitemap(-[1-9][0-9]{0,4})?\.xml")
"""The paths that are ours to answer."""


# What is sent


NASTY = (
    *("\0", "\t", "\n", "\r\n", "\x0b", "\x1f", "\x7f", "\x80", "\x85", "\xa0", "\u2028", "\u202e", "\ufeff"),
    *("\ufffd", "\ufffe", "\uffff", "\U0001f600", "e\u0301", "é", "İ", "ﬁ", "٣"),
    *("%zz", "%", "%00", "%2e%2e", "%2F", "%C3%A9", "%FF", "+", " "),
    *("//", "/", "..", ".", "./", "/../", "\\", "\\..\\", "~", "*", ":", "@", ";", ",", "=", "?", "#", "?a=b", "#a"),
    *("&", "<", ">", "'", '"', "]]>", "<!--", "<![CDATA[", "&amp;", "&#0;", "&lol;", "<loc>", "</loc></url>"),
    *("{x}", "<x>", "sitemap.xml", "sitemap-1.xml", "http://evil.example", "javascript:", "a", "A" * 300),
)
ESCAPED = st.binary(max_size=30).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
"""Bytes that may be no UTF-8, as a server hands them to an app."""
MIXED = st.lists(st.sampled_from(NASTY), max_size=6).map("".join)
TEXTS = st.one_of(st.text(max_size=40), ESCAPED, MIXED)
PATHS = st.tuples(st.sampled_from(["/p/", "/p/", "/p/", "/", "/sitemap"]), TEXTS).map("".join)
ORDINARY = st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"], exclude_characters="/\ufffd"), min_size=1)
LATIN = st.text(st.characters(max_codepoint=0xFF), max_size=40)
"""Any bytes, as the text that WSGI makes of them."""


# Who answers


def text(x: str) -> str:
    """A page like no other: many alike below one route would be taken for "not found"."""
    return f"<!doctype html><title>A page</title><p>{quote(x, errors='surrogateescape')}"


BODY = text("any").encode()


@functools.cache
def bare(protocol: str) -> Any:
    """An app in which every path below /p/ is a page."""
    if protocol == "wsgi":
        app = flask.Flask("bare", static_folder=None)
        app.add_url_rule("/", "home", lambda: text("/"))
        app.add_url_rule("/p/<x>", "page", text)
        return app

    async def page(request: Request) -> HTMLResponse:
        return HTMLResponse(text(request.path_params.get("x", "/")))

    return Starlette(routes=[Route("/", page), Route("/p/{x}", page)])


@contextlib.contextmanager
def wrapped(app: Any, **options: Any) -> Iterator[Any]:
    site = SitemapMiddleware(
        app, **{"verify": False} | {"store": "memory://", "learn": "/p/{x}", "clock": Clock()} | options
    )
    try:
        yield site
    finally:
        site.close()


def outcome(protocol: str, app: Any, spec: RequestSpec) -> Any:
    """The answer, or the error that is raised in its place."""
    try:
        return DRIVERS[protocol](app, spec)
    except Exception as error:
        return type(error), str(error)


def assert_unchanged(protocol: str, site: Any, spec: RequestSpec) -> None:
    assert outcome(protocol, site, spec) == outcome(protocol, site.app, spec)


def listed(protocol: str, site: Any, root: str = "") -> list[str]:
    """The locs of a document that is valid, each of them shown to be true; none if there is nothing to list."""
    site.flush()
    answer = DRIVERS[protocol](site, RequestSpec("/sitemap.xml", root=root))
    assert answer.status in (200, 404)
    listed_urls = locs(answer.body) if answer.status == 200 else []
    assert len(set(listed_urls)) == len(listed_urls)
    for loc in listed_urls:
        assert len(loc) < 2048
        path = LEGAL.fullmatch(loc)
        assert path
        decoded = unquote(path[1], errors="strict")
        assert decoded.startswith(f"{root}/")
        below = decoded.removeprefix(root)
        again = DRIVERS[protocol](site.app, RequestSpec(below, root=root))
        assert (again.status, again.text) == (200, text(below.removeprefix("/p/")))
    return listed_urls


# Paths


@pytest.mark.slow
@EXAMPLES
@given(paths=st.lists(PATHS, min_size=1, max_size=5))
def test_any_path_passes_and_is_listed_truly_or_not_at_all(paths: list[str], examples: str) -> None:
    for protocol in PROTOCOLS:
        with wrapped(bare(protocol)) as site:
            for path in paths:
                if not OURS.fullmatch(path):
                    assert_unchanged(protocol, site, RequestSpec(path))
            assert "http://testserver/" in listed(protocol, site)


@pytest.mark.slow
@EXAMPLES
@given(names=st.lists(ORDINARY, min_size=1, max_size=5))
def test_every_page_of_an_ordinary_name_is_listed(names: list[str], examples: str) -> None:
    wanted = {f"/p/{name}" for name in names if name not in (".", "..")}
    for protocol in PROTOCOLS:
        with wrapped(bare(protocol)) as site:
            for path in wanted:
                DRIVERS[protocol](site, RequestSpec(path))
            paths = {unquote(urlsplit(loc).path) for loc in listed(protocol, site)}
            assert paths == wanted | {"/"}


@EXAMPLES
@given(root=st.one_of(st.text(max_size=40), MIXED), name=ORDINARY)
def test_any_root_path_passes_and_prefixes_locs_or_nothing_is_served(root: str, name: str, examples: str) -> None:
    mounted = f"/mnt{root}".rstrip("/")
    for protocol in PROTOCOLS:
        with wrapped(bare(protocol)) as site:
            assert_unchanged(protocol, site, RequestSpec(f"/p/{name}", root=mounted))
            for loc in listed(protocol, site, mounted):
                assert loc.startswith("http://testserver/mnt")


LONGEST = 2047 - len("http://testserver/p/")


@BOTH
@pytest.mark.parametrize(
    ("path", "loc"),
    [
        ("/p/a b", "/p/a%20b"),
        ("/p/é", "/p/%C3%A9"),
        ("/p/%zz", "/p/%25zz"),
        ("/p/a?b#c", "/p/a%3Fb%23c"),
        ("/p/a\\b", "/p/a%5Cb"),
        ("/p/<&>'\"", "/p/%3C&%3E'%22"),
        ("/p/...", "/p/..."),
        ("/p/\u2028", "/p/%E2%80%A8"),
        ("/p/\ufffe", "/p/%EF%BF%BE"),
        ("/p/\U0001f600", "/p/%F0%9F%98%80"),
        ("/p/" + "a" * LONGEST, "/p/" + "a" * LONGEST),
        ("/p/" + "a" * (LONGEST + 1), None),
        ("/p/" + "é" * 400, None),
        ("/p/a\0b", None),
        ("/p/a\nb", None),
        ("/p/a\r\nX-Injected: 1", None),
        ("/p/\x7f", None),
        ("/p/\ufffd", None),
        (b"/p/\xff".decode("utf-8", "surrogateescape"), None),
        ("/p/.", None),
        ("/p/..", None),
        ("/p/", None),
        ("//p/x", None),
        ("/p/x/", None),
        ("/p/../p/x", None),
        ("///evil.example", None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_path_is_listed_as_it_leads_back_or_not_at_all(protocol: str, path: str, loc: str | None) -> None:
    with wrapped(bare(protocol), list_unseen=False) as site:
        assert_unchanged(protocol, site, RequestSpec(path))
        assert listed(protocol, site) == ([] if loc is None else [f"http://testserver{loc}"])


# Headers of requests


NAMES = (
    *("accept", "accept-encoding", "authorization", "cookie", "hx-request", "if-match", "if-modified-since"),
    *("if-none-match", "if-range", "if-unmodified-since", "range", "x-requested-with", "x-forwarded-host", "x-any"),
)
WORDS = (
    *("gzip", "*", "identity", ";q=", "0", "0.5", "1", "1e9", "nan", "-1"),
    *(",", " ", '"', "W/", "\\", "text/html", "\xff"),
    *("Tue, 14 Nov 2023 22:13:20 GMT", "Fri, 31 Dec 9999 23:59:59", "Mon, 01 Jan 0001 00:00:00 +2359"),
)
VALUES = st.one_of(LATIN, st.lists(st.sampled_from(WORDS), max_size=6).map("".join))


@EXAMPLES
@given(headers=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=5, unique_by=lambda pair: pair[0]))
def test_any_request_headers_pass_and_get_the_sitemap_or_304(headers: list[tuple[str, str]], examples: str) -> None:
    for protocol in PROTOCOLS:
        with wrapped(bare(protocol), allowed_hosts=["testserver"]) as site:  # behind any proxy
            assert_unchanged(protocol, site, RequestSpec("/p/x", headers=headers))
            answer: Answer = DRIVERS[protocol](site, RequestSpec("/sitemap.xml", headers=headers))
            assert answer.status in (200, 304)
            assert answer.body or answer.status == 304
            if answer.status == 200:
                packed = answer.header("content-encoding") == "gzip"
                assert "http://testserver/" in locs(gzip.decompress(answer.body) if packed else answer.body)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_a_request_header_of_a_hundred_kilobytes_passes(protocol: str, name: str) -> None:
    for unit in ("a", ",", '"', "gzip,", '"a",', ";q=", "\\", " "):
        with wrapped(bare(protocol), allowed_hosts=["testserver"]) as site:  # behind any proxy
            answer = DRIVERS[protocol](
                site, RequestSpec("/sitemap.xml", headers=[(name, unit * (100_000 // len(unit)))])
            )
            assert answer.status == 200


# Hosts


PARTS = (
    *("example.com", "evil.example", "localhost", "127.0.0.1", "[::1]", ".", ":", "80", "8000", "99999", "@", "/"),
    *("#", "?", "\\", " ", "\r\n", "\0", "%", "-", "_", "<", "&", '"', "'", "\xe9", "xn--", "a" * 64),
)
HOSTS = st.one_of(LATIN, st.lists(st.sampled_from(PARTS), max_size=5).map("".join))
SITES: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, r"http://(localhost|[a-z0-9_.-]+\.localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[1-9][0-9]{0,4})?/"),
    ({"allowed_hosts": ".example.com"}, r"http://([a-z0-9_-]+\.)*example\.com(:[1-9][0-9]{0,4})?/"),
    ({"base_url": "https://example.com"}, r"https://example\.com/"),
)


@pytest.mark.slow
@EXAMPLES
@given(host=HOSTS)
def test_any_host_passes_and_appears_in_locs_only_if_it_is_the_sites_own(host: str, examples: str) -> None:
    for protocol in PROTOCOLS:
        for options, own in SITES:
            with wrapped(bare(protocol), **options) as site:
                assert_unchanged(protocol, site, RequestSpec("/", host=host))
                answer = DRIVERS[protocol](site, RequestSpec("/sitemap.xml", host=host))
                assert answer.status == 200 or (answer.status == 404 and "base_url" not in options)
                for loc in locs(answer.body) if answer.status == 200 else []:
                    assert re.fullmatch(own, loc)
                    assert urlsplit(loc).port != 0  # and it is none past 65535, which would raise


# Headers of responses


class Raw:
    """An app of each protocol that answers with the bytes it is given, including those that frameworks refuse.

    It has no robots.txt: without readable rules no sitemap is served.
    """

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[str, str]] = []

    def wsgi(self, environ: Any, start_response: Any) -> list[bytes]:
        status, headers = self._response(environ["PATH_INFO"])
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [BODY]

    async def asgi(self, scope: Any, _: Any, send: Any) -> None:
        status, pairs = self._response(scope["path"])
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})

    def _response(self, path: str) -> tuple[int, list[tuple[str, str]]]:
        return (404, []) if path == "/robots.txt" else (self.status, self.headers)


TOLD = (
    *("content-type", "Content-Type", "last-modified", "x-robots-tag", "cache-control", "link", "location", "etag"),
    *("content-length", "content-encoding", "vary", "set-cookie", "x-any", ""),
)
PHRASES = (
    *("text/html", "application/pdf", "; charset=", "noindex", "none", "googlebot:", "otherbot:", "private", "gzip"),
    *(",", "</p/x>", "<", ">", "; rel=", '"', "canonical", "\\", "http://testserver", "http://["),
    *("/p/x", "?", "#", "\0"),
    *("Tue, 14 Nov 2023 22:13:20 GMT", "Sun, 15 Jun 2025 15:06:40 GMT", "Fri, 31 Dec 9999 23:59:59", "\r\n", "\xff"),
    *("Mon, 01 Jan 0001 00:00:00 +2359", "Tuesday, 14-Nov-23 22:13:20 GMT", "9" * 30),
)
SAID = st.one_of(LATIN, st.lists(st.sampled_from(PHRASES), max_size=6).map("".join))
RESPONSES = st.tuples(
    st.sampled_from(["/p/a", "/p/b"]),
    st.sampled_from([200, 200, 200, 200, 204, 301, 304, 404, 410, 500]),
    st.lists(st.tuples(st.sampled_from(TOLD), SAID), max_size=4),
    st.booleans(),
)


@EXAMPLES
@given(responses=st.lists(RESPONSES, min_size=1, max_size=4))
def test_any_response_headers_pass_and_both_protocols_read_them_alike(
    responses: list[tuple[str, int, list[tuple[str, str]], bool]], examples: str
) -> None:
    documents = []
    for protocol in PROTOCOLS:
        raw = Raw()
        with wrapped(getattr(raw, protocol)) as site:
            for path, status, headers, typed in responses:
                site.service.clock.pass_(1000)
                raw.status, raw.headers = status, [("content-type", "text/html")] * typed + headers
                answer = answered(protocol, site, RequestSpec(path))
                assert answer == answered(protocol, site.app, RequestSpec(path))
                site.flush()
            document = DRIVERS[protocol](site, RequestSpec("/sitemap.xml"))
            documents.append((document.status, document.body))
            assert document.status in (200, 404)
            for loc, entry in entries(document.body).items() if document.status == 200 else ():
                assert loc in ("http://testserver/p/a", "http://testserver/p/b")
                assert 631_152_000 <= lastmod(entry.get("lastmod", "2000-01-01T00:00:00Z")).timestamp() < 1_750_010_000
    assert documents[0] == documents[1]


def answered(protocol: str, app: Any, spec: RequestSpec) -> Answer:
    """The answer, without the validator of WSGI, to whom these headers are a horror."""
    return wsgi(app, spec, validate=False) if protocol == "wsgi" else DRIVERS[protocol](app, spec)


@BOTH
@pytest.mark.parametrize("name", ["content-type", "last-modified", "x-robots-tag", "cache-control", "link", "location"])
def test_huge_response_header_passes_and_the_sitemap_is_served(protocol: str, name: str) -> None:
    for unit in ("a", ",", '<>"', '<>\\"', "</a>; rel=canonical,", "a:", "=", "\\", " ", "9"):
        raw = Raw()
        raw.headers = [("content-type", "text/html"), (name, unit * (100_000 // len(unit)))]
        with wrapped(getattr(raw, protocol)) as site:
            assert answered(protocol, site, RequestSpec("/p/x")).status == 200
            site.flush()
            assert DRIVERS[protocol](site, RequestSpec("/sitemap.xml")).status in (200, 404)
