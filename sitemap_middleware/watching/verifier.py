"""The verifier: asks the app itself for pages that nobody was seen to ask for, before they are listed.

In process, as a crawler would; behind a request for a sitemap, one page after
the other, within a budget of time, and by one process for all that share a store.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Final

from ..exchange import Request
from ..forks import Owner, renew_in_children
from ..listing.catalog import Catalog, View
from ..model import Sighting, Site
from ..options import Options
from ..stores.base import Store

log = logging.getLogger("sitemap_middleware")

BUDGET: Final = 30.0
"""Seconds after which no further page is asked for, until the next round."""

PATIENCE: Final = 2.0
"""Seconds that the request which begins a round waits for it, so that the first sitemap is not an empty one."""

ROUND: Final = 60
"""Seconds from the beginning of one round to that of the next, whichever process begins it."""

AGAIN: Final = 60 * 60
"""Seconds until a page that could not be had is asked for again."""

MOST: Final = 10_000
"""Pages of which is remembered when they were asked for."""


class Verifier:
    """Knows what was asked for, and asks for what was not."""

    def __init__(self, catalog: Catalog, store: Store, options: Options, learn: Callable[[Sighting], None]) -> None:
        self._catalog = catalog
        self._store = store
        self._clock = options.clock
        self._learn = learn
        self._asked: dict[tuple[str, str], float] = {}
        self._rounds: dict[str, float] = {}
        self._owner = Owner()
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: the parent's thread is not here."""
        self._busy = threading.Lock()
        self._leaving = threading.Event()

    def close(self) -> None:
        """Ask for nothing more in this round: a server that shuts down waits for it."""
        self._leaving.set()

    def rests_until(self, site: Site) -> float:
        """When, in POSIX seconds, a round may be due."""
        return self._rounds.get(site.key, -math.inf) + ROUND

    def verify(self, request: Request, site: Site, view: Callable[[], View]) -> None:
        """Begin a round, if one is due, and wait for a moment.

        Args:
            request: the one that it runs behind.
            site: the one that is asked for.
            view: how things stand; it is asked only where a round may be due.
        """
        now = self._clock()
        if 0 <= now - self._rounds.get(site.key, -ROUND) < ROUND:
            return
        self._rounds[site.key] = now
        due = [path for path in self._catalog.unverified(view()) if self._is_due(site, path, now)]
        if not due or not self._store.lease(site.key, "verify", self._owner.name, int(now), ROUND):
            return
        if not self._busy.acquire(blocking=False):
            return
        done = threading.Event()

        def work() -> None:
            try:
                self._round(request, site, due)
            finally:
                self._busy.release()
                done.set()

        self._leaving.clear()
        try:
            request.behind(work)
        except RuntimeError:  # what the app runs on is no more
            self._busy.release()
            return
        done.wait(PATIENCE)

    def _is_due(self, site: Site, path: str, now: float) -> bool:
        return not 0 <= now - self._asked.get((site.key, path), -AGAIN) < AGAIN

    def _round(self, request: Request, site: Site, due: list[str]) -> None:
        began = self._clock()
        for path in due:
            now = self._clock()
            if self._leaving.is_set() or not 0 <= now - began < BUDGET:
                return
            while len(self._asked) >= MOST:
                del self._asked[next(iter(self._asked))]
            self._asked[site.key, path] = now
            try:
                answer = request.ask(path)
                if answer is not None:
                    self._learn(
                        Sighting(
                            site,
                            path,
                            at=now,
                            status=answer.status,
                            headers=answer.headers,
                            body=answer.body,
                            probed=True,
                            host=request.host,
                        )
                    )
            except Exception as error:
                log.debug("the app failed when it was asked for %s: %s", path, error)
