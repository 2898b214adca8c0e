"""Says when entries will change by themselves: a page becomes too old or unavailable, or a date is no longer ahead."""

from __future__ import annotations

from collections.abc import Iterator

from ..dates import timestamp_of_w3c, w3c_from_timestamp
from .page_columns import Column, PageBlock, PageColumns
from .page_verdict import expires_after


def unavailable_from(block: PageBlock, now: int) -> Iterator[int]:
    """The times after `now`, in POSIX seconds, that pages give as their `unavailable_after`."""
    # Pages that expire are never in columns.
    return (end for _, page in block.others for end in expires_after(page, now))


def changes_after(block: PageBlock, now: int, max_age_seconds: int) -> Iterator[int]:
    """Times after `now` at which pages become too old to be listed, or their dates are no longer in the future.

    The earliest one is always included; others may be missing. For `unavailable_after` see `unavailable_from`.

    Args:
        block: the pages as of now. Evidence that was left out of them may change them at any time.
        now: POSIX seconds.
        max_age_seconds: how long after its last visit a page is listed.
    """
    for columns in block.columns:
        yield from _changes_of_columns(columns, now, max_age_seconds)
    text = w3c_from_timestamp(now)
    for _, page in block.others:
        if (end := page.last_seen + max_age_seconds + 1) > now:
            yield end
        if page.last_modified is not None and page.last_modified > now:
            yield page.last_modified
        if page.stated_date is not None and page.stated_date > text:
            yield timestamp_of_w3c(page.stated_date)


def _changes_of_columns(pages: PageColumns, now: int, max_age_seconds: int) -> Iterator[int]:
    visits = pages.last_seen
    earliest = min(visits)
    if earliest < now - max_age_seconds:
        earliest = min(_not_before(visits, now - max_age_seconds), default=now)
    yield earliest + max_age_seconds + 1
    if pages.common.last_modified is not None and max(pages.last_modified) > now:
        yield min(_not_before(pages.last_modified, now + 1))
    # W3C dates sort as the times that they stand for: a date as the midnight with which it begins.
    if pages.stated_dates is not None and max(pages.stated_dates) > (text := w3c_from_timestamp(now)):
        yield timestamp_of_w3c(min(date for date in pages.stated_dates if date > text))


def _not_before(column: Column, time: int) -> Iterator[int]:
    return (moment for moment in column if moment >= time)
