"""A request that is made to an ASGI app within the process, as a server makes it: ours, not a client's."""

from __future__ import annotations

from collections.abc import Callable

from anyio import Event
from starlette.types import Message

from ..exchange import Response


class Inside:
    """What the app receives and sends: a request without a body, of a client that leaves once it is answered.

    Until then it stays, and afterwards the app is told that it left, for which some
    wait before they end (ASGI, "Disconnect - receive event").
    """

    def __init__(self, most: int | None = None, stop: Callable[[], object] = bool) -> None:
        """Of a body of more bytes than `most`, the app is to be stopped."""
        self.status = 0
        self._headers: list[tuple[str, str]] = []
        self._parts: list[bytes] = []
        self._most = most
        self._size = 0
        self._stop = stop
        self._asked = False
        self._answered = Event()

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._answered.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            self._headers = [
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message["headers"]
            ]
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            self._size += len(self._parts[-1])
            if self.too_long:
                self._stop()
            if not message.get("more_body", False):
                self._answered.set()

    @property
    def too_long(self) -> bool:
        """Whether the app was stopped for the length of its body."""
        return self._most is not None and self._size > self._most

    def response(self) -> Response:
        """What was answered."""
        return Response(self.status, self._headers, b"".join(self._parts))
