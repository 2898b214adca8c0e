"""Reports on a site, for people and for CI: what becomes of every route of the app, and of every URL that is known."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_from_timestamp
from ..evidence.page_verdict import Verdict, dropped_between
from ..evidence.value_history import MAX_RUNS
from ..http.urls import UNREACHABLE_REASON, quote_path
from ..models import Page, Provider, Route, Site
from ..options.patterns import Pattern
from ..options.table import Options
from ..routing.route_table import RouteTable
from .candidates import Candidate, SiteSnapshot, decode_path, is_linked, link_digests
from .entries import EntryBuilder
from .extended_entries import NO_SOURCES, describe_extensions
from .policy import UNDECIDED_REASON, EvaluationContext, ListingPolicy, decided_reason
from .provider_items import ProviderReport

_PATTERN_ENDPOINTS: Final = frozenset({"learned from traffic", "named by an option"})
"""What stands in place of an endpoint for a pattern of an option."""

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
        return self.route.endpoint in _PATTERN_ENDPOINTS


_Reports = dict[tuple[bool, str], RouteReport]


def route_report(entries: EntryBuilder, options: Options, context: EvaluationContext) -> list[RouteReport]:
    """Report on each route that answers on this site, in the app's order, and then on each pattern of the options."""
    snapshot = context.snapshot
    is_main = snapshot.table.is_main(snapshot.site)
    routes = [route for route in snapshot.table.routes if route.answers_on(snapshot.site.routed)]
    routes += snapshot.table.static(snapshot.site)
    if is_main:  # the patterns by which pages are learned
        patterns = [pattern for pattern in (*options.include, *options.learn) if not pattern.literal]
        routes += [Route(pattern.text, "learned from traffic", static=False) for pattern in patterns]
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
        route = Route(pattern, "named by an option", static=False)
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


# URLs


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
    entries: EntryBuilder, context: EvaluationContext, media_types: Collection[str], failures: list[str] | None = None
) -> Iterator[EvaluatedUrl]:
    """The URLs of static routes, of providers and of learned pages.

    Why a provider fails, or which items are wrong, is added to `failures`. Without that, `ValuesError` is raised.
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
