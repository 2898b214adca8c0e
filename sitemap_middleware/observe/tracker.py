"""The pages that were requested recently: a request for one of them needs one dict look-up and one comparison.

A response that equals the last one of its page, and follows it within the same second, is only counted: times are kept
in whole seconds, so it adds nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from ..evidence.observations import HTML_TYPES
from ..evidence.response_headers import ResponseHeaders
from ..http.messages import (
    KEPT_BODY_BYTES,
    MAX_HTML_BYTES,
    OBSERVED_STATUSES,
    SERVER_ERROR_CLASS,
    CapturedResponse,
    PageKey,
    Request,
)
from ..http.request_filter import IGNORE_REASONS, IgnoreReason
from ..models import Site
from ..util import BoundedCache, FaultLog, reset_after_fork
from .buffer import ResponseBuffer

MAX_TRACKED_PAGES: Final = 1000
"""Keys of requests. If there are more, all are dropped; those of popular pages soon return."""

MAX_REMEMBERED_PATHS: Final = 1000
"""Paths for which it is remembered why a request was ignored; all are forgotten if there are more."""

MAX_REMEMBERED_PATH_CHARS: Final = 200
"""Characters of the longest such path."""

MIN_SAMPLE_INTERVAL_SECONDS: Final = 5.0
MAX_SAMPLE_INTERVAL_SECONDS: Final = 15 * 60.0
"""Seconds between two readings of one page: at first, and when it has not changed for long."""

MAX_SAMPLED_PAGES: Final = 20_000
"""Pages whose schedule is remembered, at most; the half that was read last is always kept. Others are read at their
next response. Schedules expire after a quarter of an hour, in which few workers fill that half."""

_MAX_TIMESTAMP_SECONDS: Final = 253_402_300_800.0
"""The beginning of the year 10,000 in POSIX seconds. Dates from then on cannot be written."""

_MAX_ROUTING_HEADERS_CHARS: Final = 4000
"""Characters of the headers by which a proxy states the requested URL. A response to more of them is not recorded."""

RequestKey = tuple[Any, ...]
"""Path, Host, scheme, root, method and query as the protocol gives them: together they identify the requested page."""


@dataclass(slots=True, eq=False)
class TrackedPage:
    """A page that was requested recently, under one host name and URL."""

    site: Site
    path: str
    is_foreign_host: bool
    last: tuple[Any, Any] | None = None
    """Status and headers of the last response that was recorded at its start."""
    second: float = 0.0
    """The second in which it was recorded, in POSIX seconds."""


class Tracker:
    """The tracked pages of one app, and what their responses share."""

    def __init__(
        self,
        buffer: ResponseBuffer,
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
        self.errors: BoundedCache[PageKey, tuple[str, float]] = BoundedCache(MAX_TRACKED_PAGES)
        """What the last visitor of a page got, in words that follow "it", empty unless that was an error of the server;
        and when, in POSIX seconds."""
        self.reset_after_fork()
        reset_after_fork(self)

    def forget(self) -> None:
        """Stop tracking all pages, so that the site of each is resolved again at its next request."""
        self.pages: dict[RequestKey, TrackedPage] = {}
        """The pages by the key of a request."""

    reset_after_fork = forget  # the parent saves what it observed

    def track(self, key: RequestKey | None, site: Site, path: str, *, is_foreign_host: bool) -> TrackedPage:
        """The tracked page of a site's path, remembered by the key of the request if there is one."""
        page = TrackedPage(site, path, is_foreign_host)
        if key is not None:
            if len(self.pages) >= MAX_TRACKED_PAGES:
                self.forget()
            self.pages[key] = page
        return page

    def captured(
        self, page: TrackedPage, raw_status: Any, headers: Any, request: Request, now: float
    ) -> CapturedResponse | None:
        """A response as it is recorded; None if it says nothing about the page."""
        status = int(raw_status[:3] if isinstance(raw_status, str) else raw_status)  # of WSGI, a line
        routing_headers = request.routing_headers(page.site)
        self.note_error(page, f"answered a visitor with {status}" if status // 100 == SERVER_ERROR_CLASS else "")
        if status not in OBSERVED_STATUSES or not _are_rereadable(headers):
            return None  # headers that can be read only once are left to the server
        if sum(len(name) + len(value) for name, value in routing_headers) > _MAX_ROUTING_HEADERS_CHARS:
            return None  # anybody can send them, and they would fill the memory
        if not 0 < now < _MAX_TIMESTAMP_SECONDS:
            self.log_fault("clock= must return POSIX seconds", ValueError(now))
            return None
        return CapturedResponse(
            page.site,
            page.path,
            now,
            status,
            list(headers),
            host="" if request.is_of_test else request.host,  # test clients send localhost or testserver
            is_foreign_host=page.is_foreign_host and not request.is_of_test,
            routing_headers=routing_headers,
        )

    def note_error(self, page: TrackedPage, error: str) -> None:
        """Remember the error that a visitor got, or that there was none."""
        key = page.site.store_key, page.path
        if error or self.errors.get(key):
            self.errors.put(key, (error, self.clock()))
            page.last = None  # the next response is looked at, too


def guarded(event: Callable[..., None]) -> Callable[..., None]:
    """Have an event of a response log what goes wrong, rather than raise it into the app."""

    @wraps(event)
    def observe(self: Exchange, *arguments: Any, **named: Any) -> None:
        try:
            event(self, *arguments, **named)
        except Exception as error:
            self.tracker.log_fault("a response could not be observed", error)

    return observe


class Exchange(ABC):
    """A request for a page, and the response to it as it passes, of either protocol.

    A response is recorded at its start; or if its body is read, when that ends, and not at all if it fails before.
    """

    __slots__ = ("_body", "_captured", "_length", "has_started", "key", "page", "reads_body", "tracker")
    _body: bytearray
    _length: str
    """The Content-Length of a response whose body is read."""

    def __init__(self, tracker: Tracker, key: RequestKey) -> None:
        self.tracker: Tracker = tracker
        self.key: RequestKey = key
        self.page: TrackedPage | None = None
        """The page that the request is for, if the response is observed."""
        self.has_started: bool = False
        """Whether the app has given status and headers."""
        self.reads_body: bool = True
        """Whether the body is read, as far as is known: it may begin before the app gives status and headers."""
        self._captured: CapturedResponse | None = None
        """The response, from its start to its end, if its body is read."""

    @abstractmethod
    def is_useless(self) -> bool:
        """Whether the request is surely no evidence, nor for a document, by its cookie: then it is counted."""

    @abstractmethod
    def request(self) -> Request:
        """The request as the service sees it. Read it after the app as well: the app may have signed the visitor in."""

    @guarded
    def on_start(self, status: Any, headers: Any) -> None:
        """Observe the start of the response, which replaces one that began before."""
        if self._captured is not None:
            self.retract()
        self.has_started, self.reads_body = True, False
        page, tracker = self.page, self.tracker
        if page is None:
            return
        now = tracker.clock()
        if 0 <= now - page.second < 1 and page.last == (status, headers):
            tracker.buffer.seen += 1
            return
        if self.is_useless():
            return
        request = self.request()
        if (reason := tracker.ignore_reason(request)) is not None:
            tracker.ignored.count(page.path, reason)
            return
        captured = tracker.captured(page, status, headers, request, now)
        if captured is None:
            return
        parsed = ResponseHeaders(captured.headers)
        if captured.status != 200:  # the page that it answers with later may be another one
            tracker.sampler.forget(captured.page_key)
        elif parsed.media_type in HTML_TYPES and tracker.sampler.is_due(captured, parsed):
            page.last = None  # this one is the last, and is recorded at its end
            self.reads_body, self._captured = True, captured
            self._body, self._length = bytearray(), parsed.get_last("content-length")
            return
        tracker.buffer.record(captured)
        page.last, page.second = (status, captured.headers), now // 1.0

    @guarded
    def on_chunk(self, chunk: Any) -> None:
        """Keep a part of the body. The response is recorded as soon as that makes it complete, or too long."""
        if self._captured is None:
            return
        if not isinstance(chunk, bytes | bytearray | memoryview):
            self.on_skipped_body()  # the server will refuse the chunk, too
            return
        self._body += chunk
        # Not at the end of the iteration: a test client, or an endless body, may not get there.
        if len(self._body) > MAX_HTML_BYTES or str(len(self._body)) == self._length:
            self.on_end()

    @guarded
    def on_end(self) -> None:
        """Record the response: the whole body has been sent."""
        if (captured := self._captured) is not None:
            captured.is_truncated = len(self._body) > MAX_HTML_BYTES
            captured.body = bytes(self._body[:KEPT_BODY_BYTES] if captured.is_truncated else self._body)
            self._record(captured)

    @guarded
    def on_skipped_body(self) -> None:
        """Record the response by its headers: the server sends part of the body past the middleware, as of a file."""
        if self._captured is not None:
            self._captured.is_readable = False
            self._record(self._captured)

    @guarded
    def on_error(self, error: BaseException) -> None:
        """Observe that the app has raised an error."""
        self.retract()
        page, tracker = self.page, self.tracker
        # Of frameworks' own classes for a client that has left, as Starlette's ClientDisconnect, the names say it.
        is_clients = not isinstance(error, Exception) or "Disconnect" in type(error).__name__
        if page is None or self.has_started or is_clients:
            return
        if tracker.ignore_reason(self.request()) is None:
            tracker.note_error(page, f"raised {type(error).__name__} for a visitor")

    @guarded
    def retract(self) -> None:
        """Record nothing: the response failed before its end, or another one replaces it."""
        if self._captured is not None:
            self.tracker.sampler.forget(self._captured.page_key)
            self._captured = None

    def _record(self, captured: CapturedResponse) -> None:
        self._captured = None
        self.tracker.buffer.record(captured)


@dataclass(slots=True)
class SampleSchedule:
    """When to read a page's body again."""

    due_at: float = 0.0
    interval: float = MIN_SAMPLE_INTERVAL_SECONDS
    described: tuple[str, str] = ("", "")
    """Content-Length and Content-Type of the last reading."""
    digest: int | None = None


class BodySampler:
    """Schedules readings on the request path; the background thread reports their digests later."""

    def __init__(self) -> None:
        self.forget_all()

    def forget_all(self) -> None:
        """Forget all schedules: each page is read at its next response."""
        self._schedules = BoundedCache[int, SampleSchedule](MAX_SAMPLED_PAGES)
        """By the hash of the page's key, which takes a third of the memory. Clients cannot predict these hashes."""

    def is_due(self, captured: CapturedResponse, headers: ResponseHeaders) -> bool:
        """Whether a body is to be read: the last reading is not recent, or had another length or type.

        If so, the next one is scheduled: of responses at the same time one is read.
        """
        schedule = self._schedules.get(hash(captured.page_key)) or SampleSchedule()
        is_recent = schedule.due_at - MAX_SAMPLE_INTERVAL_SECONDS <= captured.at < schedule.due_at
        described = headers.get_last("content-length"), headers.get_last("content-type")
        if is_recent and described == schedule.described:
            return False
        schedule.due_at, schedule.described = captured.at + schedule.interval, described
        self._schedules.put(hash(captured.page_key), schedule)
        return True

    def forget(self, key: PageKey) -> None:
        """Read a page at its next response, because it has answered with something else than a page, or failed."""
        schedule = self._schedules.get(hash(key))
        if schedule is not None:
            schedule.due_at = 0.0

    def record_digest(self, key: PageKey, digest: int | None) -> None:
        """Report the digest of a reading: an equal one doubles the interval, another one resets it.

        `digest` is None if the body has none, such as an image.
        """
        schedule = self._schedules.get(hash(key))
        if schedule is not None:
            if digest == schedule.digest:
                schedule.interval = min(MAX_SAMPLE_INTERVAL_SECONDS, schedule.interval * 2)
            else:
                schedule.due_at -= schedule.interval - MIN_SAMPLE_INTERVAL_SECONDS
                schedule.interval = MIN_SAMPLE_INTERVAL_SECONDS
            schedule.digest = digest


class IgnoredRequests:
    """How many requests of this process did not count as evidence, and why the last one for each path did not."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(IGNORE_REASONS, 0)
        self._last_reasons: dict[str, IgnoreReason] = {}

    def count(self, path: str, reason: IgnoreReason) -> None:
        """Count a request for a decoded path."""
        self.counts[reason.reason] += 1
        if len(path) <= MAX_REMEMBERED_PATH_CHARS:
            if len(self._last_reasons) >= MAX_REMEMBERED_PATHS:
                self._last_reasons.clear()
            self._last_reasons[path] = reason

    def summary(self, path: str, *, known: bool) -> str | None:
        """Describe the ignored requests by reason, and the last one for this path; None if it says nothing new."""
        counts, last = dict(self.counts), self._last_reasons.get(path)
        total = sum(counts.values())
        if not total or (known and last is None):
            return None
        by_reason = ", ".join(f"{count} {IGNORE_REASONS[reason]}" for reason, count in counts.items() if count)
        summary = f"of all requests to this process since it began, {total} did not count as evidence: {by_reason}"
        return summary if last is None else f"{summary}; the last of them for this page {last.detail}"


def _are_rereadable(headers: Any) -> bool:
    """Whether headers, and each pair of them, can be read here and again by the server."""
    is_collection = isinstance(headers, Collection) and not isinstance(headers, Mapping | str | bytes)
    return is_collection and all(isinstance(pair, list | tuple) for pair in headers)
