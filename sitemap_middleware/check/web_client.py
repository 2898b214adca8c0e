"""Requests documents and pages from the web, politely.

Each host gets few requests at once, with a pause between them, and is left alone as long as it says so by Retry-After.
robots.txt is obeyed. Hosts of the local network are not requested because a document of the web names them.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Final, Self
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from ..http.captured_response import MAX_HTML_BYTES
from ..http.robots_parser import MAX_ROBOTS_BYTES, ROBOTS_PATH
from .document import Decompressor
from .responses import PRODUCT, Failure, Response, Robots, follow
from .urls import check_loc, is_local
from .xml_reader import Unreadable

USER_AGENT: Final = f"{PRODUCT}/1.0"
PAUSE_SECONDS: Final = 0.1
"""Between the starts of two requests to a host."""
MAX_PAUSE_SECONDS: Final = 10.0
"""The longest pause that a Crawl-delay in robots.txt may ask for."""
TIMEOUT_SECONDS: Final = 20.0
"""For a connection and the headers of a response, and between two parts of its body."""
DEADLINE_SECONDS: Final = 180.0
"""For the body of a response."""
ATTEMPTS: Final = 3
"""Requests of a URL, if the server says that it cannot answer now."""
ATTEMPTS_TO_CONNECT: Final = 2
"""Requests of a URL, if there is no response."""
MAX_WAIT_SECONDS: Final = 60.0
"""How long a host may ask to be left alone. If it asks for more, it is not requested again."""

_MAX_HOSTS: Final = 100
"""Hosts of which robots.txt is kept."""
_TRANSIENT: Final = frozenset({429, 502, 503, 504})
_NOT_REQUESTED: Final = frozenset({Failure.ROBOTS, Failure.LOCAL})
"""Failures that say nothing about a page."""

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a host. Raises `OSError` if there are none."""


async def resolve(host: str) -> Sequence[str]:
    """Ask the resolver of the system for the addresses of a host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [*dict.fromkeys(str(address[0]) for *_, address in found)]


class _Host:
    """What is known about a host while it is requested."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.next_time = 0.0
        """The moment, by the clock, of the next request."""
        self.pause = PAUSE_SECONDS
        self.is_down = False
        """Whether the last request had no response."""
        self.is_local: bool | None = None
        """Whether it has an address of the local network. None if that is not known yet."""
        self.robots_turn = asyncio.Lock()
        self.robots: Robots | None = None


class PoliteClient:
    """A client for one run. It is an async context manager.

    Args:
        obey_robots: whether robots.txt is obeyed.
        allow_local: whether hosts of the local network are requested.
        clock: returns seconds.
        sleep: waits for so many seconds.
        timeout: seconds for a connection and the headers of a response, and between two parts of its body.
        deadline: seconds for the body of a response.
        resolve: returns the addresses of a host.
    """

    def __init__(
        self,
        *,
        obey_robots: bool = True,
        allow_local: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        timeout: float = TIMEOUT_SECONDS,
        deadline: float = DEADLINE_SECONDS,
        resolve: Resolve = resolve,
    ) -> None:
        self._obey_robots = obey_robots
        self._allow_local = allow_local
        self._clock = clock
        self._sleep = sleep
        self._timeout = timeout
        self.deadline = deadline
        self._resolve = resolve
        self._hosts: dict[str, _Host] = {}
        self._client = httpx.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip"}, timeout=timeout
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def admit(self, url: str) -> None:
        """Allow hosts of the local network if that of a URL, which the user named, is one of them."""
        with suppress(OSError, UnicodeError, ValueError):  # is reported by the first request
            async with asyncio.timeout(self._timeout):
                addresses = await self._resolve(urlsplit(url).hostname or "")
            self._allow_local = self._allow_local or (bool(addresses) and all(map(_is_local_address, addresses)))

    @asynccontextmanager
    async def stream(
        self, url: str, user_agent: str = USER_AGENT, *, obey_robots: bool | None = None
    ) -> AsyncIterator[tuple[Response, AsyncIterator[bytes]]]:
        """Request a URL, and follow redirects. Provide the response, and its body as it was sent.

        The body raises `httpx.HTTPError` if it ends early.
        """
        is_obeyed = self._obey_robots if obey_robots is None else obey_robots
        opened: list[httpx.Response] = []

        async def send(url: str) -> Response:
            while opened:
                await opened.pop().aclose()
            response = await self._refusal(url, obey_robots=is_obeyed)
            return response or await self._attempts(url, user_agent, opened)

        try:
            response = await follow(url, send)
            yield response, opened[0].aiter_raw() if opened else _no_body()
        finally:
            for response_to_close in opened:
                await response_to_close.aclose()

    async def get(self, url: str, *, max_bytes: int, obey_robots: bool | None = None) -> Response:
        """Request a URL, follow redirects, and read at most so many bytes of the body, decompressed."""
        async with self.stream(url, obey_robots=obey_robots) as (response, pieces):
            response.body, is_complete = await self._read(pieces, max_bytes)
            response.is_complete = is_complete and response.failure is None
        return response

    async def _read(self, pieces: AsyncIterator[bytes], max_bytes: int) -> tuple[bytes, bool]:
        """Read at most so many bytes, decompressed. Return whether these are all of the body."""
        body, decompressor = bytearray(), Decompressor()
        try:
            async with asyncio.timeout(self.deadline):
                async for piece in pieces:
                    for plain in decompressor.feed(piece):
                        body += plain
                        if len(body) > max_bytes:
                            return bytes(body[:max_bytes]), False
            body += decompressor.close()
        except (Unreadable, httpx.HTTPError, TimeoutError):
            return bytes(body), False
        return bytes(body), True

    async def page(self, url: str) -> Response | None:
        """Request a page, and follow redirects. None if this program may not request it."""
        response = await self.get(url, max_bytes=MAX_HTML_BYTES + 1)
        response.headers = [(name, value) for name, value in response.headers if name != "content-encoding"]
        return None if response.failure in _NOT_REQUESTED else response

    async def robots_txt(self, url: str) -> Robots:
        """Return the robots.txt of the host of a URL, with status 0 if there is no response. It is requested once."""
        if not check_loc(url, is_page=False).host:
            return Robots(url, 0)
        host = self._host(url)
        async with host.robots_turn:
            if host.robots is None:
                response = await self.get(urljoin(url, ROBOTS_PATH), max_bytes=MAX_ROBOTS_BYTES + 1, obey_robots=False)
                host.robots = Robots.of(response)
                host.pause = max(PAUSE_SECONDS, min(host.robots.pause_seconds(), MAX_PAUSE_SECONDS))
            return host.robots

    def _host(self, url: str) -> _Host:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        while origin not in self._hosts and len(self._hosts) >= _MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return self._hosts.setdefault(origin, _Host())

    async def _refusal(self, url: str, *, obey_robots: bool) -> Response | None:
        """Why a URL is not requested; None if it is."""
        loc = check_loc(url, is_page=False)
        if not loc.host:
            return Response(url, failure=Failure.INVALID_URL, reason=f"{url} is not a URL of http or https")
        if not obey_robots:
            return None
        robots = await self.robots_txt(url)
        if robots.forbids_all:
            reason = f"{robots.url} answers {robots.status}, so crawlers request nothing of this host"
            return Response(url, failure=Failure.ROBOTS, reason=reason)
        if not robots.allows_this_program(url):
            return Response(url, failure=Failure.ROBOTS, reason=f"{robots.url} forbids it")
        return None

    async def _is_local(self, url: str) -> bool:
        """Whether a host is part of the local network, by its name or by any of its addresses. Raises `OSError`."""
        host, parts = self._host(url), urlsplit(url)
        if host.is_local is None:
            name, proxies = parts.hostname or "", getproxies()
            is_here = is_local(check_loc(url, is_page=False).host)
            # A proxy finds the address of a host by itself.
            is_proxied = bool(proxies.get(parts.scheme) or proxies.get("all")) and not proxy_bypass(name)
            host.is_local = is_here or (not is_proxied and any(map(_is_local_address, await self._resolve(name))))
        return host.is_local

    async def _attempts(self, url: str, user_agent: str, opened: list[httpx.Response]) -> Response:
        """Request a URL, several times if it fails for now. What is not read yet is added to `opened`."""
        host, attempt = self._host(url), 0
        while True:
            await self._wait_for_turn(host)
            response = await self._request(url, user_agent, opened)
            attempt += 1
            attempts = ATTEMPTS if response.failure is None else 1 if host.is_down else ATTEMPTS_TO_CONNECT
            wait = max(float(2**attempt), _retry_after(response))
            is_transient = response.failure not in (None, Failure.LOCAL) or response.status in _TRANSIENT
            if not is_transient or attempt >= attempts or wait > MAX_WAIT_SECONDS:
                host.is_down = response.failure is not None
                return response
            while opened:
                await opened.pop().aclose()
            host.next_time = max(host.next_time, self._clock() + wait)

    async def _wait_for_turn(self, host: _Host) -> None:
        async with host.turn:
            while (wait := host.next_time - self._clock()) > 0:
                await self._sleep(wait)
            host.next_time = self._clock() + host.pause

    async def _request(self, url: str, user_agent: str, opened: list[httpx.Response]) -> Response:
        try:
            request = self._client.build_request("GET", url, headers={"User-Agent": user_agent})
            async with asyncio.timeout(self._timeout):
                if not self._allow_local and await self._is_local(url):
                    reason = f"{urlsplit(url).hostname} is not on the web, but in the local network"
                    return Response(url, failure=Failure.LOCAL, reason=reason)
                response = await self._client.send(request, stream=True)
        except (httpx.TimeoutException, TimeoutError):
            reason = f"there was no answer within {self._timeout:.0f} seconds"
            return Response(url, failure=Failure.TIMEOUT, reason=reason)
        except (httpx.InvalidURL, UnicodeError) as error:  # of a host in Punycode that cannot be
            return Response(url, failure=Failure.INVALID_URL, reason=str(error))
        except (httpx.HTTPError, OSError) as error:
            return Response(url, failure=Failure.CONNECTION, reason=_connection_reason(error, url))
        opened.append(response)
        headers = [(name.lower(), value) for name, value in response.headers.multi_items()]
        return Response(url, response.status_code, headers)


async def _no_body() -> AsyncIterator[bytes]:
    for piece in list[bytes]():
        yield piece


def _is_local_address(address: str) -> bool:
    return is_local(f"[{address}]" if ":" in address else address)


def _retry_after(response: Response) -> float:
    """The seconds that a Retry-After header asks for; 0 if there is none. Dates are compared by the server's clock."""
    text = response.header("retry-after").strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        moment, now = (parsedate_to_datetime(value) for value in (text, response.header("date")))
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _connection_reason(error: BaseException, url: str) -> str:
    """Why there is no connection, as a sentence without a period."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            host = httpx.URL(url).host
            return f"DNS did not answer for {host}" if cause.errno == socket.EAI_AGAIN else f"{host} has no address"
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
