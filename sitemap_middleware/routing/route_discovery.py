"""Discovers the routes of an app: looks through its wrappers and mounts, and has each app's routes read by the module
of its framework.

A framework's module is imported only if an app is of that framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..models import Route
from .app_layers_and_mounts import MAX_LAYERS, framework_app, layers, layers_and_mounts, links, mounted_apps
from .mounted_app_position import DiscoveryPosition
from .plain_routes import PlainRoutes, each_route
from .route_change_detector import Snapshot
from .route_readers import reader_of
from .shadowed_routes import restrict_to_free_paths


def discover_routes(
    app: Any, snapshot: Snapshot, known_hosts: Callable[[], tuple[str, ...]] = tuple
) -> Iterator[Route | PlainRoutes]:
    """Every route that answers GET, of an app, of the apps that it wraps and of those mounted in it.

    Args:
        app: the app.
        snapshot: gets everything that is read.
        known_hosts: returns hosts that settings name, in lower case and without ports. Routes for a pattern of hosts
            are read for those of them that match it.
    """
    return _routes(app, DiscoveryPosition(_routes, snapshot, known_hosts=known_hosts))


def matching_template(app: Any, path: str, host: str | None, depth: int = 0) -> str | None:
    """The template of the route that the app's own router gives a GET of a decoded path; None if there is none.

    Args:
        app: the app.
        path: decoded.
        host: the host of the request, if the app has routes for that host only.
        depth: how many apps are around this one.
    """
    if depth > MAX_LAYERS:
        return None
    for layer in layers(app):
        mounts = mounted_apps(layer)
        for prefix in sorted(mounts, key=len, reverse=True):
            if f"{path}/".startswith(f"{prefix}/"):
                template = matching_template(mounts[prefix], path[len(prefix) :], host, depth + 1)
                return None if template is None else prefix + template
        if (reader := reader_of(layer)) is not None:
            return reader.matching_template(layer, path, host, partial(matching_template, depth=depth + 1))
    return None


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""
    app = framework_app(app)
    reader = reader_of(app)
    return reader.trusted_hosts(app) if reader is not None else ()


def _routes(app: Any, position: DiscoveryPosition) -> Iterator[Route | PlainRoutes]:
    """The routes of an app that is mounted at a position."""
    if position.depth > MAX_LAYERS:
        return iter(())
    routes: list[Route | PlainRoutes] = []
    position.snapshot.add(links(app))
    position.snapshot.add_slow(partial(layers_and_mounts, app))
    app_layers = list(layers(app))
    taken: list[str] = []
    for layer in app_layers:
        mounts = mounted_apps(layer)
        for path in sorted(mounts, key=len, reverse=True):  # dispatchers try the longest prefix first
            routes += _outside(position.below(mounts[path], path), taken)
            taken.append(position.prefix + path)
    for layer in app_layers:
        if (reader := reader_of(layer)) is not None:
            routes += _outside(reader.read_routes(layer, position), taken)
    return iter(routes)


def _outside(routes: Iterator[Route | PlainRoutes], prefixes: list[str]) -> Iterator[Route | PlainRoutes]:
    """Routes without those below these prefixes, whose requests go to mounted apps."""
    before = tuple(prefixes)
    if not before:
        return routes

    def is_free(path: str) -> bool:
        return not any(f"{path}/".startswith(f"{prefix}/") for prefix in before)

    return restrict_to_free_paths((route for route in each_route(routes) if is_free(route.path)), is_free)
