"""When a group of pages may have changed with its template: the same as counting at every second."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.periods_of_many_changes import (
    CHANGE_SLACK_SECONDS,
    MAX_ROLLBACK_SECONDS,
    MIN_PAGES,
    ROLLBACK_MARGIN_SECONDS,
    AmbiguousPeriods,
    Lifespans,
    change_gap,
    is_always_new,
    rollbacks,
)
from sitemap_middleware.value_history import VOLATILE, Run

SPANS = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda ends: (min(ends), max(ends)))
Spans = Sequence[tuple[int, int]]


def lives_of(seen: Spans, changes: Spans = (), rolled_back: Spans = ()) -> Lifespans:
    lives = Lifespans()
    lives.first_seen.extend(first for first, _ in seen)
    lives.last_seen.extend(last for _, last in seen)
    lives.changes += changes
    lives.rollbacks += rolled_back
    return lives


def covers(spans: Spans, at: int) -> int:
    return sum(first <= at <= last for first, last in spans)


@given(
    st.lists(SPANS, max_size=60),
    st.lists(SPANS, max_size=9),
    st.lists(SPANS, max_size=5),
    st.integers(0, 4),
    st.integers(1, 4),
)
def test_time_is_ambiguous_by_the_pages_that_were_seen_and_changed_then(
    seen: Spans, changes: Spans, rolled_back: Spans, min_seen: int, min_changed: int
) -> None:
    periods = AmbiguousPeriods(lives_of(seen, changes, rolled_back), min_seen=min_seen, min_changed=min_changed)

    def is_ambiguous(at: int) -> bool:
        alive, changed, left = covers(seen, at), covers(changes, at), covers(rolled_back, at)
        return (
            alive < min_seen
            or (changed >= min_changed and changed >= 0.6 * alive)
            or (alive >= 2 and alive == changed and min_changed <= len(seen))
            or (left >= 3 and left >= 0.02 * alive)
        )

    expected = [is_ambiguous(at) for at in range(35)]
    assert [periods.overlaps(at, at) for at in range(35)] == expected
    for start in range(0, 35, 3):
        for end in range(start, 35, 4):
            assert periods.overlaps(start, end) is any(expected[start : end + 1])
    assert (periods.ambiguous_since is None) is not expected[-1]
    if periods.ambiguous_since is not None:
        assert all(expected[periods.ambiguous_since :])
    begins, turns = periods.settled_turns()  # type: ignore[misc] # told by its parts
    assert begins is (min_seen > 0)
    changes_at = [at for at in range(35) if is_ambiguous(at) is not (is_ambiguous(at - 1) if at else min_seen > 0)]
    assert turns == (changes_at[:-1] if expected[-1] else changes_at)


@pytest.mark.parametrize(("pages", "is_ambiguous"), [(149, True), (150, True), (151, False)])
def test_fiftieth_of_the_pages_that_changed_back_is_a_deployment(pages: int, *, is_ambiguous: bool) -> None:
    lives = lives_of([(0, 9)] * pages, rolled_back=[(5, 5)] * MIN_PAGES)
    assert AmbiguousPeriods(lives, min_seen=0, min_changed=MIN_PAGES).overlaps(5, 5) is is_ambiguous


def test_lifespans_of_groups_are_added_up() -> None:
    groups = []
    for value in (1, 2):
        group = Lifespans()
        group.add((Run(value, 10_000 * value, 20_000 * value),))
        group.add((Run(value, -5, 5), Run(9, 15, 200_000 * value)))
        group.add((Run(value, 0, 100_000), Run(9, 40_000, 50_000)))
        groups.append(group)
    everything = Lifespans()
    for group in groups:
        everything.extend(group)
    assert list(everything.first_seen) == [10_000, -5, 0, 20_000, -5, 0]
    assert list(everything.last_seen) == [20_000, 200_000, 100_000, 40_000, 400_000, 100_000]
    assert everything.changes == [(5 - CHANGE_SLACK_SECONDS, 15 + CHANGE_SLACK_SECONDS)] * 2
    assert everything.rollbacks == [(40_000 - ROLLBACK_MARGIN_SECONDS, 50_000 + ROLLBACK_MARGIN_SECONDS)] * 2


@pytest.mark.parametrize(
    ("before", "after", "gap"),
    [
        ([Run(1, 0, 5)], Run(2, 9, 9), (5, 9)),
        ([Run(1, 0, 9)], Run(2, 9, 9), (9, 9)),
        ([Run(1, 0, 5), Run(2, 1, 7), Run(3, 2, 30)], Run(4, 9, 40), (7, 9)),
        ([Run(1, 0, 30)], Run(2, 9, 9), (9, 9)),
    ],
)
def test_change_is_between_the_last_of_the_old_and_the_first_of_the_new(
    before: list[Run], after: Run, gap: tuple[int, int]
) -> None:
    assert change_gap(before, after) == gap


@pytest.mark.parametrize(
    ("other", "middle", "is_rollback"),
    [
        (Run(1, 0, 100), Run(2, 1, 99), True),
        (Run(1, 1, 100), Run(2, 1, 99), False),
        (Run(1, 0, 99), Run(2, 1, 99), False),
        (Run(1, -1, MAX_ROLLBACK_SECONDS + 9), Run(2, 0, MAX_ROLLBACK_SECONDS), False),
        (Run(1, -1, MAX_ROLLBACK_SECONDS + 9), Run(2, 1, MAX_ROLLBACK_SECONDS), True),
    ],
)
def test_content_of_less_than_a_day_within_another_was_rolled_back(
    other: Run, middle: Run, *, is_rollback: bool
) -> None:
    assert rollbacks((other, middle)) == ([middle] if is_rollback else [])


@pytest.mark.parametrize(
    ("history", "is_new"),
    [
        ((Run(1, 0, 0), Run(2, 1, 1)), False),
        ((Run(1, 0, 0), Run(2, 1, 1), Run(3, 2, 2)), True),
        ((Run(1, 0, 5), Run(2, 6, 7), Run(3, 8, 9)), False),
        ((Run(1, 0, 5), Run(VOLATILE, 6, 7)), True),
    ],
)
def test_page_with_three_contents_seen_once_is_always_new(history: tuple[Run, ...], *, is_new: bool) -> None:
    assert is_always_new(history) is is_new
