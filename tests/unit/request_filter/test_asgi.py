"""What is remembered of ASGI headers, and which of them state the requested URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware.request_filter import asgi
from sitemap_middleware.request_filter.asgi import HOST_NAMES, Field, harmless_fields, ignore_reason_of_headers
from sitemap_middleware.request_filter.header_rules import HeaderRuleCache
from sitemap_middleware.request_filter.reasons import COOKIE, IgnoreReason

BROWSER: list[Field] = [
    (b"host", b"example.com"),
    (b"accept", b"text/html"),
    (b"user-agent", b"Ada"),
    (b"sec-fetch-dest", b"document"),
]
ROUTING: list[Field] = [(b"x-forwarded-prefix", b"/shop"), (b"x-forwarded-host", b"example.org")]
ODD = IgnoreReason("other", "was odd")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeaderRuleCache]:
    """A rule cache of its own, so that the first request of each test meets unknown names."""
    cache = HeaderRuleCache(HOST_NAMES)
    monkeypatch.setattr(asgi, "rule_cache", cache)
    harmless_fields.clear()
    yield cache
    harmless_fields.clear()


class Seen(list[Any]):
    """The headers that were given as those that state the requested URL."""

    def ignore_reason_of_routing(self, fields: tuple[Field, ...]) -> IgnoreReason | None:
        self.append(fields)
        return ODD


@pytest.mark.parametrize("pairs", [tuple, list])
def test_headers_that_state_the_url_are_given_in_their_order_whatever_is_remembered(pairs: Any) -> None:
    headers: Any = [pairs(field) for field in [ROUTING[0], *BROWSER, ROUTING[1]]]
    seen = Seen()
    for _ in range(3):
        assert ignore_reason_of_headers(headers, seen) is ODD
    assert seen == [tuple(ROUTING)] * 3
    assert ignore_reason_of_headers(headers) is None, "nobody asks for them"
    assert ignore_reason_of_headers(BROWSER, seen) is None, "there are none"
    assert len(seen) == 3


def test_a_request_that_is_ignored_anyway_is_not_asked_about() -> None:
    seen = Seen()
    for _ in range(2):
        reason = ignore_reason_of_headers([*BROWSER, *ROUTING, (b"cookie", b"a=b")], seen)
        assert reason is not None
        assert reason.reason == "credentials"
    assert seen == []


@pytest.mark.parametrize("place", range(len(BROWSER) + 1))
def test_cookie_counts_wherever_it_is_sent(place: int) -> None:
    for value, is_ignored in ((b"", False), (b"a=b", True), (b"", False)):
        headers = [*BROWSER]
        headers.insert(place, (b"cookie", value))
        for pairs in (headers, [*ROUTING, *headers, *ROUTING]):
            assert (ignore_reason_of_headers(pairs) == COOKIE) is is_ignored


def test_request_without_headers_counts() -> None:
    assert ignore_reason_of_headers([]) is None


def test_values_that_mean_nothing_are_remembered() -> None:
    assert ignore_reason_of_headers(BROWSER) is None
    assert harmless_fields == set(BROWSER) - {BROWSER[0]}
    assert ignore_reason_of_headers([(b"accept", b"text/html,*/*")]) is None
    assert {(b"accept", b"text/html,*/*"), (b"user-agent", b"")} <= harmless_fields


def test_names_that_mean_nothing_are_remembered(cache: HeaderRuleCache) -> None:
    ignore_reason_of_headers([*BROWSER, *ROUTING, (b"x-api-key", b"")])
    assert cache.harmless == {b"host"}
    assert cache.routing == {*HOST_NAMES, b"x-forwarded-prefix"}


@pytest.mark.parametrize("value", [b"image", b"\xff"])
def test_destination_is_latin_1(value: bytes) -> None:
    reason = ignore_reason_of_headers([(b"sec-fetch-dest", value)])
    assert reason is not None
    assert reason.reason == "partial"


def test_value_that_is_no_utf_8_is_read() -> None:
    assert ignore_reason_of_headers([(b"x-api-key", b"\xff")]) is not None
    assert ignore_reason_of_headers([(b"x-\xff", b"\xff"), (b"accept", b"text/html;\xff")]) is None


@pytest.mark.parametrize("name", [b"sec-purpose", b"Purpose", b"X-MOZ"])
def test_page_that_is_loaded_ahead_of_time_counts(name: bytes) -> None:
    assert ignore_reason_of_headers([(name, b"prefetch"), (b"sec-fetch-dest", b"empty")]) is None
    assert ignore_reason_of_headers([(b"sec-fetch-dest", b"empty")]) is not None


def test_several_accept_headers_are_one_list() -> None:
    assert ignore_reason_of_headers([(b"accept", b"application/json;q=0.1"), (b"accept", b"text/html")]) is None
    assert ignore_reason_of_headers([(b"accept", b"text/html;q=0.1"), (b"accept", b"application/json")]) is not None


@pytest.mark.parametrize("position", range(len(BROWSER) + 1))
def test_a_malformed_header_does_not_hide_a_cookie(position: int) -> None:
    headers: list[Any] = [
        *BROWSER[:position],
        (),
        *BROWSER[position:],
        (b"cookie", b"a=b"),
        (b"accept-language", b"en"),
    ]
    for _ in range(2):  # as unknown names, then as remembered ones
        with pytest.raises((IndexError, ValueError)):
            ignore_reason_of_headers(headers)


def test_a_request_without_headers_counts() -> None:
    assert ignore_reason_of_headers([]) is None
