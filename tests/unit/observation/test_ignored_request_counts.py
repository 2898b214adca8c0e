"""Which requests did not count as evidence is counted in bounded memory."""

from __future__ import annotations

import pytest

from sitemap_middleware.observation import ignored_request_counts
from sitemap_middleware.observation.ignored_request_counts import MAX_REMEMBERED_PATH_CHARS, IgnoredRequests
from sitemap_middleware.request_filter.reasons import COOKIE, SIGNED_IN


def test_reasons_are_remembered_for_a_bounded_number_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ignored_request_counts, "MAX_REMEMBERED_PATHS", 2)
    requests = IgnoredRequests()
    for path in ("/a", "/b", "/c"):
        requests.count(path, COOKIE)
    assert [requests.count_repeated(path, COOKIE) for path in ("/a", "/b", "/c")] == [False, False, True]
    assert requests.counts["credentials"] == 4


def test_only_the_same_reason_of_a_path_of_ordinary_length_is_repeated() -> None:
    requests, long = IgnoredRequests(), "/" + "x" * MAX_REMEMBERED_PATH_CHARS
    for path in ("/a", long):
        requests.count(path, COOKIE)
    assert not requests.count_repeated("/a", SIGNED_IN)
    assert not requests.count_repeated(long, COOKIE)
