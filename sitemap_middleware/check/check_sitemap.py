"""Runs a check: reads a sitemap with all documents that it names, requests its pages, and returns the findings.

The documents come from files, or from a client of the web or of an app. The responses are checked, too.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import re
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from ..exceptions import SitemapError
from ..listing.reports import EvaluatedUrl
from .clients import Client, Failure, Response
from .document import Document, check_index_date
from .findings import RULES, Finding, Problem, Severity, quoted
from .pages import PageChecks, check_site_robots
from .reader import MAX_BYTES
from .run import ListedDocument, Pages, Run, Settings
from .values import check_loc, resolved, without_credentials

BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_REFUSALS: Final = frozenset({403, 406, 429})
_SITEMAP_TYPE: Final = re.compile(
    r"(?:application|text)/(?:[\w.+-]+\+)?xml|application/(?:x-)?gzip|(?:application|binary)/octet-stream|text/plain"
)
CONCURRENT_DOCUMENTS: Final = 4
CONCURRENT_PAGES: Final = 8

Job = Coroutine[Any, Any, None]
OnProgress = Callable[[int, int | None], None]
"""Takes the number of documents that were read, and that of all; then the same for pages."""


class FileSource:
    """A file, with the documents of its folder that it names; or all documents of a folder.

    Args:
        path: the first document, or a folder, of which each `*.xml` and `*.xml.gz` is a document.
        location: the URL that the first document will be served at, or the folder, which ends with a slash. None if
            it is not known.
    """

    def __init__(self, path: Path, location: str | None = None) -> None:
        self.name = str(path)
        self.request_time: float | None = None
        self._path = path
        self._location = location
        self._shown_folder = path if path.is_dir() else path.parent
        self._folder = self._shown_folder.resolve()
        self._first = dict[Path, str]()

    async def first_documents(self) -> list[tuple[str, str | None]]:
        """Return the path and the location of the file, or of those in the folder, but for compressed copies of others.

        Raises `SitemapError` if there is none.
        """
        if not self._path.is_dir():
            return [(self.name, self._location)]
        names = (file for file in self._path.iterdir() if file.name.lower().endswith((".xml", ".xml.gz")))
        found = sorted(file for file in names if file.is_file())
        files = [file for file in found if file.suffix.lower() == ".xml" or file.with_suffix("") not in found]
        if not files:
            raise SitemapError(f"the folder {self._path} has no file *.xml or *.xml.gz: name the file to check")
        self._first = {file.resolve(): str(file) for file in files}
        base = self._location
        return [(str(file), urljoin(base, quote(file.name)) if base else None) for file in files]

    async def read(self, listed: ListedDocument, run: Run) -> None:
        """Check a document. One that an index names is searched for in the folder of the index."""
        file = self._find(listed.url) if listed.parent is not None else Path(listed.url)
        if file is None:
            text = f"no file of {self._shown_folder} is this sitemap, so it was not checked"
            run.report(("index-file-missing", text), listed.url)
            run.is_complete = False
        elif listed.parent is not None and file in self._first:  # it was read before the index named it
            check_index_date(run, run.named[self._first[file]], listed.index_latest)
        else:
            if listed.parent is not None:
                listed.url = str(self._shown_folder / file.relative_to(self._folder))
            try:
                with file.open("rb") as stream:
                    Document(run, listed, listed.location).check(stream)
            except OSError as error:
                raise SitemapError(f"{file} cannot be read: {error.strerror}") from error

    def _find(self, url: str) -> Path | None:
        """The file that a URL of an index stands for: by the path from the folder of the index, else by its name."""
        path = unquote(urlsplit(url).path)
        base = unquote(urlsplit(urljoin(self._location or "/", ".")).path)
        for name in (path.removeprefix(base), path.rpartition("/")[2]):
            # A name may be too long, contain a null character, or lead in a circle of links.
            with suppress(OSError, ValueError, RuntimeError):
                file = (self._folder / name.lstrip("/")).resolve()
                if file.is_relative_to(self._folder) and file.is_file():
                    return file
        return None


class ClientSource:
    """The documents of the URL of a sitemap, or of that of a site: its robots.txt then names the sitemaps."""

    def __init__(self, url: str, client: Client, request_time: float) -> None:
        self.name = url
        self.request_time: float | None = request_time
        self._client = client

    async def first_documents(self) -> list[tuple[str, str | None]]:
        """Return the URL, or those of the sitemaps of a site: of its robots.txt, or else /sitemap.xml."""
        parts = urlsplit(self.name)
        if parts.path not in ("", "/") or parts.query:
            return [(self.name, self.name)]
        robots = await self._client.robots_txt(self.name)
        found = [resolved(robots.url, url) for url in robots.sitemaps] if robots is not None else []
        return [(url, url) for url in dict.fromkeys(found or [urljoin(self.name, "/sitemap.xml")])]

    async def read(self, listed: ListedDocument, run: Run) -> None:
        """Request a document, and check the response and what it contains."""
        url = listed.url
        robots = await self._client.robots_txt(url)
        refusal = "" if robots is None or robots.allows(url) else robots.refusal
        response = await self._client.get(url, MAX_BYTES + 1)
        problem = response.problem("fetch", "the server") if response.status else _failure_problem(response)
        problems = [] if problem is None else [problem]
        if response.status in _REFUSALS and (await self._client.get(url, 0, BROWSER)).status == 200:
            problems = [("fetch-user-agent", f"the server answers {response.status}, and 200 to a browser")]
        if response.failure is Failure.ROBOTS and refusal:
            problems = []
        elif response.failure is Failure.ROBOTS and listed.parent is None:
            raise SitemapError(f"{response.reason}, though Google and Bing may: give --ignore-robots")
        if refusal:
            problems.append(("fetch-robots", refusal))
        if response.status == 200 and _coding(response) not in ("", "identity", "gzip", "x-gzip"):
            text = f"the response has Content-Encoding: {_coding(response)[:100]}"
            problems.append(("fetch-content-encoding", text))
        if response.status == 200 and {code for code, _ in problems} <= {"fetch-redirect", "fetch-robots"}:
            document = Document(run, listed, response.url)
            end = _failure_problem(response) if response.failure is not None else None
            document.check(io.BytesIO(response.body), is_declared_gzip=_coding(response).endswith("gzip"), end=end)
            media_type = response.header("content-type").partition(";")[0].strip().lower()
            if document.kind and not _SITEMAP_TYPE.fullmatch(media_type):
                said = f"the media type is {quoted(media_type)}" if media_type else "the response has no Content-Type"
                problems.append(("fetch-content-type", said))
        else:
            run.is_complete = False
        for problem in problems:
            run.report(problem, url)


def _failure_problem(response: Response) -> Problem:
    if response.failure in (Failure.ROBOTS, Failure.ELSEWHERE):
        return "index-not-all-read", f"{response.reason}, so it was not checked"
    codes = {Failure.TIMEOUT: "fetch-timeout", Failure.REDIRECTS: "fetch-redirect-loop"}
    return codes.get(response.failure or Failure.CONNECTION, "fetch-failed"), response.reason


def _coding(response: Response) -> str:
    return response.header("content-encoding").strip().lower()


async def check_sitemap(
    source: FileSource | ClientSource,
    settings: Settings,
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
        requested = {url.loc for url in chosen}
        found = await asyncio.to_thread(lambda: [*check_coverage(known(failures), requested, reasons, int(run.now))])
        for problem, loc in found:
            run.report(problem, loc, source.name)
        for failure in failures:
            run.report(("coverage-values", failure), source.name)
    if client is not None:
        if isinstance(source, ClientSource):
            await check_site_robots(client, run, source.name)
        page_checks = PageChecks(client, run)
        done = itertools.count(1)
        checks = map(page_checks.check, chosen)
        await _run_all(checks, CONCURRENT_PAGES, lambda: on_progress(next(done), len(chosen)))
        if settings.pages is Pages.ALL and run.is_complete:
            page_checks.report_orphans()
    if run.is_complete:
        _report_vanished(run, settings.earlier or (), source.name, reasons)
    run.chosen = [url.loc for url in chosen] if client is not None else []
    run.findings = _sorted(run)
    return run


def _report_vanished(run: Run, earlier: Iterable[str], name: str, reasons: Mapping[str, str]) -> None:
    """Report URLs of a baseline that are no longer listed, with whatever scheme, with the reasons that are known."""
    listed = {page.partition("://")[2] for page in run.pages}
    for url in earlier:
        if url.partition(" ")[0] not in RULES and check_loc(url).page.partition("://")[2] not in listed:
            reason = f"; now {reasons[url]}" if url in reasons else ""
            run.report(("coverage-vanished", f"the URL was listed before{reason}"), url, name)


def sitemap_urls(target: str) -> list[str]:
    """Return the URLs that the sitemap at a URL lists, or of a site; or that in a file or a folder.

    A URL needs the extra `check`. Raises `SitemapError` if a document cannot be read, with the reason.
    """

    async def of_web() -> Run:
        from .web_client import WebClient  # needs httpx

        async with WebClient(target) as client:
            return await check_sitemap(ClientSource(name, client, time.time()), Settings())

    name, is_url = without_credentials(target), target.startswith(("http://", "https://"))
    result = asyncio.run(of_web() if is_url else check_sitemap(FileSource(Path(target)), Settings()))
    if not result.is_complete:
        errors = [finding for finding in result.findings if finding.rule.severity is Severity.ERROR]
        reason = f"{errors[-1].document}: {errors[-1].text}" if errors else "it names what cannot be read"
        raise SitemapError(f"{name} was not read to its end: {reason}")
    return [url.loc for url in result.urls]


def check_coverage(
    urls: Iterable[EvaluatedUrl], requested: Collection[str], reasons: dict[str, str], began: int
) -> Iterator[tuple[Problem, str]]:
    """Yield what differs between what is listed and what was seen, with the URL that it is about.

    Nobody need be told to request what this run requests, nor that nothing was seen before it began, such as in CI.
    Why other URLs are not listed is added to `reasons`.
    """
    never_seen, is_visited = list[str](), False
    for known in urls:
        is_visited = is_visited or 0 < known.last_seen < began
        if not known.listed:
            reasons[known.url] = known.reason
        if known.excluded:
            continue
        if known.listed and known.status is None:
            if known.url not in requested:
                never_seen.append(known.url)
        elif known.listed and known.status != 200:
            yield ("coverage-listed-bad", f"the last response had the status {known.status}"), known.url
        elif not known.listed and known.status == 200:
            yield ("coverage-not-listed", f"the page is left out: {known.reason}"), known.url
    if is_visited:
        yield from ((("coverage-never-seen", "no response of the page was seen"), url) for url in never_seen)


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
    started = 0

    def jobs() -> Iterator[Job]:
        nonlocal started
        while started < min(run.settings.max_documents, len(run.documents)) and not run.is_full:
            started += 1
            yield source.read(run.documents[started - 1], run)

    before = -1
    while before < started:  # what was read may name further documents
        before = started
        await _run_all(jobs(), CONCURRENT_DOCUMENTS, lambda: on_progress(run.checked, len(run.documents)))
    if started < len(run.documents):
        text = f"the sitemap has {len(run.documents):,} documents, and {started:,} were checked"
        run.report(("index-not-all-read", text), source.name)
        run.is_complete = False


async def _run_all(jobs: Iterator[Job], concurrent: int, on_done: Callable[[], None]) -> None:
    """Run jobs, so many at the same time, and call `on_done` after each."""

    async def run_some() -> None:
        for job in jobs:
            await job
            on_done()

    await asyncio.gather(*(run_some() for _ in range(concurrent)))
