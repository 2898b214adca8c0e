"""Streaming: a body sent part by part, as ASGI has it, for as long as its client stays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, suppress

from anyio import CancelScope, create_task_group
from anyio.lowlevel import checkpoint
from starlette.types import Receive, Send


async def send_stream(parts: Generator[bytes], receive: Receive, send: Send) -> None:
    """Send a body part by part, each made once the server has taken the one before, for as long as the client stays."""
    error: Exception | None = None
    with closing(parts):
        async with create_task_group() as tasks:
            tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
            try:
                await _send_parts(parts, send)
            except Exception as failed:
                error = failed  # raised out of the group, it would be one of a group
            tasks.cancel_scope.cancel()
    if error is not None:
        raise error


async def _send_parts(parts: Generator[bytes], send: Send) -> None:
    for part in parts:
        try:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        except OSError:  # the client has left (ASGI, "Disconnected Client")
            return
        await checkpoint()  # a server with room in its buffers does not wait, and others must have their turn
    await send({"type": "http.response.body", "body": b""})


async def _cancel_on_disconnect(receive: Receive, sending: CancelScope) -> None:
    """Cancel the sending when the client leaves."""
    with suppress(Exception):  # what cannot be told in this way, `send` tells
        while (await receive())["type"] != "http.disconnect":
            await checkpoint()
        sending.cancel()
