"""The response of a URL, whoever gives it: a server on the web, or an app in this process. Follows redirects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from ..http.robots_parser import MAX_ROBOTS_BYTES, RobotsRules, parse_robots_file
from .urls import resolved

MAX_REDIRECTS: Final = 10
"""Redirects that Googlebot follows."""
PRODUCT: Final = "sitemap-middleware-check"
"""The name by which robots.txt may address this program."""

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
class Response:
    """A response, or why there is none."""

    url: str
    """The last URL that was requested."""
    status: int = 0
    """0 if there is no response."""
    headers: Sequence[tuple[str, str]] = ()
    """Their names are in lower case."""
    body: bytes = b""
    """The beginning of the body, decompressed, if it was read."""
    is_complete: bool = True
    """Whether `body` is the whole body: it was not too large, and no part is missing or damaged."""
    redirects: tuple[str, ...] = ()
    """The URLs that redirected, in their order."""
    failure: Failure | None = None
    reason: str = ""
    """What is said about the failure, as a sentence without a period."""

    def header(self, name: str) -> str:
        """The value of a header, by its name in lower case; nothing if there is none."""
        return next((value for key, value in self.headers if key == name), "")


async def follow(url: str, send: Callable[[str], Awaitable[Response]]) -> Response:
    """Request a URL, and follow redirects.

    Args:
        url: the URL.
        send: requests one URL.
    """
    redirects: list[str] = []
    while len(redirects) <= MAX_REDIRECTS:
        response = await send(url)
        response.redirects = (*redirects,)
        target = response.header("location")
        if response.status not in _REDIRECTS or not target:
            return response
        redirects.append(url)
        url = resolved(url, target).partition("#")[0]
        if url in redirects:
            break
    many = f"there are more than {MAX_REDIRECTS} redirects"
    reason = f"{url} redirects in a circle" if url in redirects else many
    return Response(url, redirects=(*redirects,), failure=Failure.REDIRECTS, reason=reason)


class Robots(NamedTuple):
    """The robots.txt of a host."""

    url: str
    """Its URL, after redirects."""
    status: int
    text: str = ""
    is_too_large: bool = False
    """Whether crawlers do not read all of it."""

    @classmethod
    def of(cls, response: Response) -> Robots:
        """Read a response, of which at least so many bytes as crawlers read were read, and one more."""
        file = parse_robots_file(response.body) if response.status == 200 else None
        is_too_large = len(response.body) > MAX_ROBOTS_BYTES
        return cls(response.url, response.status, file.text if file else "", is_too_large)

    @property
    def forbids_all(self) -> bool:
        """Whether crawlers request nothing of the host, as its rules cannot be read (RFC 9309, section 2.3.1.4)."""
        return self.status >= 500

    def allows(self, url: str) -> bool:
        """Whether search engines may request a URL of the host."""
        return not self.forbids_all and _rules(self.text, ()).allows(url)

    def allows_this_program(self, url: str) -> bool:
        """Whether this program may request a URL of the host."""
        return not self.forbids_all and _rules(self.text, (PRODUCT,)).allows(url)

    def pause_seconds(self) -> float:
        """How long this program is asked to wait between two requests."""
        return _rules(self.text, (PRODUCT,)).crawl_delay()


@lru_cache(32)
def _rules(text: str, crawlers: tuple[str, ...]) -> RobotsRules:
    return RobotsRules(text, *crawlers)


class PageClient(Protocol):
    """Requests pages: from the web, or from an app."""

    async def page(self, url: str) -> Response | None:
        """Request a page, and follow redirects. None if this program may not request it, or cannot."""
        ...

    async def robots_txt(self, url: str) -> Robots | None:
        """Request the robots.txt of the host of a URL, once. None if there is no response."""
        ...
