"""Dates as columns: each text is the one that `w3c` writes alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.dates import w3c, w3c_column, w3c_day_from_timestamp, w3c_from_timestamp, w3c_from_timestamps

ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])


@given(st.lists(st.datetimes(min_value=datetime(2, 1, 1), timezones=ZONES)))  # noqa: DTZ001 (hypothesis wants a naive one)
def test_datetimes_are_written_as_each_is_alone(moments: list[datetime]) -> None:
    assert w3c_column(moments) == [w3c(moment) for moment in moments]


@given(st.lists(st.integers(-(2**35), 2**37)))
def test_times_are_written_as_each_is_alone(moments: list[int]) -> None:
    assert w3c_from_timestamps(moments) == [w3c_from_timestamp(moment) for moment in moments]


def test_more_days_than_are_kept_are_written_as_each_is_alone() -> None:
    moments = [number * 86_400 + number for number in range(10_000)]
    assert w3c_from_timestamps(moments) == [w3c_from_timestamp(moment) for moment in moments]


@pytest.mark.parametrize(
    ("moments", "texts"),
    [
        ([], []),
        ([None], [None]),
        ([date(2024, 5, 1), None], ["2024-05-01", None]),
        ([datetime(2024, 5, 1, 9, 8, 7, 999_999, UTC), datetime(1, 1, 1, tzinfo=UTC)], ["2024-05-01T09:08:07Z", "0001-01-01T00:00:00Z"]),
        ([datetime(2024, 5, 1, 1, tzinfo=timezone(timedelta(hours=2)))], ["2024-04-30T23:00:00Z"]),
        ([datetime(2024, 5, 1, tzinfo=UTC), date(2024, 5, 2)], ["2024-05-01T00:00:00Z", "2024-05-02"]),
    ],
)  # fmt: skip
def test_columns_of_dates(moments: list[date | None], texts: list[str | None]) -> None:
    assert w3c_column(moments) == texts


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
    assert w3c_from_timestamps([damaged]) == [text]
    assert w3c_day_from_timestamp(damaged) == text[:10]
