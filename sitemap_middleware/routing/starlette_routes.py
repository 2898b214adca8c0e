"""Reads the routes of Starlette and FastAPI, including those of mounts, hosts and included routers."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Host, Mount, Router, compile_path, replace_params
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from ..models import NO_SETTINGS, HiddenReason, PathBuilder, Route, RouteSettings
from ..options.decorator import (
    ATTRIBUTE,
    endpoint_name,
    merge_settings,
    routers_with_settings,
    settings_of,
)
from ..util import WarnOnce
from .framework_detection import get_attribute, layers
from .route_discovery import NEEDS_QUERY, Position, media_type_reason, on_free_paths, with_outer_settings

MAX_FILES: Final = 50_000
"""Files read of one folder. The rest are not listed before they are visited."""

RECHECK_SECONDS: Final = 60.0
"""Seconds after which a folder is read again. Its files may change at any time, and a walk takes milliseconds."""

_read: Final[WeakKeyDictionary[StaticFiles, tuple[float, dict[str, tuple[str, int]]]]] = WeakKeyDictionary()
"""When each `StaticFiles` was read, by `time.monotonic`, and its pages then."""

_warn_once: Final = WarnOnce()

_NOT_IN_SCHEMA: Final = HiddenReason("it is left out of the API's schema")


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The routes of an app or router that answer GET.

    Routers try routes in order, so a static route whose path an earlier route takes is left out.
    """
    reading = _Reading(app, position)
    for route, original in _flatten(getattr(app, "routes", None) or ()):
        try:
            yield from reading.routes_of(route, original)
        except Exception as error:  # an attribute of the app's own class, such as a lazy one, may raise anything
            kind = f"{type(route).__module__}.{type(route).__qualname__}"
            _warn_once(
                kind,
                "a route of the class %s cannot be read (%s) and is left out; the app's other routes are listed",
                kind,
                type(error).__name__,
            )
    yield from reading.frontend_pages(app)


class _Reading:
    """One reading of the routes of one app or router."""

    def __init__(self, app: Any, position: Position) -> None:
        self.position = position
        self.app_settings: RouteSettings = merge_settings(settings_of(app), settings_of(getattr(app, "router", None)))
        self.included_routers = _IncludedRouters()
        self.earlier = _EarlierRoutes(position.prefix)
        self._hosts: list[str] = []
        """Those whose requests the Host routes take that were read so far."""

    def routes_of(self, route: Any, original: Any) -> Iterator[Route]:
        """The routes that one route of an app stands for: itself, if it answers GET, or those of a mounted app."""
        if self.position.host in self._hosts:
            return  # all requests for the only host of this app get to an earlier route
        if isinstance(original, Host):
            for host in self._hosts_of(original):
                yield from self._below(self.position.below(route.app, host=host), original)
        elif isinstance(original, Mount):
            if "{" not in route.path:
                of_router = self.included_routers.settings(route.app, route.path)
                routes = on_free_paths(self._mounted_routes(route), self.earlier.free_test())
                yield from self._below(routes, original, of_router)
            self.earlier.add(f"{route.path}/{{path}}", route.path_regex)
        elif getattr(route, "endpoint", None) is not None:
            yield from self._route(route, original)

    def _route(self, route: Any, original: Any) -> Iterator[Route]:
        """The route of an endpoint, if it answers GET."""
        path, endpoint = getattr(route, "path", None), route.endpoint
        methods = getattr(original, "methods", ())  # None stands for all; a WebSocketRoute has none
        if path is None or not (methods is None or "GET" in methods):
            return
        static = "{" not in path
        is_taken = static and self.earlier.takes(path)
        is_taken |= methods is None and isinstance(endpoint, type) and not hasattr(endpoint, "get")  # which answers 405
        own_settings = merge_settings(getattr(original, ATTRIBUTE, NO_SETTINGS), settings_of(endpoint))
        around = merge_settings(self.included_routers.settings(endpoint, path), self.app_settings)
        found = self.position.route(
            path,
            endpoint_name(endpoint),
            own_settings,
            merge_settings(own_settings, around),
            hidden=_hidden_reason(route, original),
            defaults=_defaults(route),
            builder=None if static else partial(_paths, path, self.position.prefix, self.earlier),
        )
        self.earlier.add(path, route.path_regex)
        if not is_taken:
            yield found

    def _below(self, routes: Iterator[Route], original: Any, of_router: RouteSettings = NO_SETTINGS) -> Iterator[Route]:
        """The routes of the app of a mount or a Host route, with the settings around it."""
        return with_outer_settings(self.earlier.reached(routes), settings_of(original), of_router, self.app_settings)

    def _hosts_of(self, route: Host) -> Iterator[str]:
        """The hosts whose requests a Host route takes: they never get to a later one.

        Starlette matches the host in lower case and without its port. A route with a host pattern takes those known
        hosts that match it. Hosts known only as subdomains are represented by ``*.example.com``.
        """
        hosts = self.position.known_hosts if "{" in route.host else (route.host.partition(":")[0].lower(),)
        if self.position.host is not None:
            hosts = (self.position.host,)
        wildcards = tuple(host[1:] for host in self._hosts if host.startswith("*"))
        for host in hosts:
            if host not in self._hosts and not host.endswith(wildcards) and route.host_regex.match(host):
                self._hosts.append(host)
                yield host

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
                    yield from with_outer_settings(self.earlier.reached(pages), self.app_settings)


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts of the app's own TrustedHostMiddleware."""
    trusted: list[str] = []
    for middleware in getattr(app, "user_middleware", ()):
        if getattr(middleware.cls, "__name__", "") == "TrustedHostMiddleware":
            hosts = dict(middleware.kwargs).get("allowed_hosts") or (list(middleware.args) or [()])[0]
            trusted += [host.lower() for host in hosts if host != "*"]
    return tuple(trusted)


def _paths(path: str, prefix: str, earlier: _EarlierRoutes) -> PathBuilder:
    regex, path_format, convertors = compile_path(path)
    is_free = earlier.free_test()

    def write(params: Mapping[str, Any]) -> str:
        try:
            return replace_params(path_format, convertors, dict(params))[0]
        except AssertionError as error:  # Starlette's convertors refuse values by failing an assertion
            raise ValueError(str(error)) from None

    def leads_here(path: str) -> bool:
        return regex.match(path) is not None and is_free(prefix + path)

    return PathBuilder(names=frozenset(convertors), prefix=prefix, write=write, leads_here=leads_here)


class _EarlierRoutes:
    """The routes and mounts of one app that were read so far, with paths below its prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._static = set[str]()
        self._others: list[tuple[str, re.Pattern[str]]] = []
        """Of those with parameters, and of mounts: what their paths begin with, and what they match."""

    def add(self, template: str, regex: re.Pattern[str]) -> None:
        """Add a route or mount."""
        start = template.partition("{")[0]
        if start == template:
            self._static.add(template)
        else:
            self._others.append((start, regex))

    def takes(self, path: str) -> bool:
        """Whether a route or mount takes the path of a static route."""
        return path in self._static or _is_taken(path, self._others)

    def free_test(self) -> Callable[[str], bool]:
        """Tells of a decoded path, with the prefix, whether none of the routes up to now takes it."""
        prefix, static, others = self._prefix, frozenset(self._static), tuple(self._others)

        def is_free(path: str) -> bool:
            below = path.removeprefix(prefix)
            return below not in static and not _is_taken(below, others)

        return is_free

    def reached(self, routes: Iterator[Route]) -> Iterator[Route]:
        """Routes of a mounted app without the static ones whose paths are taken."""
        return (route for route in routes if not (route.static and self.takes(route.path.removeprefix(self._prefix))))


def _is_taken(path: str, others: Iterable[tuple[str, re.Pattern[str]]]) -> bool:
    return any(path.startswith(start) and regex.match(path) is not None for start, regex in others)


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


class _IncludedRouters:
    """The settings of routers that are included in others, by endpoint or mounted app, and end of the path.

    FastAPI before 0.137 copies the routes of an included router and forgets the
    router. The copy has the same endpoint, and a path that ends with the original one.
    """

    def __init__(self) -> None:
        self._settings: dict[int, list[tuple[str, RouteSettings]]] = {}
        """By id of endpoint or app. Of one path, that of the nearest router, with the fewest routes, is first."""
        routers = [(list(_flatten(getattr(router, "routes", ()))), given) for router, given in routers_with_settings()]
        for routes, given in sorted(routers, key=lambda router: len(router[0])):
            for route, _ in routes:
                target = get_attribute(route, "endpoint") or get_attribute(route, "app")
                self._settings.setdefault(id(target), []).append((get_attribute(route, "path") or "", given))

    def settings(self, target: object, path: str) -> RouteSettings:
        """The merged settings of the routers around an endpoint or app. The nearest has the shortest path."""
        known = sorted(self._settings.get(id(target), ()), key=lambda known: len(known[0]))
        return reduce(merge_settings, (given for end, given in known if path.endswith(end)), NO_SETTINGS)


def _hidden_reason(route: Any, original: Any) -> HiddenReason | None:
    """Why the declarations of a route hide it until a response shows that it is a page; None if it may be listed."""
    if type(original) is StarletteRoute:  # it declares nothing else
        return None if original.include_in_schema else _NOT_IN_SCHEMA
    nicegui_pages = getattr(getattr(sys.modules.get("nicegui.client"), "Client", None), "page_routes", ())
    # The routes of the functions that NiceGUI's `ui.page` decorates declare nothing.
    if not (nicegui_pages and getattr(getattr(original, "endpoint", None), "__wrapped__", None) in nicegui_pages):
        response_class = getattr(route, "response_class", None)
        response_class = getattr(response_class, "value", response_class)  # the default is in a DefaultPlaceholder
        if isinstance(response_class, type) and issubclass(response_class, RedirectResponse):
            return HiddenReason("it declares a redirect", is_declared=True)
        if reason := media_type_reason(getattr(response_class, "media_type", None)):
            return reason
        if not getattr(route, "include_in_schema", True):
            return _NOT_IN_SCHEMA
        if (dependant := getattr(route, "dependant", None)) is not None and _needs_query(dependant):
            return NEEDS_QUERY
    return None


def _defaults(route: Any) -> dict[str, object]:
    """The defaults of the parameters that a view of FastAPI has and the path lacks: it takes them from the query.

    One may be the language of the pages without a prefix.
    """
    fields = getattr(getattr(route, "dependant", None), "query_params", ())
    return {field.name: field.field_info.default for field in fields}


def _needs_query(dependant: Any) -> bool:
    """Whether an endpoint of FastAPI, or what it depends on, has a query parameter without a default."""
    for info in (field.field_info for field in dependant.query_params):
        if info.is_required():
            parts = getattr(info.annotation, "model_fields", None)  # a model has a parameter for each field
            if parts is None or any(part.is_required() for part in parts.values()):
                return True
    return any(map(_needs_query, dependant.dependencies))


# The pages of `StaticFiles(html=True)`: its HTML files, dated by their modification times


def html_files(files: StaticFiles, prefix: str, host: str | None) -> Iterator[Route]:
    """The HTML files that a StaticFiles app serves, as static routes; none unless it is in HTML mode."""
    if not files.html:
        return
    known = _read.get(files)
    if known is None or time.monotonic() - known[0] >= RECHECK_SECONDS:
        known = _read[files] = time.monotonic(), _pages(files)
    for path, (file, last_modified) in known[1].items():
        yield Route(f"{prefix}/{path}", f"StaticFiles {file}", host=host, last_modified=last_modified)


def _pages(files: StaticFiles) -> dict[str, tuple[str, int]]:
    """File and modification time in POSIX seconds of each page, by its path below the mount."""
    pages: dict[str, tuple[str, int]] = {}
    for directory in map(Path, files.all_directories):
        for file in islice(directory.rglob("*"), MAX_FILES):
            path = _served_path(file.relative_to(directory).as_posix())
            is_served = files.follow_symlink or not file.is_symlink()
            if path is not None and path not in pages and is_served:
                with contextlib.suppress(OSError):  # deleted meanwhile, or a link to nothing
                    pages[path] = str(file), int(file.stat().st_mtime)
    return pages


def _served_path(file: str) -> str | None:
    """The path below the mount that serves a file: that of the folder for index.html. None if it is not a page."""
    if not file.lower().endswith((".html", ".htm", ".xhtml")) or file == "404.html" or "/." in f"/{file}":
        return None
    folder, _, name = file.rpartition("/")
    if name != "index.html":
        return file
    return f"{folder}/" if folder else ""
