"""Verifies who sent the requests of crawlers, off the request path, and counts their visits in the store.

Addresses are held in memory until they are verified, and never stored.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from ..crawlers.counted_visits import FAKE, OTHER_PATHS, UNVERIFIED, VERIFIED, CrawlerVisit, VisitCounter
from ..crawlers.ip_address_ranges import unpack_ranges
from ..crawlers.ip_address_verification import Resolver, Verifier
from ..exceptions import StoreError
from ..fork_safety import reset_after_fork
from ..models import Site, StoreKey
from ..patterns import Pattern
from ..routing.current_routes import AppRoutes
from ..stores.base import Store, StoreExtras
from .noted_crawler_requests import CrawlerRequests
from .visits_awaiting_dns import Group, Row, UnverifiedVisits, grouped

log: logging.Logger = logging.getLogger("sitemap_middleware")

SAVE_INTERVAL_SECONDS: Final = 30.0
"""Seconds between two writes of visits to the store, and so the most that is lost by kill -9."""

RANGES_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds after which the published ranges are read from the store again."""

VERIFICATION_WAIT_SECONDS: Final = 5.0
"""Seconds for which `flush` waits for DNS."""

LAST_VERIFICATION_WAIT_SECONDS: Final = 0.5
"""Seconds for which the end of the process waits for DNS. Visits that are not verified by then are unverified."""

RANGES_OWNER: Final = StoreKey("sites")
RANGES_RECORD: Final = "crawler-ranges"
"""The record of the store that holds the published ranges. All its sites share it."""

IDENTITY_NAMES: Final = {VERIFIED: "verified", UNVERIFIED: "unverified", FAKE: "fake"}


class CrawlerVisitCounts:
    """The visits of crawlers that this process has seen, on their way to the store."""

    def __init__(
        self,
        requests: CrawlerRequests,
        store: Store,
        app_routes: AppRoutes,
        *,
        may_store: Callable[[Site], bool],
        resolver: Resolver,
        clock: Callable[[], float],
    ) -> None:
        """Start empty, and without a thread.

        Args:
            requests: the requests of crawlers, as they come.
            store: keeps visits, if it has the methods of `VisitStore`.
            app_routes: the app's routes.
            may_store: whether a site may have pages in the store.
            resolver: asks DNS.
            clock: returns POSIX seconds.
        """
        self._counts: dict[int, Counter[str]] = {identity: Counter() for identity in IDENTITY_NAMES}
        self._requests = requests
        self._store = store
        self._app_routes = app_routes
        self._may_store = may_store
        self._clock = clock
        self._verifier = Verifier(resolver, clock)
        self._ranges_read_at = float("-inf")
        self._saved_at = float("-inf")
        self._waiting = UnverifiedVisits()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent stores what it has counted."""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._by_site: dict[StoreKey, tuple[Site, VisitCounter]] = {}

    def counts(self) -> dict[str, dict[str, int]]:
        """Visits since the process began, by the names of identities and of crawlers."""
        with self._lock:
            return {name: dict(self._counts[identity]) for identity, name in IDENTITY_NAMES.items()}

    def on_flush(self, *, is_last: bool) -> None:
        """Count the noted requests, and save from time to time. Called on the background thread."""
        self._count_noted()
        if is_last:
            self.finish()
        elif self._clock() - self._saved_at >= SAVE_INTERVAL_SECONDS or self._clock() < self._saved_at:
            self._save()

    def flush(self) -> None:
        """Count and save all visits. Waits some seconds for DNS."""
        self._count_noted()
        self._wait(VERIFICATION_WAIT_SECONDS)
        self._save()

    def finish(self) -> None:
        """Count and save all visits now, because there is no later time."""
        self._count_noted()
        self._wait(LAST_VERIFICATION_WAIT_SECONDS)
        while (group := self._next_group()) is not None:
            self._count(group, UNVERIFIED)
        self._save()

    def _count_noted(self) -> None:
        groups = grouped(self._requests.take())
        if groups:
            self._read_ranges()
        unknown = []
        for group in groups:
            identity = self._verifier.known_identity(group.sender.crawler, group.sender.address)
            if identity is None:
                unknown.append(group)
            else:
                self._count(group, identity)
        for group in self._waiting.add(unknown):
            self._count(group, UNVERIFIED)
        if self._waiting:
            self._ensure_thread()

    def _ensure_thread(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._verify, name="sitemap-crawlers", daemon=True)
                with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
                    thread.start()
                    self._thread = thread

    def _wait(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _verify(self) -> None:
        """Verify and count until nothing waits. It runs on a thread of its own, because DNS may block for long."""
        while (group := self._next_group(ends_thread=True)) is not None:
            try:
                self._count(group, self._verifier.identity(group.sender.crawler, group.sender.address))
            except Exception:
                log.exception("visits of crawlers could not be counted")

    def _next_group(self, *, ends_thread: bool = False) -> Group | None:
        """Take the visits whose turn it is; None if nothing waits."""
        with self._lock:
            group = self._waiting.next()
            if group is None and ends_thread:
                self._thread = None
            return group

    def _read_ranges(self) -> None:
        now = self._clock()
        if self._ranges_read_at <= now < self._ranges_read_at + RANGES_INTERVAL_SECONDS:
            return
        try:
            record = self._store.load(RANGES_OWNER, [RANGES_RECORD]).get(RANGES_RECORD, b"")
        except StoreError as error:
            log.debug("ranges of crawlers not read: %s", error)
            return
        self._ranges_read_at = now
        self._verifier.use_ranges(unpack_ranges(record)[0])

    def _count(self, group: Group, identity: int) -> None:
        if identity == FAKE and not group.sender.is_own:
            identity = UNVERIFIED
        visits = [
            CrawlerVisit(
                path=self._counted_path(row, identity),
                crawler=group.sender.crawler.name,
                verified=identity == VERIFIED,
                status=row.status,
                first=row.first,
                last=row.last,
                count=row.count,
                fake=identity == FAKE,
            )
            for row in group.rows.values()
        ]
        with self._lock:
            for row, visit in zip(group.rows.values(), visits, strict=True):
                self._counts[identity][visit.crawler] += visit.count
                self._by_site.setdefault(row.site.store_key, (row.site, VisitCounter()))[1].add([visit])

    def _counted_path(self, row: Row, identity: int) -> str:
        """The path, unless it may be a secret, or somebody may have made it up."""
        if identity == FAKE:
            return OTHER_PATHS
        table = self._app_routes.table
        if row.is_document or table.find_route(row.site, row.path) is not None:
            return row.path
        route = table.matching_route(row.site, row.path) if identity == VERIFIED else None
        has_secret = route is not None and Pattern(route.path).secret
        return row.path if identity == VERIFIED and not has_secret else OTHER_PATHS

    def _save(self) -> None:
        self._saved_at = self._clock()
        add_crawler_visits = StoreExtras.of(self._store).add_crawler_visits
        with self._lock:
            counters = list(self._by_site.values())
            self._by_site = {key: value for key, value in self._by_site.items() if len(value[1])}
        for site, counter in counters:
            visits = counter.take()
            if not visits or add_crawler_visits is None:
                continue
            try:
                if self._may_store(site):
                    add_crawler_visits(site.store_key, visits)
            except StoreError as error:
                log.debug("visits of crawlers not saved: %s", error)  # the circuit breaker has logged it
                counter.add(visits)
