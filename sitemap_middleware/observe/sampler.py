"""Decides which bodies to read: a page's first one, then one at intervals that grow while nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..evidence.response_headers import ResponseHeaders
from ..http.messages import CapturedResponse
from ..util import BoundedCache

MIN_SAMPLE_INTERVAL_SECONDS: Final = 5.0
MAX_SAMPLE_INTERVAL_SECONDS: Final = 15 * 60.0
"""Seconds between two readings of one page: at first, and when it has not changed for long."""

MAX_SAMPLED_PAGES: Final = 20_000
"""Pages whose schedule is remembered, at most; the half that was read last is always kept. Others are read at their
next response. Schedules expire after a quarter of an hour, in which few workers fill that half."""

PageKey = tuple[str, str]
"""`CapturedResponse.page_key`."""


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
