"""Reports, for people and for CI, on every URL that is known: whether it is listed, why, and what happened to it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_from_timestamp
from ..evidence.page_verdict import dropped_between
from ..evidence.value_history import MAX_RUNS, VOLATILE
from ..models import Page, Provider, Site
from .candidates import decode_path, is_linked, link_digests
from .entries import EntryBuilder
from .extended_entries import NO_SOURCES, describe_extensions
from .policy import EvaluationContext
from .provider_items import ProviderReport

UNDATED: Final = "no date is known"
"""The group of listed pages without a lastmod."""

COLUMNS: Final = ("url", "listed", "reason", "lastmod", "lastmod_from", "route", "linked")
"""What a table of URLs has of each."""

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


class EvaluatedUrl(NamedTuple):
    """One URL with what its evaluation gave. Times are in POSIX seconds; None for what the evidence does not tell."""

    path: str
    """Percent-encoded."""
    url: str
    listed: bool
    reason: str
    kind: str
    """Of reasons that differ in a detail; for a listed page the source of its lastmod."""
    lastmod: str | None
    lastmod_from: str | None
    """The source of its lastmod; None if it has none."""
    lastmod_note: str | None
    """The source of its lastmod, or why it has none; None unless it is listed."""
    changefreq: str | None
    priority: float | None
    extensions: str
    """What it says of its images, videos, news and alternates; empty if nothing."""
    route: str
    excluded: bool
    """Whether it is left out whatever it answers."""
    status: int | None
    last_seen: int
    """0 if it was never seen."""
    first_good: int | None
    """When a listed page was first seen as a page."""
    changed: int | None
    """The last second of a listed page's lastmod."""
    last_good: int | None
    dropped: int | None
    """A page that is no longer listed ceased to be good between these two times."""
    event: int | None
    """When it last came, changed or went."""
    linked: bool | None
    """Whether a page links to it; None if that is not known."""
    failure: str
    """Why its last request failed, since it was last seen; empty if it did not."""
    slow_seconds: float | None
    """How long it took to answer, if it was slow."""
    content: str | None
    """A digest of its content; None if that is not known, or differs each time."""

    def change(self, since: int) -> PageChange | None:
        """What happened to it since a POSIX time; None if nothing did."""
        if self.dropped is not None and self.last_good is not None and self.dropped >= since:
            last_good, at = map(w3c_from_timestamp, (self.last_good, self.dropped))
            return PageChange("dropped", self.url, at, self.reason, last_good)
        if self.first_good is not None and self.first_good >= since:
            return PageChange("new", self.url, w3c_from_timestamp(self.first_good), self.reason)
        if self.lastmod is not None and self.changed is not None and self.changed >= since:
            return PageChange("changed", self.url, self.lastmod, self.lastmod_from or "")
        return None


def evaluated_urls(
    entries: EntryBuilder,
    context: EvaluationContext,
    media_types: Collection[str],
    trouble_of: Callable[[Site, str, int], tuple[str, float | None]],
    failures: list[str] | None = None,
) -> Iterator[EvaluatedUrl]:
    """The URLs of static routes, of providers and of learned pages.

    `trouble_of` takes a site, a decoded path and when that was last seen, and says why its last request failed since,
    and how long a slow one took. Why a provider fails, or which items are wrong, is added to `failures`. Without that,
    `ValuesError` is raised.
    """
    site, digests = context.snapshot.site, link_digests(context.snapshot)
    reports = dict[Provider, ProviderReport]()
    for candidate in entries.candidates(context, reports):
        page = candidate.page
        loc, verdict = entries.policy.evaluate(context, candidate)
        entry, lastmod, _, sources = (
            (None, None, None, NO_SOURCES) if loc is None else entries.build_entry(context, loc, candidate)
        )
        dated = entry.lastmod if entry else None
        source = lastmod.source if lastmod and dated else None
        first_good = first_good_at(page) if entry and page else None
        changed = end_of(dated) if dated else None
        gone = None if entry or page is None else dropped_between(page, media_types, context.snapshot.now)
        last_good, dropped = gone or (None, None)
        failure, slow_seconds = trouble_of(site, decode_path(candidate.path), page.last_seen if page else 0)
        content = page.content_history[-1].value if page and page.content_history else VOLATILE
        yield EvaluatedUrl(
            path=candidate.path,
            url=candidate.loc or site.base_url + candidate.path,
            listed=entry is not None,
            reason=verdict.reason,
            kind=(source or UNDATED) if entry else (verdict.kind or verdict.reason),
            lastmod=dated,
            lastmod_from=source,
            lastmod_note=lastmod.note if lastmod else None,
            changefreq=entry.changefreq if entry else None,
            priority=entry.priority if entry else None,
            extensions="; ".join(describe_extensions(entry, sources)) if entry and sources else "",
            route=candidate.route.path,
            excluded=entries.policy.exclusion(candidate.route, decode_path(candidate.path)) is not None,
            status=page.status if page else None,
            last_seen=page.last_seen if page else 0,
            first_good=first_good,
            changed=changed,
            last_good=last_good,
            dropped=dropped,
            event=max((at for at in (first_good, changed, dropped) if at is not None), default=None),
            linked=is_linked(site, candidate.route, candidate.path, digests),
            failure=failure,
            slow_seconds=slow_seconds,
            content=None if content == VOLATILE else f"{content:x}",
        )
    for provider, report in reports.items():
        if failures is None and report.failure:
            raise report.failure
        if failures is not None and (report.failure or report.skipped):
            left_out = f"of the values of {provider.place}, {'; '.join(report.messages())}"
            failures.append(str(report.failure or left_out))


def pages_as_csv(lines: Iterable[EvaluatedUrl]) -> str:
    """A table of URLs."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows([getattr(line, column) for column in COLUMNS] for line in lines)
    return out.getvalue()


def first_good_at(page: Page) -> int:
    """When a listed page was first seen as a page. An earlier answer may have been another one."""
    contents = page.content_history
    if not contents or len(contents) == MAX_RUNS:  # then the first ones may be lost
        return page.first_seen
    return max(page.first_seen, min(run.first for run in contents))


def end_of(lastmod: str) -> int:
    """The last second of a W3C date, or the second of a datetime."""
    return timestamp_of_w3c(lastmod) + (SECONDS_PER_DAY - 1 if len(lastmod) == _DAY_LENGTH else 0)
