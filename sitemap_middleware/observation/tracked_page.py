"""A page that was requested recently: compares its responses, on the request path, and captures those that differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ..captured_response import OBSERVED_STATUSES, CapturedResponse
from ..evidence.observations import HTML_TYPES
from ..evidence.response_headers import ResponseHeaders
from ..models import Site
from ..request_filter.reasons import IgnoreReason
from ..request_response import KEY_HOST, Request
from ..routing.current_routes import AppRoutes
from .background_saving import ResponseBuffer
from .fault_log import FaultLog
from .ignored_request_counts import IgnoredRequests
from .observer import NO_ANSWER, Observer, status_code
from .sampling_schedule import BodySampler, SampleSchedule

_MAX_TIMESTAMP_SECONDS: Final = 253_402_300_800.0
"""The beginning of the year 10,000 in POSIX seconds. Dates from then on cannot be written."""

_MAX_ROUTING_HEADERS_CHARS: Final = 4000
"""Characters of the headers by which a proxy states the requested URL. A response to more of them is not recorded."""

REPEATS_BEFORE_PAUSE: Final = 50
"""Equal responses in a row, within one second, after which a page is not observed for the rest of that second.

To compare as many takes about a ten-thousandth of the second, so a smaller number would save little. Pages that
are requested less often are compared each time."""

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
    ) -> None:
        self.buffer = buffer
        self.clock = clock
        self.log_fault = log_fault
        self.sampler: BodySampler = BodySampler()
        self.ignored: IgnoredRequests = IgnoredRequests()
        self.repeated = 0
        """Responses that repeated the last one of their page within one second, and so were not captured."""
        self._app_routes = app_routes

    def schedule_sample(self, captured: CapturedResponse) -> SampleSchedule | None:
        """Schedule the next sample of the body; one is due now; None if it is never sampled.

        Bodies are sampled if the page has a route and the body is HTML. Bytes that cannot be decompressed here may be
        plain HTML in truth.
        """
        route = self._app_routes.table.find_route(captured.site, captured.path)
        if route is None:
            return None
        if ResponseHeaders(captured.headers).media_type not in HTML_TYPES:
            return None
        schedule = self.sampler.schedule(captured)
        schedule.is_read = schedule.is_read or route.static
        return schedule


class TrackedPage:
    """A page that was requested recently: one object for all host names and URLs by which it is requested."""

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
        only counted: times are kept in whole seconds, so it adds nothing. After
        `REPEATS_BEFORE_PAUSE` of them in a row, the page pauses until the second ends.

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
        clock = context.clock  # Python calls a local variable faster than an attribute that is no method
        now = clock()
        try:
            is_repeated = (
                status == last.raw_status
                and headers == last.headers
                and (request.key is last.key or request.key[KEY_HOST] == last.host)
            )
            if is_repeated and last.at <= now < last.second_ends_at:
                context.repeated += 1
                last.repeats = repeats = last.repeats + 1
                if repeats >= REPEATS_BEFORE_PAUSE:
                    last.pause = now, last.second_ends_at, request.key
                return None
        except Exception as error:
            context.log_fault("a response could not be compared", error)
            is_repeated = False
        return self._on_other_response(status, headers, request, last, now, is_repeated)

    def _on_other_response(  # noqa: PLR0917 (to pass an argument by name takes longer)
        self, status: Any, headers: Any, request: Request, last: Observer, now: float, is_repeated: bool
    ) -> Observer | None:
        """Observe the start of a response that differs from the last one, or does not follow it within the same second.

        Separate from `on_response_start`, which is faster with few local variables: Python clears each at the end.
        """
        context = self.context
        if last.repeats:
            last.repeats, last.pause = 0, None
        if (reason := request.ignore_reason()) is not None:
            if reason is self._last_ignore_reason:  # a cheaper count, for visitors who are signed in
                context.ignored.counts[reason.reason] += 1
            else:
                self._last_ignore_reason = reason
                context.ignored.count(self.path, reason)
            return None
        if (
            is_repeated
            and last.second_ends_at <= now < _MAX_TIMESTAMP_SECONDS
            and request.routing_headers == last.routing_headers
        ):
            if last.status == 200 and (schedule := self.schedule) is not None and schedule.due_at <= now:
                return self._capture(status, headers, now, request)
            last.at = now  # the background thread may read the old time or the new one; both are true
            last.second_ends_at = now // 1.0 + 1.0
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
            captured.key = request.key
            captured.raw_status = raw_status
            captured.routing_headers = request.routing_headers
            self.last_answer = NO_ANSWER
            schedule = self.schedule or context.sampler.find(self.page_key)
            if status != 200:
                self.must_sample = True
                context.sampler.require_reading(self.page_key)  # the page that it answers with later may be another one
            else:
                if schedule is None or self.must_sample or schedule.is_due(now, headers):
                    schedule = context.schedule_sample(captured)
                    captured.chunks = None if schedule is None else []
                self.schedule = schedule
                if schedule is not None and not schedule.is_read:
                    captured.unread_schedule = schedule
                    return None if captured.chunks is None else captured
            context.buffer.record(captured)
            observer = captured
            if captured.chunks is None:
                captured.second_ends_at = now // 1 + 1
                self.last_answer = captured
        except Exception as error:
            context.log_fault("a response could not be observed", error)
        return observer


def _are_rereadable(headers: Any) -> bool:
    """Whether headers, and each pair of them, can be read here and again by the server."""
    if type(headers) not in _REREADABLE_TYPES:
        pairs = isinstance(headers, Collection) and not isinstance(headers, Mapping | str | bytes)
        if not pairs:
            return False
    return _REREADABLE_TYPES.issuperset(map(type, headers)) or all(isinstance(pair, list | tuple) for pair in headers)
