"""Sites: which one a request is for, by a Host that is hostile until it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from . import urls
from .bounded_cache import BoundedCache
from .config import Options
from .http import Request
from .models import Site
from .routing.url_map import URLMap

MAX_HOSTS: Final = 1000
"""Host names remembered, and so sites but base_url's own served, lest strangers make up any number of them."""

MAX_FOREIGN_HOSTS: Final = 100
"""Names remembered that are no site's own, but a proxy's or strangers': all of them stand for base_url's."""

MAX_ROOTS: Final = 32
"""Root paths of which sites are served by one process, beside the one that the app declares."""

MAX_ROOT_CHARS: Final = 255
"""Characters of the longest of these."""

HostTrust = Literal["own", "foreign", "none"]
"""How a Host stands to its site: the site's own; a proxy's, or a stranger's; or no host at all."""

_SiteKey = tuple[str, str, str]
"""Scheme, Host and root of a request."""


class SiteResolver:
    """Judges hosts, and remembers those that are good.

    The host of a site is that of base_url; else one that the options or the
    framework's own settings trust; else, where neither names any, this machine's.
    A host for which the app has routes of its own is a site of its own.
    """

    def __init__(self, urlmap: URLMap, options: Options) -> None:
        self._urlmap = urlmap
        self._base = options.site
        self._allowed = options.allowed_hosts
        self._readings = 0
        self._known: dict[_SiteKey, tuple[Site, HostTrust]] = {}
        self._foreign = BoundedCache[_SiteKey, tuple[Site, HostTrust]](MAX_FOREIGN_HOSTS)
        self._roots = {""}
        """Root paths that were met."""
        self._first: Site | None = None
        """The first that was asked for, where no other is to be spoken of."""

    def resolve_request(self, request: Request) -> tuple[Site | None, HostTrust]:
        """The site of a request, None where it is none's; and how its Host stands to it.

        A development machine's host is no site's behind a proxy: the public one is another.
        """
        if request.key[3] and request.has_dynamic_root:
            return None, "none"
        site, standing = self.resolve(request.scheme, request.host, request.root)
        if site is not None and site.loopback and self._base is None and request.is_forwarded:
            trusted = (*self._allowed, *self._urlmap.trusted_hosts)
            if not urls.is_host_allowed(site.host, trusted):
                return None, "none"
        return site, standing

    def resolve(self, scheme: str, host: str, root: str) -> tuple[Site | None, HostTrust]:
        """The site, None where it is none's; and how the Host stands to it."""
        if self._readings != self._urlmap.reload_count:
            self._known.clear()
            self._foreign = BoundedCache(MAX_FOREIGN_HOSTS)
            self._first = None
            self._readings = self._urlmap.reload_count
        asked = scheme, host, root
        known = self._known.get(asked) or self._foreign.get(asked)
        if known is not None:
            return known
        site, standing = self._resolve_new(scheme, host, root)
        if site is None or not self._has_room_for_root(site.root):
            return None, "none"
        if standing != "own":
            self._foreign.put(asked, (site, standing))
        elif len(self._known) < MAX_HOSTS:
            self._known[asked] = site, standing
        elif not self._is_named_host(site):
            return None, "none"
        if self._first is None and (self._base is None or site.host == self._base.host):
            self._first = site
        return site, standing

    def _has_room_for_root(self, root: str) -> bool:
        """Whether there is room for a site of this root path, which a stranger may have made up."""
        if root == self._declared_root() or root in self._roots:
            return True
        if len(self._roots) >= MAX_ROOTS or len(root) > MAX_ROOT_CHARS:
            return False
        self._roots.add(root)
        return True

    def _declared_root(self) -> str:
        return urls.root_of(self._urlmap.root_path) or ""

    def is_named(self, site: Site) -> bool:
        """Whether settings name a site in full: its host, and no root path but the app's own."""
        return self._is_named_host(site) and site.root in ("", self._declared_root())

    def _is_named_host(self, site: Site) -> bool:
        """Whether its host was named in full, by us or by the app, so that no number of made-up ones crowds it out."""
        named = (*self._allowed, *self._urlmap.trusted_hosts)
        return (
            site.routed is not None or site.host in named or (self._base is not None and site.host == self._base.host)
        )

    def default_site(self) -> Site:
        """The site to speak of where none is named: base_url's, else the first that was asked for."""
        if self._first is not None:
            return self._first
        root = self._declared_root()
        return replace(self._base or Site("http", "localhost", loopback=True), root=root)

    def _resolve_new(self, scheme: str, host: str, root: str) -> tuple[Site | None, HostTrust]:
        base = self._base
        normal = urls.normal_host(host, scheme)
        quoted = urls.root_of(root)
        if quoted is None:
            return None, "none"
        if normal is not None:
            site = Site(base.scheme if base else scheme, normal, quoted, urls.is_loopback(normal))
            routed = self._routed_host(normal)
            if routed and (base is None or normal != base.host):
                return replace(site, routed=routed), "own"
            if urls.is_host_allowed(normal, self._allowed):
                return site, "own"
            if base is None:
                trusted = self._urlmap.trusted_hosts
                if urls.is_host_allowed(normal, trusted) or (site.loopback and not trusted and not self._allowed):
                    return site, "own"
        if base is None:
            return None, "none"
        standing: HostTrust = "none"
        if normal is not None:
            standing = "own" if urls.is_same_site_host(normal, base.host) else "foreign"
        return replace(base, root=quoted, routed=self._routed_host(base.host)), standing

    def _routed_host(self, host: str) -> str | None:
        """The name under which the URL map has routes for this host alone: with its port, or without."""
        hosts = self._urlmap.table.hosts
        return next((name for name in (host, urls.bare_host(host)) if name in hosts), None)
