"""Explains to people why a path is listed or not, and what its lastmod and changefreq are based on."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from ..evidence.page_verdict import Explanation, dropped_between, page_events
from ..exceptions import ValuesError
from ..http.site_urls import loc_of
from ..http.urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, quote_path
from ..models import Route
from ..options.patterns import Pattern
from .candidates import Candidate, SiteSnapshot, is_linked, stored_candidates, stored_links
from .entries import EntryBuilder
from .extended_entries import describe_extensions
from .policy import UNDECIDED_REASON, EvaluationContext, decided_reason
from .provider_items import ProviderReport


def explain(entries: EntryBuilder, context: EvaluationContext, media_types: Collection[str], path: str) -> Explanation:
    """Explain why a decoded path is listed or not."""
    explanation = _explain(entries, context, path)
    page, route = explanation.page, explanation.route
    if explanation.listed and route is not None and route.static:
        explanation = replace(explanation, unlinked=_is_unlinked(context.snapshot, route, quote_path(path) or path))
    if page is None:
        return explanation
    dropped = None if explanation.listed else dropped_between(page, media_types, context.snapshot.now)
    return replace(explanation, history=(*page_events(page, None if dropped is None else dropped[1]),))


def _is_unlinked(snapshot: SiteSnapshot, route: Route, path: str) -> bool:
    """Whether no page links to the path of a static route. Reads only as many pages as it takes to find one."""
    has_links = False
    for links in stored_links(snapshot):
        linked = is_linked(snapshot.site, route, path, links)
        if linked or linked is None:
            return False
        has_links = True
    return has_links


def _explain(entries: EntryBuilder, context: EvaluationContext, path: str) -> Explanation:
    snapshot = context.snapshot
    quoted = quote_path(path)
    if not path.startswith("/"):
        what = f"it is not below {snapshot.site.base_url}" if "://" in path else "it is no path"
        return Explanation(path, None, False, f'{what}: give a path from the first slash on, such as "/about"')
    if quoted is None:
        return Explanation(path, None, False, UNREACHABLE_REASON)
    loc = loc_of(snapshot.site, quoted)
    if loc is None:
        return Explanation(path, None, False, LOC_LENGTH_REASON)
    route = snapshot.table.find_route(snapshot.site, path)
    if route is None or route.builder is not None:
        report, candidate = _find_provided(entries, context, route, quoted, loc)
    else:
        report, candidate = None, _find_candidate(context, route, quoted)
    if report is not None and report.failure:
        return Explanation(path, loc, False, str(report.failure), route=route)
    skipped = report.messages() if report else ()
    if candidate is None:
        matching = route or snapshot.table.matching_route(snapshot.site, path)
        excluded = entries.policy.exclusion(matching, path) if matching is not None else None
        reason = (
            excluded.reason
            if excluded
            else _no_candidate_reason(entries, snapshot, path, route=route, matching=matching)
        )
        page = snapshot.find_pages([quoted]).get(quoted)
        return Explanation(path, loc, False, reason, route=matching, page=page, skipped=skipped)
    _, verdict = entries.policy.evaluate(context, candidate)
    explanation = Explanation(
        path, loc, verdict.listed, verdict.reason, route=candidate.route, page=candidate.page, skipped=skipped
    )
    if not verdict.listed:
        return explanation
    entry, lastmod, changefreq, sources = entries.build_entry(context, loc, candidate)
    changefreq_source = None if changefreq is None else changefreq.source
    return replace(
        explanation,
        entry=entry,
        lastmod_source=lastmod.note,
        changefreq_source=changefreq_source,
        extensions=describe_extensions(entry, sources),
    )


def _find_provided(
    entries: EntryBuilder, context: EvaluationContext, route: Route | None, quoted: str, loc: str
) -> tuple[ProviderReport | None, Candidate | None]:
    """Look up a percent-encoded path among the pages of its route's provider, or its loc in the named sections.

    No report means that the route is excluded, or that no section has the loc. A provider is read to its end, so that
    the report counts all items that were left out.
    """
    for provider, routes in context.providers.values():
        may_have_it = provider.section is not None if route is None else provider is route.settings.values
        if may_have_it:
            report, found = ProviderReport(), None
            with suppress(ValuesError):  # the report has it
                for candidate in entries.provider_candidates(context, provider, routes, report):
                    if (route is None and candidate.loc == loc) or (route is not None and candidate.path == quoted):
                        found = candidate
            if route is not None or found is not None:
                return report, found
    return None, None


def _find_candidate(context: EvaluationContext, route: Route, quoted: str) -> Candidate | None:
    """The candidate of a percent-encoded path that no provider gives: a static route, or a learned page."""
    snapshot = context.snapshot
    page = snapshot.find_pages([quoted]).get(quoted)
    if route.static:
        return Candidate(quoted, route, page)
    # Of equal pages, the other ones of its part decide which is listed.
    found = stored_candidates(snapshot, quoted) if page is not None else iter(())
    return next((candidate for candidate in found if candidate.path == quoted), None)


def _no_candidate_reason(
    entries: EntryBuilder, snapshot: SiteSnapshot, path: str, *, route: Route | None, matching: Route | None
) -> str:
    """Why no page is known of a decoded path, given the route whose pages are listed, and the one that answers."""
    if route is not None and route.builder is not None:
        return "its route has values, and they do not include it"
    if route is not None:
        never = "no visit, or a 404 or alike, or no request of the middleware since"
        return f"its route {route.path} is learned, but nothing has shown that this is a page: there was {never}"
    if matching is None and snapshot.table.has_explicit_route(path):
        return f"the app has a route of this path for other hosts, and none that answers on {snapshot.site.host}"
    variant = path[:-1] if path.endswith("/") else f"{path}/"
    other = None if matching is not None else snapshot.table.find_route(snapshot.site, variant)
    if other is not None and entries.policy.exclusion(other, variant) is None:
        # Whether it answers with a page is not known here.
        return f"the app has no route of this path, but it has one of {variant}: its trailing slash differs"
    if matching is None:
        return "the app has no static route of this path, and no pattern of learn or include matches it"
    places = [provider.place for provider, _ in snapshot.table.providers(snapshot.site).values() if provider.any_route]
    if places and not decided_reason(matching):
        return f"it is in none of {', '.join(places)}"
    if matching.not_learned_reason is None:
        undecided = UNDECIDED_REASON if Pattern(matching.path).writes(path) else "it writes this path otherwise"
        reason = decided_reason(matching) or undecided
        return f"its route {matching.path} {reason.removeprefix('it ')}"
    return f"its route {matching.path} is not learned: {matching.not_learned_reason}"
