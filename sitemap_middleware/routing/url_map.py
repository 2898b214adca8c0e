"""The app's URL map as it is now, since routes may be added at any time: looked at whenever it is asked for.

It is read again only where that shows a change.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, Final

from ..config import Options
from ..models import PathBuilder, Provider, Route, Site
from ..patterns import Pattern
from . import discovery
from .change_detector import ChangeDetector
from .prefix_index import PrefixIndex

log = logging.getLogger("sitemap_middleware")

_PARAMETER_START: Final = re.compile("[<{]")
"""What begins a parameter, in either framework's words."""


ROUTES_SECTION: Final = "routes"
LEARNED_SECTION: Final = "pages"
"""The names of the documents of static routes, and of the pages that are learned."""


LARGE_MAP_ROUTES: Final = 2000
"""Routes of a map at which is glanced but once a second: a glance at 10,000 of Flask's takes half a millisecond."""

RECHECK_SECONDS: Final = 0.00025
"""Seconds for which a glance at any other is good: less than it takes to add a route and to ask for the sitemap."""


class URLMap:
    """The live map of one app."""

    def __init__(self, app: Any, options: Options) -> None:
        self._app = app
        self._options = options
        self._latest: tuple[RouteTable, ChangeDetector] | None = None
        self._checked_at: tuple[RouteTable | None, float] = None, 0.0
        self.root_path = discovery.root_path(app)
        """The root path that the app itself declares."""
        self._warned = set[Provider]()
        self.bound = False
        """Whether `bind` has been called."""
        self.reload_count = 0
        """How often the map was found to be another than before."""

    def bind(self, app: Any) -> None:
        """Take note of the app around the router that was found, as Starlette names it to its middleware."""
        self.bound = True
        if getattr(app, "router", self) is discovery.framework_app(self._app):
            self._app = app
            self._latest = None
            self.root_path = discovery.root_path(app)

    @property
    def app(self) -> Any:
        """The app whose map it is."""
        return self._app

    @property
    def table(self) -> RouteTable:
        """The table of the latest reading."""
        return self._latest[0] if self._latest else self.reload()

    def is_unchanged(self) -> bool:
        """Whether the table of the latest reading is that of the map as it is now; False where that cannot be told.

        It is a glance: quick enough for an event loop, and it takes a route that was
        replaced by an equal one for the same, which `read` does not.
        """
        try:
            return self._latest is not None and self._latest[1].is_probably_unchanged()
        except Exception:  # an app behind a proxy, or one that is being changed; `read` says so if it is
            return False

    def is_current(self, table: RouteTable, now: float) -> bool:
        """Whether a table is still that of the map, by a glance, or by one just before.

        A clock that stands still has moved by nothing since: then each time by a new one.
        """
        latest = self._latest
        if latest is None or latest[0] is not table:
            return False
        glanced, at = self._checked_at
        if glanced is table and 0 < now - at < (RECHECK_SECONDS if len(table.routes) <= LARGE_MAP_ROUTES else 1):
            return True
        self._checked_at = (table, now) if self.is_unchanged() else (None, now)
        return self._checked_at[0] is not None

    def reload(self) -> RouteTable:
        """Read the map again; the same table where nothing changed, or where it cannot be read."""
        known, witness = self._latest or (None, None)
        try:
            if known and witness and witness.is_unchanged():
                return known
            witness = ChangeDetector()
            found = tuple(discovery.discover_routes(self._app, witness))
        except Exception:
            log.exception("the app's URL map could not be read; its routes of before still stand")
            witness = ChangeDetector()
            witness.mark_unknown()
            found = known.routes if known else ()
        if known is None or known.routes != found:
            known = RouteTable(found, self._options, partial(discovery.matching_template, self._app))
            self.reload_count += 1
            self._warn_of_values(found)
        self._latest = known, witness
        return known

    def may_answer(self, path: str) -> bool:
        """Whether the app could answer this path: only of a bare Flask app can it be told that it cannot."""
        return self.table.may_answer(path) or not discovery.only_routes_answer(self._app)

    def _warn_of_values(self, found: Iterable[Route]) -> None:
        """Warn once of values that no route with parameters takes."""
        static: dict[Provider, str] = {}
        taken = set[Provider]()
        for route in found:
            if (provider := route.settings.values) is not None:
                if route.static:
                    static.setdefault(provider, route.path)
                else:
                    taken.add(provider)
        for provider, path in static.items():
            if provider not in taken and provider not in self._warned:
                self._warned.add(provider)
                log.warning(
                    "%s: its values are not used, because %s has no parameters; leave them out", provider.place, path
                )

    @cached_property
    def proxy_middleware(self) -> Any:
        """What inside the sitemap's middleware corrects requests by a proxy's headers; looked for once."""
        return discovery.proxy_middleware(self._app)

    @property
    def trusted_hosts(self) -> tuple[str, ...]:
        """The hosts that the app's own settings trust."""
        return discovery.trusted_hosts(self._app)


class RouteTable:
    """The routes of one reading of the URL map, ready to be asked for by path."""

    def __init__(
        self,
        routes: Iterable[Route],
        options: Options,
        answering: Callable[[str, str | None], str | None] = lambda *_: None,
    ) -> None:
        self.routes = tuple(routes)
        self._match_template = answering
        self._static: dict[str | None, dict[str, Route]] = {None: {}}
        self._named: dict[str, Route] = {}
        others: list[Route] = []
        host, known = None, self._static[None]
        self._shadowed: dict[tuple[str | None, str], Route] = {}
        for route in self.routes:
            if route.shadowed_by is not None:
                self._shadowed.setdefault((route.host, route.path), route)
                continue
            if not route.static:
                others.append(route)
                continue
            if route.host != host:
                host = route.host
                known = self._static.setdefault(host, {})
            known.setdefault(route.path, route)
        self.hosts = frozenset(host for host in (*self._static, *(route.host for route in others)) if host)
        self._provided = [(route.builder, route) for route in others if route.builder]
        self._templates = {route.path: route for route in reversed(others)}
        learned: list[tuple[Pattern, Route]] = []
        included = {pattern.text for pattern in options.include}
        self._unsafe_secrets = {pattern.text for pattern in options.learn} - included
        """The patterns by which nothing is learned whose route has a parameter named like a secret."""
        for pattern in (*options.include, *options.learn):
            if pattern.literal:
                self._named.setdefault(pattern.text, Route(pattern.text, "named by an option"))
            else:
                route = self._templates.get(pattern.text) or Route(pattern.text, "learned from traffic", static=False)
                learned.append((pattern, route._replace(host=None)))
        learned += [
            (Pattern(route.path), route)
            for route in self._templates.values()
            if route.settings.learn and not route.builder
        ]
        self._builders: PrefixIndex[tuple[PathBuilder, Route]] = PrefixIndex()
        for builder, route in self._provided:
            self._builders.add(_PARAMETER_START.split(route.path, maxsplit=1)[0], (builder, route))
        self._learned: PrefixIndex[tuple[Pattern, Route]] = PrefixIndex()
        for pattern, route in learned:
            self._learned.add(pattern.prefix, (pattern, route))
        self._secret: PrefixIndex[Pattern] = PrefixIndex()
        for route in self._templates.values():
            template = Pattern(route.path) if self._unsafe_secrets and not route.settings.learn else None
            if template is not None and template.secret and not template.is_too_wide:
                self._secret.add(template.prefix, template)

    def static(self, site: Site) -> list[Route]:
        """The static routes of a site, one for each path."""
        known = self._static.get(site.routed, {})
        named = self._named if site.routed is None else {}
        return [*known.values(), *(route for path, route in named.items() if path not in known)]

    def shadowed(self, site: Site, path: str) -> Route | None:
        """The static route of a decoded path whose requests another route takes."""
        return self._shadowed.get((site.routed, path))

    @cached_property
    def digest(self) -> bytes:
        """The same for tables that know the same paths alike."""
        said = [(route.host, route.path, route.static, route.builder is None) for route in self.routes]
        return blake2b(repr((said, sorted(self._named))).encode(), digest_size=16).digest()

    def is_static(self, site: Site, path: str) -> bool:
        """Whether a decoded path is that of a static route of a site."""
        return path in self._static.get(site.routed, ()) or (site.routed is None and path in self._named)

    def providers(self, site: Site) -> dict[str, tuple[Provider, list[Route]]]:
        """What enumerates pages of a site, and of which routes, by the name of its documents."""
        found: dict[str, tuple[Provider, list[Route]]] = {}
        for _, route in self._provided:
            if route.host == site.routed and (provider := route.settings.values):
                found.setdefault(self._provider_names[provider], (provider, []))[1].append(route)
        return found

    @cached_property
    def provider_names(self) -> frozenset[str]:
        """The names of the documents of all that is enumerated."""
        return frozenset(self._provider_names.values())

    @cached_property
    def _provider_names(self) -> dict[Provider, str]:
        """A name for each provider: its first route's endpoint, as it can stand in a URL."""
        taken = {ROUTES_SECTION, LEARNED_SECTION}
        names: dict[Provider, str] = {}
        for _, route in self._provided:
            if (provider := route.settings.values) and provider not in names:
                name = plain = re.sub(r"[^A-Za-z0-9_.~-]+", "-", route.endpoint).strip("-") or "values"
                number = 1
                while name.lower() in taken:
                    number += 1
                    name = f"{plain}-{number}"
                taken.add(name.lower())
                names[provider] = name
        return names

    def find_route(self, site: Site, path: str) -> Route | None:
        """The route that a decoded path is known by: a static one, or one whose pages are enumerated or learned."""
        host = site.routed
        route = self._static.get(host, {}).get(path)
        if route is None and host is None:
            route = self._named.get(path)
        if route is not None:
            return route
        for builder, enumerated in self._builders.find(path):
            if enumerated.host == host and builder.matches(path):
                return enumerated
        for pattern, learned in self._learned.find(path):
            if learned.host in (None, host) and pattern.matches(path):
                if pattern.text in self._unsafe_secrets and any(one.matches(path) for one in self._secret.find(path)):
                    continue
                return learned
        return None

    def matching_route(self, site: Site, path: str) -> Route | None:
        """The route with parameters that the app's own router gives a decoded path; None if that cannot be told."""
        try:
            return self._templates.get(self._match_template(path, site.routed) or "")
        except Exception:  # a converter of the app's own, or routes of a kind that nobody knows
            return None

    def may_answer(self, path: str) -> bool:
        """Whether a route could answer this path, as far as templates tell; or there are routes that cannot be read."""
        if not self.routes or self.has_explicit_route(path):
            return True
        likely = (one for one in self._templates if path.startswith(_PARAMETER_START.split(one, maxsplit=1)[0]))
        return any(Pattern(template).matches(path) for template in likely)

    def has_explicit_route(self, path: str) -> bool:
        """Whether the app itself has an explicit route for this path."""
        return any(path in known for known in self._static.values())
