"""Builds the entries of a sitemap, section by section: static routes, each provider, learned pages."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import date
from hashlib import blake2b
from itertools import chain
from typing import Final, Literal

from ..dates import w3c
from ..entry import EMPTY_ENTRY
from ..evidence import changefreq
from ..evidence.changefreq import ChangefreqResult
from ..evidence.lastmod import LastmodResult, futurity, lastmod
from ..evidence.site_signals import changed_since, depends_on_site_signals
from ..evidence.soft_404 import soft_not_founds
from ..exceptions import ValuesError
from ..models import Page, Provider, Route, Site, SitemapUrl, UrlColumns
from ..options.table import Options
from ..request_response import AsyncCollector
from ..routing.route_table import RouteTable
from ..sitemap_limits_and_value_checks import validate_date
from ..warn_once import WarnOnce
from ..yield_to_other_threads import in_pieces
from . import auto_priority
from .bulk_unobserved_entries import UnobservedEntries
from .candidates import (
    PIECE_PAGES,
    Candidate,
    ProvidedBatch,
    SiteSnapshot,
    decode_path,
    learned_candidates,
    provider_batches,
    provider_candidates,
    route_candidates,
)
from .policy import EvaluationContext, ListingPolicy, route_changefreq, route_priority
from .provider_item_paths import ProviderReport
from .provider_reader import Providers
from .route_entry_settings import UnrestrictedRoutes
from .site_signals_cache import CachedSiteSignals, SiteSignalsCache

_DATE_FIX: Final = 'write it as "2024-05-01" or "2024-05-01T10:00:00Z"'
_HIGH_PRIORITY: Final = 0.5
"""A site whose pages all have the same priority above this one gets a warning."""


class EntryBuilder:
    """Builds the entries of listed pages, and counts what was left out."""

    def __init__(self, options: Options, policy: ListingPolicy, providers: Providers) -> None:
        self.policy = policy
        self._options = options
        self._providers = providers
        self._site_signals = SiteSignalsCache()
        self._skipped: dict[tuple[str, str], int] = {}
        """By base URL and provider: items left out of the latest enumeration."""
        self._flat_priorities: dict[tuple[str, str | int], tuple[float, int]] = {}
        """By base URL and section, or block of learned pages: its one high priority, and how many entries have it.

        Those with several priorities, or a low one, are left out: few sites have any other."""
        self._warn_once = WarnOnce()

    def evaluation_context(
        self, snapshot: SiteSnapshot, page_count: int, version: int, *, learning: bool = True
    ) -> EvaluationContext:
        """Add to a snapshot what the evaluation of its candidates depends on. For arguments see `SiteSignalsCache`."""
        site_signals = self._site_signals.get(snapshot, page_count, version, learning=learning)
        parent_paths = frozenset[str]()
        if self._options.priority == "auto":
            routes = snapshot.table.routes
            parent_paths = site_signals.parent_paths | auto_priority.hub_paths(route.path for route in routes)
        settings_digest = self._settings_digest(snapshot, site_signals)
        return EvaluationContext(
            snapshot, site_signals, parent_paths, settings_digest, self._listed_providers(snapshot)
        )

    # Candidates

    def route_candidates(self, context: EvaluationContext) -> list[Candidate]:
        """The static routes, except those that a provider enumerates."""
        enumerated = {provider for provider, _ in context.providers.values()}
        return route_candidates(context.snapshot, enumerated)

    def _listed_providers(self, snapshot: SiteSnapshot) -> dict[str, tuple[Provider, list[Route]]]:
        """The providers of a site and their routes that are not excluded, by the name of the provider's section."""
        sections = {
            name: (provider, [route for route in routes if self.policy.exclusion(route, route.path) is None])
            for name, (provider, routes) in snapshot.table.providers(snapshot.site).items()
        }
        return {name: (provider, routes) for name, (provider, routes) in sections.items() if routes}

    def provider_candidates(
        self, context: EvaluationContext, provider: Provider, routes: Sequence[Route]
    ) -> tuple[ProviderReport, Generator[Candidate]]:
        """The candidates of a provider, and a report that is filled while they are read.

        If the provider fails, the candidates end and the report has the error.
        """
        report = ProviderReport()

        def candidates() -> Generator[Candidate]:
            try:
                yield from provider_candidates(context.snapshot, self._providers, provider, routes, report)
            except ValuesError as error:
                report.failure = error

        return report, candidates()

    def complete_routes(self, site: Site, table: RouteTable, async_collector: AsyncCollector | None = None) -> None:
        """Read the providers that this process has not read and whose routes match no path before they are read."""
        for provider, routes in table.providers(site).values():
            if provider.examples and not self._providers.were_read(site, provider):
                with suppress(ValuesError):  # the next reader of its pages gets the error
                    deque(self._providers.pages(site, provider, routes, async_collector, ProviderReport()), maxlen=0)

    def unverified_paths(self, context: EvaluationContext) -> list[str]:
        """The decoded paths that are to be probed, because nothing was observed yet of them, or of their HTML."""
        return [
            decode_path(candidate.path)
            for candidate in self.route_candidates(context)
            if self.policy.evaluate(context, candidate)[1].unverified
        ]

    def refreshable_paths(self, context: EvaluationContext) -> list[str]:
        """The decoded paths of static routes that were observed, or that are to be probed."""
        return [
            decode_path(candidate.path)
            for candidate in self.route_candidates(context)
            if candidate.page is not None or self.policy.evaluate(context, candidate)[1].unverified
        ]

    # Entries

    def route_entries(self, context: EvaluationContext) -> UrlColumns:
        """The entries of static routes, in the order of their paths."""
        entries = UrlColumns.of([*self._entries(context, self.route_candidates(context))])
        self._note_priorities(context, "", {*entries.priorities}, len(entries.locs))
        return entries

    def provider_entries(
        self, context: EvaluationContext, provider: Provider, routes: Sequence[Route]
    ) -> Generator[UrlColumns]:
        """The entries of the pages that a provider enumerates, in its order, in batches.

        Raises:
            ValuesError: the provider fails.
        """
        report, snapshot = ProviderReport(), context.snapshot
        plain = UnobservedEntries(self._options, context, self._unrestricted_routes(context))
        priorities, count = set[float | None](), 0
        for batch in provider_batches(snapshot, self._providers, provider, routes, report):
            entries = plain.entries(batch.pages) if isinstance(batch, ProvidedBatch) else None
            if entries is None or not isinstance(batch, ProvidedBatch):
                candidates = batch.candidates() if isinstance(batch, ProvidedBatch) else batch
                entries = UrlColumns.of([*self._entries(context, candidates)])
            elif batch.observed and not batch.observed.keys().isdisjoint(batch.pages.paths):
                pairs = zip(batch.candidates(), entries.rows(), strict=True)
                evaluated = [
                    (entry,) if candidate.page is None else self._entries(context, (candidate,))
                    for candidate, entry in pairs
                ]
                entries = UrlColumns.of([*chain.from_iterable(evaluated)])
            priorities.update(entries.priorities)
            count += len(entries.locs)
            yield entries
        self._warn_of_items(provider, report)
        self._skipped[snapshot.site.base_url, provider.place] = report.skipped
        self._note_priorities(context, provider.place, priorities, count)

    def block_entries(self, context: EvaluationContext, number: int, pages: Sequence[Page]) -> tuple[UrlColumns, bytes]:
        """The entries of a block of learned pages, as of now, and a digest of the site signals that they depend on.

        The digest is empty if they depend on none.
        """
        # Soft 404s within the block are left out here already: no signals of the whole site are needed for that.
        equal_pages = soft_not_founds(in_pieces(pages, PIECE_PAGES))
        candidates = [
            candidate
            for candidate in learned_candidates(context.snapshot, in_pieces(pages, PIECE_PAGES))
            if candidate.page is None or equal_pages.first_equal_page(candidate.page) is None
        ]
        entries = UrlColumns.of([*self._entries(context, in_pieces(candidates, PIECE_PAGES))])
        self._note_priorities(context, number, {*entries.priorities}, len(entries.locs))
        return entries, self._signals_digest(context, pages, candidates)

    def build_entry(
        self, context: EvaluationContext, loc: str, candidate: Candidate
    ) -> tuple[SitemapUrl, LastmodResult, ChangefreqResult | None]:
        """The entry of a listed candidate, the source of its lastmod, and that of its changefreq if it is inferred."""
        route, options, given = candidate.route, self._options, candidate.entry or EMPTY_ENTRY
        signals = context.site_signals.signals
        modified = self._developer_lastmod(route) if given.lastmod is None else given.lastmod
        lastmod_result = lastmod(modified, candidate.page, route.last_modified, signals, context.snapshot.now)
        if lastmod_result.text is None and given.unusable_lastmod is not None:
            source = f"its values give {reprlib.repr(given.unusable_lastmod)}, which is not a date; {_DATE_FIX}"
            lastmod_result = LastmodResult(None, source)
        elif candidate.loc is not None and modified is None:
            lastmod_result = LastmodResult(None, "its section gives no date, and pages of sections are not observed")
        wanted: float | Literal["auto"] | None = given.priority
        if wanted is None:
            wanted = route_priority(options, route)
        if wanted == "auto":
            wanted = auto_priority.priority(decode_path(candidate.path), route.static, context.parent_paths)
        word, changefreq_result = given.changefreq or route_changefreq(options, route), None
        if word == "auto":
            changefreq_result = changefreq.changefreq(candidate.page, signals)
            word = changefreq_result.word
        return SitemapUrl(loc, lastmod_result.text, word, wanted), lastmod_result, changefreq_result

    def _entries(self, context: EvaluationContext, candidates: Iterable[Candidate]) -> Iterator[SitemapUrl]:
        """The entries of those candidates that are listed."""
        for candidate in candidates:
            loc, _ = self.policy.evaluate(context, candidate)
            if loc is not None:
                yield self.build_entry(context, loc, candidate)[0]

    def _unrestricted_routes(self, context: EvaluationContext) -> UnrestrictedRoutes:
        return UnrestrictedRoutes(self._options, context, self._developer_lastmod)

    def _developer_lastmod(self, route: Route) -> date | None:
        """The lastmod of a route's `@sitemap`. A callable that fails gives none, and is logged once."""
        given = route.settings.lastmod
        if given is None or isinstance(given, date):
            return given
        try:
            returned = Context().run(given)  # empty: the date is for everyone, whoever asks for the sitemap
            if returned is None:
                return None
            modified = validate_date(returned, "what it returned", "return a datetime.date or a datetime.datetime")
            w3c(modified)
        except Exception as error:
            self._warn_once(
                f"lastmod of {route.endpoint}",
                "the lastmod callable of %s (%s) failed, so it dates no page: %s",
                route.endpoint,
                route.path,
                error,
            )
            return None
        return modified

    # Digests

    def _signals_digest(
        self, context: EvaluationContext, pages: Sequence[Page], candidates: Sequence[Candidate]
    ) -> bytes:
        """The digest of the site signals that the entries of these pages depend on; empty if there are none."""
        record, options = context.site_signals.record, self._options
        settings = {options.priority, options.changefreq}
        settings.update(candidate.route.settings.changefreq for candidate in candidates)
        dependent = [page for page in pages if depends_on_site_signals(page)]
        if "auto" in settings or any(changed_since(page, record.open_until) for page in dependent):
            return record.dated_digest
        return record.digest if dependent else b""

    def _settings_digest(self, snapshot: SiteSnapshot, site_signals: CachedSiteSignals) -> bytes:
        """A digest of all that decides on learned pages besides their own history and the dated site signals."""
        options = self._options
        learned = [route for route in snapshot.table.routes if not route.static and route.builder is None]
        dates = [*map(self._developer_lastmod, learned)]
        inputs = (
            snapshot.site.base_url,
            [pattern.text for patterns in (options.include, options.exclude, options.learn) for pattern in patterns],
            (options.path, options.priority, options.changefreq, options.max_age_days, sorted(options.media_types)),
            [
                (route.path, route.settings.priority, route.settings.changefreq, route.settings.exclude, given)
                for route, given in zip(learned, dates, strict=True)
            ],
            # A date in the future is left out, and one of a clock that is a little ahead is replaced by the present.
            [given and futurity(given, snapshot.now) for given in dates],
            snapshot.table.digest,
            snapshot.rules.text,
            site_signals.record.soft_404_digest,
        )
        return blake2b(repr(inputs).encode(), digest_size=8).digest()

    # Counts and warnings

    def skipped_items(self) -> int:
        """The number of items that make no page, in the latest enumerations of all providers."""
        return sum(self._skipped.values())

    def warn_of_flat_priorities(self, site: Site, count: int) -> None:
        """Warn, once, if all `count` entries of a site have the same high priority.

        Other processes may have rendered some of them into the store. Then nothing is known of these.
        """
        flat = [flat for (base_url, _), flat in self._flat_priorities.items() if base_url == site.base_url]
        values = {value for value, _ in flat}
        if count > 1 and len(values) == 1 and sum(entries for _, entries in flat) == count:
            self._warn_once(
                "priority",
                "all %d pages of the sitemap have priority %s: it is relative to the site's other pages, so it has no"
                " effect; give different priorities, or none",
                count,
                *values,
            )

    def _note_priorities(
        self, context: EvaluationContext, section: str | int, priorities: set[float | None], count: int
    ) -> None:
        """Note which priorities the entries of a section or block have."""
        key = context.snapshot.site.base_url, section
        value = next(iter(priorities)) if len(priorities) == 1 else None
        if value is not None and value > _HIGH_PRIORITY:
            self._flat_priorities[key] = value, count
        else:
            self._flat_priorities.pop(key, None)

    def _warn_of_items(self, provider: Provider, report: ProviderReport) -> None:
        if report.skipped:
            more = report.skipped - len(report.examples)
            self._warn_once(
                f"values of {provider.place}",
                "%d of the %d items of the values of %s make no page: %s",
                report.skipped,
                report.count,
                provider.place,
                "; ".join([*report.examples, *([f"and {more} more"] if more else [])]),
            )
        if report.undated:
            self._warn_once(
                f"dates of {provider.place}",
                "%d of the %d items of the values of %s have a lastmod that is not a date, so it is not used, such as"
                " %s; %s",
                report.undated,
                report.count,
                provider.place,
                report.undated_example,
                _DATE_FIX,
            )
