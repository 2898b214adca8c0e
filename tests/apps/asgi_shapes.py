"""Every form of response an ASGI app can send, valid or not, and ASGI middleware around it."""

from __future__ import annotations

import array
import asyncio
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware

from .wsgi_shapes import PARTS, Fault, Stop

HEADERS = [(b"content-type", b"text/html; charset=utf-8"), (b"x-own", b"1")]
App = Callable[..., Any]


class Shape:
    """What an app sends, and whether it fails."""

    def __init__(self, record: list[Any], parts: tuple[bytes, ...] = PARTS) -> None:
        self.record = record
        self.parts = parts
        self.fails = False

    @property
    def whole(self) -> bytes:
        return b"".join(self.parts)

    def body(self, **more: Any) -> dict[str, Any]:
        return {"type": "http.response.body", "body": self.whole, **more}

    def part(self, number: int, **more: Any) -> dict[str, Any]:
        return {"type": "http.response.body", "body": self.parts[number], "more_body": number < 1, **more}


def start(**more: Any) -> dict[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": list(HEADERS), **more}


def without(message: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != name}


class Message(dict[str, Any]):
    """A message of an own type."""


class Again:
    """Something that can be iterated over any number of times, and has no length."""

    def __iter__(self) -> Any:
        return iter(HEADERS)


Messages = Callable[[Shape], list[Any]]


def sending(messages: Messages) -> Callable[[Shape], App]:
    def make(shape: Shape) -> App:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            calls = messages(shape)
            for number, message in enumerate(calls):
                if shape.fails and number == len(calls) - 1:
                    raise Fault("half-way")
                shape.record.append(("sent", await send(message)))
                await asyncio.sleep(0)

        return app

    return make


def reusing_its_buffer(shape: Shape) -> App:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        buffer = bytearray(4096)
        await send(start())
        for number, part in enumerate(shape.parts):
            buffer[: len(part)] = part
            await send(shape.part(number, body=memoryview(buffer)[: len(part)]))
            buffer[:] = b"x" * len(buffer)

    return app


def failing(*messages: Any, kind: type[BaseException] = Fault) -> Callable[[Shape], App]:
    def make(shape: Shape) -> App:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            for message in messages:
                await send(message())
            raise kind("the app's own")

        return app

    return make


def catching(shape: Shape) -> App:
    """Catches what the server says to each message, and goes on."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in (shape.body(), {}, start(status="no"), start(), start(), shape.body(), shape.body(), start()):
            try:
                await send(message)
            except Exception as error:
                shape.record.append(("caught", type(error).__name__))

    return app


def not_awaited(shape: Shape) -> App:
    """Makes what is to be awaited, and awaits it in a task."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in (start(), shape.body()):
            await asyncio.create_task(send(message))

    return app


def in_background(shape: Shape) -> App:
    """Fails when the response is sent."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(start())
        await send(shape.body())
        raise Fault("in the background")

    return app


def by_name(shape: Shape) -> App:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(message=start())
        await send(message=shape.body())

    return app


def changes_scope(shape: Shape) -> App:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        shape.record.append(sorted(scope))
        scope.clear()
        await send(start())
        await send(shape.body())

    return app


EARLY = {"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]}


def first() -> dict[str, Any]:
    return {"type": "http.response.body", "body": b"<p>", "more_body": True}


def trailers() -> dict[str, Any]:
    return {"type": "http.response.trailers", "headers": [(b"x", b"y")]}


READ: dict[str, Callable[[Shape], App]] = {
    "one body": sending(lambda shape: [start(), shape.body()]),
    "two bodies": sending(lambda shape: [start(), shape.part(0), shape.part(1)]),
    "a body that ends with nothing": sending(
        lambda shape: [start(), shape.body(more_body=True), {"type": "http.response.body"}]
    ),
    "headers are a tuple": sending(lambda shape: [start(headers=tuple(HEADERS)), shape.body()]),
    "headers are a deque": sending(lambda shape: [start(headers=deque(HEADERS)), shape.body()]),
    "headers are a view": sending(lambda shape: [start(headers=dict(HEADERS).items()), shape.body()]),
    "pairs are lists": sending(lambda shape: [start(headers=[[*pair] for pair in HEADERS]), shape.body()]),
    "the status is an HTTPStatus": sending(lambda shape: [start(status=HTTPStatus.OK), shape.body()]),
    "a bytearray": sending(lambda shape: [start(), shape.body(body=bytearray(shape.whole))]),
    "a memoryview": sending(lambda shape: [start(), shape.body(body=memoryview(shape.whole))]),
    "an array": sending(lambda shape: [start(), shape.body(body=array.array("b", shape.whole))]),
    "a buffer that is used again": reusing_its_buffer,
    "early hints": sending(lambda shape: [EARLY, start(), shape.body()]),
    "debug": sending(lambda shape: [{"type": "http.response.debug", "info": {}}, start(), shape.body()]),
    "push": sending(lambda shape: [start(), {"type": "http.response.push", "path": "/a"}, shape.body()]),
    "trailers": sending(lambda shape: [start(trailers=True), shape.body(), trailers()]),
    "a message of an own type": sending(lambda shape: [Message(start()), Message(shape.body())]),
    "a message that cannot be changed": sending(
        lambda shape: [MappingProxyType(start()), MappingProxyType(shape.body())]
    ),
    "sent in tasks": not_awaited,
    "sent by name": by_name,
    "fails in the background": in_background,
    "the scope is emptied": changes_scope,
    "odd values": sending(
        lambda shape: [start(headers=[*HEADERS, (b"x", None), (b"link", 5), (b"y", bytearray(b"z"))]), shape.body()]
    ),
}
"""Apps whose page is read."""

UNREAD: dict[str, Callable[[Shape], App]] = {
    "no status": sending(lambda shape: [without(start(), "status"), shape.body()]),
    "headers are None": sending(lambda shape: [start(headers=None), shape.body()]),
    "headers are an iterator": sending(lambda shape: [start(headers=iter(HEADERS)), shape.body()]),
    "headers are a generator": sending(lambda shape: [start(headers=(pair for pair in HEADERS)), shape.body()]),
    "headers are a map": sending(lambda shape: [start(headers=map(tuple, HEADERS)), shape.body()]),
    "headers have no length": sending(lambda shape: [start(headers=Again()), shape.body()]),
    "headers are a dict": sending(lambda shape: [start(headers=dict(HEADERS)), shape.body()]),
    "headers are bytes": sending(lambda shape: [start(headers=b"x"), shape.body()]),
    "pairs are iterators": sending(lambda shape: [start(headers=[iter(pair) for pair in HEADERS]), shape.body()]),
    "the status is text": sending(lambda shape: [start(status="200 OK"), shape.body()]),
    "the status is None": sending(lambda shape: [start(status=None), shape.body()]),
    "the status is a list": sending(lambda shape: [start(status=[200]), shape.body()]),
    "no body": sending(lambda _: [start(), {"type": "http.response.body"}]),
    "nothing after the start": sending(lambda _: [start()]),
    "nothing": sending(lambda _: []),
    "a body that does not end": sending(lambda shape: [start(), shape.body(more_body=True)]),
    "a body of text": sending(lambda shape: [start(), shape.body(body="text")]),
    "a body of None": sending(lambda shape: [start(), shape.body(body=None)]),
    "a body of a number": sending(lambda shape: [start(), shape.body(body=10**12)]),
    "a file by its path": sending(lambda _: [start(), {"type": "http.response.pathsend", "path": "/tmp/none"}]),
    "a file between parts": sending(
        lambda shape: [start(), shape.part(0), {"type": "http.response.zerocopysend", "file": 3}, shape.part(1)]
    ),
    "something yet unknown": sending(lambda shape: [start(), shape.part(0), {"type": "something.new"}, shape.part(1)]),
    "a body before the start": sending(lambda shape: [shape.body(), start()]),
    "no messages": sending(lambda _: [None]),
    "an empty message": sending(lambda _: [{}]),
    "a message of no type": sending(lambda _: [{"type": None}]),
    "a text for a message": sending(lambda _: ["http.response.start"]),
    **{
        f"fails after {len(messages)} with {kind.__name__}": failing(*messages, kind=kind)
        for messages in ((), (start,), (start, first))
        for kind in (Fault, asyncio.CancelledError, Stop)
    },
}
"""Apps whose page is not read: it is none, it is not all there, or a look at it would take it away."""

OTHER: dict[str, Callable[[Shape], App]] = {
    "the server's errors are caught": catching,
    "no headers": sending(lambda shape: [without(start(), "headers"), shape.body()]),
    "two starts": sending(lambda shape: [start(), start(status=404), shape.body()]),
    "a start after the end": sending(lambda shape: [start(), shape.body(), start()]),
    "a body after the end": sending(lambda shape: [start(), shape.body(), shape.body()]),
    "not modified": sending(lambda shape: [start(status=304), shape.body(body=b"")]),
}

SHAPES = READ | UNREAD | OTHER


def passing_on(app: App) -> App:
    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            await send(message)

        await app(scope, receive, sent)

    return wrapped


def changing_in_place(app: App) -> App:
    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if isinstance(message, dict) and isinstance(message.get("headers"), list):
                message["headers"].append((b"x-layer", b"1"))
            await send(message)

        await app(scope, receive, sent)

    return wrapped


class Dispatching(BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


LAYERS: dict[str, Callable[[App], App]] = {
    "none": lambda app: app,
    "passing on": passing_on,
    "changing in place": changing_in_place,
    "Starlette's gzip": lambda app: GZipMiddleware(app, minimum_size=10),
    "Starlette's BaseHTTPMiddleware": Dispatching,
}
