"""Decides which bodies to sample: a page's first one, then one at intervals that grow while nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..http.captured_response import CapturedResponse
from ..models import RawHeaders
from ..util import BoundedCache

MIN_SAMPLE_INTERVAL_SECONDS: Final = 5.0
MAX_SAMPLE_INTERVAL_SECONDS: Final = 15 * 60.0
"""Seconds between two samples of one page: at first, and when it has not changed for long."""

MAX_SAMPLED_PAGES: Final = 20_000
"""Maximum number of pages whose schedule is remembered. The half that was sampled last is always kept. Pages without a
schedule are sampled at their next response. Schedules expire after a quarter of an hour, in which few workers fill that
half."""

_Described = tuple[str | bytes | None, str | bytes | None]
"""Content-Length and Content-Type, as the app wrote them."""


@dataclass(slots=True)
class SampleSchedule:
    """When to sample a page's body again."""

    due_at: float = 0.0
    interval: float = MIN_SAMPLE_INTERVAL_SECONDS
    described: _Described = (None, None)
    """Length and type of the last sample."""
    digest: int | None = None
    is_refused: bool = False
    """Whether the HTML of the last sample said that the page is not to be listed, as by a robots meta tag."""
    is_read: bool = False
    """Whether a body was sent to its end since the page was made known here, or need not be: its route is static."""

    def is_due(self, at: float, headers: RawHeaders) -> bool:
        """Whether a sample is needed now: the last one is not recent, or had another length or type."""
        # A sample that is due too far ahead was planned when the clock was wrong.
        if not self.due_at - MAX_SAMPLE_INTERVAL_SECONDS <= at < self.due_at:
            return True
        return _described(headers) != self.described


class BodySampler:
    """Schedules samples on the request path; the background thread reports their digests later."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all schedules: each page is sampled at its next response."""
        self._schedules = BoundedCache[int, SampleSchedule](MAX_SAMPLED_PAGES)
        """By the hash of the page's key, which takes a third of the memory. Clients cannot predict these hashes."""

    def find(self, key: tuple[str, str]) -> SampleSchedule | None:
        """The schedule of a page; None if it has not been sampled, or not recently."""
        return self._schedules.get(hash(key))

    def schedule(self, captured: CapturedResponse) -> SampleSchedule:
        """Schedule the next sample of a page that is being sampled."""
        key = captured.page_key
        schedule = self.find(key) or SampleSchedule()
        self._schedules.put(hash(key), schedule)
        schedule.due_at = captured.at + schedule.interval
        schedule.described = _described(captured.headers)
        return schedule

    def is_refused(self, key: tuple[str, str]) -> bool:
        """Whether the HTML of a page's last sample said that the page is not to be listed."""
        schedule = self.find(key)
        return schedule is not None and schedule.is_refused

    def require_reading(self, key: tuple[str, str]) -> None:
        """Have a page that its headers or its status refused read before it is recorded as a page again."""
        schedule = self.find(key)
        if schedule is not None:
            schedule.is_read = False
            schedule.due_at = 0.0  # at its next response, whatever the clock says then

    def record_digest(self, key: tuple[str, str], digest: int | None, *, is_refused: bool = False) -> None:
        """Report the digest of a sample: an equal one doubles the interval, another one resets it.

        Args:
            key: that of the page.
            digest: None if the body has none, such as an image.
            is_refused: whether its HTML says that the page is not to be listed.
        """
        schedule = self.find(key)
        if schedule is not None:
            schedule.is_refused, schedule.is_read = is_refused, True
            if digest == schedule.digest:
                schedule.interval = min(MAX_SAMPLE_INTERVAL_SECONDS, schedule.interval * 2)
            else:
                schedule.due_at -= schedule.interval - MIN_SAMPLE_INTERVAL_SECONDS
                schedule.interval = MIN_SAMPLE_INTERVAL_SECONDS
            schedule.digest = digest


def content_length(headers: RawHeaders) -> int | None:
    """The bytes that a body has by its Content-Length; None if that is missing, or not a number."""
    length, _ = _described(headers)
    try:
        return None if length is None else int(length)
    except ValueError:
        return None


def _described(headers: RawHeaders) -> _Described:
    """The Content-Length and the Content-Type of a response, by their names in any case."""
    length: str | bytes | None = None
    media_type: str | bytes | None = None
    for name, value in headers:
        if len(name) == len("content-type") and name.lower() in ("content-type", b"content-type"):
            media_type = value
        elif len(name) == len("content-length") and name.lower() in ("content-length", b"content-length"):
            length = value
    return length, media_type
