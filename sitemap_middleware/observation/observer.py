"""Observes one response as it passes, on the request path: it takes microseconds and never raises into the app."""

from __future__ import annotations

import math
import operator
from typing import Any, Final, Protocol

from ..captured_response import KEPT_BODY_BYTES, MAX_HTML_BYTES, CapturedResponse
from ..models import RoutingHeaders, Site
from ..request_response import RequestKey
from .background_saving import ResponseBuffer
from .fault_log import FaultLog
from .sampling_schedule import SampleSchedule, content_length

Pause = tuple[float, float, RequestKey]
"""When a page is not observed: since and until when, in POSIX seconds of the same whole second, and the key of the
requests that are passed over. It is one object, so that no thread reads half of another pause.

A request is passed over, and only counted, if its key is this object and its time lies in the pause."""


class _Context(Protocol):
    """The part of `ObserverContext` that an observer uses."""

    buffer: ResponseBuffer
    log_fault: FaultLog


class ObservedPage(Protocol):
    """What an observer needs of the page whose response it observes."""

    site: Site
    path: str
    page_key: tuple[str, str]
    is_foreign_host: bool
    last_answer: Observer
    must_sample: bool

    @property
    def context(self) -> _Context: ...


class Observer(CapturedResponse):
    """A captured response that is still passing. It collects the body if that is sampled."""

    __slots__ = (
        "_page",
        "_size_bytes",
        "chunks",
        "key",
        "pause",
        "raw_status",
        "repeats",
        "second_ends_at",
        "unread_schedule",
    )

    key: RequestKey | None
    """The key of the request, to tell by its identity that another request is for the same host."""
    raw_status: Any
    """The status as the app gave it."""
    second_ends_at: float
    """The end of the second of `at`, in POSIX seconds: until then an equal response adds nothing."""
    repeats: int
    """Equal responses in a row since the beginning of this second."""
    pause: Pause | None
    """When the page is not observed."""

    def __init__(self, page: ObservedPage, *, host: str | bytes, status: int, headers: Any, at: float) -> None:
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
        self.is_readable: bool = True
        self.is_volatile = False
        self.is_probe = False
        self.routing_headers: RoutingHeaders = ()
        self.chunks: list[bytes] | None = None
        """The body so far; None if it is not sampled."""
        self._size_bytes = 0
        self.unread_schedule: SampleSchedule | None = None
        """Set if nothing is recorded before the body ends: none of the page's was read yet, and it may say noindex."""
        self.buffer_key: tuple[str, ...] = page.page_key
        self.repeats = 0
        self.pause = None

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
        elif self.unread_schedule is not None and content_length(self.headers) == self._size_bytes:
            self.on_end()  # now: the process may end before the server asks for more

    def on_skipped_body(self) -> None:
        """Drop the sample: the server sends part of the body, such as a file, past the middleware."""
        self._page.must_sample = False
        self.chunks = None
        self.is_readable = False
        self._record_if_unread()

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
        sample.routing_headers = self.routing_headers
        if self._page.context.buffer.record_sample(sample):
            self._record_if_unread()

    def _record_if_unread(self) -> None:
        """Record the response if that had to wait for the end of its body."""
        schedule, self.unread_schedule = self.unread_schedule, None
        if schedule is not None:
            schedule.is_read = True
            self._page.context.buffer.record_late(self)


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


def _make_no_answer() -> Observer:
    """A placeholder for the last answer of a page that has none. No response equals it."""
    answer = Observer.__new__(Observer)
    answer.key = None
    answer.raw_status = answer
    answer.status = 0
    answer.headers = ()
    answer.host = ""
    answer.repeats = 0
    answer.pause = None
    answer.at = answer.second_ends_at = math.inf  # no time lies before it, and none after
    return answer


NO_ANSWER: Final = _make_no_answer()
