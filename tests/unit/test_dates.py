"""Dates as texts."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from sitemap_middleware.evidence.dates import (
    CLOCK_SKEW_SECONDS,
    EARLIEST_DATE_SECONDS,
    parse_last_modified,
    w3c_day_from_timestamp,
    w3c_from_timestamp,
)


def test_a_damaged_time_has_the_nearest_day_of_the_calendar() -> None:
    assert w3c_day_from_timestamp(2**63 - 1) == "9999-12-31"
    assert w3c_from_timestamp(-(2**63)) == "1970-01-01T00:00:00Z"


NOW = 1_750_000_000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["Tue, 14 Nov 2023 22:13:20 GMT"], 1_700_000_000),
        (["Tue Nov 14 22:13:20 2023"], 1_700_000_000),
        (["Tue, 14 Nov 2023 22:13:20 GMT"] * 2, 1_700_000_000),
        (["Tue, 14 Nov 2023 22:13:20 GMT", "Wed, 15 Nov 2023 22:13:20 GMT"], None),
        ([], None),
        (["yesterday"], None),
        (["Thu, 01 Jan 1970 00:00:00 GMT"], None),
        (["Sat, 01 Jan 0000 00:00:00 GMT"], None),
        (["Fri, 31 Dec 9999 23:59:59 GMT"], None),
        ([formatdate(EARLIEST_DATE_SECONDS, usegmt=True)], EARLIEST_DATE_SECONDS),
        ([formatdate(EARLIEST_DATE_SECONDS - 1, usegmt=True)], None),
        ([formatdate(NOW + CLOCK_SKEW_SECONDS, usegmt=True)], NOW + CLOCK_SKEW_SECONDS),
        ([formatdate(NOW + CLOCK_SKEW_SECONDS + 1, usegmt=True)], None),
    ],
)
def test_a_last_modified_is_plausible_or_nothing(values: list[str], expected: int | None) -> None:
    assert parse_last_modified(values, NOW) == expected
