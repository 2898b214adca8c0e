"""Where documents come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from .decompression import Decompressor
from .document_check import DocumentCheck
from .run_state import Run
from .sitemap_set import DocumentRow
from .xml_reader import Unreadable


class Source(Protocol):
    """Reads documents: from the web, from disk, from an app."""

    first: str
    """The URL or the path of the first document."""
    location: str | None
    """The URL that it is served at, if it is known."""
    request_time: float | None
    """When the first document was requested, in POSIX seconds. None if documents are not made on request."""

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Check a document. What prevents it from being read is reported."""


def feed(check: DocumentCheck, pieces: Iterable[bytes]) -> None:
    """Pass a document to its check, decompressed, and stop once it is refused."""
    decompressor = Decompressor()
    try:
        for piece in pieces:
            for plain in decompressor.feed(piece):
                check.feed(plain)
                if check.is_refused:
                    return
        check.feed(decompressor.close())
    except Unreadable as error:
        check.refuse(error.rule, error.text)
        return
    check.close()
