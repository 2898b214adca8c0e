"""Counts the visits of crawlers off the request path: verifies who sent them, and adds them up in the store.

Addresses are held in memory until they are verified, and never stored.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ..crawlers.known_crawlers import Crawler
from ..crawlers.ranges import parse_address, unpack_ranges
from ..crawlers.verification import Resolver, Verifier
from ..crawlers.visits import FAKE, OTHER_PATHS, UNVERIFIED, VERIFIED, CrawlerVisit, VisitCounter
from ..exceptions import StoreError
from ..fork_safety import reset_after_fork
from ..models import Site, StoreKey
from ..patterns import Pattern
from ..request_response import Sender, is_proxy_header
from ..routing.current_routes import AppRoutes
from ..stores.base import Store, StoreExtras
from .crawler_requests import CrawlerRequests, NotedRequest
from .observer import status_code

log: logging.Logger = logging.getLogger("sitemap_middleware")

SAVE_INTERVAL_SECONDS: Final = 30.0
"""Seconds between two writes of visits to the store, and so the most that is lost by kill -9."""

RANGES_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds after which the published ranges are read from the store again."""

VERIFICATION_WAIT_SECONDS: Final = 5.0
"""Seconds for which `flush` waits for DNS."""

LAST_VERIFICATION_WAIT_SECONDS: Final = 0.5
"""Seconds for which the end of the process waits for DNS. Visits that are not verified by then are unverified."""

MAX_WAITING_SENDERS: Final = 2000
"""Addresses that wait to be verified. Visits of further ones are unverified."""

RANGES_OWNER: Final = StoreKey("sites")
RANGES_RECORD: Final = "crawler-ranges"
"""The record of the store that holds the published ranges. All its sites share it."""

IDENTITY_NAMES: Final = {VERIFIED: "verified", UNVERIFIED: "unverified", FAKE: "fake"}


class _Group(NamedTuple):
    """Requests of one sender."""

    crawler: Crawler
    address: str
    is_own: bool
    """Whether the address is certainly the sender's own (`is_own_address`)."""
    requests: list[NotedRequest]


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
        self.counts: Counter[int] = Counter()
        """Visits since the process began, by identity."""
        self._requests = requests
        self._store = store
        self._app_routes = app_routes
        self._may_store = may_store
        self._clock = clock
        self._verifier = Verifier(resolver, clock)
        self._ranges_read_at = float("-inf")
        self._saved_at = float("-inf")
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent stores what it has counted."""
        self._waiting: deque[_Group] = deque()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._by_site: dict[StoreKey, tuple[Site, VisitCounter]] = {}

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
        groups: dict[tuple[str, str, bool], _Group] = {}
        for request in self._requests.take():
            key = request.crawler.name, request.sender.address, is_own_address(request.sender)
            groups.setdefault(key, _Group(request.crawler, *key[1:], [])).requests.append(request)
        for group in groups.values():
            if len(self._waiting) >= MAX_WAITING_SENDERS:
                self._count(group, UNVERIFIED)
            else:
                self._waiting.append(group)
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
                self._read_ranges()
                self._count(group, self._identity(group))
            except Exception:
                log.exception("visits of crawlers could not be counted")

    def _next_group(self, *, ends_thread: bool = False) -> _Group | None:
        """Take what waits longest; None if nothing waits."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            if ends_thread:
                self._thread = None
            return None

    def _identity(self, group: _Group) -> int:
        identity = self._verifier.identity(group.crawler, group.address)
        return UNVERIFIED if identity == FAKE and not group.is_own else identity

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

    def _count(self, group: _Group, identity: int) -> None:
        with self._lock:
            self.counts[identity] += len(group.requests)
        for request in group.requests:
            at = int(request.at)
            visit = CrawlerVisit(
                path=self._counted_path(request, identity),
                crawler=request.crawler.name,
                verified=identity == VERIFIED,
                status=status_code(request.raw_status),
                first=at,
                last=at,
                count=1,
                fake=identity == FAKE,
            )
            self._by_site.setdefault(request.site.store_key, (request.site, VisitCounter()))[1].add([visit])

    def _counted_path(self, request: NotedRequest, identity: int) -> str:
        """The path, unless it may be a secret, or somebody may have made it up."""
        if identity == FAKE:
            return OTHER_PATHS
        table = self._app_routes.table
        if request.is_document or table.find_route(request.site, request.path) is not None:
            return request.path
        route = table.matching_route(request.site, request.path) if identity == VERIFIED else None
        has_secret = route is not None and Pattern(route.path).secret
        return request.path if identity == VERIFIED and not has_secret else OTHER_PATHS

    def _save(self) -> None:
        self._saved_at = self._clock()
        add_crawler_visits = StoreExtras.of(self._store).add_crawler_visits
        for site, counter in list(self._by_site.values()):
            visits = counter.take()
            if not visits or add_crawler_visits is None:
                continue
            try:
                if self._may_store(site):
                    add_crawler_visits(site.store_key, visits)
            except StoreError as error:
                log.debug("visits of crawlers not saved: %s", error)  # the circuit breaker has logged it
                counter.add(visits)


def is_own_address(sender: Sender) -> bool:
    """Whether an address is certainly that of the client, and not of a proxy that the server does not know.

    A server that knows its proxy replaces the address by the one in X-Forwarded-For.
    """
    headers = [(_text(name).lower(), _text(value)) for name, value in sender.headers]
    if not any(is_proxy_header(name) for name, _ in headers):
        return True
    forwarded_for = [value for name, value in headers if name == "x-forwarded-for"]
    address = parse_address(sender.address)
    return len(forwarded_for) == 1 and address is not None and parse_address(forwarded_for[0].strip()) == address


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
