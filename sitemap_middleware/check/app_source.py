"""Requests documents and pages from an app within the process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from .. import request_response
from ..captured_response import MAX_HTML_BYTES
from ..middleware import SitemapMiddleware
from ..models import Site
from ..robots_parser import ROBOTS_PATH
from .answers import check_content_type, check_document_response
from .database import DocumentRow
from .document import Document
from .responses import Failure, Response, Robots, follow
from .run import Run

_PIECE_BYTES: Final = 65_536

Fetch = Callable[[str, str, str], request_response.Response]
"""Requests a decoded path below the root, with an Accept-Encoding of "gzip" or "identity", and a query as written."""


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
        for begin in range(0, len(response.body), _PIECE_BYTES):
            document.feed(response.body[begin : begin + _PIECE_BYTES])
        document.close()
        run.report.add_all(check_content_type(response, document.kind), row.url)


@contextlib.contextmanager
def unobserved(fetch: Fetch, middleware: SitemapMiddleware) -> Iterator[Fetch]:
    """Provide a function that requests pages of an app without recording their responses in the app's store.

    The sitemap and robots.txt are requested as usual, because only the app's own service can serve them.
    """
    own, other = middleware.service, middleware.service.unobserving()

    def fetch_unobserved(path: str, encoding: str, query: str) -> request_response.Response:
        if path.endswith(request_response.DOCUMENT_SUFFIXES):
            return fetch(path, encoding, query)
        middleware.service = other
        try:
            return fetch(path, encoding, query)
        finally:
            middleware.service = own

    try:
        yield fetch_unobserved
    finally:
        other.close()


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
