"""Decides which bodies to sample: a page's first one, then one at intervals that grow while nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..bounded_cache import BoundedCache
from ..captured_response import CapturedResponse
from ..models import RawHeaders

MIN_SAMPLE_INTERVAL_SECONDS: Final = 5.0
MAX_SAMPLE_INTERVAL_SECONDS: Final = 15 * 60.0
"""Seconds between two samples of one page: at first, and when it has not changed for long."""

MAX_SAMPLED_PAGES: Final = 20_000
"""Maximum number of pages whose schedule is remembered. The half that was sampled last is always kept. Pages without a
schedule are sampled at their next response. Schedules expire after a quarter of an hour, in which few workers fill that
half."""

HeaderPair = tuple[str, str] | tuple[bytes, bytes]

_CONTENT_LENGTH_NAMES: Final[frozenset[str | bytes]] = frozenset(
    {b"content-length", "Content-Length", "content-length"}
)
_CONTENT_TYPE_NAMES: Final[frozenset[str | bytes]] = frozenset({b"content-type", "Content-Type", "content-type"})
_CONTENT_LENGTH_CHARS: Final = len("content-length")
_CONTENT_TYPE_CHARS: Final = len("content-type")


@dataclass(slots=True)
class SampleSchedule:
    """When to sample a page's body again."""

    due_at: float
    interval: float
    length: HeaderPair | None
    """The Content-Length header of the last sample, as it was sent."""
    media_type: HeaderPair | None
    """Its Content-Type header."""
    digest: int | None
    is_refused: bool = False
    """Whether the HTML of the last sample said that the page is not to be listed, as by a robots meta tag."""
    is_read: bool = False
    """Whether a body was sent to its end since the page was made known here, or need not be: its route is static."""

    def is_due(self, at: float, headers: RawHeaders) -> bool:
        """Whether a sample is needed now: the last one is not recent, or had another length or type."""
        # A sample that is due too far ahead was planned when the clock was wrong.
        if not self.due_at - MAX_SAMPLE_INTERVAL_SECONDS <= at < self.due_at:
            return True
        if self.length in headers and self.media_type in headers:
            return False
        length = _field(headers, _CONTENT_LENGTH_NAMES, _CONTENT_LENGTH_CHARS)
        media_type = _field(headers, _CONTENT_TYPE_NAMES, _CONTENT_TYPE_CHARS)
        return not (_is_equal(length, self.length) and _is_equal(media_type, self.media_type))


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

    def is_due(self, captured: CapturedResponse) -> bool:
        """Whether a page is to be sampled now."""
        schedule = self.find(captured.page_key)
        return schedule is None or schedule.is_due(captured.at, captured.headers)

    def schedule(self, captured: CapturedResponse) -> SampleSchedule:
        """Schedule the next sample of a page that is being sampled."""
        schedule = self.find(captured.page_key) or SampleSchedule(0, MIN_SAMPLE_INTERVAL_SECONDS, None, None, None)
        self._schedules.put(hash(captured.page_key), schedule)
        schedule.due_at = captured.at + schedule.interval
        schedule.length = _field(captured.headers, _CONTENT_LENGTH_NAMES, _CONTENT_LENGTH_CHARS)
        schedule.media_type = _field(captured.headers, _CONTENT_TYPE_NAMES, _CONTENT_TYPE_CHARS)
        return schedule

    def is_refused(self, key: tuple[str, str]) -> bool:
        """Whether the HTML of a page's last sample said that the page is not to be listed."""
        schedule = self.find(key)
        return schedule is not None and schedule.is_refused

    def require_reading(self, key: tuple[str, str]) -> None:
        """Have a learned page that its headers or its status refused read before it is recorded as a page again."""
        schedule = self.find(key)
        if schedule is not None and schedule.is_read:
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


def _field(headers: RawHeaders, names: frozenset[str | bytes], chars: int) -> HeaderPair | None:
    """A header as it was sent, by its name in the spellings that servers and frameworks use, or in another case.

    Only a name of so many characters is put in lower case: this is faster than to do so with each.
    """
    try:
        for pair in headers:
            name = pair[0]
            if name in names or (len(name) == chars and name.lower() in names):
                return pair
    except (AttributeError, IndexError, TypeError):  # not a pair, or a name that is no text
        return None
    return None


def content_length(headers: RawHeaders) -> int | None:
    """The bytes that a body has by its Content-Length; None if that is missing, or not a number."""
    pair = _field(headers, _CONTENT_LENGTH_NAMES, _CONTENT_LENGTH_CHARS)
    try:
        return None if pair is None else int(pair[1])
    except (IndexError, TypeError, ValueError):
        return None


def _is_equal(pair: HeaderPair | None, other: HeaderPair | None) -> bool:
    """Whether two headers have the same value, whatever the spelling of their names; or neither was sent."""
    return pair[1:] == other[1:] if pair and other else pair is other
