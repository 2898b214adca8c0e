"""What repeats itself within a second is passed over, and nothing is lost by that."""

from __future__ import annotations

import pytest

from ...support.sample_sites import Page, SampleSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HOUR = 60 * 60


def rested(sample: SampleSite, *paths: str) -> None:
    """Pages that were seen, and whose bodies are not due."""
    for _ in range(2):
        sample.visit(*paths)


def merged_count(sample: SampleSite) -> int:
    sample.app.flush()
    return sample.app.stats()["merged"]


@BOTH
def test_same_answer_within_a_second_is_merged_once(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    rested(sample, "/")
    before, seen = merged_count(sample), sample.app.stats()["seen"]
    sample.request("/")
    sample.clock.pass_(0.25)
    sample.request("/")
    assert (merged_count(sample), sample.app.stats()["seen"]) == (before + 1, seen + 2)
    sample.clock.pass_(1)
    sample.visit("/")
    assert merged_count(sample) == before + 2


HTML_BODY = b'<!doctype html><title>Tea</title><p>"Tea"'
OTHER_TYPES = {
    "json": [("content-type", "application/json")],
    "a feed": [("content-type", "application/rss+xml; charset=utf-8")],
    "a download": [("content-type", "application/octet-stream")],
}


@BOTH
@pytest.mark.parametrize("headers", OTHER_TYPES.values(), ids=OTHER_TYPES.keys())
@pytest.mark.parametrize("wait", [1, HOUR], ids=["at once", "an hour later"])
def test_page_that_becomes_another_type_of_equal_length_is_seen(
    protocol: str, headers: list[tuple[str, str]], wait: int
) -> None:
    length = [("content-length", str(len(HTML_BODY)))] if protocol == "wsgi" else []
    sample = SampleSite(
        protocol, {"/": Page(200, [("content-type", "text/html"), *length], HTML_BODY)}, list_unseen=False
    )
    rested(sample, "/")
    assert len(sample.locs()) == 1
    sample.pages["/"] = Page(200, [*headers, *length], HTML_BODY)
    sample.clock.pass_(wait)
    sample.request("/", headers=[("user-agent", "Ada")])
    sample.app.flush()
    assert len(sample.locs()) == 1, "it may concern one visitor only"
    sample.clock.pass_(61)
    sample.request("/", headers=[("user-agent", "Ben")])
    sample.app.flush()
    assert sample.locs() == [], "another visitor confirms it"
