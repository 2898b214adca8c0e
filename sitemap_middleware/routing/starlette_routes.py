"""Reads the routes of Starlette and FastAPI, including those of mounts, hosts and included routers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.routing import Host, Mount, Router, compile_path, replace_params
from starlette.staticfiles import StaticFiles

from ..models import Route, RouteSettings, is_one_of
from ..sitemap_decorator import (
    ATTRIBUTE,
    NO_SETTINGS,
    endpoint_name,
    inherited_settings,
    merge_settings,
    settings_of,
)
from ..warn_once import WarnOnce
from .app_layers_and_mounts import layers
from .declared_responses import DeclaredResponses
from .earlier_routes import EarlierRoutes, IsFree, restrict_to_free_paths
from .reading import BasePathBuilder, Position
from .starlette_included_routers import IncludedRouters, flatten
from .static_html_files import html_files

_INTERNAL_MODULE: Final = "fastapi.applications"
"""FastAPI makes `/docs`, `/redoc` and `/openapi.json` in its own module."""

_warn_once: Final = WarnOnce()


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The routes of an app or router that answer GET.

    Routers try routes in order, so a route that an earlier one shadows says which one that is.
    """
    reading = _Reading(app, position)
    elsewhere: tuple[str, ...] = ()
    for route, original in flatten(getattr(app, "routes", None) or ()):
        try:
            hosts = _hosts_of(original, position, elsewhere)
            yield from _except(reading.routes_of(route, original, hosts), elsewhere)
        except Exception as error:  # an attribute of the app's own class may raise anything
            _warn_of_unreadable_route(route, error)
            continue
        elsewhere += hosts
        if position.host in elsewhere:  # all requests for the only host of this app get there
            return
    yield from _except(reading.frontend_pages(app), elsewhere)


class _Reading:
    """One reading of the routes of one app or router."""

    def __init__(self, app: Any, position: Position) -> None:
        self.position = position
        self.app_settings: RouteSettings = merge_settings(settings_of(app), settings_of(getattr(app, "router", None)))
        self.included_routers = IncludedRouters()
        self.declared = DeclaredResponses()
        self.earlier = EarlierRoutes(position.prefix)

    def routes_of(self, route: Any, original: Any, hosts: Iterable[str]) -> Iterator[Route]:
        """The routes that one route of an app stands for: itself, if it answers GET, or those of a mounted app.

        Args:
            route: as it answers, with the settings of the routers that include it.
            original: as the app defines it.
            hosts: those whose requests it takes, if it is a Host route.
        """
        if isinstance(original, Host):
            for host in hosts:
                yield from self._below(self.position.below(route.app, host=host), original)
        elif isinstance(original, Mount):
            if "{" not in route.path and not self.earlier.is_mounted(f"{route.path}/"):
                yield from self._below(self._mounted_routes(route), original, route)
            self.earlier.add(f"{route.path}/", route.path_regex)
        elif getattr(route, "endpoint", None) is not None:
            read = self._route(route, original)
            if read is not None:
                yield read

    def _route(self, route: Any, original: Any) -> Route | None:
        """The route of an endpoint; None if it does not answer GET."""
        path, endpoint = getattr(route, "path", None), route.endpoint
        methods = getattr(original, "methods", ())  # None stands for all; a WebSocketRoute has none
        if path is None or not (methods is None or "GET" in methods):
            return None
        static = "{" not in path
        if not static and self.earlier.is_mounted(path):
            return None
        shadowed_by = self.earlier.shadowing(path) if static else None
        if methods is None and isinstance(endpoint, type) and not hasattr(endpoint, "get"):
            self.earlier.add_unanswered(path, route.path_regex, endpoint)  # it takes GET requests and answers 405
            return None
        own_settings = merge_settings(getattr(original, ATTRIBUTE, NO_SETTINGS), settings_of(endpoint))
        around = merge_settings(self.included_routers.settings(endpoint, path), self.app_settings)
        full_path = self.position.prefix + path
        settings, not_learned_reason = inherited_settings(full_path, own_settings, merge_settings(own_settings, around))
        builder = None
        if settings.values and not static:
            builder = _PathBuilder(path, self.position.prefix, self.earlier.is_free())
        self.earlier.add(path, route.path_regex, endpoint)
        return Route(
            full_path,
            endpoint_name(endpoint),
            static,
            self.position.host,
            settings,
            self.declared.hidden_reason(route, original, static),
            _internal_reason(endpoint),
            not_learned_reason=not_learned_reason,
            shadowed_by=shadowed_by,
            builder=builder,
        )

    def _below(self, routes: Iterator[Route], original: Any, mount: Any = None) -> Iterator[Route]:
        """The routes of the app of a mount or a Host route, with the settings around it."""
        routes = self.earlier.with_shadowed(restrict_to_free_paths(routes, self.earlier.is_free()))
        of_router = NO_SETTINGS if mount is None else self.included_routers.settings(mount.app, mount.path)
        return _with_outer_settings(routes, settings_of(original), of_router, self.app_settings)

    def _mounted_routes(self, mount: Any) -> Iterator[Route]:
        for layer in layers(mount.app):
            if isinstance(layer, StaticFiles):
                return html_files(layer, self.position.prefix + mount.path, self.position.host)
        return self.position.below(mount.app, mount.path)

    def frontend_pages(self, app: Starlette | Router) -> Iterator[Route]:
        """The pages of FastAPI's `app.frontend`, which serves files if no route matches."""
        router: Any = getattr(app, "router", app)
        for group in getattr(router, "_iter_low_priority_routes", tuple)():
            prefix = self.position.prefix + getattr(group, "frontend_prefix", "")
            for route in getattr(getattr(group, "original_route", group), "routes", ()):
                if isinstance(getattr(route, "app", None), StaticFiles):
                    pages = html_files(route.app, prefix + route.path.rstrip("/"), self.position.host)
                    yield from _with_outer_settings(self.earlier.with_shadowed(pages), self.app_settings)


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts of the app's own TrustedHostMiddleware."""
    trusted: list[str] = []
    for middleware in getattr(app, "user_middleware", ()):
        if getattr(middleware.cls, "__name__", "") == "TrustedHostMiddleware":
            hosts = dict(middleware.kwargs).get("allowed_hosts") or (list(middleware.args) or [()])[0]
            trusted += [host.lower() for host in hosts if host != "*"]
    return tuple(trusted)


def set_state(app: Any, name: str, value: object) -> None:
    """Set an attribute of a Starlette app's state, unless it has that attribute. A router has no state."""
    state = getattr(app, "state", None)
    if isinstance(state, State) and not hasattr(state, name):
        setattr(state, name, value)


def _hosts_of(route: Any, position: Position, elsewhere: Collection[str]) -> tuple[str, ...]:
    """The hosts whose requests a Host route takes, except those that an earlier one takes. Other routes take none.

    Starlette matches the host in lower case and without its port. A route with a host pattern takes those known hosts
    that match it. Hosts known only as subdomains are represented by ``*.example.com``.
    """
    if not isinstance(route, Host):
        return ()
    if position.host is not None:
        hosts: tuple[str, ...] = (position.host,)
    elif "{" in route.host:
        hosts = position.known_hosts()
    else:
        hosts = (route.host.partition(":")[0].lower(),)
    return tuple(host for host in hosts if not is_one_of(host, elsewhere) and route.host_regex.match(host))


def _except(routes: Iterator[Route], hosts: tuple[str, ...]) -> Iterator[Route]:
    """Routes of an app that gets no requests for some hosts."""
    for route in routes:
        if not hosts:
            yield route
        elif route.host is None or not is_one_of(route.host, hosts):
            yield route._replace(except_hosts=route.except_hosts + hosts) if route.is_for_many_hosts else route


def _with_outer_settings(routes: Iterable[Route], *outer: RouteSettings) -> Iterator[Route]:
    """Routes of a mounted app with the settings of the mount and of the apps around it, the nearest first."""
    for route in routes:
        merged = route.settings
        for settings in outer:
            merged = merge_settings(merged, settings)
        merged, reason = inherited_settings(route.path, route.settings, merged)
        yield route._replace(settings=merged, not_learned_reason=reason or route.not_learned_reason)


def _internal_reason(endpoint: Any) -> str | None:
    """Why a route is never a page of the site; None if it may be."""
    if getattr(endpoint, "__module__", None) == _INTERNAL_MODULE:
        return "it is FastAPI's own documentation of the API"
    return None


def _warn_of_unreadable_route(route: object, error: Exception) -> None:
    """Warn that a route, such as a lazy one, is left out. One warning for each class of route."""
    kind = type(route)
    _warn_once(
        (kind.__module__, kind.__qualname__),
        "a route of the class %s.%s cannot be read (%s) and is left out; the app's other routes are listed",
        kind.__module__,
        kind.__qualname__,
        type(error).__name__,
    )


class _PathBuilder(BasePathBuilder):
    """Builds and matches the paths of one route that no earlier route takes."""

    def __init__(self, path: str, prefix: str, is_free: IsFree) -> None:
        self._regex, self._format, self._convertors = compile_path(path)
        super().__init__(path, self._convertors, prefix)
        self._is_free = is_free

    def write_path(self, params: Mapping[str, Any]) -> str:
        try:
            return replace_params(self._format, self._convertors, dict(params))[0]
        except AssertionError as error:  # Starlette's convertors refuse values by failing an assertion
            raise ValueError(str(error)) from None

    def leads_here(self, path: str) -> bool:
        return self._regex.match(path) is not None and self._is_free(self._prefix + path)
