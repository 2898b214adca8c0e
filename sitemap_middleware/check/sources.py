"""Where the documents of a sitemap come from: files, or a client of the web or of an app. It checks responses, too."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from ..exceptions import SitemapError
from .clients import AppClient, Client, Failure, Response
from .document import Document, check_index_date
from .findings import Problem, quoted
from .reader import MAX_BYTES
from .run_state import ListedDocument, Run
from .url_elements import resolved

BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

_REFUSALS: Final = frozenset({403, 406, 429})
_SITEMAP_TYPE: Final = re.compile(
    r"(?:application|text)/(?:[\w.+-]+\+)?xml|application/(?:x-)?gzip|(?:application|binary)/octet-stream|text/plain"
)


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
        self.others: list[str] = []
        """The XML files of the folder that are of another kind."""

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

    async def read(self, listed: ListedDocument, run: Run) -> Callable[[], None]:
        """Return what checks a document. One that an index names is searched for in the folder of the index."""
        return partial(self._check, listed, run)

    def _check(self, listed: ListedDocument, run: Run) -> None:
        file = self._find(listed.url) if listed.parent is not None else Path(listed.url)
        if file is None:
            problem = "index-file-missing", f"no file of {self._shown_folder} is this sitemap, so it was not checked"
            run.report(problem, listed.url)
            run.unread[listed.url] = [problem]
        elif listed.parent is not None and file in self._first:  # it was read before the index named it
            check_index_date(run, run.named[self._first[file]], listed.index_latest)
        else:
            if listed.parent is not None:
                listed.url = str(self._shown_folder / file.relative_to(self._folder))
            others = self.others if self._first and "sitemap" not in file.name.lower() else None
            try:
                with file.open("rb") as stream:
                    Document(run, listed, listed.location, others).check(stream)
            except OSError as error:
                raise SitemapError(f"{file} cannot be read: {error.strerror}") from error

    def sitemaps_below(self, run: Run) -> list[str]:
        """The sitemaps in folders below, as far as names show, that were not read: no index names them."""
        read = {document.url.removesuffix(".gz") for document in run.documents}
        below = sorted(map(str, self._path.rglob("*/*sitemap*.xml*")))
        return [file for file in below if file.removesuffix(".gz") not in read]

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
    """The documents of the URL of a sitemap, or of that of a site or its folder: robots.txt then names the sitemaps."""

    def __init__(self, url: str, client: Client, request_time: float) -> None:
        self.name = url
        self.request_time: float | None = request_time
        self._client = client

    async def first_documents(self) -> list[tuple[str, str | None]]:
        """Return the URL, or those of the sitemaps of a site or folder: of its robots.txt, or else its sitemap.xml."""
        parts = urlsplit(self.name)
        is_folder = parts.path.endswith("/") and "sitemap" not in parts.path.lower()  # /sitemap.xml/ is a sitemap
        if (parts.path and not is_folder) or parts.query:
            return [(self.name, self.name)]
        robots = await self._client.robots_txt(self.name)
        found = [resolved(robots.url, url) for url in robots.sitemaps] if robots is not None else []
        if parts.path.strip("/"):
            found = [url for url in found if url.startswith(self.name)]
        return [(url, url) for url in dict.fromkeys(found or [urljoin(self.name, "sitemap.xml")])]

    async def read(self, listed: ListedDocument, run: Run) -> Callable[[], None]:
        """Request a document, and return what checks the response and what it contains."""
        url = listed.url
        robots = await self._client.robots_txt(url)
        refusal = "" if robots is None or robots.allows(url) else robots.refusal
        response = await self._client.get(url, MAX_BYTES + 1)
        problem = response.problem("fetch", "the server") if response.status else _failure_problem(response)
        if problem is not None and response.status in (401, 403) and not isinstance(self._client, AppClient):
            text = "a user and password in the URL are sent, as in https://user:password@example.com/"
            if response.has_credentials:
                text = "the user and password were refused"
            problem = problem[0], f"{problem[1]}; {text}"
        problems = [] if problem is None else [problem]
        if response.status in _REFUSALS and (await self._client.get(url, 0, BROWSER)).status == 200:
            problems = [("fetch-user-agent", f"the server answers {response.status}, and 200 to a browser")]
        if response.failure is Failure.ROBOTS and refusal:
            problems = []
        if refusal:
            problems.append(("fetch-robots", refusal))
        if response.status == 200 and _coding(response) not in ("", "identity", "gzip", "x-gzip"):
            text = f"the response has Content-Encoding: {_coding(response)[:100]}"
            problems.append(("fetch-content-encoding", text))
        return partial(self._check, listed, run, response, problems)

    def _check(self, listed: ListedDocument, run: Run, response: Response, problems: list[Problem]) -> None:
        if response.failure is Failure.ROBOTS and listed.parent is None and problems[0][0] != "fetch-robots":
            raise SitemapError(f"{response.reason}, though Google and Bing may: give --ignore-robots")
        if response.status == 200 and {code for code, _ in problems} <= {"fetch-redirect", "fetch-robots"}:
            document = Document(run, listed, response.url)
            end = _failure_problem(response) if response.failure is not None else None
            document.check(io.BytesIO(response.body), is_declared_gzip=_coding(response).endswith("gzip"), end=end)
            media_type = response.header("content-type").partition(";")[0].strip().lower()
            if document.kind and not _SITEMAP_TYPE.fullmatch(media_type):
                said = f"the media type is {quoted(media_type)}" if media_type else "the response has no Content-Type"
                problems.append(("fetch-content-type", said))
        else:
            run.unread[listed.url] = problems
        for problem in problems:
            run.report(problem, listed.url)


def _failure_problem(response: Response) -> Problem:
    if response.failure in (Failure.ROBOTS, Failure.ELSEWHERE):
        return "index-not-all-read", f"{response.reason}, so it was not checked"
    codes = {Failure.TIMEOUT: "fetch-timeout", Failure.REDIRECTS: "fetch-redirect-loop"}
    return codes.get(response.failure or Failure.CONNECTION, "fetch-failed"), response.reason


def _coding(response: Response) -> str:
    return response.header("content-encoding").strip().lower()
