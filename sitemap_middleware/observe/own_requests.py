"""What the prober knows of each site: the pages that wait to be requested, and those that are being requested.

One request that hangs delays no other.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Final

from ..http.messages import (
    PAGE_TIMEOUT_SECONDS,
    PROBE_GRACE_SECONDS,
    WRONG_HOST_STATUSES,
    AppTerminated,
    CapturedResponse,
    Request,
    Response,
)
from ..models import Site
from ..util import log

MOVE_ON_SECONDS: Final = 0.5
"""Seconds after which another page is requested although one has not answered."""

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


class NoAnswer(Exception):
    """The app sent nothing, or a response that is not about the page. Says so in words that follow "the request"."""


@dataclass(slots=True, eq=False)
class OwnRequest:
    """A request for a page that runs. It is made again, with the Host of the live request, if the app requires that."""

    live: Request
    """The live request that is imitated, with its forwarding headers."""
    site: Site
    path: str
    """Decoded, below the site's root."""
    at: float
    """When it began, in POSIX seconds."""
    keeps_host: bool = False
    future: Future[Response | None] = field(init=False)
    deadline: float = field(init=False)
    """When it counts as hanging, by `time.monotonic`."""
    seconds: float = field(init=False, default=0.0)
    """How long it took."""

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        began = time.monotonic()
        self.future = self.live.start_own(self.site, self.path, keeps_host=self.keeps_host)
        self.future.add_done_callback(lambda _: setattr(self, "seconds", time.monotonic() - began))
        self.deadline = time.monotonic() + PAGE_TIMEOUT_SECONDS + PROBE_GRACE_SECONDS

    def result(self) -> CapturedResponse | None:
        """The response, once the future is done; None if the request is made again.

        Raises:
            NoAnswer: the app said nothing about the page.
            Exception: the app raised it.
        """
        response = self.future.result(0)
        if response is None:
            raise TimeoutError
        if self.keeps_host and response.status in WRONG_HOST_STATUSES:
            raise NoAnswer(f"got {response.status}, which may be about its Host: check the app's allowed hosts")
        if self.live.is_host_refused(self.site, response.status):
            self.keeps_host = True
            self._start()
            return None
        return CapturedResponse(
            self.site,
            self.path,
            at=self.at,
            status=response.status,
            headers=response.headers,
            body=response.body,
            is_probe=True,
            seconds=self.seconds,
            host=self.live.host if self.keeps_host else self.site.asked_as or self.site.host,
        )


@dataclass(slots=True, eq=False)
class RunningRequests:
    """The requests for pages of one site that run at the same time. Only one thread uses it."""

    _live: Request
    _site: Site
    _queue: Queue
    _hanging: list[OwnRequest]
    """The requests of this process that hang: each takes a thread of the app."""
    _on_response: Callable[[Asked, CapturedResponse], object]
    _on_failure: Callable[[str, str], object]
    """Takes the path, and why it got no answer, in words that follow "the request"."""
    _running: list[OwnRequest] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._running)

    def has_room(self) -> bool:
        """Whether another request may be made: it may hang, too."""
        return len(self._hanging) + len(self._running) < self._live.max_hanging_requests

    def start(self, path: str, at: float) -> None:
        """Request a decoded path at so many POSIX seconds, and give it a moment to answer."""
        own = OwnRequest(self._live, self._site, path, at)
        self._running.append(own)
        until = time.monotonic() + MOVE_ON_SECONDS
        while own in self._running and time.monotonic() < until:
            self.settle(until - time.monotonic())

    def settle(self, seconds: float = MOVE_ON_SECONDS) -> None:
        """Wait so long for the next response, and deal with what is done and what hangs."""
        wait([own.future for own in self._running], max(0.0, seconds), FIRST_COMPLETED)
        for own in self._running.copy():
            if own.future.done():
                self._go_on(own)
            elif time.monotonic() >= own.deadline:
                self._running.remove(own)
                self._hanging.append(own)
                own.future.add_done_callback(lambda _, own=own: self._hanging.remove(own))  # type: ignore[misc]
                self._fail(own, TimeoutError())

    def _go_on(self, own: OwnRequest) -> None:
        try:
            response = own.result()
        except Exception as error:
            log.debug("the app failed on a request for %s: %r", own.path, error)
            self._running.remove(own)
            self._fail(own, error)
        else:
            if response is not None:  # else it is made again
                self._running.remove(own)
                self._on_response(self._queue.asked.pop(own.path, Asked(own.at)), response)

    def _fail(self, own: OwnRequest, error: Exception) -> None:
        self._queue.asked.pop(own.path, None)
        self._on_failure(own.path, describe_failure(error))


def describe_failure(error: BaseException) -> str:
    """Why a request got no response, in words that follow "the request"."""
    if isinstance(error, TimeoutError):
        return f"got no complete response within {PAGE_TIMEOUT_SECONDS:g} seconds"
    if isinstance(error, AppTerminated):
        return f"ended early: {error}"
    return str(error) if isinstance(error, NoAnswer) else f"ended early: the app raised {type(error).__name__}"
