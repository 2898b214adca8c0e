"""Observes responses as they pass, on the request path: it takes a few microseconds and never raises into the app."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ..captured_response import KEPT_BODY_BYTES, MAX_HTML_BYTES, OBSERVED_STATUSES, CapturedResponse
from ..evidence.body_decoding import undecodable_reason
from ..evidence.observations import HTML_TYPES
from ..evidence.response_headers import ResponseHeaders
from ..models import RoutingHeaders, Site
from ..request_filter.reasons import IgnoreReason
from ..request_response import KEY_HOST, Request
from ..routing.current_routes import AppRoutes
from .background_saving import ResponseBuffer
from .crawler_requests import CrawlerRequests
from .fault_log import FaultLog
from .ignored_request_counts import IgnoredRequests
from .sampling_schedule import BodySampler, SampleSchedule

_MAX_TIMESTAMP_SECONDS: Final = 253_402_300_800
"""The beginning of the year 10,000 in POSIX seconds. Dates from then on cannot be written."""

_MAX_ROUTING_HEADERS_CHARS: Final = 4000
"""Characters of the headers by which a proxy states the requested URL. A response to more of them is not recorded."""

_REREADABLE_TYPES: Final = frozenset({list, tuple})
"""The types of header lists, and of pairs in them, that can be iterated again without running the app's code."""


class ObserverContext:
    """What all observers of one app share."""

    def __init__(
        self,
        buffer: ResponseBuffer,
        app_routes: AppRoutes,
        clock: Callable[[], float],
        log_fault: FaultLog,
        crawlers: CrawlerRequests,
    ) -> None:
        self.buffer = buffer
        self.clock = clock
        self.log_fault = log_fault
        self.crawlers = crawlers
        self.sampler: BodySampler = BodySampler()
        self.ignored: IgnoredRequests = IgnoredRequests()
        self.repeated = 0
        """Responses that repeated the last one of their page within one second, and so were not captured."""
        self._app_routes = app_routes

    def schedule_sample(self, captured: CapturedResponse) -> SampleSchedule | None:
        """Schedule the next sample of the body; one is due now; None if it is never sampled.

        Bodies are sampled if the page has a route and the body is HTML that can be decompressed here.
        """
        if self._app_routes.table.find_route(captured.site, captured.path) is None:
            return None
        headers = ResponseHeaders(captured.headers)
        is_readable = headers.media_type in HTML_TYPES and not undecodable_reason(headers.codings)
        return self.sampler.schedule(captured) if is_readable else None


class TrackedPage:
    """A page that was requested recently: one object for all host names and URLs by which it is requested."""

    is_document: Final = False
    """Always false: documents of the sitemap are not tracked."""

    __slots__ = (
        "_last_ignore_reason",
        "context",
        "is_foreign_host",
        "last_answer",
        "must_sample",
        "page_key",
        "path",
        "schedule",
        "site",
    )

    def __init__(
        self, context: ObserverContext, site: Site, path: str, page_key: tuple[str, str], *, is_foreign_host: bool
    ) -> None:
        self.context: ObserverContext = context
        self._last_ignore_reason: IgnoreReason | None = None
        """The reason of the last request that was ignored after the app had run."""
        self.site: Site = site
        self.path: str = path
        self.page_key: tuple[str, str] = page_key
        self.is_foreign_host: bool = is_foreign_host
        self.last_answer: Observer = NO_ANSWER
        """The last captured response, once nothing of it changes any more."""
        self.schedule: SampleSchedule | None = None
        """When to sample the body again; None if it is not sampled."""
        self.must_sample: bool = False
        """Whether to sample the next body whatever the schedule says: the last response failed, or was not a page."""

    def on_response_start(
        self, status: Any, headers: Any, request: Request, previous: Observer | None = None
    ) -> Observer | None:
        """Observe the start of a response to a request for this page.

        A response that equals the last one, and follows it within the same second, is
        only counted: times are kept in whole seconds, so it adds nothing.

        Args:
            status: ASGI's number or WSGI's status line.
            headers: pairs of text or of bytes.
            request: its headers are checked now, since the app may have signed the visitor in.
            previous: the observer of a response to the same request that this one replaces.

        Returns:
            The observer of the rest of the response; None if nothing was recorded.
        """
        if previous is not None:
            previous.retract()
        context, last = self.context, self.last_answer
        now = context.clock()
        try:
            is_repeated = status == last.raw_status and headers == last.headers and request.key[KEY_HOST] == last.host
            if is_repeated and last.at <= now < last.second_ends_at:
                context.repeated += 1
                if (field_count := len(request.fields)) not in context.crawlers.skipped_counts:
                    context.crawlers.look_at(self, status, request, field_count, now)
                return None
        except Exception as error:
            is_repeated = False
            context.log_fault("a response could not be compared", error)
        if reason := request.ignore_reason():
            if reason is self._last_ignore_reason:  # a cheaper count, for visitors who are signed in
                context.ignored.counts[reason.reason] += 1
            else:
                self._last_ignore_reason = reason
                context.ignored.count(self.path, reason)
            return None
        if (field_count := len(request.fields)) not in context.crawlers.skipped_counts:
            context.crawlers.look_at(self, status, request, field_count, now)
        if (
            is_repeated
            and last.second_ends_at <= now < _MAX_TIMESTAMP_SECONDS
            and (last.status != 200 or not (schedule := self.schedule) or now < schedule.due_at)
            and request.routing_headers == last.routing_headers
        ):
            if last.status != 200 or schedule is None:
                last.visitor = request.visitor(last.status)
            last.at = now  # the background thread may read the old time or the new one; both are true
            last.second_ends_at = now // 1 + 1
            context.buffer.record_again(last)
            return last
        return self._capture(status, headers, now, request)

    def _capture(self, raw_status: Any, headers: Any, now: float, request: Request) -> Observer | None:
        """Record a response that differs from the last one, or whose body is due to be sampled."""
        context, last = self.context, self.last_answer
        observer = None
        try:
            status = last.status if raw_status == last.raw_status else status_code(raw_status)
            if status not in OBSERVED_STATUSES or not _are_rereadable(headers):
                return None  # headers that can be read only once are left to the server
            if sum(len(name) + len(value) for name, value in request.routing_headers) > _MAX_ROUTING_HEADERS_CHARS:
                return None  # anybody can send them, and they would fill the memory
            if not 0 < now < _MAX_TIMESTAMP_SECONDS:
                context.log_fault("clock= must return POSIX seconds", ValueError(now))
                return None
            captured = Observer(self, host=request.key[KEY_HOST], status=status, headers=list(headers), at=now)
            captured.raw_status = raw_status
            captured.visitor = request.visitor(status)
            captured.routing_headers = request.routing_headers
            self.last_answer = NO_ANSWER
            context.buffer.record(captured)
            observer = captured
            if status != 200:
                self.must_sample = True
            else:
                schedule = self.schedule or context.sampler.find(self.page_key)
                if schedule is None or self.must_sample or not schedule.is_fresh(now, headers):
                    schedule = context.schedule_sample(captured)
                    captured.chunks = None if schedule is None else []
                self.schedule = schedule
            if captured.chunks is None:
                captured.second_ends_at = now // 1 + 1
                self.last_answer = captured
        except Exception as error:
            context.log_fault("a response could not be observed", error)
        return observer


class Observer(CapturedResponse):
    """A captured response that is still passing. It collects the body if that is sampled."""

    __slots__ = ("_page", "_size_bytes", "chunks", "raw_status", "second_ends_at")

    raw_status: Any
    """The status as the app gave it."""
    second_ends_at: float
    """The end of the second of `at`, in POSIX seconds: until then an equal response adds nothing."""

    def __init__(self, page: TrackedPage, *, host: str | bytes, status: int, headers: Any, at: float) -> None:
        # `super().__init__` would make the page's key again.
        self._page = page
        self.host = host
        self.is_foreign_host: bool = page.is_foreign_host
        self.site: Site = page.site
        self.path: str = page.path
        self.page_key: tuple[str, str] = page.page_key
        self.at = at
        self.status = status
        self.headers = headers
        self.body: None = None
        self.file_path: str | None = None
        self.is_volatile = False
        self.is_probe = False
        self.routing_headers: RoutingHeaders = ()
        self.visitor = 0
        self.chunks: list[bytes] | None = None
        """The body so far; None if it is not sampled."""
        self._size_bytes = 0

    def retract(self) -> None:
        """Discard what was recorded: the response failed before its end, or another one replaces it."""
        page, self.chunks = self._page, None
        page.must_sample = True
        if page.last_answer is self:
            page.last_answer = NO_ANSWER
        self._page.context.buffer.discard(self)

    def on_chunk(self, chunk: Any) -> None:
        """Collect a part of the body. If the body grows too large, only its beginning is kept."""
        if self.chunks is None or self._size_bytes > MAX_HTML_BYTES:
            return
        room = MAX_HTML_BYTES + 1 - self._size_bytes
        if type(chunk) is not bytes:
            chunk = _copy_bytes(chunk, room)
            if chunk is None:
                self.chunks = None
                return
        self.chunks.append(chunk if len(chunk) <= room else chunk[:room])
        self._size_bytes += len(chunk)
        if self._size_bytes > MAX_HTML_BYTES:
            self.chunks = [b"".join(self.chunks)[:KEPT_BODY_BYTES]]

    def on_skipped_body(self) -> None:
        """Drop the sample: the server sends part of the body, such as a file, past the middleware."""
        self._page.must_sample = False
        self.chunks = None

    def on_end(self) -> None:
        """Buffer the sample: the whole body has been sent."""
        if self.chunks is None:
            return
        self._page.must_sample = False
        with self._page.context.log_fault.guard("a body could not be sampled"):
            body, self.chunks = b"".join(self.chunks), None
            self._sample(body, None)

    def on_file(self, path: Any) -> None:
        """Buffer the sample: the server sends a file as the body. It is read later, off the request path."""
        if self.chunks != [] or not isinstance(path, str):
            self.on_skipped_body()
            return
        self._page.must_sample = False
        self.chunks = None
        self._sample(None, path)

    def _sample(self, body: bytes | None, file_path: str | None) -> None:
        sample = CapturedResponse(
            self.site,
            self.path,
            at=self.at,
            status=self.status,
            headers=self.headers,
            body=body,
            host=self.host,
            is_foreign_host=self.is_foreign_host,
            is_truncated=self._size_bytes > MAX_HTML_BYTES,
        )
        sample.page_key = self.page_key
        sample.file_path = file_path
        sample.visitor = self.visitor
        sample.routing_headers = self.routing_headers
        self._page.context.buffer.sample(sample)


def status_code(status: Any) -> int:
    """The number of ASGI's status or of WSGI's status line; 0 if it has none."""
    try:
        return int(status[:3]) if isinstance(status, str) else operator.index(status)
    except (TypeError, ValueError):
        return 0


def _copy_bytes(chunk: Any, max_bytes: int) -> bytes | None:
    """Copy the beginning of a buffer that the app may reuse; None if it is not a buffer."""
    try:
        with memoryview(chunk) as view, view.cast("B") as flat:
            return flat[:max_bytes].tobytes()
    except Exception:  # the server will refuse the chunk, too
        return None


def _are_rereadable(headers: Any) -> bool:
    """Whether headers, and each pair of them, can be read here and again by the server."""
    if type(headers) not in _REREADABLE_TYPES:
        pairs = isinstance(headers, Collection) and not isinstance(headers, Mapping | str | bytes)
        if not pairs:
            return False
    return _REREADABLE_TYPES.issuperset(map(type, headers)) or all(isinstance(pair, list | tuple) for pair in headers)


def _make_no_answer() -> Observer:
    """A placeholder for the last answer of a page that has none. No response equals it."""
    answer = Observer.__new__(Observer)
    answer.raw_status = answer
    answer.status = 0
    answer.headers = ()
    answer.host = ""
    answer.at = answer.second_ends_at = math.inf  # no time lies before it, and none after
    return answer


NO_ANSWER: Final = _make_no_answer()
