"""The core: what to answer and what to observe, in neither protocol's words.

`handle` goes up through routes, pages and documents, once for each request for
a sitemap; `observe` goes down, for every page, and must cost next to nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from . import urls
from .config import Options
from .dates import import_http_parsers
from .evidence.response_parser import OBSERVED_STATUSES
from .exceptions import StoreError
from .hosts import SiteResolver
from .http import Request, RequestKey, Response
from .inspection import ServiceInspection
from .listing.entries import EntryBuilder
from .listing.policy import ListingPolicy
from .listing.providers import Providers
from .listing.site_signals_cache import SiteSignalsCache
from .models import Site
from .no_sitemap_reasons import NoSitemapReasons
from .observation.buffer import flush_on_sigterm
from .observation.changed_page_prober import ChangedPageProber
from .observation.ingest import Ingester
from .observation.observer import Observer, ResponseTracker
from .observation.prober import ProbeClient
from .observation.store_clock import StoreClock
from .observation.unvisited_page_prober import UnvisitedPageProber
from .observations import CapturedResponse
from .rendering.publisher import Publisher
from .request_filter import FOREIGN_HOST_REASON, IgnoreReason, ignore_reason_of_line
from .robots import RobotsTxt
from .routing.url_map import URLMap
from .site_quota import SiteQuota
from .sitemap_handler import SitemapHandler
from .stores.base import Store, StoreExtras
from .stores.circuit_breaker import with_circuit_breaker

RECENT_REQUEST_SECONDS: Final = 10.0
"""Seconds for which the request behind which the app is asked for pages again is recent enough."""

log = logging.getLogger("sitemap_middleware")


class SitemapService(ServiceInspection):
    """One wrapped app: its routes, what was seen of it, and its sitemap."""

    def __init__(self, app: Any, options: Options, store: Store) -> None:
        import_http_parsers()
        self.clock = options.clock
        self.options = options
        self.store = store
        self.urlmap = URLMap(app, options)
        self.tracker = ResponseTracker(self._ingest, self.urlmap, options.clock)
        self._site_resolver = SiteResolver(self.urlmap, options)
        self._policy = ListingPolicy(options, self._was_probed)
        self._providers = Providers(options.clock)
        self._entries = EntryBuilder(options, self._policy, self._providers)
        self._site_signals = SiteSignalsCache()
        self._last_stored = with_circuit_breaker(store, options.clock)
        self._robots = RobotsTxt(self.urlmap, options, self._last_stored)
        self._store_clock = StoreClock(self._last_stored, options.clock)
        site_quota = SiteQuota(self._last_stored, self._site_resolver.is_named)
        self._publisher = Publisher(
            self._entries, self._last_stored, self._site_signals, options, self._store_clock.now
        )
        probe_client = ProbeClient()
        self._unvisited_prober = UnvisitedPageProber(
            self._entries, self._last_stored, options, probe_client, self._observe_probe
        )
        self._changed_prober = (
            ChangedPageProber(options.clock, probe_client, self._observe_probe, self._may_probe)
            if options.verify
            else None
        )
        self._ingester = Ingester(
            urlmap=self.urlmap,
            store=self._last_stored,
            providers=self._providers,
            options=options,
            store_clock=self._store_clock,
            tracker=self.tracker,
            changed_page_prober=self._changed_prober,
            may_store=site_quota.may_store,
        )
        if options.verify:
            self.tracker.recent_request_until = -math.inf
        self._sitemap = SitemapHandler(
            options=options,
            urlmap=self.urlmap,
            site_resolver=self._site_resolver,
            site_quota=site_quota,
            robots=self._robots,
            publisher=self._publisher,
            buffer=self.tracker.buffer,
            prober=self._unvisited_prober,
            reasons=NoSitemapReasons(options, self._last_stored),
            evaluation_context=lambda site: self.evaluation_context(self.snapshot(site, self._last_stored)),
            merged=lambda: self._ingester.merged,
            on_error=self.tracker.failed,
        )
        self.tracker.buffer.on_shutdown = self._on_shutdown
        self.tracker.buffer.on_exit = StoreExtras.of(store).release or store.close
        flush_on_sigterm()

    # A page request

    def observe(self, request: Request, question: RequestKey = ()) -> Observer | None:
        """An observer for this request's response; None where it can teach nothing.

        Only a request that an anonymous crawler could have sent for the whole page does; others are counted by reason.

        Args:
            request: the request.
            question: what of it tells the page, by which the watch knows the page from now on.
        """
        try:
            path, _, _, _, method, query = request.key
            refusal = (
                request.ignore_reason()
                if method == "GET" and not query
                else ignore_reason_of_line(method, query=bool(query))
            )
            if refusal is not None:
                if not self.tracker.refuse_again(path, refusal):
                    self.tracker.count_ignored(request.path, refusal)
                return None
            readings = self.urlmap.reload_count
            site, standing = self._site_resolver.resolve_request(request)
            if site is None or standing == "none":
                self.tracker.count_ignored(request.path, FOREIGN_HOST_REASON)
                return None
            page = self.tracker.track(question, site, request.path, readings, foreign=standing == "foreign")
            if self._changed_prober is not None:
                self._changed_prober.remember_request(site, request)
                now = self.clock()
                self.tracker.recent_request_at, self.tracker.recent_request_until = now, now + RECENT_REQUEST_SECONDS
            return Observer(page, request.key[1])
        except Exception as error:
            self.tracker.failed("a request could not be observed", error)
            return None

    def ignore_reason_of_hosts(self, request: Request, told: Iterable[str]) -> IgnoreReason | None:
        """Why a request does not count that is for the site's own Host, while its other headers tell another host.

        An app that believes those headers answers for the other one.

        Args:
            request: the request.
            told: the hosts that X-Forwarded-Host and the like name.
        """
        others = {host for host in told if host.lower() != request.host.lower()}
        if not others:
            return None
        site, standing = self._site_resolver.resolve_request(request)
        if site is None or standing != "own":
            return None  # the Host may be a proxy's name for the app
        return None if all(urls.is_site_host(site, request.host, host) for host in others) else FOREIGN_HOST_REASON

    # A sitemap request

    def handles(self, request: Request) -> bool:
        """Whether this request is for a document of ours, by its path alone. Costs next to nothing."""
        return self._sitemap.handles(request)

    def cached_response(self, request: Request) -> Response | None:
        """The response if its document is in memory and fresh, else None. It never blocks: it runs on event loops."""
        return self._sitemap.cached_response(request)

    def handle(self, request: Request) -> Response | None:
        """The response to a request that `handles` accepts; None if it is for the app after all. It may block."""
        return self._sitemap.handle(request)

    # The end of a process

    def flush(self) -> None:
        """Save pending observations, and let no cached document count as fresh. If saving fails, they stay pending."""
        try:
            self.tracker.buffer.flush()
        except StoreError as error:
            log.debug("not folded: %s", error)
        except Exception:
            log.exception("the sitemap's observations of the last seconds could not be folded")
        self._sitemap.expire()

    def close(self) -> None:
        """Fold what waits, stop the thread, let go of the store."""
        self.tracker.buffer.close()
        self._on_shutdown()
        try:
            self.store.close()
        except Exception as error:
            log.debug("not closed: %s", error)

    def _on_shutdown(self) -> None:
        """Begin nothing more behind requests, and wait for nothing: a server that shuts down waits for these."""
        self._unvisited_prober.close()
        self._publisher.close()
        self._providers.close()
        if self._changed_prober is not None:
            self._changed_prober.close()

    # Asking the app ourselves, with `verify`

    def _was_probed(self, site: Site, path: str) -> bool:
        return self._unvisited_prober.was_probed(site, path)

    def _may_probe(self, site: Site, path: str) -> bool:
        """Whether the app may be asked for a decoded path of a site."""
        route, loc = self.urlmap.table.find_route(site, path), urls.loc_of(site, urls.quote_path(path) or "")
        return (
            route is not None
            and loc is not None
            and self._policy.may_be_probed(route, path)
            and self._robots.cached_rules(site).allows(loc)
        )

    def _observe_probe(self, sighting: CapturedResponse) -> None:
        """Take in what the app answered when it was asked by ourselves."""
        if sighting.status not in OBSERVED_STATUSES:
            return
        sighting.is_foreign_host = (
            self._site_resolver.resolve(sighting.site.scheme, str(sighting.host), unquote(sighting.site.root))[1]
            == "foreign"
        )
        self.tracker.record(sighting)
        if sighting.status == 200 and self.tracker.next_sample_at(sighting):
            self.tracker.buffer.sample(sighting)

    def _ingest(self, batch: list[CapturedResponse]) -> None:
        """Ingest a batch; called by the buffer, which is built before the ingester."""
        self._ingester.ingest(batch)
