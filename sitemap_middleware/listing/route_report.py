"""Reports, for people and for CI, what becomes of every route of an app: how many of its pages are listed, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ..evidence.page_verdict import Verdict
from ..models import Provider, Route, Site
from ..options.table import Options
from ..urls import UNREACHABLE_REASON
from .candidates import Candidate, SiteSnapshot, stored_candidates
from .entries import EntryBuilder
from .policy import UNDECIDED_REASON, EvaluationContext, ListingPolicy, decided_reason, shadowed_reason
from .provider_item_paths import ProviderReport
from .unmatched_patterns import unmatched_patterns

_PATTERN_ENDPOINTS: Final = frozenset({"learned from traffic", "named by an option"})
"""What stands in place of an endpoint for a pattern of an option."""


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What becomes of one route, or of one pattern of an option."""

    site: Site | None
    """None if the route answers on none of the sites that were looked at."""
    route: Route
    verdict: Verdict
    known: int = 0
    """Pages of it that were observed."""
    listed: int = 0
    lastmod: Mapping[str, int] = field(default_factory=dict)
    """By source of the lastmod: listed pages that have it. The empty name counts those without a lastmod."""
    undecided: bool = False
    """Whether it has parameters, and neither its settings nor the options say what becomes of its pages."""
    unmatched: bool = False
    """Whether it is a pattern of an option that matches nothing."""
    failing: bool = False
    """Whether its `values` fail, as the verdict says."""

    @property
    def is_pattern(self) -> bool:
        """Whether it is about a pattern of an option, and no route of the app."""
        return self.route.endpoint in _PATTERN_ENDPOINTS


_UNREACHABLE: Final = Verdict(False, UNREACHABLE_REASON)


@dataclass(slots=True)
class _RouteTally:
    """Counts of one route's pages."""

    route: Route
    known: int = 0
    provided: int = 0
    verdict: Verdict = _UNREACHABLE
    lastmod: Counter[str] = field(default_factory=Counter)


def route_report(entries: EntryBuilder, options: Options, context: EvaluationContext) -> list[RouteReport]:
    """Report on each route that answers on this site, in the app's order, and then on each pattern of the options."""
    snapshot = context.snapshot
    routes = [
        *(route for route in snapshot.table.routes if route.answers_on(snapshot.site.routed)),
        *snapshot.table.static(snapshot.site),
        *(_pattern_routes(options) if snapshot.table.is_main(snapshot.site) else ()),
    ]
    tallies: dict[tuple[bool, str], _RouteTally] = {}
    for route in routes:
        tallies.setdefault((route.static, route.path), _RouteTally(route))
    provider_reports, elsewhere = {}, dict[str, str]()
    for provider, routes in context.providers.values():
        provider_reports[provider], candidates = entries.provider_candidates(context, provider, routes)
        for candidate in candidates:
            _count(tallies, entries, context, candidate)
        elsewhere |= _routes_of_examples(snapshot, provider, routes)
    for candidate in (*entries.route_candidates(context), *stored_candidates(snapshot)):
        _count(tallies, entries, context, candidate)
    reports = [
        _with_pages_elsewhere(_report(entries.policy, options, context, tally, provider_reports), elsewhere)
        for tally in tallies.values()
    ]
    return (
        reports if not snapshot.table.is_main(snapshot.site) else _with_unmatched_patterns(reports, options, snapshot)
    )


def _routes_of_examples(snapshot: SiteSnapshot, provider: Provider, routes: Sequence[Route]) -> dict[str, str]:
    """The routes whose pages a provider of other routes enumerates, by path; and where that provider was declared."""
    examples = provider.examples() if provider.examples else ()
    paths = (route.builder.build(item) for item in examples for route in routes if route.builder)
    found = (snapshot.table.matching_route(snapshot.site, path) for path in paths)
    return {route.path: provider.place for route in found if route is not None}


def _with_pages_elsewhere(report: RouteReport, elsewhere: Mapping[str, str]) -> RouteReport:
    """The report, which counts as decided if another route's provider enumerates its pages."""
    place = elsewhere.get(report.route.path)
    if place is None or not report.undecided:
        return report
    return replace(report, verdict=Verdict(False, f"its pages are listed by {place}"), undecided=False)


def _pattern_routes(options: Options) -> list[Route]:
    """The patterns by which pages are learned, each as a route."""
    patterns = (*options.include, *options.learn)
    return [Route(pattern.text, "learned from traffic", static=False) for pattern in patterns if not pattern.literal]


def _count(
    tallies: dict[tuple[bool, str], _RouteTally],
    entries: EntryBuilder,
    context: EvaluationContext,
    candidate: Candidate,
) -> None:
    route = candidate.route
    tally = tallies.setdefault((route.static, route.path), _RouteTally(route))
    tally.known += candidate.page is not None
    tally.provided += candidate.entry is not None
    loc, tally.verdict = entries.policy.evaluate(context, candidate)
    if loc is not None:
        lastmod = entries.build_entry(context, loc, candidate)[1]
        tally.lastmod[lastmod.source if lastmod.text else ""] += 1


def _report(
    policy: ListingPolicy,
    options: Options,
    context: EvaluationContext,
    tally: _RouteTally,
    provider_reports: Mapping[Provider, ProviderReport],
) -> RouteReport:
    route, verdict, undecided, site = tally.route, tally.verdict, False, context.snapshot.site
    if route.shadowed_by is not None:
        return RouteReport(site, route, Verdict(False, shadowed_reason(route)))
    listed = tally.lastmod.total()
    provider_report = provider_reports.get(route.settings.values) if route.settings.values else None
    if provider_report is not None and not route.static:
        verdict = _provider_verdict(provider_report, tally.provided, listed)
    elif not route.static:
        verdict, undecided = _parametrised_verdict(policy, options, route, tally.known, listed)
    failing = not route.static and provider_report is not None and provider_report.failure is not None
    return RouteReport(site, route, verdict, tally.known, listed, tally.lastmod, undecided, failing=failing)


def _provider_verdict(report: ProviderReport, count: int, listed: int) -> Verdict:
    """What becomes of a route whose provider enumerates its pages."""
    if report.failure:
        return Verdict(False, str(report.failure))
    return Verdict(listed > 0, "; ".join((f"values: {count} pages, {listed} listed", *report.messages())))


def _parametrised_verdict(
    policy: ListingPolicy, options: Options, route: Route, known: int, listed: int
) -> tuple[Verdict, bool]:
    """What becomes of a route that has parameters and no provider, and whether nobody has decided that yet."""
    if excluded := policy.exclusion(route, route.path):
        return excluded, False
    pattern = options.include.find(route.path, route.path) or options.learn.find(route.path, route.path)
    if route.settings.learn or (pattern and pattern.text == route.path):
        if not known:
            return Verdict(False, "its pages are learned, and none was visited yet"), False
        return Verdict(listed > 0, f"its pages are learned: {listed} listed, of {known} known"), False
    if route.not_learned_reason:
        return Verdict(False, route.not_learned_reason), True
    if pattern:
        return Verdict(False, f"its pages are learned as those of {pattern.text}"), False
    decided = decided_reason(route)
    return Verdict(False, decided or UNDECIDED_REASON), decided is None


def _with_unmatched_patterns(reports: list[RouteReport], options: Options, snapshot: SiteSnapshot) -> list[RouteReport]:
    """The reports, with the reasons of patterns that match nothing, and a report for each such pattern without one."""
    reasons = {unmatched.pattern: unmatched.reason for unmatched in unmatched_patterns(options, snapshot.table)}
    marked = []
    for report in reports:
        reason = None if report.verdict.listed else reasons.pop(report.route.path, None)
        marked.append(replace(report, verdict=Verdict(False, reason), unmatched=True) if reason else report)
    routes = [Route(pattern, "named by an option", static=False) for pattern in reasons]
    return marked + [
        RouteReport(snapshot.site, route, Verdict(False, reasons[route.path]), unmatched=True) for route in routes
    ]
