"""Requests and responses as the service sees them, for both protocols."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final

from werkzeug.http import parse_date

from ..models import Context, Headers, RawHeaders, Site
from .proxies import ADDRESS_HEADERS, PROXY_HEADERS, SCHEME_HEADERS, is_of_site, is_proxy_header, is_routing_header
from .request_filter import IgnoreReason, ignore_reason_of_headers
from .urls import normal_host

DOCUMENT_SUFFIXES: Final = (".xml", ".txt", ".atom")
"""How the paths of documents, robots.txt and the feed end. This test alone rules out almost all other requests."""

NOINDEX_HEADER: Final = ("X-Robots-Tag", "noindex")
"""The header that keeps a response out of search engines."""

PROBE_USER_AGENT: Final = "sitemap-middleware-bot/1.0"
"""The User-Agent of the middleware's own requests. Analytics know it as a bot's."""

PROBE_ACCEPT: Final = "text/html,application/xhtml+xml,*/*;q=0.8"
"""Their Accept header. Some apps answer `*/*` alone with JSON."""

PROBE_CLIENT_ADDRESS: Final = "192.0.2.1"
"""Their client address. It is reserved for documentation (RFC 5737)."""

_SCHEME: Final = re.compile(
    r"""\s*(?:\{\s*"scheme"\s*:\s*"https?"\s*\}|(?:https?|on|off|[01])(?:\s*,\s*(?:https?|on|off|[01]))*)\s*""",
    re.IGNORECASE,
)
"""The values that proxies write into a header about the scheme."""

_SAID_OF_HTTPS: Final = {"cf-visitor": '{"scheme":"https"}', "front-end-https": "on", "x-forwarded-ssl": "on"}
"""What they write for HTTPS, other than "https"."""

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

REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
WRONG_HOST_STATUSES: Final = frozenset({400, 421})
"""Statuses of an app that refuses the Host of the request."""

SERVER_ERROR_CLASS: Final = 5
"""The first digit of the statuses of errors of the server (RFC 9110, section 15.6)."""

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


AsyncCollector = Callable[[Any, Context | None, Any, float], Generator[list[Any]]]
"""`collect_on_loop` on the app's event loop: of a source, a context, a queue and seconds."""


@dataclass(slots=True, eq=False)
class Request:
    """A request of either protocol, as it came. The adapters fill it, and add how to request pages from the app."""

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

    def start_own(self, site: Site, path: str, *, keeps_host: bool = False) -> Future[Response | None]:
        """Request another decoded path from the app, below the same root, as a crawler of the site would.

        That has the site's own host, because this request may name any, unless `keeps_host`: behind a proxy that
        rewrites the host, the app may accept no other. If the site has HTTPS, so has it, whatever the visitor's had. On
        any thread.

        The future is done when the app has answered or failed. Its result is None if
        the app does not answer in time. Of a body that is too long it has the beginning. It may never be done:
        a thread on which the app hangs cannot be stopped. If `runs_probes_inline`, it is
        done when this returns. Raises RuntimeError if the app's event loop is closed.
        """
        host = self.host if keeps_host else site.asked_as or site.host
        scheme = "https" if site.scheme == "https" else None
        return self.request_app(path, scheme, self._own_headers(host, scheme))

    def is_host_refused(self, site: Site, status: int) -> bool:
        """Whether the app may refuse the site's host by this status, and accept that of this request, another one."""
        return status in WRONG_HOST_STATUSES and normal_host(self.host, self.scheme) not in (None, site.host)

    def _own_headers(self, host: str, scheme: str | None) -> list[tuple[str, str]]:
        """The headers of a request of the middleware itself; with names in lower case.

        What a proxy says of the connection is said again, so that an app that reads it answers alike; with the scheme
        of a site that has HTTPS. Nothing is that a client may have made up. Some apps show pages only to certain
        addresses, such as an office's, so the visitor's is never repeated.
        """
        headers = [("user-agent", PROBE_USER_AGENT), ("accept", PROBE_ACCEPT)]
        headers += [("host", host)] if host else []
        for name, value in self.headers:
            if name in ADDRESS_HEADERS:
                headers.append((name, PROBE_CLIENT_ADDRESS))
            elif name in SCHEME_HEADERS and scheme is None and _SCHEME.fullmatch(value):
                headers.append((name, value))
        if scheme is not None:
            stated = {name for name, _ in self.headers if name in SCHEME_HEADERS} | {"x-forwarded-proto"}
            headers += [(name, _SAID_OF_HTTPS.get(name, scheme)) for name in sorted(stated)]
        return headers

    def own_address(self, address: str | None) -> str:
        """The client address of a request of the middleware itself: the proxy's, if there is a proxy before the app.

        This request's address is the visitor's if no header states another one, or if a
        header states the same one: then the server, or a middleware outside this one, took it
        from the header.
        """
        stated = [value for name, value in self.headers if name in ADDRESS_HEADERS]
        if not stated or not address or any(address in value for value in stated):
            return PROBE_CLIENT_ADDRESS
        return address

    def request_app(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> Future[Response | None]:
        """Call the app, as a server would, on a thread or the event loop on which it can run. See `start_own`.

        A scheme replaces that of this request.
        """
        raise NotImplementedError

    def plain(self) -> dict[str, Any]:
        """What `request_app` needs of this request, as a few plain values and nothing of the visitor, by field."""
        raise NotImplementedError

    def detached(self) -> Request:
        """A copy to use after this request has ended. Call it before the end."""
        headers = [field for field in self.headers if field[0] in PROXY_HEADERS]
        return replace(self, headers=headers, signed_in=None, async_collector=None, **self.plain())


@dataclass(frozen=True, slots=True)
class Response:
    """A response, ready to be sent by either adapter."""

    status: int
    headers: Headers
    body: bytes = b""


_BODY_HEADERS: Final = frozenset(
    {"content-length", "content-encoding", "etag", "content-md5", "digest", "content-digest", "repr-digest"}
)
COMMON_HEADERS: Final = (NOINDEX_HEADER, ("X-Content-Type-Options", "nosniff"))
"""Headers of all responses of the middleware itself but robots.txt."""


def error_response(method: str, status: int, reason: str, fields: Sequence[tuple[str, str]] = ()) -> Response:
    """One line of plain text that says why there is no document."""
    return text_response(method, status, f"{reason}\n", [("Cache-Control", "no-store"), *COMMON_HEADERS, *fields])


def text_response(method: str, status: int, content: str, fields: Sequence[tuple[str, str]]) -> Response:
    """Plain text."""
    body = content.encode()
    fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *fields]
    return Response(status, fields, b"" if method == "HEAD" else body)


def with_body(method: str, answer: Response, body: bytes) -> Response:
    """The app's response with another body, and without the headers that describe the old one."""
    headers = [(name, value) for name, value in answer.headers if name not in _BODY_HEADERS]
    return Response(answer.status, [*headers, ("content-length", str(len(body)))], b"" if method == "HEAD" else body)


_ENDLESS_TYPES: Final = ("text/event-stream", "multipart/x-mixed-replace", "application/x-ndjson", "application/jsonl")


def is_endless(media_type: str) -> bool:
    """Whether responses of this media type have no end, so that only their headers are worth waiting for."""
    return media_type.startswith(_ENDLESS_TYPES)


def truncated_response(response: Response, *, too_long: bool) -> Response | None:
    """What counts of a response whose body was not read to its end; None if nothing does.

    The beginning of one that is too long is enough. Of others that are no text the status and the headers count.
    """
    if too_long:
        return response
    media_type = dict(response.headers).get("content-type", "").lower()
    is_text = not media_type or "text/" in media_type or "xml" in media_type
    if response.status == 0 or (is_text and not is_endless(media_type)):
        return None
    return Response(response.status, response.headers)


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
    seconds: float = 0.0
    """How long it took, if the middleware itself sent the request."""
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
