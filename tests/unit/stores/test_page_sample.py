"""A sample of pages is drawn even if the counts that a store gives are damaged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sitemap_middleware.models import Page
from sitemap_middleware.stores.page_codec import packed_page
from sitemap_middleware.stores.page_sample import PageRows, SiteSize, draw_sample

LIMIT = 10
PAGE = packed_page(Page("/", "/<path>", first_seen=1, last_seen=1, status=200)).data


def many(*_: int | Sequence[int]) -> PageRows:
    """More pages than are asked for."""
    return [(f"/{number}", "/<path>", PAGE) for number in range(2 * LIMIT)]


@pytest.mark.parametrize("learned", [0, 5, 1000])
@pytest.mark.parametrize("blocks", [(), ((1, 0),), ((1, 625),), ((1, 625), (2, -1)), ((1, 10**9),)], ids=repr)
@pytest.mark.parametrize("unlearned", [0, 5, 1000])
@pytest.mark.parametrize("unlearned_slots", [0, 5, 1000])
def test_a_sample_is_drawn_whatever_the_counts_say(
    learned: int, blocks: Sequence[tuple[int, int]], unlearned: int, unlearned_slots: int
) -> None:
    size = SiteSize(learned, blocks, unlearned, unlearned_slots)
    assert len(draw_sample(1, size, LIMIT, many, many)) == 4 * LIMIT
