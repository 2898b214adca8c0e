"""Evaluates the URLs of a site for the report, in the background, and keeps the results until the site has changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ..documents.reasons import Unavailable
from ..exceptions import StoreError, ValuesError
from ..http.messages import Request
from ..inspection import ServiceInspection
from ..listing.candidates import SiteSnapshot
from ..listing.changes_since import change_times
from ..listing.listed_and_unlisted_urls import EvaluatedUrl
from ..models import Site
from ..util import reset_after_fork, resolve
from .evaluated_urls_database import PageRow, SiteIndex

MAX_SITES: Final = 8
"""Sites whose pages are kept for the report at one time."""

WAIT_SECONDS: Final = 10.0
"""Seconds for which a request waits for the evaluation that it starts."""

MIN_AGE_FACTOR: Final = 5
"""An evaluation is kept at least so many times as long as it took, even if the site changes."""

PAUSE_PAGES: Final = 500
"""Pages evaluated between two pauses, each as long as they took, so that the app's own requests go first."""

UNDATED: Final = "no date is known"
"""The group of listed pages without a lastmod."""

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

    def fill(self, service: ServiceInspection, *, has_pauses: bool = False) -> None:
        """Evaluate the pages, one by one. Raises `StoreError` if the store fails."""
        began = time.monotonic()
        items: Iterable[EvaluatedUrl] = service.evaluated_urls(self.snapshot)
        self.index.fill(self._rows(service, _with_pauses(items) if has_pauses else items))
        self.seconds = time.monotonic() - began

    def _rows(self, service: ServiceInspection, items: Iterable[EvaluatedUrl]) -> Iterator[PageRow]:
        media_types = service.options.media_types
        try:
            for item in items:
                page, entry, verdict = item.candidate.page, item.entry, item.verdict
                times = change_times(item, media_types, self.now)
                yield PageRow(
                    path=item.candidate.path,
                    url=item.url,
                    listed=entry is not None,
                    reason=verdict.reason,
                    kind=(item.lastmod_from or UNDATED) if entry else (verdict.kind or verdict.reason),
                    lastmod=entry.lastmod if entry else None,
                    lastmod_from=item.lastmod_from,
                    lastmod_note=item.lastmod.source if item.lastmod else None,
                    changefreq=entry.changefreq if entry else None,
                    priority=entry.priority if entry else None,
                    route=item.candidate.route.path,
                    status=page.status if page else None,
                    **times._asdict(),
                    last_seen=page.last_seen if page else 0,
                    event=times.latest,
                )
        except ValuesError as error:
            self.problem = str(error)


def started_evaluation(service: ServiceInspection, snapshot: SiteSnapshot) -> Evaluation:
    """An evaluation whose pages are to be filled in. Raises `StoreError` if the store fails."""
    version = snapshot.store.version(snapshot.site.store_key)
    return Evaluation(snapshot, version, service.clock(), SiteIndex())


def _with_pauses(items: Iterable[EvaluatedUrl]) -> Iterator[EvaluatedUrl]:
    began = time.monotonic()
    for number, item in enumerate(items, 1):
        yield item
        if number % PAUSE_PAGES == 0:
            time.sleep(time.monotonic() - began)
            began = time.monotonic()


class EvaluationCache:
    """The latest evaluation of each site."""

    def __init__(self, service: ServiceInspection) -> None:
        self._service = service
        self._start_empty()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's threads are not here, and its databases must be neither used nor closed."""
        _parent_evaluations.extend((self._latest, self._running))
        self._start_empty()

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._latest: OrderedDict[str, Evaluation] = OrderedDict()
        self._jobs: dict[str, Future[None]] = {}
        """Those that run."""
        self._running: dict[str, Evaluation] = {}

    def get(self, site: Site, request: Request) -> Evaluation | None:
        """The latest evaluation of a site; None if the first one is not complete. Starts a new one if it is due.

        Raises:
            StoreError: the store fails.
        """
        latest = self._latest.get(site.base_url)
        if latest is not None:
            self._service.sitemap_handler.flush()
            if not self._is_due(latest, site):
                return latest
        job, is_new = self._start(site, request)
        if is_new or latest is None:
            wait((job,), WAIT_SECONDS)
            if job.done():
                job.result()
        return self._latest.get(site.base_url)

    def pages_read(self, site: Site) -> int:
        """How many pages the evaluation that runs now has read."""
        running = self._running.get(site.base_url)
        return 0 if running is None else running.index.pages

    def _is_due(self, latest: Evaluation, site: Site) -> bool:
        age = self._service.clock() - latest.at
        if 0 <= age < MIN_AGE_FACTOR * latest.seconds:
            return False
        return (
            latest.version != latest.snapshot.store.version(site.store_key)
            or latest.snapshot.table is not self._service.app_routes.reload()
            or not 0 <= age < self._service.options.max_age
        )

    def _start(self, site: Site, request: Request) -> tuple[Future[None], bool]:
        """The job that evaluates a site now, and whether it was started for this request."""
        with self._lock:
            if (running := self._jobs.get(site.base_url)) is not None:
                return running, False
            job = self._jobs[site.base_url] = Future()
        run = partial(resolve, job, partial(self._evaluate, site, request))
        if request.runs_probes_inline:  # the app may need what belongs to the server's one thread
            run()
        else:
            request.run_in_background(run)
        return job, True

    def _evaluate(self, site: Site, request: Request) -> None:
        try:
            with suppress(Unavailable, StoreError):  # what is known is shown all the same
                self._service.sitemap_handler.bring_up_to_date(site, request)
            snapshot = replace(self._service.snapshot_now(site), async_collector=request.async_collector)
            evaluation = self._running[site.base_url] = started_evaluation(self._service, snapshot)
            evaluation.fill(self._service, has_pauses=True)
            with self._lock:
                self._latest[site.base_url] = evaluation
                self._latest.move_to_end(site.base_url)
                while len(self._latest) > MAX_SITES:
                    self._latest.popitem(last=False)
        finally:
            with self._lock:
                self._running.pop(site.base_url, None)
                self._jobs.pop(site.base_url, None)
