"""The service of one wrapped app. Both adapters call it; it is independent of WSGI and ASGI."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from .documents.changes import may_be_told, page_lookup
from .documents.handler import SitemapHandler
from .documents.inspection import ServiceInspection
from .documents.no_sitemap_reasons import NoSitemapReasons
from .documents.publisher import Publisher
from .documents.robots import RobotsTxt
from .exceptions import StoreError
from .http import urls
from .http.messages import DOCUMENT_SUFFIXES, CapturedResponse, Request
from .http.proxies import forwarded_hosts
from .http.request_filter import COOKIE, FOREIGN_HOST, IgnoreReason, ignore_reason_of_line
from .http.robots_parser import ROBOTS_PATH
from .indexnow import IndexNow
from .listing.entries import EntryBuilder
from .listing.policy import EvaluationContext, ListingPolicy
from .listing.provider_reader import Providers
from .models import Site
from .observe.buffer import SHUTDOWN_TIMEOUT_SECONDS, ResponseBuffer
from .observe.ingest import Ingester
from .observe.prober import Prober
from .observe.refresh_marks import Refresher, RefreshMarks
from .observe.tracker import RequestKey, TrackedPage, Tracker
from .options.table import Options
from .report.request_handler import ReportHandler
from .routing.current_routes import AppRoutes
from .routing.framework_detection import framework_app, is_debug
from .routing.hosts import SiteResolver
from .stores.base import Store
from .stores.breaker import GuardedStore
from .stores.default import FallbackStore, is_tested
from .stores.sqlite import MemoryStore
from .util import FaultLog, log

_MAX_PATH_CHARS: Final = 3 * urls.MAX_LOC_CHARS
"""Characters of the longest path that is tracked: a longer one has no loc, and would fill the memory."""


class SitemapService(ServiceInspection):
    """One wrapped app: its routes, the observations of its responses, and its sitemap.

    For every request, the adapters look up its page in `tracker.pages`. If it is not
    there, they call `observe`. Both must cost next to nothing. Requests for documents
    go to `sitemap_handler`.
    """

    # All parts are created, and so all modules that our threads need are imported, before one starts: a child that is
    # forked while a thread of its parent imports a module waits for that module without end.

    def __init__(self, app: Any, options: Options, store: Store) -> None:
        self.clock: Callable[[], float] = options.clock
        self.options = options
        self.store = store
        self.app_routes: AppRoutes = AppRoutes(app, options)
        self.log_fault: FaultLog = FaultLog()
        self._guarded_store = GuardedStore(store, options.clock)  # type: ignore[abstract] # it sets its methods itself
        self.site_resolver: SiteResolver = SiteResolver(self.app_routes, options)
        buffer = ResponseBuffer(self._save, options.clock)
        self.tracker: Tracker = Tracker(buffer, options.clock, self.log_fault, self.ignore_reason)
        self.prober: Prober = Prober(self._guarded_store, options.clock, self._observe_own_request, self._may_request)
        self.report: ReportHandler = ReportHandler(self)
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
            now=self._guarded_store.time,
            site=self.site_resolver.default_site,
            changes=self._publisher.changes,
            named=self.refresher.changed,
            public_locs=self._public_locs,
            ask=self._ask,
            rules=lambda site: self.robots_txt.cached_rules(site, self._guarded_store),
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
            public_locs=self._public_locs,
            has_pages=self._ingester.has_pages,
            request_pages=self._request_pages,
            on_error=self.log_fault,
        )
        _services.add(self)

    def _evaluation_context_now(self, site: Site) -> EvaluationContext:
        return self.evaluation_context(self.snapshot(site))

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
        if len(request.path) > _MAX_PATH_CHARS or request.path == ROBOTS_PATH or self.report.handles(request.path):
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
        if not has_cookie or path.endswith(DOCUMENT_SUFFIXES) or self.report.handles(path):
            return False
        self.tracker.ignored.count(path, COOKIE)
        return True

    def ignore_reason(self, request: Request) -> IgnoreReason | None:
        """Why a request is not evidence, by its line, its headers and its user; None if it is."""
        return (
            ignore_reason_of_line(request.method, query=bool(request.query))
            or request.ignore_reason()
            or self._ignore_reason_of_hosts(request)
        )

    def _ignore_reason_of_hosts(self, request: Request) -> IgnoreReason | None:
        """Why a request is not evidence if its Host is the site's own, but other headers name a foreign host.

        An app that trusts those headers answers for the foreign host.
        """
        others = {host for host in forwarded_hosts(request.headers) if host.lower() != request.host.lower()}
        if not others:
            return None
        site, trust = self.site_resolver.resolve_request(request)
        if site is None:
            return FOREIGN_HOST
        if trust != "own":
            return None  # the Host may be a proxy's internal name of the app
        is_own = all(self.site_resolver.is_own_host(site, request.host, host) for host in others)
        return None if is_own else FOREIGN_HOST

    def refresh(self, path: str | None = None) -> None:
        """Have a decoded path, or everything, brought up to date with the next request for the sitemap."""
        self.refresher.refresh(path)
        self._publisher.expire()

    def changed(self, path: str) -> None:
        """Refresh a decoded path, and have IndexNow told of it."""
        self.refresher.refresh(path, is_changed=self.options.indexnow is not False)
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
        app, store = framework_app(self.app_routes.app), self.store
        if is_debug(app) or is_tested(app):
            return "the app is in debug mode or under test"
        if isinstance(store.effective_store if isinstance(store, FallbackStore) else store, MemoryStore):
            return "the store is memory, so each worker would have a key of its own: name a store"
        return None

    def _ask(self, site: Site, paths: Iterable[str]) -> None:
        """Have decoded paths requested, if the app may be asked."""
        if self.options.verify:
            self.prober.ask(site, paths)

    def _learn_again(self, site: Site) -> None:
        """Learn again what the store has lost of a site."""
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
        self.indexnow.wake()
        if not batch:
            return
        try:
            self._ingester.ingest(batch)
        finally:
            self._publisher.expire()
            self.tracker.forget()  # a host may be another site's by now, and the prober gets a recent request

    def _sections_of(self, path: str) -> set[str]:
        """The names of the sections whose providers give the pages of the route of a decoded path."""
        table = self.app_routes.reload()
        names = set()
        for site in self.sites():
            route = table.find_route(site, path)
            if route is not None and route.settings.values is not None:
                provided = table.providers(site).items()
                names |= {name for name, (provider, _) in provided if provider is route.settings.values}
        return names

    def _request_pages(self, request: Request, site: Site, marks: RefreshMarks) -> None:
        """Request pages from the app, behind a request for the sitemap or within it."""

        def unvisited() -> list[str]:
            context = self._evaluation_context_now(site)
            paths = self._entries.paths_to_request(context, observed=False)
            # One page has to show that the app knows a host, which a client may have invented.
            return paths if self._ingester.has_pages(site) else [*paths, *self._entries.provided_examples(context)]

        def static_paths() -> list[str]:
            return self._entries.paths_to_request(self._evaluation_context_now(site), observed=True)

        def marked() -> list[str]:
            return self.refresher.take_pages(site, marks, static_paths)

        try:
            self.prober.run(request, site, unvisited, marked)
        except StoreError as error:  # the last good sitemap is served meanwhile
            log.debug("pages are not requested: %s", error)

    def _may_request(self, site: Site, path: str) -> bool:
        """Whether a decoded path of a site may be requested from the app."""
        route, loc = self.app_routes.table.find_route(site, path), urls.loc_of(site, urls.quote_path(path) or "")
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
