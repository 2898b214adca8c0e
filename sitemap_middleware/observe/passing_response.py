"""Observes one response as it passes, on the request path. It takes microseconds, and its callers guard all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from ..http.captured_response import KEPT_BODY_BYTES, MAX_HTML_BYTES, CapturedResponse
from .buffer import ResponseBuffer
from .sampler import SampleSchedule, content_length


class ObservedPage(Protocol):
    """What is needed of the page whose response passes."""

    last: CapturedResponse | None
    schedule: SampleSchedule | None

    @property
    def buffer(self) -> ResponseBuffer: ...


class PassingResponse:
    """A response that was recorded, or waits for the end of its body. It collects the body if that is sampled."""

    __slots__ = ("_chunks", "_page", "_size_bytes", "_waits", "captured")

    def __init__(self, page: ObservedPage, captured: CapturedResponse, *, reads_body: bool, waits: bool) -> None:
        """Begin to observe.

        Args:
            page: the page that was requested.
            captured: what was recorded of the response at its start.
            reads_body: whether the body is sampled.
            waits: whether nothing is recorded before the body ends: none of the page's was read yet, and it may say
                noindex.
        """
        self._page = page
        self.captured: CapturedResponse = captured
        self._chunks: list[bytes] | None = [] if reads_body else None
        self._size_bytes = 0
        self._waits = waits

    @property
    def is_reading(self) -> bool:
        """Whether the body is sampled."""
        return self._chunks is not None

    def retract(self) -> None:
        """Discard what was recorded: the response failed before its end, or another one replaces it."""
        page, self._chunks = self._page, None
        if page.schedule is not None:
            page.schedule.due_at = 0.0
        if page.last is self.captured:
            page.last = None
        page.buffer.discard(self.captured)

    def on_chunk(self, chunk: Any) -> None:
        """Collect a part of the body. If the body grows too large, only its beginning is kept."""
        if self._chunks is None or self._size_bytes > MAX_HTML_BYTES:
            return
        room = MAX_HTML_BYTES + 1 - self._size_bytes
        if type(chunk) is not bytes:
            chunk = _copy_bytes(chunk, room)
            if chunk is None:
                self._chunks = None
                return
        self._chunks.append(chunk[:room])
        self._size_bytes += len(chunk)
        if self._size_bytes > MAX_HTML_BYTES:
            self._chunks = [b"".join(self._chunks)[:KEPT_BODY_BYTES]]
        elif self._waits and content_length(self.captured.headers) == self._size_bytes:
            self.on_end()  # now: the process may end before the server asks for more

    def on_skipped_body(self) -> None:
        """Drop the sample: the server sends part of the body, such as a file, past the middleware."""
        self._chunks = None
        self.captured.is_readable = False
        self._record_if_waiting()

    def on_end(self) -> None:
        """Buffer the sample: the whole body has been sent."""
        if self._chunks is not None:
            body, self._chunks = b"".join(self._chunks), None
            self._keep(replace(self.captured, body=body, is_truncated=self._size_bytes > MAX_HTML_BYTES))

    def on_file(self, path: Any) -> None:
        """Buffer the sample: the server sends a file as the body. It is read later, off the request path."""
        if self._chunks != [] or not isinstance(path, str):
            self.on_skipped_body()
            return
        self._chunks = None
        self._keep(replace(self.captured, file_path=path))

    def _keep(self, sample: CapturedResponse) -> None:
        if self._page.buffer.record_sample(sample):
            self._record_if_waiting()

    def _record_if_waiting(self) -> None:
        """Record the response if that had to wait for the end of its body."""
        if self._waits:
            self._waits = False
            if self._page.schedule is not None:
                self._page.schedule.is_read = True
            self._page.buffer.record_late(self.captured)


def _copy_bytes(chunk: Any, max_bytes: int) -> bytes | None:
    """Copy the beginning of a buffer that the app may reuse; None if it is not a buffer."""
    try:
        with memoryview(chunk) as view, view.cast("B") as flat:
            return flat[:max_bytes].tobytes()
    except Exception:  # the server will refuse the chunk, too
        return None
