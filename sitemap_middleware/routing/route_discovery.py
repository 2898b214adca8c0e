"""Discovers the routes of an app, and what the modules of the frameworks share to read them.

The module of a framework has the function `read_routes(app, position)`, which yields the routes that answer GET in the
order in which the router tries them. If the framework has a setting for it, `trusted_hosts(app)` gives the hosts that
are trusted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from importlib import import_module
from typing import Any, NamedTuple

from ..evidence.observations import INDEXABLE_TYPES
from ..models import Context, HiddenReason, PathBuilder, Route, RouteSettings
from ..options.decorator import inherited_settings, merge_settings
from .framework_detection import MAX_LAYERS, framework_app, framework_of, layers, mounted_apps

IsFree = Callable[[str], bool]
"""Whether a decoded path is taken by none of the routes and mounts that come first."""


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


class Position(NamedTuple):
    """Where an app is mounted.

    The module of a framework gets the routes of mounted apps by `below`: they may be of another framework.
    """

    prefix: str = ""
    host: str | None = None
    """The host that the app is mounted for; None for every host."""
    known_hosts: tuple[str, ...] = ()
    """The hosts that the options and the app's settings name. Routes for a pattern of hosts are read for these."""
    depth: int = 0

    def below(self, app: Any, path: str = "", host: str | None = None) -> Iterator[Route]:
        """The routes of an app that is mounted at a path of this one, and for a host if that is given."""
        return _routes(app, self._replace(prefix=self.prefix + path, host=host or self.host, depth=self.depth + 1))


class BasePathBuilder(ABC):
    """Builds and matches the paths of one route with parameters.

    A framework says how it writes a path, and whether a path leads to the route. A path that does not is never built.
    """

    def __init__(self, template: str, names: Iterable[str], prefix: str) -> None:
        self._template = template
        self._prefix = prefix
        self.parameter_names: frozenset[str] = frozenset(names)

    def build(self, params: Mapping[str, Any]) -> str:
        """The decoded path for some parameters. Raises `ValueError` if they do not fit the route."""
        check_params(params, self.parameter_names, self.parameter_names)
        path = self.write_path(params)
        if not self.leads_here(path):
            raise ValueError(f"{self._prefix}{path} is not routed to {self._prefix}{self._template}")
        return self._prefix + path

    def matches(self, path: str) -> bool:
        """Whether a decoded path is one of the route's."""
        return path.startswith(self._prefix) and self.leads_here(path[len(self._prefix) :])

    def context(self) -> Context | None:
        """What `build` and `matches` run in: nothing."""
        return None

    @abstractmethod
    def write_path(self, params: Mapping[str, Any]) -> str:
        """The decoded path for the route's parameters, without the prefix."""

    @abstractmethod
    def leads_here(self, path: str) -> bool:
        """Whether a decoded path, without the prefix, leads to this route."""


def check_params(params: Mapping[str, Any], required: AbstractSet[str], known: AbstractSet[str]) -> None:
    """Raise `ValueError` if parameters are missing, or are not the route's."""
    if missing := required - params.keys():
        raise ValueError(f"the route's {', '.join(sorted(missing))} is missing")
    if unknown := params.keys() - known:
        raise ValueError(f"the route has no parameter {', '.join(sorted(map(str, unknown)))}")


def restrict_to_free_paths(routes: Iterable[Route], is_free: IsFree) -> Iterator[Route]:
    """Routes whose builders build only free paths."""
    for route in routes:
        yield route if route.builder is None else route._replace(builder=_RestrictedBuilder(route.builder, is_free))


def with_outer_settings(routes: Iterable[Route], *outer: RouteSettings) -> Iterator[Route]:
    """Routes of a mounted app with the settings of the mount and of the apps around it, the nearest first."""
    for route in routes:
        merged = route.settings
        for settings in outer:
            merged = merge_settings(merged, settings)
        merged, reason = inherited_settings(route.path, route.settings, merged)
        yield route._replace(settings=merged, not_learned_reason=reason or route.not_learned_reason)


def media_type_reason(media_type: str | None) -> HiddenReason | None:
    """The reason if a route declares a response of a type that is no page."""
    if not media_type or media_type.partition(";")[0] in INDEXABLE_TYPES:
        return None
    return HiddenReason(f"it declares a response of {media_type}", is_declared=True)


class _RestrictedBuilder:
    """A builder that refuses paths which are not free."""

    def __init__(self, builder: PathBuilder, is_free: IsFree) -> None:
        self._builder = builder
        self._is_free = is_free
        self.parameter_names = builder.parameter_names
        self.context: Callable[[], Context | None] = builder.context

    def build(self, params: Mapping[str, Any]) -> str:
        path = self._builder.build(params)
        if not self._is_free(path):
            raise ValueError(f"{path} leads to another route of the app")
        return path

    def matches(self, path: str) -> bool:
        return self._is_free(path) and self._builder.matches(path)
