"""Requests static routes that nobody has visited, so that they are listed only if they answer with a page.

It also requests failed pages again, the pages that `refresh` names, and those whose own answer is to decide.

A round of requests runs in the background after a request for the sitemap, or within it on a server with one thread.
One of the processes that share a store does it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from ..exceptions import StoreError
from ..http.captured_response import OBSERVED_STATUSES, CapturedResponse
from ..http.messages import PROBE_TIMEOUT_SECONDS, SYNC_SERVER_WAIT_SECONDS, AppTerminated, Request
from ..listing.entries import EntryBuilder
from ..listing.policy import EvaluationContext
from ..models import Site
from ..options.table import Options
from ..stores.base import Store
from ..util import WorkerId
from .concurrent_probes import ConcurrentProbes
from .hanging_pages_in_store import HangingPages
from .probe_client import (
    BackgroundProber,
    ProbeClient,
    TooManyHanging,
    describe_failure,
    has_credentials,
    log,
    pause_after,
)

ROUND_TIMEOUT_SECONDS: Final = 600.0
"""Seconds after which a round requests no further page."""

FIRST_WAIT_SECONDS: Final = 2.0
"""Seconds for which the request that starts a round waits for it, so that the first sitemap is not empty.
During these, pages are requested without pauses."""

ROUND_INTERVAL_SECONDS: Final = 60
"""Seconds from the start of one round to the start of the next, in any process."""

RETRY_SECONDS: Final = 60 * 60
"""Seconds until a page that did not answer is requested again. They double with each failure."""

MAX_RETRY_SECONDS: Final = 24 * 60 * 60
"""The longest time until a page is requested again."""

MAX_REFUSED_IN_A_ROW: Final = 5
"""Answers of 403 in a row after which a round ends: they may be a rate limiter's, and say nothing of the pages."""

MAX_PAUSE_SECONDS: Final = 60 * 60
"""The longest pause that a Retry-After can ask for."""

MAX_REMEMBERED_PAGES: Final = 10_000
"""Pages whose last request is remembered."""


MAX_ASKED_PAGES: Final = 2000
"""Pages of one site that may wait to be asked."""

CONTRADICTION_PAUSE_SECONDS: Final = 1.0
"""Seconds before a page is asked that answered something else: pages are dated in whole seconds."""

MAX_ASKED_SITES: Final = 1000
"""Sites with pages that may wait."""

_LEASE_NAME: Final = "verify"
_REFRESH_LEASE_NAME: Final = "refresh"
_ASK_LEASE_NAME: Final = "ask"

_NOT_PROBED: Final = (-math.inf, 0, 0, "")
"""Stands for the last request of a page that was not requested yet."""


class _Round:
    """A round that runs, or is about to."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.has_begun = False
        self._planned_at = time.monotonic()

    def is_busy(self) -> bool:
        """Whether another round must wait. One that does not begin was given to an event loop that has ended."""
        is_late = time.monotonic() - self._planned_at >= FIRST_WAIT_SECONDS
        return not self.done.is_set() and (self.has_begun or not is_late)


class UnvisitedPageProber(BackgroundProber):
    """Requests unvisited pages in rounds."""

    def __init__(
        self,
        entries: EntryBuilder,
        store: Store,
        options: Options,
        client: ProbeClient,
        observe: Callable[[CapturedResponse], None],
    ) -> None:
        self._entries = entries
        self._store = store
        self._worker_id = WorkerId()
        self._hanging_pages = HangingPages(store, RETRY_SECONDS)
        self._probed: dict[tuple[str, str], tuple[float, int, int, str]] = {}
        """When a page was last requested, how many times so far, the seconds to wait after the first time, and what the
        last request got if that is no evidence, else nothing; by the keys of site and page."""
        self._round_started_at: dict[str, float] = {}
        self._paused_until: dict[str, float] = {}
        """Until when no page of a site is requested, because the app limits the rate."""
        self._refused: dict[str, list[CapturedResponse]] = {}
        """The last answers of a site in a row that were 403."""
        self._asked: dict[str, dict[str, bool]] = {}
        """The decoded paths that wait to be asked, by site; and whether they were contradicted."""
        super().__init__(options.clock, client, observe)

    def reset_after_fork(self) -> None:
        super().reset_after_fork()
        self._mutex = threading.Lock()
        self._rounds: dict[str, _Round] = {}
        """The last round of each kind: a long one of unvisited pages does not delay the pages that `refresh` named."""

    def failure_of(self, site: Site, path: str) -> str | None:
        """What this process's last request for a decoded path got, in words that follow "the request".

        It is empty if that was evidence, or is not known yet, and None if this process has not requested the path.
        """
        probed = self._probed.get((site.store_key, path))
        return None if probed is None else probed[3]

    def forget(self, site: Site) -> None:
        """Forget which pages of a site were requested, because the store has lost their responses."""
        for key in [key for key in self._probed.copy() if key[0] == site.store_key]:
            self._probed.pop(key, None)
        self._round_started_at.pop(site.store_key, None)

    def next_round_at(self, site: Site) -> float:
        """When a round may be due, in POSIX seconds."""
        return self._round_started_at.get(site.store_key, -math.inf) + ROUND_INTERVAL_SECONDS

    def probe(self, request: Request, site: Site, evaluation_context: Callable[[], EvaluationContext]) -> None:
        """Start a round if one is due, and wait up to `FIRST_WAIT_SECONDS` for its end.

        Args:
            request: the request after which, or within which, the round runs.
            site: the site whose pages are requested.
            evaluation_context: called only if a round is due.
        """
        now = self._clock()
        started_at = self._round_started_at.get(site.store_key)
        if started_at is not None and 0 <= now - started_at < ROUND_INTERVAL_SECONDS:
            return
        if _sees_visitor(request):
            return
        inline_seconds = request.wait_seconds
        # In a test client, and in the `build` command, every request may start a round.
        starts_always = inline_seconds is not None and inline_seconds > SYNC_SERVER_WAIT_SECONDS
        self._round_started_at[site.store_key] = now - ROUND_INTERVAL_SECONDS if starts_always else now
        try:
            due = [
                path for path in self._entries.unverified_paths(evaluation_context()) if self._is_due(site, path, now)
            ]
        except StoreError as error:  # the last good sitemap is served meanwhile
            log.debug("unvisited pages are not requested: %s", error)
            return
        if due:
            self._start_round(request, site, _LEASE_NAME, lambda: self._run_round(request, site, due, _LEASE_NAME))

    def ask(self, site: Site, paths: Iterable[str], *, is_contradicted: bool = False) -> None:
        """Have the next `probe_asked` request decoded paths. If too many wait, others must be visited again.

        Args:
            site: the site of the pages.
            paths: decoded.
            is_contradicted: whether the pages have just answered something else.
        """
        waiting = self._asked.setdefault(site.store_key, {}) if len(self._asked) < MAX_ASKED_SITES else {}
        for path in paths:
            if len(waiting) < MAX_ASKED_PAGES:
                waiting[path] = waiting.get(path, False) or is_contradicted

    def probe_asked(self, request: Request, site: Site, *, waits: bool = True) -> None:
        """Request the pages that were asked for, as `probe_again` does.

        Args:
            request: the request after which, or within which, this runs.
            site: the site whose pages are requested.
            waits: whether to wait for the end, up to `FIRST_WAIT_SECONDS`.
        """
        waiting = self._asked.get(site.store_key)
        if waiting and not _sees_visitor(request):
            self._start_round(
                request, site, _ASK_LEASE_NAME, lambda: self._run_asked(request, site, waiting), waits=waits
            )

    def _run_asked(self, request: Request, site: Site, waiting: dict[str, bool]) -> None:
        while waiting:
            if request.wait_seconds is None and any(waiting.copy().values()):
                self.wait(CONTRADICTION_PAUSE_SECONDS)
            due = list(waiting)
            done = self._run_round(request, site, due, _ASK_LEASE_NAME)
            for path in due[:done]:
                waiting.pop(path, None)
            if done < len(due):
                break
        self._acquire_lease(site, _ASK_LEASE_NAME, 0)

    def probe_again(
        self, request: Request, site: Site, paths: Callable[[], list[str]], requested: Callable[[int, list[str]], None]
    ) -> None:
        """Request pages that `refresh` named, and wait up to `FIRST_WAIT_SECONDS` for the end.

        Args:
            request: the request after which, or within which, this runs.
            site: the site whose pages are requested.
            paths: returns the decoded paths, once no other process requests them.
            requested: called with how many of them were requested, and all of them.
        """

        def run_round() -> None:
            try:
                due = paths()
            except StoreError as error:
                log.debug("pages are not requested again: %s", error)
                return
            requested(self._run_round(request, site, due, _REFRESH_LEASE_NAME), due)
            self._acquire_lease(site, _REFRESH_LEASE_NAME, 0)

        if not _sees_visitor(request):
            self._start_round(request, site, _REFRESH_LEASE_NAME, run_round)

    def _start_round(
        self, request: Request, site: Site, lease: str, work: Callable[[], object], *, waits: bool = True
    ) -> None:
        """Run a round within or after a request, unless one of its kind runs in any process; wait a moment."""
        with self._mutex:
            running, new = self._rounds.get(lease), _Round()
            is_busy = running is not None and running.is_busy()
            if not is_busy:
                self._rounds[lease] = new
        if running is not None and is_busy:
            if waits and lease == _ASK_LEASE_NAME and request.wait_seconds is None:
                running.done.wait(FIRST_WAIT_SECONDS)
            return
        if not self._acquire_lease(site, lease):
            new.done.set()
            return
        self._closing.clear()

        def run_round() -> None:
            with self._mutex:
                new.has_begun = self._rounds.get(lease) is new
            try:
                if new.has_begun:
                    work()
            finally:
                new.done.set()

        if request.wait_seconds is not None:
            run_round()
            return
        try:
            request.run_in_background(run_round)
        except RuntimeError:  # the app's event loop has ended
            new.done.set()
            return
        if waits:
            new.done.wait(FIRST_WAIT_SECONDS)

    def _is_due(self, site: Site, path: str, now: float) -> bool:
        """Whether an unverified page was not requested yet, or long enough ago."""
        at, times, wait, _ = self._probed.get((site.store_key, path), _NOT_PROBED)
        return not 0 <= now - at < min(wait * 2 ** (times - 1), MAX_RETRY_SECONDS)

    def _acquire_lease(self, site: Site, name: str, seconds: int = ROUND_INTERVAL_SECONDS) -> bool:
        """Acquire or renew the lease by which one process at a time runs a round. 0 seconds end it."""
        try:
            return self._store.lease(site.store_key, name, self._worker_id.name, seconds)
        except StoreError as error:
            log.debug("unvisited pages are not requested: %s", error)
            return False

    def _run_round(self, request: Request, site: Site, due: list[str], lease: str) -> int:
        """Request the pages that are due, one after the other, until the round's time is over.

        Return how many of them this round has dealt with.
        """
        probes = None
        if request.wait_seconds is None:
            probes = ConcurrentProbes(
                self._client, request, site, partial(self._observe_page, site), partial(self._fail, site)
            )
        try:
            return self._request_pages(request, site, due, lease, probes)
        finally:
            if probes is not None:
                probes.finish(self._closing.is_set)
            self._settle_refused(site)

    def _request_pages(
        self, request: Request, site: Site, due: list[str], lease: str, probes: ConcurrentProbes | None
    ) -> int:
        started = leased = self._clock()
        seconds_busy = 0.0
        if request.wait_seconds is None:
            time_limit, seconds_without_pauses = ROUND_TIMEOUT_SECONDS, FIRST_WAIT_SECONDS
            hanging = None  # a hanging page delays only itself, so it need not be recorded
        else:
            time_limit = seconds_without_pauses = request.wait_seconds
            hanging = self._hanging_pages.load(site.store_key, started)
        for count, path in enumerate(due):
            if hanging is not None and path in hanging:
                continue
            if seconds_without_pauses <= self._clock() - started < time_limit:
                self.wait(pause_after(seconds_busy))
            now = self._clock()
            if self._closing.is_set() or not 0 <= now - started < time_limit:
                return count
            if now < self._paused_until.get(site.store_key, now) <= now + MAX_PAUSE_SECONDS:
                return count
            if now - leased >= ROUND_INTERVAL_SECONDS / 2:
                if not self._acquire_lease(site, lease):
                    return count
                leased = now
            if hanging is not None:
                self._hanging_pages.save(site.store_key, {**hanging, path: int(now)})
            try:
                terminated = self._probe_page(request, site, path, now, probes)
            except TooManyHanging:
                if hanging is not None:
                    self._hanging_pages.save(site.store_key, hanging)
                return count
            seconds_busy = self._clock() - now
            if hanging is not None and seconds_busy < PROBE_TIMEOUT_SECONDS and not terminated:
                self._hanging_pages.save(site.store_key, hanging)
            elif hanging is not None:
                hanging[path] = int(now)
        return len(due)

    def _probe_page(self, request: Request, site: Site, path: str, now: float, probes: ConcurrentProbes | None) -> bool:
        """Request a page and observe the response; return whether the app was terminated meanwhile.

        Among concurrent probes, the response may be observed later.

        Raises `TooManyHanging` if no request was made.
        """
        key = (site.store_key, path)
        _, times, _, failure = self._probed.pop(key, _NOT_PROBED)
        while len(self._probed) >= MAX_REMEMBERED_PAGES:
            del self._probed[next(iter(self._probed))]
        self._probed[key] = now, times + 1, RETRY_SECONDS, failure
        try:
            if probes is not None:
                probes.start(path, now)
            else:
                self._observe_page(site, self._capture(request, site, path))
        except TooManyHanging:
            del self._probed[key]
            raise
        except Exception as error:
            log.debug("the app failed on a request for %s: %r", path, error)
            self._fail(site, path, describe_failure(error))
            return isinstance(error, AppTerminated)
        return False

    def _observe_page(self, site: Site, response: CapturedResponse) -> None:
        """Observe a response, unless the app limits the rate of requests, as many 403 in a row show as well."""
        refused = self._refused.setdefault(site.store_key, [])
        if response.status == 429:
            self._paused_until[site.store_key] = self._clock() + _retry_after_seconds(response)
            self._probed.pop((site.store_key, response.path), None)  # it is requested again when the pause is over
        elif response.status != 403:
            self._settle_refused(site)
            self._observe_answer(site, response)
        else:
            refused.append(response)
            if len(refused) >= MAX_REFUSED_IN_A_ROW:
                self._paused_until[site.store_key] = self._clock() + ROUND_INTERVAL_SECONDS
                for one in refused:
                    self._fail(site, one.path, "got 403, as others did in a row")
                refused.clear()

    def _settle_refused(self, site: Site) -> None:
        """Observe the few pages that answered 403 while others did not."""
        refused = self._refused.pop(site.store_key, [])
        for response in refused:
            self._observe_answer(site, response)

    def _observe_answer(self, site: Site, response: CapturedResponse) -> None:
        key = (site.store_key, response.path)
        if response.status not in OBSERVED_STATUSES:
            self._fail(site, response.path, f"got {response.status}")
            return
        self._observe(response)
        # If the page is unverified in the next round despite evidence, the store has lost it.
        with suppress(KeyError):
            at, times, _, _ = self._probed[key]
            self._probed[key] = at, times, ROUND_INTERVAL_SECONDS, ""

    def _fail(self, site: Site, path: str, failure: str) -> None:
        """Remember what the request for a page got."""
        with suppress(KeyError):
            at, times, wait, _ = self._probed[site.store_key, path]
            self._probed[site.store_key, path] = at, times, wait, failure


def _retry_after_seconds(response: CapturedResponse) -> float:
    """The seconds of a Retry-After; a minute if there is none, or a date."""
    text = next((str(value) for name, value in response.headers if name == "retry-after"), "")
    return min(float(text), MAX_PAUSE_SECONDS) if text.isdecimal() else ROUND_INTERVAL_SECONDS


def _sees_visitor(request: Request) -> bool:
    """Whether the app's thread-local state may name a visitor during a round: then an anonymous request is awaited."""
    return request.runs_probes_inline and has_credentials(request)
