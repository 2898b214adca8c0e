"""Pages alike in columns: what is asked of all of them at once is what each one says."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.page_columns import PageColumns
from sitemap_middleware.evidence.site_signals import changed_since
from sitemap_middleware.models import Page
from sitemap_middleware.stores.page_codec import packed_page, unpack_block
from sitemap_middleware.value_history import Run

NOW = 1_750_000_000


def page(number: int, stated_date: str | None = None) -> Page:
    """A page that was read, and got its content, so many seconds after `NOW`."""
    content = (Run(number + 1, NOW if stated_date else NOW + number, NOW + 99),)
    path = f"/{number}"
    return Page(
        path, "/<n>", NOW, NOW + 99, 200, "text/html", content_history=content, stated_date=stated_date,
        read_at=NOW + number,
    )  # fmt: skip


def columns_of(pages: list[Page]) -> PageColumns:
    (columns,) = unpack_block((page.path, page.route, packed_page(page).data) for page in pages).columns
    return columns


@pytest.mark.parametrize("stated_date", [None, "2024-05-01"])
@pytest.mark.parametrize(("since", "expected"), [(NOW + 2, True), (NOW + 3, False)])
def test_pages_changed_if_one_of_them_changed(stated_date: str | None, since: int, expected: bool) -> None:
    """A page that states a date may have changed whenever it was read."""
    pages = [page(number, stated_date) for number in range(4)]
    assert columns_of(pages).any_changed_since(since) is expected
    assert any(changed_since(page, since) for page in pages) is expected


def test_selected_pages_keep_their_positions() -> None:
    pages = [page(number) for number in range(4)]
    columns = columns_of(pages)
    chosen = columns.select([0, 1, 0, 1])
    assert chosen is not None
    assert [*chosen.rows()] == [(1, pages[1]), (3, pages[3])]
    assert chosen.page(1) == pages[3]
    assert columns.select([0] * 4) is None
