"""Answers requests for the sitemap's documents and for /robots.txt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Final

from ..exceptions import StoreError
from ..http.messages import (
    DOCUMENT_SUFFIXES,
    GENERATING_HEADER,
    TEST_CLIENT_WAIT_SECONDS,
    Request,
    Response,
)
from ..http.robots_parser import DISALLOW_ALL, ROBOTS_PATH
from ..listing.policy import EvaluationContext
from ..models import Site, StoreKey
from ..observe.buffer import ResponseBuffer
from ..observe.ingest import Ingester
from ..observe.refresh_on_demand import Refresher
from ..observe.unvisited_page_prober import UnvisitedPageProber
from ..options.table import Options
from ..routing.current_routes import AppRoutes
from ..routing.hosts import SiteResolver
from ..routing.route_table import RouteTable
from .background import BeingGenerated, Unavailable
from .document import Document
from .publisher import DEADLINE_SECONDS, Publisher
from .reasons import (
    DISALLOWED_REASON,
    ROBOTS_UNKNOWN_REASON,
    UNTRUSTED_HOST_REASON,
    UNTRUSTED_ROOT_REASON,
    NoSitemapReasons,
)
from .responses import HeaderFields, document_response, error_response, text_response
from .robots import RETRY_SECONDS, RobotsTxt, RobotsUnknown

FRESH_SECONDS: Final = 1.0
"""Seconds for which documents are served without reading the store."""

FLUSH_WAIT_SECONDS: Final = 2.0
"""Seconds that a request for the sitemap waits for a flush, or a reading of the store, in progress: it may hang."""

UNAVAILABLE_RETRY_SECONDS: Final = 60
"""Retry-After, in seconds, of a sitemap that cannot be made now."""

log: logging.Logger = logging.getLogger("sitemap_middleware")


class SitemapHandler:
    """Finds the site of a request, and serves its document: from the cache if it is fresh, else brought up to date."""

    def __init__(
        self,
        *,
        options: Options,
        app_routes: AppRoutes,
        site_resolver: SiteResolver,
        robots: RobotsTxt,
        publisher: Publisher,
        buffer: ResponseBuffer,
        prober: UnvisitedPageProber,
        refresher: Refresher,
        reasons: NoSitemapReasons,
        evaluation_context: Callable[[Site], EvaluationContext],
        ingester: Ingester,
        on_loss: Callable[[], object],
        on_error: Callable[[str, Exception], None],
    ) -> None:
        """Wire the parts together.

        Args:
            options: checked options.
            app_routes: the app's routes.
            site_resolver: finds the site of a request, and decides whether it may have documents in the store.
            robots: the app's robots.txt.
            publisher: makes documents.
            buffer: observations that are not in the store yet.
            prober: requests pages that nobody has visited.
            refresher: knows what `refresh` asked for.
            reasons: explains why a site has no sitemap.
            evaluation_context: what is known of a site now.
            ingester: counts the observations that this process has merged into the store.
            on_loss: called when the store has lost what it held of a site.
            on_error: logs an error of the middleware itself, raised while a request is served.
        """
        self._options = options
        self._clock = options.clock
        self._app_routes = app_routes
        self._site_resolver = site_resolver
        self._robots = robots
        self._publisher = publisher
        self._buffer = buffer
        self._prober = prober
        self._refresher = refresher
        self._reasons = reasons
        self._evaluation_context = evaluation_context
        self._on_loss = on_loss
        self._on_error = on_error
        self._ingester = ingester
        self._flushes = 0
        self.unavailable_responses: int = 0
        """Requests answered 503 since the process began."""
        self._unavailable_since_good: dict[StoreKey, str] = {}
        """By site: why the sitemap cannot be made, if that was so at the last request for it."""

    def may_be_document(self, request: Request) -> bool:
        """Whether a request may be for a document or robots.txt, by its path alone. If not, it never will be."""
        path = request.path
        return path.endswith(DOCUMENT_SUFFIXES) and (path == ROBOTS_PATH or self._publisher.paths.may_have(path))

    def handles(self, request: Request) -> bool:
        """Whether the middleware may answer this request, by its method and path. It costs almost nothing."""
        try:
            path = request.path
            if not path.endswith(DOCUMENT_SUFFIXES) or request.method not in ("GET", "HEAD"):
                return False
            if path == ROBOTS_PATH:
                return self._options.disallows_all
            is_document = self._publisher.paths.have(path, self._app_routes.table.provider_names)
            return is_document and not self._app_routes.keeps(path, "SitemapMiddleware")
        except Exception as error:
            self._on_error("a request could not be looked at", error)
            return False

    def amends(self, request: Request) -> bool:
        """Whether a request is for robots.txt, which the app answers, and `amended` adds to."""
        return (
            request.path.endswith(ROBOTS_PATH)
            and request.path == ROBOTS_PATH
            and request.method in ("GET", "HEAD")
            and self._options.robots is True
            and not request.root
        )

    def amended(self, request: Request, answer: Response) -> Response | None:
        """What to send in place of the app's response for robots.txt; None if that is sent as it is. It may block."""
        try:
            table = self._app_routes.reload()
            site, _ = self._site_resolver.resolve_request(request)
            if site is None or site.root or not self._site_resolver.may_store(site):
                return None
            self._buffer.ensure_thread()
            self._reasons.warn_of_unmatched(table)
            return self._robots.respond(
                site, request, answer, self._clock(), lambda: self._has_entries(site, table, request)
            )
        except StoreError as error:  # the circuit breaker has logged it
            log.debug("robots.txt names no sitemap: %s", error)
        except Exception as error:
            self._on_error("robots.txt could not be amended", error)
        return None

    def cached_response(self, request: Request) -> Response | None:
        """The response if its document is in memory and fresh, else None. It never blocks: it runs on event loops."""
        try:
            if request.method not in ("GET", "HEAD") or not self.may_be_document(request) or not self._buffer.is_idle:
                return None
            site, _ = self._site_resolver.resolve_request(request)
            document = None if site is None else self._publisher.fresh_document(site, request.path, self._generation)
            return None if document is None else self._response(document, request)
        except Exception as error:
            self._on_error("a request for the sitemap could not be looked at", error)
            return None

    @property
    def _generation(self) -> int:
        """A number that grows with every flush and change of routes: a document made before may be out of date."""
        return self._flushes + self._ingester.merged + self._app_routes.version

    def _response(self, document: Document, request: Request) -> Response:
        return document_response(document, request.conditions, self._clock(), self._options.max_age)

    def handle(self, request: Request) -> Response | None:
        """The response to a request that `handles` accepts; None if the app must answer it. It may block."""
        try:
            return self._respond(request)
        except Unavailable as error:
            fields = [GENERATING_HEADER] if isinstance(error, BeingGenerated) else []
            return self._unavailable(request, _reason_of(error), fields=fields)
        except RobotsUnknown as error:
            return self._unavailable(request, _reason_of(error), RETRY_SECONDS)
        except StoreError as error:  # the circuit breaker has logged it
            log.debug("the sitemap cannot be made: %s", error)
            return self._unavailable(request, _reason_of(error))
        except Exception:
            log.exception("the sitemap could not be made")
            return self._unavailable(request, "internal error, see the log")

    def unavailable_reason(self, site: Site) -> str | None:
        """Why the latest request for a document of a site was answered 503; None if it was not."""
        reason = self._unavailable_since_good.get(site.store_key)
        return None if reason is None else f"the sitemap itself was answered with 503 at its latest request: {reason}"

    def bring_up_to_date(self, site: Site, request: Request) -> None:
        """Bring the documents of a site up to date, as a request for the sitemap does. It may block.

        Raises:
            Unavailable: there is no earlier document, and it cannot be made now.
            RobotsUnknown: the app's robots.txt cannot be read.
            StoreError: the store fails.
        """
        self._buffer.ensure_thread()
        self._find_document(site, self._app_routes.reload(), request, self._options.path, serves_it=False)

    def flush(self) -> None:
        """Save pending observations. If that fails, they stay pending, and the sitemap is made without them."""
        self._buffer.try_flush(FLUSH_WAIT_SECONDS)

    def expire(self) -> None:
        """Treat all cached documents as outdated."""
        self._flushes += 1

    def _respond(self, request: Request) -> Response | None:
        if self._options.disallows_all:
            return self._disallow(request)
        self._reasons.warn_of_proxy_fix(self._app_routes.proxy_middleware)
        table = self._app_routes.reload()  # first, because routes may be those of one host
        site, _ = self._site_resolver.resolve_request(request)
        if site is None:
            self._reasons.warn_of_host(request.host)
        if site is None or not self._site_resolver.may_store(site):
            reason = UNTRUSTED_ROOT_REASON if request.root else UNTRUSTED_HOST_REASON
            return error_response(request.method, 404, reason)
        try:
            response = self._respond_for(site, table, request)
        except (Unavailable, RobotsUnknown, StoreError) as error:
            self._unavailable_since_good[site.store_key] = _reason_of(error)
            raise
        self._unavailable_since_good.pop(site.store_key, None)
        return response

    def _respond_for(self, site: Site, table: RouteTable, request: Request) -> Response | None:
        self._buffer.ensure_thread()
        self._reasons.warn_of_unmatched(table)
        path, is_root = request.path, request.path == self._options.path
        if not is_root and self._is_fresh(site) and not self._publisher.is_listed(site, path):
            return None
        document = self._find_document(site, table, request, path, serves_it=True)
        if document is not None:
            return self._response(document, request)
        # Only what the index names is the middleware's: another name may well be a document of the app.
        return error_response(request.method, 404, self._reasons.reason(site, table)) if is_root else None

    def _is_fresh(self, site: Site) -> bool:
        return self._buffer.is_idle and self._publisher.is_fresh(site, self._generation)

    def _disallow(self, request: Request) -> Response | None:
        """Hide the sitemap, and forbid everything in robots.txt, which is at the root of a host only."""
        if request.path != ROBOTS_PATH:
            return error_response(request.method, 404, DISALLOWED_REASON)
        if request.root:
            return None
        fields = [("Cache-Control", f"public, max-age={self._options.max_age}")]
        return text_response(request.method, 200, DISALLOW_ALL, fields)

    def _find_document(
        self, site: Site, table: RouteTable, request: Request, path: str, *, serves_it: bool
    ) -> Document | None:
        """The document of a path, up to date; the last good one if that takes too long; None if there is none."""
        find = partial(self._find_current, site, table, request, path, serves_it=serves_it)
        last_good = self._publisher.last_document(site, path)
        if last_good is None or request.wait_seconds is not None:  # tests and servers with one thread use no other
            return find()
        found: Future[Document | None] = Future()

        def work() -> None:
            try:
                found.set_result(find())
            except Exception as error:  # raised where the result is waited for
                found.set_exception(error)

        request.run_in_background(work)
        wait((found,), DEADLINE_SECONDS)
        return found.result() if found.done() else last_good

    def _find_current(
        self, site: Site, table: RouteTable, request: Request, path: str, *, serves_it: bool
    ) -> Document | None:
        """The document of a path, up to date; None if there is none. It takes as long as the store does."""
        began = self._clock()
        self.flush()
        marks = self._refresher.load(site.store_key, FLUSH_WAIT_SECONDS) or self._refresher.last_loaded(site.store_key)
        rules = self._robots.rules(site, request, self._clock(), marks.everything)
        if self._options.verify:
            self._prober.probe(request, site, lambda: self._evaluation_context(site))
            self._prober.probe_asked(request, site)
            self._refresher.request_pages(request, site, marks)
            self.flush()
        freshness = None
        if serves_it and request.wait_seconds != TEST_CLIENT_WAIT_SECONDS:  # a test must see its own changes at once
            valid_until = self._prober.next_round_at(site) if self._options.verify else began + FRESH_SECONDS
            freshness = self._generation, began, min(began + FRESH_SECONDS, valid_until)
        find = partial(self._publisher.find_document, site, table, rules, request, path=path, marks=marks)
        document = find(freshness=freshness)
        if not self._publisher.take_loss(site):
            return document
        self._on_loss()
        if self._options.verify:
            self._prober.forget(site)
            self._prober.probe(request, site, lambda: self._evaluation_context(site))
            self.flush()
        return find(freshness=freshness)

    def _has_entries(self, site: Site, table: RouteTable, request: Request) -> bool:
        """Whether robots.txt may name a sitemap; also true if that is not known now."""
        try:
            if (
                self._publisher.has_entries(site)
                or self._find_document(site, table, request, self._options.path, serves_it=False) is not None
            ):
                return True
        except (Unavailable, RobotsUnknown) as error:
            log.debug("robots.txt names the sitemap, though it cannot be made now: %s", error)
            return True
        self._reasons.warn_of_no_routes(table)
        return False

    def _unavailable(
        self,
        request: Request,
        reason: str,
        retry_after: int = UNAVAILABLE_RETRY_SECONDS,
        fields: HeaderFields | None = None,
    ) -> Response:
        self.unavailable_responses += 1
        return error_response(
            request.method,
            503,
            f"The sitemap cannot be made now: {reason}.",
            [*(fields or []), ("Retry-After", str(retry_after))],
        )


def _reason_of(error: Exception) -> str:
    """Why the sitemap cannot be made now, for clients."""
    if isinstance(error, RobotsUnknown):
        return ROBOTS_UNKNOWN_REASON
    return "its store does not answer" if isinstance(error, StoreError) else str(error)
