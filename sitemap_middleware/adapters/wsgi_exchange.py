"""Reads WSGI environs, and observes the response to a request as it passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..http.messages import SYNC_SERVER_WAIT_SECONDS, TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY, Request
from ..http.request_filter import ignore_reason_of_environ
from ..observe.passing_response import PassingResponse
from ..observe.tracker import RequestKey, TrackedPage
from ..service import SitemapService
from .wsgi_client import WSGIClient

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_LOCAL_ADDRESSES: Final = frozenset({None, "127.0.0.1"})
"""The client addresses of Werkzeug's and Flask's test clients."""

_ABSENT: Final[Any] = object()
"""Stands for an argument of `start_response` that was not passed by position."""

_MAX_HANGING_REQUESTS: Final = 8
"""Threads on which our requests to the app may hang."""


class WSGIAdapter(Protocol):
    """What an exchange needs of the middleware."""

    app: WSGIApplication
    service: SitemapService


class WSGIExchange:
    """A request for a page, and the response to it as it passes.

    The key and a copy of the environ are taken before the app has the environ, because
    apps and routers change it.
    """

    __slots__ = ("adapter", "environ", "key", "original", "page", "passing", "reads_body", "server_start_response")

    def __init__(
        self, adapter: WSGIAdapter, environ: WSGIEnvironment, key: RequestKey, start_response: StartResponse
    ) -> None:
        self.adapter: WSGIAdapter = adapter
        self.environ: WSGIEnvironment = environ
        self.key: RequestKey = key
        self.original: WSGIEnvironment = environ.copy()
        self.server_start_response: StartResponse = start_response
        self.page: TrackedPage | None = None
        """The page that the request is for, if the response is observed."""
        self.passing: PassingResponse | None = None
        """The response, from its start to its end, if it is recorded."""
        self.reads_body: bool = True
        """False once the app has called `start_response`, and nothing of the body is sampled."""

    def request(self) -> Request:
        """The request as the service sees it. Read it after the app as well: the app may have signed the visitor in."""
        path, host, scheme, root, method, query = self.key
        environ = self.original
        headers = [
            (key[5:].replace("_", "-").lower(), value)
            for key, value in environ.items()
            if key.startswith("HTTP_") and isinstance(value, str)
        ]
        request = Request(
            method,
            scheme,
            host,
            _decoded_text(root),
            _decoded_text(path),
            query,
            headers,
            WSGIClient(self.adapter, environ),
            _MAX_HANGING_REQUESTS,
            ignore_reason_of_environ(self.environ, environ),
        )
        if not environ.get("wsgi.multithread", True) or WAIT_SECONDS_KEY in environ:
            default = TEST_CLIENT_WAIT_SECONDS if _is_test_client(environ, request) else SYNC_SERVER_WAIT_SECONDS
            request.wait_seconds = environ.get(WAIT_SECONDS_KEY, default)
            request.runs_probes_inline = True
        return request

    def is_useless(self) -> bool:
        """Whether the request is no evidence, nor for a document, at first sight."""
        path = _decoded_text(self.key[0])
        return self.adapter.service.ignores(path, has_cookie=bool(self.original.get("HTTP_COOKIE")))

    def start_response(self, status: Any = _ABSENT, headers: Any = _ABSENT, /, *more: Any, **named: Any) -> Any:
        """The `start_response` that the app is given: observe the start, then call the server's.

        It takes whatever the server's takes, by position or by name, and refuses nothing.
        A second call replaces the first one, whatever its exc_info is.
        """
        start: Any = self.server_start_response
        positional = tuple(argument for argument in (status, headers, *more) if argument is not _ABSENT)
        try:
            if self.passing is not None:
                self.passing.retract()
                self.passing = None
            if self.page is not None:
                self.passing = self.page.started(*_start_arguments(positional, named), self)
        except Exception as error:
            self.adapter.service.log_fault("a response could not be observed", error)
        self.reads_body = self.passing is not None
        try:
            write = start(*positional, **named)
        except BaseException:  # the server refuses the response, or raises the exc_info it was given
            self.retract()
            raise
        return self._observed_write(write) if self.reads_body else write

    def _observed_write(self, write: Any) -> Any:
        def observed_write(*chunks: Any, **named: Any) -> Any:
            for chunk in (*chunks, *named.values()):
                self.on_chunk(chunk)
            return write(*chunks, **named)

        return observed_write

    # The events of the body, which may begin before the app calls `start_response`.

    def on_chunk(self, chunk: Any) -> None:
        self._observe(PassingResponse.on_chunk, chunk)

    def on_end(self) -> None:
        self._observe(PassingResponse.on_end)

    def on_skipped_body(self) -> None:
        self._observe(PassingResponse.on_skipped_body)

    def retract(self) -> None:
        """Discard what was recorded of a response that fails before its end."""
        self._observe(PassingResponse.retract)

    def _observe(self, event: Callable[..., None], *arguments: Any) -> None:
        if self.passing is not None:
            try:
                event(self.passing, *arguments)
            except Exception as error:
                self.adapter.service.log_fault("a response could not be observed", error)


def key_of(environ: WSGIEnvironment) -> RequestKey:
    """What distinguishes a request from those for other pages, each part as WSGI gives it."""
    get = environ.get
    return (
        get("PATH_INFO", ""),
        get("HTTP_HOST", ""),
        get("wsgi.url_scheme", "http"),
        get("SCRIPT_NAME", ""),
        get("REQUEST_METHOD", ""),
        get("QUERY_STRING", ""),
    )


def _is_test_client(environ: Mapping[str, Any], request: Request) -> bool:
    """Whether a framework's test client made the request, within this process.

    Its User-Agent alone proves nothing, since anybody can send it. But servers set
    SERVER_SOFTWARE, or give the body as another kind of stream, or name a remote client.
    """
    return "paste.testing" in environ or (
        environ.get("HTTP_USER_AGENT", "").lower().startswith("werkzeug/")  # lower case before Werkzeug 2.3
        and "SERVER_SOFTWARE" not in environ
        and isinstance(environ.get("wsgi.input"), BytesIO)
        and environ.get("REMOTE_ADDR") in _LOCAL_ADDRESSES
        and not request.is_forwarded
    )


def _decoded_text(text: str) -> str:
    """Decode a string of an environ, which holds bytes as Latin-1."""
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")


def _start_arguments(positional: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
    """The status and headers that `start_response` was called with; None for what is missing."""
    status = positional[0] if positional else named.get("status")
    return status, positional[1] if len(positional) > 1 else named.get("headers", named.get("response_headers"))
