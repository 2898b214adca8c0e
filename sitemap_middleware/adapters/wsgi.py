"""The middleware as a WSGI application (PEP 3333). It translates between WSGI and the service, and decides nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from functools import partial
from http import HTTPStatus
from io import BufferedReader, BytesIO, FileIO
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final

from ..http.messages import (
    MAX_HTML_BYTES,
    NOINDEX_HEADER,
    SYNC_SERVER_WAIT_SECONDS,
    TEST_CLIENT_WAIT_SECONDS,
    WAIT_SECONDS_KEY,
    Request,
    Response,
)
from ..http.request_filter import ignore_reason_of_environ
from ..observe.tracker import Exchange, guarded
from ..report.request_handler import ReportHandler
from ..service import SitemapService
from .wsgi_client import WSGIRequest

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

MAX_HANGING_REQUESTS: Final = 8
"""Threads on which our requests to the app may hang."""

_LOCAL_ADDRESSES: Final = frozenset({None, "127.0.0.1"})
"""The client addresses of Werkzeug's and Flask's test clients."""


class WSGIMiddleware:
    """The middleware as a WSGI application."""

    app: WSGIApplication
    service: SitemapService
    report: ReportHandler
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        app, exchange = self.app, None
        try:
            if self._original_attributes:
                self._unwind()
            app = self.app
            if self.service.options.enabled:
                if self.service.sends_noindex(environ.get("SCRIPT_NAME", "")):
                    start_response = partial(_start_with_noindex, start_response)
                exchange = WSGIExchange(self, environ, start_response)
                app = self._app_for(exchange)
        except Exception as error:
            app, exchange = self.app, None
            self.service.log_fault("a request could not be looked at", error)
        if exchange is None or exchange.page is None:
            return app(environ, start_response)
        try:
            body = app(environ, exchange.start_response)
        except BaseException as error:
            exchange.on_error(error)
            raise
        if exchange.reads_body:
            try:
                body = observed_body(body, exchange, environ.get("wsgi.file_wrapper"))
            except Exception as error:
                self.service.log_fault("a body could not be sampled", error)
        return body

    def _app_for(self, exchange: WSGIExchange) -> WSGIApplication:
        """The application that answers a request. Its page is set if the response is to be observed."""
        service = self.service
        exchange.page = service.tracker.pages.get(exchange.key)
        if exchange.page is not None or exchange.is_useless():
            return self.app
        request = exchange.request()
        response = self.own_response(request, exchange.environ)
        if response is not None:
            return partial(send_response, response)
        if service.sitemap_handler.amends(request):
            return partial(self._amended, request)
        exchange.page = service.observe(request, exchange.key)
        return self.app

    def own_response(self, request: Request, environ: WSGIEnvironment) -> Response | None:
        """The response to a request for a document, robots.txt or the report; None if the app is to answer."""
        if self.service.options.is_report(request.path):
            return self.report.answer(request, environ)
        answer = self.service.sitemap_handler.answer(request)
        # an empty context: the document is for everyone, and its visitor's user or language must not decide it
        return Context().run(answer) if callable(answer) else answer

    def _amended(self, request: Request, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Send the app's response to the visitor's own request for robots.txt: as it is, with a line more, or replaced.

        With the first argument bound, this is a WSGI application.
        """
        started: list[tuple[str, list[tuple[str, str]]]] = []
        parts: list[bytes] = []

        def held_start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:  # noqa: ARG001 # apps pass it by name
            started[:] = [(status, headers)]
            return parts.append

        body: Any = self.app(environ, held_start)
        try:
            parts += body
        finally:
            if hasattr(body, "close"):
                body.close()
        response = None
        with suppress(LookupError, TypeError, ValueError, AttributeError):  # what is malformed, the server refuses
            status, headers = started[0]
            answer = Response(int(status[:3]), [(name.lower(), value) for name, value in headers], b"".join(parts))
            response = Context().run(self.service.sitemap_handler.amended, request, answer)
        if response is not None:
            return send_response(response, environ, start_response)
        for status, headers in started:  # if there is none, the server says what is wrong
            start_response(status, headers)
        return parts


def _start_with_noindex(start_response: Any, status: str, response_headers: Any, *more: Any, **named: Any) -> Any:
    headers = [*response_headers]
    return start_response(status, headers if NOINDEX_HEADER in headers else [*headers, NOINDEX_HEADER], *more, **named)


def send_response(response: Response, _: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Send a response of the middleware itself. With the first argument bound, this is a WSGI application."""
    start_response(f"{response.status} {HTTPStatus(response.status).phrase}", list(response.headers))
    return [response.body]


class WSGIExchange(Exchange):
    """A request and its response over WSGI.

    The key and a copy of the environ are taken before the app has the environ, because
    apps and routers change it.
    """

    __slots__ = ("adapter", "environ", "original", "server_start_response")

    def __init__(self, adapter: WSGIMiddleware, environ: WSGIEnvironment, start_response: StartResponse) -> None:
        get = environ.get
        self.adapter: WSGIMiddleware = adapter
        self.environ: WSGIEnvironment = environ
        self.original: WSGIEnvironment = environ.copy()
        self.server_start_response: Any = start_response
        key = (
            get("PATH_INFO", ""),
            get("HTTP_HOST", ""),
            get("wsgi.url_scheme", "http"),
            get("SCRIPT_NAME", ""),
            get("REQUEST_METHOD", ""),
            get("QUERY_STRING", ""),
        )
        super().__init__(adapter.service.tracker, key)

    def request(self) -> Request:
        path, host, scheme, root, method, query = self.key
        environ = self.original
        request = WSGIRequest(
            method,
            scheme,
            host,
            _decoded_text(root),
            _decoded_text(path),
            query,
            [
                (key[5:].replace("_", "-").lower(), value)
                for key, value in environ.items()
                if key.startswith("HTTP_") and isinstance(value, str)
            ],
            MAX_HANGING_REQUESTS,
            ignore_reason_of_environ(self.environ, environ),
            app=self.adapter.app,
            environ=environ,
        )
        if not environ.get("wsgi.multithread", True) or WAIT_SECONDS_KEY in environ:
            default = TEST_CLIENT_WAIT_SECONDS if _is_test_client(environ, request) else SYNC_SERVER_WAIT_SECONDS
            request.wait_seconds = environ.get(WAIT_SECONDS_KEY, default)
            request.runs_probes_inline = True
        return request

    def is_useless(self) -> bool:
        path = _decoded_text(self.key[0])
        return self.adapter.service.ignores(path, has_cookie=bool(self.original.get("HTTP_COOKIE")))

    def start_response(self, *arguments: Any, **named: Any) -> Any:
        """The `start_response` that the app is given: observe the start, then call the server's.

        It takes whatever the server's takes, by position or by name, and refuses nothing.
        A second call replaces the first one, whatever its exc_info is.
        """
        self._on_start(*arguments, **named)
        try:
            write = self.server_start_response(*arguments, **named)
        except BaseException:  # the server refuses the response, or raises the exc_info it was given
            self.retract()
            raise
        return self._observed_write(write) if self.reads_body else write

    @guarded
    def _on_start(
        self, status: Any = None, headers: Any = None, *_: Any, response_headers: Any = None, **__: Any
    ) -> None:
        self.on_start(status, response_headers if headers is None else headers)

    def _observed_write(self, write: Any) -> Any:
        def observed_write(*chunks: Any, **named: Any) -> Any:
            for chunk in (*chunks, *named.values()):
                self.on_chunk(chunk)
            return write(*chunks, **named)

        return observed_write


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


def observed_body(body: Any, exchange: Exchange, file_wrapper: Any) -> Any:
    """Wrap a body so that an exchange gets its events, or give it these here and return the same object.

    What a server may treat otherwise than by iterating is returned as it is: it uses the length of a list, and
    recognises a file by its type, to send it in a faster way. A file is read here without moving its position.
    """
    kind, is_file = type(body), _is_server_file(body, file_wrapper)
    if kind in (list, tuple):
        for chunk in body:
            exchange.on_chunk(chunk)
        exchange.on_end()
    elif is_file and (content := _beginning(body)) is not None:
        exchange.on_chunk(content)
        exchange.on_end()
    elif is_file or hasattr(kind, "__len__"):
        exchange.on_skipped_body()
    elif hasattr(kind, "__iter__"):
        return ObservedBody(body, exchange)
    return body


def _is_server_file(body: Any, file_wrapper: Any) -> bool:
    if isinstance(file_wrapper, type):
        return isinstance(body, file_wrapper)
    # uWSGI's wrapper is a function that returns the file itself, which uWSGI recognises by its identity.
    return file_wrapper is not None and any(hasattr(body, name) for name in ("read", "fileno", "filelike"))


def _beginning(body: Any) -> bytes | None:
    """The first bytes of a file that the server sends; None if they cannot be read without a trace."""
    with suppress(Exception):  # a wrapper or file may be of any kind
        files: tuple[Any, ...] = body, getattr(body, "filelike", None), getattr(body, "file", None)
        for file in files:  # of these types only, whose methods are not the app's
            if type(file) is BytesIO:
                return file.getvalue()[file.tell() :][: MAX_HTML_BYTES + 1]
            # reading what is no regular file would consume it
            if type(file) in (BufferedReader, FileIO) and S_ISREG(os.fstat(file.fileno()).st_mode):
                return os.pread(file.fileno(), MAX_HTML_BYTES + 1, file.tell())
    return None


class ObservedBody:
    """A body whose parts an exchange gets as they pass. All else is the app's own, as `close`."""

    def __init__(self, body: Any, exchange: Exchange) -> None:
        self._body = body
        self._chunks = body
        self._exchange = exchange

    def __iter__(self) -> Iterator[Any]:
        try:
            self._chunks = iter(self._body)
        except BaseException:
            self._exchange.retract()
            raise
        return self

    def __next__(self) -> Any:
        try:
            chunk = next(self._chunks)
        except StopIteration:
            self._exchange.on_end()
            raise
        except BaseException:
            self._exchange.retract()
            raise
        self._exchange.on_chunk(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)
