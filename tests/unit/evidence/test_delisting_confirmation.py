"""Answers that may depend on the visitor: what of them delists a page, and when."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.delisting_confirmation import (
    CONFIRMATION_SECONDS,
    MAX_ANSWERS,
    add_answer,
    answer_kind,
    confirmed_answer,
    denies_access,
)
from sitemap_middleware.evidence.merge import (
    REFRESH_SECONDS,
    merge,
    merge_if_changed,
    needs_probe,
)
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_verdict import is_listable, page_verdict
from sitemap_middleware.models import Page, UnconfirmedAnswer
from sitemap_middleware.observe.ingest import save_observations
from sitemap_middleware.stores.sqlite import MemoryStore
from tests.unit.observe.test_varying_content_prober import Site

from ...support.sample_sites import Page as Answer
from ...support.sample_sites import SampleSite
from ...support.wire import RequestSpec

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
NOW = 1_750_000_000


def good(at: int = NOW, **more: Any) -> Observation:
    return Observation("/page", "/page", at, 200, "text/html", **more)


def answer(at: int, status: int = 302, **more: Any) -> Observation:
    return Observation("/page", "/page", at, status, more.pop("media_type", "text/html"), **more)


def page_of(*observations: Observation) -> Page:
    page = None
    for observation in observations:
        page = merge(page, observation)
    assert page is not None
    return page


DOUBTFUL = [301, 302, 303, 307, 308, 401, 402, 403, 405, 451, 204]


@pytest.mark.parametrize("status", DOUBTFUL)
def test_single_contrary_answer_keeps_a_good_page_and_is_reported(status: int) -> None:
    verdict = page_verdict(page_of(good(), answer(NOW + 10, status)))
    assert verdict.listed
    assert f"an answer of {status} at 2025-06-15T15:06:50Z waits for confirmation" in verdict.reason


def test_nor_does_one_answer_of_another_media_type() -> None:
    verdict = page_verdict(page_of(good(), answer(NOW + 10, 200, media_type="application/json")))
    assert verdict.listed
    assert "an answer of another media type" in verdict.reason


@pytest.mark.parametrize("status", DOUBTFUL)
@pytest.mark.parametrize(("later", "confirms"), [(59, False), (60, True), (86_400, True)])
def test_the_same_kind_of_answer_confirms_after_a_minute(status: int, later: int, *, confirms: bool) -> None:
    page = page_of(good(), answer(NOW + 10, status), answer(NOW + 10 + later, status))
    assert page_verdict(page).listed is not confirms
    assert is_listable(page) is not confirms
    if confirms:
        assert f"an answer of {status}" in page_verdict(page).reason
        assert page_verdict(merge(page, good(NOW + 20 + later))).listed, "a good answer lists it again at once"


@pytest.mark.parametrize("apart", [1, 7, 60, 400])
def test_few_answers_are_kept_and_confirm_each_other_as_all_would(apart: int) -> None:
    seen = [UnconfirmedAnswer(NOW + number * apart, 302) for number in range(99)]
    waiting: tuple[UnconfirmedAnswer, ...] = ()
    for unconfirmed in seen:
        waiting = add_answer(waiting, unconfirmed)
    assert len(waiting) <= MAX_ANSWERS
    assert waiting[-1] == seen[-1]
    assert confirmed_answer(waiting) is not None


def test_a_good_answer_in_between_settles_what_was_before() -> None:
    page = page_of(good(), answer(NOW + 10), good(NOW + 20), answer(NOW + 10 + CONFIRMATION_SECONDS))
    assert page_verdict(page).listed


def test_answers_of_different_kinds_do_not_confirm_each_other() -> None:
    kinds = [
        answer(NOW + CONFIRMATION_SECONDS * number, status) for number, status in enumerate((302, 403, 405, 204), 1)
    ]
    assert page_verdict(page_of(good(), *kinds)).listed


@pytest.mark.parametrize("status", DOUBTFUL)
def test_answer_to_a_probe_counts_at_once(status: int) -> None:
    assert not page_verdict(page_of(good(), answer(NOW + 10, status, is_probe=True))).listed


@pytest.mark.parametrize("status", [404, 410])
def test_answer_that_does_not_depend_on_the_visitor_counts_at_once(status: int) -> None:
    assert not page_verdict(page_of(good(), answer(NOW + 10, status))).listed


@pytest.mark.parametrize("status", DOUBTFUL)
def test_page_that_was_never_good_is_listed_after_a_good_answer(status: int) -> None:
    page = page_of(answer(NOW, status))
    assert not page_verdict(page).listed
    assert page_verdict(merge(page, good(NOW + 10))).listed
    assert not page_verdict(page_of(answer(NOW, 404), answer(NOW + 10, status))).listed


def test_probe_confirms_even_if_the_good_answer_arrives_last() -> None:
    probe = answer(NOW + 60, is_probe=True)
    for order in itertools.permutations([good(), answer(NOW + 60), probe]):
        page = None
        for seen in order:
            page = merge_if_changed(page, seen)
        assert page is not None
        assert not page_verdict(page).listed


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_refusal_delists_a_learned_page_at_once(status: int) -> None:
    refused = answer(NOW + 10, status, learned=True, denies_access=True)
    page = page_of(good(learned=True), refused)
    assert not page_verdict(page).listed
    assert page_verdict(merge(page, good(NOW + 20, learned=True))).listed
    assert page_verdict(page_of(good(), refused._replace(learned=False))).listed


@pytest.mark.parametrize(
    ("target", "signs_in"),
    [
        ("/login", True),
        ("/users/sign_in", True),
        ("/accounts/login/?next=/p/1", True),
        ("https://login.microsoftonline.com/x", True),
        ("https://accounts.example.com/", True),
        ("https://example.com/auth/realms/x", True),
        ("/oauth2/start?rd=%2Fp", True),
        ("/saml/sso", True),
        ("/welcome?return_to=/p/1", True),
        ("/?redirect_uri=x", True),
        ("/signup", True),
        ("/access-denied", True),
        ("/de/p/1", False),
        ("/p/1-new-title", False),
        ("https://m.example.com/other", False),
        ("/blogging/in", False),
        ("/authors/ada", False),
        ("/sessions/2", False),
        ("", False),
        (None, False),
    ],
)
def test_redirect_to_sign_in_denies_access(target: str | None, *, signs_in: bool) -> None:
    assert denies_access(302, "https://example.com/sessions/1", target) is signs_in
    assert not denies_access(200, "https://example.com/", target)


@pytest.mark.parametrize(
    ("status", "refuses"),
    [
        *((status, True) for status in (401, 402, 403, 407, 511)),
        *((status, False) for status in (200, 206, 300, 301, 400, 404, 405, 408, 410, 429, 451, 500, 503, 512)),
    ],
)
def test_refusals_deny_access_without_a_location(status: int, *, refuses: bool) -> None:
    assert denies_access(status, "https://example.com/page", None) is refuses
    assert denies_access(status, "https://example.com/page", "/login") is (refuses or 300 <= status < 400)


def test_words_in_the_requested_url_count_in_any_case() -> None:
    assert not denies_access(302, "https://example.com/Account", "/account/")
    assert denies_access(302, "https://example.com/Account", "/login")


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [((200, 204, 206), 2), ((300, 301, 302, 308), 3), ((400, 401, 403, 404, 451), 4), ((405,), 405)],
)
def test_answers_of_one_cause_are_of_one_kind(statuses: tuple[int, ...], kind: int) -> None:
    assert {answer_kind(status) for status in statuses} == {kind}


ANSWERS = st.builds(
    answer,
    st.integers(NOW, NOW + 2 * CONFIRMATION_SECONDS) | st.sampled_from([NOW, NOW + CONFIRMATION_SECONDS]),
    st.sampled_from([200, 200, 302, 403, 404, 400]),
    media_type=st.sampled_from(["text/html", "text/html", "application/json"]),
    is_probe=st.booleans(),
    learned=st.just(value=False) | st.booleans(),
    denies_access=st.booleans(),
)


@given(st.lists(ANSWERS, min_size=1, max_size=MAX_ANSWERS), st.randoms())
def test_verdict_does_not_depend_on_the_order_of_answers(history: list[Observation], random: Any) -> None:
    expected = page_of(*sorted(history, key=lambda observation: observation.at))
    others = [*history, *history[:2]]
    random.shuffle(others)
    merged = page_of(*others)
    assert merged == expected
    assert page_verdict(merged) == page_verdict(expected)


@given(st.lists(ANSWERS, min_size=1, max_size=4))
def test_every_order_of_a_few_answers_comes_to_the_same(history: list[Observation]) -> None:
    assert len({page_of(*order) for order in itertools.permutations(history)}) == 1


def test_a_redirect_that_is_visited_all_the_time_is_page_to_store_down_once_an_hour() -> None:
    page = merge_if_changed(None, answer(NOW))
    assert all(merge_if_changed(page, answer(NOW + at)) is page for at in range(REFRESH_SECONDS))
    assert merge_if_changed(page, answer(NOW + REFRESH_SECONDS)) is not page


# Which pages our own requests are to settle


def test_store_reports_contradicted_good_pages() -> None:
    store = MemoryStore()

    def conflicts(observation: Observation) -> list[str]:
        return save_observations(store, "https://example.com", [observation])[0].conflicting_paths

    assert conflicts(answer(NOW - 10)) == []
    assert conflicts(good()) == []
    assert conflicts(answer(NOW + 10)) == ["/page"]
    assert conflicts(answer(NOW + 11)) == []
    assert conflicts(answer(NOW + 10 + CONFIRMATION_SECONDS)) == ["/page"]
    assert conflicts(good(NOW + 200)) == []
    assert conflicts(answer(NOW + 210, is_probe=True)) == []
    assert conflicts(answer(NOW + 220)) == []


DELISTING = {
    "404": {"status": 404},
    "410": {"status": 410},
    "noindex": {"status": 200, "noindex": True},
    "meta noindex": {"status": 200, "html": HtmlFacts(1, noindex=True)},
    "canonical": {"status": 200, "html": HtmlFacts(1, canonical="https://example.com/other")},
}


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("said", DELISTING.values(), ids=DELISTING.keys())
def test_good_page_that_is_delisted_at_once_needs_a_probe(said: dict[str, Any], *, learned: bool) -> None:
    """Some apps answer so to one odd request."""
    before = page_of(good(learned=learned))
    delisted = merge(before, answer(NOW + 10, **said, learned=learned))
    assert needs_probe(before, delisted)
    assert not needs_probe(delisted, merge(delisted, answer(NOW + 20, **said, learned=learned)))
    assert not needs_probe(None, delisted)


def test_learned_page_that_denied_access_needs_a_probe() -> None:
    before = page_of(good(learned=True))
    assert needs_probe(before, merge(before, answer(NOW + 10, 403, learned=True, denies_access=True)))
    assert not needs_probe(None, before)


# By the whole way

VISITORS = {
    "a redirect by language": (302, [("accept-language", "de-DE,de;q=0.9"), ("user-agent", "A")]),
    "a redirect by device": (302, [("user-agent", "Mozilla/5.0 (iPhone)")]),
    "a User-Agent that is blocked": (403, [("user-agent", "sqlmap")]),
    "a method that is not allowed": (405, [("user-agent", "odd")]),
    "a country that is not served": (451, [("user-agent", "odd")]),
    "a payment": (402, [("user-agent", "odd")]),
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
    assert "confirms an earlier one" in str(sample.app.explain("/about"))


@BOTH
def test_good_and_contrary_answers_between_flushes_both_count(protocol: str) -> None:
    """A client that sends requests all the time must not displace the responses to others."""
    sample = SampleSite(protocol, {"/": Answer(), "/about": Answer()}, max_age=0, verify=False)
    sample.visit("/about")
    for agent in ("A", "B", "C"):
        sample.clock.pass_(CONFIRMATION_SECONDS)
        sample.pages["/about"] = Answer()
        sample.request("/about")
        sample.pages["/about"] = Answer(403)
        sample.clock.pass_(1)
        sample.request(RequestSpec("/about", headers=[("user-agent", agent)]))
        sample.app.flush()
        assert "http://testserver/about" in sample.locs()


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
