"""Reads documents from an app, in process, for the command `check`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import unquote

from ..linter.checks.response import check_content_type, check_status
from ..linter.document_check import DocumentCheck
from ..linter.rules import index
from ..linter.run_state import Run
from ..linter.sitemap_set import DocumentRow
from ..linter.source import DocumentFeed
from ..models import Site
from .app_client import Fetch

_PIECE_BYTES: Final = 65_536


class AppSource:
    """The documents of an app's site.

    Args:
        fetch_document: requests a path from the app.
        site: the site.
        path: the path of the sitemap.
        clock: returns POSIX seconds.
    """

    def __init__(self, fetch_document: Fetch, site: Site, path: str, clock: Callable[[], float] = time.time) -> None:
        self.name = f"{site.base_url}{path}"
        self.location: str | None = self.name
        self.request_time: float | None = clock()
        self._fetch = fetch_document
        self._base_url = site.base_url

    async def first_documents(self) -> Sequence[str]:
        """Return the URL of the sitemap."""
        return [self.name]

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Request a document from the app, and check the response and what it contains."""
        if not document.url.startswith(f"{self._base_url}/"):
            text = f"the app does not serve it at {self._base_url}, so it was not checked"
            run.report.add(index.NOT_ALL_READ, document.url, text)
            return
        response = self._fetch(unquote(document.url.removeprefix(self._base_url)), "gzip")
        if (finding := check_status(response.status)) is not None:
            run.report.add(finding[0], document.url, finding[1])
            return
        check = DocumentCheck(run, document, document.url)
        feed = DocumentFeed(check)
        for begin in range(0, len(response.body), _PIECE_BYTES):
            feed.feed(response.body[begin : begin + _PIECE_BYTES])
        feed.close()
        content_type = next((value for name, value in response.headers if name == "content-type"), "")
        if (finding := check_content_type(content_type, check.kind)) is not None:
            run.report.add(finding[0], document.url, finding[1])
