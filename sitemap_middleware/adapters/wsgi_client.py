"""Requests a path from the WSGI app within the process, as a server would."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ..http.messages import (
    MAX_PROBE_BYTES,
    PROBE_TIMEOUT_SECONDS,
    Request,
    Response,
    as_exception,
    is_endless,
    truncated_response,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

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


@dataclass(slots=True, eq=False, kw_only=True)
class WSGIRequest(Request):
    """A request over WSGI, whose own requests run on a thread each, or on its own."""

    app: WSGIApplication
    environ: WSGIEnvironment
    """That of this request. Only what is about its connection is used."""

    def request_app(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> Future[Response | None]:
        future: Future[Response | None] = Future()
        call = partial(resolve_response, self.app, self._own_environ(path, scheme, headers), future)
        run_in_context = Context().run  # without the live request's context variables, such as its user
        if self.runs_probes_inline:
            run_in_context(call)
        else:
            threading.Thread(target=run_in_context, args=(call,), name="sitemap-request", daemon=True).start()
        return future

    def plain(self) -> dict[str, Any]:
        keys = (*_CONNECTION_KEYS, "REMOTE_ADDR")
        plain = {key: self.environ[key] for key in keys if isinstance(self.environ.get(key), str | int | float | tuple)}
        return {"environ": plain | {"wsgi.errors": sys.stderr}}

    def _own_environ(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> WSGIEnvironment:
        """The environ of a request of the middleware itself. It holds nothing of the visitor's."""
        environ: WSGIEnvironment = {key: self.environ[key] for key in _CONNECTION_KEYS if key in self.environ}
        environ |= {"REQUEST_METHOD": "GET", "QUERY_STRING": "", "wsgi.input": BytesIO()}
        environ |= {"PATH_INFO": wsgi_text(path), "SCRIPT_NAME": wsgi_text(self.root)}
        environ["REMOTE_ADDR"] = self.own_address(self.environ.get("REMOTE_ADDR"))
        if scheme is not None:
            environ.pop("HTTPS", None)
            environ["wsgi.url_scheme"] = scheme
        return environ | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers}


def wsgi_text(text: str) -> str:
    """Text as WSGI gives it: its bytes as Latin-1."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def resolve_response(app: WSGIApplication, environ: WSGIEnvironment, future: Future[Response | None]) -> None:
    """Call the app, and set the result or the exception of the future."""
    try:
        future.set_result(_request_app(app, environ))
    except BaseException as error:  # raised where the result is waited for
        future.set_exception(as_exception(error))
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # the server is being stopped


def _request_app(app: WSGIApplication, environ: WSGIEnvironment) -> Response | None:
    """The app's response. If its body is endless, too long or too slow, see `truncated_response`."""
    started: list[tuple[str, list[tuple[str, str]]]] = []
    parts: list[bytes] = []
    size = 0

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:  # noqa: ARG001 # apps pass it by name
        started.append((status, headers))
        return parts.append

    chunks = app(environ, start_response)
    deadline = time.monotonic() + PROBE_TIMEOUT_SECONDS  # from here on: a view cannot be stopped, and is heard late
    try:
        # The first, empty part has the headers checked before the first chunk, for which a stream may wait for ever.
        for chunk in chain((b"",), chunks):
            parts.append(chunk)
            size += len(chunk)
            if started and is_endless(dict(_response(*started[-1]).headers).get("content-type", "").lower()):
                return _response(*started[-1])
            if size > MAX_PROBE_BYTES or time.monotonic() > deadline:
                return truncated_response(_response(*started[-1], b"".join(parts)), too_long=size > MAX_PROBE_BYTES)
        return _response(*started[-1], b"".join(parts))
    finally:
        if close := getattr(chunks, "close", None):
            with contextlib.suppress(Exception):  # the response has been sent by then
                close()


def _response(status: str, headers: list[tuple[str, str]], body: bytes = b"") -> Response:
    """Make a `Response` of the app's status line and headers."""
    return Response(int(status[:3]), [(name.lower(), value) for name, value in headers], body)
