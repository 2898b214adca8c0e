"""Requests pages of the app itself: those that nobody has visited, those that changed, and those that are in doubt.

Each site has one queue. It is worked off in the background of a request; on a server with one thread, and in a test
client, within the next request for the sitemap.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from ..exceptions import StoreError
from ..http.messages import (
    OBSERVED_STATUSES,
    PROBE_TIMEOUT_SECONDS,
    SYNC_SERVER_WAIT_SECONDS,
    CapturedResponse,
    Request,
    retry_after_seconds,
)
from ..http.urls import quote_path
from ..models import Site, StoreKey
from ..stores.breaker import GuardedStore
from ..util import BoundedCache, log, reset_after_fork, run_in_background
from .own_requests import MAX_PAUSE_SECONDS, Asked, Job, OwnRequest, Queue, RunningRequests

FIRST_WAIT_SECONDS: Final = 2.0
"""Seconds for which a request for the sitemap waits for pages that nobody has visited or that are in doubt, so that the
first sitemap is not empty. During these, pages are requested without pauses."""

ROUND_INTERVAL_SECONDS: Final = 60
"""Seconds from one look for unvisited pages to the next, and of the lease by which one process requests them."""

RETRY_SECONDS: Final = 60 * 60
"""Seconds until a page that did not answer is requested once more."""

MAX_FAILURES: Final = 2
"""Requests without an answer after which a page waits for a visitor: they may cause errors in the app's log."""

KEPT_RESULT_SECONDS: Final = 24 * 60 * 60
MAX_KEPT_RESULTS: Final = 1000
MAX_KEPT_PATH_CHARS: Final = 200
"""How long other processes, and those that begin later, know that a page did not answer or was slow; and of how many
pages of one site, the last ones; with paths of at most so many characters."""

SLOW_SECONDS: Final = 1.0
"""A page that takes so long to answer is slow."""

CHECKS: Final = 2
"""Requests for a page whose content is new: if they differ, the content varies by itself."""

CHECK_PAUSE_SECONDS: Final = 2.0
"""Seconds before a page is requested that has just been read: pages are dated in whole seconds."""

MIN_PAUSE_SECONDS: Final = 0.1
"""Seconds between two requests, at least. After a slow response the pause is as long as that took."""

MAX_REFUSED_IN_A_ROW: Final = 5
"""Answers of 403 in a row after which requests pause: they may be a rate limiter's."""

LIMITER_PAUSES_SECONDS: Final = (60, 60 * 60)
"""The pauses after the first and the second such row without another answer between. A third is the app's answer."""

MAX_ASKED_AGAIN: Final = 20
ASK_AGAIN_INTERVAL_SECONDS: Final = 5 * 60
"""Pages that are asked again at one time, and how often: the app may name such pages for ever."""

MAX_WAITING_PAGES: Final = 10_000
MAX_TOLD_PAGES: Final = 1000
TAKEN_PAGES: Final = 50
MAX_CHECKED_PAGES: Final = 256
"""Pages of one site that may wait, those of them that other processes are told of and take at a time, and those whose
content is new. Others must be visited again."""

MAX_SITES: Final = 1000
"""Sites with a queue. If there are more, all are forgotten."""

_ROUND_LEASE: Final = "verify"
_AGAIN_LEASE: Final = "again"
_RESULTS_RECORD: Final = "results"
_TOLD_RECORD: Final = "asked"
_UNREADABLE: Final = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a damaged record may raise."""


class RequestResult(NamedTuple):
    """What the last requests for a page got."""

    failure: str
    """In words that follow "the request"; empty if the answer was evidence."""
    failures: int
    """Requests in a row that failed."""
    at: float
    """POSIX seconds."""
    seconds: float = 0.0
    """How long the last one took; 0 if it failed."""

    @property
    def slow_seconds(self) -> float | None:
        """The same if that was slow."""
        return self.seconds if self.seconds >= SLOW_SECONDS else None


class Prober:
    """Requests pages one after the other, with pauses."""

    def __init__(
        self,
        store: GuardedStore,
        clock: Callable[[], float],
        observe: Callable[[CapturedResponse], None],
        may_request: Callable[[Site, str], bool],
    ) -> None:
        """The store has the leases: of servers with one thread those of pages, too."""
        self._store = store
        self._clock = clock
        self._observe = observe
        self.may_request = may_request
        self._results = BoundedCache[tuple[StoreKey, str], RequestResult](MAX_WAITING_PAGES)
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's jobs do not run here, and what hangs there does not hang here."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._queues: dict[StoreKey, Queue] = {}
        self._hanging: list[OwnRequest] = []

    def close(self) -> None:
        """Make no further requests: a server that shuts down waits for them."""
        self._closing.set()
        queues, self._queues = self._queues, {}
        for queue in queues.values():
            if queue.job is not None:
                queue.job.wakeup.set()

    def wait(self, seconds: float, wakeup: threading.Event | None = None) -> None:
        """Pause for so many seconds, or until an event: by default, until the prober is closed."""
        (wakeup or self._closing).wait(seconds)

    def failure_of(self, site: Site, path: str) -> str | None:
        """What the last request for a decoded path got, in words that follow "the request".

        It is empty if that was evidence, and None if this process knows of none.
        """
        result = self.result_of(site, path)
        return None if result is None else result.failure

    def result_of(self, site: Site, path: str) -> RequestResult | None:
        """What the last request for a decoded path got; None if this process knows of none."""
        return self._results.get((site.store_key, path))

    def forget(self, site: Site) -> None:
        """Look for unvisited pages at once, because the store has lost what was known of them."""
        self._queue(site).looked_at = -math.inf

    def _queue(self, site: Site) -> Queue:
        queue = self._queues.get(site.store_key)
        if queue is None:
            if len(self._queues) >= MAX_SITES:
                self._queues = {}
            queue = self._queues.setdefault(site.store_key, Queue())
        return queue

    # Asking

    def remember(self, site: Site, request: Request) -> None:
        """Keep a live request of a site. One of a server with one thread is of no use: it has no background."""
        if request.wait_seconds is None:
            self._queue(site).live = request.detached()

    def check(self, site: Site, paths: Iterable[str], times: int = CHECKS) -> None:
        """Have the next `ask` request decoded paths whose content is new so many times, if there is a background."""
        if self._queue(site).live is not None:
            self._add(site, paths, Asked(self._clock() + CHECK_PAUSE_SECONDS, times), MAX_CHECKED_PAGES)

    def ask(self, site: Site, paths: Iterable[str]) -> None:
        """Request decoded paths soon, because their own answer decides what visitors' answers left open.

        Without a background, another process may get the next request for the sitemap, so it is told, too.
        """
        queue, added = self._queue(site), self._add(site, paths, Asked(self._clock()), MAX_WAITING_PAGES)
        if queue.waiting and queue.live is not None:
            self._start_job(queue.live, site, queue)
        elif added:
            self._tell(site, added)

    def _add(self, site: Site, paths: Iterable[str], asked: Asked, limit: int) -> list[str]:
        """Put those that may be requested into the queue, and return them."""
        queue, added = self._queue(site), [path for path in paths if self.may_request(site, path)]
        for path in added:
            queue.add(path, asked, limit)
        return added

    def _told(self, site: Site) -> list[str]:
        """The decoded paths that processes without a background left to whichever answers for the sitemap."""
        with suppress(StoreError, *_UNREADABLE):
            told = json.loads(self._store.load(site.store_key, [_TOLD_RECORD]).get(_TOLD_RECORD, b"[]"))
            return [path for path in told if isinstance(path, str) and quote_path(path) is not None]
        return []

    def _tell(self, site: Site, paths: Iterable[str]) -> None:
        told = [*dict.fromkeys([*self._told(site), *paths])][:MAX_TOLD_PAGES]
        with suppress(StoreError):
            self._store.save(site.store_key, {_TOLD_RECORD: json.dumps(told).encode()})

    def run(
        self, request: Request, site: Site, unvisited: Callable[[], list[str]], marked: Callable[[], list[str]]
    ) -> None:
        """Request what is due, behind a request for the sitemap or within it, and wait a moment for that.

        `unvisited` returns the decoded paths of which nothing is known, `marked` those to request whatever is known.
        """
        if request.runs_probes_inline and _has_credentials(request):
            return  # the app's thread-local state may name the visitor: an anonymous request is awaited
        queue, now = self._queue(site), self._clock()
        due = [path for path in marked() if self.may_request(site, path)]
        if self._is_look_due(request, queue, now) and self._lease(site, _ROUND_LEASE, ROUND_INTERVAL_SECONDS):
            self.take_results(site)
            if told := self._told(site):
                left = told[TAKEN_PAGES:]  # if this process dies, others request these
                with suppress(StoreError):
                    self._store.save(site.store_key, {_TOLD_RECORD: json.dumps(left).encode() if left else None})
                self._add(site, told[:TAKEN_PAGES], Asked(now), MAX_WAITING_PAGES)
            due += [path for path in unvisited() if self._is_due(site, path, now) and self.may_request(site, path)]
        for path in due:
            queue.add(path, Asked(now, is_unvisited=True), MAX_WAITING_PAGES)
        if not (queue.waiting or queue.asked):
            return
        if request.wait_seconds is not None:
            self._closing.clear()
            self._work_within(request, site, queue, request.wait_seconds)
            return
        while (has_due := queue.has_due(now)) or queue.waiting:
            before, job = queue.job, self._start_job(request, site, queue)
            if job.is_waited_for:
                return
            if has_due:
                job.is_waited_for, job.hurries_since = True, self._clock()
                job.due_done.clear()
                job.wakeup.set()
            if not job.is_done:
                job.due_done.wait(FIRST_WAIT_SECONDS)
            has_missed_some = job is before and job.is_done and queue.has_due(now)  # it was just ending
            if not (job.has_failed or has_missed_some):
                return

    def _is_look_due(self, request: Request, queue: Queue, now: float) -> bool:
        """Whether to look for unvisited pages. In a test client, and in the `build` command, every request does."""
        if 0 <= now - queue.looked_at < ROUND_INTERVAL_SECONDS:
            return False
        is_test = request.wait_seconds is not None and request.wait_seconds > SYNC_SERVER_WAIT_SECONDS
        queue.looked_at = -math.inf if is_test else now
        return True

    def ask_again(self, site: Site, paths: Iterable[str], *, at_once: bool) -> None:
        """Request the first of these decoded paths that may be: values name them, but they last answered otherwise.

        Unless that is to be done at once, one of all processes does it, now and then.
        """
        may_be = (path for path in paths if self.may_request(site, path) and self._is_due(site, path, self._clock()))
        if (due := [*islice(may_be, MAX_ASKED_AGAIN)]) and (
            at_once or self._lease(site, _AGAIN_LEASE, ASK_AGAIN_INTERVAL_SECONDS)
        ):
            self.ask(site, due)

    def is_asked(self, site: Site) -> bool:
        """Whether pages of a site wait to be requested."""
        return bool(self._queue(site).waiting)

    def _is_due(self, site: Site, path: str, now: float) -> bool:
        """Whether an unvisited page was not requested yet, or failed once and long enough ago."""
        result = self.result_of(site, path)
        if result is None or not result.failures:
            return True
        return result.failures < MAX_FAILURES and not 0 <= now - result.at < RETRY_SECONDS

    def _lease(self, site: Site, name: str, seconds: int, of: str = "") -> bool:
        """Take, renew or end the lease by which one process at a time requests unvisited pages, or one page.

        `of` tells holders within this process apart.
        """
        try:
            return self._store.take(site.store_key, name, seconds, of)
        except StoreError as error:
            log.debug("pages are not requested: %s", error)
            return False

    # Requesting

    def _start_job(self, request: Request, site: Site, queue: Queue) -> Job:
        """The job that works off a queue."""
        with self._lock:
            if queue.job is None or queue.job.is_done:
                self._closing.clear()
                queue.job = Job(self._clock())
                run_in_background(partial(self._run_job, request, site, queue, queue.job))
            return queue.job

    def _run_job(self, request: Request, site: Site, queue: Queue, job: Job) -> None:
        try:
            self._work_behind(request, site, queue, job)
        except RuntimeError as error:  # the event loop of the request has ended
            log.debug("pages are not requested: %s", error)
            job.has_failed, queue.live = True, None
            self._tell(site, [*queue.asked, *queue.waiting])
        finally:
            queue.asked.clear()
            job.is_done = True
            job.due_done.set()

    def _running(self, request: Request, site: Site, queue: Queue) -> RunningRequests:
        take, fail = partial(self._take, site, queue), partial(self._fail, site)
        return RunningRequests(request, site, queue, self._hanging, take, fail)

    def _work_within(self, request: Request, site: Site, queue: Queue, seconds: float) -> None:
        """Request as many pages as a request has time for, on its own thread.

        A server with one thread is often killed while it waits for a page that hangs, and its replacement knows nothing
        of that. So it takes a lease of each page, which lasts if the page takes too long.
        """
        began, running = self._clock(), self._running(request, site, queue)
        while queue.waiting and running.has_room():
            now = self._clock()
            if not 0 <= now - began < seconds or queue.is_paused(now):
                break
            path = queue.next_path(math.inf)
            # The lease is in the name of this request, so that this worker cannot take it again either.
            lease = partial(self._lease, site, f"request {path}", of=f"/{now}")
            if queue.take(path) and lease(RETRY_SECONDS):
                running.start(path, now)
                if self._clock() - now < PROBE_TIMEOUT_SECONDS:
                    lease(0)
        queue.asked.clear()
        self._settle_refused(queue)

    def _work_behind(self, request: Request, site: Site, queue: Queue, job: Job) -> None:
        """Request the pages of a queue in the background, so that the app is busy with them half of the time."""
        running = self._running(request, site, queue)
        while not self._closing.is_set() and (queue.waiting or running):
            now = self._clock()
            if queue.is_paused(now):
                break
            if not (queue.waiting and running.has_room()):
                if not running:
                    break
                running.settle()
                continue
            path = queue.next_path(now)
            if self._is_time_for(path, queue, job, running):
                now = self._clock()
                if (asked := queue.take(path)) is None:
                    continue
                try:
                    running.start(path, now)
                except RuntimeError:  # the event loop of the request has ended
                    queue.waiting[path] = asked
                    raise
                if self._clock() - job.hurries_since >= FIRST_WAIT_SECONDS:
                    self.wait(max(MIN_PAUSE_SECONDS, min(self._clock() - now, PROBE_TIMEOUT_SECONDS)))
        while running and not self._closing.is_set():
            running.settle()
        self._settle_refused(queue)

    def _is_time_for(self, path: str, queue: Queue, job: Job, running: RunningRequests) -> bool:
        """Wait until a page is due; whether it is, as far as is known: others may have become due meanwhile."""
        asked = queue.waiting.get(path)
        seconds = 0.0 if asked is None else asked.at - self._clock()
        if seconds <= 0:
            return True
        if running:
            running.settle()
            return False
        job.is_waited_for = False
        job.due_done.set()
        self.wait(seconds, job.wakeup)
        if job.wakeup.is_set():
            job.wakeup.clear()
            return False
        return True

    def _take(self, site: Site, queue: Queue, asked: Asked, response: CapturedResponse) -> None:
        """Observe a response, unless the app limits the rate of requests."""
        now, path = self._clock(), response.path
        later = next((str(value) for name, value in response.headers if name == "retry-after"), "")
        if response.status == 429 or (response.status == 503 and later):
            queue.paused_until = now + min(retry_after_seconds(later, now) or ROUND_INTERVAL_SECONDS, MAX_PAUSE_SECONDS)
        if response.status == 429:
            queue.waiting.setdefault(path, asked)  # it is requested again when the pause is over
        elif response.status == 403 and asked.is_unvisited:
            queue.refused.append(response)
            if queue.is_paused(now) or len(queue.refused) >= MAX_REFUSED_IN_A_ROW:
                self._settle_refused(queue, may_be_limiters=True)
        elif response.status not in OBSERVED_STATUSES:
            self._fail(site, path, f"got {response.status}")
        else:
            self._settle_refused(queue, may_be_limiters=False)
            queue.rows = 0
            self._answered(response)
            if asked.times > 1 and response.status == 200:
                queue.waiting[path] = Asked(now + CHECK_PAUSE_SECONDS, asked.times - 1)

    def _settle_refused(self, queue: Queue, *, may_be_limiters: bool | None = None) -> None:
        """Request pages that a rate limiter refused again after a pause. Otherwise, observe that they answer 403.

        By default, the answers may be a limiter's if the app has limited the rate.
        """
        refused, queue.refused = queue.refused, []
        if may_be_limiters is None:
            may_be_limiters = queue.paused_until > -math.inf
        if refused and may_be_limiters and queue.rows < len(LIMITER_PAUSES_SECONDS):
            pause = LIMITER_PAUSES_SECONDS[queue.rows]
            queue.paused_until = max(queue.paused_until, self._clock() + pause)
            queue.rows += 1
            for response in refused:
                queue.waiting.setdefault(response.path, Asked(queue.paused_until, is_unvisited=True))
        else:
            for response in refused:
                self._answered(response)

    def _answered(self, response: CapturedResponse) -> None:
        site, seconds = response.site, response.seconds
        self._keep(site, response.path, RequestResult("", 0, self._clock(), seconds), is_told=seconds >= SLOW_SECONDS)
        self._observe(response)

    def _fail(self, site: Site, path: str, reason: str) -> None:
        """Remember that a page did not answer."""
        before = self.result_of(site, path)
        failures = 1 if before is None else before.failures + 1
        self._keep(site, path, RequestResult(reason, failures, self._clock()), is_told=True)

    def _keep(self, site: Site, path: str, result: RequestResult, *, is_told: bool) -> None:
        """Remember what a page got, and tell other processes of it."""
        self._results.put((site.store_key, path), result)
        if is_told and len(path) <= MAX_KEPT_PATH_CHARS:
            with suppress(StoreError):
                results = self._saved_results(site)
                results.pop(path, None)  # so that it is the last
                kept = dict([*results.items(), (path, result)][-MAX_KEPT_RESULTS:])
                self._store.save(site.store_key, {_RESULTS_RECORD: json.dumps(kept).encode()})

    def take_results(self, site: Site) -> None:
        """Learn what other processes got."""
        for path, result in self._saved_results(site).items():
            known = self.result_of(site, path)
            if known is None or known.at < result.at:
                self._results.put((site.store_key, path), result)

    def _saved_results(self, site: Site) -> dict[str, RequestResult]:
        """What pages got in the last day, by decoded path, whichever process asked: those that failed or were slow."""
        now = self._clock()
        with suppress(StoreError, *_UNREADABLE):
            record = self._store.load(site.store_key, [_RESULTS_RECORD]).get(_RESULTS_RECORD, b"{}")
            return {
                path: RequestResult(str(failure), int(failures), float(at), float(seconds))
                for path, (failure, failures, at, seconds) in json.loads(record).items()
                if 0 <= now - at < KEPT_RESULT_SECONDS
            }
        return {}


def _has_credentials(request: Request) -> bool:
    """Whether a live request carries credentials."""
    ignored = request.ignore_reason()
    return ignored is not None and ignored.reason == "credentials"
