"""Resolves the Host of a request to a site, and limits the sites that clients can create by inventing hosts.

A Host is not trusted until a setting allows it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, Literal

from ..http import urls
from ..http.messages import Request
from ..models import Site, StoreKey
from ..options.table import Options
from ..util import BoundedCache, WarnOnce
from .current_routes import AppRoutes

MAX_HOSTS: Final = 1000
"""Resolved hosts that are cached. Clients can invent any number of hosts."""

MAX_FOREIGN_HOSTS: Final = 100
"""Foreign hosts that are cached: names of a proxy, or invented by clients. All of them stand for base_url's site."""

MAX_ROOTS: Final = 32
"""Root paths served by one process, besides the one that the app declares."""

MAX_ROOT_CHARS: Final = 255
"""Maximum length of a root path."""

MAX_UNNAMED_SITES: Final = 1000
"""Sites of one process that no setting names in full, such as those below a wildcard, at root paths or at ports."""

IDLE_SECONDS: Final = 24 * 60 * 60
"""Seconds after its last page when such a site makes room for another one."""

HostTrust = Literal["own", "foreign", "none"]
"""What a Host is to its site: the site's own name; a foreign one, such as a proxy's; or not a host name."""

_SiteKey = tuple[str, str, str]
"""Scheme, Host and root of a request."""


class SiteResolver:
    """Finds the site of a request.

    A site's host is that of base_url; else one that the options or the framework's settings trust; else, if neither
    name any, localhost. A host for which the app declares routes is a separate site.
    """

    def __init__(self, app_routes: AppRoutes, options: Options) -> None:
        self._app_routes = app_routes
        self._clock = options.clock
        self._base = options.site
        self._allowed = options.allowed_hosts
        self._routes_version = 0
        self._cached = BoundedCache[_SiteKey, tuple[Site, HostTrust]](MAX_HOSTS)
        self._foreign = BoundedCache[_SiteKey, tuple[Site, HostTrust]](MAX_FOREIGN_HOSTS)
        self._roots = {""}
        """Root paths seen so far."""
        self._own: dict[tuple[object, ...], tuple[Site, HostTrust]] = {}
        """The sites of requests for a site's own Host without a root path, by the Host, scheme and root, not decoded.

        Nothing else of such a request matters to the result.
        """
        self._first: Site | None = None
        """The first site that was requested."""
        self._known: dict[StoreKey, float] = {}
        """When each site that no setting names had its last page, in POSIX seconds; infinity for named ones."""
        self._warn_once = WarnOnce()

    def resolve_request(self, request: Request) -> tuple[Site | None, HostTrust]:
        """The site of a request, or None; and what its Host is to the site.

        Behind a proxy, localhost is not a site: the public host has another name.
        """
        key = (request.scheme, request.host, request.root)
        if self._routes_version == self._app_routes.version:
            own = self._own.get(key)
            if own is not None:
                return own
        if request.root and request.has_dynamic_root:
            return None, "none"
        site, trust = self.resolve(request.scheme, request.host, request.root)
        if site is None:
            return None, trust
        if site.loopback and self._base is None and request.is_forwarded:
            trusted = (*self._allowed, *self._app_routes.trusted_hosts)
            if not urls.is_host_allowed(site.host, trusted):
                return None, "none"
        is_steady = not request.root and trust == "own" and (self._base is not None or not site.loopback)
        if is_steady and len(self._own) < MAX_HOSTS:
            self._own[key] = site, trust
        return site, trust

    def resolve(self, scheme: str, host: str, root: str) -> tuple[Site | None, HostTrust]:
        """The site of a scheme, Host and root path, or None; and what the Host is to the site."""
        if self._routes_version != self._app_routes.version:
            self._cached = BoundedCache(MAX_HOSTS)
            self._own.clear()
            self._foreign = BoundedCache(MAX_FOREIGN_HOSTS)
            self._first = None
            self._routes_version = self._app_routes.version
        key = scheme, host, root
        cached = self._cached.get(key) or self._foreign.get(key)
        if cached is not None:
            return cached
        site, trust = self._resolve_new(scheme, host, root)
        if site is None or not self._has_room_for_root(site.root):
            return None, "none"
        if trust != "own":
            self._foreign.put(key, (site, trust))
        else:
            self._cached.put(key, (site, trust))
        if self._first is None and (self._base is None or site.host == self._base.host):
            self._first = site
        return site, trust

    def _has_room_for_root(self, root: str) -> bool:
        """Whether a site at this root path may be served. Clients can invent any number of root paths."""
        if root == self._declared_root() or root in self._roots:
            return True
        if len(self._roots) >= MAX_ROOTS or len(root) > MAX_ROOT_CHARS:
            return False
        self._roots.add(root)
        return True

    def _declared_root(self) -> str:
        return urls.root_of(self._app_routes.root_path) or ""

    def _is_named_host(self, site: Site) -> bool:
        """Whether options or the app name its host in full: such a site is served even if the cache is full."""
        return (
            _is_named_by_route(site)
            or (self._base is not None and site.host == self._base.host)
            or site.host in map(_without_dot, self._allowed)
            or site.host in map(_without_dot, self._app_routes.trusted_hosts)  # last, because it searches the app
        )

    def is_known(self, site: Site) -> bool:
        """Whether settings name a site in full, host and root path, or the app has answered for it with a page.

        A development machine is known, unless it has too many ports.
        """
        if site.store_key in self._known:
            return True
        if site.loopback and not site.root and self.has_room():
            self.note_page(site)
            return True
        if not self._is_named_host(site) or site.root not in ("", self._declared_root()):
            return False
        self._known[site.store_key] = math.inf
        return True

    def may_store(self, site: Site) -> bool:
        """Whether a site may have pages and documents in the store: it is known, or there is room for one more."""
        return self.is_known(site) or self.has_room()

    def has_room(self) -> bool:
        """Whether there may be one more site that no setting names. If not, it is logged once."""
        if len(self._known) < MAX_UNNAMED_SITES:
            return True
        since = self._clock() - IDLE_SECONDS
        self._known = {key: at for key, at in self._known.items() if at > since}
        if len(self._known) < MAX_UNNAMED_SITES:
            return True
        self._warn_once(
            "sites",
            "too many sites: the app has answered for %d hosts, ports and root paths that no setting names, within a"
            " day; others have no sitemap: have the app or the server refuse hosts that nobody uses",
            MAX_UNNAMED_SITES,
        )
        return False

    def note_page(self, site: Site) -> None:
        """Note that the app has answered for a site with a page."""
        if not math.isinf(self._known.get(site.store_key, 0.0)):
            self._known[site.store_key] = self._clock()

    def default_site(self) -> Site:
        """The site that `explain` is about if none is given.

        The first that was requested, else base_url's, else that of the first host that is named in full.
        """
        if self._first is not None:
            return self._first
        named = [self._base] if self._base else self.named_sites()
        site = named[0] if named else Site("http", "localhost", loopback=True)
        return replace(site, root=self._declared_root(), routed=self._routed_host(site.host))

    def named_sites(self) -> list[Site]:
        """The sites, without a root path, of the hosts that allowed_hosts or the app's settings name in full.

        If there are only patterns such as ``.example.com``, their domains count. The scheme is https. Of loopback
        hosts, which are named for development, there is only the first, with http, and only if no other host is named.
        """
        trusted = (*self._allowed, *self._app_routes.trusted_hosts)
        names = [name for name in trusted if not name.startswith((".", "*"))] or [
            name[1:] for name in trusted if name.startswith(".")
        ]
        hosts = dict.fromkeys(host for name in names if (host := urls.normal_host(name, "https")) is not None)
        public = [Site("https", host) for host in hosts if not urls.is_loopback(host)]
        return public or [Site("http", host, loopback=True) for host in hosts][:1]

    def refuses(self, host: str) -> bool:
        """Whether requests for a host have no site. If there is a base_url, all have one."""
        return self.resolve("https", host, "")[0] is None

    def foreign_hosts(self) -> list[str]:
        """Some Hosts of requests to this process that are not their site's own, at most three, sorted."""
        hosts = {host for key in self._foreign.kept_keys() if (host := urls.normal_host(key[1], key[0])) is not None}
        return sorted(hosts)[:3]

    def _resolve_new(self, scheme: str, host: str, root: str) -> tuple[Site | None, HostTrust]:
        base = self._base
        normal = urls.normal_host(host, scheme)
        quoted = urls.root_of(root)
        if quoted is None:
            return None, "none"
        if normal is not None:
            site = Site(base.scheme if base else scheme, normal, quoted, urls.is_loopback(normal))
            site = replace(site, routed=self._routed_host(normal))
            if _is_named_by_route(site) and (base is None or normal != base.host):
                return site, "own"
            if urls.is_host_allowed(normal, self._allowed):
                return site, "own"
            if base is None:
                trusted = self._app_routes.trusted_hosts
                if urls.is_host_allowed(normal, trusted) or (site.loopback and not trusted and not self._allowed):
                    return site, "own"
        if base is None:
            return None, "none"
        trust: HostTrust = "none"
        if normal is not None:
            trust = "own" if urls.is_same_site_host(normal, base.host) else "foreign"
        return replace(base, root=quoted, routed=self._routed_host(base.host)), trust

    def _routed_host(self, host: str) -> str | None:
        """The name by which the app has routes for this host only; None if it has none.

        That is the host with or without its port, or a pattern of settings, such as ``*.example.com``.
        """
        hosts, bare = self._app_routes.table.hosts, urls.bare_host(host)
        named = next((name for name in (host, bare) if name in hosts), None)
        wildcards = (name for name in hosts if name.startswith("*") and bare.endswith(name[1:]))
        return named or max(wildcards, key=len, default=None)


def _is_named_by_route(site: Site) -> bool:
    """Whether the app has routes for just this host."""
    return site.routed is not None and not site.routed.startswith("*")


def _without_dot(pattern: str) -> str:
    """A host, or the domain of a pattern for its subdomains."""
    return pattern.removeprefix(".")
