"""The pages that were requested recently: a request for one of them needs one dict look-up and one comparison.

A response that equals the last one of its page, and follows it within the same second, is only counted: times are kept
in whole seconds, so it adds nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

from ..evidence.observations import HTML_TYPES
from ..evidence.response_headers import ResponseHeaders
from ..http.captured_response import OBSERVED_STATUSES, CapturedResponse
from ..http.header_rules import IgnoreReason
from ..http.messages import Request
from ..models import Site
from ..routing.current_routes import AppRoutes
from ..util import reset_after_fork
from .buffer import ResponseBuffer
from .fault_log import FaultLog
from .ignored_request_counts import IgnoredRequests
from .passing_response import PassingResponse
from .sampler import BodySampler, SampleSchedule

MAX_TRACKED_PAGES: Final = 1000
"""Tracked pages, and keys of requests for them. If there are more, all are dropped; popular ones soon return."""

_MAX_TIMESTAMP_SECONDS: Final = 253_402_300_800.0
"""The beginning of the year 10,000 in POSIX seconds. Dates from then on cannot be written."""

_MAX_ROUTING_HEADERS_CHARS: Final = 4000
"""Characters of the headers by which a proxy states the requested URL. A response to more of them is not recorded."""

_REREADABLE_TYPES: Final = frozenset({list, tuple})
"""The types of header lists, and of pairs in them, that can be iterated again without running the app's code."""

RequestKey = tuple[Any, ...]
"""Path, Host, scheme, root, method and query as the protocol gives them: together they identify the requested page."""


class Exchange(Protocol):
    """A request and its response, as an adapter passes them on."""

    key: RequestKey

    def is_useless(self) -> bool:
        """Whether the request is surely no evidence, by its cookie: then it is counted."""

    def request(self) -> Request:
        """The request, with what the app has made of its visitor by now."""


class TrackedPage:
    """A page that was requested recently: one object for all host names and URLs by which it is requested."""

    __slots__ = ("_raw_status", "_request_key", "_second_ends_at", "is_foreign_host", "last", "path", "schedule",
                 "site", "tracker")  # fmt: skip

    def __init__(self, tracker: Tracker, site: Site, path: str, *, is_foreign_host: bool) -> None:
        self.tracker: Tracker = tracker
        self.site: Site = site
        self.path: str = path
        self.is_foreign_host: bool = is_foreign_host
        self.last: CapturedResponse | None = None
        """The last recorded response, once nothing of it changes any more."""
        self.schedule: SampleSchedule | None = None
        """When to sample the body again; None if it is not sampled."""
        self._raw_status: Any = None
        """The status of `last` as the app gave it."""
        self._request_key: RequestKey = ()
        """The key of the request for `last`."""
        self._second_ends_at = 0.0
        """The end of the second of `last`, in POSIX seconds: until then an equal response adds nothing."""

    @property
    def buffer(self) -> ResponseBuffer:
        return self.tracker.buffer

    def started(self, status: Any, headers: Any, exchange: Exchange) -> PassingResponse | None:
        """Observe the start of a response to a request for this page; return it if something of it is recorded.

        Args:
            status: ASGI's number or WSGI's status line.
            headers: pairs of text or of bytes.
            exchange: its request is checked now, since the app may have signed the visitor in.
        """
        tracker, last = self.tracker, self.last
        now = tracker.clock()
        is_repeated = (
            last is not None
            and status == self._raw_status
            and headers == last.headers
            and exchange.key == self._request_key
        )
        if last is not None and is_repeated and last.at <= now < self._second_ends_at:
            tracker.repeated += 1
            return None
        if exchange.is_useless():
            return None
        request = exchange.request()
        if (reason := tracker.ignore_reason(request)) is not None:
            tracker.ignored.count(self.path, reason)
            return None
        if (
            last is not None
            and is_repeated
            and self._second_ends_at <= now < _MAX_TIMESTAMP_SECONDS
            and request.routing_headers == last.routing_headers
            and (last.status != 200 or self.schedule is None or now < self.schedule.due_at)
        ):
            last.at = now  # the background thread may read the old time or the new one; both are true
            self._second_ends_at = now // 1.0 + 1.0
            tracker.buffer.record(last)
            return PassingResponse(self, last, reads_body=False, waits=False)
        return self._capture(status, headers, request, exchange.key, now)

    def _capture(
        self, raw_status: Any, headers: Any, request: Request, key: RequestKey, now: float
    ) -> PassingResponse | None:
        """Record a response that differs from the last one, or whose body is due to be sampled."""
        tracker, status = self.tracker, status_code(raw_status)
        routing_headers = request.routing_headers
        if status not in OBSERVED_STATUSES or not _are_rereadable(headers):
            return None  # headers that can be read only once are left to the server
        if sum(len(name) + len(value) for name, value in routing_headers) > _MAX_ROUTING_HEADERS_CHARS:
            return None  # anybody can send them, and they would fill the memory
        if not 0 < now < _MAX_TIMESTAMP_SECONDS:
            tracker.log_fault("clock= must return POSIX seconds", ValueError(now))
            return None
        captured = CapturedResponse(
            self.site,
            self.path,
            now,
            status,
            list(headers),
            host=request.host,
            is_foreign_host=self.is_foreign_host,
            routing_headers=routing_headers,
        )
        self.last = None
        reads_body = False
        if status == 200:
            schedule = self.schedule or tracker.sampler.find(captured.page_key)
            if schedule is None or schedule.is_due(now, captured.headers):
                schedule = tracker.schedule_sample(captured)
                reads_body = schedule is not None
            self.schedule = schedule
            if schedule is not None and not schedule.is_read:
                return PassingResponse(self, captured, reads_body=True, waits=True) if reads_body else None
        else:  # the page that it answers with later may be another one
            tracker.sampler.require_reading(captured.page_key)
        tracker.buffer.record(captured)
        if not reads_body:
            self.last, self._raw_status, self._request_key = captured, raw_status, key
            self._second_ends_at = now // 1.0 + 1.0
        return PassingResponse(self, captured, reads_body=reads_body, waits=False)


class Tracker:
    """The tracked pages of one app, and what their responses share."""

    def __init__(
        self,
        buffer: ResponseBuffer,
        app_routes: AppRoutes,
        clock: Callable[[], float],
        log_fault: FaultLog,
        ignore_reason: Callable[[Request], IgnoreReason | None],
    ) -> None:
        """`ignore_reason` says why a request is not evidence, by its headers and its user."""
        self.buffer = buffer
        self.clock = clock
        self.log_fault = log_fault
        self.ignore_reason = ignore_reason
        self.sampler: BodySampler = BodySampler()
        self.ignored: IgnoredRequests = IgnoredRequests()
        self.repeated = 0
        """Responses that repeated the last one of their page within one second, and so were not captured."""
        self._app_routes = app_routes
        self.routes_version: int = 0
        """`AppRoutes.version` when the tracked pages were resolved."""
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent saves what it observed."""
        self.pages: dict[RequestKey, TrackedPage] = {}
        """The pages by the key of a request; empty while `track` is due."""
        self._by_request = self.pages
        self._by_page: dict[tuple[Site, str, bool], TrackedPage] = {}

    def track(
        self, key: RequestKey | None, site: Site, path: str, routes_version: int, *, is_foreign_host: bool
    ) -> TrackedPage:
        """Return the tracked page of a site's path, and remember it by the key of the request.

        Args:
            key: None if requests for the page are not to be looked up.
            site: the site that the request's Host stands for.
            path: decoded, below the root.
            routes_version: `AppRoutes.version` before the site was resolved.
            is_foreign_host: whether the Host is not the site's own. Such responses may
                not count, so they have a page apart.
        """
        is_full = len(self._by_page) >= MAX_TRACKED_PAGES or len(self._by_request) >= MAX_TRACKED_PAGES
        if is_full or self.routes_version != routes_version:
            self.forget()
            self.routes_version = routes_version
        page = self._by_page.get((site, path, is_foreign_host))
        if page is None:
            page = TrackedPage(self, site, path, is_foreign_host=is_foreign_host)
            page = self._by_page.setdefault((site, path, is_foreign_host), page)
        self.pages = self._by_request
        if key is not None:
            self.pages[key] = page
        return page

    def require_track(self) -> None:
        """Call `track` again for each page at its next request, so that the site is resolved again."""
        self.pages = {}

    def forget(self) -> None:
        """Stop tracking all pages. Requests in progress that hold one must not find its last answer."""
        pages = self._by_page
        self.reset_after_fork()
        for page in pages.copy().values():
            page.last = None

    def start_over(self) -> None:
        """Read the body of each page at its next response: the store has lost what was read of them."""
        self.sampler.forget()
        self.forget()

    def require_reading(self, site: Site, path: str) -> None:
        """Read the body of a learned page at its next response: its headers do not count before."""
        for is_foreign_host in (False, True):
            page = CapturedResponse(site, path, 0, 200, is_foreign_host=is_foreign_host)
            self.sampler.require_reading(page.page_key)

    def schedule_sample(self, captured: CapturedResponse) -> SampleSchedule | None:
        """Schedule the next sample of the body; one is due now; None if it is never sampled.

        Bodies are sampled if the page has a route and the body is HTML. Bytes that cannot be decompressed here may be
        plain HTML in truth.
        """
        route = self._app_routes.table.find_route(captured.site, captured.path)
        if route is None or ResponseHeaders(captured.headers).media_type not in HTML_TYPES:
            return None
        schedule = self.sampler.schedule(captured)
        schedule.is_read = schedule.is_read or route.static
        return schedule

    def record(self, captured: CapturedResponse) -> None:
        """Record a response that no observer saw, such as a probe's. The page's last answer is then another one."""
        page = self._by_page.get((captured.site, captured.path, captured.is_foreign_host))
        if page is not None:
            page.last = None
        self.buffer.record(captured)


def status_code(status: Any) -> int:
    """The number of ASGI's status or of WSGI's status line; 0 if it has none."""
    try:
        return int(status[:3]) if isinstance(status, str) else operator.index(status)
    except (TypeError, ValueError):
        return 0


def _are_rereadable(headers: Any) -> bool:
    """Whether headers, and each pair of them, can be read here and again by the server."""
    if type(headers) not in _REREADABLE_TYPES:
        pairs = isinstance(headers, Collection) and not isinstance(headers, Mapping | str | bytes)
        if not pairs:
            return False
    return _REREADABLE_TYPES.issuperset(map(type, headers)) or all(isinstance(pair, list | tuple) for pair in headers)
