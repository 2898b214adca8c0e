"""The survey: what becomes of every route of an app, for people and for CI."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ..config import Options
from ..evidence.verdict import Verdict
from ..models import Provider, Route, Site
from ..stores.base import UNLEARNED_BLOCK
from ..urls import UNREACHABLE_REASON
from .candidates import Candidate, learned_candidates
from .policy import EvaluationContext, ListingPolicy, shadowed_reason
from .providers import ProviderReport
from .unmatched_patterns import unmatched_patterns

_STATIC_FILES_RULE: Final = re.compile(r"(?:^|\.)static .*<path:filename>$")
"""The endpoint and path under which Flask and its blueprints serve their static folders."""


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What becomes of one route, or of one pattern that names pages."""

    site: Site | None
    """None where it answers on none of those looked at."""
    route: Route
    verdict: Verdict
    known: int = 0
    """Pages of it of which something was seen."""
    listed: int = 0
    lastmod: Mapping[str, int] = field(default_factory=dict)
    """Where the lastmod of the pages listed comes from, and of how many; under no name, how many have none."""
    undecided: bool = False
    """Whether it has parameters, and nobody has said what is to become of its pages."""


def route_report(catalog: ListingPolicy, options: Options, view: EvaluationContext) -> list[RouteReport]:
    """What becomes of each route that answers on this site, in the app's order, and then of each pattern."""
    state = view.state
    surveyed: dict[tuple[bool, str], _RouteTally] = {}
    for route in (
        *(route for route in state.table.routes if route.host == state.site.routed),
        *state.table.static(state.site),
        *(_pattern_routes(options) if state.site.routed is None else ()),
    ):
        surveyed.setdefault((route.static, route.path), _RouteTally(route))
    reports = {}
    for provider, routes in catalog.providers(state).values():
        reports[provider], given = catalog.provider_candidates(view, provider, routes)
        for candidate in given:
            _tally(surveyed, catalog, view, candidate)
    blocks = (block.number for block in state.store.blocks(state.site.store_key) if block.number != UNLEARNED_BLOCK)
    traffic = (
        page for number in blocks for page in learned_candidates(state, state.store.block(state.site.store_key, number))
    )
    for candidate in (*catalog.route_candidates(view), *traffic):
        _tally(surveyed, catalog, view, candidate)
    found = [_route_reports(catalog, options, view, tally, reports) for tally in surveyed.values()]
    if state.site.routed is not None:
        return found
    lost = {one.pattern: one.reason for one in unmatched_patterns(options, state.table)}
    found = [
        one
        if one.verdict.listed
        else replace(one, verdict=Verdict(False, lost.pop(one.route.path, one.verdict.reason)))
        for one in found
    ]
    routes = [Route(pattern, "named by an option", static=False) for pattern in lost]
    return found + [RouteReport(state.site, route, Verdict(False, lost[route.path])) for route in routes]


_UNREACHABLE_VERDICT: Final = Verdict(False, UNREACHABLE_REASON)


@dataclass(slots=True)
class _RouteTally:
    """What was counted of one route's pages."""

    route: Route
    known: int = 0
    given: int = 0
    verdict: Verdict = _UNREACHABLE_VERDICT
    lastmod: Counter[str] = field(default_factory=Counter)


def _tally(
    surveyed: dict[tuple[bool, str], _RouteTally], catalog: ListingPolicy, view: EvaluationContext, candidate: Candidate
) -> None:
    route = candidate.route
    tally = surveyed.setdefault((route.static, route.path), _RouteTally(route))
    tally.known += candidate.page is not None
    tally.given += candidate.entry is not None
    loc, tally.verdict = catalog.evaluate(view, candidate)
    if loc is not None:
        dated = catalog.build_entry(view, loc, candidate)[1]
        tally.lastmod[dated.source if dated.text else ""] += 1


def _route_reports(
    catalog: ListingPolicy,
    options: Options,
    view: EvaluationContext,
    tally: _RouteTally,
    reports: Mapping[Provider, ProviderReport],
) -> RouteReport:
    route, verdict, undecided = tally.route, tally.verdict, False
    if route.shadowed_by is not None:
        return RouteReport(view.state.site, route, Verdict(False, shadowed_reason(route)))
    listed = tally.lastmod.total()
    report = reports.get(route.settings.values) if route.settings.values else None
    if report is not None and not route.static:
        verdict = _provider_verdict(report, tally.given, listed)
    elif not route.static:
        verdict, undecided = _parametrised_verdict(catalog, options, route, tally.known, listed)
    return RouteReport(view.state.site, route, verdict, tally.known, listed, tally.lastmod, undecided)


def _pattern_routes(options: Options) -> list[Route]:
    """The patterns by which pages are learned, each as a route."""
    patterns = (*options.include, *options.learn)
    return [Route(one.text, "learned from traffic", static=False) for one in patterns if not one.literal]


def _parametrised_verdict(
    catalog: ListingPolicy, options: Options, route: Route, known: int, listed: int
) -> tuple[Verdict, bool]:
    """What becomes of a route with parameters, and whether that is so because nobody has said anything."""
    if refused := catalog.exclusion(route, route.path):
        return refused, False
    learning = options.include.find(route.path, route.path) or options.learn.find(route.path, route.path)
    if route.settings.learn or (learning and learning.text == route.path):
        if not known:
            return Verdict(False, "its pages are learned, and none was seen yet"), False
        return Verdict(listed > 0, f"its pages are learned: {listed} listed, of {known} known"), False
    if route.not_learned_reason:
        return Verdict(False, route.not_learned_reason), True
    if learning:
        return Verdict(False, f"its pages are learned as those of {learning.text}"), False
    if route.settings.learn is False:
        return Verdict(False, "it is marked @sitemap(learn=False)"), False
    if route.hidden and route.hidden.startswith("it declares"):
        return Verdict(False, route.hidden), False
    if _STATIC_FILES_RULE.search(f"{route.endpoint} {route.path}"):
        return Verdict(False, "it serves the app's static files"), False
    return Verdict(False, "it has parameters, and nothing enumerates its pages"), True


def _provider_verdict(report: ProviderReport, count: int, listed: int) -> Verdict:
    """What becomes of a route whose values enumerate its pages."""
    if report.failure:
        return Verdict(False, str(report.failure))
    return Verdict(listed > 0, "; ".join((f"values: {count} pages, {listed} listed", *report.messages())))
