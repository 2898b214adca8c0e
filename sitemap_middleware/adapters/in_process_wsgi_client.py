"""Requests a path from the WSGI app within the process, as a server would."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ..proxy_header_names import PROXY_HEADERS
from ..request_response import (
    KEY_ROOT,
    MAX_PROBE_BYTES,
    PROBE_TIMEOUT_SECONDS,
    WAIT_SECONDS_KEY,
    ProbeRequest,
    Request,
    Response,
    as_exception,
)
from .probe_headers_without_visitor import headers_of_probe, probe_client_address
from .truncated_response import is_endless, truncated_response

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

_PROXY_KEYS: Final = frozenset(f"HTTP_{name.upper().replace('-', '_')}" for name in ("host", *PROXY_HEADERS))
_PLAIN_TYPES: Final = frozenset({str, int, bool, float, tuple})


def lasting_environ(environ: WSGIEnvironment) -> WSGIEnvironment:
    """The few plain values of an environ that later requests of the middleware itself need.

    Nothing that the server or the app put there stays alive with it, such as the body or the framework's request.
    """
    lasting: WSGIEnvironment = {
        key: value
        for key, value in environ.items()
        if type(value) in _PLAIN_TYPES
        and (key in _CONNECTION_KEYS or key in _PROXY_KEYS or key in ("REMOTE_ADDR", WAIT_SECONDS_KEY))
    }
    return lasting | {"wsgi.errors": sys.stderr}


def probe_environ(
    probe: ProbeRequest,
    request: Request,
    live_environ: WSGIEnvironment,
    live_headers: list[tuple[str, str]],
    app_root: str,
) -> WSGIEnvironment:
    """The environ of a request of the middleware itself. It holds nothing of the visitor's.

    Args:
        probe: what to request.
        request: the live request.
        live_environ: its environ.
        live_headers: its headers, with names in lower case.
        app_root: the root path that the app itself declares.
    """
    environ: WSGIEnvironment = {key: live_environ[key] for key in _CONNECTION_KEYS if key in live_environ}
    environ |= {"REQUEST_METHOD": "GET", "QUERY_STRING": "", "wsgi.input": BytesIO()}
    environ |= {"PATH_INFO": probe.path.encode().decode("latin-1"), "SCRIPT_NAME": request.key[KEY_ROOT]}
    environ["REMOTE_ADDR"] = probe_client_address(live_headers, live_environ.get("REMOTE_ADDR"))
    if probe.scheme is not None:
        environ.pop("HTTPS", None)
        environ["wsgi.url_scheme"] = probe.scheme
    headers = headers_of_probe(probe, request, live_headers, app_root)
    return environ | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers}


def resolve_response(
    app: WSGIApplication, environ: WSGIEnvironment, future: Future[Response | None], *, allow_truncated: bool
) -> None:
    """Call the app, and set the result or the exception of the future."""
    try:
        future.set_result(_request_app(app, environ, allow_truncated=allow_truncated))
    except BaseException as error:  # raised where the result is waited for
        future.set_exception(as_exception(error))
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # the server is being stopped


def _request_app(app: WSGIApplication, environ: WSGIEnvironment, *, allow_truncated: bool) -> Response | None:
    """The app's response. If its body is endless, too long or too slow, see `truncated_response`."""
    deadline = time.monotonic() + PROBE_TIMEOUT_SECONDS
    started: list[tuple[str, list[tuple[str, str]]]] = []
    parts: list[bytes] = []
    size = 0

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:  # noqa: ARG001 # apps pass it by name
        started.append((status, headers))
        return parts.append

    chunks = app(environ, start_response)
    try:
        # The first, empty part has the headers checked before the first chunk, for which a stream may wait for ever.
        for chunk in chain((b"",), chunks):
            parts.append(chunk)
            size += len(chunk)
            if started and is_endless(dict(_response(*started[-1]).headers).get("content-type", "").lower()):
                return _response(*started[-1])
            if size > MAX_PROBE_BYTES or time.monotonic() > deadline:
                return truncated_response(
                    _response(*started[-1], b"".join(parts)),
                    too_long=size > MAX_PROBE_BYTES,
                    allowed=allow_truncated,
                )
        return _response(*started[-1], b"".join(parts))
    finally:
        if close := getattr(chunks, "close", None):
            with contextlib.suppress(Exception):  # the response has been sent by then
                close()


def _response(status: str, headers: list[tuple[str, str]], body: bytes = b"") -> Response:
    """Make a `Response` of the app's status line and headers."""
    return Response(int(status[:3]), [(name.lower(), value) for name, value in headers], body)
