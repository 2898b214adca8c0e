"""Folding: sightings are read, given their routes, and handed to the store. All of it on the recorder's thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from operator import attrgetter
from typing import Final
from urllib.parse import unquote

from ..bounded_cache import BoundedCache
from ..config import Options
from ..dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..evidence.response_parser import ResponseParser
from ..fork_safety import WorkerId
from ..listing.providers import Providers
from ..models import Route, Site, StoreKey
from ..observations import CapturedResponse, Observation
from ..request_filter import FOREIGN_HOST_REASON
from ..routing.url_map import RouteTable, URLMap
from ..stores.base import Store
from ..urls import loc_of, quote_path
from .changed_page_prober import CHECKS_AT_FIRST_SIGHT, CHECKS_WHEN_CHANGED, ChangedPageProber
from .foreign_hosts import ForeignHosts
from .observer import ResponseTracker
from .store_clock import StoreClock

TIDY_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds from one tidying of a site's pages to the next."""

MAX_SITES: Final = 2000
"""Sites of which is remembered when they were tidied."""

log = logging.getLogger("sitemap_middleware")


class Ingester:
    """Makes observations of sightings, and pages of these."""

    def __init__(
        self,
        urlmap: URLMap,
        store: Store,
        providers: Providers,
        options: Options,
        timekeeper: StoreClock,
        *,
        may_begin: Callable[[Site], bool],
    ) -> None:
        self._urlmap = urlmap
        self._store = store
        self._providers = providers
        self._options = options
        self._reader = ResponseParser()
        self._worker_id = WorkerId()
        self._store_clock = timekeeper
        self._hosts = ForeignHosts()
        self._may_store = may_begin
        """Whether a site may have pages in the store."""
        self._tidied = BoundedCache[str, float](MAX_SITES)
        self._warned_unread = False
        """Whether it was said that HTML cannot be decompressed."""
        self.merged = 0
        """Observations that the store has taken."""
        self.refused = 0
        """New pages for which there was no room."""
        self.unwritable = 0
        """Sightings of paths of which no loc can be written."""

    def ingest(self, batch: list[CapturedResponse], watch: ResponseTracker, doubts: ChangedPageProber | None) -> None:
        """Give a batch of sightings their routes, and fold those that have one.

        Args:
            batch: what was seen.
            watch: what saw it, and is told what its bodies were found to say.
            doubts: what asks again for what is new; None where nothing is asked for.
        """
        table = self._urlmap.reload()
        by_site: dict[StoreKey, list[Observation]] = {}
        sites: dict[StoreKey, Site] = {}
        now: dict[StoreKey, int] = {}
        for sighting in batch:
            if not (sighting.is_foreign_host or sighting.is_probe):
                self._hosts.note_own(sighting)
        if any(sighting.is_foreign_host for sighting in batch):  # which are judged one by the other
            batch = sorted(batch, key=attrgetter("at"))
        for sighting in batch:
            key = sighting.site.store_key
            if key not in now:
                now[key] = self._store_clock.now(key)
            if sighting.at > now[key] + CLOCK_SKEW_SECONDS:
                self._store_clock.warn_of_skew(sighting.at - now[key])
                continue
            route = self._route(table, sighting, watch)
            if route is None or not self._may_store(sighting.site):
                continue
            path = quote_path(sighting.path)
            loc = loc_of(sighting.site, path) if path else None
            if path is None or loc is None:
                self.unwritable += 1
                continue
            seen = self._parse(sighting, path, route, loc, watch)
            asks = doubts is not None and route.static  # the prober asks for no others
            if seen is not None and sighting.is_foreign_host and self._hosts.must_decide(sighting, seen, asks=asks):
                page = self._store.find_pages(key, [path]).get(path)
                if not self._hosts.is_evidence(sighting, seen, page, asks=asks):
                    if (
                        sighting.body is None and not sighting.is_probe
                    ):  # the same response comes again with its body, if that was sampled
                        watch.count_ignored(sighting.path, FOREIGN_HOST_REASON)
                    elif page is None and key in by_site:  # nor does its start, in the same batch, count
                        by_site[key] = [one for one in by_site[key] if one.path != path]
                    seen = None
            if seen is not None:
                by_site.setdefault(key, []).append(seen._replace(merged_at=now[key]))
                sites[key] = sighting.site
            if sighting.body is not None:
                digest = seen.html.digest if seen and seen.html else None
                watch.sampler.record_digest(sighting.page_key, digest)
        for site, observations in by_site.items():
            folded = self._store.merge(site, observations, self._options.page_limits)
            self.merged += len(observations)
            if doubts is not None:
                doubts.enqueue(sites[site], map(unquote, folded.new_paths), CHECKS_AT_FIRST_SIGHT)
                doubts.enqueue(sites[site], map(unquote, folded.new), CHECKS_WHEN_CHANGED)
                doubts.enqueue(sites[site], map(unquote, folded.conflicting), 1)
            self._count_refused(folded.refused)
            self._tidy(site, now[site])

    def _route(self, table: RouteTable, sighting: CapturedResponse, watch: ResponseTracker) -> Route | None:
        """The route of what was seen. One that the app's own router cannot tell must not hold up the others."""
        try:
            return table.find_route(sighting.site, sighting.path)
        except Exception as error:
            watch.failed("a page's route could not be found", error)
            return None

    def _count_refused(self, count: int) -> None:
        """Count pages that were left out for want of room, with one warning."""
        if count and not self.refused:
            log.warning(
                "no more pages are learned: a route has max_pages_per_route=%d of them, or the site max_pages=%d;"
                " give SitemapMiddleware larger ones if these are pages of the site, and exclude what is not",
                self._options.page_limits.route,
                self._options.page_limits.site,
            )
        self.refused += count

    def _tidy(self, site: StoreKey, now: int) -> None:
        """Have one process an hour forget the pages that need not be remembered."""
        if 0 <= now - (self._tidied.get(site) or -TIDY_INTERVAL_SECONDS) < TIDY_INTERVAL_SECONDS:
            return
        self._tidied.put(site, now)
        agreed = self._store_clock.agreed_time(site, self._worker_id.name)
        if self._store.lease(site, "forget", self._worker_id.name, now, TIDY_INTERVAL_SECONDS):
            self._store.forget(site, agreed - self._options.max_age_days * SECONDS_PER_DAY, agreed - SECONDS_PER_DAY)

    def _parse(
        self, sighting: CapturedResponse, path: str, route: Route, loc: str, watch: ResponseTracker
    ) -> Observation | None:
        """What a sighting says. One that cannot be read teaches nothing, and must not hold up the others."""
        seen: Observation | None = None
        with watch.guarding("a response could not be read"):
            named = None if route.builder is None else self._providers.is_provided(sighting.site, route, path)
            learned = not route.static and not named
            enumerable = route.builder is not None and named is not False
            seen = self._reader.parse(sighting, path, route.path, loc, learned=learned, enumerable=enumerable)
        if seen is not None and seen.html is not None and not seen.html.has_head:
            self._warn_of_unread(loc, seen.html.unread_reason)
        return seen

    def _warn_of_unread(self, loc: str, reason: str) -> None:
        """Warn, once, of HTML that cannot be decompressed: a page that says noindex in it stays listed."""
        if not self._warned_unread:
            self._warned_unread = True
            log.warning(
                "the HTML of %s cannot be read, so its robots meta tag is not seen and its changes give no date:"
                " it %s; install one, or have SitemapMiddleware inside what compresses",
                loc,
                reason,
            )
