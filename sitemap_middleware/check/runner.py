"""Runs a check: reads a sitemap with all documents that it names, and returns the messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..exceptions import SitemapError
from .answers import KnownUrl, check_coverage
from .database import UrlDatabase
from .findings import DEFAULT_LIMIT, Message, MessageCollector, Place
from .pages import PageChecks, Pages, check_site_robots, requested_urls
from .responses import PageClient
from .rules import RULES, Severity
from .run import Run, UrlStatistics
from .sources import FileSource, Source
from .urls import check_loc, duplicate_findings, is_local, normal_url

DEFAULT_MAX_DOCUMENTS: Final = 5_000
CONCURRENT: Final = 4
"""Documents that are read at the same time."""

OnProgress = Callable[[int, int | None], None]
"""Takes the number of documents that were read, and that of all, or None."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run checks, and how much of it."""

    ignored: Collection[str] = ()
    """Codes that are not reported."""
    limit: int = DEFAULT_LIMIT
    """Messages of one code that are kept. 0 keeps all."""
    max_documents: int = DEFAULT_MAX_DOCUMENTS
    """Documents that are read. There may be no end of them."""
    pages: Pages = Pages.NONE
    """Which of the listed pages are requested."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """With what the listed URLs are compared."""

    client: PageClient | None = None
    """Requests pages and robots.txt. None if there is nothing to request."""
    known: Callable[[], Iterable[KnownUrl]] | None = None
    """Returns what the middleware knows of the app's pages."""
    earlier: Callable[[], Iterable[str]] | None = None
    """Returns the URLs that an earlier run listed."""
    on_url: Callable[[str], None] | None = None
    """Takes each URL that is listed."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found."""

    messages: list[Message]
    documents: int
    """How many documents were read."""
    urls: int
    """How many URLs they list."""
    counts: dict[Severity, int]
    """How many messages there were, with those that were not kept."""
    omitted: dict[str, int]
    """How many messages of each code were not kept."""
    pages: int = 0
    """How many pages were requested."""
    is_complete: bool = True
    """Whether all documents were read to their end."""


async def check_sitemap(
    source: Source,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    on_progress: OnProgress = lambda _done, _total: None,
    comparison: Comparison = Comparison(),
) -> Result:
    """Check a sitemap.

    Args:
        source: where its documents come from.
        settings: what is checked.
        clock: returns POSIX seconds.
        on_progress: called with the number of documents that were read, and that of all; then with those of pages.
        comparison: with what the listed URLs are compared.
    """
    report = MessageCollector(settings.ignored, settings.limit)
    with UrlDatabase() as documents:
        run = Run(report, documents, UrlStatistics(source.request_time), clock())
        first, read = await _read_documents(source, run, settings.max_documents, on_progress)
        _check_all_urls(run, source.name)
        if comparison.known is not None:  # before the pages are requested: what is known is of other requests
            is_requested = requested_urls(run.documents, settings.pages)
            await asyncio.to_thread(_add_coverage, run, comparison.known, is_requested, source.name)
        pages = 0
        if comparison.client is not None:
            if source.name.startswith(("http://", "https://")):
                await check_site_robots(comparison.client, run, [source.name, *first])
            if settings.pages is not Pages.NONE:
                pages = await PageChecks(comparison.client, run).check(settings.pages, on_progress)
        _compare(run, comparison, source.name)
        messages = sorted(report.messages, key=lambda message: _position(message, documents))
        counts, omitted = report.by_severity(), report.omitted()
        return Result(messages, read, documents.url_count, counts, omitted, pages, documents.is_complete)


async def listed_urls(source: Source, max_documents: int = DEFAULT_MAX_DOCUMENTS) -> list[str]:
    """Return the URLs that a sitemap lists, with those of all documents that it names, as written and without checks.

    Raises `SitemapError` if a document cannot be read, with the reason.
    """
    with UrlDatabase() as documents:
        run = Run(MessageCollector(), documents, UrlStatistics(None), time.time())
        await _read_documents(source, run, max_documents, lambda _done, _total: None)
        if not documents.is_complete:
            errors = [message for message in run.report.messages if message.severity is Severity.ERROR]
            reason = f"{errors[-1].place.document}: {errors[-1].message}" if errors else "it names what cannot be read"
            raise SitemapError(f"{source.name} was not read to its end: {reason}")
        return [row.loc for row in documents.all_urls()]


def sitemap_urls(target: str) -> list[str]:
    """Return the URLs that the sitemap at a URL lists, or of a site; or that in a file or a folder.

    A URL needs the extra `check`. Raises `SitemapError` if a document cannot be read.
    """
    if not target.startswith(("http://", "https://")):
        return asyncio.run(listed_urls(FileSource(Path(target))))
    from .web_client import PoliteClient  # these need httpx
    from .web_source import WebSource

    async def of_web() -> list[str]:
        async with PoliteClient(allow_local=is_local(check_loc(target, is_page=False).host)) as client:
            return await listed_urls(WebSource(target, client))

    return asyncio.run(of_web())


def _check_all_urls(run: Run, name: str) -> None:
    """Report what only all URLs together show: equal values, duplicates, versions that do not link back."""
    for finding, url in run.facts.findings():
        run.report.add(finding, url or name, Place(name))
    for finding, row in duplicate_findings(run.documents.similar_urls()):
        run.report.add(finding, row.loc, row.place)
    for row, version in run.documents.without_return():
        text = f"the page names the version {version}, which does not name the page in return"
        run.report.add(("hreflang-no-return", text), row.loc, row.place)
    for row, version in run.documents.versions_not_listed() if run.documents.is_complete else ():
        if check_loc(row.loc).host == check_loc(version).host:
            text = f"the page names the version {version}, which no document lists"
            run.report.add(("hreflang-not-listed", text), row.loc, row.place)


def _add_coverage(
    run: Run, known: Callable[[], Iterable[KnownUrl]], is_requested: Callable[[str], bool], name: str
) -> None:
    """Report what differs from what is known. Called on a thread: it calls code of the app, such as its lastmod."""
    for finding, url in check_coverage(known(), is_requested):
        run.report.add(finding, url, Place(name))


def _position(message: Message, documents: UrlDatabase) -> tuple[int, int, str]:
    """Where a message stands: by document, and those about pages last, by line, because pages answer in any order."""
    document = documents.position(message.place.document)
    is_of_page = RULES[message.code].family == "page"
    return (document, message.place.line + 1, message.url) if is_of_page else (document, 0, "")


def _compare(run: Run, comparison: Comparison, name: str) -> None:
    """Report URLs that were listed before and are not now, and pass each listed URL to `comparison.on_url`."""
    if comparison.earlier is not None and run.documents.is_complete:
        pairs = ((url, normal_url(check_loc(url))) for url in comparison.earlier())
        for url in run.documents.missing(pairs):
            run.report.add(("coverage-vanished", "the URL was listed before"), url, Place(name))
    if comparison.on_url is not None:
        for row in run.documents.all_urls():
            comparison.on_url(row.loc)


async def _read_documents(source: Source, run: Run, limit: int, on_progress: OnProgress) -> tuple[list[str], int]:
    """Read all documents, some at the same time; return the names of the first ones, and how many were read."""
    first = [*await source.first_documents()]
    for name in first:
        run.documents.add_first(name, source.location)
    reading = set[asyncio.Task[None]]()
    started = 0
    try:
        while True:
            while started < limit and len(reading) < CONCURRENT and (document := run.documents.next_document()):
                reading.add(asyncio.create_task(source.read(document, run)))
                started += 1
            if not reading:
                break
            done, reading = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            on_progress(started - len(reading), run.documents.document_count)
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    if run.documents.next_document() is not None:
        text = f"the sitemap has {run.documents.document_count:,} documents, and {limit:,} were checked"
        run.report.add(("index-not-all-read", text), source.name)
    return first, started - run.documents.other_names
