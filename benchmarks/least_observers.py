"""Middlewares that do only what is necessary to notice that a page's response has changed.

Their cost is the lowest possible cost of observing a page. Each looks up the page of a request, copies the names of its
headers, because the app may change them, and compares the start of the response with the last one of the same second.
They judge, record, count and store nothing. Those that record also do what the first response of a second needs: they
examine the headers of the request, and write down that the page was seen. Those that only look the page up do not see
the response: what remains of observing while ours pauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WSGI_VALUES = ("HTTP_ACCEPT", "HTTP_USER_AGENT", "HTTP_SEC_FETCH_DEST")
ASGI_VALUES = (b"accept", b"user-agent", b"sec-fetch-dest")
"""The headers whose values are examined, too."""


class _Least:
    def __init__(self, app: Any, clock: Callable[[], float] = time.time) -> None:
        self.app = app
        self.clock = clock
        self.pages: dict[Any, bool] = {}
        self.status = self.headers = self.host = self.fields = None
        self.second = 0.0
        self.names: set[Any] = set()
        self.values: set[Any] = set()
        self.recorded: dict[Any, float] = {}

    def remember(self, now: float, status: Any, headers: Any, host: Any, fields: Any) -> None:
        self.second, self.status, self.headers, self.host, self.fields = now // 1, status, [*headers], host, fields


class LookUpWSGI(_Least):
    """The least over WSGI that looks up the page, and whether the second has ended."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        key = (
            environ["PATH_INFO"],
            environ["HTTP_HOST"],
            environ["wsgi.url_scheme"],
            environ["SCRIPT_NAME"],
            environ["REQUEST_METHOD"],
            environ["QUERY_STRING"],
        )
        if self.recorded.get(key) is None or not 0 <= self.clock() - self.second < 1:
            self.recorded[key] = self.second = self.clock() // 1
        return self.app(environ, start_response)


class LookUpASGI(_Least):
    """The least over ASGI that looks up the page, and whether the second has ended."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        host = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
                break
        key = (
            scope["path"],
            host,
            scope["scheme"],
            scope["root_path"],
            scope["method"],
            scope["query_string"],
        )
        if self.recorded.get(key) is None or not 0 <= self.clock() - self.second < 1:
            self.recorded[key] = self.second = self.clock() // 1
        await self.app(scope, receive, send)


class LeastWSGI(_Least):
    """The least over WSGI."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        host = environ["HTTP_HOST"]
        key = (
            environ["PATH_INFO"],
            host,
            environ["wsgi.url_scheme"],
            environ["SCRIPT_NAME"],
            environ["REQUEST_METHOD"],
            environ["QUERY_STRING"],
        )
        if self.pages.get(key) is None:
            self.pages[key] = True
        fields = [*environ]

        def start(status: Any, headers: Any, exc_info: Any = None) -> Any:
            now = self.clock()
            is_repeated = status == self.status and headers == self.headers and host == self.host
            if not is_repeated or not 0 <= now - self.second < 1:
                self.remember(now, status, headers, host, fields)
            return start_response(status, headers, exc_info)

        return self.app(environ, start)


class LeastRecordingWSGI(_Least):
    """The least over WSGI that records."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        host = environ["HTTP_HOST"]
        key = (
            environ["PATH_INFO"],
            host,
            environ["wsgi.url_scheme"],
            environ["SCRIPT_NAME"],
            environ["REQUEST_METHOD"],
            environ["QUERY_STRING"],
        )
        if self.pages.get(key) is None:
            self.pages[key] = True
        fields = [*environ]

        def start(status: Any, headers: Any, exc_info: Any = None) -> Any:
            now = self.clock()
            is_repeated = status == self.status and headers == self.headers and host == self.host
            if is_repeated and 0 <= now - self.second < 1:
                return start_response(status, headers, exc_info)
            if self.names.issuperset(fields) and all(environ.get(key) in self.values for key in WSGI_VALUES):
                self.recorded[key] = self.second = now // 1
            if not is_repeated:
                self.names.update(fields)
                self.values.update(environ.get(key) for key in WSGI_VALUES)
                self.remember(now, status, headers, host, fields)
            return start_response(status, headers, exc_info)

        return self.app(environ, start)


class LeastASGI(_Least):
    """The least over ASGI."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        fields = tuple(scope["headers"])
        host = b""
        for name, value in fields:
            if name == b"host":
                host = value
                break
        key = (
            scope["path"],
            host,
            scope["scheme"],
            scope["root_path"],
            scope["method"],
            scope["query_string"],
        )
        if self.pages.get(key) is None:
            self.pages[key] = True

        def sent(message: Any) -> Any:
            if message["type"] == "http.response.start":
                now, status, headers = self.clock(), message["status"], message["headers"]
                is_repeated = status == self.status and headers == self.headers and host == self.host
                if not is_repeated or not 0 <= now - self.second < 1:
                    self.remember(now, status, headers, host, fields)
            return send(message)

        await self.app(scope, receive, sent)


class LeastRecordingASGI(_Least):
    """The least over ASGI that records."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        fields = tuple(scope["headers"])
        host = b""
        for name, value in fields:
            if name == b"host":
                host = value
                break
        key = (
            scope["path"],
            host,
            scope["scheme"],
            scope["root_path"],
            scope["method"],
            scope["query_string"],
        )
        if self.pages.get(key) is None:
            self.pages[key] = True

        def sent(message: Any) -> Any:
            if message["type"] == "http.response.start":
                now, status, headers = self.clock(), message["status"], message["headers"]
                is_repeated = status == self.status and headers == self.headers and host == self.host
                if is_repeated and 0 <= now - self.second < 1:
                    return send(message)
                for field in fields:
                    if field[0] not in self.names and field not in self.values:
                        break
                else:
                    self.recorded[key] = self.second = now // 1
                if not is_repeated:
                    self.names.update(name for name, _ in fields if name not in ASGI_VALUES)
                    self.values.update(fields)
                    self.remember(now, status, headers, host, fields)
            return send(message)

        await self.app(scope, receive, sent)


class LeastDocument:
    """Sends a document that is in memory, by the request's key, the time and the headers that the response depends on.

    Its cost is the lowest possible cost of a document that is answered from memory.
    """

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.start = status, headers, body
        self.documents: dict[Any, dict[Any, Any]] = {}
        self.fresh_until = float("inf")

    async def __call__(self, scope: Any, _: Any, send: Any) -> None:
        fields = scope["headers"]
        host = coding = tags = moment = None
        for name, value in fields:
            if name == b"host":
                host = value
                break
        key = scope["path"], host, scope["scheme"], scope["root_path"], scope["method"], scope["query_string"]
        responses = self.documents.get(key)
        if responses is None or time.time() >= self.fresh_until:
            responses = self.documents[key] = {}
        for name, value in fields:
            if name == b"accept-encoding":
                coding = value
            elif name == b"if-none-match":
                tags = value
            elif name == b"if-modified-since":
                moment = value
        response = responses.get((coding, tags, moment))
        if response is None:
            response = responses[coding, tags, moment] = self.start
        status, headers, body = response
        await send({"type": "http.response.start", "status": status, "headers": [*headers]})
        await send({"type": "http.response.body", "body": body})
