"""`Ingester` finds the routes of a batch of captured responses, parses them, and merges them into the store's pages.

Runs on the background thread, and on a thread that flushes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final
from urllib.parse import unquote

from ..bounded_cache import BoundedCache
from ..captured_response import CapturedResponse
from ..dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..evidence.delisting_confirmation import is_refused_by_html, may_be_listed
from ..evidence.observations import Observation, at_merge
from ..evidence.response_parser import UNREADABLE_FILE_REASON, ResponseParser
from ..fork_safety import WorkerId
from ..listing.provider_reader import Providers
from ..models import Route, Site, StoreKey
from ..options.table import Options
from ..request_filter.header_rules import HOST_HEADERS
from ..request_filter.reasons import FOREIGN_HOST
from ..routing.current_routes import AppRoutes
from ..routing.route_table import RouteTable
from ..stores.base import Store
from ..stores.store_clock import StoreClock
from ..urls import loc_of, quote_path
from ..warn_once import WarnOnce
from .asgi_pathsend_files import read_sent_file
from .tracked_page_cache import TrackedPageCache
from .trust_in_foreign_host_headers import ForeignHosts
from .unusual_routing_headers import HOST, UsualHeaders, doubtful_evidence
from .varying_content_prober import CHECKS_AT_FIRST_SIGHT, CHECKS_WHEN_CHANGED, VaryingContentProber

CLEANUP_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds between two deletions of a site's outdated pages."""

MAX_SITES: Final = 2000
"""Sites whose last cleanup is remembered."""

log: logging.Logger = logging.getLogger("sitemap_middleware")


@dataclass(slots=True)
class _SiteBatch:
    """The observations of one site in a batch."""

    site: Site
    now: int
    """The store's time, in POSIX seconds."""
    observations: list[Observation] = field(default_factory=list)
    """Of responses to ordinary requests for the site's own Host."""
    claims: list[tuple[CapturedResponse, Observation]] = field(default_factory=list)
    """Of responses to requests with another Host, or with headers that claim another URL. A later response of the batch
    may retract those for a foreign Host."""

    def add(self, response: CapturedResponse, observation: Observation) -> None:
        if response.routing_headers or response.has_other_host:
            self.claims.append((response, observation))
        else:
            self.observations.append(observation)

    def retract_foreign(self, path: str) -> None:
        """Take back what responses for a foreign Host said of a page."""
        self.claims = [
            (response, observation)
            for response, observation in self.claims
            if not (response.is_foreign_host and observation.path == path)
        ]


class Ingester:
    """Turns captured responses into observations, and merges these into pages."""

    def __init__(
        self,
        *,
        app_routes: AppRoutes,
        store: Store,
        providers: Providers,
        options: Options,
        store_clock: StoreClock,
        tracker: TrackedPageCache,
        varying_content_prober: VaryingContentProber | None,
        may_store: Callable[[Site], bool],
    ) -> None:
        """`may_store` says whether a site may have pages in the store."""
        self._app_routes = app_routes
        self._store = store
        self._providers = providers
        self._options = options
        self._store_clock = store_clock
        self._tracker = tracker
        self._varying_content_prober = varying_content_prober
        self._may_store = may_store
        self._parser = ResponseParser(options.media_types)
        self._foreign_hosts = ForeignHosts()
        self._usual_headers = UsualHeaders()
        self._worker_id = WorkerId()
        self._cleaned_up_at = BoundedCache[str, float](MAX_SITES)
        self._warn_once = WarnOnce()
        self.merged: int = 0
        """Observations merged into the store."""
        self.refused: int = 0
        """New pages left out because the route or the site has its maximum of pages."""
        self.unwritable: int = 0
        """Responses of paths that cannot be written as a loc."""

    def ingest(self, batch: list[CapturedResponse]) -> None:
        """Parse a batch of responses and merge them into the store. Raises `StoreError`."""
        table = self._app_routes.reload()
        for response in batch:
            if not (response.is_foreign_host or response.is_probe):
                self._foreign_hosts.record_own_host(response)
        if any(response.is_foreign_host for response in batch):  # each is compared with those before it
            batch = sorted(batch, key=attrgetter("at"))
        batch = _without_headers_of_samples(batch)
        by_site: dict[StoreKey, _SiteBatch] = {}
        pages: dict[tuple[str, str], CapturedResponse] = {}
        failures: dict[tuple[str, str], CapturedResponse] = {}
        for response in batch:
            key = response.site.store_key
            if key not in by_site:
                by_site[key] = _SiteBatch(response.site, self._store_clock.now(key))
            observation = self._observation(response, table, by_site[key])
            if observation is not None:
                by_site[key].site = response.site
                by_site[key].add(response, observation)
                (pages if may_be_listed(observation) else failures)[response.page_key] = response
        for page_key, response in pages.items():
            if page_key not in failures and not response.is_probe:
                self._usual_headers.record(response)
        for site_batch in by_site.values():
            if site_batch.observations or site_batch.claims:
                self._merge(site_batch)

    def _observation(self, response: CapturedResponse, table: RouteTable, site_batch: _SiteBatch) -> Observation | None:
        """Return what a response says; None if it is not evidence."""
        now = site_batch.now
        if response.at > now + CLOCK_SKEW_SECONDS:
            self._store_clock.warn_of_skew(response.at - now)
            return None
        route = self._find_route(table, response)
        if route is None or not self._may_store(response.site):
            return None
        path = quote_path(response.path)
        loc = loc_of(response.site, path) if path else None
        if path is None or loc is None:
            self.unwritable += 1
            return None
        if response.file_path is not None:
            read_sent_file(response)
        observation = self._parse(response, path, route, loc)
        if (
            observation is not None
            and response.is_foreign_host
            and not self._is_foreign_evidence(response, observation, route, site_batch)
        ):
            observation = None
        if response.body is not None:
            html = None if observation is None else observation.html
            self._tracker.sampler.record_digest(
                response.page_key,
                None if html is None else html.digest,
                is_refused=observation is not None and is_refused_by_html(observation),
            )
        elif (
            observation is not None
            and observation.learned
            and self._tracker.sampler.is_refused(response.page_key)
            and may_be_listed(observation)
        ):  # they add nothing until the HTML is read again, which would be at once if they were merged
            observation = None
        if (
            observation is not None
            and observation.learned
            and not may_be_listed(observation)
            and not is_refused_by_html(observation)
        ):
            self._tracker.sampler.require_reading(response.page_key)
        if response.file_path is not None:
            response.body = None  # a batch that cannot be saved is kept without it
        return None if observation is None else at_merge(observation, now)

    def _find_route(self, table: RouteTable, response: CapturedResponse) -> Route | None:
        try:
            return table.find_route(response.site, response.path)
        except Exception as error:  # one of the app's URL converters failed; continue with the rest of the batch
            self._tracker.log_fault("a page's route could not be found", error)
            return None

    def _parse(self, response: CapturedResponse, path: str, route: Route, loc: str) -> Observation | None:
        observation: Observation | None = None
        with self._tracker.log_fault.guard("a response could not be read"):  # continue with the rest of the batch
            provided = None if route.builder is None else self._providers.is_provided(response.site, route, path)
            learned = not route.static and not provided
            may_be_provided = route.builder is not None and provided is not False
            observation = self._parser.parse(
                response, path, route.path, loc, learned=learned, may_be_provided=may_be_provided
            )
        html = None if observation is None else observation.html
        if html is not None and not html.has_head and html.unread_reason != UNREADABLE_FILE_REASON:
            self._warn_of_unreadable_html(loc, html.unread_reason)
        return observation

    def _is_foreign_evidence(
        self, response: CapturedResponse, observation: Observation, route: Route, site_batch: _SiteBatch
    ) -> bool:
        """Whether a response for a foreign Host counts. If not, it is counted, and retracted from the batch."""
        is_probed = self._varying_content_prober is not None and route.static
        if not self._foreign_hosts.is_in_question(response, observation, is_probed=is_probed):
            return True
        path = observation.path
        page = self._store.find_pages(site_batch.site.store_key, [path]).get(path)
        if self._foreign_hosts.is_evidence(response, observation, page, is_probed=is_probed):
            return True
        # A sampled response arrives twice: first its headers alone, then with its body.
        if response.body is None and not response.is_probe:
            self._tracker.ignored.count(response.path, FOREIGN_HOST)
        elif page is None:  # its headers, earlier in this batch, do not count either
            site_batch.retract_foreign(path)
        return False

    def _merge(self, site_batch: _SiteBatch) -> None:
        """Merge observations into the store's pages; have the prober check those that are new or changed."""
        site, prober = site_batch.site, self._varying_content_prober
        observations = [*site_batch.observations, *self._proven_claims(site_batch)]
        result = self._store.merge(site.store_key, observations, self._options.page_limits)
        self.merged += len(observations)
        if prober is not None:
            prober.enqueue(site, map(unquote, result.new_paths), CHECKS_AT_FIRST_SIGHT)
            prober.enqueue(site, map(unquote, result.changed_paths), CHECKS_WHEN_CHANGED)
            prober.enqueue(site, map(unquote, result.conflicting_paths), 1)
        for path in result.unread_paths:
            self._tracker.require_reading(site, unquote(path))
        self._count_refused(result.refused)
        self._clean_up(site.store_key, site_batch.now)

    def _proven_claims(self, site_batch: _SiteBatch) -> list[Observation]:
        """What responses to requests with another Host, or with a header such as X-Original-URL, prove."""
        proven: list[Observation] = []
        doubtful: list[tuple[Observation, list[str]]] = []
        for response, observation in site_batch.claims:
            if names := self._usual_headers.unusual_names(response):
                doubtful.append((observation, names))
            else:
                proven.append(observation)
        if doubtful:
            site = site_batch.site.store_key
            pages = self._store.find_pages(site, {observation.path for observation, _ in doubtful})
            is_unknown_site = not (site_batch.observations or self._usual_headers.has_counted(site))
            for claim, names in doubtful:
                page = pages.get(claim.path)
                # Without it, a site that only answers other hosts, and badly, would stay unknown.
                is_first = page is None and is_unknown_site and HOST_HEADERS.issuperset({*names} - {HOST})
                if evidence := claim if is_first else doubtful_evidence(claim, page, names):
                    proven.append(evidence)
        return proven

    def _count_refused(self, count: int) -> None:
        if count and not self.refused:
            log.warning(
                "new pages are not stored: a route has max_pages_per_route=%d pages, or the site has max_pages=%d;"
                " raise these options of SitemapMiddleware if the pages belong to the site, else exclude them",
                self._options.page_limits.route,
                self._options.page_limits.site,
            )
        self.refused += count

    def _clean_up(self, site: StoreKey, now: int) -> None:
        """Delete outdated pages from the store, in one process once an hour."""
        if 0 <= now - (self._cleaned_up_at.get(site) or -CLEANUP_INTERVAL_SECONDS) < CLEANUP_INTERVAL_SECONDS:
            return
        self._cleaned_up_at.put(site, now)
        agreed = self._store_clock.agreed_time(site, self._worker_id.name)
        if self._store.lease(site, "forget", self._worker_id.name, now, CLEANUP_INTERVAL_SECONDS):
            self._store.forget(site, agreed - self._options.max_age_days * SECONDS_PER_DAY, agreed - SECONDS_PER_DAY)

    def _warn_of_unreadable_html(self, loc: str, reason: str) -> None:
        self._warn_once(
            "HTML",
            "the HTML of %s cannot be read (it %s), so its robots meta tag and its changes are missed:"
            " install a decoder, or add SitemapMiddleware inside the middleware that compresses",
            loc,
            reason,
        )


def _without_headers_of_samples(batch: list[CapturedResponse]) -> list[CapturedResponse]:
    """Drop the headers-only copy of each response whose sample is in the batch.

    A sampled response arrives twice: first its headers alone, then with its body. Both are kept if the request had
    another Host or a header such as X-Original-URL: then each of them may count or not.
    """
    samples = {response.page_key: response for response in batch if _is_sample(response)}
    return [
        response
        for response in batch
        if _is_sample(response)
        or response.has_other_host
        or response.routing_headers
        or (sample := samples.get(response.page_key)) is None
        or sample.headers is not response.headers  # of another response
        or sample.at != response.at  # an equal response has followed
    ]


def _is_sample(response: CapturedResponse) -> bool:
    return response.body is not None or response.file_path is not None
