"""The service of one wrapped app. Both adapters call it; it is independent of WSGI and ASGI."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from .documents.changes import may_be_told, page_lookup
from .documents.crawler_fetches import CrawlerFetches
from .documents.handler import SitemapHandler
from .documents.no_sitemap_reasons import NoSitemapReasons
from .documents.publisher import Publisher
from .documents.robots import RobotsTxt
from .documents.xml import Document
from .evidence.page_verdict import Explanation, Verdict
from .exceptions import StoreError
from .http import urls
from .http.messages import DOCUMENT_SUFFIXES, AsyncCollector, CapturedResponse, Request
from .http.request_filter import COOKIE, FOREIGN_HOST, IgnoreReason, ignore_reason_of_line
from .http.robots_parser import ROBOTS_PATH
from .http.site_urls import loc_of
from .indexnow.sender import IndexNow
from .listing.candidates import SiteSnapshot
from .listing.entries import EntryBuilder
from .listing.evaluated_urls import EvaluatedUrl, PageChange, evaluated_urls
from .listing.explain import explain
from .listing.policy import ROBOTS_TXT_REASON, EvaluationContext, ListingPolicy
from .listing.provider_reader import Providers
from .listing.route_report import RouteReport, route_report
from .models import Site
from .observe.buffer import SHUTDOWN_TIMEOUT_SECONDS, ResponseBuffer
from .observe.ingest import Ingester
from .observe.prober import Prober
from .observe.refresh_marks import Refresher, RefreshMarks
from .observe.tracker import RequestKey, TrackedPage, Tracker
from .options.table import Options
from .routing.framework_detection import framework_app, is_debug
from .routing.route_table import AppRoutes
from .routing.site_resolver import SiteResolver
from .stores.base import Store
from .stores.breaker import GuardedStore
from .stores.default import FallbackStore, is_tested
from .stores.sqlite import MemoryStore
from .util import FaultLog, log

_MAX_PATH_CHARS: Final = 3 * urls.MAX_LOC_CHARS
"""Characters of the longest path that is tracked: a longer one has no loc, and would fill the memory."""


class SitemapService:
    """One wrapped app: its routes, the observations of its responses, and its sitemap.

    For every request, the adapters look up its page in `tracker.pages`. If it is not there, they call `observe`. Both
    must cost next to nothing. Requests for documents go to `sitemap_handler`.
    """

    # All parts are created, and so all modules that our threads need are imported, before one starts: a child that is
    # forked while a thread of its parent imports a module waits for that module without end.

    def __init__(self, app: Any, options: Options, store: Store) -> None:
        self.clock: Callable[[], float] = options.clock
        self.options = options
        self.store = store
        self.app_routes: AppRoutes = AppRoutes(app, options)
        self.log_fault: FaultLog = FaultLog()
        self._store_losses = 0
        self._guarded_store = GuardedStore(store, options.clock)  # type: ignore[abstract] # it sets its methods itself
        self.site_resolver: SiteResolver = SiteResolver(self.app_routes, options)
        buffer = ResponseBuffer(self._save, options.clock)
        self.tracker: Tracker = Tracker(buffer, options.clock, self.log_fault, self.ignore_reason)
        self.prober: Prober = Prober(self._guarded_store, options.clock, self._observe_own_request, self._may_request)
        self.providers: Providers = Providers(options.clock)
        self.robots_txt: RobotsTxt = RobotsTxt(self.app_routes, options, self._guarded_store)
        self._policy = ListingPolicy(options, self.prober.failure_of)
        self._entries = EntryBuilder(options, self._policy, self.providers)
        self._publisher = Publisher(
            entries=self._entries,
            store=self._guarded_store,
            options=options,
            on_loss=self._learn_again,
            ask=self._ask,
            ask_again=self._ask_again,
        )
        self._ingester = Ingester(
            app_routes=self.app_routes,
            store=self._guarded_store,
            providers=self.providers,
            options=options,
            tracker=self.tracker,
            prober=self.prober,
            site_resolver=self.site_resolver,
        )
        self.refresher: Refresher = Refresher(
            self._guarded_store,
            options.site.store_key if options.site else "",
            options.clock,
            sections_of=self._sections_of,
            wake=buffer.wake,
        )
        self.indexnow: IndexNow = IndexNow(
            options=options,
            store=self._guarded_store,
            site_resolver=self.site_resolver,
            robots_txt=self.robots_txt,
            publisher=self._publisher,
            refresher=self.refresher,
            public_locs=self._public_locs,
            ask=self._ask,
            unfit_reason=self._unfit_reason,
        )
        self.sitemap_handler: SitemapHandler = SitemapHandler(
            options=options,
            app_routes=self.app_routes,
            site_resolver=self.site_resolver,
            robots=self.robots_txt,
            publisher=self._publisher,
            buffer=buffer,
            refresher=self.refresher,
            indexnow=self.indexnow,
            reasons=NoSitemapReasons(options, self._guarded_store),
            crawler_fetches=CrawlerFetches(self._guarded_store, options.clock),
            public_locs=self._public_locs,
            has_pages=self._ingester.has_pages,
            request_pages=self._request_pages,
            is_asked=self.prober.is_asked,
            log_fault=self.log_fault,
        )
        _services.add(self)

    def in_memory(self, **options: Any) -> SitemapService:
        """A service of the same app that keeps what it learns in memory, with some options changed."""
        return SitemapService(self.app_routes.app, replace(self.options, indexnow=False, **options), MemoryStore())

    def with_site(self, site: Site) -> SitemapService:
        """A service of the same app and store whose `base_url` is another site's."""
        return SitemapService(self.app_routes.app, replace(self.options, site=site, site_of_host=None), self.store)

    # A page request

    def observe(self, request: Request, key: RequestKey) -> TrackedPage | None:
        """Track the page that a request is for, before the app runs; None if the request is not evidence.

        Only a request that an anonymous crawler could have sent for the whole page is
        evidence. Others are counted by reason. The adapter looks up the page of the next such request by the key.
        """
        reason = self.ignore_reason(request)
        if reason is not None:
            self.tracker.ignored.count(request.path, reason)
            return None
        if len(request.path) > _MAX_PATH_CHARS or request.path == ROBOTS_PATH or self.options.is_report(request.path):
            return None
        site, trust = self.site_resolver.resolve_request(request)
        if site is None or trust == "none":
            self.tracker.ignored.count(request.path, FOREIGN_HOST)
            return None
        if self.options.verify:
            self.prober.remember(site, request)
        # Requests that may be for a sitemap document are never looked up, so the handler sees each of them.
        is_document = request.path.endswith(DOCUMENT_SUFFIXES)
        key_or_none = None if is_document else key
        return self.tracker.track(key_or_none, site, request.path, is_foreign_host=trust == "foreign")

    def ignores(self, path: str, *, has_cookie: bool) -> bool:
        """Whether a request surely is of no use, by its path below the root: then it is counted.

        It spares the request of a visitor who carries a cookie to be read as a whole.
        """
        if not has_cookie or path.endswith(DOCUMENT_SUFFIXES) or self.options.is_report(path):
            return False
        self.tracker.ignored.count(path, COOKIE)
        return True

    def sends_noindex(self, root: str) -> bool:
        """Whether responses below a root path say noindex: crawlers read no robots.txt there that could hide them."""
        robots = self.options.robots
        return robots == "noindex" or (robots == "disallow" and bool(root or self.app_routes.root_path))

    def ignore_reason(self, request: Request) -> IgnoreReason | None:
        """Why a request is not evidence, by its line, its headers and its user; None if it is."""
        return (
            ignore_reason_of_line(request.method, query=bool(request.query))
            or request.ignore_reason()
            or (FOREIGN_HOST if self.site_resolver.is_for_foreign_host(request) else None)
        )

    def refresh(self, path: str | None = None, *, is_changed: bool = False) -> None:
        """Have a decoded path, or everything, brought up to date with the next request for the sitemap.

        IndexNow is told of a path that `is_changed`.
        """
        self.refresher.refresh(path, is_changed=is_changed and self.options.indexnow is not False)
        self._publisher.expire()

    def _public_locs(self, site: Site, since: Mapping[str, float | None], gone: bool) -> set[str]:
        """Those of some locs that everyone may hear of now; none before robots.txt was read. See `PublicLocs`."""
        saved = self.robots_txt.saved_rules(site) if since else None
        if saved is None:
            return set()
        rules, read_at = saved
        snapshot, types = replace(self.snapshot(site), rules=rules), self.options.media_types
        return {
            loc
            for loc, page in page_lookup(self._policy, snapshot)(since).items()
            if (since[loc] or 0) < read_at and may_be_told(page, types, snapshot.now, since=since[loc], gone=gone)
        }

    def _unfit_reason(self) -> str | None:
        """Why search engines are not to hear of changes from here; None if they may."""
        app = framework_app(self.app_routes.app)
        if is_debug(app) or is_tested(app):
            return "the app is in debug mode or under test"
        if self._is_in_memory():
            return "the store is memory, so each worker would have a key of its own: name a store"
        return None

    def _is_in_memory(self) -> bool:
        store = self.store
        return isinstance(store.effective_store if isinstance(store, FallbackStore) else store, MemoryStore)

    def _ask(self, site: Site, paths: Iterable[str]) -> None:
        """Have decoded paths requested, if the app may be asked."""
        if self.options.verify:
            self.prober.ask(site, paths)

    def _ask_again(self, site: Site, paths: Iterable[str], *, at_once: bool) -> None:
        if self.options.verify:
            self.prober.ask_again(site, paths, at_once=at_once)

    def _learn_again(self, site: Site) -> None:
        """Learn again what the store has lost of a site."""
        self._store_losses += 1
        self.tracker.sampler.forget_all()
        self._ingester.forget_asked()
        self.prober.forget(site)

    # The end of a process

    def flush(self) -> None:
        """Save pending observations, and send what is due to IndexNow."""
        self.save_pending()
        self.indexnow.run()

    def close(self, timeout: float = SHUTDOWN_TIMEOUT_SECONDS) -> None:
        """Save pending observations and calls of `refresh`, stop the background thread and close the store."""
        self.stop_background_work()
        self._guarded_store.retry_now()
        self.tracker.buffer.close(timeout)
        try:
            self.store.close()
        except Exception as error:
            log.debug("store not closed: %s", error)

    def stop_background_work(self) -> None:
        """Start no more background work, so that a server can shut down soon. Does not wait for running work."""
        for part in (self.prober, self._publisher, self.providers):
            part.close()

    # What runs in the background

    def _save(self, batch: list[CapturedResponse]) -> None:
        """Save what `refresh` asked for, and a batch of captured responses. Called on the background thread."""
        self.refresher.save()
        self.sitemap_handler.crawler_fetches.save()
        self.indexnow.wake()
        if not batch:
            return
        try:
            self._ingester.ingest(batch)
        finally:
            self._publisher.expire()
            self.tracker.forget()  # a host may be another site's by now, and the prober gets a recent request

    def _sections_of(self, path: str) -> set[str]:
        """The names of the sections whose providers may give a decoded path.

        They are those of its route, or else those that give pages of any route.
        """
        table = self.app_routes.reload()
        names = set()
        for site in self.site_resolver.sites():
            route = table.find_route(site, path)
            values = route.settings.values if route else None
            for name, (provider, _) in table.providers(site).items():
                if provider is values or (values is None and provider.any_route):
                    names.add(name)
        return names

    def _request_pages(self, request: Request, site: Site, marks: RefreshMarks) -> None:
        """Request pages from the app, behind a request for the sitemap or within it."""

        def unvisited() -> list[str]:
            context = self.evaluation_context(self.snapshot(site))
            paths = self._entries.paths_to_request(context, observed=False)
            # One page has to show that the app knows a host, which a client may have invented.
            return paths if self._ingester.has_pages(site) else [*paths, *self._entries.provided_examples(context)]

        def static_paths() -> list[str]:
            return self._entries.paths_to_request(self.evaluation_context(self.snapshot(site)), observed=True)

        # Other paths wait: a `Sitemap` class of Django may give them once it was read again.
        known = {path: token for path, token in marks.pages.items() if self.app_routes.table.find_route(site, path)}
        marks = replace(marks, pages=known)
        try:
            self.prober.run(request, site, unvisited, partial(self.refresher.take_pages, site, marks, static_paths))
        except StoreError as error:  # the last good sitemap is served meanwhile
            log.debug("pages are not requested: %s", error)

    def _may_request(self, site: Site, path: str) -> bool:
        """Whether a decoded path of a site may be requested from the app."""
        route, loc = self.app_routes.table.find_route(site, path), loc_of(site, urls.quote_path(path) or "")
        return (
            route is not None
            and loc is not None
            and self._policy.may_be_probed(route, path)
            and self.robots_txt.cached_rules(site).allows(loc)
        )

    def _observe_own_request(self, captured: CapturedResponse) -> None:
        """Record the app's response to a request of the middleware itself."""
        root = unquote(captured.site.root)
        captured.is_foreign_host = self.site_resolver.resolve(captured.site.scheme, captured.host, root)[1] == "foreign"
        self.tracker.buffer.record(captured)

    # What people ask. It sends no request to the app, and writes nothing but pending observations.

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
        page = explanation.page
        ignored = self.tracker.ignored.summary(path, known=page is not None)
        note = self.not_served_reason()
        if note is None and (failing := {*self._publisher.sitemap(site).failing.values()}):
            note = f"the sitemap has the last good pages, or none, of what fails: {'; '.join(sorted(failing))}"
        return replace(explanation, ignored=ignored, note=note)

    def _explain(self, path: str, snapshot: SiteSnapshot) -> Explanation:
        explanation = explain(self._entries, self.evaluation_context(snapshot), self.options.media_types, path)
        is_document = self.sitemap_handler.is_document(path) or path == self.options.feed
        if not self.options.enabled:
            return Explanation(path, explanation.loc, False, "the middleware is turned off", route=explanation.route)
        if path == ROBOTS_PATH:
            reason = ROBOTS_TXT_REASON
        elif is_document and not snapshot.table.has_explicit_route(path):
            reason = "it is a document of the sitemap, which the middleware serves"
        else:
            return explanation
        return Explanation(path, explanation.loc, False, reason)

    def not_served_reason(self) -> str | None:
        """Why requests for the sitemap are not answered with it; None if they are."""
        path = self.options.path
        if not self.options.enabled:
            return f"{self.options.settings['enabled'].place}=False turns the middleware off, so nothing is observed"
        if self.options.hides_all:
            place = self.options.settings["robots"].place
            return f'{place}="{self.options.robots}" keeps the site out of search engines, so there is no sitemap'
        is_kept = self.app_routes.table.has_explicit_route(path)
        return f"the app's own route for {path} is served, and not this sitemap" if is_kept else None

    def evaluation_context(self, snapshot: SiteSnapshot) -> EvaluationContext:
        """Add to a snapshot what the evaluation of its candidates depends on. Writes nothing."""
        store, store_key = snapshot.store, snapshot.site.store_key
        parts, version = store.parts(store_key), store.version(store_key)
        return self._entries.evaluation_context(snapshot, parts, version)

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

        Why a provider fails, or which items are wrong, is added to `failures`. Without that, `ValuesError` is raised.
        """
        for snapshot in snapshots:
            context = self.evaluation_context(snapshot)
            yield from evaluated_urls(self._entries, context, self.options.media_types, self._trouble_of, failures)

    def _trouble_of(self, site: Site, path: str, since: int) -> tuple[str, float | None]:
        """Why the last request for a decoded path has failed since a POSIX time, and how long a slow one took."""
        own, failures = self.prober.result_of(site, path), list[tuple[float, str]]()
        if own is not None:
            failures.append((own.at, own.failure and f"the last request of the middleware {own.failure}"))
        if (of_visitor := self.tracker.errors.get((site.store_key, path))) is not None:
            failures.append((of_visitor[1], of_visitor[0] and f"it {of_visitor[0]}"))
        at, failure = max(failures, default=(0.0, ""))
        return failure if at >= since else "", own and own.slow_seconds

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
            "store_losses": self._store_losses,
            "store_in_memory": int(self._is_in_memory()),
            "store_seconds": self._guarded_store.seconds,
            "unavailable_responses": self.sitemap_handler.unavailable_responses,
            "values_age_seconds": max((sitemap.values_age for sitemap in sitemaps), default=0.0),
            **{f"ignored_{reason}": count for reason, count in self.tracker.ignored.counts.items()},
        }


_services: Final = weakref.WeakSet[SitemapService]()
"""Those of this process, whose pending observations are saved when it ends normally."""


def _begin_shutdown() -> None:
    for service in list(_services):
        with contextlib.suppress(Exception):
            service.stop_background_work()


def close_all() -> None:
    """Have all services save at the same time, before one deadline.

    A process that a signal ends at once loses the observations of the last seconds, as by kill -9: handlers of signals
    are the app's.
    """
    services, deadline = list(_services), time.monotonic() + SHUTDOWN_TIMEOUT_SECONDS
    for service in services:
        service.tracker.buffer.stop()
    for service in services:
        with contextlib.suppress(Exception):
            service.close(max(0.0, deadline - time.monotonic()))


atexit.register(close_all)
# `threading._register_atexit` (since Python 3.9) is called before non-daemon threads, such as AnyIO's, are joined.
# Without it, `atexit` calls the function after that, and the exit may wait for requests that run in the background.
getattr(threading, "_register_atexit", atexit.register)(_begin_shutdown)
