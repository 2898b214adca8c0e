"""When pages change for the sitemap without a visit: one by one, and in columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.changes_by_time import changes_after, unavailable_from
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_columns import PageBlock
from sitemap_middleware.models import Page
from sitemap_middleware.stores.page_codec import packed_page, unpack_block

NOW = 1_750_000_020  # 2025-06-15T15:07:00Z
MIDNIGHT = 1_750_032_000
DAY = 24 * 3600


def seen(path: str, age: int = 0, moment: int | None = None, stated: str | None = None) -> Page:
    html = HtmlFacts(7, stated_date=stated)
    page = merge(None, Observation(path, "/<x>", NOW - age, 200, "text/html", last_modified=moment, html=html))
    assert page is not None
    return page


def block(pages: list[Page], *, in_columns: bool) -> PageBlock:
    if not in_columns:
        return PageBlock.of(pages)
    return unpack_block((page.path, page.route, packed_page(page).data) for page in pages)


@pytest.mark.parametrize("in_columns", [True, False])
@pytest.mark.parametrize(
    ("pages", "first"),
    [
        ([seen("/a", 9), seen("/b", 2)], NOW - 9 + DAY + 1),
        ([seen("/a", DAY), seen("/b", 2)], NOW + 1),
        ([seen("/a", DAY + 1), seen("/b", 2), seen("/c", 3)], NOW - 3 + DAY + 1),
        ([seen("/a", 2, NOW - DAY), seen("/b", 2, NOW)], NOW - 2 + DAY + 1),
        ([seen("/a", 2, NOW + 60), seen("/b", 2, NOW + 30), seen("/c", 2, NOW)], NOW + 30),
        ([seen("/a", 2, None, "2025-06-15"), seen("/b", 2, None, "2025-06-14")], NOW - 2 + DAY + 1),
        ([seen("/a", 2, None, "2025-06-16"), seen("/b", 2, None, "2025-06-17")], MIDNIGHT),
    ],
)
def test_the_first_change_of_a_block(pages: list[Page], first: int, *, in_columns: bool) -> None:
    pages = [page._replace(path=f"{page.path}{number}") for number in range(4) for page in pages]
    stored = block(pages, in_columns=in_columns)
    assert bool(stored.columns) is in_columns
    assert min(changes_after(stored, NOW, DAY)) == first


def test_pages_that_are_too_old_already_do_not_change() -> None:
    pages = [seen(f"/{number}", DAY + 1) for number in range(5)]
    assert not [*changes_after(block(pages, in_columns=False), NOW, DAY)]
    assert all(time > NOW for time in changes_after(block(pages, in_columns=True), NOW, DAY))


def test_pages_that_will_be_unavailable_by_their_own_account() -> None:
    pages = [seen("/a")._replace(expires_at=NOW + 7), seen("/b")._replace(html_expires_at=NOW), seen("/c")]
    assert [*unavailable_from(PageBlock.of(pages), NOW)] == [NOW + 7]


STATED = st.sampled_from(
    [
        None,
        "2025-06-14",
        "2025-06-15",
        "2025-06-16",
        "2025-06-15T15:06:59Z",
        "2025-06-15T15:07:00Z",
        "2025-06-15T15:07:01Z",
    ]
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 5, DAY, DAY + 1]), st.sampled_from([None, NOW - 9, NOW, NOW + 1, NOW + 99]), STATED
        ),
        max_size=3,
    )
)
def test_columns_change_when_their_pages_do(kinds: list[tuple[int, int | None, str | None]]) -> None:
    pages = [seen(f"/{number}-{place}", *kind) for place, kind in enumerate(kinds) for number in range(4)]
    alone = [*changes_after(block(pages, in_columns=False), NOW, DAY)]
    together = [*changes_after(block(pages, in_columns=True), NOW, DAY)]
    assert all(time > NOW for time in (*alone, *together))
    if alone:
        assert min(together) == min(alone)
