"""The pages that were requested recently are found by the key of a request, and their number is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.models import Site
from sitemap_middleware.observation import tracked_page_cache
from sitemap_middleware.observation.observer import NO_ANSWER
from sitemap_middleware.observation.tracked_page import TrackedPage
from sitemap_middleware.observation.tracked_page_cache import TrackedPageCache

SITE = Site("https", "example.com")


@pytest.fixture
def tracker() -> Iterator[TrackedPageCache]:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        raise AssertionError("no request is sent to it")

    site: Any = SitemapMiddleware(app, store="memory://", include="/")
    site.service.tracker.buffer.interval = 3600.0
    yield site.service.tracker
    site.close()


def track(
    tracker: TrackedPageCache, key: str | None, path: str = "/", version: int = 0, *, is_foreign_host: bool = False
) -> TrackedPage:
    return tracker.track(None if key is None else (key,), SITE, path, version, is_foreign_host=is_foreign_host)


def keys(tracker: TrackedPageCache) -> set[str]:
    return {key for (key,) in tracker.tracked_pages}


def test_page_is_one_object_under_all_its_keys(tracker: TrackedPageCache) -> None:
    page = track(tracker, "one")
    assert track(tracker, "two") is page
    assert tracker.tracked_pages == {("one",): (page, ("one",)), ("two",): (page, ("two",))}
    assert (page.site, page.path, page.page_key, page.is_foreign_host) == (SITE, "/", (SITE.store_key, "/"), False)


def test_other_paths_and_foreign_hosts_have_other_pages(tracker: TrackedPageCache) -> None:
    own, foreign = track(tracker, "one"), track(tracker, "two", is_foreign_host=True)
    assert len({own, foreign, track(tracker, "three", "/about")}) == 3
    assert own.page_key != foreign.page_key
    assert (foreign.path, foreign.is_foreign_host) == ("/", True)


def test_page_without_a_key_is_not_looked_up(tracker: TrackedPageCache) -> None:
    page = track(tracker, None)
    assert tracker.tracked_pages == {}
    assert track(tracker, "one") is page


def test_pages_are_tracked_again_once_their_routes_are_others(tracker: TrackedPageCache) -> None:
    assert tracker.routes_version == 0
    page = track(tracker, "one")
    assert track(tracker, "one") is page
    assert track(tracker, "two", version=1) is not page
    assert (keys(tracker), tracker.routes_version) == ({"two"}, 1)
    track(tracker, "three", version=1)
    assert keys(tracker) == {"two", "three"}


def test_pages_are_kept_while_they_are_to_be_resolved_again(tracker: TrackedPageCache) -> None:
    page, other = track(tracker, "one"), track(tracker, "two", "/about")
    tracker.require_track()
    assert tracker.tracked_pages == {}
    assert track(tracker, "one") is page
    assert [page for page, _ in tracker.tracked_pages.values()] == [page, other], "one of them is enough"


@pytest.mark.parametrize("many", ["keys of one page", "pages without keys", "pages with keys"])
def test_all_pages_are_dropped_if_there_are_too_many(
    tracker: TrackedPageCache, many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracked_page_cache, "MAX_TRACKED_PAGES", 3)

    def track_one(number: int) -> TrackedPage:
        return track(
            tracker,
            None if many == "pages without keys" else str(number),
            "/" if many == "keys of one page" else f"/{number}",
        )

    pages = [track_one(number) for number in range(3)]
    assert track(tracker, None, pages[0].path) is not pages[0], "the fourth call finds three, and drops them"
    tracker.forget()
    pages = [track_one(number) for number in range(2)]
    assert track_one(0) is pages[0], "two are not too many"


def test_what_is_forgotten_is_compared_with_no_answer(tracker: TrackedPageCache) -> None:
    page = track(tracker, "one")
    page.last_answer = None  # type: ignore[assignment] # any answer
    tracker.forget()
    assert page.last_answer is NO_ANSWER
    assert (tracker.tracked_pages, track(tracker, None) is page) == ({}, False)


@pytest.mark.parametrize("starts_over", [True, False])
def test_schedules_are_forgotten_only_if_the_store_has_lost_its_pages(
    tracker: TrackedPageCache, *, starts_over: bool
) -> None:
    page = track(tracker, "one")
    html = [("content-type", "text/html")]
    tracker.sampler.schedule(CapturedResponse(SITE, "/", at=1000, status=200, headers=html))
    if starts_over:
        tracker.start_over()
    else:
        tracker.forget()
    assert (tracker.sampler.find(page.page_key) is None) is starts_over
    assert track(tracker, None) is not page


@pytest.mark.parametrize("path", ["/", "/never-requested"])
def test_response_of_a_probe_makes_the_last_answer_another_one(tracker: TrackedPageCache, path: str) -> None:
    page = track(tracker, "one")
    page.last_answer = None  # type: ignore[assignment] # any answer
    probed = CapturedResponse(SITE, path, at=1000, status=404)
    tracker.record(probed)
    assert (page.last_answer is NO_ANSWER) is (path == "/")
    assert tracker.buffer.take_batch() == [probed]
