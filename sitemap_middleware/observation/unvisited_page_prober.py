"""The verifier: requests the pages that nobody was seen to ask for, before they are listed.

It runs behind a request for a sitemap, or within it on a server with one thread,
and in one process for all that share a store.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable
from typing import Final

from ..config import Options
from ..evidence.response_parser import OBSERVED_STATUSES
from ..exceptions import StoreError
from ..fork_safety import WorkerId, reset_after_fork
from ..http import PROBE_TIMEOUT_SECONDS, SYNC_SERVER_WAIT_SECONDS, AppTerminated, Request
from ..listing.entries import EntryBuilder
from ..listing.policy import EvaluationContext
from ..models import Site
from ..observations import CapturedResponse
from ..stores.base import Store
from ..stores.checksums import verify, with_checksum
from .prober import Prober, TooManyHanging, captured_probe, has_credentials, pause_after

log = logging.getLogger("sitemap_middleware")

ROUND_TIMEOUT_SECONDS: Final = 600.0
"""Seconds after which no further page is asked for, until the next round."""

FIRST_WAIT_SECONDS: Final = 2.0
"""Seconds that the request which begins a round waits for it, so that the first sitemap is not an empty one.
For as long, pages are requested without a pause; after that `prober.pause_after` says how long to pause."""

ROUND_INTERVAL_SECONDS: Final = 60
"""Seconds from the beginning of one round to that of the next, whichever process begins it."""

RETRY_SECONDS: Final = 60 * 60
"""Seconds until a page that could not be had is asked for again; twice as long after each further failure."""

MAX_RETRY_SECONDS: Final = 24 * 60 * 60
"""Seconds until then at most."""

MAX_REMEMBERED_PAGES: Final = 10_000
"""Pages of which is remembered when they were asked for."""

MAX_HANGING_PAGES: Final = 64
"""Pages of a site of which the store keeps that they hang, at most: those that were asked for last."""

_RECORD_NAME: Final = "hanging"
"""What they are kept under in the store."""


class UnvisitedPageProber:
    """Knows what was asked for, and asks for what was not."""

    def __init__(
        self,
        entries: EntryBuilder,
        store: Store,
        options: Options,
        prober: Prober,
        learn: Callable[[CapturedResponse], None],
    ) -> None:
        self._entries = entries
        self._store = store
        self._clock = options.clock
        self._prober = prober
        self._observe = learn
        self._probed_at: dict[tuple[str, str], tuple[float, int]] = {}
        """When a page was asked for, and the how manieth time that was."""
        self._rounds: dict[str, float] = {}
        self._worker_id = WorkerId()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's thread is not here."""
        self._busy = threading.Lock()
        self._closing = threading.Event()

    def close(self) -> None:
        """Ask for nothing more in this round: a server that shuts down waits for it."""
        self._closing.set()

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass, or less if it is closed meanwhile."""
        self._closing.wait(seconds)

    def was_probed(self, site: Site, path: str) -> bool:
        """Whether the app was asked for a decoded path by this process."""
        return (site.store_key, path) in self._probed_at

    def next_round_at(self, site: Site) -> float:
        """When, in POSIX seconds, a round may be due."""
        return self._rounds.get(site.store_key, -math.inf) + ROUND_INTERVAL_SECONDS

    def probe(self, request: Request, site: Site, view: Callable[[], EvaluationContext]) -> None:
        """Begin a round, if one is due, and wait for a moment.

        Args:
            request: the one that it runs behind, or within.
            site: the one that is asked for.
            view: how things stand; it is asked only where a round may be due.
        """
        now, patience = self._clock(), request.wait_seconds
        if 0 <= now - self._rounds.get(site.store_key, -ROUND_INTERVAL_SECONDS) < ROUND_INTERVAL_SECONDS:
            return
        if request.runs_probes_inline and has_credentials(request):
            return  # what the app keeps by thread may name the visitor: the next anonymous request has the round
        tested = (
            patience is not None and patience > SYNC_SERVER_WAIT_SECONDS
        )  # then every request has a round of its own
        self._rounds[site.store_key] = now - ROUND_INTERVAL_SECONDS if tested else now
        try:
            due = [path for path in self._entries.unverified_paths(view()) if self._is_due(site, path, now)]
        except StoreError as error:  # the last good sitemap is served meanwhile
            log.debug("which pages are to be asked for cannot be told: %s", error)
            return
        if not due or not self._acquire_lease(site, now):
            return
        if not self._busy.acquire(blocking=False):
            return
        self._closing.clear()
        done = threading.Event()

        def work() -> None:
            try:
                self._round(request, site, due)
            finally:
                self._busy.release()
                done.set()

        if patience is not None:
            work()
            return
        try:
            request.run_in_background(work)
        except RuntimeError:  # what the app runs on is no more
            self._busy.release()
            return
        done.wait(FIRST_WAIT_SECONDS)

    def _acquire_lease(self, site: Site, now: float) -> bool:
        try:
            return self._store.lease(site.store_key, "verify", self._worker_id.name, int(now), ROUND_INTERVAL_SECONDS)
        except StoreError as error:
            log.debug("no page is asked for: %s", error)
            return False

    def _is_due(self, site: Site, path: str, now: float) -> bool:
        at, times = self._probed_at.get((site.store_key, path), (-math.inf, 0))
        return not 0 <= now - at < min(RETRY_SECONDS * 2 ** max(0, times - 1), MAX_RETRY_SECONDS)

    def _round(self, request: Request, site: Site, due: list[str]) -> None:
        began = leased = self._clock()
        budget, pausing, spent = ROUND_TIMEOUT_SECONDS, FIRST_WAIT_SECONDS, 0.0
        hanging: dict[str, int] | None = None
        if request.wait_seconds is not None:
            budget = pausing = request.wait_seconds
            hanging = self._read_hanging(site, began)
            due = [path for path in due if path not in hanging]
        for path in due:
            if pausing <= self._clock() - began < budget:  # nobody waits for a page that is not asked for
                self.wait(pause_after(spent))
            now = self._clock()
            if self._closing.is_set() or not 0 <= now - began < budget:
                return
            if now - leased >= ROUND_INTERVAL_SECONDS / 2:
                if not self._acquire_lease(site, now):
                    return
                leased = now
            if hanging is not None:
                self._save_hanging(site, {**hanging, path: int(now)})
            try:
                ended = self._probe_page(request, site, path, now)
            except TooManyHanging:  # the page was not requested
                if hanging is not None:
                    self._save_hanging(site, hanging)
                return
            spent = self._clock() - now
            if hanging is not None and spent < PROBE_TIMEOUT_SECONDS and not ended:
                self._save_hanging(site, hanging)
            elif hanging is not None:
                hanging[path] = int(now)

    def _read_hanging(self, site: Site, now: float) -> dict[str, int]:
        """The pages that hung when a server with one thread asked for them in the last hour, and when that was.

        Such a server is often killed meanwhile, and the one that takes its place remembers nothing. So a page is
        kept as hanging before it is asked for, and until it has answered.
        """
        try:
            kept = verify(self._store.load(site.store_key, [_RECORD_NAME]).get(_RECORD_NAME, b""))
        except StoreError as error:
            log.debug("which pages hang cannot be told: %s", error)
            return {}
        return {path: at for path, at in json.loads(kept or "{}").items() if 0 <= now - at < RETRY_SECONDS}

    def _save_hanging(self, site: Site, hanging: dict[str, int]) -> None:
        """Have the store keep which pages hang."""
        kept = dict([*hanging.items()][-MAX_HANGING_PAGES:])
        try:
            self._store.save(site.store_key, {_RECORD_NAME: with_checksum(json.dumps(kept).encode()) if kept else None})
        except StoreError as error:
            log.debug("which page is asked for is not kept: %s", error)

    def _probe_page(self, request: Request, site: Site, path: str, now: float) -> bool:
        """Ask for a page, and learn what is answered; whether the app was told to end meanwhile."""
        key = (site.store_key, path)
        _, times = self._probed_at.pop(key, (0.0, 0))
        while len(self._probed_at) >= MAX_REMEMBERED_PAGES:
            del self._probed_at[next(iter(self._probed_at))]
        self._probed_at[key] = now, times + 1
        try:
            answer = self._prober.fetch(request, site, path)
            if answer is not None and answer.response.status in OBSERVED_STATUSES:
                self._observe(captured_probe(site, path, now, answer))
        except TooManyHanging:
            del self._probed_at[key]
            raise
        except Exception as error:
            log.debug("the app failed when it was asked for %s: %r", path, error)
            return isinstance(error, AppTerminated)
        return False
