"""The core: what to answer and what to observe, in neither protocol's words.

`handle` goes up through routes, pages and documents, once for each request for
a sitemap; `observe` goes down, for every page, and must cost next to nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import unquote

from . import urls
from .config import Options
from .dates import import_http_parsers
from .evidence.response_parser import OBSERVED_STATUSES
from .exceptions import StoreError
from .hosts import SiteResolver
from .http import TEST_CLIENT_WAIT_SECONDS, Request, RequestKey, Response
from .inspection import ServiceInspection
from .listing.policy import ListingPolicy
from .listing.site_signals_cache import SiteSignalsCache
from .models import Site
from .no_sitemap_reasons import ROBOTS_UNKNOWN_REASON, UNTRUSTED_HOST_REASON, UNTRUSTED_ROOT_REASON, NoSitemapReasons
from .observation.buffer import flush_on_sigterm
from .observation.changed_page_prober import ChangedPageProber
from .observation.ingest import Ingester
from .observation.observer import Observer, ResponseTracker
from .observation.prober import Prober
from .observation.store_clock import StoreClock
from .observation.unvisited_page_prober import UnvisitedPageProber
from .observations import CapturedResponse
from .rendering.document_cache import CachedDocument, Freshness
from .rendering.publisher import Publisher, Unavailable
from .rendering.responses import document_response, error_response
from .request_filter import FOREIGN_HOST_REASON, IgnoreReason, ignore_reason_of_line
from .robots import RETRY_SECONDS, RobotsTxt, RobotsUnknown
from .robots_parser import ROBOTS_PATH
from .routing.url_map import RouteTable, URLMap
from .site_quota import SiteQuota
from .stores.base import Store
from .stores.circuit_breaker import with_circuit_breaker

DOCUMENT_SUFFIXES: Final = (".xml", ".txt")
"""Of the paths of documents and of robots.txt: nearly every other request is told apart by them."""

FRESH_SECONDS: Final = 1.0
"""Seconds for which a document is served without another look at what it is made of, while nothing shows a change."""

STAMP_SECONDS: Final = 0.01
"""Seconds for which the store's stamp is good: to ask for a file's takes longer than all else."""

FLUSH_WAIT_SECONDS: Final = 2.0
"""Seconds for which a request for the sitemap waits for a fold that is under way: its store may hang."""

RECENT_REQUEST_SECONDS: Final = 10.0
"""Seconds for which the request behind which the app is asked for pages again is recent enough."""

MAX_CACHED_REQUESTS: Final = 1000
"""Requests remembered, by what tells one from another: strangers make up any number of hosts."""

log = logging.getLogger("sitemap_middleware")


def _unstamped() -> None:
    """Of a store that has none."""


class SitemapService(ServiceInspection):
    """One wrapped app: its routes, what was seen of it, and its sitemap."""

    def __init__(self, app: Any, options: Options, store: Store) -> None:
        import_http_parsers()
        self.clock = options.clock
        self.options = options
        self.store = store
        self._store_stamp: Callable[[], object] = getattr(store, "stamp", _unstamped)
        self._stamp_read_at: tuple[float, tuple[int, object]] = (0.0, (0, None))
        self._cached_requests: dict[RequestKey, tuple[Site, RouteTable, str]] = {}
        self.urlmap = URLMap(app, options)
        self.tracker = ResponseTracker(self._ingest, self.urlmap, options.clock)
        self._site_resolver = SiteResolver(self.urlmap, options)
        self._policy = ListingPolicy(options, self._was_probed)
        self._site_signals = SiteSignalsCache()
        self._last_stored = with_circuit_breaker(store, options.clock)
        self._robots = RobotsTxt(self.urlmap, options, self._last_stored)
        self._unavailable = 0
        """Requests for the sitemap that were answered 503."""
        self._store_clock = StoreClock(self._last_stored, options.clock)
        self._site_quota = SiteQuota(self._last_stored, self._site_resolver.is_named)
        self._no_sitemap = NoSitemapReasons(options, self._last_stored)
        self._publisher = Publisher(self._policy, self._last_stored, options, self._store_clock.now)
        prober = Prober()
        self._unvisited_prober = UnvisitedPageProber(
            self._policy, self._last_stored, options, prober, self._observe_probe
        )
        self._changed_prober = (
            ChangedPageProber(options.clock, prober, self._may_probe, self._observe_probe) if options.verify else None
        )
        self._ingester = Ingester(
            self.urlmap,
            self._last_stored,
            self._policy,
            options,
            self._store_clock,
            may_begin=self._site_quota.may_store,
        )
        if options.verify:
            self.tracker.recent_request_until = -math.inf
        self._own_route = False
        self.tracker.buffer.on_shutdown = self._on_shutdown
        self.tracker.buffer.on_exit = getattr(store, "release", store.close)
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
        """Whether `handle` has an answer to this request; the app is asked where it has not. Costs next to nothing."""
        try:
            path = request.path
            return path.endswith(DOCUMENT_SUFFIXES) and (
                (
                    (path == ROBOTS_PATH and self.options.robots)
                    or self._publisher.is_document_path(path, self.urlmap.table.provider_names)
                )
                and request.method in ("GET", "HEAD")
                and not self._is_the_apps(path)
            )
        except Exception as error:
            self.tracker.failed("a request could not be looked at", error)
            return False

    def cached_response(self, request: Request) -> Response | None:
        """The response to a request of which `handle` once had one, where it is at hand and sure to be the same.

        None where `handle` is to be asked. Costs next to nothing, and waits for nothing.
        """
        try:
            known = self._cached_requests.get(request.key)
            if known is None:
                return None
            (site, table, path), now = known, self.clock()
            if site.loopback and request.is_forwarded:
                return None
            if not self.tracker.buffer.is_idle or not self.urlmap.is_current(table, now):
                return None
            found = self._publisher.cached_document(site, path, table, now, self._stamp(now))
            return None if found is None else found.responses.response_to(request.method, request.conditional_headers)
        except Exception as error:
            self.tracker.failed("a request for the sitemap could not be looked at", error)
            return None

    def handle(self, request: Request) -> Response | None:
        """The response to a request that is `owns`; None where it turns out to be the app's. May take a while."""
        response = self._handle(request)
        if response is not None and response.status == 503:
            self._unavailable += 1
        return response

    def _handle(self, request: Request) -> Response | None:
        method = request.method
        try:
            self._no_sitemap.warn_of_proxy_fix(self.urlmap.proxy_middleware)
            site, _ = self._site_resolver.resolve_request(request)
            if request.path == ROBOTS_PATH and (site is None or not self._robots.handles(site, ROBOTS_PATH)):
                return None
            if site is None:
                self._no_sitemap.warn_of_host(request.host)
            if site is None or not self._site_quota.may_store(site):
                return error_response(method, 404, UNTRUSTED_ROOT_REASON if request.root else UNTRUSTED_HOST_REASON)
            self.tracker.buffer.ensure_thread()
            began, table = self.clock(), self.urlmap.reload()
            self._no_sitemap.warn_of_unmatched(table)
            if self._robots.handles(site, request.path):
                return self._robots.handle(site, request, lambda: self._has_entries(site, table, request, began))
            found = self._find_document(site, table, request, request.path, began)
        except Unavailable as error:
            return error_response(method, 503, f"The sitemap cannot be made now: {error}.", retry_after=60)
        except RobotsUnknown:
            return error_response(
                method, 503, f"The sitemap cannot be made now: {ROBOTS_UNKNOWN_REASON}.", retry_after=RETRY_SECONDS
            )
        except StoreError as error:  # of which the guard before the store has told
            log.debug("the sitemap cannot be made: %s", error)
            return error_response(
                method, 503, "The sitemap cannot be made now: its store does not answer.", retry_after=60
            )
        except Exception:
            log.exception("the sitemap could not be made")
            return error_response(method, 503, "The sitemap cannot be made now: an error of its own.", retry_after=60)
        if found is None:
            return error_response(method, 404, self._no_sitemap.reason(site, table))
        self._cache_request(request, site, table)
        return document_response(
            method,
            request.conditional_headers,
            document=found.document,
            since=found.since,
            max_age=self.options.max_age,
        )

    def _find_document(
        self, site: Site, table: RouteTable, request: Request, path: str, began: float
    ) -> CachedDocument | None:
        """The document of a path as it is now; None if there is none. May take a while."""
        self.flush(FLUSH_WAIT_SECONDS)
        rules = self._robots.rules(site, request, self.clock())
        if self.options.verify:
            self._unvisited_prober.probe(
                request, site, lambda: self.evaluation_context(self.snapshot(site, self._last_stored))
            )
            self.flush(FLUSH_WAIT_SECONDS)
        stamp = self._stamp()
        proof = self._freshness(site, table, stamp, began)
        return self._publisher.find_document(site, table, rules, request, proof, path=path)

    def _has_entries(self, site: Site, table: RouteTable, request: Request, began: float) -> bool:
        """Whether a site has a sitemap, so that robots.txt may name it; also if that cannot be told now."""
        try:
            if (
                self._publisher.has_entries(site)
                or self._find_document(site, table, request, self.options.path, began) is not None
            ):
                return True
        except (Unavailable, RobotsUnknown) as error:
            log.debug("whether there is a sitemap cannot be told: %s", error)
            return True
        self._no_sitemap.warn_of_no_routes(table)
        return False

    def _cache_request(self, request: Request, site: Site, table: RouteTable) -> None:
        """Remember whose document a request asked for, so that `ready` need not judge it again."""
        # Of queries there may be any number; and a test is to see what it has changed just now.
        if not request.has_query and request.wait_seconds != TEST_CLIENT_WAIT_SECONDS:
            if len(self._cached_requests) >= MAX_CACHED_REQUESTS:
                self._cached_requests.clear()
            self._cached_requests[request.key] = site, table, request.path

    def _stamp(self, now: float | None = None) -> object:
        """A sign that is another one when this process has folded anything, or any has written to the store.

        Given the time, what others have written may be seen as of a moment ago.
        """
        at, stamp = self._stamp_read_at
        if stamp[0] != self._ingester.merged or now is None or not 0 < now - at < STAMP_SECONDS:
            stamp = self._ingester.merged, self._store_stamp()
            self._stamp_read_at = now or 0.0, stamp
        return stamp

    def _freshness(self, site: Site, table: RouteTable, stamp: object, now: float) -> Freshness:
        """That what is made from now on is true: for a second, if nothing that it rests on is due before."""
        until = min(now + FRESH_SECONDS, self._robots.valid_until(site))
        if self.options.verify:
            until = min(until, self._unvisited_prober.next_round_at(site))
        return Freshness(stamp, table, now, until, now + FRESH_SECONDS / 2)

    def _is_the_apps(self, path: str) -> bool:
        """Whether the app has an explicit route for a document's path: then the app keeps it, with one warning."""
        if path == ROBOTS_PATH or not self.urlmap.table.has_explicit_route(path):
            return False
        if not self._own_route:
            self._own_route = True
            log.warning(
                "the app has a route of its own for %s and keeps it; give SitemapMiddleware another path to have both",
                path,
            )
        return True

    # The end of a process

    def flush(self, seconds: float = -1) -> None:
        """Fold all that was seen so far into the store. Where that fails, it waits on.

        Args:
            seconds: for which a fold that is under way is waited for; without end where that is less than 0.
        """
        try:
            self.tracker.buffer.flush(seconds)
        except StoreError as error:
            log.debug("not folded: %s", error)
        except Exception:
            log.exception("the sitemap's observations of the last seconds could not be folded")

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
        """What the recorder's thread does with each batch."""
        self._ingester.ingest(batch, self.tracker, self._changed_prober)
