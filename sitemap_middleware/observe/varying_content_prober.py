"""Requests new and changed pages again, to distinguish edits from content that varies per request.

Used with `verify`. Content that varies (an arm of an A/B test, an advertisement, a
random pick) is recognised before it dates anything, and an edit is confirmed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ..evidence.response_parser import ResponseParser
from ..http.captured_response import CapturedResponse
from ..http.messages import Request
from ..models import Site
from .probe_client import BackgroundProber, ProbeClient, log, pause_after

CHECKS: Final = 2
"""Requests for a page whose content was seen for the first time: if they differ, the content varies by itself."""

PAUSE_SECONDS: Final = 2.0
"""Seconds between two requests for one page: pages are dated in whole seconds."""

MAX_PENDING_PAGES: Final = 256
"""Pages that may wait for their checks. Further ones are not checked."""

MAX_SITES: Final = 64
"""Sites for which a live request is remembered."""


class _PendingCheck(NamedTuple):
    """A page to request."""

    site: Site
    path: str
    requests_left: int
    first_digest: int | None = None
    """Digest of the response to the first request. The visit that caused the check may be hours old."""


class VaryingContentProber(BackgroundProber):
    """Queues pages, and requests each of them several times in a background job."""

    def __init__(
        self,
        clock: Callable[[], float],
        client: ProbeClient,
        observe: Callable[[CapturedResponse], None],
        may_probe: Callable[[Site, str], bool],
    ) -> None:
        """`may_probe` says whether a decoded path of a site may be requested."""
        self._may_probe = may_probe
        self._parser = ResponseParser()
        super().__init__(clock, client, observe)

    def reset_after_fork(self) -> None:
        super().reset_after_fork()
        self._requests: dict[str, Request] = {}
        self._pending: deque[_PendingCheck] = deque()
        self._pending_keys: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self.is_working: bool = False
        """Whether a background job checks pages, or is about to."""

    def close(self) -> None:
        """Forget the live requests too: pages saved last may be new, and would start a job behind one of them."""
        with self._lock:
            super().close()
            self._requests.clear()

    def live_request(self, site: Site) -> Request | None:
        """A live request for a site, to imitate in the background."""
        return self._requests.get(site.store_key)

    def remember_request(self, site: Site, request: Request) -> None:
        """Keep a live request, from which the background job gets its requests once there are pages to check.

        A server with one thread cannot run a background job, so its requests are not kept.
        """
        if request.wait_seconds is None and (site.store_key in self._requests or len(self._requests) < MAX_SITES):
            self._requests[site.store_key] = request.detached()

    def enqueue(self, site: Site, paths: Iterable[str], times: int) -> None:
        """Request each of these decoded paths so many times, and start the background job if it is not running."""
        with self._lock:
            request = self._requests.get(site.store_key)
            if request is None:
                return
            for path in paths:
                key = site.store_key, path
                if (
                    key not in self._pending_keys
                    and len(self._pending) < MAX_PENDING_PAGES
                    and self._may_probe(site, path)
                ):
                    self._pending_keys.add(key)
                    self._pending.append(_PendingCheck(site, path, times))
            if self.is_working or not self._pending:
                return
            self.is_working = True
            self._closing.clear()
        try:
            request.run_in_background(self._work)
        except RuntimeError as error:  # the event loop of that request has ended
            self._requests.pop(site.store_key, None)
            self._abort(error)

    def _work(self) -> None:
        """Check all pending pages in rounds, with a pause before each round, until none is left."""
        try:
            while True:
                with self._lock:
                    if self._closing.is_set():
                        self._pending.clear()
                        self._pending_keys.clear()
                    if not self._pending:
                        self.is_working = False
                        return
                self.wait(PAUSE_SECONDS)
                for _ in range(len(self._pending)):
                    if not self._closing.is_set():
                        self._check(self._pending.popleft())
        except Exception as error:
            self._abort(error)

    def _abort(self, error: BaseException) -> None:
        log.debug("changed pages are not requested: %s", error)
        self._pending.clear()
        self._pending_keys.clear()
        self.is_working = False

    def _check(self, check: _PendingCheck) -> None:
        """Request a page once, and mark the response as volatile if it differs from the first one."""
        site, path, key = check.site, check.path, (check.site.store_key, check.path)
        self._pending_keys.discard(key)
        requested_at = self._clock()
        response: CapturedResponse | None = None
        try:
            response = self._capture(self._requests[site.store_key], site, path)
        except Exception as error:
            log.debug("the app failed on a request for %s: %r", path, error)
        self.wait(pause_after(self._clock() - requested_at))
        if response is None:
            return
        digest = self._parser.digest(response) if response.status == 200 else None
        response.is_volatile = None not in {digest, check.first_digest} and digest != check.first_digest
        self._observe(response)
        if digest is not None and not response.is_volatile and check.requests_left > 1:
            self._pending_keys.add(key)
            self._pending.append(check._replace(requests_left=check.requests_left - 1, first_digest=digest))
