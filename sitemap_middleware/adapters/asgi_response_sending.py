"""Sends the service's own responses over ASGI; a long body part by part."""

from __future__ import annotations

from contextlib import closing, suppress

from anyio.lowlevel import checkpoint
from starlette.types import Receive, Scope, Send

from ..http.messages import Response


async def send_response(response: Response, _: Scope, __: Receive, send: Send) -> None:
    """Send a response of the middleware itself. With the first argument bound, this is an ASGI application."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    with suppress(OSError):  # the client has disconnected (ASGI, "Disconnected Client")
        if response.parts is not None:
            with closing(response.parts):
                for part in response.parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                    await checkpoint()  # a server with free buffers does not yield, and other requests must run
        await send({"type": "http.response.body", "body": response.body})
