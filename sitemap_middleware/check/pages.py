"""Requests a sample of the listed pages, or all, and robots.txt, and checks the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from .answers import check_page, check_robots_file, named_sitemaps
from .database import UrlDatabase, UrlRow
from .responses import PageClient
from .run import Run
from .urls import check_loc, resolved

SAMPLE_PAGES: Final = 50
"""Pages that `Pages.SAMPLE` requests, spread evenly over the sitemap."""
CONCURRENT: Final = 8
MAX_NAMED_SITEMAPS: Final = 20
"""Sitemaps of robots.txt that are requested to see whether they are there."""
INVENTED_PATH: Final = "/sitemap-check-1f0c6d9e-page-that-does-not-exist"
"""A path that no site has. What it answers is what a missing page answers."""

MAX_COMPARED_HOSTS: Final = 100
"""Hosts of which an invented URL is requested."""


class Pages(StrEnum):
    """Which of the listed pages are requested."""

    NONE = "none"
    SAMPLE = "sample"
    ALL = "all"


_MOST: Final = {Pages.NONE: 0, Pages.SAMPLE: SAMPLE_PAGES, Pages.ALL: None}
"""How many pages are requested. None is all."""


class _Contents(NamedTuple):
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
        self._contents: dict[str, asyncio.Task[_Contents]] = {}

    async def check(self, mode: Pages, on_progress: Callable[[int, int | None], None]) -> int:
        """Request pages and report what is wrong with them. Return how many were requested."""
        rows, total = self._run.documents.unique_urls(_MOST[mode])
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
            tasks = [*checking, *self._contents.values()]
            for pending in tasks:
                pending.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return done

    async def _check_row(self, row: UrlRow) -> None:
        url = check_loc(row.loc).url
        robots = await self._client.robots_txt(url)
        if robots is not None and not robots.allows(url):
            self._run.report.add(("page-robots", f"{robots.url} forbids it"), row.loc, row.place)
            return
        response = await self._client.page(url)
        if response is None:
            return
        checked = await asyncio.to_thread(check_page, url, row.lastmod, response, self._run.now)
        self._run.report.add_all(checked.findings, row.loc, row.place)
        if not checked.findings and checked.digest is not None:
            contents = await self._contents_of_host(url)
            if contents.is_missing_page(url, checked.digest):
                text = "the page has the content that an invented URL of its host gets"
                self._run.report.add(("page-soft-not-found", text), row.loc, row.place)

    async def _contents_of_host(self, url: str) -> _Contents:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        if origin not in self._contents:
            if len(self._contents) >= MAX_COMPARED_HOSTS:
                return _Contents(None, None)
            self._contents[origin] = asyncio.create_task(self._request_contents(origin))
        return await asyncio.shield(self._contents[origin])

    async def _request_contents(self, origin: str) -> _Contents:
        missing = await self._digest(origin + INVENTED_PATH)
        return _Contents(missing, None if missing is None else await self._digest(f"{origin}/"))

    async def _digest(self, url: str) -> int | None:
        response = await self._client.page(url)
        if response is None:
            return None
        return (await asyncio.to_thread(check_page, url, "", response, self._run.now)).digest


def requested_urls(documents: UrlDatabase, mode: Pages) -> Callable[[str], bool]:
    """Return whether `PageChecks.check` requests a listed URL."""
    if mode is Pages.ALL:
        return lambda _: True
    return {row.loc for row in documents.unique_urls(_MOST[mode])[0]}.__contains__


async def check_site_robots(client: PageClient, run: Run, urls: list[str]) -> None:
    """Check the robots.txt of the host of a sitemap.

    Args:
        client: requests it.
        run: what the checks of the run share.
        urls: the URL that the run is about, and those of the documents with which it began.
    """
    robots = await client.robots_txt(urls[0])
    if robots is None:
        return
    run.report.add_all(check_robots_file(robots, urls), robots.url)
    if robots.text.lstrip().startswith("<"):
        return
    named = [resolved(robots.url, url) for url in named_sitemaps(robots.text)]
    unread = [url for url in named if not run.documents.position(url) and _is_same_host(url, robots.url)]
    for url in unread[:MAX_NAMED_SITEMAPS]:
        response = await client.page(url)
        if response is not None and (response.failure or response.status != 200):
            answer = response.reason or f"it answers {response.status}"
            run.report.add(("robots-sitemap-missing", f"the line names {url}: {answer}"), robots.url)


def _is_same_host(url: str, other: str) -> bool:
    return check_loc(url, is_page=False).host == check_loc(other, is_page=False).host
