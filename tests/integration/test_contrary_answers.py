"""Answers that may depend on the visitor: what of them delists a page, and when."""

from __future__ import annotations

import pytest

from ..support.sample_sites import Page as Answer
from ..support.sample_sites import SampleSite
from ..support.waiting import join_threads
from ..support.wire import BOTH, RequestSpec, wsgi
from ..unit.observe.test_prober import Site

VISITORS = {
    "a redirect by language": (302, [("accept-language", "de-DE,de;q=0.9"), ("user-agent", "A")]),
    "a redirect by device": (302, [("user-agent", "Mozilla/5.0 (iPhone)")]),
    "a User-Agent that is blocked": (403, [("user-agent", "sqlmap")]),
    "a method that is not allowed": (405, [("user-agent", "odd")]),
    "a country that is not served": (451, [("user-agent", "odd")]),
}


@BOTH
@pytest.mark.parametrize(("status", "headers"), VISITORS.values(), ids=VISITORS.keys())
def test_a_listed_page_survives_what_one_visitor_is_answered(
    protocol: str, status: int, headers: list[tuple[str, str]]
) -> None:
    sample = SampleSite(protocol, {"/": Answer(), "/about": Answer()}, max_age=0, verify=False)
    sample.visit("/", "/about")
    sample.pages["/about"] = Answer(status, [("location", "/elsewhere"), ("content-type", "text/html")])
    for seconds in (1, 1, 50):
        sample.clock.pass_(seconds)
        sample.request(RequestSpec("/about", headers=headers))
        sample.app.flush()
    assert sample.locs() == ["http://testserver/", "http://testserver/about"]
    assert "waits for confirmation" in str(sample.app.explain("/about"))
    sample.clock.pass_(60)
    sample.request(RequestSpec("/about", headers=headers))
    assert sample.locs() == ["http://testserver/"]
    assert "it answered" in str(sample.app.explain("/about"))


@pytest.mark.parametrize(("seconds", "is_listed"), [(1, True), (60, False)])
def test_two_refusals_in_one_flush_count_as_two_if_a_minute_lies_between_them(seconds: int, *, is_listed: bool) -> None:
    sample = SampleSite("wsgi", {"/": Answer(), "/about": Answer()}, max_age=0, verify=False)
    sample.visit("/", "/about")
    sample.pages["/about"] = Answer(403)
    for agent in ("one", "another"):
        sample.clock.pass_(seconds)
        sample.request(RequestSpec("/about", headers=[("user-agent", agent)]))
    sample.app.flush()
    assert ("http://testserver/about" in sample.locs()) is is_listed


@BOTH
def test_learned_page_that_redirects_to_sign_in_is_dropped_at_once(protocol: str) -> None:
    sample = SampleSite(protocol, {"/p/{slug}": Answer()}, learn="/p/{slug}", max_age=0, verify=False)
    sample.visit("/p/a", "/p/b")
    assert len(sample.locs()) == 2
    sample.pages["/p/{slug}"] = Answer(302, [("location", "/login?next=/p/a")])
    sample.clock.pass_(1)
    sample.visit("/p/a")
    assert sample.locs() == ["http://testserver/p/b"]
    sample.pages["/p/{slug}"] = Answer()
    sample.clock.pass_(1)
    sample.visit("/p/a")
    assert len(sample.locs()) == 2


@BOTH
@pytest.mark.parametrize("blocks", ["one visitor", "everyone"])
def test_probe_settles_a_contradiction_within_seconds(protocol: str, blocks: str) -> None:
    site = Site(protocol)
    site.visit("/page")
    site.clock.pass_(3600)
    bodies: list[str] = []

    def says(_: str) -> str:
        bodies.append("" if blocks == "everyone" or not bodies else "The first content")
        return bodies[-1]

    site.says = says
    site.refuses = 403
    site.visit("/page")
    assert len(bodies) > 1, "the visit, and our own request"
    assert site.app.explain("/page").listed is (blocks == "one visitor")


@BOTH
@pytest.mark.parametrize(("seconds", "is_listed"), [(60, True), (3600, False)])
def test_a_refused_crawler_removes_no_learned_page_that_an_own_request_got_lately(
    protocol: str, seconds: int, *, is_listed: bool
) -> None:
    site = Site(protocol)
    site.visit("/page")
    site.clock.pass_(seconds)
    site.asked.clear()

    def says(_: str) -> str:
        """Nothing, with 403 to the visitor, and 500 to the own request that would decide."""
        site.refuses = 403 if len(site.asked) == 1 else 500
        return ""

    site.says = says
    site.visit("/page")
    assert len(site.asked) > 1, "the visit, and our own request"
    assert site.app.explain("/page").listed is is_listed


def test_an_own_request_before_an_odd_answer_does_not_settle_it() -> None:
    site = Site("wsgi")
    site.refuses = 404
    wsgi(site.app, RequestSpec("/page"))
    site.app.flush()
    join_threads("sitemap-background")
    site.app.flush()  # saves the answer to an own request, and has the page requested again
    join_threads("sitemap-background")
    site.clock.pass_(1)
    site.says = lambda _: ""
    wsgi(site.app, RequestSpec("/page"))
    site.says = lambda _: "The first content"
    site.app.flush()
    join_threads("sitemap-background")
    assert site.app.explain("/page").listed
