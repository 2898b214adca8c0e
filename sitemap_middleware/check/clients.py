"""What a URL answers, whoever gives it: a server on the web (`web_client`), or an app in this process."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import unquote

from ..adapters.app_runner import Fetch
from ..evidence.response_headers import ResponseHeaders
from ..evidence.response_parser import decode_body, denies_access
from ..http.messages import DOCUMENT_SUFFIXES, REDIRECT_STATUSES
from ..http.robots_parser import MAX_ROBOTS_BYTES, ROBOTS_PATH, RobotsRules, decode_robots
from ..models import Site
from .findings import Problem
from .url_elements import resolved

MAX_REDIRECTS: Final = 10
PRODUCT: Final = "sitemap-middleware-check"
USER_AGENT: Final = f"{PRODUCT}/1.0"

_UNOBSERVED: Final = ("X-Sitemap-Check-Token", "check")
"""A header as of somebody who is signed in: what an app answers a check counts as no evidence of its pages."""
_SITEMAP_LINE: Final = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)


class Failure(StrEnum):
    """Why there is no response, or only its beginning."""

    CONNECTION = "no connection, or no URL"
    TIMEOUT = "no answer in time"
    REDIRECTS = "too many redirects, or redirects in a circle"
    ROBOTS = "robots.txt forbids this program to request the URL"
    LOCAL = "a document of the web leads to a host of the local network"
    ELSEWHERE = "the app does not serve the URL"


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
    """The beginning of the body, as it was sent."""
    is_complete: bool = True
    redirects: Sequence[str] = ()
    has_credentials: bool = False
    """Whether a user and a password were sent."""
    failure: Failure | None = None
    """Why there is no response or, if there is a status, why its body ends early."""
    reason: str = ""

    def header(self, name: str) -> str:
        """The value of a header, by its name in lower case; nothing if there is none."""
        return next((value for key, value in self.headers if key == name), "")

    def problem(self, family: str, subject: str) -> Problem | None:
        """Why it is not that of the URL itself, with the code of a family of rules; None if it is."""
        if self.redirects and denies_access(302, self.redirects[0], self.url):
            return f"{family}-login", f"{subject} redirects to {self.url}"
        if self.status == 401:
            return f"{family}-login", f"{subject} answers 401"
        if self.status != 200:
            where = f"{subject} redirects to {self.url}, which" if self.redirects else subject
            return f"{family}-status", f"{where} answers {self.status}"
        if self.redirects:
            return f"{family}-redirect", f"{subject} redirects to {' to '.join([*self.redirects[1:], self.url])}"
        return None


async def follow(url: str, send: Callable[[str], Awaitable[Response]]) -> Response:
    """Request a URL by `send`, and follow redirects."""
    redirects: list[str] = []
    while len(redirects) <= MAX_REDIRECTS:
        response = await send(url)
        target = response.header("location")
        if response.status not in REDIRECT_STATUSES or not target:
            return replace(response, redirects=redirects)
        redirects.append(url)
        url = resolved(url, target).partition("#")[0]
        if url in redirects:
            break
    many = f"there are more than {MAX_REDIRECTS} redirects"
    reason = f"{url} redirects in a circle" if url in redirects else many
    return Response(url, redirects=redirects, failure=Failure.REDIRECTS, reason=reason)


class Robots:
    """The robots.txt of a host, or what was answered in its place."""

    def __init__(self, response: Response) -> None:
        self.url = response.url
        self.status = response.status
        codings = ResponseHeaders(response.headers).codings
        body, _ = decode_body(response.body, codings, MAX_ROBOTS_BYTES + 1)
        self.text = decode_robots(body) if response.status == 200 else ""
        self.sitemaps: list[str] = [*dict.fromkeys(_SITEMAP_LINE.findall(self.text))]
        self.is_html = self.text.lstrip().startswith("<")
        self.is_too_large = len(body) > MAX_ROBOTS_BYTES
        self.forbids_all = response.status >= 500
        """Whether crawlers request nothing of the host, as its rules cannot be read."""
        self._of_search_engines = RobotsRules(self.text)
        self._of_this_program = RobotsRules(self.text, PRODUCT)
        self.pause_seconds = self._of_this_program.crawl_delay()

    @property
    def refusal(self) -> str:
        """Why it does not allow what it does not allow."""
        if self.forbids_all:
            return f"{self.url} answers {self.status}: crawlers then stay away from the host (RFC 9309, 2.3.1.4)"
        return f"{self.url} forbids it"

    def allows(self, url: str) -> bool:
        """Whether search engines may request a URL of the host."""
        return not self.forbids_all and self._of_search_engines.allows(url)

    def allows_this_program(self, url: str) -> bool:
        """Whether this program may request a URL of the host."""
        return not self.forbids_all and self._of_this_program.allows(url)


class Client(Protocol):
    """Requests documents and pages: from the web, or from an app."""

    async def get(self, url: str, max_bytes: int, user_agent: str = USER_AGENT) -> Response:
        """Request a URL, follow redirects, and read at most so many bytes of the body."""
        ...

    async def robots_txt(self, url: str) -> Robots | None:
        """Request the robots.txt of the host of a URL, once. None if there cannot be one."""
        ...


class AppClient:
    """Requests pages of an app's site within this process, and no URLs elsewhere."""

    def __init__(self, fetch: Fetch, site: Site) -> None:
        self._fetch = fetch
        self._base_url = site.base_url
        self._root = site.root
        self._robots: Robots | None = None

    async def get(self, url: str, max_bytes: int, user_agent: str = USER_AGENT) -> Response:  # noqa: ARG002 (protocol)
        """Request a URL, and follow redirects within the site."""
        if not self._is_own(url):
            reason = f"the app does not serve it at {self._base_url}"
            return Response(url, failure=Failure.ELSEWHERE, reason=reason)

        async def send(url: str) -> Response:
            if not self._is_own(url):  # where a redirect leads: what it answers is not known
                return Response(url, 200)
            path, _, query = url.removeprefix(self._base_url).partition("#")[0].partition("?")
            try:
                headers = () if path.endswith(DOCUMENT_SUFFIXES) else (_UNOBSERVED,)
                answer = self._fetch(unquote(path), "gzip", query, *headers)
            except Exception as error:  # a server would answer 500
                reason = f"the app raises {type(error).__name__}: {error}"
                return Response(url, failure=Failure.CONNECTION, reason=reason)
            body = answer.body[:max_bytes]
            return Response(url, answer.status, answer.headers, body, len(answer.body) <= max_bytes)

        return await follow(url, send)

    async def robots_txt(self, url: str) -> Robots | None:
        """Request the app's robots.txt, once. None if the app is mounted below a path, or the URL is elsewhere."""
        if self._root or not self._is_own(url):
            return None
        if self._robots is None:
            self._robots = Robots(await self.get(f"{self._base_url}{ROBOTS_PATH}", MAX_ROBOTS_BYTES + 1))
        return self._robots

    def _is_own(self, url: str) -> bool:
        return url.startswith(f"{self._base_url}/")
