"""Reads the routes of Starlette and FastAPI, including those of mounts, hosts and included routers."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.routing import BaseRoute, Host, Mount, Router, WebSocketRoute
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from ..models import Route, RouteSettings
from ..sitemap_decorator import (
    ATTRIBUTE,
    NO_SETTINGS,
    endpoint_name,
    inherited_settings,
    merge_settings,
    routers_with_settings,
    settings_count,
    settings_of,
)
from .app_layers_and_mounts import layers
from .declared_responses import INTERNAL_MODULE, DeclaredResponses, internal_reason
from .framework_detection import get_attribute
from .mounted_app_position import DiscoveryPosition, MatchBelow
from .prefix_index import PrefixIndex
from .route_change_detector import ReadState, Snapshot
from .shadowed_routes import EarlierRoutes, restrict_to_free_paths
from .starlette_paths import StarlettePathBuilder, TakenPaths
from .static_html_files import html_files
from .unreadable_routes import warn_of_unreadable_route

_new_route: Final = partial(tuple.__new__, Route)
"""Makes a route of all its fields, in half of the time of `Route`."""

_OWN_TYPES: Final = {StarletteRoute, Mount, Host, WebSocketRoute}
"""Routes that stand for no others."""


def read_routes(app: Any, position: DiscoveryPosition) -> Iterator[Route]:
    """The routes of an app or router that answer GET.

    Routers try routes in order, so a route that an earlier one shadows says which one that is.
    """
    snapshot, prefix, host = position.snapshot, position.prefix, position.host
    _add_router(app, snapshot, set())
    app_settings = merge_settings(settings_of(app), settings_of(getattr(app, "router", None)))
    included_routers = _IncludedRouters(snapshot)
    may_inherit = bool(included_routers) or app_settings is not NO_SETTINGS
    hidden_reason = DeclaredResponses().hidden_reason
    mounts: PrefixIndex[re.Pattern[str]] = PrefixIndex()
    earlier, shadows = TakenPaths(), EarlierRoutes()
    reading = _Reading(position, included_routers, app_settings, mounts, earlier, shadows)
    has_settings = settings_count() > 0
    route: Any
    path: Any
    endpoint: Any
    # There may be 10,000 routes: this loop avoids calls.
    for route, original in _pairs([*app.routes]):
        try:
            if (  # most routes: what follows takes three times as long, and finds the same
                type(route) is StarletteRoute
                and original is route
                and "{" not in (path := route.path)
                and type(endpoint := route.endpoint) is FunctionType
                and "GET" in (route.methods or ())
                and route.include_in_schema
                and endpoint.__module__ != INTERNAL_MODULE
                and not may_inherit
                and not (shadows.any and shadows.known.get(path[: path.rfind("/")]) != [])
                and not (has_settings and hasattr(route, ATTRIBUTE))
            ):
                settings = settings_of(endpoint) if has_settings else NO_SETTINGS
                yield _new_route(
                    (prefix + path, endpoint.__qualname__, True, host, settings, None, None, None, None, None, None)
                )
                earlier.append(route)
                continue
            path, endpoint = getattr(route, "path", None), getattr(route, "endpoint", None)
            if endpoint is None:
                yield from _routes_below(route, original, reading)
                continue
            methods = getattr(original, "methods", ())
            if path is None or not (methods is None or "GET" in methods):
                continue
            static = "{" not in path
            if not static and mounts and _is_mounted_path(path, mounts):
                continue
            # A class without `get` takes GET requests and answers 405.
            answers = methods is not None or not isinstance(endpoint, type) or hasattr(endpoint, "get")
            may_be_shadowed = static and shadows.any and shadows.known.get(path[: path.rfind("/")]) != []
            shadowed_by = shadows.shadowing_path(path) if may_be_shadowed else None
            if not (static and answers):
                shadows.add(path, route.path_regex, prefix, endpoint)
            if not answers:
                continue
            settings = own_settings = settings_of(endpoint)
            if getattr(original, ATTRIBUTE, None) is not None:
                settings = own_settings = merge_settings(settings_of(original), settings)
            if may_inherit:
                around = merge_settings(included_routers.settings(endpoint, path), app_settings)
                settings = merge_settings(settings, around)
            settings, not_learned_reason = (
                inherited_settings(prefix + path, own_settings, settings) if settings.learn else (settings, None)
            )
            yield _new_route(
                (
                    prefix + path,
                    endpoint_name(endpoint),
                    static,
                    host,
                    settings,
                    None
                    if type(original) is StarletteRoute and original.include_in_schema
                    else hidden_reason(route, original, static),
                    internal_reason(endpoint),
                    None,
                    not_learned_reason,
                    shadowed_by,
                    None
                    if static or not settings.values
                    else StarlettePathBuilder(path, prefix, earlier.is_free_below(prefix)),
                )
            )
            earlier.append(route)
        except Exception as error:  # an attribute of the app's own class may raise anything
            warn_of_unreadable_route(route, error)
    for path, files in _frontends(app):
        yield from _with_outer_settings(
            shadows.with_shadowed(html_files(files, snapshot, prefix + path, host), prefix), app_settings
        )


class _Reading(NamedTuple):
    """What is known of an app when one of its routes is read."""

    position: DiscoveryPosition
    included_routers: _IncludedRouters
    app_settings: RouteSettings
    mounts: PrefixIndex[re.Pattern[str]]
    """The mounts up to now, by the literal beginnings of their paths."""
    earlier: TakenPaths
    shadows: EarlierRoutes


def _routes_below(route: Any, original: Any, reading: _Reading) -> Iterator[Route]:
    """The routes of the app of a mount or of a host."""
    position, included_routers, app_settings, mounts, earlier, shadows = reading
    if isinstance(original, Host):
        below = _routes_of_host(route, original, position)
        yield from _with_outer_settings(below, settings_of(original), app_settings)
    elif isinstance(original, Mount):
        position.snapshot.add(partial(getattr, original, "app"))
        if "{" not in route.path and not _is_mounted_path(f"{route.path}/", mounts):
            is_free = earlier.is_free_below(position.prefix)
            below = restrict_to_free_paths(_mounted_routes(route, position), is_free)
            below = shadows.with_shadowed(below, position.prefix)
            of_router = included_routers.settings(route.app, route.path)
            yield from _with_outer_settings(below, settings_of(original), of_router, app_settings)
        mounts.add(f"{route.path}/".partition("{")[0], route.path_regex)
        earlier.append(route)
        shadows.add(f"{route.path}/", route.path_regex, position.prefix, None)


def matching_template(app: Any, path: str, host: str | None, match_below: MatchBelow) -> str | None:
    """The template of the first route that takes a GET of a decoded path; None if there is none.

    Args:
        app: the app or router.
        path: decoded.
        host: the host of the request, if the app has routes for that host only.
        match_below: does the same for mounted apps, which may be of another framework.
    """
    for route, original in _flatten(app.routes):
        if isinstance(original, Host):
            if original.host.partition(":")[0].lower() == host:
                return match_below(route.app, path, None)
            continue
        regex = get_attribute(route, "path_regex")
        match = regex.match(path) if regex is not None else None
        if match is None:
            continue
        if isinstance(original, Mount):
            template = match_below(route.app, f"/{match['path']}", host)
            return None if template is None else route.path + template
        if getattr(route, "endpoint", None) is not None and _takes_get(original):
            return str(route.path)
    return None


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts of the app's own TrustedHostMiddleware."""
    trusted: list[str] = []
    for middleware in getattr(app, "user_middleware", ()):
        if getattr(middleware.cls, "__name__", "") == "TrustedHostMiddleware":
            hosts = dict(middleware.kwargs).get("allowed_hosts") or (list(middleware.args) or [()])[0]
            trusted += [host.lower() for host in hosts if host != "*"]
    return tuple(trusted)


def _pairs(routes: list[BaseRoute]) -> Iterable[tuple[Any, Any]]:
    """`_flatten` of a whole app: in a quarter of the time if all routes are Starlette's own."""
    return zip(routes, routes, strict=True) if {*map(type, routes)} <= _OWN_TYPES else _flatten(routes)


def _flatten(routes: Iterable[BaseRoute]) -> Iterator[tuple[Any, Any]]:
    """Pairs of a route as it answers and as the app defines it.

    FastAPI since 0.137 keeps an included router as one opaque route: its routes are yielded in its place.
    """
    iter_route_contexts = getattr(sys.modules.get("fastapi.routing"), "iter_route_contexts", None)
    for route in routes:
        if iter_route_contexts is None or get_attribute(route, "original_router") is None:
            yield route, route
            continue
        for context in iter_route_contexts([route]):
            # The attributes of a context are slow to read; those of its effective route are not.
            yield getattr(context, "_effective_route", context), context.original_route


def _takes_get(route: BaseRoute) -> bool:
    """Whether a route takes GET requests. One whose methods are None takes all; a WebSocketRoute has no methods."""
    methods = getattr(route, "methods", ())
    return methods is None or "GET" in methods


def _add_router(router: Any, snapshot: Snapshot, seen: set[int]) -> None:
    """Add to the snapshot the routes of a router and of those included in it, and FastAPI's frontends."""
    read_frontends = partial(getattr, getattr(router, "router", router), "_low_priority_routes", None)
    snapshot.add(read_frontends)
    for group in read_frontends() or ():
        snapshot.add(partial(getattr, group, "routes", None))
    _add_routes(partial(getattr, router, "routes", None), snapshot, seen)


def _add_routes(read_routes: ReadState, snapshot: Snapshot, seen: set[int]) -> None:
    snapshot.add(read_routes)
    snapshot.add_identities(lambda: read_routes() or ())
    for route in read_routes() or ():
        if type(route) in _OWN_TYPES:
            continue
        inner = get_attribute(route, "original_router")
        if inner is not None and id(inner) not in seen:
            seen.add(id(inner))
            _add_router(inner, snapshot, seen)


def _routes_of_host(route: Any, original: Host, position: DiscoveryPosition) -> Iterator[Route]:
    """The routes of the app of one host. Those of a host with parameters cannot be listed."""
    position.snapshot.add(partial(getattr, original, "app"))
    if "{" in original.host:
        return iter(())
    return position.below(route.app, host=original.host.partition(":")[0].lower())  # Starlette ignores the port


def _mounted_routes(mount: Any, position: DiscoveryPosition) -> Iterator[Route]:
    for layer in layers(mount.app):
        if isinstance(layer, StaticFiles):
            return html_files(layer, position.snapshot, position.prefix + mount.path, position.host)
    return position.below(mount.app, mount.path)


def _is_mounted_path(path: str, mounts: PrefixIndex[re.Pattern[str]]) -> bool:
    """Whether an earlier mount takes a path: no later route gets its requests."""
    return any(regex.match(path) for regex in mounts.find(path))


def _frontends(app: Starlette | Router) -> Iterator[tuple[str, StaticFiles]]:
    """The paths and folders of FastAPI's `app.frontend`, which serves files if no route matches."""
    router: Any = getattr(app, "router", app)
    for group in getattr(router, "_iter_low_priority_routes", tuple)():
        prefix = getattr(group, "frontend_prefix", "")
        routes = getattr(getattr(group, "original_route", group), "routes", ())
        yield from (
            (prefix + route.path.rstrip("/"), route.app)
            for route in routes
            if isinstance(getattr(route, "app", None), StaticFiles)
        )


def _with_outer_settings(routes: Iterable[Route], *outer: RouteSettings) -> Iterator[Route]:
    """Routes of a mounted app with the settings of the mount and of the apps around it, the nearest first."""
    outer = tuple(settings for settings in outer if settings is not NO_SETTINGS)
    for route in routes:
        merged = route.settings
        for settings in outer:
            merged = merge_settings(merged, settings)
        if merged is route.settings:
            yield route
        else:
            merged, reason = inherited_settings(route.path, route.settings, merged)
            yield route._replace(settings=merged, not_learned_reason=reason or route.not_learned_reason)


class _IncludedRouters:
    """The settings of routers that are included in others, by endpoint or mounted app, and end of the path.

    FastAPI before 0.137 copies the routes of an included router and forgets the
    router. The copy has the same endpoint, and a path that ends with the original one.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._settings: dict[int, list[tuple[int, int, str, RouteSettings]]] = {}
        """By id of endpoint or app: length of the path, number of the router's routes, path, settings."""
        for router, settings in routers_with_settings():
            # A weak reference: the snapshot must not keep the router alive.
            _add_routes(partial(_routes_of, weakref.ref(router)), snapshot, set())
            routes = list(_flatten(getattr(router, "routes", ())))
            for route, _ in routes:
                path = get_attribute(route, "path") or ""
                target = get_attribute(route, "endpoint") or get_attribute(route, "app")
                self._settings.setdefault(id(target), []).append((len(path), len(routes), path, settings))

    def __bool__(self) -> bool:
        return bool(self._settings)

    def settings(self, target: object, path: str) -> RouteSettings:
        """The merged settings of the routers around an endpoint or app.

        The nearest router comes first: its path is the shortest, or it has the fewest routes.
        """
        merged = NO_SETTINGS
        for _, _, end, settings in sorted(self._settings.get(id(target), ()), key=lambda known: known[:2]):
            if path.endswith(end):
                merged = merge_settings(merged, settings)
        return merged


def _routes_of(router: weakref.ref[Any]) -> Any:
    """The routes of a router; None once it is gone."""
    return getattr(router(), "routes", None)


def set_state(app: Any, name: str, value: object) -> None:
    """Set an attribute of a Starlette app's state, unless it has that attribute. A router has no state."""
    state = getattr(app, "state", None)
    if isinstance(state, State) and not hasattr(state, name):
        setattr(state, name, value)
