"""Carries out `SitemapMiddleware.refresh`: marks in the store what is to be brought up to date, and requests the pages.

The store is called on a separate thread. The caller waits a moment, so that usually
the marks are in the store when `refresh` returns. The pages are requested with the
next request for the sitemap, by one of the processes that share the store.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Final

from ..exceptions import OptionError, StoreError
from ..http.messages import TEST_CLIENT_WAIT_SECONDS, Request
from ..http.urls import MAX_LOC_CHARS
from ..models import Site, StoreKey
from ..stores.requested_refreshes import MAX_PAGES, RefreshMarks, RefreshMarkStore
from ..util import ForkSafeLock, reset_after_fork
from .unvisited_page_prober import UnvisitedPageProber

log: logging.Logger = logging.getLogger("sitemap_middleware")

WAIT_SECONDS: Final = 1.0
"""Seconds that `refresh` waits for the store, at most."""

EVENT_LOOP_WAIT_SECONDS: Final = 0.1
"""The same on a thread that runs an event loop, which can do nothing else meanwhile."""

STATIC_ROUTES_INTERVAL_SECONDS: Final = 10.0
"""Seconds from one request of all static routes to the next, in one process: an app may call `refresh` all the time."""


class Refresher:
    """Collects what is to be brought up to date, and marks it in the store."""

    def __init__(
        self,
        marks: RefreshMarkStore,
        prober: UnvisitedPageProber | None,
        clock: Callable[[], float],
        *,
        sections_of: Callable[[str], Iterable[str]],
        static_paths: Callable[[Site], list[str]],
        may_probe: Callable[[Site, str], bool],
    ) -> None:
        """Use a store of marks.

        Args:
            marks: where the marks are kept.
            prober: requests the pages; None if the middleware makes no requests.
            clock: returns POSIX seconds.
            sections_of: the names of the providers' sections that a decoded path belongs to.
            static_paths: the decoded paths of a site's static routes.
            may_probe: whether a decoded path of a site may be requested.
        """
        self._marks = marks
        self._prober = prober
        self._clock = clock
        self._sections_of = sections_of
        self._static_paths = static_paths
        self._may_probe = may_probe
        self._requested_at: dict[StoreKey, float] = {}
        """When the static routes of a site were requested last."""
        self._latest: dict[StoreKey, RefreshMarks] = {}
        self._lock = ForkSafeLock()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent marks what it was asked for."""
        self._pending: set[str | None] = set()
        """Decoded paths; None stands for everything."""
        self._saved = threading.Event()
        """Set when what is pending now was saved, or could not be."""
        self._is_saving = False
        self._reading: dict[StoreKey, threading.Lock] = {}
        """Held by the thread that reads the marks of a site."""

    def refresh(self, path: str | None) -> None:
        """Ask for a decoded path, or everything, to be brought up to date. Never raises for a store that fails.

        Raises:
            OptionError: the path is not one.
        """
        if path is not None:
            path = _checked_path(path)
        with self._lock:
            if len(self._pending) >= MAX_PAGES:
                self._pending = {None}
            self._pending.add(path)
            saved = self._saved
        self._start_saving()
        saved.wait(patience_seconds())

    def finish(self) -> None:
        """Mark what is pending, before the store is closed. It waits `WAIT_SECONDS` at most."""
        with self._lock:
            is_due, saved = bool(self._pending) or self._is_saving, self._saved
        if is_due:
            self._start_saving()
            saved.wait(WAIT_SECONDS)

    def load(self, site: StoreKey, wait_seconds: float) -> RefreshMarks | None:
        """The marks that concern a site. If the store fails, those read last.

        None if another thread has been reading them for `wait_seconds`: the store may hang.
        """
        if self._pending:
            self._start_saving()
            self._saved.wait(WAIT_SECONDS)
        reading = self._reading.setdefault(site, threading.Lock())
        if not reading.acquire(timeout=wait_seconds):
            return None
        try:
            marks = self._latest[site] = self._marks.load(site)
        except StoreError as error:
            log.debug("refresh marks not read: %s", error)
            return self.last_loaded(site)
        finally:
            reading.release()
        return marks

    def last_loaded(self, site: StoreKey) -> RefreshMarks:
        """The marks of a site that were read last."""
        return self._latest.get(site, RefreshMarks())

    def request_pages(self, request: Request, site: Site, marks: RefreshMarks) -> None:
        """Request the pages of a site that are marked, behind this request or within it."""
        everything = marks.everything != marks.requested and self._may_request_static_routes(request, site)
        if self._prober is None or not (everything or marks.pages):
            return

        def paths() -> list[str]:
            wanted = dict.fromkeys([*marks.pages, *(self._static_paths(site) if everything else ())])
            return [path for path in wanted if self._may_probe(site, path)]

        def requested(count: int, due: list[str]) -> None:
            rest = set(due[count:])
            pages = {path: token for path, token in marks.pages.items() if path not in rest}
            try:
                is_complete = everything and not rest
                self._marks.mark_done(site.store_key, pages, marks.everything if is_complete else None)
            except StoreError as error:  # they are requested once more
                log.debug("refresh marks not saved: %s", error)

        self._prober.probe_again(request, site, paths, requested)

    def _may_request_static_routes(self, request: Request, site: Site) -> bool:
        now = self._clock()
        since = now - self._requested_at.get(site.store_key, -STATIC_ROUTES_INTERVAL_SECONDS)
        if 0 <= since < STATIC_ROUTES_INTERVAL_SECONDS and request.wait_seconds != TEST_CLIENT_WAIT_SECONDS:
            return False
        self._requested_at[site.store_key] = now
        return True

    def _start_saving(self) -> None:
        with self._lock:
            if self._is_saving:
                return
            self._is_saving = True
        try:
            threading.Thread(target=self._save, name="sitemap_middleware-refresh", daemon=True).start()
        except RuntimeError as error:  # the process ends, or may have no more threads
            log.debug("refresh is not recorded yet: %s", error)
            self._is_saving = False

    def _save(self) -> None:
        """Mark all that is pending. What cannot be marked stays pending until the next call or sitemap request."""
        while True:
            with self._lock:
                pending, self._pending = self._pending, set()
                saved, self._saved = self._saved, threading.Event()
                if not pending:
                    self._is_saving = False
                    saved.set()
                    return
            try:
                self._mark(pending)
            except StoreError:  # an outage, which the store logs
                self._postpone(pending, saved)
                return
            except Exception:
                log.exception("refresh could not be recorded")
                self._postpone({None}, saved)  # what cannot be recorded must not stop later calls
                return
            saved.set()

    def _postpone(self, pending: set[str | None], saved: threading.Event) -> None:
        with self._lock:
            self._pending |= pending
            self._is_saving = False
        saved.set()

    def _mark(self, pending: set[str | None]) -> None:
        paths = [path for path in pending if path is not None]
        if len(paths) < len(pending):
            self._marks.mark_everything()
            return
        sections = {section for path in paths for section in self._sections_of(path)}
        can_have_page = [path for path in paths if len(path) <= MAX_LOC_CHARS]
        self._marks.mark_pages([] if self._prober is None else can_have_page, sections)


def _checked_path(path: object) -> str:
    """A path as text. It may be given as an object that stands for its text, as Django's `reverse_lazy` returns."""
    text = str(path)
    if not text.startswith("/"):
        raise OptionError(f'refresh({path!r}): give the path of a page, such as refresh("/about"), or nothing')
    return text


def patience_seconds() -> float:
    """The seconds that a call of `refresh` waits for the store: fewer on an event loop, which it would block."""
    return EVENT_LOOP_WAIT_SECONDS if _runs_asyncio() or _runs_trio() else WAIT_SECONDS


def _runs_asyncio() -> bool:
    """Whether asyncio runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _runs_trio() -> bool:
    """Whether Trio runs on this thread."""
    if "trio" not in sys.modules:
        return False
    from trio.lowlevel import current_trio_token

    try:
        current_trio_token()
    except RuntimeError:
        return False
    return True
