"""Reads the body of one response as it passes, on the request path. Its callers guard all of it."""

from __future__ import annotations

from typing import Any, Protocol

from ..http.captured_response import KEPT_BODY_BYTES, MAX_HTML_BYTES, CapturedResponse
from .buffer import ResponseBuffer
from .sampler import BodySampler, content_length


class Recorder(Protocol):
    """Where the response is recorded."""

    buffer: ResponseBuffer
    sampler: BodySampler


class PassingResponse:
    """A response whose body is read. It is recorded when the body ends, and not at all if it fails before."""

    __slots__ = ("_captured", "_chunks", "_recorder", "_size_bytes")

    def __init__(self, recorder: Recorder, captured: CapturedResponse) -> None:
        self._recorder = recorder
        self._captured: CapturedResponse | None = captured
        self._chunks: list[bytes] = []
        self._size_bytes = 0

    def on_chunk(self, chunk: Any) -> None:
        """Keep a part of the body. The response is recorded as soon as that makes it complete, or too long."""
        if self._captured is None:
            return
        if type(chunk) is not bytes:
            copied = _copy_bytes(chunk, MAX_HTML_BYTES + 1)
            if copied is None:
                self.on_skipped_body()
                return
            chunk = copied
        self._chunks.append(chunk)
        self._size_bytes += len(chunk)
        # Not at the end of the iteration: the process, or an endless body, may not get there.
        if self._size_bytes > MAX_HTML_BYTES or self._size_bytes == content_length(self._captured.headers):
            self.on_end()

    def on_end(self) -> None:
        """Record the response: the whole body has been sent."""
        if self._captured is not None:
            body = b"".join(self._chunks)
            self._captured.is_truncated = len(body) > MAX_HTML_BYTES
            self._captured.body = body[:KEPT_BODY_BYTES] if self._captured.is_truncated else body
            self._record()

    def on_skipped_body(self) -> None:
        """Record the response by its headers: the server sends part of the body past the middleware, as of a file."""
        if self._captured is not None:
            self._captured.is_readable = False
            self._record()

    def retract(self) -> None:
        """Record nothing: the response failed before its end, or another one replaces it."""
        if self._captured is not None:
            self._recorder.sampler.forget(self._captured.page_key)
            self._captured = None

    def _record(self) -> None:
        captured, self._captured = self._captured, None
        self._chunks.clear()
        if captured is not None:
            self._recorder.buffer.record(captured)


def _copy_bytes(chunk: Any, max_bytes: int) -> bytes | None:
    """Copy the beginning of a buffer that the app may reuse; None if it is not a buffer."""
    try:
        with memoryview(chunk) as view, view.cast("B") as flat:
            return flat[:max_bytes].tobytes()
    except Exception:  # the server will refuse the chunk, too
        return None
