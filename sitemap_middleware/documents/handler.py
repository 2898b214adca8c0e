"""Answers requests for the sitemap's documents and for /robots.txt."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import formatdate
from functools import partial
from secrets import token_bytes
from typing import Final

from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header
from werkzeug.sansio.http import is_resource_modified

from ..exceptions import StoreError
from ..http.messages import (
    COMMON_HEADERS,
    DOCUMENT_SUFFIXES,
    NOINDEX_HEADER,
    Request,
    Response,
    error_response,
    text_response,
)
from ..http.robots_parser import DISALLOW_ALL, ROBOTS_PATH, RobotsRules
from ..indexnow.sender import IndexNow
from ..models import Site
from ..observe.buffer import ResponseBuffer
from ..observe.refresh_marks import Refresher, RefreshMarks
from ..options.table import Options
from ..protocol.value_checks import RESERVED_SECTIONS
from ..routing.framework_detection import proxy_middleware
from ..routing.route_table import GONE_SECTION, AppRoutes, RouteTable
from ..routing.site_resolver import SiteResolver
from ..util import FaultLog, begin, log
from .changes import ATOM_TYPE, MAX_FEED_ENTRIES, PublicLocs, atom
from .crawler_fetches import CrawlerFetches
from .no_sitemap_reasons import (
    TOO_MANY_SITES_REASON,
    UNKNOWN_TENANT_REASON,
    UNTRUSTED_HOST_REASON,
    UNTRUSTED_ROOT_REASON,
    NoSitemapReasons,
    Unavailable,
)
from .publisher import Publisher
from .robots import RobotsTxt
from .xml import Document

FLUSH_WAIT_SECONDS: Final = 2.0
"""Seconds that a request for the sitemap waits for a flush in progress: it may hang."""

DEADLINE_SECONDS: Final = 2.0
"""Seconds after which a request gets the last good document. What it began goes on in the background."""

RETRY_AFTER_SECONDS: Final = 60
"""Seconds after which clients may request a sitemap again that cannot be made now."""


@dataclass(kw_only=True, eq=False)
class SitemapHandler:
    """Finds the site of a request, and serves its document: from memory if it is fresh, else brought up to date."""

    options: Options
    app_routes: AppRoutes
    site_resolver: SiteResolver
    robots: RobotsTxt
    publisher: Publisher
    buffer: ResponseBuffer
    refresher: Refresher
    indexnow: IndexNow
    reasons: NoSitemapReasons
    crawler_fetches: CrawlerFetches
    public_locs: PublicLocs
    has_pages: Callable[[Site], bool]
    """Whether the app has answered for a site with a page, or settings name it. With `verify`, no other is served."""
    request_pages: Callable[[Request, Site, RefreshMarks], None]
    is_asked: Callable[[Site], bool]
    """Whether pages wait to be requested."""
    log_fault: FaultLog
    unavailable_responses: int = 0
    """Requests answered 503 since the process began."""

    def __post_init__(self) -> None:
        stem = re.escape(self.options.path.removesuffix(".xml"))
        self._part_path = re.compile(rf"{stem}-(.+?)(-[1-9][0-9]{{0,4}})?\.xml")

    # Which requests are answered

    def is_document(self, path: str) -> bool:
        """Whether a path is that of a document, by its name."""
        if path == self.options.path:
            return True
        part = self._part_path.fullmatch(path)
        if part is None:
            return False
        (section, number), table = part.groups(), self.app_routes.table
        if section in table.section_documents or (section == GONE_SECTION and self.options.gone):
            return True
        # Only the first document of a section that has a name of its own has no number.
        return number is not None and (section in RESERVED_SECTIONS or section in table.provider_names.values())

    def answer(self, request: Request) -> Response | Callable[[], Response | None] | None:
        """The response to a request, if its document is in memory and fresh; or else a function that makes it, which
        may block, or finds that the app must answer; None if that is known by the method and the path.

        It never blocks: it runs on event loops.
        """
        path, make = request.path, None
        if not path.endswith(DOCUMENT_SUFFIXES) or request.method not in ("GET", "HEAD"):
            return None
        if not request.is_of_test and self.buffer.is_idle:
            site, _ = self.site_resolver.resolve_request(request)
            document = None if site is None else self.publisher.fresh_document(site, path)
            if document is not None and site is not None:
                self.crawler_fetches.note(site, request)
                return self._response(document, request)
        if path == ROBOTS_PATH:
            make = self._disallow if self.options.robots == "disallow" else None
        elif self.indexnow.is_key_path(path):
            make = None if self.app_routes.table.has_explicit_route(path) else self._key_file
        elif path == self.options.feed:
            is_served = not (self.options.hides_all or self.app_routes.keeps(path, "the option feed"))
            make = self._respond if is_served else None
        elif self.is_document(path) and not self.app_routes.keeps(path, "SitemapMiddleware"):
            make = self._disallow if self.options.hides_all else self._respond
        return None if make is None else partial(self._made, make, request)

    def amends(self, request: Request) -> bool:
        """Whether a request is for robots.txt, which the app answers, and `amended` adds to."""
        return (
            request.path == ROBOTS_PATH
            and request.method in ("GET", "HEAD")
            and self.options.robots is True
            and not request.root
        )

    # The answers

    def _made(self, make: Callable[[Request], Response | None], request: Request) -> Response | None:
        try:
            return make(request)
        except Unavailable as error:
            reason, headers = str(error), error.headers
        except Exception:
            log.exception("the sitemap could not be made")
            reason, headers = "internal error, see the log", ()
        self.unavailable_responses += 1
        fields = [*headers, ("Retry-After", str(RETRY_AFTER_SECONDS))]
        return error_response(request.method, 503, f"The sitemap cannot be made now: {reason}.", fields)

    def amended(self, request: Request, answer: Response) -> Response | None:
        """What to send in place of the app's response for robots.txt; None if that is sent as it is. It may block."""
        try:
            table = self.app_routes.reload()
            site, _ = self.site_resolver.resolve_request(request, may_block=True)
            if site is None or site.root or not self.site_resolver.may_store(site):
                return None
            self.buffer.ensure_thread()
            self.reasons.warn_of_unmatched(table)
            has_sitemap = partial(self._has_entries, site, table, request)
            return self.robots.respond(site, request, answer, self.options.clock(), has_sitemap)
        except Exception as error:
            self.log_fault("robots.txt could not be amended", error)
        return None

    def bring_up_to_date(self, site: Site, request: Request) -> None:
        """Bring the documents of a site up to date, as a request for the sitemap does. It may block.

        Raises `Unavailable` if there is no earlier document, and it cannot be made now.
        """
        self.buffer.ensure_thread()
        self._find_document(site, self.app_routes.reload(), request, self.options.path)

    def flush(self) -> None:
        """Save pending observations. If that fails, they stay pending, and the sitemap is made without them."""
        self.buffer.try_flush(FLUSH_WAIT_SECONDS)

    def _respond(self, request: Request) -> Response | None:
        # Only what the index names is the middleware's: another name may well be a document of the app.
        is_root = request.path == self.options.path
        self.reasons.warn_of_proxy_fix(proxy_middleware(self.app_routes.app))
        table = self.app_routes.reload()  # first, because routes may be those of one host
        site, _ = self.site_resolver.resolve_request(request, may_block=True)
        reason = UNTRUSTED_ROOT_REASON if request.root else UNTRUSTED_HOST_REASON
        if self.options.site_of_host is not None:
            reason = UNKNOWN_TENANT_REASON
        if site is None:
            self.reasons.warn_of_host(request.host)
        elif not self.site_resolver.may_store(site):
            site, reason = None, TOO_MANY_SITES_REASON
        if site is None:
            return error_response(request.method, 404, reason) if is_root else None
        self.buffer.ensure_thread()
        self.reasons.warn_of_unmatched(table)
        is_feed = request.path == self.options.feed
        document = self._find_document(site, table, request, self.options.path if is_feed else request.path)
        if document is not None:
            self.crawler_fetches.note(site, request)
            return self._feed(site, request, document.since) if is_feed else self._response(document, request)
        return error_response(request.method, 404, self.reasons.reason(site, table)) if is_root or is_feed else None

    def _response(self, document: Document, request: Request, media_type: str = "application/xml") -> Response:
        """The response to a GET or HEAD for a document. CDNs purge it by the `cache_tag`.

        A document that is dated later than now, as it replaced another in that one's second, has no Last-Modified until
        then.
        """
        sent = dict(request.headers)
        as_gzip = accepts_gzip(sent.get("accept-encoding", ""))
        tag = f"{document.etag}-gzip" if as_gzip else document.etag
        since = document.since if document.since <= self.options.clock() else None
        fields = [
            ("ETag", f'"{tag}"'),
            ("Cache-Control", f"public, max-age={self.options.max_age}"),
            ("Vary", "Accept-Encoding"),
            *COMMON_HEADERS,
        ]
        if (cache_tag := self.options.cache_tag) is not None:  # Cloudflare and Google read the first, Fastly the second
            fields += [("Cache-Tag", cache_tag), ("Surrogate-Key", cache_tag)]
        if since is not None:
            fields.append(("Last-Modified", formatdate(since, usegmt=True)))
        if not is_resource_modified(
            http_if_none_match=sent.get("if-none-match"),
            http_if_modified_since=sent.get("if-modified-since"),
            etag=tag,
            last_modified=None if since is None else datetime.fromtimestamp(since, UTC),
        ):
            return Response(304, fields)
        size = document.gzipped_size if as_gzip else document.size
        if as_gzip:
            fields.append(("Content-Encoding", "gzip"))
        fields += [("Content-Type", f"{media_type}; charset=utf-8"), ("Content-Length", str(size))]
        if request.method == "HEAD":
            return Response(200, fields)
        if as_gzip:
            return Response(200, fields, document.gzipped)
        return Response(200, fields, gzip.decompress(document.gzipped))

    def _key_file(self, request: Request) -> Response | None:
        self.buffer.ensure_thread()  # it learns of a key that another worker makes later
        site, _ = self.site_resolver.resolve_request(request, may_block=True)
        try:
            key = None if site is None else self.indexnow.key_file(site, request.path)
        except StoreError as error:
            log.debug("it is not known whether this is the file of a key: %s", error)  # so it may well be the app's
            return None
        if key is None:
            return None
        return text_response(request.method, 200, key, [("Cache-Control", "no-cache"), NOINDEX_HEADER])

    def _feed(self, site: Site, request: Request, since: int) -> Response:
        """The feed, without what other settings or answers forbid by now."""
        try:
            changes = [change for change in self.publisher.changes(site) if change.kind != "gone"]
            latest = changes[: -MAX_FEED_ENTRIES - 1 : -1]
            public = self.public_locs(site, dict.fromkeys(change.loc for change in latest), False)
        except StoreError as error:
            raise Unavailable("its store does not answer") from error
        told = [change for change in latest if change.loc in public]
        return self._response(atom(site, self.options.feed or "", told, since), request, ATOM_TYPE)

    def _disallow(self, request: Request) -> Response | None:
        """Hide the sitemap, and forbid everything in robots.txt, which is at the root of a host only."""
        if request.path == self.options.path:
            reason = f'robots="{self.options.robots}" keeps this site out of search engines, so there is no sitemap.'
            return error_response(request.method, 404, reason)
        if request.path != ROBOTS_PATH or request.root:
            return None
        fields = [("Cache-Control", f"public, max-age={self.options.max_age}")]
        return text_response(request.method, 200, DISALLOW_ALL, fields)

    def _has_entries(self, site: Site, table: RouteTable, request: Request) -> bool:
        """Whether robots.txt may name a sitemap; also true if that is not known now."""
        try:
            if self.publisher.sitemap(site).entry_count() or self._find_document(
                site, table, request, self.options.path
            ):
                return True
        except Unavailable as error:
            log.debug("robots.txt names the sitemap, though it cannot be made now: %s", error)
            return True
        self.reasons.warn_of_no_routes(table)
        return False

    # Bringing a site up to date

    def _find_document(self, site: Site, table: RouteTable, request: Request, path: str) -> Document | None:
        """The document of a path, up to date; the last good one if that takes too long; None if there is none."""
        last_good = self.publisher.sitemap(site).in_memory(path)
        if self.publisher.complete_routes(site, table, request):
            table = self.app_routes.reload()

        def publish(rules: RobotsRules, marks: RefreshMarks) -> Document | None:
            if not self.has_pages(site):
                if self.options.verify:
                    return None
                self.site_resolver.note_page(site)  # nobody asks: it is listed on the developer's word, but counts
            return self.publisher.find_document(site, table, rules, request, path=path, marks=marks)

        try:
            if request.is_of_test:
                document = publish(*self._prepare(site, request))
                # Values that were just read may name pages that answered otherwise before.
                return publish(*self._prepare(site, request)) if self.is_asked(site) else document
            # On another thread: the state of this one, such as a `threading.local`, may be the visitor's.
            if request.wait_seconds is None:
                found = begin(lambda: publish(*self._prepare(site, request)))
            else:  # the app can be asked on this thread only
                found = begin(partial(publish, *self._prepare(site, request)))
            if last_good is not None:
                wait((found,), DEADLINE_SECONDS)
            return found.result() if last_good is None or found.done() else last_good
        except (StoreError, Unavailable) as error:  # the circuit breaker has logged a failure of the store
            log.debug("the sitemap cannot be made: %s", error)
            if last_good is not None:
                return last_good
            if isinstance(error, StoreError):
                raise Unavailable("its store does not answer") from error
            raise

    def _prepare(self, site: Site, request: Request) -> tuple[RobotsRules, RefreshMarks]:
        """Save what was observed, and ask the app for what is not known; what `refresh` asked for, and robots.txt."""
        self.publisher.states(site)  # before own requests fill a store again that has lost what it held
        self.flush()
        marks = self.refresher.load()
        # IndexNow sends what `changed` named only by rules that were read after the call.
        mark = marks.everything if self.options.indexnow is False else marks.latest
        rules = self.robots.rules(site, request, self.options.clock(), mark)
        if self.options.verify:
            self.request_pages(request, site, marks)
            self.flush()
        if request.is_of_test:
            marks = replace(marks, everything=token_bytes(8))
        return rules, marks


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client accepts gzip, and does not prefer the plain bytes (RFC 9110, section 12.5.3)."""
    accepted = parse_accept_header(accept_encoding, Accept)
    return 0 < accepted.quality("gzip") >= accepted.quality("identity")
