"""Lists every known URL of a site, listed or not, with the reason: for the command `list`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .candidates import Candidate, stored_candidates
from .entries_by_section import EntryBuilder
from .policy import EvaluationContext


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
    return (_line(entries, context, candidate) for candidate in candidates(entries, context))


def candidates(entries: EntryBuilder, context: EvaluationContext) -> Iterator[Candidate]:
    """Everything that may be listed. Raises `ValuesError` if a provider fails."""
    yield from entries.route_candidates(context)
    for provider, routes in entries.providers(context.snapshot).values():
        report, provided = entries.provider_candidates(context, provider, routes)
        yield from provided
        if report.failure is not None:
            raise report.failure
    yield from stored_candidates(context.snapshot)


def _line(entries: EntryBuilder, context: EvaluationContext, candidate: Candidate) -> UrlReportLine:
    loc, verdict = entries.policy.evaluate(context, candidate)
    url = candidate.loc or context.snapshot.site.base_url + candidate.path
    if loc is None:
        return UrlReportLine(url, False, verdict.reason, None, None, candidate.route.path)
    entry, lastmod, _ = entries.build_entry(context, loc, candidate)
    source = lastmod.source if entry.lastmod else None
    return UrlReportLine(url, True, verdict.reason, entry.lastmod, source, candidate.route.path)
