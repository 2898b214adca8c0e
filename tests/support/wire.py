"""Drivers: send one request through a WSGI or an ASGI app, checked by the protocol's own validator."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from wsgiref.validate import validator

import pytest

from .waiting import join_threads

PROTOCOLS = ("wsgi", "asgi")
BOTH = pytest.mark.parametrize("protocol", PROTOCOLS)

Headers = list[tuple[str, str]]

PATIENCE_SECONDS = 60
"""Seconds for which an answer is waited for: one of 50,000 entries may take ten on a slow machine."""


@dataclass(frozen=True)
class Answer:
    """A response as it came over the wire; header names in lower case."""

    status: int
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name.lower()]
        assert len(values) <= 1, f"{name} stands {len(values)} times"
        return values[0] if values else None

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class RequestSpec:
    """A request in neither protocol's words."""

    path: str = "/"
    method: str = "GET"
    headers: Headers = field(default_factory=list)
    host: str | None = "testserver"
    root: str = ""
    query: str = ""
    scheme: str = "http"
    leaves: bool = False
    """Whether the client leaves after the first part of the body, so that the server asks for no further part."""

    def with_host(self) -> Headers:
        return self.headers if self.host is None else [("host", self.host), *self.headers]


def wsgi(app: Any, spec: RequestSpec, *, validate: bool = True) -> Answer:
    """One request through a WSGI app, in an environ as gunicorn makes it."""
    environ: dict[str, Any] = {
        **ENVIRON,
        "REQUEST_METHOD": spec.method,
        "SCRIPT_NAME": spec.root.encode().decode("latin-1"),
        "PATH_INFO": spec.path.encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": spec.query,
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": spec.scheme,
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,  # that of the running test
        "wsgi.multiprocess": False,
    }
    del environ["HTTP_HOST"]
    for name, value in spec.with_host():
        key = f"HTTP_{name.upper().replace('-', '_')}"
        environ[key] = f"{environ[key]}, {value}" if key in environ else value
    started: list[tuple[str, Headers]] = []
    written: list[bytes] = []

    def start_response(status: str, headers: Headers, exc_info: Any = None) -> Any:
        started.append((status, headers))
        return written.append

    result: Iterable[bytes] = (validator(app) if validate else app)(environ, start_response)
    try:
        body = next(iter(result), b"") if spec.leaves else b"".join(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    status, headers = started[-1]
    return Answer(int(status.split()[0]), [(name.lower(), value) for name, value in headers], b"".join(written) + body)


def asgi(app: Any, spec: RequestSpec) -> Answer:
    """One request through an ASGI app, in a scope as uvicorn makes it.

    What runs behind the request ends with its event loop. It is waited for a moment, so that its messages are logged in
    the test that it belongs to.
    """
    answer = asyncio.run(asgi_async(app, spec))
    join_threads("sitemap-background", 0.05)
    return answer


async def asgi_async(app: Any, spec: RequestSpec) -> Answer:
    path = spec.root + spec.path
    scope = {
        **SCOPE,
        "method": spec.method,
        "scheme": spec.scheme,
        "path": path,
        "raw_path": path.encode("utf-8", "surrogateescape"),
        "root_path": spec.root,
        "query_string": spec.query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in spec.with_host()],
        "extensions": {},
    }
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])
    complete = asyncio.Event()
    started: list[dict[str, Any]] = []
    body: list[bytes] = []

    async def receive() -> dict[str, Any]:
        for message in requests:
            return message
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        await asyncio.sleep(0)  # as a server does, let other tasks run
        assert not complete.is_set(), message
        if not started:
            assert message["type"] == "http.response.start"
            started.append(message)
            return
        assert message["type"] == "http.response.body"
        body.append(message.get("body", b""))
        if not message.get("more_body", False):
            complete.set()
        elif spec.leaves:
            raise asyncio.CancelledError

    async with asyncio.timeout(PATIENCE_SECONDS):
        with contextlib.suppress(*([asyncio.CancelledError] if spec.leaves else [])):
            await app(scope, receive, send)
    assert complete.is_set() or spec.leaves
    start = started[0]
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
    return Answer(start["status"], headers, b"".join(body))


DRIVERS = {"wsgi": wsgi, "asgi": asgi}

ENVIRON = {
    "REQUEST_METHOD": "GET",
    "SCRIPT_NAME": "",
    "QUERY_STRING": "",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "HTTP_HOST": "example.com",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "https",
    "wsgi.input": io.BytesIO(),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}
SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "https",
    "root_path": "",
    "query_string": b"",
    "headers": [(b"host", b"example.com")],
    "client": ("127.0.0.1", 50000),
    "server": ("localhost", 80),
}
