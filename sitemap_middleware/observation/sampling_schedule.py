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
"""Maximum number of pages whose plan is remembered. The half that was sampled last is always kept. A page without a
plan is sampled at its next response. Plans expire after a quarter of an hour, in which few workers fill that half."""

HeaderPair = tuple[str, str] | tuple[bytes, bytes]

_CONTENT_LENGTH_NAMES: Final[frozenset[str | bytes]] = frozenset(
    {b"content-length", "Content-Length", "content-length"}
)
_CONTENT_TYPE_NAMES: Final[frozenset[str | bytes]] = frozenset({b"content-type", "Content-Type", "content-type"})


@dataclass(slots=True)
class SamplePlan:
    """When to sample a page's body again."""

    due_at: float
    interval: float
    length: HeaderPair | None
    """The Content-Length header of the last sample, as it was sent."""
    media_type: HeaderPair | None
    """Its Content-Type header."""
    digest: int | None

    def is_fresh(self, at: float, headers: RawHeaders) -> bool:
        """Whether no sample is needed now: the last one is recent, and length and type are the same."""
        # A sample that is due too far ahead was planned when the clock was wrong.
        if not self.due_at - MAX_SAMPLE_INTERVAL_SECONDS <= at < self.due_at:
            return False
        if self.length in headers and self.media_type in headers:
            return True
        length, media_type = _field(headers, _CONTENT_LENGTH_NAMES), _field(headers, _CONTENT_TYPE_NAMES)
        return _is_equal(length, self.length) and _is_equal(media_type, self.media_type)


class BodySampler:
    """Plans samples on the request path; the background thread reports their digests later."""

    def __init__(self) -> None:
        self._plans = BoundedCache[int, SamplePlan](MAX_SAMPLED_PAGES)
        """By the hash of the page's key, which takes a third of the memory. Clients cannot predict these hashes."""

    def find(self, key: tuple[str, str]) -> SamplePlan | None:
        """The plan of a page; None if it has not been sampled, or not recently."""
        return self._plans.get(hash(key))

    def is_fresh(self, captured: CapturedResponse) -> bool:
        """Whether a page need not be sampled now."""
        plan = self.find(captured.page_key)
        return plan is not None and plan.is_fresh(captured.at, captured.headers)

    def schedule(self, captured: CapturedResponse) -> SamplePlan:
        """Plan the next sample of a page that is being sampled."""
        plan = self.find(captured.page_key) or SamplePlan(0, MIN_SAMPLE_INTERVAL_SECONDS, None, None, None)
        self._plans.put(hash(captured.page_key), plan)
        plan.due_at = captured.at + plan.interval
        plan.length = _field(captured.headers, _CONTENT_LENGTH_NAMES)
        plan.media_type = _field(captured.headers, _CONTENT_TYPE_NAMES)
        return plan

    def record_digest(self, key: tuple[str, str], digest: int | None) -> None:
        """Report the digest of a sample: an equal one doubles the interval, another one resets it."""
        plan = self.find(key)
        if plan is not None:
            if digest == plan.digest:
                plan.interval = min(MAX_SAMPLE_INTERVAL_SECONDS, plan.interval * 2)
            else:
                plan.due_at -= plan.interval - MIN_SAMPLE_INTERVAL_SECONDS
                plan.interval = MIN_SAMPLE_INTERVAL_SECONDS
            plan.digest = digest


def _field(headers: RawHeaders, names: frozenset[str | bytes]) -> HeaderPair | None:
    """A header as it was sent, by its name in one of the spellings that servers and frameworks use."""
    try:
        for pair in headers:
            if pair[0] in names:
                return pair
    except (IndexError, TypeError):  # not a pair, or an unhashable name
        return None
    return None


def _is_equal(pair: HeaderPair | None, other: HeaderPair | None) -> bool:
    """Whether two headers have the same value, whatever the spelling of their names; or neither was sent."""
    return pair[1:] == other[1:] if pair and other else pair is other
