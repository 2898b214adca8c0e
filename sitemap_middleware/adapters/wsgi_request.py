"""A request to a WSGI app, as the service sees it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import Context
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..models import RoutingHeaders
from ..proxy_header_names import is_proxy_header
from ..request_filter.header_rules import HOST_HEADERS
from ..request_filter.reasons import COOKIE, IgnoreReason
from ..request_filter.wsgi import ignore_reason_of_environ
from ..request_response import (
    KEY_HOST,
    KEY_METHOD,
    KEY_PATH,
    KEY_ROOT,
    SYNC_SERVER_WAIT_SECONDS,
    TEST_CLIENT_WAIT_SECONDS,
    WAIT_SECONDS_KEY,
    Conditions,
    ProbeRequest,
    RequestKey,
    Response,
)
from ..service import SitemapService
from .base_request import BaseRequest
from .in_process_wsgi_client import lasting_environ, probe_environ, resolve_response
from .probe_headers_without_visitor import forwarded_hosts

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log: logging.Logger = logging.getLogger("sitemap_middleware")

_HOST_NAMES: Final = {f"HTTP_{name.upper().replace('-', '_')}": name for name in HOST_HEADERS}

_LOCAL_ADDRESSES: Final = frozenset({None, "127.0.0.1"})
"""The client addresses of Werkzeug's and Flask's test clients."""

_ABSENT: Final[Any] = object()
"""Stands for an argument of `start_response` that was not passed by position."""

_MAX_HANGING_REQUESTS: Final = 8
"""Threads on which our requests to the app may hang."""


class WSGIAdapter(Protocol):
    """What a request needs of the middleware."""

    app: WSGIApplication
    service: SitemapService


class WSGIRequest(BaseRequest):
    """A request, and the response to it as it passes.

    The key and a copy of the environ are taken before the app has the environ, because
    apps and routers change it.
    """

    __slots__ = ("adapter", "environ", "fields", "passes_body", "server_start_response")

    adapter: WSGIAdapter
    environ: WSGIEnvironment
    fields: WSGIEnvironment
    """A copy of the environ as the request came. Python copies a dict in less time than its keys alone."""
    server_start_response: StartResponse
    passes_body: bool
    """Whether the app has called `start_response`, and nothing of the body is sampled."""

    def start_response(self, status: Any = _ABSENT, headers: Any = _ABSENT, /, *more: Any, **named: Any) -> Any:
        """The `start_response` that the app is given: observe the start, then call the server's.

        It takes whatever the server's takes, by position or by name, and refuses nothing.
        A second call replaces the first one, whatever its exc_info is.
        """
        start = self.server_start_response  # Python calls a local variable faster than an attribute that is no method
        if more or named or headers is _ABSENT:
            positional = tuple(argument for argument in (status, headers, *more) if argument is not _ABSENT)
            status, headers = _start_arguments(positional, named)
            start = _start_with(start, positional, named)
        try:
            observer = self.tracked_page.on_response_start(status, headers, self, self.observer)
        except Exception as error:
            observer = None
            self.adapter.service.log_fault("a response could not be observed", error)
        self.observer = observer
        try:
            if observer is None or observer.chunks is None:
                self.passes_body = True
                return start(status, headers)
            self.passes_body = False
            return self._observed_write(start(status, headers))
        except BaseException:  # the server refuses the response, or raises the exc_info it was given
            self.retract()
            raise

    def _observed_write(self, write: Any) -> Any:
        def observed_write(*chunks: Any, **named: Any) -> Any:
            for chunk in (*chunks, *named.values()):
                self.on_chunk(chunk)
            return write(*chunks, **named)

        return observed_write

    def on_chunk(self, chunk: Any) -> None:
        if self.observer is not None:
            self.observer.on_chunk(chunk)

    def on_end(self) -> None:
        if self.observer is not None:
            self.observer.on_end()

    def on_skipped_body(self) -> None:
        if self.observer is not None:
            self.observer.on_skipped_body()

    def ignore_reason(self) -> IgnoreReason | None:
        environ = self.environ
        if environ.get("HTTP_COOKIE"):
            return COOKIE
        self.routing_headers = ()
        return ignore_reason_of_environ(environ, self.fields, self)

    def ignore_reason_of_routing(self, items: tuple[tuple[str, Any], ...]) -> IgnoreReason | None:
        self.routing_headers: RoutingHeaders = items
        for key, _ in items:
            if key in _HOST_NAMES:
                break
        else:
            return None
        headers = [(_HOST_NAMES[key], value) for key, value in items if key in _HOST_NAMES and isinstance(value, str)]
        return self.adapter.service.ignore_reason_of_hosts(self, forwarded_hosts(headers))

    def decoded_headers(self) -> list[tuple[str, str]]:
        """The request's headers, by lower-case name."""
        return [
            (key[5:].replace("_", "-").lower(), value)
            for key, value in self.environ.items()
            if key.startswith("HTTP_") and isinstance(value, str)
        ]

    @property
    def root(self) -> str:
        return _decoded_text(self.key[KEY_ROOT])

    @property
    def path(self) -> str:
        return _decoded_text(self.key[KEY_PATH])

    @property
    def host(self) -> str:
        host: str = self.key[KEY_HOST]
        return host

    @property
    def is_forwarded(self) -> bool:
        return any(is_proxy_header(key[5:].replace("_", "-")) for key in self.environ if key.startswith("HTTP_"))

    @property
    def has_dynamic_root(self) -> bool:
        return False

    @property
    def conditions(self) -> Conditions:
        get = self.environ.get
        return (
            self.key[KEY_METHOD],
            get("HTTP_ACCEPT_ENCODING"),
            get("HTTP_IF_NONE_MATCH"),
            get("HTTP_IF_MODIFIED_SINCE"),
        )

    def start_probe(self, probe: ProbeRequest) -> Future[Response | None]:
        future: Future[Response | None] = Future()
        request = partial(
            resolve_response,
            self.adapter.app,
            probe_environ(probe, self, self.environ, self.decoded_headers(), self.adapter.service.app_routes.root_path),
            future,
            allow_truncated=probe.allow_truncated,
        )
        run_in_context = Context().run  # without the live request's context variables, such as its user
        if self.runs_probes_inline:
            run_in_context(request)
        else:
            threading.Thread(target=run_in_context, args=(request,), name="sitemap-request", daemon=True).start()
        return future

    @property
    def wait_seconds(self) -> float | None:
        environ = self.environ
        if environ.get("wsgi.multithread", True) and WAIT_SECONDS_KEY not in environ:
            return None
        seconds: float = environ.get(
            WAIT_SECONDS_KEY, TEST_CLIENT_WAIT_SECONDS if self._is_test_client() else SYNC_SERVER_WAIT_SECONDS
        )
        return seconds

    def _is_test_client(self) -> bool:
        """Whether a framework's test client made the request, within this process.

        Its User-Agent alone proves nothing, since anybody can send it. But servers set
        SERVER_SOFTWARE, or give the body as another kind of stream, or name a remote client.
        """
        environ = self.environ
        return "paste.testing" in environ or (
            environ.get("HTTP_USER_AGENT", "").lower().startswith("werkzeug/")  # lower case before Werkzeug 2.3
            and "SERVER_SOFTWARE" not in environ
            and isinstance(environ.get("wsgi.input"), BytesIO)
            and environ.get("REMOTE_ADDR") in _LOCAL_ADDRESSES
            and not self.is_forwarded
        )

    @property
    def runs_probes_inline(self) -> bool:
        return self.wait_seconds is not None

    @property
    def max_hanging_requests(self) -> int:
        return _MAX_HANGING_REQUESTS

    def detached(self) -> WSGIRequest:
        request = WSGIRequest()
        request.adapter, request.key, request.observer, request.passes_body = self.adapter, self.key, None, False
        request.environ = request.fields = lasting_environ(self.environ)
        return request

    def run_in_background(self, job: Callable[[], None]) -> None:
        threading.Thread(target=Context().run, args=(_run_logged, job), name="sitemap-background", daemon=True).start()

    @property
    def async_collector(self) -> None:
        return None


def request_of(environ: WSGIEnvironment, adapter: WSGIAdapter) -> WSGIRequest:
    """Make the request of an environ that may leave out optional items."""
    return request_of_environ(environ, key_with_defaults(environ), adapter)


def request_of_environ(environ: WSGIEnvironment, key: RequestKey, adapter: WSGIAdapter) -> WSGIRequest:
    """Make the request of an environ that the app has not seen yet."""
    request = WSGIRequest()
    request.adapter = adapter
    request.environ = environ
    request.key = key
    request.fields = environ.copy()
    request.observer = None
    request.passes_body = False
    return request


def _run_logged(job: Callable[[], None]) -> None:
    try:
        job()
    except Exception:
        log.exception("a background job of the sitemap failed")


def key_with_defaults(environ: WSGIEnvironment) -> RequestKey:
    """The key of a request whose environ leaves out optional items."""
    get = environ.get
    return (
        get("PATH_INFO", ""),
        get("HTTP_HOST", ""),
        get("wsgi.url_scheme"),
        get("SCRIPT_NAME", ""),
        get("REQUEST_METHOD"),
        get("QUERY_STRING"),
    )


def _decoded_text(text: str) -> str:
    """Decode a string of an environ, which holds bytes as Latin-1."""
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")


def _start_with(start: Any, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Return a `start_response` that passes these arguments on, whatever it is called with."""
    return lambda _, __: start(*positional, **named)


def _start_arguments(positional: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
    """The status and headers that `start_response` was called with; None for what is missing."""
    status = positional[0] if positional else named.get("status")
    return status, positional[1] if len(positional) > 1 else named.get("headers", named.get("response_headers"))
