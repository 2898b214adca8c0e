"""Resolves the Host of a request to a site, and limits the sites that clients can create by inventing hosts.

A Host is not trusted until a setting allows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from ..http import urls
from ..http.messages import Request
from ..http.proxies import forwarded_hosts
from ..models import Site, StoreKey
from ..options.table import Options
from ..util import BoundedCache, WarnOnce, is_on_event_loop, reset_after_fork, run_in_background
from .route_table import AppRoutes

MAX_ROOT_CHARS: Final = 255
"""Maximum length of a root path."""

KEPT_SECONDS: Final = 60
"""Seconds for which an answer of a function as base_url is used, also that a host is no site's."""

KEPT_ON_FAILURE_SECONDS: Final = 60 * 60
"""Seconds for which its last answer is used while it fails."""

MAX_ASKED_HOSTS: Final = 10
"""Hosts for which it is asked in the background at one time. Others wait for their next request."""

MAX_SITES: Final = 10_000
"""Sites of one process besides those that settings name in full: below a wildcard, of a function, at root paths or at
ports, which clients can invent."""

REPLACE_SECONDS: Final = 60
"""Seconds until another site makes room: of each that clients invent, the store keeps a few rows."""

HostTrust = Literal["own", "foreign", "none"]
"""What a Host is to its site: the site's own name; a foreign one, such as a proxy's; or not a host name."""


class _Answer(NamedTuple):
    site: Site | None
    given_at: float
    """When the function gave it, in POSIX seconds."""
    asked_at: float
    """When the function was asked last: it may have failed."""


class Tenants:
    """Asks the function for the site of a host. An error is logged once, and the last answer counts for a while."""

    def __init__(self, site_of_host: Callable[[str], Site | None], clock: Callable[[], float]) -> None:
        """`site_of_host` is that of the options."""
        self._site_of_host = site_of_host
        self._clock = clock
        self._answers = BoundedCache[str, _Answer](MAX_SITES)
        self._warn_once = WarnOnce()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's threads do not ask here."""
        self._asked = set[str]()

    def site(self, host: str, *, may_block: bool = False) -> Site | None:
        """The site of a normalized host, without its root path; None if it is no site's, or nobody knows yet.

        On an event loop the function may not query a database, and would hold up all requests. So it is asked in the
        background there, unless the caller may block.
        """
        answer = self._answer(host, may_block)
        if answer is None or answer.site is None:
            return None
        # An app may show the pages of another site under a public host that it does not know.
        public = self._answer(answer.site.host, may_block)
        if public is None:
            return None
        return answer.site if public.site == answer.site else replace(answer.site, asked_as=host)

    def _answer(self, host: str, may_block: bool) -> _Answer | None:
        now, kept = self._clock(), self._answers.get(host)
        if kept is not None and 0 <= now - kept.asked_at < KEPT_SECONDS:
            return kept
        if not may_block and is_on_event_loop():
            if host not in self._asked and len(self._asked) < MAX_ASKED_HOSTS:
                self._asked.add(host)
                run_in_background(partial(self._ask, host))
            return None
        try:
            answer = _Answer(Context().run(self._site_of_host, host), now, now)  # empty: the answer is for everyone
        except Exception as error:
            if kept is None or not 0 <= now - kept.given_at < KEPT_ON_FAILURE_SECONDS:
                kept = _Answer(None, now, now)
            answer = kept._replace(asked_at=now)
            self._warn_once(
                "failed",
                "the function base_url failed for the host %s, which has no sitemap unless it gave one in the last"
                " hour: %s: %s",
                host,
                type(error).__name__,
                error,
            )
        self._answers.put(host, answer)
        return answer

    def _ask(self, host: str) -> None:
        try:
            self.site(host)
        finally:
            self._asked.discard(host)


class SiteResolver:
    """Finds the site of a request.

    A site's host is that of base_url, which may be a function of the Host; else one that the options or the framework's
    settings trust; else, if neither name any, localhost. A host for which the app declares routes is a separate site,
    unless base_url is a function.
    """

    def __init__(self, app_routes: AppRoutes, options: Options) -> None:
        self._app_routes = app_routes
        self._clock = options.clock
        self._base = options.site
        self._tenants = Tenants(options.site_of_host, options.clock) if options.site_of_host else None
        self._allowed = options.allowed_hosts
        self._first: tuple[str, str, str] | None = None
        """The first scheme, Host and root path that were requested of a site; of base_url's, one with a root path."""
        self._last_page_at: dict[StoreKey, float] = {}
        """When the app last answered for each site with a page, in POSIX seconds."""
        self._made_room_at = -math.inf
        self._warn_once = WarnOnce()

    def resolve_request(self, request: Request, *, may_block: bool = False) -> tuple[Site | None, HostTrust]:
        """The site of a request, or None; and what its Host is to the site.

        Behind a proxy, localhost is not a site: the public host has another name. For `may_block` see `Tenants.site`.
        """
        if request.root and request.has_dynamic_root:
            return None, "none"
        site, trust = self.resolve(request.scheme, request.host, request.root, may_block=may_block)
        if site is not None and site.loopback and self._base is None and request.is_forwarded:
            trusted = (*self._allowed, *self._app_routes.trusted_hosts)
            if not urls.is_host_allowed(site.host, trusted):
                return None, "none"
        # A health check may reach the app without the root path that the site of base_url has in public.
        is_better = self._first is None or (self._base is not None and request.root and not self._first[2])
        if is_better and site is not None and (self._base is None or site.host == self._base.host):
            self._first = request.scheme, request.host, request.root
        return site, trust

    def resolve(self, scheme: str, host: str, root: str, *, may_block: bool = False) -> tuple[Site | None, HostTrust]:
        """The site of a scheme, Host and root path, or None; and what the Host is to the site."""
        base, normal, quoted = self._base, urls.normal_host(host, scheme), urls.root_of(root)
        if quoted is None or len(quoted) > MAX_ROOT_CHARS:
            return None, "none"
        if self._tenants is not None:
            # The scheme does not count: behind a proxy, that of the request may not be the site's.
            tenant = normal and self._tenants.site(normal.removesuffix(":80").removesuffix(":443"), may_block=may_block)
            if not tenant:
                return None, "none"
            return replace(tenant, root=quoted, routed=self._routed_host(tenant.host)), "own"
        if normal is not None:
            is_loopback, routed = urls.is_loopback(normal), self._routed_host(normal)
            site = Site(base.scheme if base else scheme, normal, quoted, is_loopback, routed)
            if self._is_own(site):
                return site, "own"
        if base is None:
            return None, "none"
        trust: HostTrust = "none"
        if normal is not None:
            trust = "own" if urls.is_same_site_host(normal, base.host) else "foreign"
        return replace(base, root=quoted, routed=self._routed_host(base.host)), trust

    def _is_own(self, site: Site) -> bool:
        """Whether the host of a request is a site of its own, and not another name of base_url's."""
        is_base = self._base is not None and site.host == self._base.host
        if (_is_named_by_route(site) and not is_base) or urls.is_host_allowed(site.host, self._allowed):
            return True
        if self._base is not None:
            return False
        trusted = self._app_routes.trusted_hosts
        return urls.is_host_allowed(site.host, trusted) or (site.loopback and not trusted and not self._allowed)

    def is_for_foreign_host(self, request: Request) -> bool:
        """Whether the Host of a request is a site's own, but other headers name a foreign one, or it has no site.

        An app that trusts those headers answers for the foreign host.
        """
        others = {host for host in forwarded_hosts(request.headers) if host.lower() != request.host.lower()}
        if not others:
            return False
        site, trust = self.resolve_request(request)
        if site is None:
            return True
        if trust != "own":
            return False  # the Host may be a proxy's internal name of the app
        return not all(self._is_own_host(site, request.host, host) for host in others)

    def _is_own_host(self, site: Site, request_host: str, host: str) -> bool:
        """Whether an app that believes a host from a proxy's header answers for the site itself.

        That host is the site's or that of the request, but for the port and a `www.`, or it stands for the same site.
        """
        if self._tenants is not None and host != site.host:
            return self.resolve(site.scheme, host, unquote(site.root))[0] == site
        normal, own = urls.normal_host(host, site.scheme), (site.host, request_host.lower())
        return normal is not None and any(urls.is_same_site_host(normal, name) for name in own)

    def is_current(self, site: Site, host: str) -> bool:
        """Whether a Host still stands for a site that it stood for. It may block."""
        if self._tenants is None:
            return True
        return self.resolve(site.scheme, host, unquote(site.root), may_block=True)[0] == site

    # Limits

    def is_known(self, site: Site) -> bool:
        """Whether the app has answered for a site with a page, or settings name its host and root path in full.

        A development machine is known, unless it has too many ports.
        """
        if site.store_key in self._last_page_at:
            return True
        if site.loopback and not site.root and len(self._last_page_at) < MAX_SITES:
            self.note_page(site)
            return True
        named = (*self._allowed, *self._app_routes.trusted_hosts)
        is_named = (
            _is_named_by_route(site)
            or (self._base is not None and site.host == self._base.host)
            or site.host in (pattern.removeprefix(".") for pattern in named)
        )
        return is_named and site.root in ("", self._declared_root())

    def may_store(self, site: Site) -> bool:
        """Whether a site may have pages and documents in the store: it is known, or there is room for one more.

        The site that had no page for longest makes room, but only one a minute. It is logged once.
        """
        if self.is_known(site) or len(self._last_page_at) < MAX_SITES:
            return True
        self._warn_once(
            "sites",
            "too many sites: the app has answered for %d hosts, ports and root paths that no setting names; a further"
            " one replaces the longest idle one, at most once a minute: have the app or the server refuse hosts that"
            " nobody uses",
            MAX_SITES,
        )
        now = self._clock()
        if 0 <= now - self._made_room_at < REPLACE_SECONDS:
            return False
        self._made_room_at = now
        last_page_at = self._last_page_at.copy()
        self._last_page_at.pop(min(last_page_at, key=last_page_at.__getitem__), None)
        return True

    def note_page(self, site: Site) -> None:
        """Note that the app has answered for a site with a page."""
        self._last_page_at[site.store_key] = self._clock()

    # The sites that no request states

    def default_site(self) -> Site:
        """The site that `explain` is about if none is given.

        The first that was requested, else base_url's, else that of the first host that is named in full.
        """
        if self._first is not None and (first := self.resolve(*self._first, may_block=True)[0]) is not None:
            return first
        named = [self._base] if self._base else self.named_sites()
        site = named[0] if named else Site("http", "localhost", loopback=True)
        return replace(site, root=self._declared_root(), routed=self._routed_host(site.host))

    def is_requested(self) -> bool:
        """Whether the default site was requested. Only a request shows the root path that a server sets."""
        return self._first is not None

    def sites(self, wanted: Site | None = None) -> list[Site]:
        """A site, by default that of base_url or localhost, and the sites of the hosts that options and routes name.

        If base_url excludes the wanted site, there are none. Of a base_url that is a function, only that one is known.
        """
        base = self._base
        first = wanted or base or Site("http", "localhost", loopback=True)
        root = unquote(first.root) or self._app_routes.root_path
        main, standing = self.resolve(first.scheme, first.host, root, may_block=True)
        if standing != "own" or main is None:
            if base is not None or (wanted and self._tenants):
                return []
            main = Site(first.scheme, first.host, urls.root_of(root) or "", first.loopback)
        hosts = [base.host] if base else []
        hosts += sorted(host for host in self._app_routes.table.hosts if not host.startswith("*"))
        others = (self.resolve(main.scheme, host, root, may_block=True)[0] for host in hosts)
        by_host = {main.routed: main}
        for other in others:
            if other is not None:
                by_host.setdefault(other.routed, other)
        return list(by_host.values())

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

    def _declared_root(self) -> str:
        return urls.root_of(self._app_routes.root_path) or ""

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
