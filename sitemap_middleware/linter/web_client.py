"""Requests documents from the web, politely.

Each host gets few requests at once, with a pause between them, and is left alone as long as it says so by Retry-After.
robots.txt is obeyed. Hosts of the local network are not requested because a document of the web names them.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import httpx
from protego import Protego

from ..robots_parser import MAX_ROBOTS_BYTES, ROBOTS_PATH, RobotsFile, parse_robots_file
from .checks.loc import check_loc, is_local, resolved
from .decompression import Decompressor
from .web_transport import LocalAddressError, Resolve, WebTransport, resolve
from .xml_reader import Unreadable

PRODUCT: Final = "sitemap-middleware-check"
"""The name by which robots.txt may address this program."""
USER_AGENT: Final = f"{PRODUCT}/1.0 (+https://sitemap-middleware.example/docs/howto/check.html)"
MAX_REDIRECTS: Final = 10
"""Redirects that Googlebot follows."""
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
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Failure(StrEnum):
    """Why there is no response."""

    CONNECTION = "connection"
    TIMEOUT = "timeout"
    REDIRECTS = "redirects"
    """Too many, or in a circle."""
    ROBOTS = "robots"
    """robots.txt forbids this program to request the URL."""
    LOCAL = "local"
    """A document of the web leads to a host of the local network."""
    INVALID_URL = "invalid URL"


@dataclass(slots=True)
class Answer:
    """A response, or why there is none."""

    url: str
    """The last URL that was requested."""
    status: int = 0
    """0 if there is no response."""
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    redirects: tuple[str, ...] = ()
    """The URLs that redirected, in their order."""
    failure: Failure | None = None
    reason: str = ""
    """What is said about the failure."""
    response: httpx.Response | None = None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it was sent. Raises `httpx.HTTPError` if it ends early."""
        if self.response is not None:
            async for piece in self.response.aiter_raw():
                yield piece


@dataclass(slots=True)
class Fetched:
    """A whole response, decompressed."""

    answer: Answer
    body: bytes
    is_complete: bool
    """Whether this is all of the body: it was not too large, and no part is missing or damaged."""


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """The robots.txt of a host."""

    url: str
    """Its URL, after redirects."""
    status: int
    """0 if there was no response."""
    file: RobotsFile | None = None
    """None if there is none."""
    is_too_large: bool = False
    """Whether crawlers do not read all of it."""

    @property
    def forbids_all(self) -> bool:
        """Whether crawlers request nothing of the host, if its rules cannot be read (RFC 9309, section 2.3.1.4)."""
        return self.status >= 500


class _Host:
    """What is known about a host while it is requested."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.next_time = 0.0
        """The moment, by the clock, of the next request."""
        self.pause = PAUSE_SECONDS
        self.is_down = False
        """Whether the last request had no response."""
        self.robots_turn = asyncio.Lock()
        self.robots: RobotsAnswer | None = None
        self.rules: Protego | None = None


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
        self._transport = WebTransport(resolve, allow_local=allow_local)
        self._clock = clock
        self._sleep = sleep
        self._timeout = timeout
        self.deadline = deadline
        self._hosts: dict[str, _Host] = {}
        self._client = httpx.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip"},
            timeout=timeout,
            transport=self._transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def admit(self, url: str) -> None:
        """Allow hosts of the local network if that of a URL is one of them."""
        with suppress(OSError, UnicodeError, httpx.InvalidURL):  # is reported by the first request
            async with asyncio.timeout(self._timeout):
                await self._transport.admit(httpx.URL(url))

    @asynccontextmanager
    async def stream(self, url: str, user_agent: str = USER_AGENT) -> AsyncIterator[Answer]:
        """Request a URL, and follow redirects. The caller reads the body."""
        answer = await self._follow(url, user_agent, obey_robots=self._obey_robots)
        try:
            yield answer
        finally:
            if answer.response is not None:
                await answer.response.aclose()

    async def get(self, url: str, *, max_bytes: int) -> Fetched:
        """Request a URL, follow redirects, and read at most so many bytes of the body, decompressed."""
        async with self.stream(url) as answer:
            return await self._read(answer, max_bytes)

    async def robots_txt(self, url: str) -> RobotsAnswer:
        """Return the robots.txt of the host of a URL. It is requested once."""
        host = self._host(url)
        async with host.robots_turn:
            if host.robots is None:
                answer = await self._follow(urljoin(url, ROBOTS_PATH), USER_AGENT, obey_robots=False)
                fetched = await self._read(answer, MAX_ROBOTS_BYTES + 1)
                if answer.response is not None:
                    await answer.response.aclose()
                file = parse_robots_file(fetched.body) if answer.status == 200 else None
                host.robots = RobotsAnswer(answer.url, answer.status, file, len(fetched.body) > MAX_ROBOTS_BYTES)
                if file is not None:
                    host.rules = Protego.parse(file.text)
                    host.pause = max(PAUSE_SECONDS, min(host.rules.crawl_delay(PRODUCT) or 0, MAX_PAUSE_SECONDS))
            return host.robots

    def _host(self, url: str) -> _Host:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        while origin not in self._hosts and len(self._hosts) >= _MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return self._hosts.setdefault(origin, _Host())

    async def _follow(self, url: str, user_agent: str, *, obey_robots: bool) -> Answer:
        redirects: list[str] = []
        while len(redirects) <= MAX_REDIRECTS:
            answer = await self._refusal(url, obey_robots=obey_robots) or await self._attempts(url, user_agent)
            answer.redirects = (*redirects,)
            response = answer.response
            if response is None or response.status_code not in _REDIRECTS or "location" not in response.headers:
                return answer
            await response.aclose()
            redirects.append(url)
            url = resolved(url, response.headers["location"]).partition("#")[0]
            if url in redirects:
                break
        reason = (
            f"{url} redirects in a circle" if url in redirects else f"there are more than {MAX_REDIRECTS} redirects"
        )
        return Answer(url, redirects=(*redirects,), failure=Failure.REDIRECTS, reason=reason)

    async def _refusal(self, url: str, *, obey_robots: bool) -> Answer | None:
        """Why a URL is not requested; None if it is."""
        loc = check_loc(url, is_page=False)
        if not loc.host:
            return Answer(url, failure=Failure.INVALID_URL, reason=f"{url} is not a URL of http or https")
        if not self._transport.allow_local and is_local(loc.host):
            return Answer(url, failure=Failure.LOCAL, reason=f"{loc.host} is not on the web")
        if not obey_robots:
            return None
        robots = await self.robots_txt(url)
        if robots.forbids_all:
            reason = f"{robots.url} answers {robots.status}, so crawlers request nothing of this host"
            return Answer(url, failure=Failure.ROBOTS, reason=reason)
        rules = self._host(url).rules
        if rules is not None and not rules.can_fetch(url, PRODUCT):
            return Answer(url, failure=Failure.ROBOTS, reason=f"{robots.url} forbids it")
        return None

    async def _attempts(self, url: str, user_agent: str) -> Answer:
        """Request a URL, several times if it fails for now."""
        host, attempt = self._host(url), 0
        while True:
            await self._wait_for_turn(host)
            answer = await self._request(url, user_agent)
            attempt += 1
            attempts = ATTEMPTS if answer.failure is None else 1 if host.is_down else ATTEMPTS_TO_CONNECT
            wait = max(float(2**attempt), _retry_after(answer.headers))
            is_transient = answer.failure not in (None, Failure.LOCAL) or answer.status in _TRANSIENT
            if not is_transient or attempt >= attempts or wait > MAX_WAIT_SECONDS:
                host.is_down = answer.failure is not None
                return answer
            if answer.response is not None:
                await answer.response.aclose()
            host.next_time = max(host.next_time, self._clock() + wait)

    async def _wait_for_turn(self, host: _Host) -> None:
        async with host.turn:
            while (wait := host.next_time - self._clock()) > 0:
                await self._sleep(wait)
            host.next_time = self._clock() + host.pause

    async def _request(self, url: str, user_agent: str) -> Answer:
        try:
            request = self._client.build_request("GET", url, headers={"User-Agent": user_agent})
            async with asyncio.timeout(self._timeout):
                response = await self._client.send(request, stream=True)
        except LocalAddressError as error:
            return Answer(url, failure=Failure.LOCAL, reason=str(error))
        except (httpx.TimeoutException, TimeoutError):
            return Answer(
                url, failure=Failure.TIMEOUT, reason=f"there was no answer within {self._timeout:.0f} seconds"
            )
        except (httpx.InvalidURL, UnicodeError) as error:  # of a host in Punycode that cannot be
            return Answer(url, failure=Failure.INVALID_URL, reason=str(error))
        except httpx.HTTPError as error:
            return Answer(url, failure=Failure.CONNECTION, reason=_connection_reason(error, url))
        return Answer(url, response.status_code, response.headers, response=response)

    async def _read(self, answer: Answer, max_bytes: int) -> Fetched:
        """Read at most so many bytes of a body, decompressed."""
        body = bytearray()
        decompressor = Decompressor()
        try:
            async with asyncio.timeout(self.deadline):
                async for piece in answer.pieces():
                    for plain in decompressor.feed(piece):
                        body += plain
                        if len(body) > max_bytes:
                            return Fetched(answer, bytes(body[:max_bytes]), is_complete=False)
            body += decompressor.close()
        except (Unreadable, httpx.HTTPError, TimeoutError):
            return Fetched(answer, bytes(body), is_complete=False)
        return Fetched(answer, bytes(body), is_complete=answer.failure is None)


def _retry_after(headers: httpx.Headers) -> float:
    """The seconds that a Retry-After header asks for; 0 if there is none. Dates are compared by its clock."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        moment, now = (parsedate_to_datetime(value) for value in (text, headers.get("date", "")))
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
