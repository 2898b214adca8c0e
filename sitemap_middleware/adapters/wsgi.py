"""WSGI (PEP 3333): translates, and decides nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import cache
from http import HTTPStatus
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ..http import (
    CONDITIONAL_HEADERS,
    MAX_PROBE_BYTES,
    PROBE_TIMEOUT_SECONDS,
    SYNC_SERVER_WAIT_SECONDS,
    TEST_CLIENT_WAIT_SECONDS,
    WAIT_SECONDS_KEY,
    RequestKey,
    Response,
)
from ..observation.observer import Observer
from ..request_filter import COOKIE, HOST_HEADERS, IgnoreReason, ignore_reason_of_environ, visitor_fingerprint
from ..service import SitemapService
from ..sitemap_handler import DOCUMENT_SUFFIXES
from .base_request import BaseRequest, as_exception, is_endless, is_proxy_header, truncated_response, wsgi_response
from .internal_headers import (
    Connection,
    call_without_context,
    forwarded_hosts,
    internal_client_address,
    internal_headers,
)
from .wsgi_body import observed_body

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_CONDITIONAL_HEADERS: Final = tuple((f"HTTP_{name.upper().replace('-', '_')}", name) for name in CONDITIONAL_HEADERS)
_HOST_KEYS: Final = tuple((f"HTTP_{name.upper().replace('-', '_')}", name) for name in sorted(HOST_HEADERS))
"""The headers that may name another host than Host does."""

_CONNECTION_KEYS: Final = (
    "HTTPS",
    "REMOTE_PORT",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
    "wsgi.errors",
    "wsgi.file_wrapper",
    "wsgi.input_terminated",
    "wsgi.multiprocess",
    "wsgi.multithread",
    "wsgi.run_once",
    "wsgi.url_scheme",
    "wsgi.version",
)
"""The keys of an environ that are about the connection rather than the one request."""

_LOCAL_ADDRESSES: Final = frozenset({None, "127.0.0.1"})
"""The addresses that Werkzeug's test client and Flask's say to come from."""

_ABSENT: Final[Any] = object()
"""Stands for what a call of `start_response` does not give by position."""

_MAX_HANGING_REQUESTS: Final = 8
"""Threads of ours on which the app may hang."""


class WSGIRequest(BaseRequest):
    """An environ, as the core reads requests.

    What tells the page, and who asks, is taken before the app has the environ, for
    apps and routers change it.
    """

    __slots__ = (
        "_accept",
        "_environ",
        "_header_keys",
        "adapter",
        "observer",
        "server_start_response",
        "started",
        "tracked_page",
    )

    _environ: WSGIEnvironment
    _accept: str
    _header_keys: list[Any] | None
    """The keys of the environ when the request came; None if no app has had it yet."""
    adapter: WSGIMiddleware
    server_start_response: StartResponse
    """The server's own `start_response`."""
    tracked_page: Any
    """Known; None where there is an observer from the beginning."""
    observer: Observer | None

    started: bool
    """Whether the app has called `start_response`."""

    def start_response(self, status: Any = _ABSENT, headers: Any = _ABSENT, /, *more: Any, **named: Any) -> Any:
        """The app's `start_response`: the server's own, but for a look at what is said.

        It takes whatever the server's takes, by position or by name, and refuses nothing.
        Only a second call matters: then the first start counts for nothing, whatever
        exc_info is.
        """
        given = None
        if more or named or headers is _ABSENT:
            given = tuple(one for one in (status, headers, *more) if one is not _ABSENT)
            status, headers = _start_arguments(given, named)
        observer = self.observer
        try:
            if observer is None:
                self.observer = observer = self.tracked_page.on_response_start(status, headers, self)
            else:
                if self.started:
                    self.observer = observer = observer.restart()
                observer.on_start(status, headers, visit=self)
        except Exception as error:
            self.adapter.service.tracker.failed("a response could not be observed", error)
        self.started = True
        try:
            write = (
                self.server_start_response(status, headers)
                if given is None
                else self.server_start_response(*given, **named)
            )
        except BaseException:  # it refuses the response, or raises the error it was given
            self.retract()
            raise
        return write if observer is None or observer._chunks is None else self._observed_write(write)

    def _observed_write(self, write: Any) -> Any:
        def watched(*given: Any, **named: Any) -> Any:
            for chunk in (*given, *named.values()):
                self.on_chunk(chunk)
            return write(*given, **named)

        return watched

    def on_chunk(self, chunk: Any) -> None:
        """A part of the body passes."""
        if self.observer is not None:
            self.observer.on_chunk(chunk)

    def on_end(self) -> None:
        """The body has passed as a whole."""
        if self.observer is not None:
            self.observer.on_end()

    def on_skipped_body(self) -> None:
        """What has passed of the body is not all of it."""
        if self.observer is not None:
            self.observer.on_skipped_body()

    def retract(self) -> None:
        """The response fails before its end: what it said so far counts for nothing."""
        if self.observer is not None:
            self.observer.retract()

    def ignore_reason(self) -> IgnoreReason | None:
        environ = self._environ
        if environ.get("HTTP_COOKIE"):
            return COOKIE
        return ignore_reason_of_environ(environ, self._header_keys, self._accept, self._refusal_of_hosts)

    def _refusal_of_hosts(self) -> IgnoreReason | None:
        environ = self._environ
        named = [(name, value) for key, name in _HOST_KEYS if isinstance(value := environ.get(key), str)]
        return self.adapter.service.ignore_reason_of_hosts(self, forwarded_hosts(named))

    def _headers(self) -> list[tuple[str, str]]:
        """The request's headers, by lower-case name."""
        return [
            (key[5:].replace("_", "-").lower(), value)
            for key, value in self._environ.items()
            if key.startswith("HTTP_") and isinstance(value, str)
        ]

    def visitor(self, status: int) -> int:
        environ = self._environ
        return visitor_fingerprint(status, environ.get("HTTP_USER_AGENT", ""), environ.get("HTTP_ACCEPT_LANGUAGE", ""))

    def observe(self) -> Observer | None:
        return self.adapter.service.observe(self, self.key)

    @property
    def root(self) -> str:
        return _decoded_text(self.key[3])

    @property
    def path(self) -> str:
        return _decoded_text(self.key[0])

    @property
    def host(self) -> str:
        host: str = self.key[1]
        return host

    @property
    def is_forwarded(self) -> bool:
        return any(is_proxy_header(key[5:].replace("_", "-")) for key in self._environ if key.startswith("HTTP_"))

    @property
    def has_dynamic_root(self) -> bool:
        return False

    @property
    def conditional_headers(self) -> Mapping[str, str]:
        environ = self._environ
        return {name: environ[key] for key, name in _CONDITIONAL_HEADERS if key in environ}

    def start_fetch(
        self,
        path: str,
        *,
        scheme: str | None = None,
        host: str | None = None,
        keep_host: bool = False,
        cut: bool = False,
    ) -> Future[Response | None]:
        answer: Future[Response | None] = Future()
        given = (
            self.adapter.app,
            self._internal_environ(path, scheme, host or self.host, keep_host=keep_host),
            answer,
            cut,
        )
        if self.runs_probes_inline:
            call_without_context(_resolve_response, *given)
        else:
            threading.Thread(
                target=call_without_context, args=(_resolve_response, *given), name="sitemap-request", daemon=True
            ).start()
        return answer

    def _internal_environ(self, path: str, scheme: str | None, host: str, *, keep_host: bool) -> WSGIEnvironment:
        """The environ of a request of our own: nothing in it is the visitor's."""
        live = self._headers()
        environ: WSGIEnvironment = {key: self._environ[key] for key in _CONNECTION_KEYS if key in self._environ}
        environ |= {"REQUEST_METHOD": "GET", "QUERY_STRING": "", "wsgi.input": BytesIO()}
        environ |= {"PATH_INFO": path.encode().decode("latin-1"), "SCRIPT_NAME": self.key[3]}
        environ["REMOTE_ADDR"] = internal_client_address(live, self._environ.get("REMOTE_ADDR"))
        if scheme is not None:
            environ.pop("HTTPS", None)
            environ["wsgi.url_scheme"] = scheme
        connection = Connection(self.scheme, (self.root, self.adapter.service.urlmap.root_path))
        sent = internal_headers(
            live, connection, host=self.host if keep_host else host, public_host=host, scheme=scheme
        )
        return environ | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent}

    @property
    def wait_seconds(self) -> float | None:
        environ = self._environ
        if environ.get("wsgi.multithread", True) and WAIT_SECONDS_KEY not in environ:
            return None
        patience: float = environ.get(
            WAIT_SECONDS_KEY, TEST_CLIENT_WAIT_SECONDS if self._is_test_client() else SYNC_SERVER_WAIT_SECONDS
        )
        return patience

    def _is_test_client(self) -> bool:
        """Whether a framework's test client made the request, within this process.

        Anybody can send its User-Agent. A server names itself, gives the body as a stream of its own, or tells of
        a client elsewhere.
        """
        environ = self._environ
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
        return self

    def run_in_background(self, job: Callable[[], None]) -> None:
        threading.Thread(target=job, name="sitemap-behind", daemon=True).start()

    @property
    def async_collector(self) -> None:
        return None


def request_of(environ: WSGIEnvironment, adapter: WSGIMiddleware) -> WSGIRequest:
    """The request of an environ that no app has seen yet."""
    request = WSGIRequest()  # an `__init__` would take longer than this
    request.adapter = adapter
    request._environ = environ
    request._header_keys = None
    request._accept = environ.get("HTTP_ACCEPT", "")
    request.started = False
    try:
        request.key = (
            environ["PATH_INFO"],
            environ["HTTP_HOST"],
            environ["wsgi.url_scheme"],
            environ["SCRIPT_NAME"],
            environ["REQUEST_METHOD"],
            environ["QUERY_STRING"],
        )
    except KeyError:
        request.key = _request_key(environ)
    return request


def _request_key(environ: WSGIEnvironment) -> RequestKey:
    get = environ.get
    return (
        get("PATH_INFO", ""),
        get("HTTP_HOST", ""),
        get("wsgi.url_scheme"),
        get("SCRIPT_NAME", ""),
        get("REQUEST_METHOD"),
        get("QUERY_STRING"),
    )


def _resolve_response(
    app: WSGIApplication, environ: WSGIEnvironment, answer: Future[Response | None], cut: bool
) -> None:
    try:
        answer.set_result(_request_app(app, environ, cut=cut))
    except BaseException as error:  # it is raised where the answer is waited for
        answer.set_exception(as_exception(error))
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # somebody stops the server


def _request_app(app: WSGIApplication, environ: WSGIEnvironment, *, cut: bool) -> Response | None:
    """What the app answers; of a body that has no end, or takes too long, what `truncated_response` says."""
    deadline = time.monotonic() + PROBE_TIMEOUT_SECONDS
    started: list[tuple[str, list[tuple[str, str]]]] = []
    parts: list[bytes] = []
    size = 0

    def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> Callable[[bytes], None]:
        started.append((status, headers))
        return parts.append

    chunks = app(environ, start_response)
    try:
        for chunk in chain((b"",), chunks):  # a stream may wait for ever before its first chunk, so look before that
            parts.append(chunk)
            size += len(chunk)
            if started and is_endless(dict(wsgi_response(*started[-1]).headers).get("content-type", "").lower()):
                return wsgi_response(*started[-1])
            if size > MAX_PROBE_BYTES or time.monotonic() > deadline:
                return truncated_response(
                    wsgi_response(*started[-1], b"".join(parts)), too_long=size > MAX_PROBE_BYTES, cut=cut
                )
        return wsgi_response(*started[-1], b"".join(parts))
    finally:
        if close := getattr(chunks, "close", None):
            close()


@cache
def _status_code(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


def _decoded_text(raw: str) -> str:
    """A string of an environ, which holds bytes as Latin-1, as the text that those bytes are."""
    return raw if raw.isascii() else raw.encode("latin-1", "replace").decode("utf-8", "replace")


class WSGIMiddleware:
    """The middleware as a WSGI application."""

    app: WSGIApplication
    service: SitemapService
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = response = None
        try:
            request = request_of(environ, self)
            request.tracked_page = page = self.service.tracker.tracked_pages.get(request.key)
            request.observer = None
            if page is None:
                response = self._respond_or_observe(request)
                if request.observer is None:
                    request = None
            else:
                request._header_keys = list(environ)
        except Exception as error:
            request = None
            self.service.tracker.failed("a request could not be looked at", error)
        if request is None:
            if response is None:
                return self.app(environ, start_response)
            start_response(_status_code(response.status), list(response.headers))
            return [response.body] if response.parts is None else response.parts
        request.server_start_response = start_response
        try:
            body = self.app(environ, request.start_response)
        except BaseException:
            request.retract()
            raise
        observer = request.observer
        if request.started and (observer is None or observer._chunks is None):
            return body
        try:
            body = observed_body(body, request, environ)
        except Exception as error:
            self.service.tracker.failed("a body could not be sampled", error)
        return body

    def _respond_or_observe(self, request: WSGIRequest) -> Response | None:
        """The response to a request for a document of ours; else the request has an observer if it can teach."""
        if self._original_attributes:
            self._unwind()
        core, question = self.service, request.key
        named, response = question[0].endswith(DOCUMENT_SUFFIXES), None
        if named:
            response = core.cached_response(request)
            if response is None and core.handles(request):
                response = core.handle(request)
        if response is None:
            request.observer = core.observe(request, () if named else question)
            request._header_keys = list(request._environ) if request.observer is not None else None
        return response


def _start_arguments(given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
    """Status and headers of a call of `start_response`, which may name them; None for what it lacks."""
    status = given[0] if given else named.get("status")
    return status, given[1] if len(given) > 1 else named.get("headers", named.get("response_headers"))
