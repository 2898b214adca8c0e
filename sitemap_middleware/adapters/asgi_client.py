"""A request that is made to an ASGI app within the process, as a server makes it: ours, not a client's."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from anyio import CancelScope, Event, current_time, move_on_after
from starlette.types import ASGIApp, Message, Scope

from ..http import MAX_PROBE_BYTES, PROBE_TIMEOUT_SECONDS, Response
from .async_bridge import start_task
from .base_request import as_exception, is_endless, truncated_response

CLEANUP_TIMEOUT_SECONDS: Final = 0.1
"""How long an answer waits for the app to close its files. They would stay open if the event loop ended before."""


async def request_app(app: ASGIApp, scope: Scope, answer: Future[Response | None], cut: bool) -> None:
    """Make a request to the app, with a deadline, and tell the future the answer once the app has closed its files.

    What the app does after its answer, in background tasks, has no deadline. The
    answer waits for these only for `CLEANUP_TIMEOUT_SECONDS`.
    """
    bounds = CancelScope(deadline=current_time() + PROBE_TIMEOUT_SECONDS)
    inside = ResponseCollector(MAX_PROBE_BYTES, bounds.cancel)

    ended = Event()

    async def tell() -> None:
        with move_on_after(CLEANUP_TIMEOUT_SECONDS):
            await ended.wait()
        if not answer.done():
            answer.set_result(inside.response())

    def whole() -> None:
        bounds.deadline = math.inf
        start_task(tell)

    inside.complete = whole
    failure: Exception = RuntimeError("the app did not answer")
    try:
        with bounds:
            await app(scope, inside.receive, inside.send)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Trio ends if a task of its own raises; a task that is cancelled ends here anyway
        failure = as_exception(error)
    finally:
        ended.set()
        if answer.done():
            pass
        elif inside.is_complete:
            answer.set_result(inside.response())
        elif bounds.cancel_called:
            answer.set_result(truncated_response(inside.response(), too_long=inside.is_too_long, cut=cut))
        else:
            answer.set_exception(failure)


class ResponseCollector:
    """What the app receives and sends: a request without a body, of a client that leaves once it is answered.

    Until then it stays, and afterwards the app is told that it left, for which some
    wait before they end (ASGI, "Disconnect - receive event").
    """

    def __init__(self, most: int | None = None, stop: Callable[[], object] = bool) -> None:
        """Of a body of more bytes than `most`, the app is to be stopped."""
        self.status = 0
        self._headers: list[tuple[str, str]] = []
        self._parts: list[bytes] = []
        self.complete: Callable[[], object] = bool
        """Called once the app has sent all of its answer."""
        self._max_bytes = most
        self._size = 0
        self._stop = stop
        self._requested = False
        self._completed = Event()

    async def receive(self) -> Message:
        if not self._requested:
            self._requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._completed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            self._headers = [
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message.get("headers", ())
            ]
            if self._max_bytes is not None and is_endless(dict(self._headers).get("content-type", "").lower()):
                self._stop()
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            self._size += len(self._parts[-1])
            if self.is_too_long:
                self._stop()
            elif not message.get("more_body", False) and not self._completed.is_set():
                self._completed.set()
                self.complete()

    @property
    def is_complete(self) -> bool:
        """Whether the app has sent all of its answer."""
        return self._completed.is_set()

    @property
    def is_too_long(self) -> bool:
        """Whether the app was stopped for the length of its body."""
        return self._max_bytes is not None and self._size > self._max_bytes

    def response(self) -> Response:
        """What was answered."""
        return Response(self.status, self._headers, b"".join(self._parts))
