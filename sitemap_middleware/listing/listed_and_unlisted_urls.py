"""Lists every known URL of a site, listed or not, with the reason: for the command `list`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..evidence.lastmod import ChangefreqResult, LastmodResult
from ..evidence.page_verdict import Verdict
from ..models import SitemapUrl
from .candidates import Candidate, stored_candidates
from .entries import EntryBuilder
from .policy import EvaluationContext


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


def url_report(entries: EntryBuilder, context: EvaluationContext) -> Iterator[UrlReportLine]:
    """The URLs of static routes, of providers and of learned pages, each once.

    Raises:
        ValuesError: a provider fails.
    """
    return map(report_line, evaluated_urls(entries, context))


def candidates(entries: EntryBuilder, context: EvaluationContext) -> Iterator[Candidate]:
    """Everything that may be listed. Raises `ValuesError` if a provider fails."""
    yield from entries.route_candidates(context)
    for provider, routes in context.providers.values():
        report, provided = entries.provider_candidates(context, provider, routes)
        yield from provided
        if report.failure is not None:
            raise report.failure
    yield from stored_candidates(context.snapshot)


def evaluated_urls(entries: EntryBuilder, context: EvaluationContext) -> Iterator[EvaluatedUrl]:
    """The URLs of `url_report`, with all that is known of each. Raises `ValuesError` if a provider fails."""
    for candidate in candidates(entries, context):
        loc, verdict = entries.policy.evaluate(context, candidate)
        url = candidate.loc or context.snapshot.site.base_url + candidate.path
        if loc is None:
            yield EvaluatedUrl(url, candidate, verdict, None)
        else:
            yield EvaluatedUrl(url, candidate, verdict, *entries.build_entry(context, loc, candidate))


def report_line(item: EvaluatedUrl) -> UrlReportLine:
    """The line of a URL."""
    lastmod = item.entry.lastmod if item.entry else None
    route = item.candidate.route.path
    return UrlReportLine(item.url, item.entry is not None, item.verdict.reason, lastmod, item.lastmod_from, route)
