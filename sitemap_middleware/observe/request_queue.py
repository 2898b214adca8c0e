"""What the prober knows of each site: the pages that wait to be requested, and the job that requests them."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, replace
from typing import Final

from ..http.messages import CapturedResponse, Request

MAX_PAUSE_SECONDS: Final = 60 * 60
"""The longest pause that a Retry-After can ask for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A page that waits to be requested."""

    at: float
    """From when on, in POSIX seconds."""
    times: int = 1
    is_unvisited: bool = False
    """Whether nothing is known of it, so that a refusal proves nothing either."""


class Job:
    """Work in the background."""

    def __init__(self, began: float) -> None:
        self.hurries_since = began
        """When it began, or a request for the sitemap began to wait for it, in POSIX seconds."""
        self.is_done = False
        self.has_failed = False
        """Whether it could make no request, because the event loop of its live request has ended."""
        self.is_waited_for = False
        """Whether a request for the sitemap waits. Others get what there is."""
        self.due_done = threading.Event()
        """Set once no page is due."""
        self.wakeup = threading.Event()
        """Ends a pause: other pages may be due."""


@dataclass(slots=True)
class Queue:
    """What is known of a site. Times are in POSIX seconds."""

    waiting: dict[str, Asked] = field(default_factory=dict)
    """By decoded path."""
    asked: dict[str, Asked] = field(default_factory=dict)
    """Those that are being requested."""
    live: Request | None = None
    """A live request, in whose background pages are requested."""
    job: Job | None = None
    looked_at: float = -math.inf
    """When the site was last looked at for unvisited pages."""
    paused_until: float = -math.inf
    """Until when no page is requested, because the app limits the rate."""
    refused: list[CapturedResponse] = field(default_factory=list)
    """The last answers in a row that were 403, of pages that nobody has visited."""
    rows: int = 0
    """How many such rows there were since the app answered otherwise."""

    def add(self, path: str, asked: Asked, limit: int) -> None:
        """Have a decoded path requested, unless it just is, or too many wait."""
        before = self.waiting.get(path)
        if before is not None:
            self.waiting[path] = replace(asked, at=min(before.at, asked.at), times=max(before.times, asked.times))
        elif path not in self.asked and len(self.waiting) < limit:
            self.waiting[path] = asked

    def is_paused(self, now: float) -> bool:
        """Whether no page is to be requested now."""
        return now < self.paused_until <= now + MAX_PAUSE_SECONDS

    def has_due(self, now: float) -> bool:
        """Whether pages are being requested, or wait and may be requested now."""
        return bool(self.asked) or any(asked.at <= now for asked in self.waiting.copy().values())

    def next_path(self, now: float) -> str:
        """The path to request next: unvisited pages come first, as strangers can have any number of others asked.

        Empty if none waits by now: another thread may work off the queue within a request.
        """
        waiting = self.waiting.copy()  # of up to 10,000 pages: a key for each of them would take milliseconds
        unvisited = (path for path, asked in waiting.items() if asked.at <= now and asked.is_unvisited)
        due = (path for path, asked in waiting.items() if asked.at <= now)
        return next(unvisited, "") or next(due, "") or min(waiting, key=lambda path: waiting[path].at, default="")

    def take(self, path: str) -> Asked | None:
        """Note that a path is being requested; None if it waits for that no more."""
        asked = self.waiting.pop(path, None)
        if asked is not None:
            self.asked[path] = asked
        return asked
