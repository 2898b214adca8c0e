"""Which Accept headers ask for HTML at least as much as for anything else."""

from __future__ import annotations

import pytest

from sitemap_middleware.request_filter.accept_header import (
    MAX_ACCEPT_CHARS,
    MAX_CACHED_VALUES,
    ignore_reason_of_accept,
    remember_harmless,
)

LONGEST = "text/html;x=" + "y" * (MAX_ACCEPT_CHARS - 12)


@pytest.mark.parametrize(
    ("accept", "wants_html"),
    [
        # HTML is named
        ("text/html", True),
        ("TEXT/HTML", True),
        ("application/xhtml+xml", True),
        ("text/html;q=0.1", True),
        ("text/html;level=1", True),
        ('text/html;x="a,b"', True),
        ("text/html;q=0", False),
        ("text/html;q=0, */*", False),
        ("text/html;q=0, text/*", False),
        ("text/html;q=0, application/xhtml+xml", True),
        ("text/html;q=0.8, application/json;q=0.8", True),
        ("text/html;q=0.8, application/json;q=0.9", False),
        ("text/html;q=0.5, */*;q=0.8", False),
        ("text/html;q=0.5, text/*;q=0.8", False),
        ("text/html;q=0.8, */*;q=0.8", True),
        ("text/html, text/event-stream;q=0.1", False),
        # only a wildcard covers it
        ("*/*", True),
        ("*", True),
        ("text/*", True),
        ("*/*;q=0.1", True),
        ("*/*;q=0", False),
        ("text/*;q=0", False),
        ("text/*;q=0, */*", False),
        ("text/*;q=0.5, */*;q=0.4", True),
        ("text/*;q=0.4, */*;q=0.5", False),
        ("application/json, */*", False),
        ("application/json;q=0.5, */*;q=0.5", False),
        ("application/json;q=0.4, */*;q=0.5", True),
        ("image/webp, */*;q=0.8", False),
        ("image/webp;q=0.1, text/*", True),
        # nothing covers it
        ("application/json", False),
        ("application/json;q=0.5", False),
        ("application/json;q=0", False),
        ('application/json;x="a, text/html"', False),
        ("text/event-stream", False),
        ("text/event-stream, text/html", False),
        # it names no type
        ("", True),
        (",", True),
        (";q=1", True),
        # its length
        (LONGEST, True),
        (f"{LONGEST}y", False),
    ],
)
def test_header_wants_html(accept: str, *, wants_html: bool) -> None:
    for _ in range(2):  # the second answer comes from the cache
        reason = ignore_reason_of_accept(accept)
        assert (reason is None) is wants_html
        assert reason is None or reason.reason == "accept"


def test_reason_shows_the_header() -> None:
    reason = ignore_reason_of_accept("application/json;ä\n")
    assert reason is not None
    assert reason.detail == "asked for 'application/json;??', not for HTML"


def test_answer_is_remembered_unless_the_header_is_too_long() -> None:
    assert ignore_reason_of_accept("application/json") is ignore_reason_of_accept("application/json")
    too_long = "application/json;" + "x" * MAX_ACCEPT_CHARS
    assert ignore_reason_of_accept(too_long) is not ignore_reason_of_accept(too_long)
    assert ignore_reason_of_accept(too_long) == ignore_reason_of_accept(too_long)


def test_harmless_values_are_remembered_up_to_a_number_and_a_length() -> None:
    cache: set[str] = set()
    remember_harmless(cache, "short", MAX_ACCEPT_CHARS)
    remember_harmless(cache, "long", MAX_ACCEPT_CHARS + 1)
    assert cache == {"short"}
    for number in range(MAX_CACHED_VALUES - 1):
        remember_harmless(cache, str(number), 1)
    assert len(cache) == MAX_CACHED_VALUES
    remember_harmless(cache, "one more", 1)
    assert cache == {"one more"}
