"""Reads the routes of Starlette and FastAPI, including those of mounts, hosts and included routers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.routing import BaseRoute, Host, Mount, Router
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from ..models import HiddenReason, Route, RouteSettings, is_one_of
from ..sitemap_decorator import (
    ATTRIBUTE,
    NO_SETTINGS,
    endpoint_name,
    inherited_settings,
    merge_settings,
    settings_count,
    settings_of,
)
from ..urls import bare_host
from .app_layers_and_mounts import layers
from .declared_responses import DeclaredResponses
from .framework_detection import get_attribute
from .mounted_app_position import DiscoveryPosition, MatchBelow
from .plain_routes import PlainRoutes, internal_reason
from .prefix_index import PrefixIndex
from .shadowed_routes import EarlierRoutes, restrict_to_free_paths
from .starlette_included_routers import IncludedRouters, flatten, routes_and_originals
from .starlette_paths import StarlettePathBuilder, TakenPaths
from .static_html_files import html_files
from .unreadable_routes import warn_of_unreadable_route

_new_route: Final = partial(tuple.__new__, Route)
"""Makes a route of all its fields, in half of the time of `Route`."""


def read_routes(app: Any, position: DiscoveryPosition) -> Iterator[Route | PlainRoutes]:
    """The routes of an app or router that answer GET.

    Routers try routes in order, so a route that an earlier one shadows says which one that is.
    """
    prefix, host = position.prefix, position.host
    hosts: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    app_settings = merge_settings(settings_of(app), settings_of(getattr(app, "router", None)))
    included_routers = IncludedRouters(position.snapshot)
    has_app_settings = app_settings is not NO_SETTINGS
    in_routers = included_routers.targets
    has_settings = settings_count() > 0
    no_settings = not (has_settings or has_app_settings or in_routers)
    reading = _Reading(
        position,
        included_routers if in_routers or has_app_settings else None,
        app_settings,
        DeclaredResponses().hidden_reason,
        PrefixIndex(),
        TakenPaths(),
        EarlierRoutes(),
    )
    earlier, shadows = reading.earlier, reading.shadows
    plain, is_for_any_host = PlainRoutes(), host is None
    route: Any
    endpoint: Any
    # There may be 10,000 routes: this loop avoids calls.
    for route, original in routes_and_originals(app, position.snapshot):
        try:
            if (  # most routes: `_routes_of` takes three times as long, and finds the same
                type(route) is StarletteRoute
                and original is route
                and "{" not in (path := route.path)
                and type(endpoint := route.endpoint) is FunctionType
                and "GET" in (route.methods or ())
                and route.include_in_schema
                and not (shadows.any and shadows.known.get(path[: path.rfind("/")]) != [])
                and (
                    no_settings
                    or not (
                        has_app_settings
                        or (in_routers and id(endpoint) in in_routers)
                        or (has_settings and hasattr(route, ATTRIBUTE))
                    )
                )
            ):
                if prefix:
                    path = prefix + path
                settings = settings_of(endpoint) if has_settings else NO_SETTINGS
                earlier.append(route)
                if settings is NO_SETTINGS and path not in plain and is_for_any_host:
                    plain[path] = endpoint
                    continue
                name, reason = endpoint.__qualname__, internal_reason(endpoint)
                fields = path, name, True, host, settings, None, reason, None, None, None, elsewhere, None
                read: Iterable[Route] = (_new_route(fields),)
                hosts = ()
            else:
                hosts = _hosts_of(original, position, elsewhere)
                read = _routes_of(route, original, hosts, elsewhere, reading)
            if plain:
                yield plain
                plain = PlainRoutes()
            yield from read
            if hosts:
                elsewhere, is_for_any_host = elsewhere + hosts, False
                if host in elsewhere:  # all requests for the only host of this app get there
                    return
        except Exception as error:  # an attribute of the app's own class may raise anything
            warn_of_unreadable_route(route, error)
    if plain:
        yield plain
    yield from _except(_frontend_pages(app, reading), elsewhere)


class _Reading(NamedTuple):
    """What is known of an app when one of its routes is read."""

    position: DiscoveryPosition
    included_routers: IncludedRouters | None
    """None if no route has settings of a router or of the app."""
    app_settings: RouteSettings
    hidden_reason: Callable[[Any, Any, bool], HiddenReason | None]
    mounts: PrefixIndex[re.Pattern[str]]
    """The mounts up to now, by the literal beginnings of their paths."""
    earlier: TakenPaths
    shadows: EarlierRoutes


def _routes_of(
    route: Any, original: Any, hosts: Iterable[str], elsewhere: tuple[str, ...], reading: _Reading
) -> Iterator[Route]:
    """The routes that one route of an app stands for: itself, if it answers GET, or those of a mounted app.

    Args:
        route: as it answers, with the settings of the routers that include it.
        original: as the app defines it.
        hosts: those whose requests it takes, if it is a Host route.
        elsewhere: those whose requests earlier routes take.
        reading: the app.
    """
    position, included_routers, app_settings, hidden_reason, mounts, earlier, shadows = reading
    path, endpoint = getattr(route, "path", None), getattr(route, "endpoint", None)
    if endpoint is None:
        yield from _except(_routes_below(route, original, hosts, reading), elsewhere)
        return
    methods = getattr(original, "methods", ())
    if path is None or not (methods is None or "GET" in methods):
        return
    static = "{" not in path
    if not static and mounts and _is_mounted_path(path, mounts):
        return
    # A class without `get` takes GET requests and answers 405.
    answers = methods is not None or not isinstance(endpoint, type) or hasattr(endpoint, "get")
    may_be_shadowed = static and shadows.any and shadows.known.get(path[: path.rfind("/")]) != []
    shadowed_by = shadows.shadowing_path(path) if may_be_shadowed else None
    if not (static and answers):
        shadows.add(path, route.path_regex, position.prefix, endpoint)
    if not answers:
        return
    settings = own_settings = settings_of(endpoint)
    if getattr(original, ATTRIBUTE, None) is not None:
        settings = own_settings = merge_settings(settings_of(original), settings)
    if included_routers is not None:
        around = merge_settings(included_routers.settings(endpoint, path), app_settings)
        settings = merge_settings(settings, around)
    prefix, not_learned_reason, builder = position.prefix, None, None
    if settings.learn:
        settings, not_learned_reason = inherited_settings(prefix + path, own_settings, settings)
    if settings.values and not static:
        builder = StarlettePathBuilder(path, prefix, earlier.is_free_below(prefix))
    is_listed = type(original) is StarletteRoute and original.include_in_schema
    yield _new_route(
        (
            prefix + path,
            endpoint_name(endpoint),
            static,
            position.host,
            settings,
            None if is_listed else hidden_reason(route, original, static),
            internal_reason(endpoint),
            None,
            not_learned_reason,
            shadowed_by,
            elsewhere,
            builder,
        )
    )
    earlier.append(route)


def _routes_below(route: Any, original: Any, hosts: Iterable[str], reading: _Reading) -> Iterator[Route]:
    """The routes of the app of a mount, or of a Host route for these hosts."""
    position, included_routers, app_settings, _, mounts, earlier, shadows = reading
    if isinstance(original, Host):
        position.snapshot.add(partial(getattr, original, "app"))
        is_free = earlier.is_free_below(position.prefix)
        for host in hosts:
            below = restrict_to_free_paths(position.below(route.app, host=host), is_free)
            below = shadows.with_shadowed(below, position.prefix)
            yield from _with_outer_settings(below, settings_of(original), app_settings)
    elif isinstance(original, Mount):
        position.snapshot.add(partial(getattr, original, "app"))
        if "{" not in route.path and not _is_mounted_path(f"{route.path}/", mounts):
            is_free = earlier.is_free_below(position.prefix)
            below = restrict_to_free_paths(_mounted_routes(route, position), is_free)
            below = shadows.with_shadowed(below, position.prefix)
            of_router = NO_SETTINGS
            if included_routers is not None:
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
    for route, original in flatten(app.routes):
        if isinstance(original, Host):
            if host is not None and original.host_regex.match(bare_host(host)):
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


def _takes_get(route: BaseRoute) -> bool:
    """Whether a route takes GET requests. One whose methods are None takes all; a WebSocketRoute has no methods."""
    methods = getattr(route, "methods", ())
    return methods is None or "GET" in methods


def _hosts_of(route: Any, position: DiscoveryPosition, elsewhere: Collection[str]) -> tuple[str, ...]:
    """The hosts whose requests a Host route takes, except those that an earlier one takes. Other routes take none.

    Starlette matches the host in lower case and without its port. A route with a host pattern takes those known hosts
    that match it. Hosts known only as subdomains are represented by ``*.example.com``.
    """
    if not isinstance(route, Host):
        return ()
    if position.host is not None:
        hosts: tuple[str, ...] = (position.host,)
    elif "{" in route.host:
        position.snapshot.add_slow(position.known_hosts)
        hosts = position.known_hosts()
    else:
        hosts = (route.host.partition(":")[0].lower(),)
    return tuple(host for host in hosts if not is_one_of(host, elsewhere) and route.host_regex.match(host))


def _except(routes: Iterator[Route], hosts: tuple[str, ...]) -> Iterator[Route]:
    """Routes of an app that gets no requests for some hosts."""
    if not hosts:
        return routes
    return (
        route._replace(except_hosts=route.except_hosts + hosts) if route.is_for_many_hosts else route
        for route in routes
        if route.host is None or not is_one_of(route.host, hosts)
    )


def _mounted_routes(mount: Any, position: DiscoveryPosition) -> Iterator[Route]:
    for layer in layers(mount.app):
        if isinstance(layer, StaticFiles):
            return html_files(layer, position.snapshot, position.prefix + mount.path, position.host)
    return position.below(mount.app, mount.path)


def _is_mounted_path(path: str, mounts: PrefixIndex[re.Pattern[str]]) -> bool:
    """Whether an earlier mount takes a path: no later route gets its requests."""
    return any(regex.match(path) for regex in mounts.find(path))


def _frontend_pages(app: Starlette | Router, reading: _Reading) -> Iterator[Route]:
    """The pages of FastAPI's `app.frontend`."""
    position = reading.position
    for path, files in _frontends(app):
        pages = reading.shadows.with_shadowed(
            html_files(files, position.snapshot, position.prefix + path, position.host), position.prefix
        )
        yield from _with_outer_settings(pages, reading.app_settings)


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


def set_state(app: Any, name: str, value: object) -> None:
    """Set an attribute of a Starlette app's state, unless it has that attribute. A router has no state."""
    state = getattr(app, "state", None)
    if isinstance(state, State) and not hasattr(state, name):
        setattr(state, name, value)
