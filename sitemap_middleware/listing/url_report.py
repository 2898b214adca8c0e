"""Evaluates every known URL of a site, listed or not: for the report and the commands `list` and `changes`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, Literal, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_from_timestamp
from ..evidence.lastmod import ChangefreqResult, LastmodResult
from ..evidence.page_verdict import Verdict, dropped_between
from ..evidence.value_history import MAX_RUNS
from ..models import Page, SitemapUrl
from .candidates import Candidate, stored_candidates
from .entries import EntryBuilder
from .policy import EvaluationContext
from .provider_items import ProviderReport

_DAY_LENGTH: Final = len("2024-05-01")


class EvaluatedUrl(NamedTuple):
    """One URL with everything that its evaluation gave."""

    url: str
    candidate: Candidate
    verdict: Verdict
    entry: SitemapUrl | None
    """Its entry; None unless it is listed. Then so are the two below."""
    lastmod: LastmodResult | None = None
    changefreq: ChangefreqResult | None = None
    """None, too, if its changefreq is not inferred."""

    @property
    def lastmod_from(self) -> str | None:
        """The source of its lastmod; None if it has none."""
        return self.lastmod.source if self.lastmod and self.lastmod.text else None


class UrlReportLine(NamedTuple):
    """One URL."""

    url: str
    listed: bool
    reason: str
    lastmod: str | None
    lastmod_from: str | None
    route: str


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


def evaluated_urls(entries: EntryBuilder, context: EvaluationContext) -> Iterator[EvaluatedUrl]:
    """The URLs of static routes, of providers and of learned pages, each once.

    Raises:
        ValuesError: a provider fails.
    """
    for candidate in _candidates(entries, context):
        loc, verdict = entries.policy.evaluate(context, candidate)
        url = candidate.loc or context.snapshot.site.base_url + candidate.path
        if loc is None:
            yield EvaluatedUrl(url, candidate, verdict, None)
        else:
            yield EvaluatedUrl(url, candidate, verdict, *entries.build_entry(context, loc, candidate))


def _candidates(entries: EntryBuilder, context: EvaluationContext) -> Iterator[Candidate]:
    yield from entries.route_candidates(context)
    for provider, routes in context.providers.values():
        yield from entries.provider_candidates(context, provider, routes, ProviderReport())
    yield from stored_candidates(context.snapshot)


def report_line(item: EvaluatedUrl) -> UrlReportLine:
    """The line of a URL."""
    lastmod = item.entry.lastmod if item.entry else None
    route = item.candidate.route.path
    return UrlReportLine(item.url, item.entry is not None, item.verdict.reason, lastmod, item.lastmod_from, route)


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
