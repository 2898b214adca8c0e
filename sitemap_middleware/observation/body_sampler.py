"""The sampler: which bodies to read. Each page's at first sight, then at intervals that grow while nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..bounded_cache import BoundedCache
from ..models import RawHeaders
from ..observations import CapturedResponse

MIN_SAMPLE_INTERVAL_SECONDS: Final = 5.0
MAX_SAMPLE_INTERVAL_SECONDS: Final = 15 * 60.0
"""Seconds between two samples of one page: at first, and once it was long unchanged."""

MAX_SAMPLED_PAGES: Final = 20_000
"""Pages whose next sample is remembered, at most; half as many, those that were sampled last, always are. Of any other,
the next sight is sampled. A plan tells what to do for a quarter of an hour: few workers answer more than half of these
in that time."""

HeaderPair = tuple[str, str] | tuple[bytes, bytes]

_CONTENT_LENGTH_NAMES: Final[frozenset[str | bytes]] = frozenset(
    {b"content-length", "Content-Length", "content-length"}
)


@dataclass(slots=True)
class SamplePlan:
    """When a page's body is to be read again."""

    due_at: float
    interval: float
    length: HeaderPair | None
    """The field that stated its length, as it stood."""
    digest: int | None

    def is_fresh(self, at: float, headers: RawHeaders) -> bool:
        """Whether it need not be read now: it was lately, and its length is the same."""
        if (
            not self.due_at - MAX_SAMPLE_INTERVAL_SECONDS <= at < self.due_at
        ):  # or the clock was ahead when this was planned
            return False
        if self.length in headers:
            return True
        length = _content_length(headers)
        return length[1:] == self.length[1:] if length and self.length else length is self.length


class BodySampler:
    """Decides on the request path, from what it remembers; is told of what came of it later, off that path."""

    def __init__(self) -> None:
        self._plans = BoundedCache[int, SamplePlan](MAX_SAMPLED_PAGES)
        """By the hash of the page's key: in a process no one can foresee these, and they take a third of the room."""

    def find(self, key: tuple[str, str]) -> SamplePlan | None:
        """The plan of a page that was sampled before."""
        return self._plans.get(hash(key))

    def is_fresh(self, sighting: CapturedResponse) -> bool:
        """Whether a page need not be sampled now."""
        plan = self.find(sighting.page_key)
        return plan is not None and plan.is_fresh(sighting.at, sighting.headers)

    def schedule(self, sighting: CapturedResponse) -> SamplePlan:
        """A page is sampled now; when it is to be sampled again."""
        plan = self.find(sighting.page_key) or SamplePlan(0, MIN_SAMPLE_INTERVAL_SECONDS, None, None)
        self._plans.put(hash(sighting.page_key), plan)
        plan.due_at = sighting.at + plan.interval
        plan.length = _content_length(sighting.headers)
        return plan

    def record_digest(self, key: tuple[str, str], digest: int | None) -> None:
        """What a sample came to: the same as the last doubles the interval, anything else is soon looked at again."""
        plan = self.find(key)
        if plan is not None:
            if digest == plan.digest:
                plan.interval = min(MAX_SAMPLE_INTERVAL_SECONDS, plan.interval * 2)
            else:
                plan.due_at -= plan.interval - MIN_SAMPLE_INTERVAL_SECONDS
                plan.interval = MIN_SAMPLE_INTERVAL_SECONDS
            plan.digest = digest


def _content_length(headers: RawHeaders) -> HeaderPair | None:
    """The Content-Length as it stands, in the spellings that servers and frameworks use."""
    try:
        for pair in headers:
            if pair[0] in _CONTENT_LENGTH_NAMES:
                return pair
    except (IndexError, TypeError):  # a pair that is none, or a name that is no text
        return None
    return None
