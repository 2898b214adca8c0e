"""`ServiceInspection`: the methods of the service that people call, such as explain and stats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from ..evidence.page_verdict import Explanation, Verdict
from ..http import urls
from ..http.messages import AsyncCollector
from ..http.robots_parser import ROBOTS_PATH
from ..indexnow import IndexNow
from ..listing.candidates import SiteSnapshot
from ..listing.entries import EntryBuilder
from ..listing.evaluated_urls import EvaluatedUrl, PageChange, evaluated_urls
from ..listing.explain import explain
from ..listing.policy import ROBOTS_TXT_REASON, EvaluationContext
from ..listing.route_report import RouteReport, route_report
from ..models import Site
from ..observe.ingest import Ingester
from ..observe.tracker import Tracker
from ..options.table import Options
from ..routing.current_routes import AppRoutes
from ..routing.hosts import SiteResolver
from ..stores.base import Store
from ..stores.breaker import GuardedStore
from .handler import SitemapHandler
from .publisher import Publisher
from .robots import RobotsTxt
from .xml import Document


class ServiceInspection:
    """The methods of the service that answer people's questions.

    They send no request to the app, and write nothing but pending observations.
    """

    clock: Callable[[], float]
    options: Options
    store: Store
    app_routes: AppRoutes
    tracker: Tracker
    site_resolver: SiteResolver
    _entries: EntryBuilder
    _guarded_store: GuardedStore
    robots_txt: RobotsTxt
    sitemap_handler: SitemapHandler
    indexnow: IndexNow
    _publisher: Publisher
    _ingester: Ingester

    def save_pending(self) -> None:
        """Save pending observations, and treat all cached documents as outdated. If saving fails, they stay pending."""
        self.tracker.buffer.try_flush()
        self._publisher.expire()

    def explain(self, path: str, snapshot: SiteSnapshot | None = None) -> Explanation:
        """Explain why a decoded path is listed or not.

        Without a snapshot it is of the default site (`SiteResolver.default_site`) now, after a flush.
        """
        if snapshot is not None:
            return self._explain(path, snapshot)
        self.save_pending()
        site = self.site_resolver.default_site()
        self.complete_routes(site)
        explanation = self._explain(path, self.snapshot(site))
        if not self.options.enabled:
            explanation = Explanation(
                path, explanation.loc, False, "the middleware is turned off", route=explanation.route
            )
        page = explanation.page
        ignored = self.tracker.ignored.summary(path, known=page is not None)
        note = self.not_served_reason()
        if note is None and (failing := {*self._publisher.sitemap(site).failing.values()}):
            note = f"the sitemap has the last good pages, or none, of what fails: {'; '.join(sorted(failing))}"
        return replace(explanation, ignored=ignored, note=note)

    def _explain(self, path: str, snapshot: SiteSnapshot) -> Explanation:
        explanation = explain(self._entries, self.evaluation_context(snapshot), self.options.media_types, path)
        if path == ROBOTS_PATH:
            return Explanation(path, explanation.loc, False, ROBOTS_TXT_REASON)
        if snapshot.table.has_explicit_route(path):
            return explanation
        if self.sitemap_handler.is_document(path) or path == self.options.feed:
            return Explanation(
                path, explanation.loc, False, "it is a document of the sitemap, which the middleware serves"
            )
        return explanation

    def not_served_reason(self) -> str | None:
        """Why requests for the sitemap are not answered with it; None if they are."""
        path = self.options.path
        if not self.options.enabled:
            return f"{self.options.settings['enabled'].place}=False turns the middleware off, so nothing is observed"
        if self.options.hides_all:
            place = self.options.settings["robots"].place
            return f'{place}="{self.options.robots}" keeps the site out of search engines, so there is no sitemap'
        return (
            f"the app's own route for {path} is served, and not this sitemap"
            if self.app_routes.table.has_explicit_route(path)
            else None
        )

    def evaluation_context(self, snapshot: SiteSnapshot) -> EvaluationContext:
        """Add to a snapshot what the evaluation of its candidates depends on. Writes nothing."""
        store, store_key = snapshot.store, snapshot.site.store_key
        parts, version = store.parts(store_key), store.version(store_key)
        return self._entries.evaluation_context(snapshot, parts, version, learning=False)

    def route_report(self, snapshots: Sequence[SiteSnapshot]) -> list[RouteReport]:
        """Report on every route of these sites, and on every pattern of the options."""
        reports = [
            report
            for snapshot in snapshots
            for report in route_report(self._entries, self.options, self.evaluation_context(snapshot))
        ]
        hosts = {snapshot.site.routed for snapshot in snapshots}
        elsewhere = Verdict(False, "it answers on none of the hosts looked at")
        return reports + [
            RouteReport(None, route, elsewhere)
            for route in snapshots[0].table.routes
            if not any(map(route.answers_on, hosts))
        ]

    def url_report(
        self, snapshots: Sequence[SiteSnapshot], failures: list[str] | None = None
    ) -> Iterator[EvaluatedUrl]:
        """Every known URL of these sites, listed or not. Raises `StoreError`.

        Why a provider fails is added to `failures`. Without that, `ValuesError` is raised.
        """
        for snapshot in snapshots:
            context = self.evaluation_context(snapshot)
            yield from evaluated_urls(self._entries, context, self.options.media_types, failures)

    def changes(
        self, snapshots: Sequence[SiteSnapshot], since: int, failures: list[str] | None = None
    ) -> Iterator[PageChange]:
        """What changed in the sitemaps of these sites since a POSIX time. Raises like `url_report`."""
        return filter(None, (item.change(since) for item in self.url_report(snapshots, failures)))

    def snapshot(self, site: Site, store: Store | None = None) -> SiteSnapshot:
        """The inputs of a site's sitemap now, with its pages from this store, by default the app's own."""
        store = self._guarded_store if store is None else store
        now = self._guarded_store.time() if store is self._guarded_store else int(self.clock())
        return SiteSnapshot(site, self.app_routes.reload(), store, self.robots_txt.cached_rules(site, store), now)

    def published_documents(self, site: Site) -> Mapping[str, Document]:
        """The documents of a site as they were last brought up to date, by path; the index first if there is one."""
        return self._publisher.sitemap(site).documents()

    def complete_routes(self, site: Site, async_collector: AsyncCollector | None = None) -> None:
        """Complete the routes as the first request for the sitemap does. It may call `values`.

        Without `async_collector`, async ones are read on a separate loop.
        """
        self._entries.complete_routes(site, self.app_routes.reload(), async_collector)

    def sites(self, wanted: Site | None = None) -> list[Site]:
        """A site, by default that of base_url or localhost, and the sites of the hosts that options and routes name.

        If base_url excludes the wanted site, there are none. Of a base_url that is a function, only that one is known.
        """
        base = self.options.site
        first = wanted or base or Site("http", "localhost", loopback=True)
        root = unquote(first.root) or self.app_routes.root_path
        main, standing = self.site_resolver.resolve(first.scheme, first.host, root, may_block=True)
        if standing != "own" or main is None:
            if base is not None or (wanted and self.options.site_of_host):
                return []
            main = Site(first.scheme, first.host, urls.root_of(root) or "", first.loopback)
        hosts = [base.host] if base else []
        hosts += sorted(host for host in self.app_routes.table.hosts if not host.startswith("*"))
        others = (self.site_resolver.resolve(main.scheme, host, root, may_block=True)[0] for host in hosts)
        by_host = {main.routed: main}
        for other in others:
            if other is not None:
                by_host.setdefault(other.routed, other)
        return list(by_host.values())

    def stats(self) -> dict[str, float]:
        """Counters since the process started, and gauges. `figures.FIGURES` has both."""
        sitemaps = self._publisher.sitemaps()
        return {
            "seen": self.tracker.buffer.seen,
            "dropped": self.tracker.buffer.dropped,
            "merged": self._ingester.merged,
            "refused": self._ingester.refused,
            "unwritable": self._ingester.unwritable,
            "skipped": self._entries.skipped_items(),
            "listed": sum(sitemap.entry_count() for sitemap in sitemaps),
            "indexnow_sent": self.indexnow.sent,
            "indexnow_pending": self.indexnow.pending,
            "indexnow_state": self.indexnow.state,
            "documents": sum(len(sitemap.documents()) for sitemap in sitemaps),
            "pending": self.tracker.buffer.pending,
            "last_flush_age_seconds": self.tracker.buffer.last_flush_age_seconds,
            "store_failures": self._guarded_store.failures,
            "store_seconds": self._guarded_store.seconds,
            "unavailable_responses": self.sitemap_handler.unavailable_responses,
            "values_age_seconds": max((sitemap.values_age for sitemap in sitemaps), default=0.0),
            **{f"ignored_{reason}": count for reason, count in self.tracker.ignored.counts.items()},
        }
