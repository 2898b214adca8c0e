"""Removes from pages the evidence that is later than now, which a worker saw because its clock was ahead.

Evidence from the future loses to evidence that is not. Whoever reads pages from the store to evaluate them passes them
through `page_as_of` or `block_as_of` first, so that all evaluate the same evidence.
"""

from __future__ import annotations

from itertools import compress
from operator import is_, itemgetter, not_
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS
from ..models import Page
from ..value_history import without_future
from .page_columns import PageBlock, PageColumns

_PAGE: Final = itemgetter(1)


def page_as_of(page: Page, now: int) -> Page:
    """The page without dates and contents seen later than `now`, in POSIX seconds."""
    if page.last_seen <= now and page.read_at <= now:
        return page
    moments, contents = without_future(page.last_modified_history, now), without_future(page.content_history, now)
    statements = without_future(page.stated_date_history, now)
    last_modified, stated = page.last_modified, page.stated_date
    if page.last_seen > now + CLOCK_SKEW_SECONDS:
        last_modified = moments[-1].value if moments else None
    if page.read_at > now + CLOCK_SKEW_SECONDS:
        stated = None
    return page._replace(
        last_modified=last_modified,
        stated_date=stated,
        last_modified_history=moments,
        content_history=contents,
        stated_date_history=statements,
    )


def block_as_of(block: PageBlock, now: int) -> PageBlock:
    """The same for many pages. It is the same object if nothing was seen later."""
    others = [(position, page_as_of(page, now)) for position, page in block.others]
    columns: list[PageColumns] = []
    is_same = all(map(is_, map(_PAGE, others), map(_PAGE, block.others)))
    for pages in block.columns:
        if max(pages.last_seen) <= now and max(pages.read_at) <= now:  # nearly always
            columns.append(pages)
            continue
        is_same = False
        late = [max(times) > now for times in zip(pages.last_seen, pages.read_at, strict=True)]
        others += [
            (pages.positions[index], page_as_of(pages.page(index), now)) for index in compress(range(pages.count), late)
        ]
        on_time = pages.select([*map(not_, late)])
        if on_time is not None:
            columns.append(on_time)
    return block if is_same else PageBlock(columns, others)
