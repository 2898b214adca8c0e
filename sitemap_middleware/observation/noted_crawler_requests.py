"""Notes the requests of crawlers on the request path. All that takes time is done later (`verified_visit_counting`).

Of most visitors' requests only the number of header fields is looked up: browsers send
more of them than crawlers do, behind the same proxies. So nearly all requests whose
User-Agent is not a crawler's are skipped without reading it. After a request with some
number of header fields proved not to be a crawler's, further ones with that number are
skipped until the next flush. Requests with a number that crawlers may send are never skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from ..crawlers.counted_visits import MAX_PATH_CHARS, OTHER_PATHS
from ..crawlers.ip_address_ranges import parse_address
from ..crawlers.known_crawlers import Crawler, crawler_of_agent
from ..fork_safety import reset_after_fork
from ..models import Site
from ..proxy_header_names import is_proxy_header
from ..request_response import Request, Sender

MAX_NOTED_REQUESTS: Final = 10_000
"""Requests that wait for the next flush. Further ones are dropped and counted."""

MAX_NOTED_CHARS: Final = 2_000_000
"""Characters of the paths of these requests."""

MAX_ADDRESS_CHARS: Final = 100
"""Characters of a sender's address. A longer text is not an address."""

FIRST_MAX_FIELDS: Final = 9
"""Header fields of a crawler's request, at most, until one is seen. Googlebot sends six to eight."""

SPARE_FIELDS: Final = 2
"""Header fields that a crawler may send besides those of its requests that were seen, such as If-None-Match."""

LARGEST_MAX_FIELDS: Final = 100
"""The largest value that `max_fields` can reach: anybody can send any number of fields, and claim to be a crawler."""

MAX_SKIPPED_COUNTS: Final = 1000
"""Numbers of fields that are passed over at once."""


_CLIENT_HEADERS: Final[frozenset[str | bytes]] = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"accept-language",
        b"cache-control",
        b"connection",
        b"from",
        b"host",
        b"if-modified-since",
        b"if-none-match",
        b"pragma",
        b"referer",
        b"user-agent",
    }
)
"""The headers that crawlers send themselves, as ASGI gives their names. They are known to be no proxy's."""


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
    address: str
    """The sender's, as the server names it; empty if it names none."""
    is_own: bool
    """Whether the address is certainly the sender's own (`is_own_address`)."""
    is_document: bool
    """Whether it was for a document of the sitemap, or for robots.txt."""


class CrawlerRequests:
    """The requests of crawlers since the last flush."""

    def __init__(self, *, enabled: bool, ensure_thread: Callable[[], None]) -> None:
        """`ensure_thread` starts the thread that flushes, if it does not run."""
        self.max_fields: int = FIRST_MAX_FIELDS if enabled else -1
        """Requests with up to so many header fields may be a crawler's. Negative: no crawlers are counted."""
        self._knows_protocol = False
        """Whether `max_fields` includes the fields that are no headers: those of WSGI's environ."""
        self.dropped: int = 0
        self._ensure_thread = ensure_thread
        self.skipped_counts: set[int] = set()
        """Numbers of header fields that need not be looked at before the next flush. It stays the same object."""
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent counts what it has noted."""
        self._noted: list[NotedRequest] = []
        self._noted_chars = 0
        self.skipped_counts.clear()

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
            self._learn_count(request.field_count)

    def _learn_count(self, count: int) -> None:
        if count + SPARE_FIELDS > self.max_fields:
            self.max_fields = max(self.max_fields, min(count + SPARE_FIELDS, LARGEST_MAX_FIELDS))
            self.skipped_counts.clear()

    def look_at(self, page: NotedPage, raw_status: Any, request: Request, count: int, now: float) -> None:
        """Note a request if it is a crawler's; else pass over others with as many fields. Never blocks.

        Args:
            page: what the request is for.
            raw_status: of the response, ASGI's number or WSGI's status line.
            request: its User-Agent and its sender are read.
            count: the number of fields that the app was given.
            now: POSIX seconds.
        """
        if self.is_enabled and (crawler := crawler_of_agent(request.user_agent)) is not None:
            self._learn_count(count)
            self._note(crawler, page, raw_status, request, now)
        elif count > self.max_fields and len(self.skipped_counts) < MAX_SKIPPED_COUNTS:
            self.skipped_counts.add(count)

    def note(self, page: NotedPage, raw_status: Any, request: Request, now: float) -> None:
        """Note a request if its User-Agent is a crawler's. Never blocks; too many are dropped and counted."""
        crawler = crawler_of_agent(request.user_agent)
        if crawler is not None:
            self._note(crawler, page, raw_status, request, now)

    def _note(self, crawler: Crawler, page: NotedPage, raw_status: Any, request: Request, now: float) -> None:
        if page.is_foreign_host:
            return
        request.is_noted = True
        noted, path = self._noted, page.path
        if len(path) > MAX_PATH_CHARS:
            path = OTHER_PATHS
        if len(noted) >= MAX_NOTED_REQUESTS or self._noted_chars + len(path) > MAX_NOTED_CHARS:
            self.dropped += 1
            return
        self._noted_chars += len(path)
        sender = request.sender
        address = sender.address if len(sender.address) <= MAX_ADDRESS_CHARS else ""
        noted.append(
            NotedRequest(page.site, path, crawler, raw_status, now, address, is_own_address(sender), page.is_document)
        )
        self._ensure_thread()

    def take(self) -> list[NotedRequest]:
        """The requests since the last call."""
        noted, self._noted, self._noted_chars = self._noted, [], 0
        self.skipped_counts.clear()
        return noted


def is_own_address(sender: Sender) -> bool:
    """Whether an address is certainly that of the client, and not of a proxy that the server does not know.

    A server that knows its proxy replaces the address by the one in X-Forwarded-For.
    """
    for name, _ in sender.headers:
        if name not in _CLIENT_HEADERS and is_proxy_header(_text(name)):
            break
    else:
        return True
    forwarded_for = [_text(value) for name, value in sender.headers if _text(name).lower() == "x-forwarded-for"]
    address = parse_address(sender.address)
    return len(forwarded_for) == 1 and address is not None and parse_address(forwarded_for[0].strip()) == address


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
