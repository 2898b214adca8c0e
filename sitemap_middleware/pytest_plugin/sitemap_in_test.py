"""The sitemap of an app as a test sees it, for the pytest plugin."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from ..adapters.app_lookup import detect_protocol
from ..adapters.app_runner import running_app
from ..cli.sitemap_files import DocumentMissing, fetch_documents
from ..evidence.page_verdict import Explanation
from ..exceptions import OptionError
from ..http.messages import TEST_CLIENT_WAIT_SECONDS
from ..http.site_urls import parse_base_url
from ..middleware import SitemapMiddleware
from ..models import Site
from ..service import SitemapService

_MAX_LINES: Final = 18
"""Pages in each half of a text about a sitemap, which is to have 40 lines at most."""

_XML: Final = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


class SitemapOf(Protocol):
    """The fixture `sitemap_of`."""

    def __call__(self, app: Any, *, base_url: str | None = None) -> SitemapInTest:
        """Read the sitemap of an app, as `read_sitemap` does."""


class SitemapInTest:
    """The pages that an app lists. ``"/about" in sitemap`` tells whether a page is among them.

    Paths are decoded, below the root path, and in the order of the sitemap.
    """

    def __init__(self, site: Site, entries: Mapping[str, str | None], reasons: _Reasons) -> None:
        self.locs: list[str] = list(entries)
        """The `<loc>` of each page."""
        self.paths: list[str] = [_path_of(site, loc) for loc in entries]
        """The path of each page."""
        self.dates: dict[str, str] = {_path_of(site, loc): lastmod for loc, lastmod in entries.items() if lastmod}
        """The `<lastmod>` of each page that has one, by path: text as it is written, such as "2024-05-01"."""
        self.reasons: Mapping[str, str] = reasons
        """Why a page is not listed, by path. It can be asked for any path; it contains those that the app has."""

    def __contains__(self, page: object) -> bool:
        """Whether a page is listed: its path, or its loc."""
        return page in self.paths or page in self.locs

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        listed = [f"{path} ({self.dates[path]})" if path in self.dates else path for path in self.paths]
        left_out = [f"{path}: {reason}" for path, reason in self.reasons.items()]
        return "\n".join(
            [f"pages listed: {len(self)}", *_first(listed), f"not listed: {len(left_out)}", *_first(left_out)]
        )


def _first(lines: list[str]) -> list[str]:
    """The first of some lines, and how many more there are."""
    more = len(lines) - _MAX_LINES
    return lines if more <= 0 else [*lines[:_MAX_LINES], f"and {more} more"]


class _Reasons(dict[str, str]):
    """Why paths are not listed. A path that is not known is explained when it is asked for."""

    def __init__(self, reasons: Mapping[str, str], explain: Callable[[str], Explanation]) -> None:
        super().__init__(reasons)
        self._explain = explain

    def __missing__(self, path: str) -> str:
        explanation = self._explain(path)
        if explanation.listed:
            raise KeyError(f"{path} is listed: {explanation.reason}")
        return explanation.reason

    def get(self, path: str, default: Any = None) -> Any:
        """The reason of any path; the default if the page is listed."""
        try:
            return self[path]
        except KeyError:
            return default


def read_sitemap(app: Any, *, base_url: str | None = None) -> SitemapInTest:
    """Request the sitemap of an app. An ASGI app is started and shut down around it.

    Args:
        app: the app as a server gets it, of either protocol.
        base_url: which site of an app that has several; its path is the root path. Default: the site that the test
            requested first, else that of the middleware's own `base_url`, else the first host of `allowed_hosts` or the
            framework's trusted hosts, else localhost.

    Raises:
        MiddlewareLookupError: the app has no SitemapMiddleware, or several.
        SitemapError: the app does not start, or the sitemap cannot be made.
    """
    middleware = SitemapMiddleware.of(app)
    site = _site_of(middleware.service, base_url)
    with running_app(app, asynchronous=detect_protocol(app, app) == "asgi") as running:
        fetch = running.client(site, TEST_CLIENT_WAIT_SECONDS)
        middleware.service.complete_routes(site, running.async_collector)
        documents: dict[str, bytes] = {}
        with suppress(DocumentMissing):  # nothing is listed
            documents = fetch_documents(fetch, site, middleware.service.options.path)
        service = middleware.service  # the first request of a test may replace it
        service.save_pending()
        snapshot = replace(service.snapshot(site, service.store), async_collector=running.async_collector)
        lines = service.url_report([snapshot])
        reasons = {_path_of(site, line.url): line.reason for line in lines if not line.listed}
    later = replace(snapshot, async_collector=None)  # the event loop has ended
    roots = (ET.fromstring(gzip.decompress(body)) for body in documents.values())  # noqa: S314 (ours)
    urls = (url for root in roots for url in root.iter(f"{_XML}url"))
    entries = {str(url.findtext(f"{_XML}loc")): url.findtext(f"{_XML}lastmod") for url in urls}
    return SitemapInTest(site, entries, _Reasons(reasons, lambda path: service.explain(path, later)))


def _site_of(service: SitemapService, base_url: str | None) -> Site:
    if base_url is not None:
        wanted = parse_base_url(base_url, "sitemap_of: base_url")
    else:
        wanted = service.site_resolver.default_site()
    sites = service.site_resolver.sites(wanted)
    if not sites or (base_url is not None and service.site_resolver.refuses(wanted.host)):
        fix = "leave it out, or have the app's base_url or allowed_hosts name it"
        raise OptionError(f"sitemap_of: base_url={base_url!r} is not a site of this app; {fix}")
    return sites[0]


def _path_of(site: Site, loc: str) -> str:
    """The decoded path of a loc below the root path; the loc itself if it is not below it."""
    if not loc.startswith(f"{site.base_url}/"):
        return loc
    return unquote(loc.removeprefix(site.base_url))
