"""Runs a check: reads a sitemap with all documents that it names, and returns the messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from .checks.coverage import KnownUrl, coverage_findings, vanished_findings
from .checks.duplicate_urls import duplicate_findings
from .checks.loc import check_loc, normal_url
from .document_source import Source
from .hreflang_links_database import VersionPair
from .listed_pages_check import PageChecks, PageClient, Pages, check_site_robots, requested_urls
from .message import Message, Place
from .message_collector import DEFAULT_LIMIT, MessageCollector
from .rules import RULES, Rule, hreflang, listed_page, size_and_index
from .rules.base import Severity
from .run_context import Run
from .statistics_of_all_urls import UrlStatistics
from .temporary_url_database import UrlDatabase

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
        first = [*await source.first_documents()]
        for name in first:
            documents.add_first(name, source.location)
        run = Run(report, documents, UrlStatistics(source.request_time), clock())
        read = await _read_documents(source, run, settings.max_documents, on_progress)
        for finding, url in run.facts.findings():
            report.add(finding[0], url or source.name, finding[1], Place(source.name))
        for finding, row in duplicate_findings(documents.similar_urls()):
            document = documents.document(row.document)
            report.add(finding[0], row.loc, finding[1], Place(document.url if document else "", row.line))
        _check_versions(run)
        if comparison.known is not None:  # before the pages are requested: what is known is of other requests
            is_requested = requested_urls(run.documents, settings.pages)
            await asyncio.to_thread(_add_coverage, run, comparison.known, is_requested, source.name)
        pages = await _check_answers(comparison.client, run, [source.name, *first], settings.pages, on_progress)
        _compare(run, comparison, source.name)
        counts = {severity: report.count(severity) for severity in Severity}
        messages = sorted(report.messages, key=lambda message: _position(message, documents))
        return Result(messages, read, documents.url_count, counts, report.omitted(), pages, documents.is_complete)


def _add_coverage(
    run: Run, known: Callable[[], Iterable[KnownUrl]], is_requested: Callable[[str], bool], name: str
) -> None:
    """Report what differs from what is known. Called on a thread: it calls code of the app, such as its lastmod."""
    for finding, url in coverage_findings(known(), is_requested):
        run.report.add(finding[0], url, finding[1], Place(name))


def _position(message: Message, documents: UrlDatabase) -> tuple[int, int, str]:
    """Where a message stands: by document, and those about pages last, by line, because pages answer in any order."""
    document = documents.position(message.place.document)
    is_of_page = RULES[message.code].family == listed_page.FAMILY.name
    return (document, message.place.line + 1, message.url) if is_of_page else (document, 0, "")


async def _check_answers(
    client: PageClient | None, run: Run, urls: list[str], pages: Pages, on_progress: OnProgress
) -> int:
    """Check the robots.txt of these sitemaps, and request the listed pages; return how many were requested."""
    if client is None:
        return 0
    if urls[0].startswith(("http://", "https://")):
        await check_site_robots(client, run, urls)
    return 0 if pages is Pages.NONE else await PageChecks(client, run).check(pages, on_progress)


def _compare(run: Run, comparison: Comparison, name: str) -> None:
    """Report URLs that were listed before and are not now, and pass each listed URL to `comparison.on_url`."""
    if comparison.earlier is not None and run.documents.is_complete:
        pairs = ((url, normal_url(check_loc(url))) for url in comparison.earlier())
        for finding, url in vanished_findings(run.documents.missing(pairs)):
            run.report.add(finding[0], url, finding[1], Place(name))
    if comparison.on_url is not None:
        for row in run.documents.all_urls():
            comparison.on_url(row.loc)


def _check_versions(run: Run) -> None:
    """Report the versions in other languages that do not link back, or are not listed."""
    for pair in run.documents.versions.pairs_without_return():
        _add_pair(run, hreflang.NO_RETURN, pair, f"the page names {pair.version}, which does not name it")
    for pair in run.documents.versions.not_listed() if run.documents.is_complete else ():
        if check_loc(pair.loc).host == check_loc(pair.version).host:
            _add_pair(run, hreflang.NOT_LISTED, pair, f"the page names {pair.version}, which no document lists")


def _add_pair(run: Run, rule: Rule, pair: VersionPair, text: str) -> None:
    document = run.documents.document(pair.document)
    run.report.add(rule, pair.loc, text, Place(document.url if document else "", pair.line))


async def _read_documents(source: Source, run: Run, limit: int, on_progress: OnProgress) -> int:
    """Read all documents, some at the same time; return how many."""
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
        run.report.add(size_and_index.NOT_ALL_READ, source.name, text)
    return started


def ignored_codes(select: Iterable[str], ignore: Iterable[str]) -> set[str]:
    """Return the codes that are not reported. Raises `KeyError` for a name that is neither a code nor a family.

    Args:
        select: codes and families that are reported. None means all.
        ignore: codes and families that are not.
    """
    selected = {code for name in select for code in _codes(name)}
    ignored = {code for name in ignore for code in _codes(name)}
    return ignored | ({*RULES} - selected if selected else set())


def _codes(name: str) -> list[str]:
    codes = [rule.code for rule in RULES.values() if name in (rule.code, rule.family)]
    if not codes:
        raise KeyError(name)
    return codes
