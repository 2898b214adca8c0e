"""Flattens the routers that a Starlette or FastAPI app includes: their routes, and their settings."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from starlette.routing import BaseRoute

from ..models import RouteSettings
from ..sitemap_decorator import NO_SETTINGS, merge_settings, routers_with_settings
from .framework_detection import get_attribute


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


class IncludedRouters:
    """The settings of routers that are included in others, by endpoint or mounted app, and end of the path.

    FastAPI before 0.137 copies the routes of an included router and forgets the
    router. The copy has the same endpoint, and a path that ends with the original one.
    """

    def __init__(self) -> None:
        self._settings: dict[int, list[tuple[int, int, str, RouteSettings]]] = {}
        """By id of endpoint or app: length of the path, number of the router's routes, path, settings."""
        for router, settings in routers_with_settings():
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
