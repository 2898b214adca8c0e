"""The catalog: routes and pages in, entries out. The one place that decides what is listed, and with which words."""

from __future__ import annotations

import logging
import mimetypes
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from typing import Final, Literal

from ..config import Options
from ..dates import SECONDS_PER_DAY, w3c
from ..entry import EMPTY_ENTRY
from ..evidence import changefreq
from ..evidence.changefreq import ChangefreqResult
from ..evidence.lastmod import LastmodResult, lastmod
from ..evidence.site_signals import changed_since, depends_on_site_signals
from ..evidence.soft_not_found import LearnedContents
from ..evidence.verdict import Verdict, page_verdict
from ..exceptions import ValuesError
from ..models import Explanation, Page, Provider, Route, Site, SitemapUrl
from ..protocol import validate_date
from ..urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, loc_of, quote_path
from . import priority
from .candidates import Candidate, SiteSnapshot, decode_path, learned_candidates, provider_candidates, route_candidates
from .path_safety import operations_reason, unsafe_reason
from .providers import ProviderReport, Providers
from .site_signals_cache import CachedSiteSignals

log = logging.getLogger("sitemap_middleware")

_UNSEEN_VERDICT: Final = Verdict(True, "the values of its route name it, and nothing was seen that forbids it")


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """How things stand on a site, and what the judgement of each of its candidates rests on."""

    state: SiteSnapshot
    site_signals: CachedSiteSignals
    parent_paths: frozenset[str]
    """Pages that lead to others, where priorities are derived."""
    settings_digest: bytes
    """Eight bytes: the same where options, routes and rules are, and so what is said of the same learned pages."""


class ListingPolicy:
    """Decides what is listed."""

    def __init__(self, options: Options, was_asked: Callable[[Site, str], bool]) -> None:
        """`was_probed` tells whether this process has asked the app for a decoded path of a site."""
        self._options = options
        self._was_probed = was_asked
        self._values = Providers(options.clock)
        self._skipped: dict[tuple[str, str], int] = {}
        self._priorities: dict[tuple[str, str], set[float | None]] = {}
        self._warned: set[str] = set()

    def evaluation_context(self, state: SiteSnapshot, outlook: CachedSiteSignals) -> EvaluationContext:
        """A site, ready to be judged."""
        leading = frozenset[str]()
        if self._options.priority == "auto":
            leading = outlook.parent_paths | priority.hub_paths(one.path for one in state.table.routes)
        return EvaluationContext(state, outlook, leading, self._settings_digest(state, outlook))

    # The entries of a site, section by section

    def route_entries(self, view: EvaluationContext) -> Iterator[SitemapUrl]:
        """The entries of static routes, in the order of their paths."""
        return self._entries(view, "", self.route_candidates(view))

    def route_candidates(self, view: EvaluationContext) -> list[Candidate]:
        """The static routes, but those that values give."""
        return route_candidates(view.state, {provider for provider, _ in self.providers(view.state).values()})

    def providers(self, state: SiteSnapshot) -> dict[str, tuple[Provider, list[Route]]]:
        """What enumerates pages, and of which routes, by the name of its documents."""
        found = {
            name: (provider, [route for route in routes if self.exclusion(route, route.path) is None])
            for name, (provider, routes) in state.table.providers(state.site).items()
        }
        return {name: (provider, routes) for name, (provider, routes) in found.items() if routes}

    def provider_entries(
        self, view: EvaluationContext, provider: Provider, routes: Sequence[Route]
    ) -> Generator[SitemapUrl]:
        """The entries of the pages that a provider gives, in its order; `ValuesError` where it fails."""
        report, site = ProviderReport(), view.state.site
        yield from self._entries(
            view, provider.place, provider_candidates(view.state, self._values, provider, routes, report)
        )
        self._warn_of_skipped(provider, report)
        self._skipped[site.base_url, provider.place] = report.skipped

    def block_entries(self, view: EvaluationContext, pages: Sequence[Page]) -> tuple[list[SitemapUrl], bytes]:
        """The entries of learned pages that stand together; and what of the outlook has a part in it, if anything."""
        said = LearnedContents()
        for page in pages:
            said.add(page)
        here = said.soft_not_founds()
        candidates = [
            one
            for one in learned_candidates(view.state, pages)
            if one.page is None or here.first_equal_page(one.page) is None
        ]
        return list(self._entries(view, "learned", candidates)), self._block_digest(view, pages, candidates)

    def _block_digest(self, view: EvaluationContext, pages: Sequence[Page], candidates: Sequence[Candidate]) -> bytes:
        """The digest of what pages rest on besides themselves: what is told of them may change with it."""
        said, options = view.site_signals.record, self._options
        words = {options.priority, options.changefreq, *(one.route.settings.changefreq for one in candidates)}
        concerned = [page for page in pages if depends_on_site_signals(page)]
        if "auto" in words or any(changed_since(page, said.open_until) for page in concerned):
            return said.is_dated
        return said.digest if concerned else b""

    def _entries(self, view: EvaluationContext, section: str, candidates: Iterable[Candidate]) -> Iterator[SitemapUrl]:
        told = self._priorities.setdefault((view.state.site.base_url, section), set())
        for candidate in candidates:
            loc, _ = self.evaluate(view, candidate)
            if loc is not None:
                entry = self.build_entry(view, loc, candidate)[0]
                told.add(entry.priority)
                yield entry

    def explain(self, view: EvaluationContext, path: str) -> Explanation:
        """Why a decoded path is listed or not."""
        state = view.state
        quoted = quote_path(path)
        if quoted is None:
            return Explanation(path, None, False, UNREACHABLE_REASON)
        loc = loc_of(state.site, quoted)
        if loc is None:
            return Explanation(path, None, False, LOC_LENGTH_REASON)
        route = state.table.find_route(state.site, path)
        asked = self._lookup_values(state, route, quoted) if route is not None and route.builder is not None else None
        if asked is not None and asked.report.failure:
            return Explanation(path, loc, False, str(asked.report.failure), route=route)
        skipped = asked.report.messages() if asked else ()
        candidate = _candidate_for(state, quoted, route) if asked is None else asked.candidate
        if candidate is None:
            refused = None if route is None else self.exclusion(route, path)
            why = refused.reason if refused else _no_candidate_reason(state, path, route)
            seen = state.store.find_pages(state.site.store_key, [quoted]).get(quoted)
            return Explanation(path, loc, False, why, route=route if asked else None, page=seen, skipped=skipped)
        _, verdict = self.evaluate(view, candidate)
        if not verdict.listed:
            return Explanation(
                path, loc, False, verdict.reason, route=candidate.route, page=candidate.page, skipped=skipped
            )
        entry, dated, paced = self.build_entry(view, loc, candidate)
        return Explanation(
            path,
            loc,
            True,
            verdict.reason,
            entry,
            dated.source,
            candidate.route,
            candidate.page,
            None if paced is None else paced.source,
            skipped,
        )

    def provider_candidates(
        self, view: EvaluationContext, provider: Provider, routes: Sequence[Route]
    ) -> tuple[ProviderReport, Iterator[Candidate]]:
        """What comes of a provider's items, and its candidates; where it fails, they end, and the report says so."""
        report = ProviderReport()

        def candidates() -> Iterator[Candidate]:
            try:
                yield from provider_candidates(view.state, self._values, provider, routes, report)
            except ValuesError as error:
                report.failure = error

        return report, candidates()

    def unverified_paths(self, view: EvaluationContext) -> list[str]:
        """The decoded paths of which the app's own answer decides whether they are listed."""
        judged = ((one.path, self.evaluate(view, one)[1]) for one in self.route_candidates(view))
        return [decode_path(path) for path, verdict in judged if verdict.unverified]

    def may_be_probed(self, route: Route, path: str) -> bool:
        """Whether the app may be asked for a decoded path: it is not excluded, nor named like an action or an API."""
        return self.exclusion(route, path) is None and unsafe_reason(path, route.endpoint) is None

    def is_provided(self, site: Site, route: Route, path: str) -> bool | None:
        """Whether a percent-encoded path is one that the values of its route gave when they were asked last.

        None where this process has not asked them.
        """
        return None if route.settings.values is None else self._values.is_provided(site, route.settings.values, path)

    def close(self) -> None:
        """Wait for no values any longer."""
        self._values.close()

    def skipped_items(self) -> int:
        """How many items of the routes' values were left out, of all sites, when they were asked last."""
        return sum(self._skipped.values())

    def warn_of_flat_priorities(self, site: Site, count: int) -> None:
        """Warn, once, where all of a site's entries, so many, have one high priority."""
        told = [one for (base, _), one in self._priorities.items() if base == site.base_url]
        highest = set[float | None]().union(*told)
        if count > 1 and len(highest) == 1 and (wanted := next(iter(highest))) and wanted > 0.5:
            self._warn_once(
                "priority",
                "all %d pages of the sitemap have priority %s: it is relative to the site's own, so it says nothing",
                count,
                wanted,
            )

    def _lookup_values(self, state: SiteSnapshot, route: Route, quoted: str) -> _ProviderLookup | None:
        """What the values of a route say of a path; None where they are not to be asked."""
        asked = [routes for provider, routes in self.providers(state).values() if provider is route.settings.values]
        if not asked or route.settings.values is None:
            return None
        report = ProviderReport()
        found = None
        try:
            for candidate in provider_candidates(state, self._values, route.settings.values, asked[0], report):
                if candidate.path == quoted:
                    found = candidate
        except ValuesError as error:
            report.failure = error
        return _ProviderLookup(report, found)

    def _settings_digest(self, state: SiteSnapshot, outlook: CachedSiteSignals) -> bytes:
        options = self._options
        learning = [route for route in state.table.routes if not route.static and route.builder is None]
        said = (
            state.site.base_url,
            [pattern.text for one in (options.include, options.exclude, options.learn) for pattern in one],
            (options.path, options.priority, options.changefreq, options.max_age_days, sorted(options.media_types)),
            [
                (
                    one.path,
                    one.settings.priority,
                    one.settings.changefreq,
                    one.settings.exclude,
                    self._developer_lastmod(one),
                )
                for one in learning
            ],
            state.table.digest,
            state.rules.text,
            outlook.record.echoes,
        )
        return blake2b(repr(said).encode(), digest_size=8).digest()

    def evaluate(self, view: EvaluationContext, candidate: Candidate) -> tuple[str | None, Verdict]:
        """The verdict on a URL, and its loc where it is listed."""
        state = view.state
        loc = loc_of(state.site, candidate.path)
        if loc is None:
            return None, Verdict(False, LOC_LENGTH_REASON)
        verdict = self._verdict(candidate, view.site_signals, state.now)
        if verdict.unverified and not verdict.listed and self._is_unprobed(view, candidate.path):
            told = f"the app has not been asked for it yet: request {self._options.path} once"
            verdict = Verdict(False, told, unverified=True)
        if (verdict.listed or verdict.unverified) and not state.rules.allows(loc):
            verdict = Verdict(False, "the app's own robots.txt forbids it")
        return loc if verdict.listed else None, verdict

    def _is_unprobed(self, view: EvaluationContext, path: str) -> bool:
        """Whether nobody has asked the app for a page, as far as this process and the store know."""
        said, site = view.site_signals.record, view.state.site
        return not (said.version or said.at or self._was_probed(site, decode_path(path)))

    def _verdict(self, candidate: Candidate, outlook: CachedSiteSignals, now: int) -> Verdict:
        route, page, options = candidate.route, candidate.page, self._options
        path = decode_path(candidate.path)
        if refused := self.exclusion(route, path):
            return refused
        if candidate.entry is not None:
            return _UNSEEN_VERDICT if page is None else page_verdict(page, options.media_types, now)
        if (
            route.static
            and route.modified is None
            and options.include.find(path, route.path) is None
            and (named := operations_reason(path, route.endpoint))
        ):
            return Verdict(False, f"{named}; the option include lists it")
        if page is not None:
            days = options.max_age_days
            if page.learned and page.last_seen < now - days * SECONDS_PER_DAY:
                return Verdict(False, f"nobody was seen to ask for it in the last {days} days")
            if candidate.slash_variant:
                return Verdict(False, f"it is the same page as {decode_path(candidate.slash_variant)}")
            if (
                page.learned
                and not route.static
                and (first := outlook.signals.soft_not_founds.first_equal_page(page)) is not None
            ):
                return Verdict(False, f"it has the same content as {decode_path(first)}, which was known before it")
            return page_verdict(page, options.media_types, now)
        if options.include.find(path, route.path) is not None:
            asks = options.verify and unsafe_reason(path, route.endpoint) is None
            return Verdict(True, "the option include names it, and nothing seen forbids it", unverified=asks)
        if route.hidden:
            return Verdict(False, f"{route.hidden}, and it was not yet seen to be a page")
        if (guessed := mimetypes.guess_type(path)[0]) and guessed not in options.media_types:
            return Verdict(False, f"its name is that of {guessed}, and it was not yet seen to be a page")
        if route.modified is None and (named := unsafe_reason(path, route.endpoint)):
            return Verdict(False, f"{named}, and it was not yet seen to be a page; the option include lists it at once")
        if options.verify:
            return Verdict(
                False, "it was not yet seen, nor yet answered when the app was asked for it", unverified=True
            )
        if not options.list_unseen:
            return Verdict(False, "it was not yet seen, and list_unseen is off")
        return Verdict(True, "it is a static route, and nothing was seen that forbids it")

    def exclusion(self, route: Route, path: str) -> Verdict | None:
        """Why a path, or a template, is never listed, whatever is seen of it."""
        options = self._options
        if options.exclude and (excluding := options.exclude.find(path, route.path)):
            return Verdict(False, f"the option exclude names it by {excluding.text!r}")
        if route.settings.exclude:
            return Verdict(False, "it is marked @sitemap(exclude=True)")
        if path == options.path:
            return Verdict(False, "it is the sitemap itself")
        if route.internal and options.include.find(path, route.path) is None:
            return Verdict(False, route.internal)
        return None

    def build_entry(
        self, view: EvaluationContext, loc: str, candidate: Candidate
    ) -> tuple[SitemapUrl, LastmodResult, ChangefreqResult | None]:
        """A URL as written, and what its lastmod rests on, and its changefreq where that is inferred."""
        route, options, said = candidate.route, self._options, candidate.entry or EMPTY_ENTRY
        given = self._developer_lastmod(route) if said.lastmod is None else said.lastmod
        dated = lastmod(given, candidate.page, route.modified, view.site_signals.signals, view.state.now)
        wanted: float | Literal["auto"] | None = said.priority
        if wanted is None:
            wanted = options.priority if route.settings.priority is None else route.settings.priority
        if wanted == "auto":
            wanted = priority.priority(decode_path(candidate.path), route.static, view.parent_paths)
        word, paced = said.changefreq or route.settings.changefreq or options.changefreq, None
        if word == "auto":
            paced = changefreq.changefreq(candidate.page, view.site_signals.signals)
            word = paced.word
        return SitemapUrl(loc, dated.text, word, wanted), dated, paced

    def _developer_lastmod(self, route: Route) -> date | None:
        """The developer's date; a callable that fails says nothing, with one warning."""
        given = route.settings.lastmod
        if given is None or isinstance(given, date):
            return given
        try:
            told = given()
            if told is not None:
                told = validate_date(told, "what it returned", "return a datetime.date or a datetime.datetime")
                w3c(told)
        except Exception as error:
            self._warn_once(
                f"lastmod of {route.endpoint}",
                "the lastmod callable of %s (%s) failed, so its page bears no date of it: %s",
                route.endpoint,
                route.path,
                error,
            )
            return None
        return told

    def _warn_of_skipped(self, provider: Provider, report: ProviderReport) -> None:
        if report.skipped:
            self._warn_once(
                f"values of {provider.place}",
                "of the %d items that the values of %s gave, %d make no page: %s",
                report.count,
                provider.place,
                report.skipped,
                "; ".join(report.examples),
            )

    def _warn_once(self, topic: str, message: str, *arguments: object) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            log.warning(message, *arguments)


def shadowed_reason(route: Route) -> str:
    """Why a route that another one shadows is not listed."""
    return f"its requests are answered by {route.shadowed_by}, which comes before it in the app's routes"


@dataclass(frozen=True, slots=True)
class _ProviderLookup:
    """What came of asking the values of a route for one page."""

    report: ProviderReport
    candidate: Candidate | None


def _candidate_for(state: SiteSnapshot, quoted: str, route: Route | None) -> Candidate | None:
    """What is known of a percent-encoded path, but by values."""
    if route is None or route.builder is not None:
        return None
    page = state.store.find_pages(state.site.store_key, [quoted]).get(quoted)
    if route.static:
        return Candidate(quoted, route, page)
    return next(iter(learned_candidates(state, [page])), None) if page else None


def _no_candidate_reason(state: SiteSnapshot, path: str, found: Route | None) -> str:
    shadowed = state.table.shadowed(state.site, path)
    if shadowed is not None:
        return shadowed_reason(shadowed)
    if found is not None and found.builder is not None:
        return "its route enumerates its pages, and this is none of them"
    if found is not None:
        return f"it is one of {found.path}, whose pages are learned, but was not yet seen to be a page"
    route = state.table.matching_route(state.site, path)
    if route is not None:
        if route.not_learned_reason is None:
            return f"its route {route.path} has parameters, and nothing enumerates its pages"
        return f"its route {route.path} is not learned: {route.not_learned_reason}"
    return "the app has no static route of this path, and no pattern of learn or include takes it in"
