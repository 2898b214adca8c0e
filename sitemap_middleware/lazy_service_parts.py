"""The parts of the service that few requests need.

Each is imported and created when it is first needed, which makes the start of an app faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .created_when_needed import created_when_needed
from .explanations_and_statistics import ServiceInspection
from .fork_safety import WorkerId

if TYPE_CHECKING:
    from .captured_response import CapturedResponse
    from .listing.entries_by_section import EntryBuilder
    from .listing.policy import ListingPolicy
    from .listing.provider_reader import Providers
    from .models import Site
    from .observation.fault_log import FaultLog
    from .observation.parse_and_store import Ingester
    from .observation.probe_client import ProbeClient
    from .observation.refresh_on_demand import Refresher
    from .observation.unvisited_page_prober import UnvisitedPageProber
    from .observation.varying_content_prober import VaryingContentProber
    from .observation.verified_visit_counting import CrawlerVisitCounts
    from .rendering.publisher import Publisher
    from .robots import RobotsTxt
    from .sitemap_handler import SitemapHandler


class ServiceParts(ServiceInspection):
    """Creates what saves observations, and what answers requests for documents, from the parts that always exist."""

    log_fault: FaultLog
    varying_content_prober: VaryingContentProber | None
    _probe_client: ProbeClient

    if TYPE_CHECKING:

        def _probe_failure(self, site: Site, path: str) -> str | None: ...

        def _sections_of(self, path: str) -> set[str]: ...

        def _may_probe(self, site: Site, path: str) -> bool: ...

        def _observe_probe(self, captured: CapturedResponse) -> None: ...

    # What flushes need

    @created_when_needed
    def _ingester(self) -> Ingester:
        from .observation.parse_and_store import Ingester

        return Ingester(
            app_routes=self.app_routes,
            store=self._guarded_store,
            providers=self.providers,
            options=self.options,
            store_clock=self._store_clock,
            tracker=self.tracker,
            varying_content_prober=self.varying_content_prober,
            may_store=self.site_resolver.may_store,
        )

    @created_when_needed
    def crawler_visits(self) -> CrawlerVisitCounts:
        """Counts the visits of crawlers."""
        from .observation.verified_visit_counting import CrawlerVisitCounts

        return CrawlerVisitCounts(
            self.tracker.crawlers,
            self._guarded_store,
            self.app_routes,
            may_store=self.site_resolver.may_store,
            resolver=self.options.resolver,
            clock=self.options.clock,
        )

    @created_when_needed
    def providers(self) -> Providers:
        """Calls the providers."""
        from .listing.provider_reader import Providers

        return Providers(self.options.clock)

    # What requests for documents need

    @created_when_needed
    def sitemap_handler(self) -> SitemapHandler:
        """Answers requests for documents."""
        from .no_sitemap_reasons import NoSitemapReasons
        from .sitemap_handler import SitemapHandler

        return SitemapHandler(
            options=self.options,
            app_routes=self.app_routes,
            site_resolver=self.site_resolver,
            robots=self.robots_txt,
            publisher=self._publisher,
            buffer=self.tracker.buffer,
            prober=self.unvisited_prober,
            refresher=self.refresher,
            reasons=NoSitemapReasons(self.options, self._guarded_store),
            evaluation_context=lambda site: self.evaluation_context(self.snapshot(site, self._guarded_store)),
            ingester=self._ingester,
            on_loss=self.tracker.start_over,
            on_error=self.log_fault,
        )

    @created_when_needed
    def _policy(self) -> ListingPolicy:
        from .listing.policy import ListingPolicy

        return ListingPolicy(self.options, self._probe_failure)

    @created_when_needed
    def _entries(self) -> EntryBuilder:
        from .listing.entries_by_section import EntryBuilder

        return EntryBuilder(self.options, self._policy, self.providers)

    @created_when_needed
    def _publisher(self) -> Publisher:
        from .rendering.publisher import Publisher

        return Publisher(self._entries, self._guarded_store, self.options, self._store_clock)

    @created_when_needed
    def robots_txt(self) -> RobotsTxt:
        """The app's robots.txt."""
        from .robots import RobotsTxt

        return RobotsTxt(self.app_routes, self.options, self._guarded_store)

    @created_when_needed
    def unvisited_prober(self) -> UnvisitedPageProber:
        """Requests static routes that nobody has visited."""
        from .observation.unvisited_page_prober import UnvisitedPageProber

        return UnvisitedPageProber(
            self._entries, self._guarded_store, self.options, self._probe_client, self._observe_probe
        )

    @created_when_needed
    def refresher(self) -> Refresher:
        """Does what `refresh` asked for."""
        from .observation.refresh_on_demand import Refresher
        from .stores.requested_refreshes import RefreshMarkStore

        options = self.options
        return Refresher(
            RefreshMarkStore(
                self._guarded_store,
                options.site.store_key if options.site else "",
                options.clock,
                WorkerId(),
                has_one_host=options.site is not None,
            ),
            self.unvisited_prober if options.verify else None,
            options.clock,
            sections_of=self._sections_of,
            static_paths=lambda site: self._entries.refreshable_paths(
                self.evaluation_context(self.snapshot(site, self._guarded_store))
            ),
            may_probe=self._may_probe,
        )
