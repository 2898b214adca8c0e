"""Requests and responses as the service sees them, for both protocols."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from werkzeug.http import parse_date

from ..models import Context, Headers, RawHeaders, Site
from .proxies import PROXY_HEADERS, is_of_site, is_proxy_header, is_routing_header
from .request_filter import ignore_reason_of_headers
from .visitor_headers import IgnoreReason

DOCUMENT_SUFFIXES: Final = (".xml", ".txt", ".atom")
"""How the paths of documents, robots.txt and the feed end. This test alone rules out almost all other requests."""

NOINDEX_HEADER: Final = ("X-Robots-Tag", "noindex")
"""The header that keeps a response out of search engines."""

PROBE_USER_AGENT: Final = "sitemap-middleware-bot/1.0"
"""The User-Agent of the middleware's own requests. Analytics know it as a bot's."""

WAIT_SECONDS_KEY: Final = "sitemap_middleware.wait_seconds"
"""The key of an environ or a scope by which commands and tests set `Request.wait_seconds`. Clients cannot send it."""

SYNC_SERVER_WAIT_SECONDS: Final = 2.0
"""`Request.wait_seconds` on a server with one thread."""

TEST_CLIENT_WAIT_SECONDS: Final = 10.0
"""`Request.wait_seconds` of a framework's test client."""

PROBE_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that the app may take to answer a request for robots.txt, and a WSGI app to send a body that it has begun."""

PAGE_TIMEOUT_SECONDS: Final = 30.0
"""Seconds that the app may take to answer one of the middleware's own requests for a page: visitors do not get slower
pages either from gunicorn's default worker."""

PROBE_GRACE_SECONDS: Final = 1.0
"""Seconds beyond these times for an app that was cancelled to stop. Then its request counts as hanging."""

WRONG_HOST_STATUSES: Final = frozenset({400, 421})
"""Statuses of an app that refuses the Host of the request."""

MAX_PROBE_BYTES: Final = 1024 * 1024
"""Bytes that are read of the body of a response to one of the middleware's own requests."""

GENERATING_HEADER: Final = ("X-Sitemap-Status", "generating")
"""The header of a 503 response if the document is being generated: the client should request it again."""


_TRANSIENT_STATUSES: Final = frozenset({304, 408, 425, 429})
"""Statuses below 500 that say nothing about the page: not modified, or a problem that passes."""

OBSERVED_STATUSES: Final = frozenset(range(200, 500)) - _TRANSIENT_STATUSES
"""Statuses of responses that say something about their page."""

MAX_HTML_BYTES: Final = 640 * 1024
"""A larger body is not read completely. A body of this size takes about 50 ms."""
KEPT_BODY_BYTES: Final = 256 * 1024
"""Bytes kept of a larger body."""


def retry_after_seconds(text: str, now: float) -> float:
    """Seconds that a Retry-After header asks to wait, as a number or a date (RFC 9110, section 10.2.3); 0 if it asks
    for none. `now` is in POSIX seconds.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    date = parse_date(text)
    return 0.0 if date is None else max(0.0, date.timestamp() - now)


class AppTerminated(Exception):
    """The app raised a `BaseException` such as `SystemExit`: it, or its server, was told to end."""


def as_exception(error: BaseException) -> Exception:
    """Return what the app raised, as an `Exception`: others would end the server or the task that waits for it."""
    return error if isinstance(error, Exception) else AppTerminated(f"the app raised {type(error).__name__}")


class ProbeRequest(NamedTuple):
    """A request of the middleware itself to the app, made within the process."""

    path: str
    """Decoded, below the root."""
    scheme: str | None = None
    """Replaces the scheme of the live request."""
    host: str | None = None
    """Replaces the Host of the live request."""


AsyncCollector = Callable[[Any, Context | None, Any, float], Generator[list[Any]]]
"""`collect_on_loop` on the app's event loop: of a source, a context, a queue and seconds."""


class AppClient(Protocol):
    """Requests pages from the app within the process, on a thread or the event loop on which the app can run."""

    def start_probe(self, request: Request, probe: ProbeRequest) -> Future[Response | None]:
        """As `Request.start_probe`."""

    def detached(self) -> AppClient:
        """A client to use after the request has ended. It keeps a few plain values, and nothing of the visitor."""


@dataclass(slots=True, eq=False)
class Request:
    """A request of either protocol, as it came. The adapters fill it."""

    method: str
    scheme: str
    host: str
    """Its Host; empty if there is none."""
    root: str
    """ASGI's root_path, WSGI's SCRIPT_NAME, decoded: where the app is mounted."""
    path: str
    """The decoded path below the root, as the app's router sees it."""
    query: str
    headers: Sequence[tuple[str, str]]
    """With names in lower case."""
    client: AppClient
    max_hanging_requests: int
    """The middleware's own requests that may hang at the same time without harm to the app."""
    signed_in: IgnoreReason | None = None
    """Why it is not evidence by what the server or the app knows of its visitor, besides the headers."""
    has_dynamic_root: bool = False
    """Whether the root contains path parameters: then clients can make up any number of roots."""
    wait_seconds: float | None = None
    """Seconds that it can wait for the middleware's own requests, if it has to make them itself.

    None if they can be made in the background."""
    runs_probes_inline: bool = False
    """Whether the middleware's own requests run on this request's thread, and so see the app's thread-locals."""
    async_collector: AsyncCollector | None = None
    """Collects from async iterables on the app's event loop; None if the app has none."""

    @property
    def is_of_test(self) -> bool:
        """Whether it is that of a test client: a test sees at once what it has just changed."""
        return self.wait_seconds == TEST_CLIENT_WAIT_SECONDS

    def ignore_reason(self) -> IgnoreReason | None:
        """Why it is not evidence, by its headers and its user; None if these are no reason."""
        return ignore_reason_of_headers(self.headers) or self.signed_in

    def routing_headers(self, site: Site) -> Headers:
        """Its headers by which an app may believe that another URL than one of the site was requested."""
        found = [field for field in self.headers if is_routing_header(field[0])]
        return [field for field in found if not is_of_site(*field, site.scheme, site.host, self.root + self.path)]

    @property
    def is_forwarded(self) -> bool:
        """Whether a header such as X-Forwarded-For shows that a proxy forwards this request."""
        return any(is_proxy_header(name) for name, _ in self.headers)

    def start_probe(self, probe: ProbeRequest) -> Future[Response | None]:
        """Request another path from the app, below the same root, as a crawler would. On any thread.

        The future is done when the app has answered or failed. Its result is None if
        the app does not answer in time. Of a body that is too long it has the beginning. It may never be done:
        a thread on which the app hangs cannot be stopped. If `runs_probes_inline`, it is
        done when this returns. Raises RuntimeError if the app's event loop is closed.
        """
        return self.client.start_probe(self, probe)

    def detached(self) -> Request:
        """A copy to use after this request has ended. Call it before the end."""
        headers = [field for field in self.headers if field[0] in PROXY_HEADERS]
        return replace(self, headers=headers, client=self.client.detached(), signed_in=None, async_collector=None)


@dataclass(frozen=True, slots=True)
class Response:
    """A response, ready to be sent by either adapter."""

    status: int
    headers: Headers
    body: bytes = b""


PageKey = tuple[str, str]
"""`CapturedResponse.page_key`."""


@dataclass(slots=True, eq=False)
class CapturedResponse:
    """One response as it passed. Created on the request path, parsed later on the background thread."""

    site: Site
    path: str
    """Decoded, below the root."""
    at: float
    """When it began, in POSIX seconds."""
    status: int
    headers: RawHeaders = ()
    body: bytes | None = None
    """The body, if it was sampled."""
    is_truncated: bool = False
    """Whether `body` is only the beginning of a longer body."""
    is_readable: bool = True
    """Whether the body could be read, if it had been sampled. Not so if the server sends it in a way of its own."""
    is_probe: bool = False
    """Whether the middleware itself sent the request. Such a request states no language, device or account."""
    host: str = ""
    """The request's Host as sent. Any client can choose it, so it is compared but never published."""
    is_foreign_host: bool = False
    """Whether `host` is not the site's own."""
    routing_headers: Headers = ()
    """The request's headers by which an app may believe that another URL was requested."""

    @property
    def page_key(self) -> PageKey:
        """Identifies the page among those of all sites. Responses for a foreign Host may not count, so they have one
        apart.
        """
        key = self.site.store_key
        return f"foreign:{key}" if self.is_foreign_host else key, self.path

    @property
    def is_doubtful(self) -> bool:
        """Whether the request named another Host, even ``www.`` or another port, or stated another URL by a header.

        The app may have answered for that.
        """
        has_other_host = self.is_foreign_host or self.host not in {"", self.site.host}
        return not self.is_probe and (has_other_host or bool(self.routing_headers))
