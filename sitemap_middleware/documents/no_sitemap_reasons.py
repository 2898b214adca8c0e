"""Explains why a site has no sitemap: to clients in the response, to the site's owner in the log, once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from ..evidence.page_verdict import other_canonical
from ..exceptions import StoreError
from ..http.messages import GENERATING_HEADER
from ..http.request_filter import printable
from ..http.urls import canonical_hint
from ..listing.route_report import unmatched_patterns
from ..models import Page, Site
from ..options.table import Options
from ..routing.route_table import RouteTable
from ..stores.base import Store
from ..util import WarnOnce

MAX_PAGES_CHECKED: Final = 200
"""If no page is listed, this many pages are checked for a canonical link to another URL."""

UNTRUSTED_HOST_REASON: Final = (
    "No sitemap for this host: it is not in allowed_hosts and base_url is not set."
    ' Set SITEMAP_BASE_URL, or pass base_url="https://example.com" or allowed_hosts=("example.com",)'
    " to SitemapMiddleware."
)

UNKNOWN_TENANT_REASON: Final = (
    "No sitemap for this host: the function base_url gives no site for it. Have it return the site's scheme and host,"
    ' such as "https://example.com".'
)

UNTRUSTED_ROOT_REASON: Final = (
    "No sitemap for this host and root path: they are not configured."
    ' Pass base_url="https://example.com" to SitemapMiddleware, and wrap the app that has the root path.'
)

TOO_MANY_SITES_REASON: Final = (
    "No sitemap for this site now: the app answers for too many hosts, ports and root paths that no setting names."
    " Try again in a minute, or name this host in allowed_hosts."
)

_NO_ROUTES_REASON: Final = (
    "no routes of the app could be found: give SitemapMiddleware routes=app, or name pages by include and learn."
)


class Unavailable(Exception):
    """A document cannot be made now, and there is no earlier one to serve. The message is for clients."""

    headers: tuple[tuple[str, str], ...] = ()


class BeingGenerated(Unavailable):
    """There is no earlier document to serve while the first one is generated."""

    headers = (GENERATING_HEADER,)

    def __init__(self) -> None:
        super().__init__("it is being generated, try again in a moment")


@dataclass(eq=False)
class NoSitemapReasons:
    """Explains and logs why a site has no sitemap."""

    options: Options
    store: Store
    _checked_table: RouteTable | None = None
    _warn_once: WarnOnce = field(default_factory=WarnOnce)

    def reason(self, site: Site, table: RouteTable) -> str:
        """The reason for clients."""
        nothing = f"There is nothing to list in {self.options.path}"
        if not table.routes:
            self.warn_of_no_routes(table)
            return f"{nothing}, and {_NO_ROUTES_REASON}"
        page = self._page_with_other_canonical(site)
        if page is None:
            return f"{nothing}: no page is known that may be listed. The command sitemap-middleware routes says why."
        canonical = other_canonical(page) or ""
        self._warn_once(
            "canonical",
            "no page of %s is listed: pages name other URLs as canonical, such as %s, which names %s; %s",
            site.base_url,
            unquote(page.path),
            canonical[:500],
            canonical_hint(page.path, canonical),
        )
        return f"{nothing}: its pages name other URLs as canonical. The log says which."

    def warn_of_no_routes(self, table: RouteTable) -> None:
        """Warn if there is no sitemap because no routes were found."""
        if not table.routes:
            self._warn_once("routes", "there is no sitemap, and %s", _NO_ROUTES_REASON)

    def warn_of_proxy_fix(self, proxy_middleware: Any) -> None:
        """Warn if a middleware such as ProxyFix, which reads a proxy's headers, runs inside this one and matters."""
        if proxy_middleware is not None and (self.options.site is None or getattr(proxy_middleware, "x_prefix", None)):
            self._warn_once(
                "proxy",
                "%s runs inside SitemapMiddleware, which therefore sees neither the public host and scheme nor the"
                " prefix: wrap it around SitemapMiddleware instead",
                type(proxy_middleware).__name__,
            )

    def warn_of_host(self, host: str) -> None:
        """Warn once that there is no sitemap for a host that no setting names. Any client may have invented it."""
        if self.options.site is None and self.options.site_of_host is None:
            self._warn_once(
                "host",
                "no sitemap for the host '%s': it is not in allowed_hosts and base_url is not set;"
                " set SITEMAP_BASE_URL, or pass base_url or allowed_hosts to SitemapMiddleware",
                printable(host),
            )

    def warn_of_unmatched(self, table: RouteTable) -> None:
        """Warn of patterns in options that match no route, once each."""
        if table is not self._checked_table:
            self._checked_table = table
            for _, reason in unmatched_patterns(self.options, table):
                self._warn_once(reason, "%s", reason)

    def _page_with_other_canonical(self, site: Site) -> Page | None:
        """A page that would be listed if its canonical link did not name another URL; None if there is none."""
        with suppress(StoreError):
            parts = self.store.parts(site.store_key)
            pages = (page for number in parts for page in self.store.part(site.store_key, number))
            return next(filter(other_canonical, islice(pages, MAX_PAGES_CHECKED)), None)
        return None
