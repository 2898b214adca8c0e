"""What is known of an app and its sites, for people: why a page is listed or not, what becomes of routes, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from . import urls
from .config import Options
from .evidence.verdict import Verdict
from .hosts import SiteResolver
from .listing.candidates import SiteSnapshot
from .listing.entries import EntryBuilder
from .listing.explain import explain
from .listing.inventory import InventoryLine, inventory
from .listing.policy import EvaluationContext
from .listing.route_report import RouteReport, route_report
from .listing.site_signals_cache import SiteSignalsCache
from .models import Explanation, Site
from .observation.ingest import Ingester
from .observation.store_clock import StoreClock
from .observation.tracker import ResponseTracker
from .rendering.publisher import Publisher
from .robots import RobotsTxt
from .routing.url_map import URLMap
from .sitemap_handler import SitemapHandler
from .stores.base import Store
from .stores.circuit_breaker import GuardedStore


class ServiceInspection:
    """The part of the core that answers people's questions. Nothing here asks the app, or writes but by `flush`."""

    clock: Callable[[], float]
    options: Options
    urlmap: URLMap
    tracker: ResponseTracker
    _site_resolver: SiteResolver
    _entries: EntryBuilder
    _site_signals: SiteSignalsCache
    _last_stored: GuardedStore
    _robots: RobotsTxt
    _sitemap: SitemapHandler
    _store_clock: StoreClock
    _publisher: Publisher
    _ingester: Ingester

    if TYPE_CHECKING:

        def flush(self) -> None: ...

    def explain(self, path: str, state: SiteSnapshot | None = None) -> Explanation:
        """Why a decoded path is listed or not, on base_url's site, else on the first that was asked for.

        Or as things stand in a state made by `look`: then nothing is folded before.
        """
        if state is not None:
            return explain(self._entries, self.evaluation_context(state), path)
        self.flush()
        state = self.snapshot(self._site_resolver.default_site(), self._last_stored)
        explanation = explain(self._entries, self.evaluation_context(state), path)
        ignored = self.tracker.ignored.summary(path, known=explanation.page is not None)
        return replace(explanation, ignored=ignored, note=self.own_route_warning())

    def own_route_warning(self) -> str | None:
        """That the app's own route for the sitemap's path is served instead, for people; None if there is none."""
        path = self.options.path
        return (
            f"the app's own route for {path} is served, and not this sitemap"
            if self.urlmap.table.has_explicit_route(path)
            else None
        )

    def evaluation_context(self, state: SiteSnapshot) -> EvaluationContext:
        """A state ready to be judged; nothing is written."""
        blocks = state.store.blocks(state.site.store_key)
        pages, version = sum(block.pages for block in blocks), state.store.version(state.site.store_key)
        return self._entries.evaluation_context(state, self._site_signals.get(state, pages, version, learning=False))

    def route_report(self, states: Sequence[SiteSnapshot]) -> list[RouteReport]:
        """What becomes of every route of these sites, and of every pattern that names pages of them."""
        surveyed = [
            one for state in states for one in route_report(self._entries, self.options, self.evaluation_context(state))
        ]
        hosts = {state.site.routed for state in states}
        lost = Verdict(False, "it answers on none of the hosts looked at")
        return surveyed + [
            RouteReport(None, route, lost) for route in states[0].table.routes if route.host not in hosts
        ]

    def inventory(self, states: Sequence[SiteSnapshot]) -> list[InventoryLine]:
        """Every URL that is known of these sites, listed or not."""
        return [line for state in states for line in inventory(self._entries, self.evaluation_context(state))]

    def snapshot(self, site: Site, store: Store) -> SiteSnapshot:
        """How things stand on a site, its pages being in this store. The app is asked for nothing."""
        now = self._store_clock.now(site.store_key) if store is self._last_stored else int(self.clock())
        return SiteSnapshot(site, self.urlmap.reload(), store, self._robots.cached_rules(site, store), now)

    def sites(self, wanted: Site | None = None) -> list[Site]:
        """The site that is wanted, else base_url's, else this machine's; and then the others that are known by name.

        Empty where base_url makes the one wanted none of ours. Without a base_url, it is taken at its word.
        """
        base = self.options.site
        first = wanted or base or Site("http", "localhost", loopback=True)
        root = unquote(first.root) or self.urlmap.root_path
        main, standing = self._site_resolver.resolve(first.scheme, first.host, root)
        if standing != "own" or main is None:
            if base is not None:
                return []
            main = Site(first.scheme, first.host, urls.root_of(root) or "", first.loopback)
        hosts = [base.host] if base else []
        hosts += sorted(self.urlmap.table.hosts)
        others = (self._site_resolver.resolve(main.scheme, host, root)[0] for host in hosts)
        found = {main.routed: main}
        for other in others:
            if other is not None:
                found.setdefault(other.routed, other)
        return list(found.values())

    def stats(self) -> dict[str, float]:
        """Counts since the process began, and things as they are now: `metrics.METRICS` says which is which."""
        return {
            "seen": self.tracker.buffer.seen + self.tracker.repeated,
            "dropped": self.tracker.buffer.dropped,
            "merged": self._ingester.merged,
            "refused": self._ingester.refused,
            "unwritable": self._ingester.unwritable,
            "skipped": self._entries.skipped_items(),
            "listed": self._publisher.entry_count(),
            "documents": self._publisher.document_count(),
            "rendered": self._publisher.rendered_blocks,
            "pending": self.tracker.buffer.pending,
            "last_flush_age_seconds": self.tracker.buffer.last_flush_age_seconds,
            "store_failures": self._last_stored.failures,
            "unavailable_responses": self._sitemap.unavailable_responses,
            "values_age_seconds": self._publisher.values_age(),
            **{f"ignored_{reason}": count for reason, count in self.tracker.ignored.counts.items()},
        }
