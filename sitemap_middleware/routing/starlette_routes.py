"""Reads the routes of Starlette and FastAPI, including those of mounts, hosts and included routers."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Host, Mount, Router, compile_path, replace_params
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from ..evidence.observations import INDEXABLE_TYPES
from ..models import HiddenReason, Route, RouteSettings, is_one_of
from ..options.decorator import (
    ATTRIBUTE,
    NO_SETTINGS,
    endpoint_name,
    inherited_settings,
    merge_settings,
    routers_with_settings,
    settings_of,
)
from ..util import WarnOnce
from .framework_detection import get_attribute, layers
from .route_discovery import BasePathBuilder, IsFree, Position, PrefixIndex, restrict_to_free_paths
from .static_html_files import html_files

_INTERNAL_MODULE: Final = "fastapi.applications"
"""FastAPI makes `/docs`, `/redoc` and `/openapi.json` in its own module."""

_warn_once: Final = WarnOnce()

_NOT_IN_SCHEMA: Final = HiddenReason("it is left out of the API's schema")

_PARAMETER_KINDS: Final = (
    ("query_params", "query parameter"),
    ("header_params", "header"),
    ("cookie_params", "cookie"),
    ("body_params", "body"),
)
"""Attributes of FastAPI's dependants, and what each holds."""


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


class _Earlier(NamedTuple):
    position: int
    regex: re.Pattern[str]
    template: str
    endpoint: object
    """None for a mount."""
    is_static: bool


class EarlierRoutes:
    """The routes and mounts of one app that were read so far, by the literal beginnings of their templates."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._routes: PrefixIndex[_Earlier] = PrefixIndex()
        self._shadowing: PrefixIndex[_Earlier] = PrefixIndex()
        """Those that may take the path of a later static route; of two static routes of one path the first answers."""
        self._count = 0

    def add(self, template: str, regex: re.Pattern[str], endpoint: object = None) -> None:
        """Add a route, or a mount, which has no endpoint."""
        self._count += 1
        is_static = "{" not in template and endpoint is not None
        route = _Earlier(self._count, regex, template, endpoint, is_static)
        start = template.partition("{")[0]
        self._routes.add(start, route)
        if not is_static:
            self._shadowing.add(start, route)

    def add_unanswered(self, template: str, regex: re.Pattern[str], endpoint: object) -> None:
        """Add a static route that takes GET requests and answers none."""
        self._count += 1
        self._shadowing.add(template, _Earlier(self._count, regex, template, endpoint, is_static=True))

    def is_mounted(self, path: str) -> bool:
        """Whether an earlier mount takes a path or template, without the prefix: no later route gets its requests."""
        return any(route.endpoint is None and route.regex.match(path) for route in self._shadowing.find(path))

    def shadowing(self, path: str) -> str | None:
        """A description of the first route that takes a static route's path, without the prefix; None if none does."""
        route = next((route for route in self._shadowing.find(path) if route.regex.match(path)), None)
        if route is None:
            return None
        if route.endpoint is None:
            return f"what is mounted at {self._prefix}{route.template.rstrip('/') or '/'}"
        return f"{self._prefix}{route.template} ({endpoint_name(route.endpoint)})"

    def is_free(self) -> IsFree:
        """Tells whether none of the routes up to now takes a decoded path, given with the prefix."""
        count, routes, prefix = self._count, self._routes, self._prefix

        def is_free(path: str) -> bool:
            below = path.removeprefix(prefix)
            return not any(route.position <= count and route.regex.match(below) for route in routes.find(below))

        return is_free

    def with_shadowed(self, routes: Iterator[Route]) -> Iterator[Route]:
        """Routes of a mounted app, each with the route that shadows it, if any."""
        for route in routes:
            name = self.shadowing(route.path.removeprefix(self._prefix)) if route.static else None
            yield route._replace(shadowed_by=name) if name and route.shadowed_by is None else route


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


class DeclaredResponses:
    """Why the declarations of FastAPI and Starlette hide a route until a response shows that it is a page.

    Reasons are cached by response class, because many routes share a few.
    """

    def __init__(self) -> None:
        self._of_classes: dict[type, HiddenReason | None] = {}
        client = getattr(sys.modules.get("nicegui.client"), "Client", None)
        self._nicegui_pages = getattr(client, "page_routes", ())
        """The functions that NiceGUI's `ui.page` decorates. Their routes declare nothing."""

    def hidden_reason(self, route: Any, original: Any, static: bool) -> HiddenReason | None:
        """The reason of one route; None if it may be listed at once.

        Args:
            route: as it answers, with the settings of the routers that include it.
            original: as the app defines it.
            static: whether it has no parameters.
        """
        if type(original) is StarletteRoute:  # it declares nothing else
            return None if original.include_in_schema else _NOT_IN_SCHEMA
        if self._is_nicegui_page(getattr(original, "endpoint", None)):
            return _required_parameter(original) if static else None
        response_class = getattr(route, "response_class", None)
        response_class = getattr(response_class, "value", response_class)  # the default is in a DefaultPlaceholder
        if isinstance(response_class, type):
            if response_class not in self._of_classes:
                self._of_classes[response_class] = _not_a_page(response_class)
            reason = self._of_classes[response_class]
            if reason is not None:
                return reason
        if not getattr(route, "include_in_schema", True):
            return _NOT_IN_SCHEMA
        return _required_parameter(original) if static else None

    def _is_nicegui_page(self, endpoint: Any) -> bool:
        return bool(self._nicegui_pages) and getattr(endpoint, "__wrapped__", None) in self._nicegui_pages


def _not_a_page(response_class: type) -> HiddenReason | None:
    """The reason if responses of a class are not pages."""
    if issubclass(response_class, RedirectResponse):
        return HiddenReason("it declares a redirect", is_declared=True)
    media_type = getattr(response_class, "media_type", None) or ""
    if media_type and media_type.partition(";")[0] not in INDEXABLE_TYPES:
        return HiddenReason(f"it declares a response of {media_type}", is_declared=True)
    return None


def _required_parameter(route: Any) -> HiddenReason | None:
    """The reason if a FastAPI route answers a plain GET with an error, because a query, header or body is required."""
    dependant = getattr(route, "dependant", None)
    dependants = [dependant] if dependant is not None else []
    for dependant in dependants:  # grows while it is read: dependencies have dependencies
        dependants += dependant.dependencies
        for kind, description in _PARAMETER_KINDS:
            for field in getattr(dependant, kind):
                # The name depends on FastAPI's version.
                required = field.required if hasattr(field, "required") else field.field_info.is_required()
                if required:
                    return HiddenReason(f"it needs the {description} {field.alias!r}")
    return None
