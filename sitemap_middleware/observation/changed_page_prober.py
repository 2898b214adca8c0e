"""Doubts: a page that says something new is asked for again, to see whether that stands.

Only with `verify`: what moves from one second to the next (one arm of a test, an
advertisement, a random pick) is then known as such before it dates anything, and
what stands is known to stand. In process, as a crawler would ask, one page
after the other, at a walking pace.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from ..evidence.response_parser import ResponseParser
from ..fork_safety import reset_after_fork
from ..http import Request
from ..models import Site
from ..observations import CapturedResponse
from .prober import Prober, captured_probe, pause_after

log = logging.getLogger("sitemap_middleware")

CHECKS_AT_FIRST_SIGHT: Final = 3
CHECKS_WHEN_CHANGED: Final = 8
"""How often a page is asked for again: when anything was first seen of it, and when it says something new.

Of a page that shows one of two variants by chance, the second lets one in 256 pass, and that needs to have
stood before.
"""

PAUSE_SECONDS: Final = 2.0
"""Seconds between two answers of one page: clocks are read in whole ones."""

MAX_PAGES: Final = 256
"""Pages that may be in doubt at one time. Of further ones only visits tell."""

MAX_SITES: Final = 64
"""Sites of which a request is kept, behind which can be asked."""


@dataclass(frozen=True, slots=True)
class _PendingCheck:
    site: Site
    path: str
    left: int
    digest: int | None = None
    """What the first of the answers said. What was seen before them may be hours old."""


class ChangedPageProber:
    """The pages in doubt, and the job that asks for them."""

    def __init__(
        self,
        clock: Callable[[], float],
        prober: Prober,
        may_ask: Callable[[Site, str], bool],
        learn: Callable[[CapturedResponse], None],
    ) -> None:
        self._clock = clock
        self._prober = prober
        self._may_probe = may_ask
        self._observe = learn
        self._reader = ResponseParser()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's job is not here, nor are its requests."""
        self._requests: dict[str, Request] = {}
        self._pending: deque[_PendingCheck] = deque()
        self._known: set[tuple[str, str]] = set()
        self._starting = threading.Lock()
        self._closing = threading.Event()
        self._working = False

    def close(self) -> None:
        """Ask for nothing more: a server that shuts down waits for what runs behind its requests."""
        self._closing.set()

    def wait(self, seconds: float) -> bool:
        """Let so many seconds pass; whether it was closed meanwhile."""
        return self._closing.wait(seconds)

    def remember_request(self, site: Site, request: Request) -> None:
        """Take note of a request of a site: behind it can be asked when there is something to ask.

        Not of a server with one thread: there nothing may run behind requests.
        """
        if request.wait_seconds is None and (site.store_key in self._requests or len(self._requests) < MAX_SITES):
            self._requests[site.store_key] = request.detached()

    def enqueue(self, site: Site, paths: Iterable[str], times: int) -> None:
        """Ask for these pages, by decoded path, so many times each, from now on."""
        request = self._requests.get(site.store_key)
        if request is None:
            return
        with self._starting:
            for path in paths:
                if (
                    (site.store_key, path) not in self._known
                    and len(self._pending) < MAX_PAGES
                    and self._may_probe(site, path)
                ):
                    self._known.add((site.store_key, path))
                    self._pending.append(_PendingCheck(site, path, times))
            if self._working or not self._pending:
                return
            self._working = True
            self._closing.clear()
        try:
            request.run_in_background(self._work)
        except RuntimeError as error:  # the event loop of that request is no more
            self._requests.pop(site.store_key, None)
            self._stop(error)

    def _work(self) -> None:
        try:
            while True:
                with self._starting:
                    if self._closing.is_set():
                        self._pending.clear()
                        self._known.clear()
                    if not self._pending:
                        self._working = False
                        return
                self.wait(PAUSE_SECONDS)
                for _ in range(len(self._pending)):
                    if not self._closing.is_set():
                        self._check(self._pending.popleft())
        except Exception as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        log.debug("pages in doubt are not asked for: %s", error)
        self._pending.clear()
        self._known.clear()
        self._working = False

    def _check(self, doubt: _PendingCheck) -> None:
        """Ask once; where the answer says something else than the first one did, that is what is written down."""
        self._known.discard((doubt.site.store_key, doubt.path))
        at = self._clock()
        try:
            request = self._requests[doubt.site.store_key]
            answer = self._prober.fetch(request, doubt.site, doubt.path)
        except Exception as error:
            log.debug("the app failed when it was asked for %s: %r", doubt.path, error)
            return
        self.wait(pause_after(self._clock() - at))
        if answer is None:
            return
        sighting = captured_probe(doubt.site, doubt.path, at, answer)
        digest = self._reader.digest(sighting) if sighting.status == 200 else None
        sighting.is_volatile = doubt.digest is not None and digest is not None and digest != doubt.digest
        self._observe(sighting)
        if digest is not None and not sighting.is_volatile and doubt.left > 1:
            self._known.add((doubt.site.store_key, doubt.path))
            self._pending.append(replace(doubt, left=doubt.left - 1, digest=digest))
