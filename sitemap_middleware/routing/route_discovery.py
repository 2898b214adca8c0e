"""Discovers the routes of an app, and what the modules of the frameworks share to read them.

The module of a framework has the function `read_routes(app, position)`, which yields the routes that answer GET in the
order in which the router tries them. If the framework has a setting for it, `trusted_hosts(app)` gives the hosts that
are trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ..evidence.observations import INDEXABLE_TYPES
from ..models import HiddenReason, PathBuilder, Route, RouteSettings
from ..options.decorator import inherited_settings, merge_settings
from .framework_detection import MAX_LAYERS, framework_app, framework_of, layers, mounted_apps


def discover_routes(app: Any, known_hosts: tuple[str, ...] = ()) -> Iterator[Route]:
    """Every route that answers GET, of an app, of the apps that it wraps and of those mounted in it.

    `known_hosts` are those that settings name, in lower case and without ports. Routes for a pattern of hosts are read
    for those of them that match it.
    """
    return _routes(app, Position(known_hosts=known_hosts))


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""
    app = framework_app(app)
    read = getattr(_reader_of(app), "trusted_hosts", None)
    hosts: tuple[str, ...] = () if read is None else read(app)
    return hosts


def _reader_of(app: Any) -> Any:
    """The module that reads the routes of the app's framework, the only one that is imported; None if it has none."""
    framework = framework_of(app)
    return framework and import_module(f".{framework}_routes", __package__)


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
            taken.append(f"{position.prefix}{path}/")
    for layer in app_layers:
        if (reader := _reader_of(layer)) is not None:
            yield from _outside(reader.read_routes(layer, position), taken)


def _outside(routes: Iterator[Route], prefixes: list[str]) -> Iterator[Route]:
    """Routes without those below these prefixes, whose requests go to mounted apps."""
    before = tuple(prefixes)

    def is_free(path: str) -> bool:
        return not f"{path}/".startswith(before)

    return on_free_paths((route for route in routes if is_free(route.path)), is_free) if before else routes


def on_free_paths(routes: Iterable[Route], is_free: Callable[[str], bool]) -> Iterator[Route]:
    """Routes that build and match only those decoded paths that are free: the app tries others before them."""
    for route in routes:
        yield replace(route, builder=route.builder.except_taken(is_free)) if route.builder else route


class Position(NamedTuple):
    """Where an app is mounted. It makes the app's routes, and those of the apps that are mounted in it."""

    prefix: str = ""
    host: str | None = None
    """The host that the app is mounted for; None for every host."""
    known_hosts: tuple[str, ...] = ()
    """The hosts that the options and the app's settings name. Routes for a pattern of hosts are read for these."""
    depth: int = 0

    def below(self, app: Any, path: str = "", host: str | None = None) -> Iterator[Route]:
        """The routes of an app, perhaps of another framework, that is mounted at a path, and for a host if given."""
        return _routes(app, self._replace(prefix=self.prefix + path, host=host or self.host, depth=self.depth + 1))

    def route(
        self,
        template: str,
        endpoint: str,
        own_settings: RouteSettings,
        settings: RouteSettings | None = None,
        *,
        builder: Callable[[], PathBuilder] | None,
        host: str | None = None,
        hidden: HiddenReason | None = None,
        internal: str | None = None,
        defaults: Mapping[str, object] = MappingProxyType({}),
    ) -> Route:
        """A route of the app, whose template has no prefix yet.

        `own_settings` are those of its view, `settings` with those of what is around it. The `builder` of a route with
        parameters is called only if it has values.
        """
        path = self.prefix + template
        merged, not_learned_reason = inherited_settings(path, own_settings, settings or own_settings)
        return Route(
            path,
            endpoint,
            builder is None,
            host or self.host,
            merged,
            hidden,
            internal,
            not_learned_reason=not_learned_reason,
            defaults=tuple((name, value) for name, value in defaults.items() if isinstance(value, str)),
            builder=builder() if merged.values and builder is not None else None,
        )


def with_outer_settings(routes: Iterable[Route], *outer: RouteSettings) -> Iterator[Route]:
    """Routes of a mounted app with the settings of the mount and of the apps around it, the nearest first."""
    for route in routes:
        merged = route.settings
        for settings in outer:
            merged = merge_settings(merged, settings)
        merged, reason = inherited_settings(route.path, route.settings, merged)
        yield replace(route, settings=merged, not_learned_reason=reason or route.not_learned_reason)


NEEDS_QUERY: Final = HiddenReason("it needs a query parameter")
"""The reason if a route has a query parameter that each request must give."""


def media_type_reason(media_type: str | None) -> HiddenReason | None:
    """The reason if a route declares a response of a type that is no page."""
    if not media_type or media_type.partition(";")[0] in INDEXABLE_TYPES:
        return None
    return HiddenReason(f"it declares a response of {media_type}", is_declared=True)
