"""Calls the app for a visitor's robots.txt, and sends its response: as it is, with a line more, or replaced.

The app gets the visitor's own request, and its response is held until it is complete. A response that is longer than
crawlers read passes unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import Context
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from starlette.types import Message, Receive, Scope, Send

from ..http.messages import Request, Response
from ..http.robots_parser import MAX_ROBOTS_BYTES
from .asgi_response_sending import send_response
from .event_loop_and_threads import thread_limiter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class _Body:
    """An iterable that closes the app's own body when the server has sent it."""

    def __init__(self, parts: Iterable[bytes], app_body: Any) -> None:
        self._parts = parts
        self._app_body = app_body

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)

    def close(self) -> None:
        if hasattr(self._app_body, "close"):
            self._app_body.close()


def amended_wsgi(
    send: Callable[[Response, WSGIEnvironment, StartResponse], Iterable[bytes]],
    middleware: Any,
    request: Request,
    environ: WSGIEnvironment,
    start_response: StartResponse,
) -> Iterable[bytes]:
    """Answer a request for robots.txt in a WSGI app. With the first three arguments bound, this is a WSGI application.

    Args:
        send: sends a response of the middleware itself.
        middleware: the middleware around the app.
        request: the request, as the service takes it.
        environ: the same request, for the app.
        start_response: the server's.
    """
    started: list[tuple[str, list[tuple[str, str]]]] = []
    parts: list[bytes] = []
    size = 0

    def held_start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:  # noqa: ARG001 # apps pass it by name
        started[:] = [(status, headers)]
        return parts.append

    body: Any = middleware.app(environ, held_start)
    response, chunks = None, iter(body)
    try:
        for chunk in chunks:
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_ROBOTS_BYTES:
                break
        else:
            with suppress(LookupError, TypeError, ValueError, AttributeError):  # what is malformed, the server refuses
                status, headers = started[0]
                answer = Response(int(status[:3]), [(name.lower(), value) for name, value in headers], b"".join(parts))
                response = Context().run(middleware.service.sitemap_handler.amended, request, answer)
    except BaseException:
        _Body((), body).close()
        raise
    if response is not None:
        return _Body(send(response, environ, start_response), body)
    for status, headers in started:  # if there is none, the server says what is wrong
        start_response(status, headers)
    return parts if type(body) is list else _Body(chain(parts, chunks), body)


async def amended_asgi(middleware: Any, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for robots.txt in an ASGI app. With the first two arguments bound, this is an ASGI app."""
    held: list[Message] = []
    is_held, size = True, 0

    async def held_send(message: Message) -> None:
        nonlocal is_held, size
        kind = message["type"]
        if not is_held or (not held and kind != "http.response.start"):
            await send(message)
            return
        held.append(message)
        size += len(message.get("body", b""))
        if kind == "http.response.start" or (
            kind == "http.response.body" and message.get("more_body") and size <= MAX_ROBOTS_BYTES
        ):
            return
        is_held = False
        response = await run_sync(Context().run, _amended, middleware, request, held, limiter=thread_limiter())
        if response is not None:
            await send_response(response, scope, receive, send)
            return
        for part in held:
            await send(part)

    await middleware.app(scope, receive, held_send)
    if is_held:  # the app did not end its response
        for part in held:
            await send(part)


def _amended(middleware: Any, request: Request, messages: list[Message]) -> Response | None:
    """What to send in place of the messages of a response. It may block."""
    start, *parts = messages
    with suppress(OSError, LookupError, TypeError, ValueError, AttributeError):  # what is malformed, the server refuses
        if parts[-1]["type"] == "http.response.pathsend":
            with Path(parts[-1]["path"]).open("rb") as file:
                body = file.read(MAX_ROBOTS_BYTES + 1)
        elif parts[-1]["type"] != "http.response.body" or parts[-1].get("more_body"):
            return None
        else:
            body = b"".join(part.get("body", b"") for part in parts)
        headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start.get("headers", ())
        ]
        answer = Response(start["status"], headers, body)
        amended: Response | None = middleware.service.sitemap_handler.amended(request, answer)
        return amended
    return None
