"""Where documents and pages come from: the interface, files, and an app within the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, unquote, urljoin, urlsplit

from ..exceptions import SitemapError
from ..http import messages
from ..http.captured_response import MAX_HTML_BYTES
from ..http.robots_parser import ROBOTS_PATH
from ..models import Site
from .answers import check_content_type, check_document_response
from .database import DocumentRow
from .document import Document
from .responses import Failure, Response, Robots, follow
from .run import Run

_READ_BYTES: Final = 65_536

Fetch = Callable[[str, str, str], messages.Response]
"""Requests a decoded path below the root, with an Accept-Encoding of "gzip" or "identity", and a query as written."""


class Source(Protocol):
    """Reads documents: from the web, from disk, from an app."""

    name: str
    """The URL or the path that the run is about."""
    location: str | None
    """The URL that the first document is served at, if it is known."""
    request_time: float | None
    """When the first document was requested, in POSIX seconds. None if documents are not made on request."""

    async def first_documents(self) -> Sequence[str]:
        """Return the URLs or the paths with which to begin."""
        ...

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Check a document. What prevents it from being read is reported."""
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

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Check a document. One that an index names is searched for in the folder of the index."""
        if not document.parent:
            file = Path(document.url)
            location = urljoin(self._base, quote(file.name)) if self._base else self.location
            self._check(file, Document(run, document, location))
            return
        found = self._find(document.url)
        if found is None:
            text = f"no file of {self._folder} is this sitemap, so it was not checked"
            run.report.add(("index-not-all-read", text), document.url)
        elif found in self._files_of_folder:
            run.documents.completed(is_other_name=True)  # of a file of the folder, which is read anyway
        else:
            self._check(found, Document(run, document, document.url))

    @staticmethod
    def _check(file: Path, document: Document) -> None:
        try:
            with file.open("rb") as opened:
                while (piece := opened.read(_READ_BYTES)) and document.feed(piece):
                    pass
        except OSError as error:
            raise SitemapError(f"{file} cannot be read: {error.strerror}") from error
        document.close()

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


class AppSource:
    """The documents of an app's site.

    Args:
        fetch: requests a path from the app.
        site: the site.
        path: the path of the sitemap.
    """

    def __init__(self, fetch: Fetch, site: Site, path: str) -> None:
        self.name: str = f"{site.base_url}{path}"
        self.location: str | None = self.name
        self.request_time: float | None = time.time()
        self._fetch = fetch
        self._base_url = site.base_url

    async def first_documents(self) -> Sequence[str]:
        """Return the URL of the sitemap."""
        return [self.name]

    async def read(self, row: DocumentRow, run: Run) -> None:
        """Request a document from the app, and check the response and what it contains."""
        if not row.url.startswith(f"{self._base_url}/"):
            text = f"the app does not serve it at {self._base_url}, so it was not checked"
            run.report.add(("index-not-all-read", text), row.url)
            return
        response = _response(self._fetch, self._base_url, row.url, "gzip")
        findings = [*check_document_response(response)]
        run.report.add_all(findings, row.url)
        if findings:
            return
        document = Document(run, row, row.url)
        for begin in range(0, len(response.body), _READ_BYTES):
            document.feed(response.body[begin : begin + _READ_BYTES])
        document.close()
        run.report.add_all(check_content_type(response, document.kind), row.url)


class AppPages:
    """The pages of an app's site.

    Args:
        fetch: requests a path from the app.
        site: the site. URLs elsewhere are not requested.
    """

    def __init__(self, fetch: Fetch, site: Site) -> None:
        self._fetch = fetch
        self._base_url = site.base_url
        self._root = site.root
        self._robots: Robots | None = None

    async def page(self, url: str) -> Response | None:
        """Request a page, and follow redirects within the site. None if the URL is elsewhere."""
        return await follow(url, self._send) if self._is_own(url) else None

    async def _send(self, url: str) -> Response:
        if not self._is_own(url):  # where a redirect leads: what it answers is not known
            return Response(url, 200)
        try:
            response = _response(self._fetch, self._base_url, url, "identity")
        except Exception as error:  # a server would answer 500
            reason = f"the app raises {type(error).__name__}: {error}"
            return Response(url, failure=Failure.CONNECTION, reason=reason)
        response.body = response.body[: MAX_HTML_BYTES + 1]
        return response

    async def robots_txt(self, url: str) -> Robots | None:
        """Request the app's robots.txt, once. None if the app is mounted below a path, or the URL is elsewhere."""
        if self._root or not self._is_own(url):
            return None
        if self._robots is None:
            url = f"{self._base_url}{ROBOTS_PATH}"
            self._robots = Robots.of(_response(self._fetch, self._base_url, url, "identity"))
        return self._robots

    def _is_own(self, url: str) -> bool:
        return url.startswith(f"{self._base_url}/")


def _response(fetch: Fetch, base_url: str, url: str, encoding: str) -> Response:
    """Request a URL of an app's site."""
    path, _, query = url.removeprefix(base_url).partition("#")[0].partition("?")
    response = fetch(unquote(path), encoding, query)
    return Response(url, response.status, response.headers, response.body)
