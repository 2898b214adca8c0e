"""The option --since."""

from __future__ import annotations

import pytest

from sitemap_middleware.cli.since_option import parse_since
from sitemap_middleware.cli.terminal_output import CommandError

NOW = 1_750_000_000
"""2025-06-15, 15:06:40 UTC."""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30m", NOW - 1800),
        ("24h", NOW - 86_400),
        (" 7d ", NOW - 7 * 86_400),
        ("2w", NOW - 14 * 86_400),
        ("0d", NOW),
        ("999999w", 0),
        ("2025-06-15", 1_749_945_600),
        ("2025-06-15T15:06:40Z", NOW),
        ("2025-06-15T17:06:40+02:00", NOW),
        ("2025-06-15 15:06", NOW - 40),
    ],
)
def test_an_age_or_a_date_is_a_moment(text: str, moment: int) -> None:
    assert parse_since(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "d", "-7d", "7 days", "7D", "1.5d", "yesterday", "2025-13-01", "15/06/2025", "0"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is no moment; give an age such as 24h, 7d or 2w, or a date such as 2026-"):
        parse_since(text, NOW)


def test_the_future_is_refused() -> None:
    with pytest.raises(CommandError, match="--since='2025-06-16' is in the future"):
        parse_since("2025-06-16", NOW)
