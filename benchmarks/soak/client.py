"""A client of HTTP/1.1 that costs little: connections that are used a few times, as browsers and crawlers use them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TIMEOUT_SECONDS: Final = 30.0
"""Seconds after which an answer is no longer waited for."""

USES: Final = 12
"""Requests on one connection, at most: so that all workers get their share of connections."""

BROWSER: Final = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "accept-language": "en-US,en;q=0.5",
    "accept-encoding": "gzip, deflate, br, zstd",
    "sec-fetch-dest": "document",
    "sec-fetch-mode": "navigate",
    "priority": "u=0, i",
}
CRAWLER: Final = {
    "user-agent": "Mozilla/5.0 (compatible; Soakbot/1.0; +http://soak.example/bot)",
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "accept-encoding": "gzip, deflate",
    "from": "bot@soak.example",
}


def request(target: str, headers: Mapping[str, str], method: str = "GET") -> bytes:
    """A request as it is sent; a target may have any byte in it, as a character of its number."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as it came; names of fields in lower case, the body as it was sent."""

    status: int
    fields: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def worker(self) -> int:
        """The process that made it; 0 where the server itself answered."""
        return int(self.fields.get("x-pid", "0"))


class HungUp(Exception):
    """The server closed the connection before it answered anything."""


class Client:
    """Asks one server, on connections that nobody else uses meanwhile."""

    def __init__(self, port: int, uses: int = USES) -> None:
        self.again = 0
        """Requests that were sent a second time, because the first connection was closed without a response."""
        self._port = port
        self._uses = uses
        self._idle: list[_Connection] = []

    async def request(self, sent: bytes) -> Reply:
        """Send a request, and once more if the server hung up without a word, as clients do (RFC 9110, 9.2.2)."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            try:
                return await self._request(self._idle.pop() if self._idle else await self._connect(), sent)
            except HungUp:
                self.again += 1
                return await self._request(await self._connect(), sent)

    async def close(self) -> None:
        for connection in self._idle:
            connection.close()

    async def _connect(self) -> _Connection:
        return _Connection(*await asyncio.open_connection("127.0.0.1", self._port))

    async def _request(self, connection: _Connection, sent: bytes) -> Reply:
        try:
            reply = await connection.request(sent)
        except BaseException:
            connection.close()
            raise
        connection.uses += 1
        if (
            connection.uses < self._uses
            and reply.fields.get("connection", "").lower() != "close"
            and reply.status != 400
        ):
            self._idle.append(connection)
        else:
            connection.close()
        return reply


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.uses = 0
        self._reader = reader
        self._writer = writer

    def close(self) -> None:
        self._writer.close()

    async def request(self, sent: bytes) -> Reply:
        try:
            self._writer.write(sent)
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                raise HungUp from error
            raise
        except ConnectionError as error:
            raise HungUp from error
        first, _, rest = head.partition(b"\r\n")
        pairs = (line.partition(b":") for line in rest.split(b"\r\n") if line)
        fields = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, _, value in pairs}
        status = int(first[9:12])
        bare = sent.startswith(b"HEAD") or status in {204, 304}
        return Reply(status, fields, b"" if bare else await self._body(fields))

    async def _body(self, fields: Mapping[str, str]) -> bytes:
        if "content-length" in fields:
            return await self._reader.readexactly(int(fields["content-length"]))
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return await self._reader.read()
        body = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
        return body
