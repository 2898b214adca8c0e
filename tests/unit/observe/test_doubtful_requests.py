"""Requests under another Host, or with headers that claim another URL: apps may believe them, so one proves little."""

from __future__ import annotations

import re
from typing import Any

import flask
import pytest

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.observe.ingest import OWN_HOST_WINDOW_SECONDS
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import BOTH, RequestSpec, wsgi
from .test_prober import Site as ProbedSite

HTML = [("content-type", "text/html; charset=utf-8")]
BASE = "https://example.com"
HOUR = OWN_HOST_WINDOW_SECONDS

DOUBTFUL: dict[str, dict[str, Any]] = {
    f"{name}: {value}": {"headers": [(name, value)]}
    for name, value in (
        ("x-original-url", "https://example.com/nothing?a=b"),
        ("x-original-url", "http://["),
        ("x-forwarded-prefix", "/x"),
        ("x-forwarded-prefix", "/a"),
        ("x-forwarded-port", "81"),
        ("x-forwarded-proto", "http"),
        ("script-name", "/x"),
        ("forwarded", "proto=http;for=192.0.2.7"),
        ("x-tenant", "nobody"),
        ("x-forwarded-host", "www.example.com"),
    )
}
DOUBTFUL |= {host[:30]: {"host": host} for host in ("evil.example", "x" * 3000, "www.example.com")}

ANSWERS = {
    "404": Page(404),
    "410": Page(410),
    "301": Page(301, [*HTML, ("location", "/elsewhere")]),
    "403": Page(403),
    "noindex": Page(200, [*HTML, ("x-robots-tag", "noindex")]),
    "private": Page(200, [*HTML, ("cache-control", "private")]),
    "download": Page(200, [*HTML, ("content-disposition", "attachment")]),
    "expiry": Page(200, [*HTML, ("x-robots-tag", "unavailable_after: 2000-01-01")]),
    "canonical": Page(200, [*HTML, ("link", "<https://example.com/x>; rel=canonical")]),
    "json": Page(200, [("content-type", "application/json")], b"{}"),
    "meta noindex": Page(body=b"<!doctype html><title>t</title><meta name=robots content=noindex><p>Nothing."),
    "link canonical": Page(body=b"<!doctype html><title>t</title><link rel=canonical href=/x><p>Nothing."),
    "refresh": Page(body=b'<!doctype html><title>t</title><meta http-equiv=refresh content="0;url=/x"><p>Nothing.'),
}


def site(protocol: str, **options: Any) -> SampleSite:
    pages = {path: Page(body=f"<title>t</title><p>The page {path}.".encode()) for path in ("/", "/a", "/b")}
    return SampleSite(protocol, pages, base_url=BASE, **{"list_unseen": False, **options})


def asked(sample: SampleSite, path: str, answer: Page | None = None, **spec: Any) -> None:
    """Request a page ten seconds later, which answers this time in another way."""
    sample.clock.pass_(10)
    usual, sample.pages[path] = sample.pages[path], answer or sample.pages[path]
    sample.request(path, scheme="https", **{"host": "example.com", **spec})
    sample.app.flush()
    sample.pages[path] = usual


def listed(sample: SampleSite) -> list[str]:
    return [loc.removeprefix(BASE) for loc in sample.locs()]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("spec", DOUBTFUL.values(), ids=DOUBTFUL.keys())
@pytest.mark.parametrize("restarts", [False, True], ids=["", "first request after a restart"])
def test_one_doubtful_request_delists_and_dates_nothing(protocol: str, spec: dict[str, Any], *, restarts: bool) -> None:
    store = MemoryStore()
    sample = site(protocol, store=store)
    for path in sample.pages:
        asked(sample, path)
    before = sample.entries()
    for answer in (*ANSWERS.values(), Page(body=b"<!doctype html><title>t</title><p>Another text.")):
        if restarts:
            sample = site(protocol, store=store, clock=sample.clock)
        sample.clock.pass_(2 * HOUR)
        asked(sample, "/a", answer, **spec)
        assert sample.entries() == before
        asked(sample, "/a")


@BOTH
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_normal_request_delists_at_once_what_a_doubtful_one_did_not(protocol: str, answer: Page) -> None:
    sample = site(protocol)
    for path in sample.pages:
        asked(sample, path)
    asked(sample, "/a", answer, headers=[("x-original-url", "/nothing")])
    for _ in range(2):  # some answers need another visitor
        sample.clock.pass_(3600)
        asked(sample, "/a", answer)
    assert listed(sample) == ["/", "/b"]
    asked(sample, "/a", headers=[("x-original-url", "/nothing")])
    assert listed(sample) == ["/", "/b"], "the answer may be another page's"
    sample.clock.pass_(3600)
    asked(sample, "/a")
    assert listed(sample) == ["/", "/a", "/b"]


@BOTH
@pytest.mark.parametrize(("header", "is_learned"), [("x-original-url", False), ("x-forwarded-proto", True)])
def test_a_page_is_not_learned_by_the_answer_of_another(protocol: str, header: str, *, is_learned: bool) -> None:
    sample = site(protocol)
    asked(sample, "/")
    for listed_by_now in (["/"], ["/", "/a"] if is_learned else ["/"]):
        asked(sample, "/a", headers=[(header, "http")])
        assert listed(sample) == listed_by_now
        sample.clock.pass_(60)


@BOTH
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-forwarded-server", "traefik-7d"),
        ("x-forwarded-host", "example.com:443"),
        ("x-forwarded-port", "443"),
        ("x-original-uri", "/a"),
        ("forwarded", 'for=192.0.2.7;host="example.com";proto=https'),
    ],
)
def test_what_a_proxy_says_of_the_site_itself_leaves_no_doubt(protocol: str, header: str, value: str) -> None:
    sample = site(protocol)
    asked(sample, "/a", headers=[(header, value)])
    assert listed(sample) == ["/a"]


@BOTH
@pytest.mark.parametrize("spec", [{"headers": [("x-original-url", "/nothing")]}, {"host": "evil.example"}], ids=repr)
def test_a_doubtful_request_that_fails_tells_nothing_of_an_unknown_page(protocol: str, spec: dict[str, Any]) -> None:
    sample = site(protocol, list_unseen=True)
    asked(sample, "/")
    sample.clock.pass_(2 * HOUR)
    asked(sample, "/a", Page(404), **spec)
    assert listed(sample) == ["/", "/a", "/b"]


@BOTH
def test_learned_page_that_refuses_a_stranger_is_dropped_whatever_the_headers(protocol: str) -> None:
    sample = SampleSite(protocol, {"/p/{slug}": Page()}, learn="/p/{slug}", base_url=BASE)
    asked(sample, "/p/{slug}")
    sample.pages["/p/{slug}"] = Page(403)
    sample.request("/p/{slug}", host="example.com", headers=[("x-forwarded-prefix", "/x")])
    assert listed(sample) == []


def test_a_page_that_differs_each_time_is_seldom_requested_because_of_doubtful_visits() -> None:
    probed, visits = ProbedSite("wsgi"), 60
    probed.says = lambda _: f"The word {chr(97 + len(probed.asked) % 26) * 9}"
    probed.visit("/page")
    before = len(probed.asked)
    for _ in range(visits):
        wsgi(probed.app, RequestSpec("/page", headers=[("x-tenant", "main")]))
        probed.visit()
        probed.clock.pass_(10)
    assert 0 < len(probed.asked) - before - visits < 10


PROXIES: dict[str, dict[str, Any]] = {
    "none": {},
    "Host kept": {"headers": [("x-forwarded-proto", "https"), ("x-forwarded-port", "443")]},
    "other scheme": {"headers": [("x-forwarded-proto", "http")]},
    "Host rewritten": {"host": "backend:8000", "headers": [("x-forwarded-host", "example.com")]},
    "tenant": {"headers": [("x-tenant", "main")]},
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("proxy", PROXIES.values(), ids=PROXIES.keys())
def test_values_that_are_no_pages_are_left_out_whatever_the_proxy_sends(proxy: dict[str, Any], *, verify: bool) -> None:
    answers = {
        "fine": ("Fine", 200),
        "404": ("", 404),
        "403": ("", 403),
        "noindex": ("<meta name=robots content=noindex>", 200),
    }
    answers["login"] = flask.Response(status=302, headers={"location": "/login?next=/login"})
    app, clock = flask.Flask("values", static_folder=None), Clock()
    app.add_url_rule("/p/<name>", "page", sitemap(values=list(answers))(lambda name: answers[name]))
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", clock=clock, verify=verify)
    site.service.prober.wait = lambda seconds, *_: clock.pass_(seconds)  # type: ignore[method-assign]

    def get(path: str) -> str:
        return wsgi(site, RequestSpec(path, scheme="https", **{"host": "example.com", **proxy})).text

    assert get("/sitemap.xml").count("<loc>") == len(answers)
    for _ in range(2):
        for name in answers:
            get(f"/p/{name}")
        site.flush()
        clock.pass_(400)
    get("/sitemap.xml")
    site.flush()
    assert re.findall("<loc>(.*?)<", get("/sitemap.xml")) == [f"{BASE}/p/fine"]
    site.close()


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "spec",
    [
        {"host": "example.com."},
        {"host": "EXAMPLE.com"},
        {"host": "example.com:443"},
        {"headers": [("x-tenant", "other")]},
    ],
    ids=repr,
)
def test_what_a_stranger_had_the_app_show_is_on_no_page_of_the_site(spec: dict[str, Any], *, verify: bool) -> None:
    """The app shows another site under any Host that it does not know."""
    app, clock = flask.Flask("tenants", static_folder=None), Clock()

    def page(name: str) -> flask.Response:
        own = flask.request.host == "example.com" and "x-tenant" not in flask.request.headers
        owner = "own" if own else "other"
        answer = flask.Response(
            f'<html><script type=application/ld+json>{{"dateModified": "2025-01-0{1 + own}"}}</script>'
            f"<link rel=alternate hreflang=de href=/b><main><h1>{owner} {name}</h1><img src=/{owner}-{name}.png></main>"
        )
        answer.headers["last-modified"] = f"Wed, 0{1 + own} Jan 2025 10:00:00 GMT"
        return answer

    for name in ("a", "b", "c"):
        app.add_url_rule(f"/{name}", name, lambda name=name: page(name))
    site = SitemapMiddleware(
        app, base_url=lambda _: BASE, store="memory://", clock=clock, images=True, alternates=True, verify=verify
    )

    def visit(**request: Any) -> list[str]:
        for path in ("/a", "/b", "/c", "/sitemap.xml"):
            answer = wsgi(site, RequestSpec(path, scheme="https", **{"host": "example.com", **request}))
            site.flush()
        clock.pass_(4000)
        return [line for line in answer.text.splitlines() if line.startswith("<url>")]

    for _ in range(4):
        visit()
    before = visit()
    assert "own-a.png" in str(before)
    assert "2025-01-02" in str(before)
    for _ in range(4):
        visit(**spec)
    assert visit() == before
    site.close()
