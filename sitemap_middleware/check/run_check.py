"""Runs a check: reads a sitemap with all documents that it names, requests its pages, and returns the findings."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ..exceptions import SitemapError
from ..listing.evaluated_urls import EvaluatedUrl
from .clients import Client
from .findings import RULES, Finding, Problem
from .pages import PageChecks, check_site_robots
from .run_state import CheckSettings, ListedDocument, Run
from .sources import ClientSource, FileSource
from .url_elements import check_loc, without_credentials

CONCURRENT_DOCUMENTS: Final = 4
CONCURRENT_PAGES: Final = 8

OnProgress = Callable[[int, int | None], None]
"""Takes the number of documents that were read, and that of all; then the same for pages."""


async def check_sitemap(
    source: FileSource | ClientSource,
    settings: CheckSettings,
    *,
    client: Client | None = None,
    known: Callable[[list[str]], Iterable[EvaluatedUrl]] | None = None,
    clock: Callable[[], float] = time.time,
    on_progress: OnProgress = lambda _done, _total: None,
) -> Run:
    """Check a sitemap.

    Args:
        source: where its documents come from.
        settings: what is checked.
        client: requests pages and robots.txt. None if there is nothing to request.
        known: returns what the middleware knows of the app's pages, and adds why their `values` fail to a list.
        clock: returns POSIX seconds.
        on_progress: is called after each document and page.
    """
    run = Run(clock(), source.request_time, settings)
    await _read_documents(source, run, on_progress)
    for problem, document in run.equal_values():
        run.report(problem, document or source.name)
    for problem, url in run.contradictions():
        run.report(problem, url.loc, url.document, url.line)
    chosen, failures, reasons = run.chosen_pages(), list[str](), dict[str, str]()
    if known is not None:  # before the pages are requested: what is known is of other requests
        # On a thread: it calls code of the app, such as its lastmod.
        found = await asyncio.to_thread(lambda: [*check_coverage(known(failures), reasons)])
        for problem, loc in found:
            run.report(problem, loc, source.name)
        for failure in failures:
            run.report(("coverage-values", failure), source.name)
    if client is not None:
        if isinstance(source, ClientSource):
            await check_site_robots(client, run, source.name)
        page_checks = PageChecks(client, run)
        done, pages = itertools.count(1), iter(chosen)

        async def check_some() -> None:
            for page in pages:
                await page_checks.check(page)
                on_progress(next(done), len(chosen))

        await asyncio.gather(*(check_some() for _ in range(CONCURRENT_PAGES)))
        page_checks.report(chosen)
    if not run.unread_since(settings.earlier or ()):
        _report_vanished(run, settings.earlier or (), source.name, reasons)
    run.chosen = [url.loc for url in chosen] if client is not None else []
    run.findings = _sorted(run)
    return run


def _report_vanished(run: Run, earlier: Iterable[str], name: str, reasons: Mapping[str, str]) -> None:
    """Report URLs of a baseline that are no longer listed, with whatever scheme, with the reasons that are known."""
    listed = {page.partition("://")[2] for page in run.pages}
    for page, url in pages_of_baseline(earlier).items():
        if page not in listed:
            reason = f"; now {reasons[url]}" if url in reasons else ""
            run.report(("coverage-vanished", f"the URL was listed before{reason}"), url, name)


def pages_of_baseline(lines: Iterable[str]) -> dict[str, str]:
    """The URLs of a baseline by their pages, without schemes."""
    urls = (line for line in lines if line.partition(" ")[0] not in RULES)
    return {check_loc(url).page.partition("://")[2]: url for url in urls}


def sitemap_urls(target: str, notes: list[str]) -> list[str]:
    """Return the URLs that the sitemap at a URL lists, or of a site; or that in a file or a folder.

    What could not be read is added to `notes`. A URL needs the extra `check`. Raises `SitemapError` if nothing could be
    read, with the reason.
    """

    async def of_web() -> Run:
        from .web_client import WebClient  # needs httpx

        async with WebClient(target) as client:
            return await check_sitemap(ClientSource(name, client, time.time()), CheckSettings())

    name, is_url = without_credentials(target), target.lower().startswith(("http://", "https://"))
    if not is_url and not Path(target).exists():
        raise SitemapError(f"no such file: {target}; give a URL with http:// or https://, a file or a folder")
    result = asyncio.run(of_web() if is_url else check_sitemap(FileSource(Path(target)), CheckSettings()))
    if result.unread:
        first = itertools.islice(result.unread.items(), 3)
        why = ", ".join(f"{url}: {'; '.join(text for _, text in problems)}" for url, problems in first)
        if not result.urls:
            raise SitemapError(f"{name} could not be read: {why}")
        notes.append(f"documents that could not be read: {len(result.unread):,}; their URLs are missing here: {why}")
    return [url.loc for url in result.urls]


def check_coverage(urls: Iterable[EvaluatedUrl], reasons: dict[str, str]) -> Iterator[tuple[Problem, str]]:
    """Yield what differs between what is listed and what was seen, with the URL that it is about.

    Why other URLs are not listed is added to `reasons`.
    """
    for known in urls:
        if not known.listed:
            reasons[known.url] = known.reason
        if known.excluded:
            continue
        if known.listed and known.status not in (None, 200):
            yield ("coverage-listed-bad", f"the last response had the status {known.status}"), known.url
        elif known.failure:
            yield ("coverage-failing", known.failure), known.url
        elif not known.listed and known.status == 200:
            yield ("coverage-not-listed", f"the page is left out: {known.reason}"), known.url


def _sorted(run: Run) -> list[Finding]:
    """The findings by document and line, those about pages last."""
    positions = {document.url: number for number, document in enumerate(run.documents)}

    def position(finding: Finding) -> tuple[int, bool, int, int, str]:
        document = positions.get(finding.document, -1)
        return document, finding.rule.family == "page", finding.line, finding.column, finding.url

    return sorted(run.findings, key=position)


async def _read_documents(source: FileSource | ClientSource, run: Run, on_progress: OnProgress) -> None:
    """Read all documents, each once."""
    first = await source.first_documents()
    for name, location in first:
        run.add_document(ListedDocument(name, location))
    if len(first) == 1 and (location := first[0][1]):
        run.named[location] = run.documents[0]  # an index may name itself
    started, waiting = 0, deque[asyncio.Task[Callable[[], None]]]()
    while True:
        most = min(run.settings.max_documents, len(run.documents))
        while len(waiting) < CONCURRENT_DOCUMENTS and started < most and not run.is_full:
            waiting.append(asyncio.create_task(source.read(run.documents[started], run)))
            started += 1
        if not waiting:
            break
        check = await waiting.popleft()
        check()  # in the order of the index, so that equal runs find the same; it may name further documents
        on_progress(run.checked, len(run.documents))
    if started < len(run.documents):
        text = f"the sitemap has {len(run.documents):,} documents, and {started:,} were checked"
        run.unread[source.name] = [("index-not-all-read", text)]
        run.report(run.unread[source.name][0], source.name)
