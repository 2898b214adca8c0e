"""Pages without what a worker saw whose clock was ahead: one by one, and in columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.dates import CLOCK_SKEW_SECONDS
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_as_of import block_as_of, page_as_of
from sitemap_middleware.evidence.page_columns import PageBlock
from sitemap_middleware.models import Page
from sitemap_middleware.stores.page_codec import packed_page, unpack_block
from sitemap_middleware.value_history import Run

NOW = 1_750_000_020
DAY = 24 * 3600


def seen(path: str, *sights: tuple[int, int, int]) -> Page:
    """A page that was seen at these times, each with this Last-Modified and this content."""
    page = None
    for at, last_modified, content in sights:
        html = HtmlFacts(content, stated_date="2025-06-01")
        page = merge(page, Observation(path, "/<x>", at, 200, "text/html", last_modified=last_modified, html=html))
    assert page is not None
    return page


@pytest.mark.parametrize("ahead", [0, CLOCK_SKEW_SECONDS, CLOCK_SKEW_SECONDS + 1])
def test_a_page_has_no_dates_from_the_future(ahead: int) -> None:
    known = page_as_of(seen("/a", (NOW, NOW - DAY, 7), (NOW + ahead, NOW + 1, 7)), NOW)
    if ahead > CLOCK_SKEW_SECONDS:
        assert (known.last_modified, known.stated_date) == (NOW - DAY, None)
    else:
        assert (known.last_modified, known.stated_date) == (NOW + 1, "2025-06-01"), "clocks differ a little"
    assert all(run.last <= NOW for run in (*known.last_modified_history, *known.content_history))


def test_what_was_seen_later_is_left_out_and_the_page_stays() -> None:
    page = seen("/a", (NOW, NOW - DAY, 1), (NOW + 9 * DAY, NOW + 8 * DAY, 1))
    assert page_as_of(page, NOW + 9 * DAY) is page
    then = page_as_of(page, NOW + DAY)
    assert (then.last_modified, then.last_modified_history) == (NOW - DAY, (Run(NOW - DAY, NOW, NOW),))
    assert then.content_history == (Run(1, NOW, NOW + DAY),)
    assert page_as_of(page, NOW - DAY).last_modified is None
    read = page_as_of(page._replace(last_seen=NOW), NOW + DAY)
    assert (read.last_modified, read.stated_date) == (NOW + 8 * DAY, None)


SIGHTS = st.lists(
    st.tuples(
        st.sampled_from([-DAY, -100, 0, 1, 100, CLOCK_SKEW_SECONDS, 400, DAY]).map(lambda ahead: NOW + ahead),
        st.sampled_from([NOW - DAY, NOW + 90]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda sight: sight[0],
)
PAGES = st.lists(st.tuples(st.integers(1, 8), SIGHTS), max_size=4).map(
    lambda kinds: [
        seen(f"/{kind}-{number}", *((at + number % 2, date, content) for at, date, content in sights))
        for kind, (count, sights) in enumerate(kinds)
        for number in range(count)
    ]
)


def stored(pages: list[Page]) -> PageBlock:
    return unpack_block((page.path, page.route, packed_page(page).data) for page in pages)


@given(PAGES)
def test_a_block_has_the_pages_that_each_page_is_alone(pages: list[Page]) -> None:
    block = stored(pages)
    known = block_as_of(block, NOW)
    assert [*known] == [page_as_of(page, NOW) for page in pages]
    assert (known is block) is all(page_as_of(page, NOW) is page for page in pages)
    assert block_as_of(PageBlock.of(pages), NOW) == known


def test_one_page_from_the_future_leaves_the_others_in_columns() -> None:
    sights = (NOW - DAY, NOW - 9 * DAY, 1), (NOW, NOW - 9 * DAY, 1)
    pages = [seen(f"/{number}", *sights) for number in range(9)]
    late = seen("/late", sights[0], (NOW + 1, NOW - 9 * DAY, 1))
    block = block_as_of(stored([*pages[:4], late, *pages[4:]]), NOW)
    assert [columns.count for columns in block.columns] == [9]
    assert block.others == [(4, page_as_of(late, NOW))]
    assert not block_as_of(stored(pages), NOW - 1).columns
