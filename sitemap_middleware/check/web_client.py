"""Requests documents and pages from the web, politely. Needs httpx.

Each host gets few requests at once, with a pause between them, and is left alone as long as it says so by Retry-After.
robots.txt is obeyed. Hosts of the local network are not requested because a document of the web names them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Self
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from ..http.messages import retry_after_seconds
from ..http.robots_parser import MAX_ROBOTS_BYTES, ROBOTS_PATH
from .clients import USER_AGENT, Failure, Response, Robots, follow
from .url_elements import check_loc, is_local

PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 20.0
"""For a connection and the headers of a response, and between two parts of its body."""
DEADLINE_SECONDS: Final = 180.0
ATTEMPTS: Final = 3
"""Requests of a URL, if the server says that it cannot answer now. Without a response, there is one less."""
MAX_WAIT_SECONDS: Final = 60.0
"""How long a host may ask to be left alone. If it asks for more, it is not requested again."""

_MAX_HOSTS: Final = 100
_OWN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The user's own machine, which needs no pauses."""
_TRANSIENT: Final = frozenset({429, 502, 503, 504})


class _Host:
    """What is known about a host while it is requested."""

    def __init__(self, pause: float) -> None:
        self.turn = asyncio.Lock()
        self.next_time = 0.0
        """The moment, by the clock, of the next request."""
        self.pause = pause
        self.is_down = False
        self.robots_turn = asyncio.Lock()
        self.robots: Robots | None = None


class WebClient:
    """A client for one run. It is an async context manager.

    Hosts of the local network are requested only if that of `named`, the URL that the user gave, is one of them. Its
    credentials are sent to its own origin only.
    """

    def __init__(
        self,
        named: str = "",
        *,
        obey_robots: bool = True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._named = named
        user = urlsplit(named)
        self._auth = httpx.BasicAuth(unquote(user.username), unquote(user.password or "")) if user.username else None
        self._allow_local = False
        self._obey_robots = obey_robots
        self._clock = clock
        self._sleep = sleep
        self._hosts: dict[str, _Host] = {}
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request
        self._client = httpx.AsyncClient(headers={"Accept": "*/*", "Accept-Encoding": "gzip"}, timeout=TIMEOUT_SECONDS)

    async def __aenter__(self) -> Self:
        with suppress(OSError, UnicodeError, ValueError):  # is reported by the first request
            async with asyncio.timeout(TIMEOUT_SECONDS):
                self._allow_local = bool(self._named) and await _is_local(self._named, all)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, url: str, max_bytes: int, user_agent: str = USER_AGENT) -> Response:
        """Request a URL, follow redirects, and read at most so many bytes of the body."""

        async def send(url: str) -> Response:
            refusal = await self._refusal(url)
            return refusal or await self._attempts(url, max_bytes, user_agent)

        return await follow(url, send)

    async def robots_txt(self, url: str) -> Robots | None:
        """Return the robots.txt of the host of a URL, with status 0 if there is no response. It is requested once."""
        if not check_loc(url, is_page=False).host:
            return None
        host = self._host(url)
        async with host.robots_turn:
            if host.robots is None:
                url = urljoin(url, ROBOTS_PATH)
                response = await follow(url, lambda url: self._attempts(url, MAX_ROBOTS_BYTES + 1, USER_AGENT))
                host.robots = Robots(response)
                if host.pause:
                    host.pause = max(PAUSE_SECONDS, min(host.robots.pause_seconds, MAX_PAUSE_SECONDS))
            return host.robots

    def _host(self, url: str) -> _Host:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        while origin not in self._hosts and len(self._hosts) >= _MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        pause = 0.0 if urlsplit(url).hostname in _OWN_HOSTS else PAUSE_SECONDS
        return self._hosts.setdefault(origin, _Host(pause))

    async def _refusal(self, url: str) -> Response | None:
        """Why robots.txt does not let this program request a URL; None if it does."""
        robots = await self.robots_txt(url) if self._obey_robots else None
        if robots is None or robots.allows_this_program(url):
            return None
        return Response(url, failure=Failure.ROBOTS, reason=robots.refusal)

    async def _attempts(self, url: str, max_bytes: int, user_agent: str) -> Response:
        """Request a URL, several times if it fails for now."""
        if not check_loc(url, is_page=False).host:
            return Response(url, failure=Failure.CONNECTION, reason=f"{url} is not a URL of http or https")
        host, attempt = self._host(url), 0
        while True:
            await self._wait_for_turn(host)
            response = await self._request(url, max_bytes, user_agent)
            attempt += 1
            has_failed = not response.status
            attempts = 1 if has_failed and host.is_down else ATTEMPTS - has_failed
            wait = max(float(2**attempt), retry_after_seconds(response.header("retry-after"), time.time()))
            is_transient = response.status in _TRANSIENT or (has_failed and response.failure is not Failure.LOCAL)
            if not is_transient or attempt >= attempts or wait > MAX_WAIT_SECONDS:
                host.is_down = has_failed
                return response
            host.next_time = max(host.next_time, self._clock() + wait)

    async def _wait_for_turn(self, host: _Host) -> None:
        async with host.turn:
            while (wait := host.next_time - self._clock()) > 0:
                await self._sleep(wait)
            host.next_time = self._clock() + host.pause

    async def _request(self, url: str, max_bytes: int, user_agent: str) -> Response:
        response, body = Response(url), bytearray()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS) as limit:
                if not self._allow_local and not _is_proxied(url) and await _is_local(url, any):
                    reason = f"{urlsplit(url).hostname} is not on the web, but in the local network"
                    return Response(url, failure=Failure.LOCAL, reason=reason)
                auth = self._auth if _origin(url) == _origin(self._named) else None
                response.has_credentials = auth is not None
                async with self._client.stream("GET", url, headers={"User-Agent": user_agent}, auth=auth) as answer:
                    response.status = answer.status_code
                    response.headers = [(name.lower(), value) for name, value in answer.headers.multi_items()]
                    limit.reschedule(asyncio.get_running_loop().time() + DEADLINE_SECONDS)
                    async for piece in answer.aiter_raw():
                        body += piece
                        if len(body) > max_bytes:
                            response.is_complete = False
                            break
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:  # of a host that cannot be
            response.is_complete = False
            response.failure, response.reason = _failure(error, response)
        response.body = bytes(body[:max_bytes])
        return response


def _origin(url: str) -> tuple[str, str]:
    loc = check_loc(url, is_page=False)
    return loc.scheme, loc.host


async def _is_local(url: str, which: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether a host is part of the local network, by its name or by `any` or `all` of its addresses.

    Raises `OSError` if it has none.
    """
    if is_local(check_loc(url, is_page=False).host):
        return True
    name = urlsplit(url).hostname or ""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return which(is_local(f"[{address[0]}]") for *_, address in found)


def _is_proxied(url: str) -> bool:
    """Whether a proxy requests a URL, which finds the address of its host by itself."""
    parts, proxies = urlsplit(url), getproxies()
    return bool(proxies.get(parts.scheme) or proxies.get("all")) and not proxy_bypass(parts.hostname or "")


def _failure(error: Exception, response: Response) -> tuple[Failure, str]:
    """Why there is no response, or why its body ends early."""
    if isinstance(error, TimeoutError) and response.status:
        return Failure.TIMEOUT, f"the document took more than {DEADLINE_SECONDS:.0f} seconds"
    if response.status:
        return Failure.CONNECTION, f"the response ends early: {error}"
    if isinstance(error, (TimeoutError, httpx.TimeoutException)):
        return Failure.TIMEOUT, f"there was no answer within {TIMEOUT_SECONDS:.0f} seconds"
    cause: BaseException | None = error
    reason = str(error) or type(error).__name__
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
            reason = os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)  # of DNS they are negative
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (httpx.ConnectError, OSError)):
        reason = f"could not connect to {urlsplit(response.url).netloc}: {reason}"
    return Failure.CONNECTION, reason
