"""What is remembered of environs, and which of their headers state the requested URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware.request_filter import wsgi
from sitemap_middleware.request_filter.header_rules import HOST_HEADERS, HeaderRuleCache
from sitemap_middleware.request_filter.reasons import IgnoreReason
from sitemap_middleware.request_filter.wsgi import harmless_accepts, harmless_agents, ignore_reason_of_environ

BROWSER: dict[str, Any] = {
    "REQUEST_METHOD": "GET",
    "HTTP_HOST": "example.com",
    "HTTP_ACCEPT": "text/html",
    "HTTP_USER_AGENT": "Ada",
    "HTTP_SEC_FETCH_DEST": "document",
}
ROUTING: dict[str, Any] = {"HTTP_X_FORWARDED_PREFIX": "/shop", "HTTP_X_FORWARDED_HOST": "example.org"}
ODD = IgnoreReason("other", "was odd")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeaderRuleCache]:
    """A rule cache of its own, so that the first request of each test meets unknown names."""
    cache = HeaderRuleCache([f"HTTP_{name.upper().replace('-', '_')}" for name in HOST_HEADERS])
    monkeypatch.setattr(wsgi, "rule_cache", cache)
    harmless_agents.clear()
    harmless_accepts.clear()
    yield cache
    harmless_agents.clear()
    harmless_accepts.clear()


class Seen(list[Any]):
    """The headers that were given as those that state the requested URL."""

    def ignore_reason_of_routing(self, fields: tuple[Any, ...]) -> IgnoreReason | None:
        self.append(sorted(fields))
        return ODD


def test_headers_that_state_the_url_are_given_whatever_is_remembered() -> None:
    environ = {**BROWSER, **ROUTING}
    seen = Seen()
    for _ in range(3):
        assert ignore_reason_of_environ(environ, environ, seen) is ODD
    assert seen == [sorted(ROUTING.items())] * 3
    assert ignore_reason_of_environ(environ, environ) is None, "nobody asks for them"
    assert ignore_reason_of_environ(BROWSER, BROWSER, seen) is None, "there are none"
    assert len(seen) == 3


@pytest.mark.parametrize("times", [1, 2])
def test_what_the_app_adds_or_takes_out_counts(times: int) -> None:
    for _ in range(times):
        assert ignore_reason_of_environ({**BROWSER, "app.data": 1}, BROWSER, Seen()) is None
        user = ignore_reason_of_environ({**BROWSER, "REMOTE_USER": "ada"}, BROWSER)
        assert user is not None, "the app signed somebody in"
        assert ignore_reason_of_environ(BROWSER, {**BROWSER, "HTTP_AUTHORIZATION": "ada"}) is not None, (
            "it was taken out"
        )
        replaced = {key: value for key, value in BROWSER.items() if key != "REQUEST_METHOD"}
        assert ignore_reason_of_environ({**replaced, "REMOTE_USER": "ada"}, BROWSER) is not None, "as many as before"
        seen = Seen()
        assert ignore_reason_of_environ({**BROWSER, "HTTP_X_SCRIPT_NAME": "/x"}, BROWSER, seen) is ODD
        assert seen == [[("HTTP_X_SCRIPT_NAME", "/x")]]
        assert ignore_reason_of_environ(BROWSER, {**BROWSER, **ROUTING}, Seen()) is None, "the values are gone"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("HTTP_AUTHORIZATION", "Basic YTpi"),
        ("HTTP_COOKIE", "session=1"),
        ("HTTP_X_API_KEY", "k"),
        ("HTTP_X_FORWARDED_USER", "ada"),
        ("REMOTE_USER", "ada"),
        ("SSL_CLIENT_VERIFY", "SUCCESS"),
    ],
)
@pytest.mark.parametrize("left", ["", "none", None])
def test_credentials_count_whatever_the_app_writes_over_them(key: str, value: str, left: str | None) -> None:
    for _ in range(2):
        assert ignore_reason_of_environ({**BROWSER, key: left}, {**BROWSER, key: value}) is not None
        assert ignore_reason_of_environ({**BROWSER, key: value}, {**BROWSER, key: ""}) is not None
    assert ignore_reason_of_environ({**BROWSER, key: ""}, {**BROWSER, key: ""}) is None


def test_environ_that_the_app_emptied_counts_by_the_keys_it_had() -> None:
    assert ignore_reason_of_environ({}, BROWSER) is None
    assert ignore_reason_of_environ({}, {"HTTP_COOKIE": "a=b"}) is not None


def test_values_that_mean_nothing_are_remembered() -> None:
    assert ignore_reason_of_environ(BROWSER, BROWSER) is None
    assert (harmless_agents, harmless_accepts) == ({"Ada"}, {"text/html"})
    assert ignore_reason_of_environ({}, {}) is None
    assert (harmless_agents, harmless_accepts) == ({"Ada", ""}, {"text/html", ""})


def test_names_that_mean_nothing_are_remembered(cache: HeaderRuleCache) -> None:
    environ = {**BROWSER, **ROUTING, "HTTP_X_API_KEY": ""}
    assert ignore_reason_of_environ(environ, environ) is None
    assert cache.harmless == set(BROWSER)
    assert cache.routing >= set(ROUTING)


def test_destination_counts_if_it_is_stated() -> None:
    for value, counts in (("document", True), ("", True), ("image", False)):
        environ = {"HTTP_SEC_FETCH_DEST": value}
        reason = ignore_reason_of_environ(environ, environ)
        assert (reason is None) is counts
    prefetch = {"HTTP_SEC_FETCH_DEST": "empty", "HTTP_SEC_PURPOSE": "prefetch"}
    assert ignore_reason_of_environ(prefetch, prefetch) is None


@pytest.mark.parametrize("key", ["HTTP_ACCEPT", "HTTP_SEC_FETCH_DEST"])
def test_headers_that_are_read_by_value_have_no_rule(key: str, cache: HeaderRuleCache) -> None:
    assert ignore_reason_of_environ({key: ""}, {key: ""}) is None
    assert key in cache.harmless


def test_key_that_the_app_replaces_by_a_user_counts() -> None:
    """As many keys as before, and another last one."""
    environ = {**BROWSER, "app.data": 1}
    assert ignore_reason_of_environ(environ, environ) is None
    assert ignore_reason_of_environ({**BROWSER, "REMOTE_USER": "ada"}, environ) is not None
    swapped = {"REMOTE_USER": "ada", **BROWSER}
    assert ignore_reason_of_environ(swapped, environ) is not None


def test_accept_header_that_the_app_replaces_counts_as_it_came() -> None:
    """Some apps route by the media type, and write the one that they chose into the environ."""
    assert ignore_reason_of_environ({**BROWSER, "HTTP_ACCEPT": "application/json"}, BROWSER) is None
    assert ignore_reason_of_environ(BROWSER, {**BROWSER, "HTTP_ACCEPT": "application/json"}) is not None
