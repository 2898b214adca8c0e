"""Where documents come from: the interface, and the source that reads files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, unquote, urljoin, urlsplit

from ..exceptions import SitemapError
from .database import DocumentRow
from .document import Document
from .run import Run

_READ_BYTES: Final = 65_536


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
        self.location = None if path.is_dir() else location
        self._base = location if path.is_dir() else None
        self.request_time: float | None = None
        self._first: list[str] = [self.name]

    async def first_documents(self) -> Sequence[str]:
        """Return the path of the file, or those of the files in the folder. Raises `SitemapError` if it has none."""
        if self._path.is_dir():
            files = (file for file in self._path.iterdir() if file.name.lower().endswith((".xml", ".xml.gz")))
            self._first = sorted(str(file) for file in files if file.is_file())
            if not self._first:
                raise SitemapError(f"the folder {self._path} has no file *.xml or *.xml.gz: name the file to check")
        return self._first

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
        elif self._path.is_dir() and str(self._folder / found.name) in self._first:
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
