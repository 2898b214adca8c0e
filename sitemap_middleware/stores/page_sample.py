"""Draws a sample of a site's pages, evenly over all its rows; the same for every engine. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .base import UNLEARNED_BLOCK
from .compact_page_list import CompactPageList
from .sql_row_id_layout_and_path_hash import row_id_range


class SiteSize(NamedTuple):
    """How many pages a site has, and the slots that they lie in."""

    learned: int
    last_block: int
    """The last block of learned pages; 0 if there is none."""
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

    def add(first: int, span: int, pages: int, quota: int) -> None:
        if pages <= quota:
            sample.extend(read_range(first, first + span))
        else:
            sample.extend(read_from_each([first + span * number // quota for number in range(quota)], first + span))

    first, _ = row_id_range(site, UNLEARNED_BLOCK)
    add(first, size.unlearned_slots, size.unlearned, max(limit - size.learned, limit // 2))
    first, last = row_id_range(site, 1, size.last_block or 1)
    add(first, last - first, size.learned, limit - len(sample))
    return sample
