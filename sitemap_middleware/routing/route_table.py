"""The routes of an app, indexed for look-up by path. Apps may add some at any time: they are read for each sitemap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, Literal

from ..http.urls import bare_host, wildcard_of
from ..models import NO_SETTINGS, Context, PathBuilder, Provider, Route, RouteSettings, Site
from ..options.patterns import Pattern
from ..options.table import Options
from ..protocol.value_checks import RESERVED_SECTIONS
from ..util import WarnOnce, log
from .framework_detection import framework_app, new_context, root_path
from .route_discovery import discover_routes, trusted_hosts

ROUTES_SECTION, LEARNED_SECTION, GONE_SECTION = RESERVED_SECTIONS
"""The names of three sections, in the URLs of their documents. A provider's section gets another name."""

NAMED_BY_OPTION: Final = "named by an option"
LEARNED_FROM_TRAFFIC: Final = "learned from traffic"
"""What stands in place of an endpoint for a path or a pattern of an option."""

Kind = Literal["values", "routes", "pages"]
"""Where the pages of a document come from: providers, static routes, or traffic."""

LOC: Final = "loc"
"""The only parameter of a named section: the path or the URL of a page."""

LARGE_APP_ROUTES: Final = 2000
"""Reading the routes of a larger app, or files in a large folder, takes too long for every sitemap."""

LARGE_APP_PAUSE_SECONDS: Final = 10.0
"""How long the routes of a large app are used before they are read again."""

_PARAMETER_START: Final = re.compile("[<{]")
"""The character that opens a parameter, in Werkzeug's and in Starlette's templates."""


class AppRoutes:
    """The routes of one app, as last read."""

    def __init__(self, app: Any, options: Options) -> None:
        self.app: Any = app
        """The app whose routes these are."""
        self._options = options
        self._table: RouteTable | None = None
        self._read_again_at = 0.0
        """When the routes of a large app may be read again, in POSIX seconds."""
        self.root_path: str = root_path(app)
        """The root path that the app itself declares."""
        self._warn_once = WarnOnce()
        self.bound: bool = False
        """Whether `bind` has been called."""

    def bind(self, app: Any) -> None:
        """Use the app of an ASGI scope, if the wrapped app is its router: `add_middleware` wraps only that."""
        self.bound = True
        if getattr(app, "router", self) is framework_app(self.app):
            self.app = app
            self._table, self._read_again_at = None, 0.0
            self.root_path = root_path(app)

    @property
    def table(self) -> RouteTable:
        """The latest table. Only `reload` reads the routes again."""
        return self._table or self.reload()

    def reload(self) -> RouteTable:
        """Read the routes again: apps may add some at any time. If that fails, the previous table stays in use."""
        table, now = self._table, self._options.clock()
        if table is not None and now < self._read_again_at:
            return table
        try:
            found = tuple(discover_routes(self.app, self._known_hosts()))
        except Exception:
            log.exception("the app's routes could not be read; those read before stay in use")
            found = table.routes if table is not None else ()
        self._read_again_at = now + LARGE_APP_PAUSE_SECONDS if len(found) > LARGE_APP_ROUTES else 0.0
        if table is None or table.routes != found:
            self._table = table = RouteTable(found, self._options, lambda: new_context(framework_app(self.app)))
            self._warn_of_unused_values(found)
        return table

    def keeps(self, path: str, option: str) -> bool:
        """Whether the app has a route of its own for a path that an option gives the middleware. If so, warn once."""
        if not self.table.has_explicit_route(path):
            return False
        self._warn_once(
            option, "the app itself has a route for %s and keeps it; give %s another path to have both", path, option
        )
        return True

    @property
    def trusted_hosts(self) -> tuple[str, ...]:
        """The hosts that the app's own settings trust."""
        return trusted_hosts(self.app)

    def _known_hosts(self) -> tuple[str, ...]:
        """The hosts that the options and the app's own settings name, or their patterns such as ``*.example.com``."""
        base = [self._options.site.host] if self._options.site is not None else []
        named = (bare_host(host) for host in (*base, *self._options.allowed_hosts, *self.trusted_hosts))
        names = (name for host in named for name in (wildcard_of(host), host.removeprefix(".")))
        return tuple(dict.fromkeys(name for name in names if name not in (None, "", "*")))

    def _warn_of_unused_values(self, found: tuple[Route, ...]) -> None:
        """Warn once of each provider that has only static routes."""
        used = {route.settings.values for route in found if not route.static}
        for route in found:
            provider = route.settings.values
            if provider is not None and provider not in used:
                self._warn_once(
                    provider,
                    "%s: its values are not used, because %s has no parameters; leave them out",
                    provider.place,
                    route.path,
                )


class RouteTable:
    """The routes that one reading of the app found, together with the patterns of the options."""

    def __init__(
        self,
        routes: Iterable[Route],
        options: Options,
        new_context: Callable[[], Context | None] = lambda: None,
    ) -> None:
        """Index routes, which are in the order in which the app tries them.

        `new_context` returns a context in which providers of named sections are called; None if they need none.
        """
        self.routes: tuple[Route, ...] = tuple(routes)
        self.hosts: frozenset[str] = frozenset(route.host for route in self.routes if route.host)
        """The hosts that routes name."""
        self._main_host = options.site and bare_host(options.site.host)
        self._static_routes = [route for route in self.routes if route.static]
        self._static: dict[str | None, dict[str, Route]] = {}
        """Static routes by host and path."""
        first: dict[tuple[str, str | None], Route] = {}
        for route in self.routes:  # of two that match alike the first answers
            if route.static:
                self._static.setdefault(route.host, {}).setdefault(route.path, route)
            else:
                first.setdefault((route.path, route.host), route)
        self._parametrised = [*first.values()]
        self._provided = [(_start(route), route.builder, route) for route in self._parametrised if route.builder]
        self._sections = options.sections
        self._is_section_by_endpoint = options.section_by_endpoint
        self._named_section_routes = [named_section_route(provider, new_context) for provider in options.sections]
        self._named: dict[str, Route] = {}
        """Paths that the options give literally."""
        self._learned: list[tuple[Pattern, Route, bool]] = []
        """Patterns, the route of their pages, and whether pages of routes with secrets are left out."""
        self._index_learned(options)
        self._secrets = [
            pattern
            for route in self._parametrised
            if options.learn and not route.settings.learn and route.path.startswith("/")
            if (pattern := Pattern(route.path)).secret and not pattern.is_too_wide
        ]
        """The templates with a parameter named like a secret, which the option `learn` does not mean."""

    def _index_learned(self, options: Options) -> None:
        """Index the patterns of the options, and then the routes whose own settings have them learned."""
        templates = {route.path: route for route in reversed(self._parametrised)}
        for patterns, omits_secrets in ((options.include, False), (options.learn, True)):
            for pattern in patterns:
                if pattern.literal:
                    self._named.setdefault(pattern.text, Route(pattern.text, NAMED_BY_OPTION))
                    continue
                route = templates.get(pattern.text) or Route(pattern.text, LEARNED_FROM_TRAFFIC, static=False)
                self._learned.append((pattern, replace(route, host="*"), omits_secrets))
        for route in self._parametrised:
            if route.settings.learn and not route.builder:
                self._learned.append((Pattern(route.path), route, False))

    # Static routes

    def static(self, site: Site) -> list[Route]:
        """The static routes of a site, one for each path."""
        on_host = self._static.get(site.routed, {})
        named = self._named if self.is_main(site) else {}
        return [*on_host.values(), *(route for path, route in named.items() if path not in on_host)]

    def is_main(self, site: Site) -> bool:
        """Whether patterns and sections of the options are about a site: its host is base_url's, or in no route."""
        return site.routed is None or site.routed.startswith("*") or bare_host(site.host) == self._main_host

    def is_static(self, site: Site, path: str) -> bool:
        """Whether a site has a static route of a decoded path."""
        return path in self._static.get(site.routed, {}) or (path in self._named and self.is_main(site))

    def has_explicit_route(self, path: str) -> bool:
        """Whether the app has a static route of a decoded path, on any host."""
        return any(route.path == path for route in self._static_routes)

    # Sections

    def section_of(self, route: Route) -> str | None:
        """The name of the section that the pages of a route are in, if it has one of its own."""
        if route.settings.section is None and self._is_section_by_endpoint and not route.static:
            return section_name(route.endpoint)
        return route.settings.section

    @cached_property
    def sections(self) -> dict[str, dict[Kind, None]]:
        """The kinds of pages in each section that routes and options name. If there is one, the sitemap is an index."""
        provided = [*self._named_section_routes, *(route for *_, route in self._provided)]
        learned = [route for _, route, _ in self._learned]
        sections: dict[str, dict[Kind, None]] = {}
        routes_of: dict[Kind, list[Route]] = {"values": provided, "routes": self._static_routes, "pages": learned}
        for kind, routes in routes_of.items():
            for name in filter(None, map(self.section_of, routes)):
                sections.setdefault(name, {})[kind] = None
        return sections

    def document(self, section: str, kind: Kind) -> str:
        """The name of the first document of a section's pages of a kind: that of the section, for its first kind."""
        return section if kind == next(iter(self.sections[section])) else f"{section}-{kind}"

    @cached_property
    def section_documents(self) -> frozenset[str]:
        """The names of the first documents of all sections that routes and options name."""
        return frozenset(self.document(name, kind) for name, kinds in self.sections.items() for kind in kinds)

    # Providers

    def providers(self, site: Site) -> dict[str, tuple[Provider, list[Route]]]:
        """The providers of a site and their routes, by the name of the provider's section."""
        sections: dict[str, tuple[Provider, list[Route]]] = {}
        named = self._named_section_routes if self.is_main(site) else ()
        for route in (*named, *(route for *_, route in self._provided)):
            if route.answers_on(site.routed) and (provider := route.settings.values):
                sections.setdefault(self.provider_names[provider], (provider, []))[1].append(route)
        return sections

    @cached_property
    def provider_names(self) -> dict[Provider, str]:
        """A unique name for each provider: the endpoint of its first route, made fit for a URL."""
        names = {provider: name for provider in self._sections if (name := provider.section)}
        taken = {ROUTES_SECTION, LEARNED_SECTION, *names.values(), *self.sections}
        for *_, route in self._provided:
            if (provider := route.settings.values) and provider not in names:
                name = endpoint = _fit_for_url(route.endpoint)
                number = 1
                while name.lower() in taken:
                    number += 1
                    name = f"{endpoint}-{number}"
                taken.add(name.lower())
                names[provider] = name
        return names

    # Any route

    def find_route(self, site: Site, path: str) -> Route | None:
        """The route whose page a decoded path is: static, or with a provider, or learned; None if there is none."""
        host = site.routed
        known = self._static.get(host, {}).get(path) or (self._named.get(path) if self.is_main(site) else None)
        if known is not None:
            return known
        for start, builder, provided in self._provided:
            if path.startswith(start) and provided.answers_on(host) and builder.matches(path):
                return provided
        for pattern, learned, omits_secrets in self._learned:
            if not (learned.answers_on(host) and pattern.writes(path)):
                continue
            if not (omits_secrets and any(secret.matches(path) for secret in self._secrets)):
                return learned
        return None

    def matching_route(self, site: Site, path: str) -> Route | None:
        """The route with parameters whose template a decoded path fits, listed or not; None if there is none.

        Of several, that with the longest beginning without parameters: routers differ in which one they choose.
        """
        fitting = [
            (len(pattern.prefix), route)
            for pattern, route in self._templates
            if route.answers_on(site.routed) and pattern.matches(path)
        ]
        return max(fitting, key=lambda found: found[0])[1] if fitting else None

    @cached_property
    def _templates(self) -> list[tuple[Pattern, Route]]:
        return [(Pattern(route.path), route) for route in self._parametrised if route.path.startswith("/")]

    @cached_property
    def digest(self) -> bytes:
        """Sixteen bytes that are equal for tables with the same routes, settings and named paths."""
        routes = [
            (
                route.host,
                route.path,
                route.static,
                route.builder is None,
                _settings_text(route.settings),
            )
            for route in self.routes
        ]
        return blake2b(repr((routes, sorted(self._named))).encode(), digest_size=16).digest()


def _start(route: Route) -> str:
    """What the paths of a route with parameters begin with."""
    stands_for_others = not route.path.startswith("/")  # such as that of a Django Sitemap
    return "" if stands_for_others else _PARAMETER_START.split(route.path, maxsplit=1)[0]


def _fit_for_url(endpoint: str) -> str:
    """The name of a section for an endpoint. It does not end like that of another document."""
    name = re.sub(r"[^A-Za-z0-9_.~-]+", "-", endpoint).strip("-") or "values"
    return re.sub(r"-(?=(?:[0-9]+|routes|pages)\Z)", "_", name)


def section_name(endpoint: str) -> str:
    """The name of the section of an endpoint, if each has one."""
    name = _fit_for_url(endpoint).lower()
    return f"{name}_" if name in RESERVED_SECTIONS else name


def _settings_text(settings: RouteSettings) -> str:
    """What the settings say of an entry, as text that is equal in all processes. A callable stands for any other."""
    if settings is NO_SETTINGS:
        return ""
    lastmod = "callable" if callable(settings.lastmod) else settings.lastmod
    return f"{settings._replace(lastmod=None, learn=None, values=None)} {lastmod}"


def named_section_route(provider: Provider, new_context: Callable[[], Context | None]) -> Route:
    """The route of a named section. Only the provider knows its pages: the app's router takes no part in it."""
    builder = PathBuilder(
        names=frozenset({LOC}),
        write=_given_loc,
        leads_here=lambda _: False,
        is_checked=False,
        context=new_context,
    )
    settings = RouteSettings(values=provider, section=provider.section)
    return Route(f"section {provider.section}", provider.place, static=False, settings=settings, builder=builder)


def _given_loc(params: Mapping[str, Any]) -> str:
    """The path or URL of a page of a named section."""
    loc = params.get(LOC)
    if not isinstance(loc, str) or len(params) > 1:
        raise ValueError('it does not say which page it is; give its path such as "/about", or Entry(loc="/about")')
    return loc
