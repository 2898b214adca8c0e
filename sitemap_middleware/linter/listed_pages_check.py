"""Requests a sample of the listed pages, or all, and robots.txt, and checks the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from ..robots_parser import RobotsRules
from .checks.listed_page import CheckedPage, PageResponse, check_page
from .checks.loc import check_loc, resolved
from .checks.robots_txt import check_robots_file, named_sitemaps
from .message import Place
from .rules import listed_page, robots_txt
from .run_context import Run
from .temporary_url_database import UrlDatabase, UrlRow

SAMPLE_PAGES: Final = 50
"""Pages that `Pages.SAMPLE` requests, spread evenly over the sitemap."""
CONCURRENT: Final = 8
MAX_NAMED_SITEMAPS: Final = 20
"""Sitemaps of robots.txt that are requested to see whether they are there."""
INVENTED_PATH: Final = "/sitemap-check-1f0c6d9e-page-that-does-not-exist"
"""A path that no site has. What it answers is what a missing page answers."""

MAX_COMPARED_HOSTS: Final = 100
"""Hosts of which an invented URL is requested."""

_rules = lru_cache(16)(RobotsRules)


class Pages(StrEnum):
    """Which of the listed pages are requested."""

    NONE = "none"
    SAMPLE = "sample"
    ALL = "all"


class RobotsText(NamedTuple):
    """The robots.txt of a host."""

    url: str
    status: int
    text: str = ""
    is_too_large: bool = False

    def allows(self, url: str) -> bool:
        """Whether search engines may request a URL of the host (RFC 9309, section 2.3.1)."""
        return self.status < 500 and (self.status != 200 or _rules(self.text).allows(url))


class PageClient(Protocol):
    """Requests pages: from the web, or from an app."""

    async def page(self, url: str) -> PageResponse | None:
        """Request a page, and follow redirects. None if this program may not request it, or cannot."""
        ...

    async def robots_txt(self, url: str) -> RobotsText | None:
        """Request the robots.txt of the host of a URL. None if there is no response."""
        ...


class _Comparison(NamedTuple):
    """The contents of a host with which its pages are compared."""

    missing: int | None
    """The digest of what an invented path answers with status 200."""
    home: int | None

    def is_missing_page(self, url: str, digest: int | None) -> bool:
        """Whether a page is what a missing one gets. An app whose pages are all one shell of HTML says nothing."""
        is_home = urlsplit(url).path in ("", "/")
        return digest is not None and digest == self.missing != self.home and not is_home


class PageChecks:
    """Checks listed pages.

    Args:
        client: requests the pages.
        run: what the checks of the run share.
    """

    def __init__(self, client: PageClient, run: Run) -> None:
        self._client = client
        self._run = run
        self._comparisons: dict[str, asyncio.Task[_Comparison]] = {}

    async def check(self, mode: Pages, on_progress: Callable[[int, int | None], None]) -> int:
        """Request pages and report what is wrong with them. Return how many were requested."""
        rows, total = self._rows(mode)
        checking = set[asyncio.Task[None]]()
        done = 0
        try:
            for row in rows:
                if len(checking) >= CONCURRENT:
                    finished, checking = await asyncio.wait(checking, return_when=asyncio.FIRST_COMPLETED)
                    done += len(finished)
                    for task in finished:
                        task.result()
                    on_progress(done, total)
                checking.add(asyncio.create_task(self._check_row(row)))
            for ended in asyncio.as_completed(checking):
                await ended
                done += 1
                on_progress(done, total)
        finally:
            tasks = [*checking, *self._comparisons.values()]
            for pending in tasks:
                pending.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return done

    def _rows(self, mode: Pages) -> tuple[Iterator[UrlRow], int]:
        step = _step(self._run.documents, mode)
        return self._run.documents.unique_urls(step), self._run.documents.url_count // step

    async def _check_row(self, row: UrlRow) -> None:
        loc = check_loc(row.loc)
        document = self._run.documents.document(row.document)
        place = Place(document.url if document else "", row.line)
        robots_text = await self._client.robots_txt(loc.url)
        if robots_text is not None and not robots_text.allows(loc.url):
            self._run.report.add(listed_page.ROBOTS, row.loc, f"{robots_text.url} forbids it", place)
            return
        response = await self._client.page(loc.url)
        if response is None:
            return
        checked = await asyncio.to_thread(check_page, loc.url, row.lastmod, response, self._run.now)
        self._run.report.add_all(checked.findings, row.loc, place)
        if not checked.findings and checked.digest is not None:
            comparison = await self._comparison(loc.url)
            if comparison.is_missing_page(loc.url, checked.digest):
                text = "the page has the content that an invented URL of its host gets"
                self._run.report.add(listed_page.SOFT_404, row.loc, text, place)

    async def _comparison(self, url: str) -> _Comparison:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        if origin not in self._comparisons:
            if len(self._comparisons) >= MAX_COMPARED_HOSTS:
                return _Comparison(None, None)
            self._comparisons[origin] = asyncio.create_task(self._compare(origin))
        return await asyncio.shield(self._comparisons[origin])

    async def _compare(self, origin: str) -> _Comparison:
        missing = await self._digest(origin + INVENTED_PATH)
        return _Comparison(missing, None if missing is None else await self._digest(f"{origin}/"))

    async def _digest(self, url: str) -> int | None:
        response = await self._client.page(url)
        if response is None:
            return None
        checked: CheckedPage = await asyncio.to_thread(check_page, url, "", response, self._run.now)
        return checked.digest


def _step(documents: UrlDatabase, mode: Pages) -> int:
    """One in so many listed URLs is requested."""
    return max(1, -(-documents.url_count // SAMPLE_PAGES)) if mode is Pages.SAMPLE else 1


def requested_urls(documents: UrlDatabase, mode: Pages) -> Callable[[str], bool]:
    """Return whether `PageChecks.check` requests a listed URL."""
    if mode is Pages.SAMPLE:
        return {row.loc for row in documents.unique_urls(_step(documents, mode))}.__contains__
    return lambda _: mode is Pages.ALL


async def check_site_robots(client: PageClient, run: Run, urls: list[str]) -> None:
    """Check the robots.txt of the host of a sitemap.

    Args:
        client: requests it.
        run: what the checks of the run share.
        urls: the URL that the run is about, and those of the documents with which it began.
    """
    file = await client.robots_txt(urls[0])
    if file is None or file.status != 200:
        if file is not None and file.status in (404, 410):
            text = "there is no robots.txt, so it does not name the sitemap"
            run.report.add(robots_txt.MISSING_LINE, file.url, text)
        return
    run.report.add_all(check_robots_file(file.text, file.url, urls, is_too_large=file.is_too_large), file.url)
    if file.text.lstrip().startswith("<"):
        return
    named = [resolved(file.url, url) for url in named_sitemaps(file.text)]
    unread = [url for url in named if not run.documents.position(url) and _is_same_host(url, file.url)]
    for url in unread[:MAX_NAMED_SITEMAPS]:
        response = await client.page(url)
        if response is not None and (response.failure or response.status != 200):
            answer = response.failure or f"it answers {response.status}"
            run.report.add(robots_txt.SITEMAP_MISSING, file.url, f"the line names {url}: {answer}")


def _is_same_host(url: str, other: str) -> bool:
    return check_loc(url, is_page=False).host == check_loc(other, is_page=False).host
