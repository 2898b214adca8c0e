"""The app's URL map as it is now: read again whenever it is asked, since routes may be added at any time."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

from . import routes
from .model import Builder, Provider, Route, Site
from .options import Options
from .patterns import Pattern

log = logging.getLogger("sitemap_middleware")


ROUTES: Final = "routes"
LEARNED: Final = "pages"
"""The names of the documents of static routes, and of the pages that are learned."""


class URLMap:
    """The live map of one app."""

    def __init__(self, app: Any, options: Options) -> None:
        self._app = app
        self._options = options
        self._table: RouteTable | None = None
        self.root_path = routes.root_path(app)
        """The root path that the app itself declares."""
        self.bound = False
        """Whether `bind` has been called."""
        self.readings = 0
        """How often the map was found to be another than before."""

    def bind(self, app: Any) -> None:
        """Take note of the app around the router that was found, as Starlette names it to its middleware."""
        self.bound = True
        if getattr(app, "router", self) is routes.framework(self._app):
            self._app = app
            self._table = None
            self.root_path = routes.root_path(app)

    @property
    def table(self) -> RouteTable:
        """The table of the latest reading."""
        return self._table or self.read()

    def read(self) -> RouteTable:
        """Read the map again; the same table where nothing changed, or where it cannot be read."""
        known = self._table
        try:
            found = tuple(routes.walk(self._app))
        except Exception:
            log.exception("the app's URL map could not be read; its routes of before still stand")
            found = known.routes if known else ()
        if known is None or known.routes != found:
            self._table = known = RouteTable(found, self._options)
            self.readings += 1
        return known

    @property
    def trusted_hosts(self) -> tuple[str, ...]:
        """The hosts that the app's own settings trust."""
        return routes.trusted_hosts(self._app)


class RouteTable:
    """The routes of one reading of the URL map, ready to be asked for by path."""

    def __init__(self, routes: Iterable[Route], options: Options) -> None:
        self.routes = tuple(routes)
        self.hosts = frozenset(route.host for route in self.routes if route.host)
        self._static: dict[tuple[str | None, str], Route] = {}
        for route in self.routes:
            if route.static:
                self._static.setdefault((route.host, route.path), route)
        self._enumerated: list[tuple[str, Builder, Route]] = [
            (re.split("[<{]", route.path)[0], route.builder, route) for route in self.routes if route.builder
        ]
        parametrised = {route.path: route for route in reversed(self.routes) if not route.static}
        self._learned: list[tuple[Pattern, Route]] = []
        for pattern in (*options.include, *options.learn):
            if pattern.literal:
                self._static.setdefault((None, pattern.text), Route(pattern.text, "named by an option"))
            else:
                route = parametrised.get(pattern.text) or Route(pattern.text, "learned from traffic", static=False)
                self._learned.append((pattern, replace(route, host=None)))
        self._learned += [
            (Pattern(route.path), route) for route in parametrised.values() if route.mark.learn and not route.builder
        ]

    def static(self, site: Site) -> list[Route]:
        """The static routes of a site, one for each path."""
        return [route for (host, _), route in self._static.items() if host == site.routed]

    @cached_property
    def digest(self) -> bytes:
        """The same for tables that know the same paths alike."""
        said = [(route.host, route.path, route.static, route.builder is None) for route in self.routes]
        return blake2b(repr((said, sorted(map(repr, self._static)))).encode(), digest_size=16).digest()

    def is_static(self, site: Site, path: str) -> bool:
        """Whether a decoded path is that of a static route of a site."""
        return (site.routed, path) in self._static

    def sections(self, site: Site) -> dict[str, tuple[Provider, list[Route]]]:
        """What enumerates pages of a site, and of which routes, by the name of its documents."""
        found: dict[str, tuple[Provider, list[Route]]] = {}
        for _, _, route in self._enumerated:
            if route.host == site.routed and (provider := route.mark.values):
                found.setdefault(self._section_names[provider], (provider, []))[1].append(route)
        return found

    @cached_property
    def section_names(self) -> frozenset[str]:
        """The names of the documents of all that is enumerated."""
        return frozenset(self._section_names.values())

    @cached_property
    def _section_names(self) -> dict[Provider, str]:
        """A name for each provider: its first route's endpoint, as it can stand in a URL."""
        taken = {ROUTES, LEARNED}
        names: dict[Provider, str] = {}
        for _, _, route in self._enumerated:
            if (provider := route.mark.values) and provider not in names:
                name = plain = re.sub(r"[^A-Za-z0-9_.~-]+", "-", route.endpoint).strip("-") or "values"
                number = 1
                while name.lower() in taken:
                    number += 1
                    name = f"{plain}-{number}"
                taken.add(name.lower())
                names[provider] = name
        return names

    def find(self, site: Site, path: str) -> Route | None:
        """The route that a decoded path is known by: a static one, or one whose pages are enumerated or learned."""
        route = self._static.get((site.routed, path))
        if route is not None:
            return route
        for start, builder, enumerated in self._enumerated:
            if enumerated.host == site.routed and path.startswith(start) and builder.leads_here(path):
                return enumerated
        for pattern, learned in self._learned:
            if learned.host in (None, site.routed) and pattern.matches(path):
                return learned
        return None

    def may_answer(self, path: str) -> bool:
        """Whether the app could answer this path: it has a route of just this path, or routes that cannot be read."""
        return not self.routes or any(route.path == path for route in self.routes)

    def has_own(self, path: str) -> bool:
        """Whether the app itself has an explicit route for this path."""
        return any(route.static and route.path == path for route in self.routes)
