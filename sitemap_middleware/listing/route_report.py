"""Reports, for people and for CI, what becomes of every route of an app: how many of its pages are listed, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ..evidence.page_verdict import Verdict
from ..http.urls import UNREACHABLE_REASON
from ..models import Provider, Route, Site
from ..options.patterns import Pattern
from ..options.table import Options
from .candidates import Candidate, SiteSnapshot, decode_path, stored_candidates
from .entries import EntryBuilder
from .policy import UNDECIDED_REASON, EvaluationContext, ListingPolicy, decided_reason, shadowed_reason
from .provider_items import ProviderReport
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


@dataclass(slots=True)
class _RouteTally:
    """Counts of one route's pages."""

    route: Route
    known: int = 0
    provided: int = 0
    verdict: Verdict = Verdict(False, UNREACHABLE_REASON)  # noqa: RUF009 (a tuple does not change)
    lastmod: Counter[str] = field(default_factory=Counter)


_Tallies = dict[tuple[bool, str], _RouteTally]


def route_report(entries: EntryBuilder, options: Options, context: EvaluationContext) -> list[RouteReport]:
    """Report on each route that answers on this site, in the app's order, and then on each pattern of the options."""
    snapshot = context.snapshot
    is_main = snapshot.table.is_main(snapshot.site)
    routes = [route for route in snapshot.table.routes if route.answers_on(snapshot.site.routed)]
    routes += snapshot.table.static(snapshot.site)
    if is_main:  # the patterns by which pages are learned
        patterns = [pattern for pattern in (*options.include, *options.learn) if not pattern.literal]
        routes += [Route(pattern.text, "learned from traffic", static=False) for pattern in patterns]
    tallies: _Tallies = {}
    for route in routes:
        tallies.setdefault((route.static, route.path), _RouteTally(route))
    provider_reports, elsewhere = {}, dict[str, str]()
    for provider, provided in context.providers.values():
        provider_reports[provider], candidates = entries.provider_candidates(context, provider, provided)
        if provider.examples is None:
            _count(tallies, entries, context, candidates)
            continue
        read = list(candidates)  # it is read to its end, and then its examples are those of all its routes
        found = _routes_of_examples(snapshot, provider, provided)
        elsewhere |= dict.fromkeys((route.path for route in found), provider.place)
        _count(tallies, entries, context, read, found)
        for key in [(route.static, route.path) for route in provided if provider_reports[provider].failure is None]:
            if key in tallies and not tallies[key].provided:  # it only stands for others
                del tallies[key]
    _count(tallies, entries, context, entries.route_candidates(context))
    _count(tallies, entries, context, stored_candidates(snapshot))
    reports = []
    for tally in tallies.values():
        report = _report(entries.policy, options, context, tally, provider_reports)
        if report.undecided and (place := elsewhere.get(report.route.path)):
            verdict = Verdict(report.listed > 0, f"{report.listed} of its pages are listed, by {place}")
            report = replace(report, verdict=verdict, undecided=False)
        reports.append(report)
    return _with_unmatched_patterns(reports, options, snapshot) if is_main else reports


def _routes_of_examples(snapshot: SiteSnapshot, provider: Provider, routes: Sequence[Route]) -> list[Route]:
    """The routes whose pages a provider of other routes enumerates."""
    examples = provider.examples() if provider.examples else ()
    paths = (route.builder.build(item) for item in examples for route in routes if route.builder)
    found = (snapshot.table.matching_route(snapshot.site, path) for path in paths)
    return list({route.path: route for route in found if route is not None}.values())


def _count(
    tallies: _Tallies,
    entries: EntryBuilder,
    context: EvaluationContext,
    candidates: Iterable[Candidate],
    instead: Sequence[Route] = (),
) -> None:
    """Count candidates, those that match one of some routes as pages of that route instead of their own."""
    patterns = [(Pattern(route.path), route) for route in instead]
    for candidate in candidates:
        path = decode_path(candidate.path) if patterns else ""
        route = next((route for pattern, route in patterns if pattern.matches(path)), candidate.route)
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
    route, verdict, listed = tally.route, tally.verdict, tally.lastmod.total()
    undecided = failing = False
    if route.shadowed_by is not None:
        return RouteReport(context.snapshot.site, route, Verdict(False, shadowed_reason(route)))
    if not route.static:
        report = provider_reports.get(route.settings.values) if route.settings.values else None
        if report is None:
            verdict, undecided = _parametrised_verdict(policy, options, route, tally.known, listed)
        elif report.failure:
            verdict, failing = Verdict(False, str(report.failure)), True
        else:
            counts = f"values: {tally.provided} page{'' if tally.provided == 1 else 's'}, {listed} listed"
            verdict = Verdict(listed > 0, "; ".join((counts, *report.messages())))
    site = context.snapshot.site
    return RouteReport(site, route, verdict, tally.known, listed, tally.lastmod, undecided, failing=failing)


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
    for pattern, reason in reasons.items():
        route = Route(pattern, "named by an option", static=False)
        marked.append(RouteReport(snapshot.site, route, Verdict(False, reason), unmatched=True))
    return marked
