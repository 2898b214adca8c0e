"""Requests documents and pages from an app within the process, for the command `check`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from ..captured_response import MAX_HTML_BYTES
from ..linter.checks.fetch import check_content_type, check_status
from ..linter.checks.listed_page import PageResponse
from ..linter.checks.loc import resolved
from ..linter.document_source import DocumentFeed
from ..linter.listed_pages_check import RobotsText
from ..linter.rules import size_and_index
from ..linter.run_context import Run
from ..linter.streamed_document_check import DocumentCheck
from ..linter.temporary_url_database import DocumentRow
from ..middleware import SitemapMiddleware
from ..models import Headers, Site
from ..request_response import DOCUMENT_SUFFIXES, Response
from ..robots_parser import MAX_ROBOTS_BYTES, ROBOTS_PATH, parse_robots_file
from .in_process_app_client import Fetch

_PIECE_BYTES: Final = 65_536
_MAX_REDIRECTS: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class AppSource:
    """The documents of an app's site.

    Args:
        fetch_document: requests a path from the app.
        site: the site.
        path: the path of the sitemap.
    """

    def __init__(self, fetch_document: Fetch, site: Site, path: str) -> None:
        self.name: str = f"{site.base_url}{path}"
        self.location: str | None = self.name
        self.request_time: float | None = time.time()
        self._fetch = fetch_document
        self._base_url = site.base_url

    async def first_documents(self) -> Sequence[str]:
        """Return the URL of the sitemap."""
        return [self.name]

    async def read(self, document: DocumentRow, run: Run) -> None:
        """Request a document from the app, and check the response and what it contains."""
        if not document.url.startswith(f"{self._base_url}/"):
            text = f"the app does not serve it at {self._base_url}, so it was not checked"
            run.report.add(size_and_index.NOT_ALL_READ, document.url, text)
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
        if (finding := check_content_type(_header(response.headers, "content-type"), check.kind)) is not None:
            run.report.add(finding[0], document.url, finding[1])


@contextlib.contextmanager
def unobserved(fetch: Fetch, middleware: SitemapMiddleware) -> Iterator[Fetch]:
    """Provide a function that requests pages of an app without recording their responses in the app's store.

    The sitemap and robots.txt are requested as usual, because only the app's own service can serve them.
    """
    own, other = middleware.service, middleware.service.unobserving()

    def fetch_unobserved(path: str, encoding: str) -> Response:
        if path.endswith(DOCUMENT_SUFFIXES):
            return fetch(path, encoding)
        middleware.service = other
        try:
            return fetch(path, encoding)
        finally:
            middleware.service = own

    try:
        yield fetch_unobserved
    finally:
        other.close()


class AppPages:
    """The pages of an app's site, for the command `check`.

    Args:
        fetch: requests a path from the app.
        site: the site. URLs elsewhere are not requested.
    """

    def __init__(self, fetch: Fetch, site: Site) -> None:
        self._fetch = fetch
        self._base_url = site.base_url
        self._root = site.root
        self._robots: RobotsText | None = None

    async def page(self, url: str) -> PageResponse | None:
        """Request a page, and follow redirects within the site. None if the URL is elsewhere."""
        if not self._is_own(url):
            return None
        redirects: list[str] = []
        while len(redirects) <= _MAX_REDIRECTS and url not in redirects:
            try:
                response = self._fetch(unquote(url.removeprefix(self._base_url)), "identity")
            except Exception as error:  # a server would answer 500
                return PageResponse(url, 500, failure=f"the app raises {type(error).__name__}: {error}")
            target = _header(response.headers, "location")
            if response.status not in _REDIRECTS or not target:
                body = response.body[: MAX_HTML_BYTES + 1]
                return PageResponse(url, response.status, response.headers, body, redirects=(*redirects,))
            redirects.append(url)
            url = resolved(url, target).partition("#")[0]
            if not self._is_own(url):
                return PageResponse(url, 200, redirects=(*redirects,))
        return PageResponse(url, 0, redirects=(*redirects,), failure=f"{url} redirects without an end", is_loop=True)

    async def robots_txt(self, url: str) -> RobotsText | None:
        """Request the app's robots.txt, once. None if the app is mounted below a path, or the URL is elsewhere."""
        if self._root or not self._is_own(url):
            return None
        if self._robots is None:
            response = self._fetch(ROBOTS_PATH, "identity")
            file = parse_robots_file(response.body) if response.status == 200 else None
            self._robots = RobotsText(
                f"{self._base_url}{ROBOTS_PATH}",
                response.status,
                file.text if file else "",
                is_too_large=len(response.body) > MAX_ROBOTS_BYTES,
            )
        return self._robots

    def _is_own(self, url: str) -> bool:
        return url.startswith(f"{self._base_url}/")


def _header(headers: Headers, name: str) -> str:
    """The value of a header of a response, whose names are in lower case."""
    return next((value for key, value in headers if key == name), "")
