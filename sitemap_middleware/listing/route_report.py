"""Reports, for people and for CI, on what becomes of every route of the app, and of every pattern of an option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from ..evidence.page_verdict import Verdict
from ..http.urls import UNREACHABLE_REASON, quote_path
from ..models import Provider, Route, Site
from ..options.patterns import Pattern
from ..options.table import Options
from ..routing.route_table import LEARNED_FROM_TRAFFIC, NAMED_BY_OPTION, RouteTable
from .candidates import Candidate, SiteSnapshot, decode_path, is_linked, link_digests
from .entries import EntryBuilder
from .policy import UNDECIDED_REASON, EvaluationContext, ListingPolicy, decided_reason
from .provider_items import ProviderReport

_STATIC_FOLDERS: Final = ("/static/", "/assets/", "/media/")
"""Usual folders of static files. Their mounts often cannot be read, so no pattern for them counts as misspelt."""


@dataclass(slots=True)
class RouteReport:
    """What becomes of one route, or of one pattern of an option."""

    site: Site | None
    """None if the route answers on none of the sites that were looked at."""
    route: Route
    verdict: Verdict
    known: int = 0
    """Pages of it that were observed."""
    provided: int = 0
    """Pages of it that its provider gave."""
    lastmod: Counter[str] = field(default_factory=Counter)
    """By source of the lastmod: listed pages that have it. The empty name counts those without a lastmod."""
    undecided: bool = False
    """Whether it has parameters, and neither its settings nor the options say what becomes of its pages."""
    unmatched: bool = False
    """Whether it is a pattern of an option that matches nothing."""
    failing: bool = False
    """Whether its `values` or its `lastmod` function fail, or items are wrong, as the verdict says."""
    lastmod_failure: str = ""
    unlinked: bool = False
    """Whether it is listed, and no page links to it."""

    @property
    def listed(self) -> int:
        """Pages of it that are listed."""
        return self.lastmod.total()

    @property
    def is_pattern(self) -> bool:
        """Whether it is about a pattern of an option, and no route of the app."""
        return self.route.endpoint in (LEARNED_FROM_TRAFFIC, NAMED_BY_OPTION)


_Reports = dict[tuple[bool, str], RouteReport]


def route_report(entries: EntryBuilder, options: Options, context: EvaluationContext) -> list[RouteReport]:
    """Report on each route that answers on this site, in the app's order, and then on each pattern of the options."""
    snapshot = context.snapshot
    is_main = snapshot.table.is_main(snapshot.site)
    routes = [route for route in snapshot.table.routes if route.answers_on(snapshot.site.routed)]
    routes += snapshot.table.static(snapshot.site)
    if is_main:  # the patterns by which pages are learned
        patterns = [pattern for pattern in (*options.include, *options.learn) if not pattern.literal]
        routes += [Route(pattern.text, LEARNED_FROM_TRAFFIC, static=False) for pattern in patterns]
    reports: _Reports = {}
    for route in routes:
        _report_of(reports, context, route)
    items, elsewhere = dict[Provider, ProviderReport](), dict[str, str]()
    for candidate in entries.candidates(context, items):
        route, given_by = candidate.route, candidate.route.settings.values
        if given_by is not None and given_by.any_route and candidate.entry is not None:
            route = snapshot.table.matching_route(snapshot.site, decode_path(candidate.path)) or route
            elsewhere[route.path] = given_by.place
        _count(_report_of(reports, context, route), entries, context, candidate)
    for provider, provided in context.providers.values():
        for route in provided:  # one that only stands for others has no page
            key = route.static, route.path
            read = items[provider]
            if provider.any_route and not (read.failure or read.skipped or key not in reports or reports[key].provided):
                del reports[key]
    digests = link_digests(snapshot)
    for report in reports.values():
        path = quote_path(report.route.path)
        if path and report.listed:
            report.unlinked = is_linked(snapshot.site, report.route, path, digests) is False
        _decide(report, entries.policy, options, items)
        if report.undecided and (place := elsewhere.get(report.route.path)):
            report.undecided = False
            report.verdict = Verdict(report.listed > 0, f"listed by {place}: {report.listed} of its pages")
    return _with_unmatched_patterns([*reports.values()], options, snapshot) if is_main else [*reports.values()]


def _report_of(reports: _Reports, context: EvaluationContext, route: Route) -> RouteReport:
    key = route.static, route.path
    if key not in reports:
        reports[key] = RouteReport(context.snapshot.site, route, Verdict(False, UNREACHABLE_REASON))
    return reports[key]


def _count(report: RouteReport, entries: EntryBuilder, context: EvaluationContext, candidate: Candidate) -> None:
    """Count a candidate as a page of a route."""
    report.known += candidate.page is not None
    report.provided += candidate.entry is not None
    loc, report.verdict = entries.policy.evaluate(context, candidate)
    if loc is not None:
        lastmod = entries.build_entry(context, loc, candidate)[1]
        report.lastmod[lastmod.source if lastmod.text else ""] += 1
        report.lastmod_failure = report.lastmod_failure or lastmod.failure


def _decide(
    report: RouteReport, policy: ListingPolicy, options: Options, items: Mapping[Provider, ProviderReport]
) -> None:
    """Say what becomes of a route whose pages were counted. A static route has the verdict on its page."""
    route = report.route
    if not route.static:
        read = items.get(route.settings.values) if route.settings.values else None
        if read is None:
            report.verdict, report.undecided = _parametrised_verdict(policy, options, report)
        elif read.failure:
            report.verdict, report.failing = Verdict(False, str(read.failure)), True
        else:
            plural = "" if report.provided == 1 else "s"
            counts = f"values: {report.provided} page{plural}, {report.listed} listed"
            reasons = (counts, *read.messages())[bool(read.skipped and not report.provided) :]
            report.verdict = Verdict(report.listed > 0, "; ".join(reasons))
            report.failing = read.skipped > 0
    if report.lastmod_failure:
        reason = f"{report.verdict.reason}; {report.lastmod_failure}"
        report.verdict, report.failing = report.verdict._replace(reason=reason), True


def _parametrised_verdict(policy: ListingPolicy, options: Options, report: RouteReport) -> tuple[Verdict, bool]:
    """What becomes of a route that has parameters and no provider, and whether nobody has decided that yet."""
    route = report.route
    if excluded := policy.exclusion(route, route.path):
        return excluded, False
    pattern = options.include.find(route.path, route.path) or options.learn.find(route.path, route.path)
    if route.settings.learn or (pattern and pattern.text == route.path):
        if not report.known:
            return Verdict(False, "its pages are learned, and none was visited yet"), False
        counts = f"its pages are learned: {report.listed} listed, of {report.known} known"
        return Verdict(report.listed > 0, counts), False
    if route.not_learned_reason:
        return Verdict(False, route.not_learned_reason), True
    if pattern:
        return Verdict(False, f"its pages are learned as those of {pattern.text}"), False
    decided = decided_reason(route)
    return Verdict(False, decided or UNDECIDED_REASON), decided is None


def _with_unmatched_patterns(reports: list[RouteReport], options: Options, snapshot: SiteSnapshot) -> list[RouteReport]:
    """The reports, with the reasons of patterns that match nothing, and a report for each such pattern without one."""
    reasons = dict(unmatched_patterns(options, snapshot.table))
    for report in reports:
        if not report.verdict.listed and (reason := reasons.pop(report.route.path, None)):
            report.verdict, report.unmatched = Verdict(False, reason), True
    for pattern, reason in reasons.items():
        route = Route(pattern, NAMED_BY_OPTION, static=False)
        reports.append(RouteReport(snapshot.site, route, Verdict(False, reason), unmatched=True))
    return reports


def unmatched_patterns(options: Options, table: RouteTable) -> Iterator[tuple[str, str]]:
    """The patterns of the options that match no route of the app, which are usually misspelt, each with a message.

    Those of `include` and `learn` may match paths of mounted apps whose routes cannot be read.
    """
    if not table.routes:
        return
    paths = [route.path for route in table.routes]
    templates = [Pattern(path) for path in paths]
    begins = {template.prefix.rstrip("/"): template.text for template in reversed(templates[:5000])}
    for option, patterns in (("exclude", options.exclude), ("include", options.include), ("learn", options.learn)):
        for pattern in patterns:
            if any(map(pattern.matches, paths)) or _may_match(pattern, templates):
                continue
            close = get_close_matches(pattern.prefix.rstrip("/"), [*begins], n=1, cutoff=0.75)
            nearest = begins[close[0]] if close else None
            fix = f"did you mean {nearest}?" if nearest else "correct it, or leave it out"
            if ",/" in (text := pattern.text.replace(" ", "")):
                fix = f"give several patterns as a list: {text.split(',')}"
            if nearest or (option == "exclude" and not pattern.text.startswith(_STATIC_FOLDERS)):
                yield pattern.text, f"the option {option} has {pattern.text}, which matches no route of the app; {fix}"


def _may_match(pattern: Pattern, templates: list[Pattern]) -> bool:
    """Whether a pattern may match a page of a route with parameters: it begins like the route's template."""
    if pattern.literal:
        return any(template.matches(pattern.text) for template in templates)
    return any(
        template.prefix.startswith(pattern.prefix) or pattern.prefix.startswith(template.prefix)
        for template in templates
        if not template.literal
    )
