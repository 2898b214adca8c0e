"""Evaluates the URLs of a site for the report, in the background, and keeps the results until the site has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from ..dates import SECONDS_PER_DAY
from ..documents.background import BackgroundJob, Unavailable
from ..exceptions import StoreError, ValuesError
from ..explanations_and_statistics import ServiceInspection
from ..fork_safety import reset_after_fork
from ..listing.candidates import SiteSnapshot
from ..listing.changes_since import change_times
from ..listing.listed_and_unlisted_urls import EvaluatedUrl
from ..models import Site
from ..request_response import Request
from ..robots import RobotsUnknown
from .evaluated_urls_database import PageRow, SiteIndex, monday
from .reasons_without_details import UNDATED, without_details
from .service_inputs import ServiceInputs

MAX_SITES: Final = 8
"""Sites whose pages are kept for the report at one time."""

SMALL_SITE_PAGES: Final = 5000
"""A request for the report of a site of at most so many pages waits until these are evaluated."""

WAIT_SECONDS: Final = 10.0
"""Seconds that it waits at most."""

QUICK_SECONDS: Final = 0.5
"""If the last evaluation took at most so long, a request waits for a new one if the site has changed."""

MIN_AGE_SECONDS: Final = 60
"""Any other evaluation is kept at least so long."""

PAUSE_FACTOR: Final = 4
"""The pause after some pages, as a multiple of the time that they took, so that the app's own requests go first."""

WEEKS: Final = 26
"""Weeks whose changes the report shows, the present one included."""

PAUSE_PAGES: Final = 500
"""Pages evaluated between two pauses."""

_parent_evaluations: Final[list[object]] = []
"""Evaluations of the parent process: SQLite forbids a forked child to use or close their databases."""


@dataclass(slots=True)
class Evaluation:
    """The pages of a site, evaluated at one moment."""

    snapshot: SiteSnapshot
    version: int
    """Of the site's pages in the store."""
    at: float
    """POSIX seconds."""
    index: SiteIndex
    seconds: float = 0.0
    """How long it took."""
    problem: str | None = None
    """Why pages are missing; None if none are."""

    @property
    def now(self) -> int:
        """POSIX seconds by the clock that dates the evidence."""
        return self.snapshot.now


def first_week(now: int) -> int:
    """The Monday with which the weeks of the report begin, in days since 1970."""
    return monday(now // SECONDS_PER_DAY) - 7 * (WEEKS - 1)


def evaluate(
    service: ServiceInspection,
    snapshot: SiteSnapshot,
    *,
    pause: Callable[[float], object] | None = None,
    on_start: Callable[[Evaluation], object] = lambda _: None,
) -> Evaluation:
    """Evaluate the pages of a site.

    Args:
        service: evaluates them.
        snapshot: the site.
        pause: waits for so many seconds. Without it, there are no pauses.
        on_start: called with the evaluation before it is complete.

    Raises:
        StoreError: the store fails.
    """
    clock = service.clock
    evaluation = Evaluation(
        snapshot, snapshot.store.version(snapshot.site.store_key), clock(), SiteIndex(first_week(snapshot.now))
    )
    on_start(evaluation)
    items: Iterator[EvaluatedUrl] = service.evaluated_urls(snapshot)
    if pause is not None:
        items = _with_pauses(items, clock, pause)
    evaluation.index.fill(_rows(service, evaluation, items))
    evaluation.seconds = max(0.0, clock() - evaluation.at)
    return evaluation


def _rows(service: ServiceInspection, evaluation: Evaluation, items: Iterator[EvaluatedUrl]) -> Iterator[PageRow]:
    media_types, now = service.options.media_types, evaluation.now
    try:
        for item in items:
            page, entry, candidate = item.candidate.page, item.entry, item.candidate
            lastmod_from = item.lastmod_from
            yield PageRow(
                path=candidate.path,
                url=item.url,
                listed=entry is not None,
                reason=item.verdict.reason,
                lastmod=entry.lastmod if entry else None,
                lastmod_from=lastmod_from,
                lastmod_note=item.lastmod.source if item.lastmod else None,
                changefreq=entry.changefreq if entry else None,
                priority=entry.priority if entry else None,
                route=candidate.route.path,
                status=page.status if page else None,
                times=change_times(item, media_types, now),
                last_seen=page.last_seen if page else 0,
                group=without_details(item.verdict.reason) if entry is None else lastmod_from or UNDATED,
            )
    except ValuesError as error:
        evaluation.problem = str(error)


def _with_pauses(
    items: Iterator[EvaluatedUrl], clock: Callable[[], float], pause: Callable[[float], object]
) -> Iterator[EvaluatedUrl]:
    began = clock()
    for number, item in enumerate(items, 1):
        yield item
        if number % PAUSE_PAGES == 0:
            pause(PAUSE_FACTOR * min(1.0, max(0.0, clock() - began)))
            began = clock()


class EvaluationCache:
    """The latest evaluation of each site."""

    def __init__(self, sources: ServiceInputs) -> None:
        self._sources = sources
        self._service = sources.service
        self._lock = threading.Lock()
        self._latest: OrderedDict[str, Evaluation] = OrderedDict()
        self._jobs: dict[str, BackgroundJob] = {}
        self._running: dict[str, Evaluation] = {}
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's threads are not here, and its databases must be neither used nor closed."""
        _parent_evaluations.extend((self._latest, self._running))
        self._lock = threading.Lock()
        self._latest, self._jobs, self._running = OrderedDict(), {}, {}

    def get(self, site: Site, request: Request) -> Evaluation | None:
        """The latest evaluation of a site; None if the first one is not complete. Starts a new one if it is due.

        Raises:
            StoreError: the store fails.
        """
        store = self._sources.store
        latest = self._latest.get(site.base_url)
        if latest is None:
            waits = sum(part.pages for part in store.parts(site.store_key).values()) <= SMALL_SITE_PAGES
        else:
            waits = latest.seconds <= QUICK_SECONDS
            if waits:
                self._sources.sitemap.flush()
            if not self._is_due(latest, store.version(site.store_key), waits=waits):
                return latest
        job = self._start(site, request, has_pauses=not waits)
        if waits and job.done.wait(WAIT_SECONDS) and job.error is not None:
            raise job.error
        return self._latest.get(site.base_url)

    def pages_read(self, site: Site) -> int:
        """How many pages the evaluation that runs now has read."""
        running = self._running.get(site.base_url)
        return 0 if running is None else running.index.pages

    def _is_due(self, latest: Evaluation, version: int, *, waits: bool) -> bool:
        age = self._service.clock() - latest.at
        if not waits and 0 <= age < max(MIN_AGE_SECONDS, PAUSE_FACTOR * latest.seconds):
            return False
        return (
            latest.version != version
            or latest.snapshot.table is not self._service.app_routes.reload()
            or not 0 <= age < self._service.options.max_age
        )

    def _start(self, site: Site, request: Request, *, has_pauses: bool) -> BackgroundJob:
        with self._lock:
            job = self._jobs.get(site.base_url)
            if job is not None and not job.done.is_set():
                return job
            job = BackgroundJob(lambda: self._evaluate(site, request, has_pauses=has_pauses))
            self._jobs[site.base_url] = job
        if request.runs_probes_inline:  # the app may need what belongs to the server's one thread
            job.run()
        else:
            request.run_in_background(job.run)
        return job

    def _evaluate(self, site: Site, request: Request, *, has_pauses: bool) -> None:
        service = self._service
        with suppress(Unavailable, RobotsUnknown, StoreError):  # what is known is shown all the same
            self._sources.sitemap.bring_up_to_date(site, request)
        snapshot = replace(service.snapshot(site, self._sources.store), async_collector=request.async_collector)
        try:
            evaluation = evaluate(
                service,
                snapshot,
                pause=threading.Event().wait if has_pauses else None,
                on_start=lambda started: self._running.__setitem__(site.base_url, started),
            )
        finally:
            self._running.pop(site.base_url, None)
        with self._lock:
            self._latest[site.base_url] = evaluation
            self._latest.move_to_end(site.base_url)
            while len(self._latest) > MAX_SITES:
                self._latest.popitem(last=False)
