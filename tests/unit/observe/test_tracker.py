"""What repeats itself within a second is passed over, and nothing is lost by that."""

from __future__ import annotations

import pytest

from ...support.sample_sites import Page, SampleSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])


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
