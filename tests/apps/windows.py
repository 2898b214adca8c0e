"""WSGI and ASGI wrappers that expose a middleware inside a server process over HTTP."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import parse_qs

from sitemap_middleware import SitemapMiddleware

QUESTION = "/__explain__"


def explaining_wsgi(middleware: SitemapMiddleware, app: Any = None) -> Any:
    """Answers `/__explain__` with what the middleware says of paths, and passes everything else on.

    `app` is given if the middleware is in it, and not around it.
    """

    def window(environ: Any, start_response: Any) -> Any:
        if environ["PATH_INFO"] != QUESTION:
            return (app or middleware)(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [_explanations(middleware, environ["QUERY_STRING"])]

    return window


def explaining_asgi(middleware: SitemapMiddleware) -> Any:
    async def window(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != QUESTION:
            await middleware(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _explanations(middleware, scope["query_string"].decode())})

    return window


def _explanations(middleware: SitemapMiddleware, query: str) -> bytes:
    """The explanation of the requested path; without one, of every route of the app."""
    paths = parse_qs(query).get("path") or [route.path for route in middleware.service.app_routes.reload().routes]
    explanations = [middleware.explain(path) for path in dict.fromkeys(paths)]
    return json.dumps(
        [{"path": page.path, "listed": page.listed, "reason": page.reason} for page in explanations]
    ).encode()


def signing_wsgi(app: Any) -> Any:
    """Writes on each response which process made it."""

    def window(environ: Any, start_response: Any) -> Any:
        def signed(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, ("X-Pid", str(os.getpid()))], *more)

        return app(environ, signed)

    return window


def signing_asgi(app: Any) -> Any:
    async def window(scope: Any, receive: Any, send: Any) -> None:
        async def signed(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-pid", str(os.getpid()).encode())]}
            await send(message)

        await app(scope, receive, signed)

    return window
