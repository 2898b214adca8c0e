"""`Ingester` finds the routes of a batch of captured responses, parses them, and merges them into the store's pages.

Runs on the background thread, and on a thread that flushes.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Protocol
from urllib.parse import unquote

from ..evidence.dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..evidence.delisting_confirmation import is_refused_by_html, may_be_listed
from ..evidence.merge import MergedBatch, merge_batch
from ..evidence.observations import Observation, at_merge
from ..evidence.page_verdict import is_listable
from ..evidence.response_parser import UNREADABLE_FILE_REASON, ResponseParser
from ..exceptions import StoreError
from ..http.captured_response import CapturedResponse
from ..http.request_filter import FOREIGN_HOST
from ..http.urls import loc_of, quote_path
from ..listing.provider_reader import Providers
from ..models import PageLimits, Route, Site, StoreKey
from ..options.table import Options
from ..routing.current_routes import AppRoutes
from ..routing.hosts import SiteResolver
from ..routing.route_table import RouteTable
from ..stores.base import UNLIMITED, Store
from ..stores.store_clock import StoreClock
from ..util import BoundedCache, WarnOnce, WorkerId
from .asgi_pathsend_files import read_sent_file
from .doubt import doubtful_evidence, is_doubtful
from .tracker import Tracker
from .varying_content_prober import CHECKS, VaryingContentProber

CLEANUP_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds between two deletions of a site's outdated pages."""

MAX_SITES: Final = 2000
"""Sites whose last cleanup is remembered."""

OWN_HOST_WINDOW_SECONDS: Final = 60 * 60
"""Seconds for which a request for the site's own Host outweighs those for foreign ones."""

WRITE_PAGES: Final = 500
"""Pages that are written at a time, so that others get their turn."""

CONTENTION_SECONDS: Final = 5.0
"""How long pages are read, merged and written again while other workers write to the same site."""

MAX_WAIT_MILLISECONDS: Final = 20
"""The longest wait before the next attempt. It is random, so that not all workers try at once."""

log: logging.Logger = logging.getLogger("sitemap_middleware")


@dataclass(slots=True)
class _SiteBatch:
    """The observations of one site in a batch."""

    site: Site
    now: int
    """The store's time, in POSIX seconds."""
    seen: list[tuple[CapturedResponse, Observation]] = field(default_factory=list)
    """The responses, and what each of them says."""


class AskedPages(Protocol):
    """Pages that the middleware requests itself, because their answer decides."""

    def may_ask(self, site: Site, path: str, /) -> bool:
        """Whether it may request a decoded path."""

    def ask(self, site: Site, paths: Iterable[str], /, *, is_contradicted: bool = False) -> None:
        """Request decoded paths soon, at least a second later if they have just answered something else."""


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
        tracker: Tracker,
        varying_content_prober: VaryingContentProber | None,
        asked_pages: AskedPages | None,
        site_resolver: SiteResolver,
    ) -> None:
        """Wire the parts together. Without `verify` there is no prober, and no pages to ask."""
        self._app_routes = app_routes
        self._store = store
        self._providers = providers
        self._options = options
        self._store_clock = store_clock
        self._tracker = tracker
        self._varying_content_prober = varying_content_prober
        self._asked_pages = asked_pages
        self._site_resolver = site_resolver
        self._parser = ResponseParser(options.media_types)
        self._own_host_seen_at = BoundedCache[StoreKey, float](MAX_SITES)
        """When a site's own Host was last requested."""
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
                self._own_host_seen_at.put(response.site.store_key, response.at)
        by_site: dict[StoreKey, _SiteBatch] = {}
        batch = sorted(batch, key=attrgetter("at"))  # of answers of one second, the last decides
        for response in _without_headers_of_samples(batch):
            key = response.site.store_key
            if key not in by_site:
                by_site[key] = _SiteBatch(response.site, self._store_clock.now())
            observation = self._observation(response, table, by_site[key])
            if observation is not None:
                by_site[key].site = response.site
                by_site[key].seen.append((response, observation))
        for site_batch in by_site.values():
            if site_batch.seen and self._has_pages(site_batch.site):
                self._merge(site_batch)

    def _has_pages(self, site: Site) -> bool:
        """Whether the app has answered for a site with a page, now or before, or settings name the site.

        Clients can invent any number of hosts. Those that the app answers with no page are not kept.
        """
        return self._site_resolver.is_known(site) or self._store.version(site.store_key) > 0

    def _observation(self, response: CapturedResponse, table: RouteTable, site_batch: _SiteBatch) -> Observation | None:
        """Return what a response says; None if it is not evidence."""
        now = site_batch.now
        if response.at > now + CLOCK_SKEW_SECONDS:
            self._store_clock.warn_of_skew(response.at - now)
            return None
        route = self._find_route(table, response)
        if route is None or not self._site_resolver.may_store(response.site):
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
            and not self._is_foreign_evidence(response, observation)
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
        if observation is None:
            return None
        if may_be_listed(observation):
            self._site_resolver.note_page(response.site)
        return at_merge(observation, now)

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

    def _is_foreign_evidence(self, response: CapturedResponse, observation: Observation) -> bool:
        """Whether a response for a foreign Host counts: not while the site's own Host is requested as well."""
        if response.is_probe:  # under the Host of the live request, because the app refused the site's own
            return may_be_listed(observation)
        own_at = self._own_host_seen_at.get(response.site.store_key)
        if own_at is None or response.at - own_at >= OWN_HOST_WINDOW_SECONDS:
            return True
        self._tracker.ignored.count(response.path, FOREIGN_HOST)
        return False

    def _merge(self, site_batch: _SiteBatch) -> None:
        """Merge observations into the store's pages; have the prober check those that are new or changed."""
        site, prober = site_batch.site, self._varying_content_prober
        observations, asks = self._evidence(site_batch)
        by_path: dict[str, list[Observation]] = {}
        for observation in observations:
            by_path.setdefault(observation.path, []).append(observation)
        paths = list(by_path)
        for start in range(0, len(paths), WRITE_PAGES):
            of_pages = [by_path[path] for path in paths[start : start + WRITE_PAGES]]
            seen = [observation for of_page in of_pages for observation in of_page]
            merged, refused = save_observations(
                self._store, site.store_key, seen, self._options.page_limits, site_batch.now
            )
            if prober is not None:
                news = [path for path in merged.new_paths if path not in refused]
                prober.enqueue(site, map(unquote, [*news, *merged.changed_paths]), CHECKS)
            if self._asked_pages is not None and merged.conflicting_paths:
                self._asked_pages.ask(site, map(unquote, merged.conflicting_paths), is_contradicted=True)
            for path in merged.unread_paths:
                self._tracker.require_reading(site, unquote(path))
            self._count_refused(len(refused))
        if self._asked_pages is not None and asks:
            self._asked_pages.ask(site, asks)
        self.merged += len(observations)
        self._clean_up(site.store_key, site_batch.now)

    def _evidence(self, site_batch: _SiteBatch) -> tuple[list[Observation], list[str]]:
        """What of the responses counts, and the decoded paths of the pages that the middleware is to ask itself.

        It asks a learned page that was refused before it lists that again, and each page of which a doubtful answer
        says something new.
        """
        site = site_batch.site
        in_question = {
            observation.path
            for response, observation in site_batch.seen
            if is_doubtful(response) or (observation.learned and not response.is_probe and may_be_listed(observation))
        }
        pages = self._store.find(site.store_key, in_question)
        evidence: list[Observation] = []
        asks: list[str] = []
        for response, observation in site_batch.seen:
            page = pages.get(observation.path)
            may_ask = (
                observation.path in in_question
                and not response.is_probe
                and self._asked_pages is not None
                and self._asked_pages.may_ask(site, response.path)
            )
            counts: Observation | None = observation
            if is_doubtful(response):
                counts = doubtful_evidence(response, observation, page, may_ask=may_ask)
            if (
                may_ask
                and observation.learned
                and may_be_listed(observation)
                and page is not None
                and not is_listable(page)
            ):
                counts = None
            if counts is not None:
                evidence.append(counts)
            if may_ask and may_be_listed(observation) and (counts is None or counts.html != observation.html):
                asks.append(response.path)
        return evidence, asks

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
        if self._store.lease(site, "forget", self._worker_id.name, CLEANUP_INTERVAL_SECONDS):
            self._store.forget(site, now - self._options.max_age_days * SECONDS_PER_DAY, now - SECONDS_PER_DAY)

    def _warn_of_unreadable_html(self, loc: str, reason: str) -> None:
        self._warn_once(
            "HTML",
            "the HTML of %s cannot be read (it %s), so its robots meta tag and its changes are missed:"
            " install a decoder, or add SitemapMiddleware inside the middleware that compresses",
            loc,
            reason,
        )


def save_observations(
    store: Store,
    site: StoreKey,
    observations: Sequence[Observation],
    limits: PageLimits = UNLIMITED,
    now: float = math.inf,
) -> tuple[MergedBatch, set[str]]:
    """Read pages, merge, and write what has changed; again if another worker has written to the site meanwhile.

    Returns what was merged, and the paths of pages that were refused. Raises `StoreError`.
    """
    paths = {observation.path for observation in observations}
    until = time.monotonic() + CONTENTION_SECONDS
    while time.monotonic() < until:
        version = store.version(site)
        merged = merge_batch(store.find(site, paths), observations, now)
        if not merged.pages:
            return merged, set()
        refused = store.write(site, version, merged.pages, limits)
        if refused is not None:
            return merged, refused
        time.sleep(secrets.randbelow(MAX_WAIT_MILLISECONDS) / 1000)
    raise StoreError(f"other workers have been writing to the same site for {CONTENTION_SECONDS:g} seconds")


def _without_headers_of_samples(batch: list[CapturedResponse]) -> list[CapturedResponse]:
    """Drop the headers-only copy of each response whose sample is in the batch: it arrives twice."""
    samples = {response.page_key: response for response in batch if _is_sample(response)}
    return [
        response
        for response in batch
        if _is_sample(response)
        or (sample := samples.get(response.page_key)) is None
        or sample.headers is not response.headers  # of another response
        or sample.at != response.at  # an equal response has followed
    ]


def _is_sample(response: CapturedResponse) -> bool:
    return response.body is not None or response.file_path is not None
