"""Histories: runs of values, and the change that they prove."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.value_history import (
    MAX_RUNS,
    OVERLAP_SECONDS,
    VOLATILE,
    History,
    add_sighting,
    last_change,
)

HOUR = 3600


def history(*sights: tuple[int, int]) -> History:
    """A history of values, each seen at an hour."""
    runs: History = ()
    for value, hour in sights:
        runs = add_sighting(runs, value, hour * HOUR)
    return runs


def seen(values: str) -> History:
    """A history of one letter an hour: "AAB" is A at hours 0 and 1, B at hour 2; a dash is an hour without a sight."""
    return history(*((ord(letter), hour) for hour, letter in enumerate(values) if letter != "-"))


sights = st.lists(st.tuples(st.integers(-3, 3) | st.just(VOLATILE), st.integers(0, 100_000)))


@given(sights, st.randoms(use_true_random=False))
def test_shuffled_and_repeated_sightings_give_the_same_history(
    seen: list[tuple[int, int]], order: random.Random
) -> None:
    shuffled = seen + order.sample(seen, len(seen) // 2)
    order.shuffle(shuffled)
    assert history(*seen) == history(*shuffled)


def test_of_many_values_the_last_are_kept_and_the_sign_of_moving() -> None:
    runs = add_sighting((), VOLATILE, 0)
    for number in range(1, 3 * MAX_RUNS):
        runs = add_sighting(runs, number, number)
    assert len(runs) == MAX_RUNS
    assert (runs[0].value, runs[-1].value) == (VOLATILE, 3 * MAX_RUNS - 1)


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        ("AAB", None),
        ("AABB", (1, 2)),
        ("ABB", None),
        ("AA---BB", (1, 5)),
        ("AABBCC", (3, 4)),
        ("AABBC", (1, 2)),
        ("AABBCDD", (4, 5)),
        ("AABA", None),
        ("ABABABABBB", None),
        ("AABBABBBBBBBBCC", (12, 13)),
    ],
)
def test_change_is_a_repeated_value_that_replaced_another(values: str, interval: tuple[int, int] | None) -> None:
    expected = None if interval is None else (interval[0] * HOUR, interval[1] * HOUR)
    assert last_change(seen(values)) == expected


@pytest.mark.parametrize(("overlap", "dated"), [(0, True), (OVERLAP_SECONDS, True), (OVERLAP_SECONDS + 1, False)])
def test_restarting_workers_may_alternate_between_two_values(overlap: int, *, dated: bool) -> None:
    runs: History = ()
    for value, at in ((1, 0), (2, 10_000), (1, 10_000 + overlap), (2, 10_000 + overlap + 60)):
        runs = add_sighting(runs, value, at)
    assert last_change(runs) == ((10_000, 10_000 + overlap) if dated else None)


def test_volatile_value_dates_nothing_until_two_others_followed() -> None:
    moved = add_sighting(seen("AABBCC"), VOLATILE, 2 * HOUR)
    assert last_change(seen("AABBCC")) == (3 * HOUR, 4 * HOUR)
    assert last_change(moved) is None, "B was there when it moved"
    stood = add_sighting(add_sighting(moved, ord("D"), 6 * HOUR), ord("D"), 7 * HOUR)
    assert last_change(stood) == (5 * HOUR, 6 * HOUR)
    assert last_change(add_sighting(stood, VOLATILE, 8 * HOUR)) is None
