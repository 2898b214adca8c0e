"""Finds what changed in a sitemap since a moment, as far as the evidence tells: for the `changes` command."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, Literal, NamedTuple

from ..dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_from_timestamp
from ..evidence.delisting_confirmation import confirmed_contradiction
from ..evidence.verdict import page_verdict
from ..models import Page
from ..value_history import MAX_RUNS
from .entries_by_section import EntryBuilder
from .listed_and_unlisted_urls import candidates
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


def changes(
    entries: EntryBuilder, context: EvaluationContext, media_types: Collection[str], since: int
) -> Iterator[PageChange]:
    """The changes of a site's sitemap since a POSIX time, one for each URL.

    Raises:
        ValuesError: a provider fails.
    """
    snapshot = context.snapshot
    for candidate in candidates(entries, context):
        page, url = candidate.page, candidate.loc or snapshot.site.base_url + candidate.path
        loc, verdict = entries.policy.evaluate(context, candidate)
        if loc is None:
            if page is not None and (dropped := _dropped(page, media_types, snapshot.now)) and dropped[1] >= since:
                last_good, at = map(w3c_from_timestamp, dropped)
                yield PageChange("dropped", url, at, verdict.reason, last_good)
            continue
        entry, lastmod, _ = entries.build_entry(context, loc, candidate)
        if page is not None and (first := _first_good(page)) >= since:
            yield PageChange("new", url, w3c_from_timestamp(first), verdict.reason)
        elif entry.lastmod and _end_of(entry.lastmod) >= since:
            yield PageChange("changed", url, entry.lastmod, lastmod.source)


def _first_good(page: Page) -> int:
    """When a listed page was first seen as a page. An earlier answer may have been another one."""
    contents = page.content_history
    if not contents or len(contents) == MAX_RUNS:  # then the first ones may be lost
        return page.first_seen
    return max(page.first_seen, min(run.first for run in contents))


def _dropped(page: Page, media_types: Collection[str], now: int) -> tuple[int, int] | None:
    """Between which times a page that is not listed ceased to be good; None if the evidence does not tell."""
    if (answer := confirmed_contradiction(page)) is not None:
        return page.last_seen, answer.at
    ends = [end for end in (page.expires_at, page.html_expires_at) if end is not None and end <= now]
    if ends and page_verdict(page, media_types, min(ends) - 1).listed:
        return page.last_seen, min(ends)
    if page.status == 200 or not page.content_history or page.html_noindex or page.html_obstacle or page.html_canonical:
        return None
    return page.content_history[-1].last, page.last_seen


def _end_of(lastmod: str) -> int:
    """The last second of a W3C date, or the second of a datetime."""
    return timestamp_of_w3c(lastmod) + (SECONDS_PER_DAY - 1 if len(lastmod) == _DAY_LENGTH else 0)
