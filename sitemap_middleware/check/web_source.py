"""Requests documents from the web, and checks the responses and what they contain. Needs httpx."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx

from ..exceptions import SitemapError
from .answers import check_content_type, check_document_response, named_sitemaps
from .database import DocumentRow
from .document import Decompressor, Document
from .responses import Failure, Response
from .run import Run
from .urls import resolved
from .web_client import PoliteClient
from .xml_reader import Unreadable

BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_REFUSALS: Final = frozenset({403, 406, 429})
"""Statuses by which firewalls refuse programs."""
_FAILURES: Final = {Failure.TIMEOUT: "fetch-timeout", Failure.REDIRECTS: "fetch-redirect-loop"}


class WebSource:
    """The documents of a URL.

    Args:
        url: the URL of a sitemap, or that of a site: its robots.txt then names the sitemaps.
        client: requests the documents.
        clock: returns POSIX seconds.
    """

    def __init__(self, url: str, client: PoliteClient, clock: Callable[[], float] = time.time) -> None:
        self.name = url
        self.location: str | None = url
        self.request_time: float | None = clock()
        self._client = client

    async def first_documents(self) -> Sequence[str]:
        """Return the URL, or those of the sitemaps of a site: of its robots.txt, or else /sitemap.xml."""
        await self._client.admit(self.name)
        parts = urlsplit(self.name)
        if parts.path not in ("", "/") or parts.query:
            return [self.name]
        robots = await self._client.robots_txt(self.name)
        found = [*dict.fromkeys(resolved(robots.url, url) for url in named_sitemaps(robots.text))]
        return found or [urljoin(self.name, "/sitemap.xml")]

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Request a document, and check the response and what it contains."""
        is_forbidden = not (await self._client.robots_txt(document.url)).allows(document.url)
        if is_forbidden:
            run.report.add(("fetch-robots", "robots.txt forbids crawlers to request the document"), document.url)
        async with self._client.stream(document.url) as (response, pieces):
            if response.failure is not None:
                if not (is_forbidden and response.failure is Failure.ROBOTS):
                    self._report_failure(response.failure, response, document, run)
                return
            findings = [*check_document_response(response)]
            if response.status in _REFUSALS and await self._answers_browsers(document.url):
                text = f"the server answers {response.status}, and 200 to a browser"
                findings[-1] = ("fetch-user-agent", text)
            run.report.add_all(findings, document.url)
            if all(code == "fetch-redirect" for code, _ in findings):
                await self._read_body(response, pieces, document, run)

    async def _answers_browsers(self, url: str) -> bool:
        async with self._client.stream(url, BROWSER) as (response, _):
            return response.status == 200

    @staticmethod
    def _report_failure(failure: Failure, response: Response, document: DocumentRow, run: Run) -> None:
        """Report why there is no response."""
        if failure is Failure.ROBOTS:
            if not document.parent:
                raise SitemapError(f"{response.reason}, though Google and Bing may: give --ignore-robots")
            run.report.add(("index-not-all-read", f"{response.reason}, so it was not checked"), document.url)
        else:
            run.report.add((_FAILURES.get(failure, "fetch-failed"), response.reason), document.url)

    async def _read_body(self, response: Response, pieces: AsyncIterator[bytes], row: DocumentRow, run: Run) -> None:
        coding = response.header("content-encoding").strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            text = f"the response has Content-Encoding: {coding[:100]}"
            run.report.add(("fetch-content-encoding", text), row.url)
            return
        document = Document(run, row, response.url)
        outer = Decompressor(is_declared=True) if coding.endswith("gzip") else None
        try:
            async with asyncio.timeout(self._client.deadline):
                async for piece in pieces:
                    if not all(document.feed(plain) for plain in ([piece] if outer is None else outer.feed(piece))):
                        break
                else:
                    if outer is not None:
                        document.feed(outer.close())
                    document.close()
        except TimeoutError:
            document.refuse(("fetch-timeout", f"the document took more than {self._client.deadline:.0f} seconds"))
        except httpx.HTTPError as error:
            document.refuse(("fetch-failed", f"the response ends early: {error}"))
        except Unreadable as error:
            document.refuse(error.finding)
        run.report.add_all(check_content_type(response, document.kind), row.url)
