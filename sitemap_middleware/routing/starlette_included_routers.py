"""Flattens the routers that a Starlette or FastAPI app includes: their routes, snapshots and settings."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from starlette.routing import BaseRoute, Host, Mount, WebSocketRoute
from starlette.routing import Route as StarletteRoute

from ..models import RouteSettings
from ..sitemap_decorator import NO_SETTINGS, merge_settings, routers_with_settings
from .framework_detection import get_attribute
from .route_change_detector import ReadState, Snapshot

_OWN_TYPES: Final = {StarletteRoute, Mount, Host, WebSocketRoute}
"""Routes that stand for no others."""


def routes_and_originals(app: Any, snapshot: Snapshot) -> Iterable[tuple[Any, Any]]:
    """`flatten` of a whole app: in a quarter of the time if all routes are Starlette's own.

    The snapshot gets what they are read from.
    """
    routes, are_own = _add_router(app, snapshot, set())
    return zip(routes, routes, strict=True) if are_own else flatten(routes)


def flatten(routes: Iterable[BaseRoute]) -> Iterator[tuple[Any, Any]]:
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


def _add_router(router: Any, snapshot: Snapshot, seen: set[int]) -> tuple[Sequence[Any], bool]:
    """Add to the snapshot the routes of a router and of those included in it, and FastAPI's frontends.

    Returns:
        The router's routes, and whether all are Starlette's own.
    """
    read_frontends = partial(getattr, getattr(router, "router", router), "_low_priority_routes", None)
    snapshot.add(read_frontends)
    for group in read_frontends() or ():
        snapshot.add(partial(getattr, group, "routes", None))
    return _add_routes(partial(getattr, router, "routes", None), snapshot, seen)


def _add_routes(read_routes: ReadState, snapshot: Snapshot, seen: set[int]) -> tuple[Sequence[Any], bool]:
    snapshot.add(read_routes)
    routes = snapshot.add_identities(lambda: read_routes() or ())
    if {*map(type, routes)} <= _OWN_TYPES:
        return routes, True
    for route in routes:
        inner = get_attribute(route, "original_router")
        if inner is not None and id(inner) not in seen:
            seen.add(id(inner))
            _add_router(inner, snapshot, seen)
    return routes, False


class IncludedRouters:
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
            routes = list(flatten(getattr(router, "routes", ())))
            for route, _ in routes:
                path = get_attribute(route, "path") or ""
                target = get_attribute(route, "endpoint") or get_attribute(route, "app")
                self._settings.setdefault(id(target), []).append((len(path), len(routes), path, settings))

    @property
    def targets(self) -> Collection[int]:
        """The ids of the endpoints and mounted apps of these routers."""
        return self._settings

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
