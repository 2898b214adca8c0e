"""Middlewares that do only what is necessary to notice that a page's response has changed.

Their cost is the lowest possible cost of observing a page. Each looks up the page of a request, copies the names of its
headers, because the app may change them, and compares the start of the response with the last one of the same second.
They judge, record, count and store nothing. Those that record also do what the first response of a second needs: they
examine the headers of the request, and write down that the page was seen. Those that only look the page up do not see
the response: what remains of observing while ours pauses.

Each does so in the fastest way known in Python: it copies an environ, which takes less time than a list of its keys;
it makes an object with slots and a bound method, which takes less time than a function with variables of its own; and
it calls local variables, which takes less time than to call an attribute that is no method. Most clients send Host as
the first header, so the others are not searched.

No middleware can do without three more things: it passes on what is no request, such as a lifespan; an error while it
observes a response must not break that; and a response that fails must not count. So these have them, too. In Python a
`try` takes next to no time unless an error is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WSGI_VALUES = ("HTTP_ACCEPT", "HTTP_USER_AGENT", "HTTP_SEC_FETCH_DEST")
ASGI_VALUES = (b"accept", b"user-agent", b"sec-fetch-dest")
"""The headers whose values are examined, too."""


def host_of(fields: Any) -> Any:
    """The Host of a request that has it behind other headers."""
    return next((value for name, value in fields if name == b"host"), b"")


class _Least:
    """What is known of the one page that is requested."""

    def __init__(self, app: Any, clock: Callable[[], float] = time.time) -> None:
        self.app = app
        self.clock = clock
        self.pages: dict[Any, bool] = {}
        self.status = self.headers = self.host = self.fields = None
        self.second = self.end = 0.0
        """The second of the last response, and its end."""
        self.names: set[Any] = set()
        self.values: set[Any] = set()
        self.recorded: dict[Any, float] = {}

    def forget(self) -> None:
        """Forget the last response: it failed."""
        self.second = self.end = 0.0

    def remember(self, now: float, status: Any, headers: Any, host: Any, fields: Any) -> None:
        self.second, self.end = now // 1.0, now // 1.0 + 1.0
        self.status, self.headers, self.host, self.fields = status, [*headers], host, fields


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
        app, clock = self.app, self.clock
        if self.recorded.get(key) is None or not self.second <= clock() < self.end:
            self.recorded[key] = self.second = clock() // 1.0
            self.end = self.second + 1.0
        return app(environ, start_response)


class LookUpASGI(_Least):
    """The least over ASGI that looks up the page, and whether the second has ended."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        name, host = scope["headers"][0]
        if name != b"host":
            host = host_of(scope["headers"])
        key = (
            scope["path"],
            host,
            scope["scheme"],
            scope["root_path"],
            scope["method"],
            scope["query_string"],
        )
        app, clock = self.app, self.clock
        if self.recorded.get(key) is None or not self.second <= clock() < self.end:
            self.recorded[key] = self.second = clock() // 1.0
            self.end = self.second + 1.0
        await app(scope, receive, send)


class _Request:
    """A request, and the start of the response to it."""

    __slots__ = ("fields", "host", "key", "least", "server")

    fields: Any
    """The headers as they came; in WSGI, the whole environ."""
    host: Any
    key: Any
    least: _Least
    server: Any
    """The server's `start_response` or `send`."""


class _WSGIRequest(_Request):
    __slots__ = ()

    def start_response(self, status: Any, headers: Any, exc_info: Any = None) -> Any:
        least, server = self.least, self.server
        clock = least.clock
        try:
            now = clock()
            if (
                status != least.status
                or headers != least.headers
                or self.host != least.host
                or not least.second <= now < least.end
            ):
                least.remember(now, status, headers, self.host, self.fields)
        except Exception:
            least.forget()
        return server(status, headers, exc_info)


class LeastWSGI(_Least):
    """The least over WSGI."""

    made: type[Any] = _WSGIRequest

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
        app, made = self.app, self.made
        request = made()
        request.least, request.host, request.key = self, host, key
        request.fields, request.server = environ.copy(), start_response
        try:
            return app(environ, request.start_response)
        except BaseException:
            self.forget()
            raise


class _RecordedWSGIRequest(_Request):
    __slots__ = ()

    def start_response(self, status: Any, headers: Any, exc_info: Any = None) -> Any:
        least, server = self.least, self.server
        clock = least.clock
        try:
            now = clock()
            is_repeated = status == least.status and headers == least.headers and self.host == least.host
            if not (is_repeated and least.second <= now < least.end):
                fields, values = self.fields, least.values
                get = fields.get
                accept, agent, destination = WSGI_VALUES
                if (
                    least.names.issuperset(fields)
                    and get(accept) in values
                    and get(agent) in values
                    and get(destination) in values
                ):
                    least.recorded[self.key] = least.second = now // 1.0
                    least.end = least.second + 1.0
                if not is_repeated:
                    least.names.update(fields)
                    values.update(map(get, WSGI_VALUES))
                    least.remember(now, status, headers, self.host, fields)
        except Exception:
            least.forget()
        return server(status, headers, exc_info)


class LeastRecordingWSGI(LeastWSGI):
    """The least over WSGI that records."""

    made = _RecordedWSGIRequest


class _ASGIRequest(_Request):
    __slots__ = ()

    def send(self, message: Any) -> Any:
        server = self.server
        try:
            if message["type"] == "http.response.start":
                least = self.least
                clock = least.clock
                now, status, headers = clock(), message["status"], message["headers"]
                if (
                    status != least.status
                    or headers != least.headers
                    or self.host != least.host
                    or not least.second <= now < least.end
                ):
                    least.remember(now, status, headers, self.host, self.fields)
        except Exception:
            self.least.forget()
        return server(message)


class LeastASGI(_Least):
    """The least over ASGI."""

    made: type[Any] = _ASGIRequest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        fields = tuple(scope["headers"])
        name, host = fields[0]
        if name != b"host":
            host = host_of(fields)
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
        app, made = self.app, self.made
        request = made()
        request.least, request.host, request.key = self, host, key
        request.fields, request.server = fields, send
        try:
            await app(scope, receive, request.send)
        except Exception:
            self.forget()
            raise


class _RecordedASGIRequest(_Request):
    __slots__ = ()

    def send(self, message: Any) -> Any:
        server = self.server
        try:
            if message["type"] == "http.response.start":
                least = self.least
                clock = least.clock
                now, status, headers = clock(), message["status"], message["headers"]
                is_repeated = status == least.status and headers == least.headers and self.host == least.host
                if not (is_repeated and least.second <= now < least.end):
                    fields, names, values = self.fields, least.names, least.values
                    for field in fields:
                        if field[0] not in names and field not in values:
                            break
                    else:
                        least.recorded[self.key] = least.second = now // 1.0
                        least.end = least.second + 1.0
                    if not is_repeated:
                        names.update(name for name, _ in fields if name not in ASGI_VALUES)
                        values.update(fields)
                        least.remember(now, status, headers, self.host, fields)
        except Exception:
            self.least.forget()
        return server(message)


class LeastRecordingASGI(LeastASGI):
    """The least over ASGI that records."""

    made = _RecordedASGIRequest


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
