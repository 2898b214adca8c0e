"""Sends the service's own responses over ASGI; a long body part by part, until the client disconnects."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, suppress

from anyio import CancelScope, create_task_group
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from starlette.types import Receive, Scope, Send

from ..http.messages import Response


async def send_response(response: Response, _: Scope, receive: Receive, send: Send) -> None:
    """Send a response of the middleware itself. With the first argument bound, this is an ASGI application."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.parts is None:
        await send({"type": "http.response.body", "body": response.body})
    elif response.is_slow:
        await send_slow_stream(response.parts, send)
    else:
        await send_stream(response.parts, receive, send)


async def send_stream(parts: Generator[bytes], receive: Receive, send: Send) -> None:
    """Send a body part by part, until the client disconnects. Each is made when the server has taken the last."""
    error: Exception | None = None
    with closing(parts):
        async with create_task_group() as tasks:
            tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
            try:
                await _send_parts(parts, send)
            except Exception as failed:
                error = failed  # raised inside the task group, it would become an ExceptionGroup
            tasks.cancel_scope.cancel()
    if error is not None:
        raise error


async def send_slow_stream(parts: Generator[bytes], send: Send) -> None:
    """Send a body part by part as `send_stream` does, each made on a thread."""
    with closing(parts):
        while (part := await run_sync(next, parts, b"")) != b"":
            try:
                await send({"type": "http.response.body", "body": part, "more_body": True})
            except OSError:  # the client has disconnected (ASGI, "Disconnected Client")
                return
    await send({"type": "http.response.body", "body": b""})


async def _send_parts(parts: Generator[bytes], send: Send) -> None:
    for part in parts:
        try:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        except OSError:  # the client has disconnected (ASGI, "Disconnected Client")
            return
        await checkpoint()  # a server with free buffers does not yield, and other requests must run
    await send({"type": "http.response.body", "body": b""})


async def _cancel_on_disconnect(receive: Receive, sending: CancelScope) -> None:
    """Cancel the sending when the client disconnects."""
    with suppress(Exception):  # if this fails, `send` fails, too
        while (await receive())["type"] != "http.disconnect":
            await checkpoint()
        sending.cancel()
