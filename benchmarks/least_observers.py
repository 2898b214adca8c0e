"""Two middlewares that do only what is necessary to notice that a page's response has changed.

Their cost is the lowest possible cost of observing a page. Each looks up the page of a request, copies the names of its
headers, because the app may change them, and compares the start of the response with the last one of the same second.
They judge, record, count and store nothing.
"""

from __future__ import annotations

import time
from typing import Any


class _Least:
    def __init__(self, app: Any) -> None:
        self.app = app
        self.pages: dict[Any, bool] = {}
        self.status = self.headers = self.host = self.fields = None
        self.second = 0.0

    def remember(self, now: float, status: Any, headers: Any, host: Any, fields: Any) -> None:
        self.second, self.status, self.headers, self.host, self.fields = now // 1, status, [*headers], host, fields


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
            now = time.time()
            is_repeated = status == self.status and headers == self.headers and host == self.host
            if not is_repeated or not 0 <= now - self.second < 1:
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
                now, status, headers = time.time(), message["status"], message["headers"]
                is_repeated = status == self.status and headers == self.headers and host == self.host
                if not is_repeated or not 0 <= now - self.second < 1:
                    self.remember(now, status, headers, host, fields)
            return send(message)

        await self.app(scope, receive, sent)
