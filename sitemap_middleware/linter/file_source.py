"""Reads documents from files, and passes them to their check."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from ..exceptions import SitemapError
from .document_source import DocumentFeed
from .rules import size_and_index
from .run_context import Run
from .streamed_document_check import DocumentCheck
from .temporary_url_database import DocumentRow

_READ_BYTES: Final = 65_536


class FileSource:
    """Documents in the folder of a file.

    Args:
        file: the first document.
        location: the URL that it will be served at, if it is known.
    """

    def __init__(self, file: Path, location: str | None = None) -> None:
        self.name: str = str(file)
        self._file = file
        self.location = location
        self.request_time: float | None = None

    async def first_documents(self) -> Sequence[str]:
        """Return the path of the file."""
        return [self.name]

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Check a document. One that an index names is searched for in the folder of the index."""
        if not document.parent:
            self._check(self._file, DocumentCheck(run, document, self.location))
            return
        file = self._find(document.url)
        if file is None:
            text = f"no file of {self._file.parent} is this sitemap, so it was not checked"
            run.report.add(size_and_index.NOT_ALL_READ, document.url, text)
            return
        self._check(file, DocumentCheck(run, document, document.url))

    @staticmethod
    def _check(file: Path, check: DocumentCheck) -> None:
        document = DocumentFeed(check)
        try:
            with file.open("rb") as opened:
                while (piece := opened.read(_READ_BYTES)) and document.feed(piece):
                    pass
        except OSError as error:
            raise SitemapError(f"{file} cannot be read: {error.strerror}") from error
        document.close()

    def _find(self, url: str) -> Path | None:
        """The file that a URL of an index stands for: by the path from the folder of the index, else by its name."""
        folder = self._file.parent.resolve()
        path = unquote(urlsplit(url).path)
        base = unquote(urlsplit(urljoin(self.location, ".")).path) if self.location else "/"
        for name in (path.removeprefix(base), path.rpartition("/")[2]):
            # A name may be too long, contain a null character, or lead in a circle of links.
            with suppress(OSError, ValueError, RuntimeError):
                file = (folder / name.lstrip("/")).resolve()
                if file.is_relative_to(folder) and file.is_file():
                    return file
        return None
