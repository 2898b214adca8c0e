"""The reasons for which a request does not count, and how they show what a client sent."""

from __future__ import annotations

import pytest

from sitemap_middleware.request_filter.reasons import MAX_NAME_CHARS, ignore_reason_of_line, printable


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("X-Trace_7", "X-Trace_7"),
        ("caf\xe9", "caf?"),
        ("a\x00b\x1b[2J", "a?b?[2J"),
        ("x" * (MAX_NAME_CHARS + 1), "x" * MAX_NAME_CHARS),
    ],
    ids=["plain", "not ASCII", "control characters", "too long"],
)
def test_what_a_client_sent_is_shown_as_short_plain_text(sent: str, shown: str) -> None:
    assert printable(sent) == shown


def test_only_get_requests_without_a_query_count() -> None:
    assert ignore_reason_of_line("GET", query=False) is None
    assert None not in (ignore_reason_of_line("GET", query=True), ignore_reason_of_line("POST", query=False))
    assert ignore_reason_of_line("HEAD", query=True) == ignore_reason_of_line("POST", query=False)
