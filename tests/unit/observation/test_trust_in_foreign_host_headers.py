"""Requests for a foreign Host: an app that checks Host answers them in another way, so one of them delists no page."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import Page as StoredPage
from sitemap_middleware.models import Site
from sitemap_middleware.observation.sampling_schedule import MAX_SAMPLE_INTERVAL_SECONDS, MIN_SAMPLE_INTERVAL_SECONDS
from sitemap_middleware.observation.trust_in_foreign_host_headers import OWN_HOST_WINDOW_SECONDS, ForeignHosts
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.sample_sites import Page, SampleSite
from .test_unusual_routing_headers import ANSWERS

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
BASE = "https://example.com"
SITE = Site("https", "example.com")
HOUR = OWN_HOST_WINDOW_SECONDS
VARIANTS = ["www.example.com", "WWW.example.com", "EXAMPLE.COM", "example.com.", "example.com:81", "example.com:443"]
AT_ONCE = [name for name in ANSWERS if name not in {"301", "403", "json"}]
"""What delists a page without a second answer, if the request was an ordinary one."""
ODD = ["evil.example", "203.0.113.7", "example.com.evil.example", "x" * 3000, *VARIANTS]


def site(protocol: str, **options: Any) -> SampleSite:
    pages = {path: Page(body=f"<title>t</title><p>The page {path}.".encode()) for path in ("/", "/a", "/b")}
    return SampleSite(protocol, pages, base_url=BASE, **options)


def asked(sample: SampleSite, host: str, path: str, answer: Page | None = None, **spec: Any) -> None:
    """Request a page, which answers this time in another way, ten seconds later."""
    usual, sample.pages[path] = sample.pages[path], answer or sample.pages[path]
    sample.clock.pass_(10)
    sample.request(path, host=host, **spec)
    sample.app.flush()
    sample.pages[path] = usual


def listed(sample: SampleSite) -> list[str]:
    return [loc.removeprefix(BASE) for loc in sample.locs()]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("odd", ODD, ids=lambda host: host[:30])
@pytest.mark.parametrize("restarts", [False, True], ids=["", "first request after a restart"])
@pytest.mark.parametrize("quiet", [2 * HOUR, 60])
def test_one_request_for_a_foreign_host_delists_nothing(
    protocol: str, odd: str, quiet: float, *, restarts: bool
) -> None:
    store = MemoryStore()
    sample = site(protocol, store=store, list_unseen=False)
    for path in sample.pages:
        asked(sample, "example.com", path)
    for number, answer in enumerate(ANSWERS.values()):
        if restarts:
            sample = site(protocol, store=store, clock=sample.clock, list_unseen=False)
        sample.clock.pass_(quiet)
        asked(sample, odd, "/a", answer, headers=[("user-agent", f"agent {number}")])
        assert listed(sample) == ["/", "/a", "/b"]
        asked(sample, "example.com", "/a")


@BOTH
@pytest.mark.parametrize("host", VARIANTS)
def test_pages_are_listed_by_visits_under_another_name_of_the_site(protocol: str, host: str) -> None:
    sample = site(protocol, list_unseen=False)
    asked(sample, "example.com", "/")
    asked(sample, host, "/a")
    assert listed(sample) == ["/", "/a"]


@BOTH
@pytest.mark.parametrize("host", VARIANTS)
@pytest.mark.parametrize("answer", [ANSWERS[name] for name in AT_ONCE], ids=AT_ONCE)
def test_a_name_of_the_site_under_which_the_app_serves_pages_delists_at_once(
    protocol: str, host: str, answer: Page
) -> None:
    sample = site(protocol, list_unseen=False)
    for path, name in (("/", "example.com"), ("/a", host), ("/b", host)):
        asked(sample, name, path)
    asked(sample, host, "/a", answer)
    assert listed(sample) == ["/", "/b"]


@BOTH
def test_foreign_host_tells_nothing_of_a_page_that_is_not_known_yet(protocol: str) -> None:
    sample = site(protocol)
    asked(sample, "example.com", "/")
    sample.clock.pass_(2 * HOUR)
    asked(sample, "evil.example", "/a", Page(404))
    assert listed(sample) == ["/", "/a", "/b"]


@BOTH
def test_new_content_for_a_foreign_host_dates_nothing(protocol: str) -> None:
    sample = site(protocol)
    for path in sample.pages:
        asked(sample, "example.com", path)
    for _ in range(5):
        sample.clock.pass_(2 * HOUR)
        asked(sample, "evil.example", "/a", Page(body=b"<title>t</title><p>Another site."))
    assert all("lastmod" not in entry for entry in sample.entries().values())


@BOTH
def test_two_visitors_confirm_what_a_foreign_host_shows(protocol: str) -> None:
    sample = site(protocol)
    for path in sample.pages:
        asked(sample, "example.com", path)
    sample.clock.pass_(2 * HOUR)
    for agent in ("Ada", "Ben"):
        sample.clock.pass_(60)
        asked(sample, "app:8000", "/a", Page(404), headers=[("user-agent", agent)])
    assert listed(sample) == ["/", "/b"]


@BOTH
@pytest.mark.parametrize("host", ["app:8000", *VARIANTS])
def test_proxy_that_always_rewrites_host_delists_at_once(protocol: str, host: str) -> None:
    sample = site(protocol, list_unseen=False)
    for path in sample.pages:
        asked(sample, host, path)
    asked(sample, host, "/a", Page(404))
    assert listed(sample) == ["/", "/b"]
    asked(sample, "evil.example", "/b", Page(404))
    assert listed(sample) == ["/", "/b"], "the other Host is a stranger's"


@BOTH
def test_bodies_for_a_foreign_host_are_sampled_less_and_less_often(protocol: str) -> None:
    sample = site(protocol)
    for _ in range(4):
        sample.clock.pass_(MAX_SAMPLE_INTERVAL_SECONDS)
        asked(sample, "app:8000", "/a")
    schedule = sample.app.service.tracker.sampler.find((f"foreign:{SITE.store_key}", "/a"))
    assert schedule is not None
    assert schedule.interval > MIN_SAMPLE_INTERVAL_SECONDS


# The rules, one by one

GOOD = Observation("/a", "/a", 1, 200, "text/html", html=HtmlFacts(7))
KNOWN: StoredPage = merge(None, GOOD)
BAD = [
    GOOD._replace(status=404),
    GOOD._replace(noindex=True),
    GOOD._replace(private=True),
    GOOD._replace(canonical="/x"),
    GOOD._replace(obstacle="is a download"),
    GOOD._replace(html=HtmlFacts(7, noindex=True)),
    GOOD._replace(html=HtmlFacts(7, canonical="/x")),
    GOOD._replace(html=HtmlFacts(7, instant_refresh="/b")),
]


def answer(at: float, *, host: str = "", path: str = "/a", status: int = 200, probe: bool = False) -> CapturedResponse:
    return CapturedResponse(
        SITE, path, at=at, status=status, host=host, is_foreign_host=bool(host) and not probe, is_probe=probe
    )


@pytest.mark.parametrize("bad", BAD)
def test_host_that_contradicts_the_own_one_is_not_believed_any_more(bad: Observation) -> None:
    hosts = ForeignHosts()
    hosts.record_own_host(answer(0))
    assert hosts.is_evidence(answer(10, host="app"), GOOD, KNOWN, is_probed=False), "known content"
    assert not hosts.is_evidence(answer(20, host="app"), bad, KNOWN, is_probed=False)
    later = answer(HOUR + 20, host="app")
    assert hosts.is_in_question(later, bad, is_probed=False), "even after an hour without the own host"
    assert not hosts.is_evidence(later, GOOD._replace(html=None), KNOWN, is_probed=False)
    assert hosts.is_evidence(later, GOOD, KNOWN, is_probed=False), "it shows what is known"


@pytest.mark.parametrize(("own_at", "counts"), [(0.0, False), (-HOUR + 0.5, False), (-HOUR, True)])
def test_own_host_outweighs_others_for_an_hour(own_at: float, *, counts: bool) -> None:
    hosts = ForeignHosts()
    hosts.record_own_host(answer(own_at))
    foreign = answer(0.25 if own_at > -HOUR else 0, host="app")
    assert hosts.is_in_question(foreign, GOOD, is_probed=False) is not counts
    assert hosts.is_evidence(foreign, BAD[0], KNOWN, is_probed=False) is counts
    assert ForeignHosts().is_evidence(foreign, BAD[0], KNOWN, is_probed=False), "it was never seen here"


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        (None, GOOD),
        (KNOWN, GOOD._replace(html=None)),
        (KNOWN, GOOD._replace(html=HtmlFacts(None))),
        (KNOWN, GOOD._replace(html=HtmlFacts(8))),
        (merge(None, BAD[0]), GOOD),
    ],
    ids=["no page", "unread", "no digest", "another content", "not listed"],
)
def test_only_known_content_of_a_listed_page_shows_that_a_host_is_the_site(
    page: StoredPage | None, seen: Observation
) -> None:
    hosts = ForeignHosts()
    hosts.record_own_host(answer(0))
    assert not hosts.is_evidence(answer(10, host="app"), seen, page, is_probed=False)
    assert hosts.is_evidence(answer(10, host="app"), GOOD, KNOWN, is_probed=False)
    assert hosts.is_evidence(answer(10, host="app"), seen, page, is_probed=False), "it is believed from now on"


def test_failure_of_the_own_host_is_not_contradicted() -> None:
    hosts = ForeignHosts()
    hosts.record_own_host(answer(0, status=404))
    hosts.record_own_host(answer(0, path="/other"))
    assert hosts.is_evidence(answer(1, host="app"), GOOD, KNOWN, is_probed=False)
    assert hosts.is_evidence(answer(2, host="app"), BAD[0], KNOWN, is_probed=False)


def test_good_page_of_an_hour_ago_is_not_contradicted() -> None:
    hosts = ForeignHosts()
    hosts.record_own_host(answer(0))
    hosts.record_own_host(answer(HOUR - 1, path="/other"))
    assert hosts.is_evidence(answer(HOUR - 1, host="app"), GOOD, KNOWN, is_probed=False)
    assert hosts.is_evidence(answer(HOUR, host="app"), BAD[0], KNOWN, is_probed=False)


def test_sites_and_hosts_are_told_apart() -> None:
    hosts = ForeignHosts()
    hosts.record_own_host(answer(0))
    other = CapturedResponse(Site("https", "example.org"), "/a", at=1, status=200, host="app", is_foreign_host=True)
    assert hosts.is_evidence(other, BAD[0], KNOWN, is_probed=False)
    assert not hosts.is_evidence(answer(1, host="app"), BAD[0], KNOWN, is_probed=False)
    assert not hosts.is_evidence(answer(2, host="two"), GOOD._replace(html=None), KNOWN, is_probed=False)


def test_unknown_page_that_the_prober_requests_is_not_reported_by_a_foreign_host() -> None:
    hosts = ForeignHosts()
    foreign = answer(0, host="app")
    assert hosts.is_in_question(foreign, BAD[0], is_probed=True)
    assert not hosts.is_in_question(foreign, GOOD, is_probed=True)
    assert not hosts.is_in_question(foreign, BAD[0], is_probed=False)
    assert not hosts.is_evidence(foreign, BAD[0], None, is_probed=True)
    assert hosts.is_evidence(foreign, BAD[0], None, is_probed=False)
    assert hosts.is_evidence(foreign, BAD[0], KNOWN, is_probed=True)
    assert hosts.is_evidence(foreign, GOOD, None, is_probed=True)


def test_probe_under_the_live_host_counts_if_it_is_a_page() -> None:
    hosts = ForeignHosts()
    probe = answer(0, host="app", probe=True)
    assert hosts.is_in_question(probe, GOOD, is_probed=False)
    assert hosts.is_evidence(probe, GOOD, None, is_probed=False)
    assert not hosts.is_evidence(probe, BAD[0], KNOWN, is_probed=False)
    hosts.record_own_host(answer(0))
    hosts.is_evidence(answer(0, host="app"), BAD[0], KNOWN, is_probed=False)
    assert not hosts.is_evidence(probe, GOOD, None, is_probed=False), "this Host contradicted the site's own"
