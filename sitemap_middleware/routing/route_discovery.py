"""Discovers the routes of an app, of those it wraps and of those mounted in it, by the readers of frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

from ..models import Route
from .app_layers_and_mounts import MAX_LAYERS, framework_app, layers, mounted_apps
from .earlier_routes import restrict_to_free_paths
from .framework_detection import framework_of
from .reading import Position, RouteReader


def discover_routes(app: Any, known_hosts: Callable[[], tuple[str, ...]] = tuple) -> Iterator[Route]:
    """Every route that answers GET, of an app, of the apps that it wraps and of those mounted in it.

    Args:
        app: the app.
        known_hosts: returns hosts that settings name, in lower case and without ports. Routes for a pattern of hosts
            are read for those of them that match it.
    """
    return _routes(app, Position(_routes, known_hosts=known_hosts))


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""
    app = framework_app(app)
    reader = _reader_of(app)
    return reader.trusted_hosts(app) if reader is not None else ()


def _reader_of(app: Any) -> RouteReader | None:
    """The module that reads the routes of the app's framework, the only one that is imported; None if it has none."""
    framework = framework_of(app)
    return framework and cast("RouteReader", import_module(f".{framework}_routes", __package__))


def _routes(app: Any, position: Position) -> Iterator[Route]:
    """The routes of an app that is mounted at a position."""
    if position.depth > MAX_LAYERS:
        return
    app_layers = list(layers(app))
    taken: list[str] = []
    for layer in app_layers:
        mounts = mounted_apps(layer)
        for path in sorted(mounts, key=len, reverse=True):  # dispatchers try the longest prefix first
            yield from _outside(position.below(mounts[path], path), taken)
            taken.append(position.prefix + path)
    for layer in app_layers:
        if (reader := _reader_of(layer)) is not None:
            yield from _outside(reader.read_routes(layer, position), taken)


def _outside(routes: Iterator[Route], prefixes: list[str]) -> Iterator[Route]:
    """Routes without those below these prefixes, whose requests go to mounted apps."""
    before = tuple(prefixes)
    if not before:
        return routes

    def is_free(path: str) -> bool:
        return not any(f"{path}/".startswith(f"{prefix}/") for prefix in before)

    return restrict_to_free_paths((route for route in routes if is_free(route.path)), is_free)
