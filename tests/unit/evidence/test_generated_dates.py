"""Dates of content and dates of a clock: each rule, and where it begins."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.value_history import (
    GENERATED_DATE_SECONDS,
    MAX_BACKDATED_SECONDS,
    MAX_ROUNDED_AGE_SECONDS,
    ROUNDED_SECONDS,
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


@pytest.mark.parametrize(
    ("age", "stays", "credible"),
    [
        (0, 0, False),
        (0, MINUTE - 1, False),
        (0, MINUTE, True),
        (DAY, 0, False),
        (MAX_BACKDATED_SECONDS - 1, 0, False),
        (MAX_BACKDATED_SECONDS, 0, True),
    ],
)
def test_date_must_stay_for_a_minute_or_be_old(age: int, stays: int, *, credible: bool) -> None:
    assert is_credible((seen(DATE, age, stays),), DATE) is credible
    other = seen(DATE - 999, 99, stays)
    assert is_credible((other, seen(DATE, age, 0)), DATE) is credible, "another date stayed for as long"


@pytest.mark.parametrize(("more", "credible"), [(-1, False), (0, True)])
def test_rounded_date_is_credible_once_it_is_older_than_a_rounded_clock(more: int, *, credible: bool) -> None:
    value, age = 20_000 * DAY + ROUNDED_SECONDS, MAX_ROUNDED_AGE_SECONDS
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
