"""Builds the entries of a sitemap: of static routes, of each provider, of learned pages."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import date
from functools import partial
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Final

from ..evidence.dates import w3c
from ..evidence.lastmod import ChangefreqResult, LastmodResult, changefreq, futurity, lastmod
from ..exceptions import ValuesError
from ..http.messages import AsyncCollector
from ..http.site_urls import loc_of
from ..models import Page, Provider, Route, Site, SitemapUrl
from ..options.entry import EMPTY_ENTRY
from ..options.table import Options
from ..protocol.value_checks import validate_date
from ..routing.language_versions import version_of
from ..routing.route_table import RouteTable
from ..util import BoundedCache, WarnOnce, in_pieces
from .candidates import (
    PIECE_PAGES,
    Candidate,
    SiteSnapshot,
    decode_path,
    learned_candidates,
    stored_candidates,
    with_pages,
)
from .extended_entries import NO_SOURCES, extended, shown_extensions
from .policy import EvaluationContext, ListingPolicy
from .provider_items import ProviderReport, describe_error
from .provider_reader import MAX_ENUMERATIONS, Providers
from .site_signals_cache import MAX_CACHED_SITES, CachedSiteSignals, Parts, latest_signals

HOME, HUB, ARTICLE, OTHER, HOUSEKEEPING = 1.0, 0.8, 0.6, 0.5, 0.3
"""Derived priorities: home page, pages with others below them, with parameters, other pages, legal and account pages.
"""

_HOUSEKEEPING_PATH: Final = re.compile(
    r"(?:^|[/_-])(?:agb|accessibility|account|cgu|conditions|cookies?|copyright|datenschutz|disclaimer|forgot|gdpr|"
    r"impressum|imprint|legal|licen[cs]es?|login|logout|password|privacy|register|security|sign-?(?:in|out|up)|"
    r"terms|tos)(?:[/_.-]|$)"
)

_DATE_FIX: Final = 'write it as "2024-05-01" or "2024-05-01T10:00:00Z"'


class EntryBuilder:
    """Builds the entries of listed pages, and counts what was left out."""

    def __init__(self, options: Options, policy: ListingPolicy, providers: Providers) -> None:
        self.policy = policy
        self._options = options
        self._reads_pages = options.images > 0 or options.alternates
        self._providers = providers
        self._site_signals = BoundedCache[str, CachedSiteSignals](MAX_CACHED_SITES)
        self._skipped = BoundedCache[tuple[str, str], int](MAX_ENUMERATIONS)
        """By base URL and provider: items left out of the latest enumeration."""
        self._warn_once = WarnOnce()

    def evaluation_context(self, snapshot: SiteSnapshot, parts: Parts, version: int) -> EvaluationContext:
        """Add to a snapshot what the evaluation of its candidates depends on. For arguments see `latest_signals`."""
        signals = latest_signals(self._site_signals, snapshot, parts, version)
        hubs = _hub_paths(snapshot.table.routes) if self._options.priority == "auto" else frozenset[str]()
        providers = self._listed_providers(snapshot)
        return EvaluationContext(snapshot, signals, hubs, self._settings_digest(snapshot), providers)

    # Candidates

    def route_candidates(self, context: EvaluationContext) -> list[Candidate]:
        """The static routes, except those that a provider enumerates, in the order of their paths."""
        enumerated = {provider for provider, _ in context.providers.values()}
        routes = context.snapshot.table.static(context.snapshot.site)
        return with_pages(context.snapshot, (route for route in routes if route.settings.values not in enumerated))

    def _listed_providers(self, snapshot: SiteSnapshot) -> dict[str, tuple[Provider, list[Route]]]:
        """The providers of a site and their routes that are not excluded, by the name of the provider's section."""
        sections = {
            name: (provider, [route for route in routes if self.policy.exclusion(route, route.path) is None])
            for name, (provider, routes) in snapshot.table.providers(snapshot.site).items()
        }
        return {name: (provider, routes) for name, (provider, routes) in sections.items() if routes}

    def provider_candidates(
        self, context: EvaluationContext, provider: Provider, routes: Sequence[Route], report: ProviderReport
    ) -> Iterator[Candidate]:
        """The pages that a provider enumerates of its routes, each once; the report is filled meanwhile.

        A view may also have static routes, by default parameters. They follow at the end, unless the provider gives
        them. Of two providers of Django's `Sitemap` classes, the first has the pages that both give.

        Raises `ValuesError` if the provider fails.
        """
        snapshot, providers = context.snapshot, self._providers
        site, table = snapshot.site, snapshot.table
        before = takewhile(lambda other: other[0] is not provider, table.providers(site).values())
        earlier = [other for other in before if other[0].any_route and provider.any_route]
        for other, its_routes in earlier:
            providers.complete(site, other, its_routes, snapshot.async_collector)
        static = {route.path: route for route in table.static(site) if route.settings.values is provider}
        for pages in providers.pages(site, provider, routes, snapshot.async_collector, report):
            observed = snapshot.find_pages([page.path for page in pages])
            for path, route, entry, loc in pages:
                decoded = decode_path(path)
                if any(providers.gave(site, other, path) for other, _ in earlier):
                    continue
                if loc is not None:
                    if (owner := table.find_route(site, decoded)) is None:
                        yield Candidate(path, route, None, entry=entry, loc=loc)
                    else:
                        report.skip(loc, f"it is a page of the app's own route {owner.path}, which is listed as such")
                elif decoded in static or not table.is_static(site, decoded):  # else it is a page of another view
                    yield Candidate(path, static.pop(decoded, route), observed.get(path), entry=entry)
        yield from with_pages(snapshot, static.values())

    def candidates(self, context: EvaluationContext, reports: dict[Provider, ProviderReport]) -> Iterator[Candidate]:
        """All candidates of a site; `reports` gets the report on each provider, of which one may fail."""
        yield from self.route_candidates(context)
        for provider, routes in context.providers.values():
            reports[provider] = ProviderReport()
            with suppress(ValuesError):  # the report has it
                yield from self.provider_candidates(context, provider, routes, reports[provider])
        yield from stored_candidates(context.snapshot)

    def complete_routes(self, site: Site, table: RouteTable, async_collector: AsyncCollector | None = None) -> None:
        """Read the providers that this process has not read and whose routes match no path before they are read."""
        for provider, routes in table.providers(site).values():
            self._providers.complete(site, provider, routes, async_collector)

    def paths_to_request(self, context: EvaluationContext, *, observed: bool) -> list[str]:
        """The decoded paths of static routes of which, or of whose HTML, nothing is known, or whose last answer waits
        for confirmation; and those `observed`.
        """
        snapshot = context.snapshot  # a view with a provider may have a static route, too
        return [
            decode_path(candidate.path)
            for candidate in with_pages(snapshot, snapshot.table.static(snapshot.site))
            if (candidate.page is not None and (observed or candidate.page.unconfirmed_at))
            or self.policy.evaluate(context, candidate)[1].unverified
        ]

    def provided_examples(self, context: EvaluationContext) -> Iterator[str]:
        """The decoded path of the first page of each provider."""
        for provider, routes in context.providers.values():
            with suppress(ValuesError):  # who lists its pages gets the error
                yield from (
                    decode_path(candidate.path)
                    for candidate in islice(self.provider_candidates(context, provider, routes, ProviderReport()), 1)
                    if candidate.loc is None
                )

    # Entries

    def route_entries(self, context: EvaluationContext, section: str | None) -> Iterator[SitemapUrl]:
        """The entries of the static routes of a section, or of none, in the order of their paths."""
        section_of = context.snapshot.table.section_of
        candidates = [found for found in self.route_candidates(context) if section_of(found.route) == section]
        return (entry for _, entry in self._listed(context, candidates))

    def provider_entries(
        self,
        context: EvaluationContext,
        provider: Provider,
        routes: Sequence[Route],
        unlisted: Callable[[list[Page]], object],
    ) -> Generator[SitemapUrl]:
        """The entries of the pages that a provider enumerates. `unlisted` is given the pages that answered otherwise.

        Raises `ValuesError` if the provider fails.
        """
        report, others = ProviderReport(), list[Page]()
        for candidate in self.provider_candidates(context, provider, routes, report):
            loc, _ = self.policy.evaluate(context, candidate)
            if loc is not None:
                yield self.build_entry(context, loc, candidate)[0]
            elif candidate.page is not None:
                others.append(candidate.page)
        unlisted(others)
        if report.skipped:
            place, messages = provider.place, "; ".join(report.messages())
            self._warn_once(f"values of {place}", "of the values of %s, %s", place, messages)
        self._skipped.put((context.snapshot.site.base_url, provider.place), report.skipped)

    def still_listed(self, context: EvaluationContext, route: Route, locs: Collection[str]) -> set[str]:
        """Those of the locs that a provider gave that may be listed now, if it gives them still.

        `route` is its own: before it is read, it may match no path.
        """
        snapshot, listed = context.snapshot, set[str]()
        site, table = snapshot.site, snapshot.table
        paths = {loc: loc.removeprefix(site.base_url) for loc in locs}
        pages = snapshot.find_pages([*paths.values()])
        for loc, path in in_pieces(paths.items(), PIECE_PAGES):
            decoded = decode_path(path)
            found = table.find_route(site, decoded) or table.matching_route(site, decoded) or route
            candidate = Candidate(path, found, pages.get(path), EMPTY_ENTRY, loc)
            if self.policy.evaluate(context, candidate)[1].listed:
                listed.add(loc)
        return listed

    def learned_entries(
        self, context: EvaluationContext, pages: Collection[Page]
    ) -> dict[str | None, list[SitemapUrl]]:
        """The entries of the learned pages of a part, as of now, by their section."""
        sections: dict[str | None, list[SitemapUrl]] = {}
        listed = self._listed(context, learned_candidates(context.snapshot, pages))
        for candidate, entry in in_pieces(listed, PIECE_PAGES):
            sections.setdefault(context.snapshot.table.section_of(candidate.route), []).append(entry)
        return sections

    def build_entry(
        self, context: EvaluationContext, loc: str, candidate: Candidate
    ) -> tuple[SitemapUrl, LastmodResult, ChangefreqResult | None, Mapping[str, str]]:
        """The entry of a listed candidate, and the sources of what it says.

        They are that of its lastmod, that of its changefreq if it is inferred, and those of its extensions by name.
        """
        route, options, given = candidate.route, self._options, candidate.entry or EMPTY_ENTRY
        signals = context.site_signals.signals
        modified, failure = self._developer_lastmod(route) if given.lastmod is None else (given.lastmod, "")
        lastmod_result = lastmod(modified, candidate.page, route.last_modified, signals, context.snapshot.now)
        if lastmod_result.text is None and given.unusable_lastmod is not None:
            failure = f"its values give {reprlib.repr(given.unusable_lastmod)}, which is not a date; {_DATE_FIX}"
            self._warn_once(f"dates of {route.endpoint}", "%s has no lastmod: %s", loc, failure)
        elif candidate.loc is not None and modified is None:
            lastmod_result = LastmodResult(None, "its section gives no date, and pages of sections are not observed")
        lastmod_result = lastmod_result._replace(failure=failure)
        wanted = route.settings.priority if given.priority is None else given.priority
        priority = options.priority if wanted is None else wanted
        if priority == "auto":
            priority = _derived_priority(decode_path(candidate.path), route, context.hubs)
        word, changefreq_result = given.changefreq or route.settings.changefreq or options.changefreq, None
        if word == "auto":
            changefreq_result = changefreq(candidate.page, signals)
            word = changefreq_result.word
        version = given.version or route.settings.version
        if version is not None and version.default:
            version = version._replace(default=loc_of(context.snapshot.site, version.default) or "")
        elif version is None and (language := route.settings.language_parameter or options.language_parameter):
            version = version_of(route, candidate.path, language)
            if version is not None and candidate.page is not None and candidate.entry is None and not route.static:
                version = version._replace(rank=version.rank + candidate.page.first_seen)  # strangers come later
        url, sources = SitemapUrl(loc, lastmod_result.text, word, priority, version=version), NO_SOURCES
        shown = None
        if self._reads_pages and candidate.page is not None and candidate.page.shown:
            shown = shown_extensions(context, candidate.page, options, self.policy, partial(self._listed_page, context))
        if given.extensions is not None or route.settings.extensions is not None or shown is not None:
            by = {"values": given.extensions, "@sitemap": route.settings.extensions, "the page": shown}
            url, sources = extended(url, context.snapshot, by, route, self._warn_once)
        if version is not None:
            if sources.get("alternates") in (None, "the page"):
                url = url._replace(alternates=())
                sources = {**sources, "alternates": "its language; linked with the listed pages of other languages"}
            else:
                url = url._replace(version=None)
        return url, lastmod_result, changefreq_result, sources

    def _listed_page(self, context: EvaluationContext, path: str) -> Page | None:
        """What was observed of the page of a percent-encoded path, if it is listed by all that is known of it alone."""
        snapshot = context.snapshot
        page = snapshot.find_pages([path]).get(path)
        route = snapshot.table.find_route(snapshot.site, decode_path(path))
        if page is None or route is None:
            return None
        provider = route.settings.values
        if provider is not None and self._providers.gave(snapshot.site, provider, path) is False:
            return None
        entry = EMPTY_ENTRY if route.builder is not None and not route.static else None
        loc, _ = self.policy.evaluate(context, Candidate(path, route, page, entry))
        return page if loc is not None else None

    def _listed(
        self, context: EvaluationContext, candidates: Iterable[Candidate]
    ) -> Iterator[tuple[Candidate, SitemapUrl]]:
        """Those candidates that are listed, with their entries."""
        for candidate in candidates:
            loc, _ = self.policy.evaluate(context, candidate)
            if loc is not None:
                yield candidate, self.build_entry(context, loc, candidate)[0]

    def _developer_lastmod(self, route: Route) -> tuple[date | None, str]:
        """The lastmod of a route's `@sitemap`, or why it has none: its function failed, which is logged once."""
        given = route.settings.lastmod
        if given is None or isinstance(given, date):
            return given, ""
        try:
            returned = Context().run(given)  # empty: the date is for everyone, whoever asks for the sitemap
            if returned is None:
                return None, ""
            modified = validate_date(
                returned, "return a datetime.date or a datetime.datetime", "what it returned: lastmod"
            )
            w3c(modified)
        except Exception as error:
            failure = f"its lastmod function failed: {describe_error(error)}"
            self._warn_once(
                f"lastmod of {route.endpoint}",
                "of %s (%s), %s; so it dates no page",
                route.endpoint,
                route.path,
                failure,
            )
            return None, failure
        return modified, ""

    def _settings_digest(self, snapshot: SiteSnapshot) -> str:
        """A digest of all that decides on pages besides their own history and the site signals."""
        options = self._options
        learned = [route for route in snapshot.table.routes if not route.static and route.builder is None]
        dates = [date for route in learned if (date := self._developer_lastmod(route)[0]) is not None]
        inputs = (
            snapshot.site.base_url,
            options.about_entries,
            options.section_by_endpoint,
            # A date in the future is left out, and one of a clock that is a little ahead is replaced by the present.
            [(given, futurity(given, snapshot.now)) for given in dates],
            snapshot.table.digest,
            snapshot.rules.text,
        )
        return blake2b(repr(inputs).encode(), digest_size=8).hexdigest()

    def skipped_items(self) -> int:
        """The number of items that make no page, in the latest enumerations of all providers."""
        return sum(self._skipped.values())


def _hub_paths(routes: Iterable[Route]) -> frozenset[str]:
    """The paths of all folders that the paths of these routes are in, without the root."""
    hubs: set[str] = set()
    for parent in {route.path.rstrip("/").rpartition("/")[0] for route in routes}:
        while parent and parent not in hubs:
            hubs.add(parent)
            parent = parent.rpartition("/")[0]
    return frozenset(hubs)


def _derived_priority(path: str, route: Route, hubs: frozenset[str]) -> float:
    """The priority of the page of a decoded path. `hubs`: paths with other pages below them."""
    if path == "/":
        return HOME
    if _HOUSEKEEPING_PATH.search(path.lower()):
        return HOUSEKEEPING
    if path.rstrip("/") in hubs:
        return HUB
    return OTHER if route.static else ARTICLE
