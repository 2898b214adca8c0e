"""Draws a sample of a site's pages, evenly over all its slots; the same for every engine. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from .base import UNLEARNED_BLOCK
from .compact_page_list import CompactPageList
from .permanent_page_slots import Slot
from .sql_row_id_layout_and_path_hash import MAX_BLOCK_ROWS, row_id, row_id_range

_SPREAD: Final = 2_654_435_769
"""Times this, modulo 2**32, consecutive numbers are spread evenly (Fibonacci hashing)."""


class SiteSize(NamedTuple):
    """How many pages a site has, and the slots that they lie in."""

    learned: int
    blocks: Sequence[tuple[int, int]]
    """The number of each block of learned pages, in ascending order, and how many slots it has."""
    unlearned: int
    unlearned_slots: int


PageRows = Iterable[tuple[str, str, bytes]]
"""Path, route and data of stored pages."""


def draw_sample(
    site: int,
    size: SiteSize,
    limit: int,
    read_range: Callable[[int, int], PageRows],
    read_from_each: Callable[[Sequence[int], int], PageRows],
) -> CompactPageList:
    """At most `limit` pages of a site, spread evenly: half learned and half unlearned ones, if it has enough of both.

    Args:
        site: its number in row ids (`sql_row_id_layout_and_path_hash`).
        size: what the site has.
        limit: how many pages are wanted.
        read_range: reads the rows from a first to a last id.
        read_from_each: reads the first row at or after each of some ascending ids, up to a last id, each row once.
    """
    sample = CompactPageList()
    quota = max(limit - size.learned, limit // 2)
    first, _ = row_id_range(site, UNLEARNED_BLOCK)
    last = first + size.unlearned_slots
    if size.unlearned <= quota:
        sample.extend(read_range(first, last))
    else:
        sample.extend(read_from_each([first + slot for slot in _evenly(size.unlearned_slots, quota)], last))
    quota = max(0, limit - len(sample))  # damaged counts may have given more pages than were asked for
    first, last = row_id_range(site, 1, size.blocks[-1][0] if size.blocks else 1)
    if size.learned <= quota or not size.blocks:
        sample.extend(read_range(first, last))
    else:
        sample.extend(read_from_each(_learned_rows(site, size.blocks, quota), last))
    return sample


def _evenly(slots: int, count: int) -> list[int]:
    """Divide the slots into `count` equal parts, and choose one slot in each.

    Its place in the part varies, so that pages of two kinds that alternate are both sampled.
    """
    ends = [slots * number // count for number in range(1, count + 1)]
    places = [number * _SPREAD & 0xFFFF_FFFF for number in range(count)]
    return [start + (place * (end - start) >> 32) for place, start, end in zip(places, [0, *ends], ends, strict=False)]


def _learned_rows(site: int, blocks: Sequence[tuple[int, int]], count: int) -> list[int]:
    """The rows of so many slots, spread evenly. Rows without a slot, of which a block may have many, do not count."""
    sizes = [min(max(slots, 1), MAX_BLOCK_ROWS) for _, slots in blocks]  # a stored number may be damaged
    ends = list(accumulate(sizes))
    first = row_id(site, Slot(1, 0)) - MAX_BLOCK_ROWS
    offsets = [
        first + number * MAX_BLOCK_ROWS - end + size for (number, _), end, size in zip(blocks, ends, sizes, strict=True)
    ]
    return [slot + offsets[bisect_right(ends, slot)] for slot in _evenly(ends[-1], count)]
