"""Routes of Starlette and FastAPI, mounts and hosts included."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Host, Mount, Router, compile_path, replace_params
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from ..decorator import (
    ATTRIBUTE,
    NO_SETTINGS,
    endpoint_name,
    inherited_settings,
    merge_settings,
    routers_with_settings,
    settings_of,
)
from ..evidence.verdict import INDEXABLE_TYPES
from ..models import Context, HiddenReason, Route, RouteSettings
from .change_detector import ChangeDetector, ReadState
from .discovery import check_params, discover_routes, layers, shadowed_routes
from .discovery import matching_template as within
from .prefix_index import PrefixIndex
from .shadowed_routes import EarlierRoutes
from .static_files import html_files

_NOT_IN_SCHEMA: Final = HiddenReason("it is left out of the API's schema")

_PARAMETER_KINDS: Final = (
    ("query_params", "query parameter"),
    ("header_params", "header"),
    ("cookie_params", "cookie"),
    ("body_params", "body"),
)


def starlette_routes(
    app: Starlette | Router, witness: ChangeDetector, prefix: str, host: str | None, depth: int
) -> Iterator[Route]:
    """The routes that answer GET, through mounts, hosts and included routers, each by the first that takes its path."""
    _watch_router(app, witness, set())
    around = merge_settings(settings_of(app), settings_of(getattr(app, "router", None)))
    included = _IncludedRouters(witness)
    marked = bool(included)
    hidden_reason = _DeclaredResponses().hidden_reason
    taken: PrefixIndex[re.Pattern[str]] = PrefixIndex()
    before, shadows = _EarlierRoutes(), EarlierRoutes()
    for route, original in _flatten(app.routes):
        path, endpoint = getattr(route, "path", None), getattr(route, "endpoint", None)
        if endpoint is None:
            if isinstance(original, Host):
                witness.watch(partial(getattr, original, "app"))
                if "{" not in original.host:
                    below = discover_routes(route.app, witness, prefix, original.host.lower(), depth + 1)
                    yield from _with_mount_settings(below, settings_of(original), around)
            elif isinstance(original, Mount):
                witness.watch(partial(getattr, original, "app"))
                if "{" not in route.path and not _is_mounted_path(f"{route.path}/", taken):
                    below = _mounted(route.app, witness, prefix + route.path, host, depth)
                    below = shadows.with_shadowed(shadowed_routes(below, before.is_free_below(prefix)), prefix)
                    yield from _with_mount_settings(
                        below, settings_of(original), included.settings(route.app, route.path), around
                    )
                taken.add(f"{route.path}/".partition("{")[0], route.path_regex)
                before.append(route)
                shadows.add(f"{route.path}/", route.path_regex, prefix, None)
            continue
        methods = getattr(original, "methods", ())  # this loop makes few calls, for there may be 10,000 routes
        if path is None or not (methods is None or "GET" in methods):
            continue
        static = "{" not in path
        if not static and taken and _is_mounted_path(path, taken):
            continue
        # A class without `get` is handed GET requests and refuses them.
        answers = methods is not None or not isinstance(endpoint, type) or hasattr(endpoint, "get")
        rivals = static and shadows.any and shadows.known.get(path[: path.rfind("/")]) != []
        shadow = shadows.shadowing_path(path) if rivals else None
        if not (static and answers):
            shadows.add(path, route.path_regex, prefix, endpoint)
        if not answers:
            continue
        mark = own = settings_of(endpoint)
        if marked:
            mark = merge_settings(mark, included.settings(endpoint, path))
        if getattr(original, ATTRIBUTE, None) is not None:
            mark, own = merge_settings(settings_of(original), mark), merge_settings(settings_of(original), own)
        if around is not NO_SETTINGS:
            mark = merge_settings(mark, around)
        mark, unlearned = inherited_settings(prefix + path, own, mark) if mark.learn else (mark, None)
        yield Route(
            prefix + path,
            endpoint_name(endpoint),
            static,
            host,
            mark,
            hidden_reason(route, original, static),
            _internal_reason(endpoint),
            None,
            unlearned,
            shadow,
            None if static or not mark.values else _PathBuilder(path, prefix, before.is_free_below(prefix)),
        )
        before.append(route)
    for path, files in _frontends(app):
        yield from _with_mount_settings(
            shadows.with_shadowed(html_files(files, witness, prefix + path, host), prefix), around
        )


def matching_template(app: Starlette | Router, path: str, host: str | None, depth: int) -> str | None:
    """The template of the first route that takes a GET of a path, through mounts and hosts; None if none does."""
    for route, original in _flatten(app.routes):
        if isinstance(original, Host):
            if original.host.lower() == host:
                return within(route.app, path, None, depth + 1)
            continue
        taken = getattr(route, "path_regex", None)
        match = taken.match(path) if taken is not None else None
        if match is None:
            continue
        if isinstance(original, Mount):
            found = within(route.app, f"/{match['path']}", host, depth + 1)
            return None if found is None else route.path + found
        endpoint = getattr(route, "endpoint", None)
        if endpoint is not None and _takes_get(original):
            return str(route.path)
    return None


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts of the app's own TrustedHostMiddleware."""
    found: list[str] = []
    for middleware in getattr(app, "user_middleware", ()):
        if getattr(middleware.cls, "__name__", "") == "TrustedHostMiddleware":
            hosts = dict(middleware.kwargs).get("allowed_hosts") or (list(middleware.args) or [()])[0]
            found += [host.lower() for host in hosts if host != "*"]
    return tuple(found)


def _flatten(routes: Iterable[BaseRoute]) -> Iterator[tuple[Any, Any]]:
    """The routes, as they are asked and as they were written.

    FastAPI's included routers are opened: since 0.137 they are one opaque object each.
    """
    opened = getattr(sys.modules.get("fastapi.routing"), "iter_route_contexts", None)
    for route in routes:
        if opened is None or not hasattr(route, "original_router"):
            yield route, route
            continue
        for context in opened([route]):  # whose attributes are slow to ask for, and those of what it stands for are not
            yield getattr(context, "_effective_route", context), context.original_route


def _watch_router(router: Any, witness: ChangeDetector, seen: set[int]) -> None:
    """Note the routes of an app or router, of those included in it, and what FastAPI serves where no route is."""
    frontends = partial(getattr, getattr(router, "router", router), "_low_priority_routes", None)
    witness.watch(frontends)
    for group in frontends() or ():
        witness.watch(partial(getattr, group, "routes", None))
    _watch_routes(partial(getattr, router, "routes", None), witness, seen)


def _watch_routes(look: ReadState, witness: ChangeDetector, seen: set[int]) -> None:
    witness.watch(look)
    witness.watch_identities(lambda: look() or ())
    for route in look() or ():
        inner = getattr(route, "original_router", None)
        if inner is not None and id(inner) not in seen:
            seen.add(id(inner))
            _watch_router(inner, witness, seen)


def _routes_of(router: weakref.ref[Any]) -> Any:
    """The routes of a router as long as there is one; None after that."""
    return getattr(router(), "routes", None)


def _mounted(inner: Any, witness: ChangeDetector, prefix: str, host: str | None, depth: int) -> Iterator[Route]:
    for layer in layers(inner):
        if isinstance(layer, StaticFiles):
            return html_files(layer, witness, prefix, host)
    return discover_routes(inner, witness, prefix, host, depth + 1)


def _frontends(app: Starlette | Router) -> Iterator[tuple[str, StaticFiles]]:
    """The folders that FastAPI serves where no route does (`app.frontend`), and where."""
    router: Any = getattr(app, "router", app)
    for group in getattr(router, "_iter_low_priority_routes", tuple)():
        prefix = getattr(group, "frontend_prefix", "")
        routes = getattr(getattr(group, "original_route", group), "routes", ())
        yield from ((prefix + route.path.rstrip("/"), route.app) for route in routes if _is_files(route))


def _is_files(route: Any) -> bool:
    return isinstance(getattr(route, "app", None), StaticFiles)


def _with_mount_settings(routes: Iterable[Route], *around: RouteSettings) -> Iterator[Route]:
    """Routes of a mounted app, under what is said of the mount and of the app that has it, the nearest first."""
    around = tuple(said for said in around if said is not NO_SETTINGS)
    for route in routes:
        mark = route.settings
        for said in around:
            mark = merge_settings(mark, said)
        if mark is route.settings:
            yield route
        else:
            mark, unlearned = inherited_settings(route.path, route.settings, mark)
            yield route._replace(settings=mark, not_learned_reason=unlearned or route.not_learned_reason)


class _EarlierRoutes(list[Any]):
    """The routes and mounts passed so far."""

    def __init__(self) -> None:
        self._rivals: PrefixIndex[tuple[int, re.Pattern[str]]] = PrefixIndex()
        self._known = 0

    def is_free_below(self, prefix: str) -> Callable[[str], bool]:
        """Tells of a path whether none of those passed so far takes it."""
        passed = len(self)

        def free(whole: str) -> bool:
            path = whole.removeprefix(prefix)
            return not any(number < passed and rival.match(path) for number, rival in self._of(path))

        return free

    def _of(self, path: str) -> list[tuple[int, re.Pattern[str]]]:
        """Those which may take a path. Few are ever asked for, so none is looked into before."""
        while self._known < len(self):
            route = self[self._known]
            template = route.path if hasattr(route, "endpoint") else f"{route.path}/"  # a mount's are below it
            self._rivals.add(template.partition("{")[0], (self._known, route.path_regex))
            self._known += 1
        return self._rivals.find(path)


class _PathBuilder:
    """One route's template, and the routes before it."""

    def __init__(self, path: str, prefix: str, free: Callable[[str], bool]) -> None:
        self._regex, self._format, self._convertors = compile_path(path)
        self.names = frozenset(self._convertors)
        self._prefix = prefix
        self._free = free

    def build(self, params: Mapping[str, Any]) -> str:
        check_params(params, self._convertors, self._convertors)
        try:
            built, _ = replace_params(self._format, self._convertors, dict(params))
        except AssertionError as error:  # how Starlette's convertors refuse
            raise ValueError(str(error)) from None
        path = self._prefix + built
        if not self.matches(path):
            raise ValueError(f"{path} does not lead back to {self._prefix}{self._format}")
        return path

    def matches(self, path: str) -> bool:
        if not path.startswith(self._prefix) or not self._regex.match(path[len(self._prefix) :]):
            return False
        return self._free(path)

    def context(self) -> Context | None:
        return None


def _is_mounted_path(path: str, taken: PrefixIndex[re.Pattern[str]]) -> bool:
    """Whether one of the mounts before it takes a path; it then never comes to what stands after."""
    return any(mount.match(path) for mount in taken.find(path))


def _takes_get(route: BaseRoute) -> bool:
    """Whether the app hands it GET requests: one without methods gets them all."""
    methods = getattr(route, "methods", ())  # a WebSocketRoute has none
    return methods is None or "GET" in methods


class _DeclaredResponses:
    """Why the declarations of FastAPI and Starlette hide a route until a response shows that it is a page."""

    def __init__(self) -> None:
        self._of_classes: dict[type, HiddenReason | None] = {}

    def hidden_reason(self, route: Any, original: Any, static: bool) -> HiddenReason | None:
        """The reason of one route; None if it may be listed at once.

        Args:
            route: as it answers, with the settings of the routers that include it.
            original: as it was written.
            static: whether it has no parameters.
        """
        if type(original) is StarletteRoute:  # it declares nothing else
            return None if original.include_in_schema else _NOT_IN_SCHEMA
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


def _internal_reason(endpoint: Any) -> str | None:
    """Why it is never a page of the site: FastAPI makes `/docs`, `/redoc` and `/openapi.json` in its own module."""
    if getattr(endpoint, "__module__", None) == "fastapi.applications":
        return "it is FastAPI's own documentation of the API"
    return None


class _IncludedRouters:
    """The marks of routers that are included in others, by endpoint or mounted app, and the end of the path.

    FastAPI before 0.137 copies the routes of an included router and forgets whose
    they were; the endpoint is the same, and the path has a prefix before it.
    """

    def __init__(self, witness: ChangeDetector) -> None:
        self._marks: dict[int, list[tuple[int, int, str, RouteSettings]]] = {}
        for router, mark in routers_with_settings():
            _watch_routes(partial(_routes_of, weakref.ref(router)), witness, set())  # it keeps none from its end
            routes = list(_flatten(getattr(router, "routes", ())))
            for route, _ in routes:
                path = getattr(route, "path", None) or ""
                served = getattr(route, "endpoint", None) or getattr(route, "app", None)
                self._marks.setdefault(id(served), []).append((len(path), len(routes), path, mark))

    def __bool__(self) -> bool:
        return bool(self._marks)

    def settings(self, served: object, path: str) -> RouteSettings:
        """What the routers around an endpoint say; the nearer one first: its path is shorter, or its routes fewer."""
        found = NO_SETTINGS
        for _, _, end, mark in sorted(self._marks.get(id(served), ()), key=lambda known: known[:2]):
            if path.endswith(end):
                found = merge_settings(found, mark)
        return found
