"""Content histories of many pages, held in columns."""

from __future__ import annotations

import tracemalloc

import pytest

from sitemap_middleware.evidence.compact_content_histories import CompactContentHistories, frequent_values
from sitemap_middleware.evidence.page_columns import RunColumns
from sitemap_middleware.value_history import History, Run

ONE_CONTENT: History = (Run(-(2**63), 1_750_000_000, 1_750_000_060),)
TWO_CONTENTS: History = (Run(1, 1_750_000_000, 1_750_000_060), Run(2, 1_750_000_120, 1_750_000_180))


def test_single_contents_are_columns_and_changed_pages_keep_their_history() -> None:
    table = CompactContentHistories()
    table.add(ONE_CONTENT)
    table.add(TWO_CONTENTS)
    assert list(zip(table.values, table.first_seen, table.last_seen, strict=True)) == list(ONE_CONTENT)
    assert table.changed == [TWO_CONTENTS]
    assert len(table) == 2


def test_histories_in_columns_are_added_as_each_is_alone() -> None:
    table, other = CompactContentHistories(), CompactContentHistories()
    for history in (ONE_CONTENT, TWO_CONTENTS, TWO_CONTENTS):
        other.add(history)
    table.add_columns([RunColumns(*([number] for number in ONE_CONTENT[0]))])
    table.add_columns([RunColumns(*([number] * 2 for number in run)) for run in TWO_CONTENTS])
    table.add_columns([])
    assert (table.values, table.first_seen, table.last_seen) == (other.values, other.first_seen, other.last_seen)
    assert table.changed == other.changed
    assert all(isinstance(run, Run) for history in table.changed for run in history)
    assert [*table.all_values()] == [ONE_CONTENT[0][0], 1, 2, 1, 2]


def test_tables_of_several_routes_are_added_up() -> None:
    table, other = CompactContentHistories(), CompactContentHistories()
    table.add(ONE_CONTENT)
    other.add(((2**63 - 1, 3, 4),))
    other.add(TWO_CONTENTS)
    table.extend(other)
    assert list(table.values) == [-(2**63), 2**63 - 1]
    assert (list(table.first_seen), list(table.last_seen)) == ([1_750_000_000, 3], [1_750_000_060, 4])
    assert table.changed == [TWO_CONTENTS]


def test_times_before_1970_are_held() -> None:
    """A test's clock may start at any time."""
    table = CompactContentHistories()
    table.add(((7, -120, -60),))
    assert (table.first_seen[0], table.last_seen[0]) == (-120, -60)


def test_page_with_one_content_takes_24_bytes() -> None:
    table = CompactContentHistories()
    tracemalloc.start()
    try:
        for number in range(10_000):
            table.add(((number, number, number),))
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used < 10_000 * 24 * 1.3


@pytest.mark.parametrize(
    ("min_count", "frequent"), [(1, {1, 2, 3, 4}), (2, {2, 3, 4}), (3, {3, 4}), (4, {4}), (5, set()), (99, set())]
)
def test_values_that_occur_at_least_so_often_are_frequent(min_count: int, frequent: set[int]) -> None:
    assert frequent_values([4, 3, 2, 1, 4, 3, 2, 4, 3, 4], min_count) == frequent
