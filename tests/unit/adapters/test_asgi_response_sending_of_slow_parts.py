"""Bodies whose parts take long to make: each is made on a thread, until the client disconnects."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import anyio

from sitemap_middleware.adapters.asgi_response_sending import send_slow_stream


def test_parts_are_made_on_other_threads() -> None:
    threads, sent = set[int](), list[Any]()

    def parts() -> Generator[bytes]:
        for part in (b"a", b"b"):
            threads.add(threading.get_ident())
            yield part

    async def send(message: Any) -> None:
        sent.append((message["body"], message.get("more_body", False)))

    anyio.run(send_slow_stream, parts(), send)
    assert sent == [(b"a", True), (b"b", True), (b"", False)]
    assert threading.get_ident() not in threads


def test_the_rest_is_not_made_for_a_client_that_has_gone() -> None:
    made: list[bytes] = []

    def parts() -> Generator[bytes]:
        try:
            for part in (b"a", b"b", b"c"):
                made.append(part)
                yield part
        finally:
            made.append(b"closed")

    async def send(_: Any) -> None:
        raise OSError

    anyio.run(send_slow_stream, parts(), send)
    assert made == [b"a", b"closed"]
