"""Dates as texts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from sitemap_middleware.dates import w3c, w3c_day_from_timestamp, w3c_from_timestamp


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1, 9, 8, 7, 999_999, UTC), "2024-05-01T09:08:07Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (datetime(2024, 5, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2024-04-30T23:00:00Z"),
    ],
)
def test_dates_are_written_in_utc(moment: date, text: str) -> None:
    assert w3c(moment) == text


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        (2**63 - 1, "9999-12-31T15:30:07Z"),
        (253_402_300_800, "9999-12-31T00:00:00Z"),
        (-62_135_596_801, "0001-01-01T23:59:59Z"),
        (-(2**63), "0001-01-01T08:29:52Z"),
    ],
)
def test_a_damaged_time_has_the_nearest_day_of_the_calendar(damaged: int, text: str) -> None:
    assert w3c_from_timestamp(damaged) == text
    assert w3c_day_from_timestamp(damaged) == text[:10]
