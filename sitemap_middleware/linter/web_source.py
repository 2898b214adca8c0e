"""Requests documents from the web, checks the responses, and passes the bodies to their check."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx

from ..exceptions import SitemapError
from .checks.fetch import check_content_type, check_redirects, check_status
from .checks.loc import resolved
from .checks.robots_txt import named_sitemaps
from .decompression import Decompressor
from .document_source import DocumentFeed
from .message import Finding
from .rules import fetch, size_and_index
from .run_context import Run
from .streamed_document_check import DocumentCheck
from .temporary_url_database import DocumentRow
from .web_client import Answer, Failure, PoliteClient
from .web_page_client import WebPages
from .xml_reader import Unreadable

BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_REFUSALS: Final = frozenset({403, 406, 429})
"""Statuses by which firewalls refuse programs."""
_FAILURES: Final = {Failure.TIMEOUT: fetch.TIMEOUT, Failure.REDIRECTS: fetch.REDIRECT_LOOP}


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
        named = named_sitemaps(robots.file.text) if robots.file else []
        found = [*dict.fromkeys(resolved(robots.url, url) for url in named)]
        return found or [urljoin(self.name, "/sitemap.xml")]

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Request a document, and check the response and what it contains."""
        is_forbidden = not await self._crawlers_may_request(document.url)
        if is_forbidden:
            run.report.add(fetch.ROBOTS, document.url, "robots.txt forbids crawlers to request the document")
        async with self._client.stream(document.url) as answer:
            if answer.failure is not None:
                if not (is_forbidden and answer.failure is Failure.ROBOTS):
                    self._report_failure(answer.failure, answer, document, run)
                return
            findings = [*check_redirects(answer.redirects, answer.url)]
            status = check_status(answer.status)
            if status is not None:
                if answer.status in _REFUSALS and await self._answers_browsers(document.url):
                    status = fetch.USER_AGENT, f"the server answers {answer.status}, and 200 to a browser"
                findings.append(status)
            run.report.add_all(findings, document.url)
            if status is None and not any(rule is fetch.LOGIN for rule, _ in findings):
                await self._read_body(answer, document, run)

    async def _crawlers_may_request(self, url: str) -> bool:
        robots = await WebPages(self._client).robots_txt(url)
        return robots is None or robots.allows(url)

    async def _answers_browsers(self, url: str) -> bool:
        async with self._client.stream(url, BROWSER) as answer:
            return answer.status == 200

    @staticmethod
    def _report_failure(failure: Failure, answer: Answer, document: DocumentRow, run: Run) -> None:
        """Report why there is no response."""
        if failure is Failure.ROBOTS:
            if not document.parent:
                raise SitemapError(f"{answer.reason}, though Google and Bing may: give --ignore-robots")
            run.report.add(size_and_index.NOT_ALL_READ, document.url, f"{answer.reason}, so it was not checked")
        else:
            run.report.add(_FAILURES.get(failure, fetch.FAILED), document.url, answer.reason)

    async def _read_body(self, answer: Answer, document: DocumentRow, run: Run) -> None:
        coding = answer.headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            run.report.add(fetch.CONTENT_ENCODING, document.url, f"the response has Content-Encoding: {coding[:100]}")
            return
        check = DocumentCheck(run, document, answer.url)
        feed, outer = DocumentFeed(check), Decompressor(is_declared=True) if coding.endswith("gzip") else None
        try:
            async with asyncio.timeout(self._client.deadline):
                async for piece in answer.pieces():
                    if not all(feed.feed(plain) for plain in ([piece] if outer is None else outer.feed(piece))):
                        break
                else:
                    if outer is not None:
                        feed.feed(outer.close())
                    feed.close()
        except TimeoutError:
            check.refuse(fetch.TIMEOUT, f"the document took more than {self._client.deadline:.0f} seconds")
        except httpx.HTTPError as error:
            check.refuse(fetch.FAILED, f"the response ends early: {error}")
        except Unreadable as error:
            check.refuse(error.rule, error.text)
        finding: Finding | None = check_content_type(answer.headers.get("content-type", ""), check.kind)
        if finding is not None:
            run.report.add(finding[0], document.url, finding[1])
