"""Histories: runs of values, and the change that they prove."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.history import KEEP, OVERLAP, History, change, gist, latest, noted, packed, unpacked

HOUR = 3600


def history(*sights: tuple[int, int]) -> History:
    """A history of values, each seen at an hour."""
    found: History = ()
    for value, hour in sights:
        found = noted(found, value, hour * HOUR)
    return found


def seen(values: str) -> History:
    """A history of one letter an hour: "AAB" is A at hours 0 and 1, B at hour 2; a dash is an hour without a sight."""
    return history(*((ord(letter), hour) for hour, letter in enumerate(values) if letter != "-"))


sights = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 100_000)))


@given(sights, st.randoms(use_true_random=False))
def test_sights_shuffled_and_doubled_come_to_the_same_history(
    seen: list[tuple[int, int]], order: random.Random
) -> None:
    shuffled = seen + order.sample(seen, len(seen) // 2)
    order.shuffle(shuffled)
    assert history(*seen) == history(*shuffled)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 100_000))))
def test_a_history_survives_its_packing_and_stays_small(seen: list[tuple[int, int]]) -> None:
    found = history(*seen)
    assert unpacked(packed(found)) == found
    assert len(found) <= KEEP


def test_a_sight_that_says_nothing_new_gives_the_very_same_history() -> None:
    found = seen("AAA")
    assert noted(found, ord("A"), HOUR) is found


def test_the_gist_leaves_out_when_a_value_was_seen_last() -> None:
    assert gist(seen("AA")) == gist(seen("AAAA")) != gist(seen("A"))
    assert latest(()) is None


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        ("", None),
        ("A", None),
        ("AAAAA", None),
        ("AAB", None),
        ("AABB", (1, 2)),
        ("ABB", None),
        ("AA---BB", (1, 5)),
        ("AABBCC", (3, 4)),
        ("AABBC", (1, 2)),
        ("AABBCDD", (4, 5)),
        ("ABCDEFGH", None),
        ("AABA", None),
        ("AABBA", None),
        ("AABBAA", None),
        ("ABABABABBB", None),
        ("ABCDD", None),
        ("AABCDD", (3, 4)),
        ("A-B-CDD", None),
        ("ABCDDDDD", None),
        ("AABCDDDDDD", (3, 4)),
        ("AABBABBBBBBBB", None),
        ("AABBABBBBBBBBCC", None),
        ("AABABBCCCCCCCCC", (5, 6)),
    ],
)
def test_a_change_is_a_value_seen_twice_that_took_anothers_place_for_good(
    values: str, interval: tuple[int, int] | None
) -> None:
    expected = None if interval is None else (interval[0] * HOUR, interval[1] * HOUR)
    assert change(seen(values)) == expected


@pytest.mark.parametrize(("overlap", "dated"), [(0, True), (OVERLAP, True), (OVERLAP + 1, False)])
def test_workers_that_restart_one_after_the_other_may_show_both_values_for_a_while(
    overlap: int, *, dated: bool
) -> None:
    found: History = ()
    for value, at in ((1, 0), (2, 10_000), (1, 10_000 + overlap), (2, 10_000 + overlap + 60)):
        found = noted(found, value, at)
    assert change(found) == ((10_000, 10_000 + overlap) if dated else None)
