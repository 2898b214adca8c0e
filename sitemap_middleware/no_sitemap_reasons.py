"""Why there is no sitemap: what strangers are told, and what the log says once to those who can change it."""

from __future__ import annotations

import logging
from typing import Any, Final
from urllib.parse import unquote

from .config import Options
from .evidence.verdict import is_listable_elsewhere
from .exceptions import StoreError
from .listing.unmatched_patterns import unmatched_patterns
from .models import Page, Site
from .routing.route_table import RouteTable
from .stores.base import Store
from .urls import canonical_hint

log = logging.getLogger("sitemap_middleware")

MAX_PAGES_CHECKED: Final = 200
"""Pages of which is looked, if none is listed, whether they name other URLs as canonical."""

MAX_LOGGED_HOST_CHARS: Final = 255
"""Characters of a stranger's Host that are logged."""

ROBOTS_UNKNOWN_REASON: Final = "the app's robots.txt fails, so it is not known what it forbids"

UNTRUSTED_HOST_REASON: Final = (
    "There is no sitemap for this host, because it is not configured."
    ' Set SITEMAP_BASE_URL, or pass base_url="https://example.com" or allowed_hosts=("example.com",)'
    " to SitemapMiddleware."
)

UNTRUSTED_ROOT_REASON: Final = (
    "There is no sitemap for this host and root path, because they are not configured, or there are too many."
    ' Pass base_url="https://example.com" to SitemapMiddleware, and wrap the app that has the root path.'
)

_NO_ROUTES_REASON: Final = (
    ", and no routes of the app could be found: give SitemapMiddleware routes=app, or name pages by include and learn."
)


class NoSitemapReasons:
    """Tells why a site has no sitemap."""

    def __init__(self, options: Options, store: Store) -> None:
        self._options = options
        self._looked_at: RouteTable | None = None
        self._path = options.path
        self._site = options.site
        self._store = store
        self._warned: set[str] = set()

    def reason(self, site: Site, table: RouteTable) -> str:
        """What strangers are told."""
        nothing = f"There is nothing to list in {self._path}"
        if not table.routes:
            self.warn_of_no_routes(table)
            return f"{nothing}{_NO_ROUTES_REASON}"
        astray = self._page_with_other_canonical(site)
        if astray is None:
            return f"{nothing}."
        named = astray.canonical or astray.html_canonical or ""
        self._warn_once(
            "canonical",
            "no page of %s is listed: pages name other URLs as canonical, such as %s, which names %s; %s",
            site.base_url,
            unquote(astray.path),
            named[:500],
            canonical_hint(astray.path, named),
        )
        return f"{nothing}: its pages name other URLs as canonical. The log says which."

    def warn_of_no_routes(self, table: RouteTable) -> None:
        """Warn if there is no sitemap because no routes were found."""
        if not table.routes:
            self._warn_once(
                "routes",
                "there is no sitemap, and no routes of the app could be found: give SitemapMiddleware routes=app,"
                " or name pages by include and learn.",
            )

    def warn_of_proxy_fix(self, found: Any) -> None:
        """Warn if a middleware that corrects requests by a proxy's headers lies inside this one, to some harm.

        Args:
            found: that middleware, or None.
        """
        if found is not None and (self._site is None or getattr(found, "x_prefix", None)):
            self._warn_once(
                "proxy",
                "%s lies inside SitemapMiddleware, which so knows neither the host and scheme that the proxy tells nor"
                " its prefix: wrap it around SitemapMiddleware instead",
                (found if isinstance(found, type) else type(found)).__name__,
            )

    def warn_of_host(self, host: str) -> None:
        """Warn, once, that the sitemap is refused for a host, which may be a stranger's: no setting names it."""
        if self._site is None:
            self._warn_once(
                "host",
                "the sitemap is refused for the host '%s', which no setting names as the site's own: set"
                " SITEMAP_BASE_URL, or give SitemapMiddleware base_url or allowed_hosts",
                "".join(one if one.isascii() and one.isprintable() else "?" for one in host[:MAX_LOGGED_HOST_CHARS]),
            )

    def warn_of_unmatched(self, table: RouteTable) -> None:
        """Warn, once for each, of patterns of the options that match nothing."""
        if table is not self._looked_at:
            self._looked_at = table
            for one in unmatched_patterns(self._options, table):
                self._warn_once(
                    f"{one.option} {one.pattern}",
                    "the option %s has %s, which matches no route of the app; %s",
                    one.option,
                    one.pattern,
                    one.fix,
                )

    def _page_with_other_canonical(self, site: Site) -> Page | None:
        """A page that would be listed if it did not name another URL as canonical."""
        try:
            return next(filter(is_listable_elsewhere, self._store.sample(site.store_key, MAX_PAGES_CHECKED)), None)
        except StoreError:
            return None

    def _warn_once(self, topic: str, message: str, *arguments: object) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            log.warning(message, *arguments)
