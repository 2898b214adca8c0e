"""Finds what changed in a sitemap since a moment, as far as the evidence tells: for the `changes` command."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, Literal, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_from_timestamp
from ..evidence.page_verdict import dropped_between
from ..evidence.value_history import MAX_RUNS
from ..models import Page
from .entries import EntryBuilder
from .listed_and_unlisted_urls import EvaluatedUrl, UrlReportLine, evaluated_urls, report_line
from .policy import EvaluationContext

_DAY_LENGTH: Final = len("2024-05-01")


class PageChange(NamedTuple):
    """What happened to one URL."""

    kind: Literal["new", "dropped", "changed"]
    """Listed and first seen as a page since then; no longer listed; or listed with a lastmod since then."""
    url: str
    at: str
    """When, as a W3C date or datetime. A page was dropped at this time or before, but after `last_good`."""
    reason: str
    last_good: str | None = None
    """When a dropped page was last known to be good."""


class ChangeTimes(NamedTuple):
    """When a URL came, changed and went, in POSIX seconds; None for what the evidence does not tell."""

    first_good: int | None = None
    """When a listed page was first seen as a page."""
    changed: int | None = None
    """The last second of a listed page's lastmod."""
    last_good: int | None = None
    dropped: int | None = None
    """A page that is no longer listed ceased to be good between these two times."""

    @property
    def latest(self) -> int | None:
        """The latest time that anything of this happened."""
        return max((at for at in (self.first_good, self.changed, self.dropped) if at is not None), default=None)


def changes(
    entries: EntryBuilder, context: EvaluationContext, media_types: Collection[str], since: int
) -> Iterator[PageChange]:
    """The changes of a site's sitemap since a POSIX time, one for each URL.

    Raises:
        ValuesError: a provider fails.
    """
    for item in evaluated_urls(entries, context):
        times = change_times(item, media_types, context.snapshot.now)
        change = change_since(report_line(item), times, since)
        if change is not None:
            yield change


def change_times(item: EvaluatedUrl, media_types: Collection[str], now: int) -> ChangeTimes:
    """When a URL came, changed and went."""
    page = item.candidate.page
    if item.entry is None:
        return ChangeTimes(None, None, *(dropped_between(page, media_types, now) or ())) if page else ChangeTimes()
    lastmod = item.entry.lastmod
    return ChangeTimes(_first_good(page) if page else None, _end_of(lastmod) if lastmod else None)


def change_since(line: UrlReportLine, times: ChangeTimes, since: int) -> PageChange | None:
    """What happened to a URL since a POSIX time; None if nothing did."""
    if times.dropped is not None and times.last_good is not None and times.dropped >= since:
        last_good, at = map(w3c_from_timestamp, (times.last_good, times.dropped))
        return PageChange("dropped", line.url, at, line.reason, last_good)
    if times.first_good is not None and times.first_good >= since:
        return PageChange("new", line.url, w3c_from_timestamp(times.first_good), line.reason)
    if line.lastmod is not None and times.changed is not None and times.changed >= since:
        return PageChange("changed", line.url, line.lastmod, line.lastmod_from or "")
    return None


def _first_good(page: Page) -> int:
    """When a listed page was first seen as a page. An earlier answer may have been another one."""
    contents = page.content_history
    if not contents or len(contents) == MAX_RUNS:  # then the first ones may be lost
        return page.first_seen
    return max(page.first_seen, min(run.first for run in contents))


def _end_of(lastmod: str) -> int:
    """The last second of a W3C date, or the second of a datetime."""
    return timestamp_of_w3c(lastmod) + (SECONDS_PER_DAY - 1 if len(lastmod) == _DAY_LENGTH else 0)
