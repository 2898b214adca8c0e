"""Removes from pages the evidence that is later than now, which a worker saw because its clock was ahead.

Evidence from the future loses to evidence that is not. Whoever reads pages from the store to evaluate them passes them
through `page_as_of` first, so that all evaluate the same evidence.
"""

from __future__ import annotations

from ..dates import CLOCK_SKEW_SECONDS
from ..models import Page
from ..value_history import without_future


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
