"""Where the documents of a run come from: files, or a client of the web or of an app. Checks the responses, too."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, unquote, urljoin, urlsplit

from ..exceptions import SitemapError
from .clients import Client, Failure, Response
from .document import Document
from .findings import Problem, quoted
from .reader import MAX_BYTES
from .run import ListedDocument, Run
from .urls import resolved

BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_REFUSALS: Final = frozenset({403, 406, 429})
"""Statuses by which firewalls refuse programs."""
_FAILURES: Final = {Failure.TIMEOUT: "fetch-timeout", Failure.REDIRECTS: "fetch-redirect-loop"}
_NOT_REQUESTED: Final = (Failure.ROBOTS, Failure.ELSEWHERE)
_XML: Final = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?xml")
_OTHER_TYPES: Final = frozenset(
    {"application/gzip", "application/x-gzip", "application/octet-stream", "binary/octet-stream", "text/plain"}
)


class Source(Protocol):
    """Reads documents: from files, or by a client."""

    name: str
    """The URL or the path that the run is about."""
    location: str | None
    """The URL that the first document is served at, if it is known."""
    request_time: float | None
    """When the first document was requested, in POSIX seconds. None if documents are not made on request."""

    async def first_documents(self) -> Sequence[str]:
        """Return the URLs or the paths with which to begin."""
        ...

    async def read(self, document: ListedDocument, run: Run) -> bool:
        """Check a document, and report what prevents it from being read. Return False if it is read anyway."""
        ...


class FileSource:
    """A file, with the documents of its folder that it names; or all documents of a folder.

    Args:
        path: the first document, or a folder, of which each `*.xml` and `*.xml.gz` is a document.
        location: the URL that the first document will be served at, or the folder, which ends with a slash. None if
            it is not known.
    """

    def __init__(self, path: Path, location: str | None = None) -> None:
        self.name: str = str(path)
        self._path = path
        self._folder = path if path.is_dir() else path.parent
        self.location: str | None = None if path.is_dir() else location
        self._base = location if path.is_dir() else None
        self.request_time: float | None = None
        self._files_of_folder = set[Path]()

    async def first_documents(self) -> Sequence[str]:
        """Return the path of the file, or those of the files in the folder. Raises `SitemapError` if it has none."""
        if not self._path.is_dir():
            return [self.name]
        names = (file for file in self._path.iterdir() if file.name.lower().endswith((".xml", ".xml.gz")))
        files = sorted(file for file in names if file.is_file())
        if not files:
            raise SitemapError(f"the folder {self._path} has no file *.xml or *.xml.gz: name the file to check")
        self._files_of_folder = {file.resolve() for file in files}
        return [str(file) for file in files]

    async def read(self, document: ListedDocument, run: Run) -> bool:
        """Check a document. One that an index names is searched for in the folder of the index."""
        location: str | None = document.url
        file = self._find(document.url)
        if document.parent is None:
            file = Path(document.url)
            location = urljoin(self._base, quote(file.name)) if self._base else self.location
        elif file in self._files_of_folder:
            return False
        if file is None:
            text = f"no file of {self._folder} is this sitemap, so it was not checked"
            run.findings.add(("index-not-all-read", text), document.url)
            run.is_complete = False
            return True
        self._check(file, Document(run, document, location))
        return True

    @staticmethod
    def _check(file: Path, document: Document) -> None:
        try:
            with file.open("rb") as stream:
                document.check(stream)
        except OSError as error:
            raise SitemapError(f"{file} cannot be read: {error.strerror}") from error

    def _find(self, url: str) -> Path | None:
        """The file that a URL of an index stands for: by the path from the folder of the index, else by its name."""
        folder = self._folder.resolve()
        path = unquote(urlsplit(url).path)
        base = unquote(urlsplit(urljoin(self.location or self._base or "/", ".")).path)
        for name in (path.removeprefix(base), path.rpartition("/")[2]):
            # A name may be too long, contain a null character, or lead in a circle of links.
            with suppress(OSError, ValueError, RuntimeError):
                file = (folder / name.lstrip("/")).resolve()
                if file.is_relative_to(folder) and file.is_file():
                    return file
        return None


class ClientSource:
    """The documents of a URL.

    Args:
        url: the URL of a sitemap, or that of a site: its robots.txt then names the sitemaps.
        client: requests the documents.
        request_time: the moment, in POSIX seconds.
    """

    def __init__(self, url: str, client: Client, request_time: float) -> None:
        self.name = url
        self.location: str | None = url
        self.request_time: float | None = request_time
        self._client = client

    async def first_documents(self) -> Sequence[str]:
        """Return the URL, or those of the sitemaps of a site: of its robots.txt, or else /sitemap.xml."""
        parts = urlsplit(self.name)
        if parts.path not in ("", "/") or parts.query:
            return [self.name]
        robots = await self._client.robots_txt(self.name)
        found = [resolved(robots.url, url) for url in robots.sitemaps] if robots is not None else []
        return [*dict.fromkeys(found)] or [urljoin(self.name, "/sitemap.xml")]

    async def read(self, document: ListedDocument, run: Run) -> bool:
        """Request a document, and check the response and what it contains."""
        url, findings = document.url, run.findings
        robots = await self._client.robots_txt(url)
        is_forbidden = robots is not None and not robots.allows(url)
        if is_forbidden:
            findings.add(("fetch-robots", "robots.txt forbids crawlers to request the document"), url)
        response = await self._client.get(url, MAX_BYTES + 1)
        problems = [*_response_problems(response)]
        if response.failure is Failure.ROBOTS:
            if document.parent is None and not is_forbidden:
                raise SitemapError(f"{response.reason}, though Google and Bing may: give --ignore-robots")
            problems = problems if not is_forbidden else []
        if response.status in _REFUSALS and (await self._client.get(url, 0, BROWSER)).status == 200:
            text = f"the server answers {response.status}, and 200 to a browser"
            problems[-1] = ("fetch-user-agent", text)
        findings.add_all(problems, url)
        if response.status != 200 or any(code != "fetch-redirect" for code, _ in problems):
            run.is_complete = False
            return True
        checked = Document(run, document, response.url)
        end = _failure_problem(response) if response.failure is not None else None
        is_gzip = _coding(response).endswith("gzip")
        checked.check(io.BytesIO(response.body), is_declared_gzip=is_gzip, end=end)
        if checked.kind is not None:
            findings.add_all(_type_problems(response), url)
        return True


def _response_problems(response: Response) -> Iterator[Problem]:
    """What is wrong with the response of a document, but for its body."""
    if not response.status:
        yield _failure_problem(response)
        return
    if response.leads_to_login:
        yield "fetch-login", f"the URL redirects to {response.url}"
    elif response.redirects:
        yield "fetch-redirect", f"the URL redirects to {response.steps}"
    if response.status == 401:
        yield "fetch-login", "the server answers 401"
    elif response.status != 200:
        yield "fetch-status", f"the server answers {response.status}"
    elif _coding(response) not in ("", "identity", "gzip", "x-gzip"):
        yield "fetch-content-encoding", f"the response has Content-Encoding: {_coding(response)[:100]}"


def _failure_problem(response: Response) -> Problem:
    if response.failure in _NOT_REQUESTED:
        return "index-not-all-read", f"{response.reason}, so it was not checked"
    code = _FAILURES.get(response.failure, "fetch-failed") if response.failure is not None else "fetch-failed"
    return code, response.reason


def _coding(response: Response) -> str:
    return response.header("content-encoding").strip().lower()


def _type_problems(response: Response) -> Iterator[Problem]:
    media_type = response.header("content-type").partition(";")[0].strip().lower()
    if not (_XML.fullmatch(media_type) or media_type in _OTHER_TYPES):
        said = f"the media type is {quoted(media_type)}" if media_type else "the response has no Content-Type"
        yield "fetch-content-type", said
