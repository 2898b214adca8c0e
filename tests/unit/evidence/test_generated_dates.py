"""Dates of content and dates of a clock: each rule, and where it begins."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.dates import CLOCK_SKEW_SECONDS
from sitemap_middleware.evidence.value_history import (
    GENERATED_DATE_SECONDS,
    MAX_BACKDATED_SECONDS,
    ROUNDED_CLOCKS,
    VOLATILE,
    History,
    Run,
    changes_without_content,
    is_credible,
)

DAY = 86_400
DATE = 20_000 * DAY + 7
"""A date that is not rounded."""
MINUTE = GENERATED_DATE_SECONDS
OLD = MAX_BACKDATED_SECONDS + 99
"""An age that no server dates back by."""


def seen(value: int, age: int, stays: int = 0) -> Run:
    """A date that was this old when it was first seen, and stayed for so many seconds."""
    return Run(value, value + age, value + age + stays)


@pytest.mark.parametrize(("stays", "credible"), [(0, False), (MINUTE - 1, False), (MINUTE, True)])
def test_date_of_its_response_must_stay_for_a_minute(stays: int, *, credible: bool) -> None:
    assert is_credible((seen(DATE, 0, stays),), DATE) is credible


@pytest.mark.parametrize(
    ("ages", "credible"),
    [
        ([MINUTE - 1], False),
        ([MAX_BACKDATED_SECONDS - 1], False),
        ([MAX_BACKDATED_SECONDS], True),
        ([9 * MINUTE, 9 * MINUTE + CLOCK_SKEW_SECONDS], False),
        ([9 * MINUTE, 9 * MINUTE + CLOCK_SKEW_SECONDS + 1], True),
        ([MINUTE - 1, DAY], False),
    ],
)
def test_date_that_never_stayed_must_be_old_or_of_another_age_than_others(ages: list[int], *, credible: bool) -> None:
    dates = tuple(seen(DATE + number * 61, age) for number, age in enumerate(ages))
    assert is_credible(dates, DATE) is credible


@pytest.mark.parametrize(("step", "age"), ROUNDED_CLOCKS)
@pytest.mark.parametrize(("more", "credible"), [(-1, False), (0, True)])
def test_rounded_date_is_credible_once_it_is_older_than_a_rounded_clock(
    step: int, age: int, more: int, *, credible: bool
) -> None:
    value = 20_000 * DAY + step
    assert is_credible((seen(value, 0, age + more),), value) is credible
    other = seen(value - 9 - (age + more) - 99, 99, age + more)
    assert is_credible((other, seen(value, 0, MINUTE)), value) is credible, "another date stayed for as long"


def test_date_that_was_never_seen_is_not_credible() -> None:
    assert not is_credible((seen(DATE, OLD, 999),), DATE + 1)
    assert not is_credible((), DATE)


# Dates that change without the content


def history(*values: int, step: int = 100) -> History:
    """Values seen one after the other, each for 50 seconds."""
    return tuple(Run(value, number * step, number * step + 50) for number, value in enumerate(values))


def never(_: int) -> bool:
    return False


def dates(count: int) -> History:
    return tuple(run._replace(value=DATE + number) for number, run in enumerate(history(*range(count))))


@pytest.mark.parametrize(
    ("contents", "count", "alone"),
    [
        ((Run(1, 0, 900),), 2, False),
        ((Run(1, 0, 900),), 3, True),
        ((Run(1, 0, 150), Run(2, 200, 900)), 3, False),
        ((Run(1, 0, 250), Run(2, 300, 900)), 4, True),
        ((Run(1, 0, 250), Run(2, 300, 350), Run(3, 400, 900)), 5, False),
        ((Run(1, 0, 250), Run(2, 300, 350), Run(3, 400, 450), Run(4, 500, 900)), 6, False),
        ((Run(1, 51, 900),), 3, False),
        ((Run(1, 50, 200),), 3, True),
        ((Run(1, 50, 199),), 3, False),
        ((Run(1, 0, 900), Run(2, 150, 150)), 3, False),
        ((Run(1, 0, 900), Run(2, 251, 300)), 3, True),
        ((Run(1, 0, 900), Run(2, 250, 300)), 3, False),
        ((Run(VOLATILE, 0, 900),), 3, False),
        ((), 3, False),
    ],
)
def test_date_that_mostly_changes_alone_is_not_the_contents(contents: History, count: int, *, alone: bool) -> None:
    assert changes_without_content(dates(count), contents, never) is alone
    assert changes_without_content(dates(count)[::-1], contents, never) is alone, "in any order"


def test_dates_of_deployments_are_left_out() -> None:
    everything = (Run(1, 0, 900),)
    assert not changes_without_content(dates(4), everything, lambda value: value > DATE + 1)
    assert changes_without_content(dates(4), everything, lambda value: value == DATE + 1)


@pytest.mark.parametrize(
    ("other", "contents", "alone"),
    [
        (Run(DATE + 1, 100, 500), (Run(1, 0, 900),), True),
        (Run(DATE + 1, 100, 200), (Run(1, 0, 900),), True),
        (Run(DATE + 1, 100, 500), (Run(1, 0, 100),), True),
        (Run(DATE + 1, 100, 500), (Run(1, 0, 99),), False),
        (Run(DATE + 1, 100, 500), (Run(1, 101, 900),), False),
        (Run(DATE + 1, 100, 500), (Run(1, 0, 90), Run(2, 100, 900)), False),
        (Run(DATE + 1, 400, 500), (Run(1, 0, 900),), False),
    ],
    ids=["swaps", "within", "read last at the change", "not read since", "not read before", "edited", "replaced"],
)
def test_two_dates_that_alternate_beside_one_content_are_those_of_two_servers(
    other: Run, contents: History, *, alone: bool
) -> None:
    both = (Run(DATE, 0, 400), other)
    assert changes_without_content(both, contents, never) is alone
    assert changes_without_content(both[::-1], contents, never) is alone, "in any order"
