"""Headers that claim another URL, host or scheme: apps may believe them, so one stranger's request proves little."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware.models import Site
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.sample_sites import Page, SampleSite
from ...support.stores import all_pages
from .test_varying_content_prober import Site as ProbedSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HTML = [("content-type", "text/html; charset=utf-8")]
BASE = "https://example.com"

CLAIMS = [
    ("x-original-url", "https://example.com/nothing?a=b"),
    ("x-original-url", "http://["),
    ("x-forwarded-prefix", "/x"),
    ("x-forwarded-port", "81"),
    ("x-forwarded-proto", "http"),
    ("script-name", "/x"),
    ("forwarded", "proto=http;for=192.0.2.7"),
    ("front-end-https", "off"),
    ("x-tenant", "nobody"),
    ("x-forwarded-host", "www.example.com"),
    ("forwarded", 'for=192.0.2.7;host="www.example.com"'),
]
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
    pages = {
        path: Page(body=f"<!doctype html><title>t</title><p>The page {path}.".encode()) for path in ("/", "/a", "/b")
    }
    return SampleSite(protocol, pages, base_url=BASE, list_unseen=False, **options)


def asked(sample: SampleSite, path: str, answer: Page | None = None, **spec: Any) -> None:
    """Request a page ten seconds later, which answers this time in another way."""
    sample.clock.pass_(10)
    usual = sample.pages[path]
    sample.pages[path] = answer or usual
    sample.request(path, host=spec.pop("host", "example.com"), scheme="https", **spec)
    sample.app.flush()
    sample.pages[path] = usual


def listed(sample: SampleSite) -> list[str]:
    return [loc.removeprefix(BASE) for loc in sample.locs()]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("claim", CLAIMS, ids=": ".join)
@pytest.mark.parametrize("restarts", [True], ids=["first request after a restart"])
def test_one_request_with_an_unusual_header_delists_nothing(
    protocol: str, claim: tuple[str, str], *, restarts: bool
) -> None:
    store = MemoryStore()
    sample = site(protocol, store=store)
    for path in sample.pages:
        asked(sample, path)
    if restarts:
        sample = site(protocol, store=store, clock=sample.clock)
    for answer in ANSWERS.values():
        asked(sample, "/a", answer, headers=[claim])
        assert listed(sample) == ["/", "/a", "/b"]
        asked(sample, "/a")
    sample.clock.pass_(3600)  # so that contents are read again
    before = sample.entries()
    asked(sample, "/a", Page(body=b"<!doctype html><title>t</title><p>Another text."), headers=[claim])
    assert sample.entries() == before, "its content is not news"


@BOTH
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_normal_request_delists_at_once_what_an_unusual_one_did_not(protocol: str, answer: Page) -> None:
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
    asked(sample, "/a", headers=[(header, "http")])
    assert listed(sample) == (["/", "/a"] if is_learned else ["/"])


@BOTH
def test_unknown_pages_do_not_become_known_by_an_unusual_request_that_fails(protocol: str) -> None:
    store = MemoryStore()
    sample = site(protocol, store=store)
    asked(sample, "/")
    asked(sample, "/a", Page(404), headers=[("x-original-url", "/nothing")])
    assert [page.path for page in all_pages(store, Site("https", "example.com").store_key)] == ["/"]


@BOTH
def test_learned_page_that_refuses_a_stranger_is_dropped_whatever_the_headers(protocol: str) -> None:
    sample = SampleSite(protocol, {"/p/{slug}": Page()}, learn="/p/{slug}", base_url=BASE)
    asked(sample, "/p/{slug}")
    sample.pages["/p/{slug}"] = Page(403)
    sample.request("/p/{slug}", host="example.com", headers=[("x-forwarded-prefix", "/x")])
    assert listed(sample) == []


@BOTH
@pytest.mark.parametrize("status", [404, 410, 403])
def test_probe_lists_a_page_again_that_an_odd_request_delisted(protocol: str, status: int) -> None:
    """No rule knows all headers by which an app decides: what it answers to a request of the middleware settles it."""
    probed = ProbedSite(protocol)
    probed.visit("/page", "/other")
    probed.clock.pass_(3600)
    bodies: list[str] = []

    def says(slug: str) -> str:
        bodies.append("The first content" if bodies or slug == "other" else "")
        return bodies[-1]

    probed.says, probed.refuses = says, status
    probed.visit("/page")
    assert len(bodies) > 1, "the visit, and our own request"
    assert probed.app.explain("/page").listed


# Names and counts
