"""Notes the requests of crawlers on the request path. All that takes time is done later (`crawler_visit_counts`).

Of ordinary visitors' requests only the number of header fields is compared: browsers
send more of them than crawlers do, behind the same proxies. So nearly all requests
whose User-Agent is not a crawler's are passed over without reading it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from ..crawlers.known_crawlers import Crawler, crawler_of_agent
from ..fork_safety import reset_after_fork
from ..models import Site
from ..request_response import Request, Sender

MAX_NOTED_REQUESTS: Final = 10_000
"""Requests that wait for the next flush. Further ones are dropped and counted."""

FIRST_MAX_FIELDS: Final = 9
"""Header fields of a crawler's request, at most, until one is seen. Googlebot sends six to eight."""

SPARE_FIELDS: Final = 2
"""Header fields that a crawler may send besides those of its requests that were seen, such as If-None-Match."""

LARGEST_MAX_FIELDS: Final = 100
"""What is learned, at most: anybody can send any number of fields, and claim to be a crawler."""


class NotedPage(Protocol):
    """What a request is for."""

    @property
    def site(self) -> Site: ...

    @property
    def path(self) -> str: ...

    @property
    def is_foreign_host(self) -> bool: ...

    @property
    def is_document(self) -> bool: ...


class NotedDocument(NamedTuple):
    """A document of the sitemap, or robots.txt."""

    site: Site
    path: str
    is_foreign_host: bool = False
    is_document: bool = True


class NotedRequest(NamedTuple):
    """A request whose User-Agent is a crawler's."""

    site: Site
    path: str
    crawler: Crawler
    raw_status: Any
    """ASGI's number or WSGI's status line."""
    at: float
    sender: Sender
    is_document: bool
    """Whether it was for a document of the sitemap, or for robots.txt."""


class CrawlerRequests:
    """The requests of crawlers since the last flush."""

    def __init__(self, *, enabled: bool, ensure_thread: Callable[[], None]) -> None:
        """`ensure_thread` starts the thread that flushes, if it does not run."""
        self.max_fields: int = FIRST_MAX_FIELDS if enabled else -1
        """Requests with more header fields are not a crawler's. Negative: no crawlers are counted."""
        self._knows_protocol = False
        """Whether `max_fields` includes the fields that are no headers: those of WSGI's environ."""
        self.dropped: int = 0
        self._ensure_thread = ensure_thread
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent counts what it has noted."""
        self._noted: list[NotedRequest] = []

    @property
    def is_enabled(self) -> bool:
        return self.max_fields >= 0

    def learn(self, request: Request) -> None:
        """Learn from a request how many header fields crawlers send. Called before the app has seen it."""
        if not self.is_enabled:
            return
        if not self._knows_protocol:
            self._knows_protocol = True
            self.max_fields += request.field_count - request.header_count
        if crawler_of_agent(request.user_agent) is not None:
            self.max_fields = max(self.max_fields, min(request.field_count + SPARE_FIELDS, LARGEST_MAX_FIELDS))

    def note(self, page: NotedPage, raw_status: Any, request: Request, now: float) -> None:
        """Note a request if its User-Agent is a crawler's. Never blocks; too many are dropped and counted."""
        crawler = crawler_of_agent(request.user_agent)
        if crawler is None or page.is_foreign_host:
            return
        request.is_noted = True
        noted = self._noted
        if len(noted) >= MAX_NOTED_REQUESTS:
            self.dropped += 1
            return
        noted.append(NotedRequest(page.site, page.path, crawler, raw_status, now, request.sender, page.is_document))
        self._ensure_thread()

    def take(self) -> list[NotedRequest]:
        """The requests since the last call."""
        noted, self._noted = self._noted, []
        return noted
