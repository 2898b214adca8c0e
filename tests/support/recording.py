"""Servers that record every call of an app, so that the records of two apps can be compared."""

from __future__ import annotations

import asyncio
import gc
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults

Record = list[Any]
"""The events in order: the calls of the server, and what the app reports of itself."""


def raised(error: BaseException) -> tuple[str, str]:
    return type(error).__name__, str(error)


@contextmanager
def unclosed() -> Iterator[Counter[str]]:
    """Count the objects an app leaves unclosed to the garbage collector, by their kind.

    Old versions of Starlette's BaseHTTPMiddleware leave a stream behind if the app fails before its response starts.
    """
    left: Counter[str] = Counter()
    gc.collect()  # what earlier tests left
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield left
        gc.collect()
    left.update(str(warning.message).partition(" at ")[0] for warning in caught if warning.category is ResourceWarning)


def environ(method: str = "GET", path: str = "/", **more: Any) -> dict[str, Any]:
    variables = {"REQUEST_METHOD": method, "PATH_INFO": path, "SCRIPT_NAME": "", "QUERY_STRING": "", **more}
    variables |= {"HTTP_HOST": "testserver", "wsgi.file_wrapper": FileWrapper, "wsgi.errors": io.StringIO()}
    setup_testing_defaults(variables)
    return variables


class Refused(Exception):
    """A call that PEP 3333 forbids."""


class WSGIServer:
    """A server as strict as PEP 3333 and wsgiref, for one request."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._started = False
        self._sent = False

    def start_response(self, *arguments: Any, **named: Any) -> Callable[..., Any]:
        write = None
        try:
            write = self._start(*arguments, **named)
        finally:  # record after reading everything, as a server does
            self.record.append(
                (
                    "start_response",
                    self._as_recorded(arguments),
                    {name: self._as_recorded([value]) for name, value in named.items()},
                )
            )
        return write

    @staticmethod
    def _as_recorded(arguments: Iterable[Any]) -> list[Any]:
        """Return the arguments with their types; for an exc_info, the error."""
        recorded: list[Any] = []
        for value in arguments:
            if isinstance(value, tuple) and len(value) == 3 and isinstance(value[1], BaseException):
                recorded.append(raised(value[1]))
            else:
                recorded.append((type(value).__name__, _with_type(value)))
        return recorded

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[..., Any]:
        if exc_info:
            if self._sent:
                raise exc_info[1]
        elif self._started:
            raise Refused("the response was started before")
        if not isinstance(status, str) or type(headers) is not list:
            raise Refused("status or headers are of the wrong type")
        self._started = True
        return self._write

    def _write(self, data: bytes) -> None:
        if not self._started:
            raise Refused("a chunk came before the start of the response")
        if not isinstance(data, bytes):
            raise Refused(f"{type(data).__name__} is not bytes")
        self._sent = self._sent or bool(data)
        self.record.append(("write", data))

    def run(self, app: Any, request: dict[str, Any], max_chunks: int = 100) -> None:
        """Send one request; the client disconnects after so many chunks."""
        record, body = self.record, None
        try:
            body = app(request, self.start_response)
            record.append(
                ("body", _body_kind(body, request["wsgi.file_wrapper"]), _length(body), hasattr(body, "close"))
            )
            for number, chunk in enumerate(body):
                record.append("chunk")
                self._write(chunk)
                if number + 1 == max_chunks:
                    break
            if not self._started:
                record.append("never started")
        except BaseException as error:
            record.append(("failed", raised(error)))
        try:
            if hasattr(body, "close"):
                body.close()
        except BaseException as error:
            record.append(("failed to close", raised(error)))


def _body_kind(body: Any, file_wrapper: Any) -> str | None:
    """Return what a server recognises a body as by its type."""
    kinds = {"list": list, "tuple": tuple, "bytes": bytes, "str": str}
    if isinstance(file_wrapper, type):
        kinds["file"] = file_wrapper
    return next((name for name, kind in kinds.items() if isinstance(body, kind)), None)


def _length(body: Any) -> int | None:
    try:
        return len(body)
    except TypeError:
        return None


def scope(method: str = "GET", path: str = "/", **more: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.5"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
        "client": ("127.0.0.1", 50000),
        "server": ("testserver", 80),
        "extensions": {"http.response.pathsend": {}, "http.response.trailers": {}},
        **more,
    }


class ASGIServer:
    """A server as strict as uvicorn, for one request."""

    def __init__(self, record: Record, *, leaves_after: int = 100) -> None:
        self.record = record
        self._state = "new"
        self._messages = 0
        self._ended = asyncio.Event()
        self._leaves_after = leaves_after

    async def send(self, message: Any) -> None:
        """Record a message. Headers are read only here, because some can be read only once."""
        self.record.append(
            {"is": type(message).__name__, **{name: _with_type(value) for name, value in message.items()}}
        )
        self._messages += 1
        if self._messages > self._leaves_after:
            raise OSError("the client has left")
        kind = message["type"]
        if kind == "http.response.start":
            if self._state != "new":
                raise RuntimeError("the response was started before")
            if not isinstance(message["status"], int):
                raise TypeError("the status is not a number")
            self._state = "started"
        elif kind == "http.response.body":
            if self._state != "started":
                raise RuntimeError("no body is expected now")
            if not message.get("more_body", False):
                self._state = "ended"
                self._ended.set()

    async def run(self, app: Any, request: dict[str, Any]) -> None:
        waiting = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop()
            await self._ended.wait()
            return {"type": "http.disconnect"}

        try:
            await app(request, receive, self.send)
        except BaseException as error:
            self.record.append(("failed", raised(error)))


def _with_type(value: Any) -> Any:
    if isinstance(value, bytearray | memoryview):
        return type(value).__name__, bytes(value)
    if isinstance(value, Mapping):
        return type(value).__name__, dict(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value).__name__, [
            tuple(item) if isinstance(item, Iterable) and not isinstance(item, str | bytes) else item for item in value
        ]
    return value
