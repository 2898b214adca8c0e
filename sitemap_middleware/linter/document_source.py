"""The interface by which the linter reads documents: from the web, from disk, or from an app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .decompression import Decompressor
from .run_context import Run
from .streamed_document_check import DocumentCheck
from .temporary_url_database import DocumentRow
from .xml_reader import Unreadable


class Source(Protocol):
    """Reads documents: from the web, from disk, from an app."""

    name: str
    """The URL or the path that the run is about."""
    location: str | None
    """The URL that the first document is served at, if it is known."""
    request_time: float | None
    """When the first document was requested, in POSIX seconds. None if documents are not made on request."""

    async def first_documents(self) -> Sequence[str]:
        """Return the URLs or the path with which to begin."""
        ...

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Check a document. What prevents it from being read is reported."""
        ...


class DocumentFeed:
    """Passes a document to its check, decompressed."""

    def __init__(self, check: DocumentCheck) -> None:
        self._check = check
        self._decompressor = Decompressor()
        self._is_over = False

    def feed(self, piece: bytes) -> bool:
        """Pass on a piece. Return whether the check takes further ones."""
        try:
            for plain in () if self._is_over else self._decompressor.feed(piece):
                self._check.feed(plain)
                if self._check.is_refused:
                    self._is_over = True
                    break
        except Unreadable as error:
            self._check.refuse(error.rule, error.text)
            self._is_over = True
        return not self._is_over

    def close(self) -> None:
        """Say that the document is complete."""
        if self._is_over:
            return
        try:
            self._check.feed(self._decompressor.close())
        except Unreadable as error:
            self._check.refuse(error.rule, error.text)
        else:
            self._check.close()
