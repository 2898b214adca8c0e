"""The routes of an app, indexed for look-up by path."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from types import FunctionType
from typing import Final

from ..checked_options import RESERVED_SECTIONS, Options
from ..models import Context, PathBuilder, Provider, Route, RouteSettings, Site
from ..patterns import Pattern
from ..sitemap_decorator import NO_SETTINGS
from ..urls import bare_host
from .named_section_as_route import named_section_route
from .plain_routes import PlainRoutes, each_route, plain_route
from .prefix_index import PrefixIndex

ROUTES_SECTION, LEARNED_SECTION = RESERVED_SECTIONS
"""The names of two sections, in the URLs of their documents. A provider's section gets another name."""

_PARAMETER_START: Final = re.compile("[<{]")
"""The character that opens a parameter, in Werkzeug's and in Starlette's templates."""

_StaticRoutes = dict[str, Route | FunctionType]
"""Static routes, by path; of a plain one its endpoint, until the route is needed."""


class RouteTable:
    """The routes that one reading of the app found, together with the patterns of the options."""

    def __init__(
        self,
        routes: Iterable[Route | PlainRoutes],
        options: Options,
        match_template: Callable[[str, str | None], str | None] = lambda *_: None,
        new_context: Callable[[], Context | None] = lambda: None,
    ) -> None:
        """Index routes.

        Args:
            routes: the routes.
            options: the options, with patterns and named sections.
            match_template: asks the app's router: the template that takes a decoded path on a host, or None.
            new_context: returns a context in which providers of named sections are called; None if they need none.
        """
        self.found: tuple[Route | PlainRoutes, ...] = tuple(routes)
        """All routes, as discovery gave them."""
        self.count: int = 0
        """The number of routes."""
        self._match_template = match_template
        self._static: dict[str | None, _StaticRoutes] = {None: {}}
        """Static routes, by the host that they are for and by path."""
        self._static_on_host: dict[str, _StaticRoutes] = {}
        """Static routes that answer on a host, by path: its own, and those of every host."""
        self._shadowed: dict[tuple[str | None, str], Route] = {}
        parametrised: list[Route] = []
        host, of_host, except_hosts = None, self._static[None], set[tuple[str, ...]]()
        for route in self.found:  # there may be 10,000: most have the host of the one before
            if isinstance(route, PlainRoutes):
                self._add_plain(route)
                continue
            self.count += 1
            if route.except_hosts:
                except_hosts.add(route.except_hosts)
            if route.shadowed_by is not None:
                self._shadowed.setdefault((route.host, route.path), route)
                continue
            if not route.static:
                parametrised.append(route)
                continue
            if route.host != host:
                host = route.host
                of_host = self._static.setdefault(host, {})
            of_host.setdefault(route.path, route)
        self.hosts: frozenset[str] = frozenset(
            host for host in chain(self._static, (route.host for route in parametrised), *except_hosts) if host
        )
        """The hosts for which not the same routes answer as for all others."""
        self._main_host = options.site and bare_host(options.site.host)
        first: dict[tuple[str, str | None, tuple[str, ...]], Route] = {}
        for route in parametrised:  # of two that match alike the first answers
            first.setdefault((route.path, route.host, route.except_hosts), route)
        self._parametrised = first.values()
        self._templates = {route.path: route for route in reversed(parametrised)}
        self._provided = [(route.builder, route) for route in parametrised if route.builder]
        self._sections = options.sections
        self._named_section_routes = [named_section_route(provider, new_context) for provider in options.sections]
        self._builders: PrefixIndex[tuple[PathBuilder, Route]] = PrefixIndex()
        for builder, route in self._provided:
            self._builders.add(_PARAMETER_START.split(route.path, maxsplit=1)[0], (builder, route))
        self._named: dict[str, Route] = {}
        """Paths that the options give literally."""
        self._learned: PrefixIndex[tuple[Pattern, Route]] = PrefixIndex()
        self._unsafe_secrets = {pattern.text for pattern in options.learn} - {
            pattern.text for pattern in options.include
        }
        """Patterns that learn no page of a route with a parameter named like a secret."""
        self._secret: PrefixIndex[Pattern] = PrefixIndex()
        """The templates with such a parameter."""
        self._index_learned(options)
        self._index_secret()

    def _add_plain(self, routes: PlainRoutes) -> None:
        self.count += len(routes)
        known = self._static[None]
        # Almost always. Of two routes with one path the first answers.
        is_new = not known or known.keys().isdisjoint(routes)
        known.update(routes if is_new else {path: routes[path] for path in routes if path not in known})

    def _index_learned(self, options: Options) -> None:
        """Index the patterns of the options, and then the routes whose own settings have them learned."""
        for pattern in (*options.include, *options.learn):
            if pattern.literal:
                self._named.setdefault(pattern.text, Route(pattern.text, "named by an option"))
            else:
                route = self._templates.get(pattern.text) or Route(pattern.text, "learned from traffic", static=False)
                self._learned.add(pattern.prefix, (pattern, route._replace(host=None, except_hosts=())))
        for route in self._parametrised:
            if route.settings.learn and not route.builder:
                pattern = Pattern(route.path)
                self._learned.add(pattern.prefix, (pattern, route))

    def _index_secret(self) -> None:
        """Index the routes with a parameter named like a secret, unless their own settings have them learned."""
        if self._unsafe_secrets:
            for route in self._templates.values():
                pattern = None if route.settings.learn else Pattern(route.path)
                if pattern is not None and pattern.secret and not pattern.is_too_wide:
                    self._secret.add(pattern.prefix, pattern)

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes, in the order in which the app tries them."""
        return tuple(each_route(self.found))

    # Static routes

    def static(self, site: Site) -> list[Route]:
        """The static routes of a site, one for each path."""
        on_host = self._static_on(site.routed)
        named = self._named if self.is_main(site) else {}
        routes = [_static_route(on_host, path, known) for path, known in on_host.items()]
        return [*routes, *(route for path, route in named.items() if path not in on_host)]

    def _static_on(self, host: str | None) -> _StaticRoutes:
        """The static routes that answer on a host, by path. Of two with one path the first answers."""
        if host not in self.hosts:
            return self._static[None]
        on_host = self._static_on_host.get(host)
        if on_host is None:
            on_host = {}
            for route in self.routes:
                if route.static and route.shadowed_by is None and route.answers_on(host):
                    on_host.setdefault(route.path, route)
            self._static_on_host[host] = on_host
        return on_host

    def is_main(self, site: Site) -> bool:
        """Whether patterns and sections of the options are about a site: its host is base_url's, or in no route."""
        return site.routed is None or site.routed.startswith("*") or bare_host(site.host) == self._main_host

    def is_static(self, site: Site, path: str) -> bool:
        """Whether a site has a static route of a decoded path."""
        return path in self._static_on(site.routed) or (path in self._named and self.is_main(site))

    def has_static(self, site: Site, paths: Collection[str]) -> bool:
        """Whether a site has a static route of any of these decoded paths."""
        if not self._static_on(site.routed).keys().isdisjoint(paths):
            return True
        return not self._named.keys().isdisjoint(paths) and self.is_main(site)

    def shadowed(self, site: Site, path: str) -> Route | None:
        """The static route of a decoded path whose requests another route takes."""
        shadowed = (self._shadowed.get((host, path)) for host in (site.routed, None))
        return next((route for route in shadowed if route is not None and route.answers_on(site.routed)), None)

    def has_explicit_route(self, path: str) -> bool:
        """Whether the app has a static route of a decoded path, on any host."""
        return any(path in of_host for of_host in self._static.values())

    # Providers

    def providers(self, site: Site) -> dict[str, tuple[Provider, list[Route]]]:
        """The providers of a site and their routes, by the name of the provider's section."""
        sections: dict[str, tuple[Provider, list[Route]]] = {}
        named = self._named_section_routes if self.is_main(site) else ()
        for route in (*named, *(route for _, route in self._provided)):
            if route.answers_on(site.routed) and (provider := route.settings.values):
                sections.setdefault(self._provider_names[provider], (provider, []))[1].append(route)
        return sections

    @cached_property
    def provider_names(self) -> frozenset[str]:
        """The names of the sections of all providers."""
        return frozenset(self._provider_names.values())

    @cached_property
    def _provider_names(self) -> dict[Provider, str]:
        """A unique name for each provider: the endpoint of its first route, made fit for a URL."""
        names = {provider: name for provider in self._sections if (name := provider.section)}
        taken = {ROUTES_SECTION, LEARNED_SECTION, *names.values()}
        for _, route in self._provided:
            if (provider := route.settings.values) and provider not in names:
                name = endpoint = re.sub(r"[^A-Za-z0-9_.~-]+", "-", route.endpoint).strip("-") or "values"
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
        on_host = self._static_on(host)
        known = on_host.get(path)
        if known is not None:
            return _static_route(on_host, path, known)
        if self._named and self.is_main(site) and (named := self._named.get(path)) is not None:
            return named
        if self._builders:
            for builder, provided in self._builders.find(path):
                if provided.answers_on(host) and builder.matches(path):
                    return provided
        for pattern, learned in self._learned.find(path):
            if learned.answers_on(host) and pattern.matches(path):
                if pattern.text in self._unsafe_secrets and self._has_secret(path):
                    continue
                return learned
        return None

    def learned_route(self, site: Site, paths: Collection[str], start: str) -> Route | None:
        """The learned route that `find_route` finds for each of some decoded paths, if it is one for all; else None.

        `start` is what all of them start with.
        """
        host = site.routed
        if self.has_static(site, paths) or self._builders.find_any(start):
            return None
        for pattern, learned in self._learned.find_any(start):
            matches = pattern.count_matches(paths, start) if learned.answers_on(host) else 0
            if not matches:
                continue
            if matches < len(paths) or pattern.literal or learned.static or learned.builder is not None:
                return None
            may_be_secret = pattern.text in self._unsafe_secrets and self._secret.find_any(start)
            return None if may_be_secret else learned
        return None

    def matching_route(self, site: Site, path: str) -> Route | None:
        """The route with parameters that the app's own router gives a decoded path; None if there is none."""
        try:
            return self._templates.get(self._match_template(path, site.routed) or "")
        except Exception:  # raised by the app's own converters or routes
            return None

    def may_answer(self, path: str) -> bool:
        """Whether a route may answer a decoded path, by its template. True if no routes could be read."""
        if not self.count or self.has_explicit_route(path):
            return True
        templates = (
            template
            for template, route in self._templates.items()
            if not (route.settings.values and route.settings.values.examples)
            and path.startswith(_PARAMETER_START.split(template, maxsplit=1)[0])
        )
        return any(Pattern(template).matches(path) for template in templates)

    def _has_secret(self, path: str) -> bool:
        return any(pattern.matches(path) for pattern in self._secret.find(path))

    @cached_property
    def digest(self) -> bytes:
        """Sixteen bytes that are equal for tables with the same routes, settings and named paths."""
        routes: list[tuple[object, ...]] = []
        for route in self.found:
            if isinstance(route, PlainRoutes):
                routes += [(None, path, True, True, "") for path in route]
                continue
            hosts, text = route.host or route.except_hosts or None, _settings_text(route.settings)
            routes.append((hosts, route.path, route.static, route.builder is None, text))
        return blake2b(repr((routes, sorted(self._named))).encode(), digest_size=16).digest()


def _static_route(on_host: _StaticRoutes, path: str, known: Route | FunctionType) -> Route:
    if isinstance(known, FunctionType):
        known = on_host[path] = plain_route(path, known)
    return known


def _settings_text(settings: RouteSettings) -> str:
    """What the settings say of an entry, as text that is equal in all processes. A callable stands for any other."""
    if settings is NO_SETTINGS:
        return ""
    lastmod = "callable" if callable(settings.lastmod) else settings.lastmod
    return f"{settings.priority} {settings.changefreq} {settings.exclude} {lastmod}"
