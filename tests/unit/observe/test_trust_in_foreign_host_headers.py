"""Requests for a foreign Host: an app that checks Host answers them in another way, so one of them delists no page."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware.models import Site
from sitemap_middleware.observe.ingest import OWN_HOST_WINDOW_SECONDS
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.sample_sites import Page, SampleSite
from .test_unusual_routing_headers import ANSWERS

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
BASE = "https://example.com"
SITE = Site("https", "example.com")
HOUR = OWN_HOST_WINDOW_SECONDS
VARIANTS = ["WWW.example.com", "example.com.", "example.com:81"]
AT_ONCE = [name for name in ANSWERS if name not in {"301", "403", "json"}]
"""What delists a page without a second answer, if the request was an ordinary one."""
ODD = ["evil.example", "x" * 3000, "www.example.com"]


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
@pytest.mark.parametrize("quiet", [2 * HOUR])
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
def test_another_name_of_the_site_delists_by_two_answers_a_minute_apart(protocol: str, host: str, answer: Page) -> None:
    sample = site(protocol, list_unseen=False)
    for path, name in (("/", "example.com"), ("/a", host), ("/b", host)):
        asked(sample, name, path)
    asked(sample, host, "/a", answer)
    assert listed(sample) == ["/", "/a", "/b"]
    sample.clock.pass_(60)
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
