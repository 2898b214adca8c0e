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

from ..exchange import Request
from ..forks import renew_in_children
from ..model import CapturedResponse, Site
from ..pages.observation import ResponseParser
from .prober import Prober, pause_after, probed

log = logging.getLogger("sitemap_middleware")

AT_FIRST: Final = 3
WHEN_NEW: Final = 8
"""How often a page is asked for again: when anything was first seen of it, and when it says something new.

Of a page that shows one of two variants by chance, the second lets one in 256 pass, and that needs to have
stood before.
"""

PAUSE: Final = 2.0
"""Seconds between two answers of one page: clocks are read in whole ones."""

MOST: Final = 256
"""Pages that may be in doubt at one time. Of further ones only visits tell."""

SITES: Final = 64
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
        self._may_ask = may_ask
        self._learn = learn
        self._reader = ResponseParser()
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: the parent's job is not here, nor are its requests."""
        self._requests: dict[str, Request] = {}
        self._doubts: deque[_PendingCheck] = deque()
        self._known: set[tuple[str, str]] = set()
        self._starting = threading.Lock()
        self._leaving = threading.Event()
        self._working = False

    def close(self) -> None:
        """Ask for nothing more: a server that shuts down waits for what runs behind its requests."""
        self._leaving.set()

    def pause(self, seconds: float) -> bool:
        """Let so many seconds pass; whether it was closed meanwhile."""
        return self._leaving.wait(seconds)

    def meet(self, site: Site, request: Request) -> None:
        """Take note of a request of a site: behind it can be asked when there is something to ask.

        Not of a server with one thread: there nothing may run behind requests.
        """
        if request.patience is None and (site.key in self._requests or len(self._requests) < SITES):
            self._requests[site.key] = request.lasting()

    def take(self, site: Site, paths: Iterable[str], times: int) -> None:
        """Ask for these pages, by decoded path, so many times each, from now on."""
        request = self._requests.get(site.key)
        if request is None:
            return
        with self._starting:
            for path in paths:
                if (site.key, path) not in self._known and len(self._doubts) < MOST and self._may_ask(site, path):
                    self._known.add((site.key, path))
                    self._doubts.append(_PendingCheck(site, path, times))
            if self._working or not self._doubts:
                return
            self._working = True
            self._leaving.clear()
        try:
            request.behind(self._work)
        except RuntimeError as error:  # the event loop of that request is no more
            self._requests.pop(site.key, None)
            self._stop(error)

    def _work(self) -> None:
        try:
            while True:
                with self._starting:
                    if self._leaving.is_set():
                        self._doubts.clear()
                        self._known.clear()
                    if not self._doubts:
                        self._working = False
                        return
                self.pause(PAUSE)
                for _ in range(len(self._doubts)):
                    if not self._leaving.is_set():
                        self._ask(self._doubts.popleft())
        except Exception as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        log.debug("pages in doubt are not asked for: %s", error)
        self._doubts.clear()
        self._known.clear()
        self._working = False

    def _ask(self, doubt: _PendingCheck) -> None:
        """Ask once; where the answer says something else than the first one did, that is what is written down."""
        self._known.discard((doubt.site.key, doubt.path))
        at = self._clock()
        try:
            request = self._requests[doubt.site.key]
            answer = self._prober.ask(request, doubt.site, doubt.path)
        except Exception as error:
            log.debug("the app failed when it was asked for %s: %r", doubt.path, error)
            return
        self.pause(pause_after(self._clock() - at))
        if answer is None:
            return
        sighting = probed(doubt.site, doubt.path, at, answer)
        digest = self._reader.digest(sighting) if sighting.status == 200 else None
        sighting.moves = doubt.digest is not None and digest is not None and digest != doubt.digest
        self._learn(sighting)
        if digest is not None and not sighting.moves and doubt.left > 1:
            self._known.add((doubt.site.key, doubt.path))
            self._doubts.append(replace(doubt, left=doubt.left - 1, digest=digest))
