"""Routes of Starlette and FastAPI, mounts and hosts included."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Host, Mount, Router
from starlette.staticfiles import StaticFiles

from ..decorator import UNSAID, mark_of, marked_routers, merged, name_of
from ..evidence import INDEXABLE
from ..model import Mark, Route
from . import layers, walk
from .files import html_files


def routes(app: Starlette | Router, prefix: str, host: str | None, depth: int) -> Iterator[Route]:
    """The routes that answer GET, through mounts, hosts and included routers, each by the first that takes its path."""
    around = merged(mark_of(app), mark_of(getattr(app, "router", None)))
    included = _Included()
    taken: list[re.Pattern[str]] = []
    for route in _flattened(app.routes):
        original = getattr(route, "original_route", route)
        if isinstance(original, Host):
            if "{" not in original.host:
                yield from _below(walk(route.app, prefix, original.host.lower(), depth + 1), mark_of(original), around)
            continue
        path, endpoint = getattr(route, "path", None), getattr(route, "endpoint", None)
        if isinstance(original, Mount):
            if "{" not in route.path and not _matched(f"{route.path}/", taken):
                below = _mounted(route.app, prefix + route.path, host, depth)
                yield from _below(below, mark_of(original), included.mark(route.app, route.path), around)
            taken.append(route.path_regex)
            continue
        if path is None or endpoint is None or not _answers_get(original, endpoint) or _matched(path, taken):
            continue
        mark = merged(mark_of(original), merged(mark_of(endpoint), included.mark(endpoint, path)))
        yield Route(
            path=prefix + path,
            endpoint=name_of(endpoint),
            static="{" not in path,
            host=host,
            mark=merged(mark, around),
            hidden=_hidden(route),
            internal=_internal(endpoint),
        )
    for path, files in _frontends(app):
        yield from _below(html_files(files, prefix + path, host), around)


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts of the app's own TrustedHostMiddleware."""
    found: list[str] = []
    for middleware in getattr(app, "user_middleware", ()):
        if getattr(middleware.cls, "__name__", "") == "TrustedHostMiddleware":
            hosts = dict(middleware.kwargs).get("allowed_hosts") or (list(middleware.args) or [()])[0]
            found += [host.lower() for host in hosts if host != "*"]
    return tuple(found)


def _flattened(routes: Iterable[BaseRoute]) -> Iterator[Any]:
    """The routes, with FastAPI's included routers opened: since 0.137 they are one opaque object each."""
    opened = getattr(sys.modules.get("fastapi.routing"), "iter_route_contexts", None)
    return iter(opened(list(routes)) if opened else routes)


def _mounted(inner: Any, prefix: str, host: str | None, depth: int) -> Iterator[Route]:
    for layer in layers(inner):
        if isinstance(layer, StaticFiles):
            return html_files(layer, prefix, host)
    return walk(inner, prefix, host, depth + 1)


def _frontends(app: Starlette | Router) -> Iterator[tuple[str, StaticFiles]]:
    """The folders that FastAPI serves where no route does (`app.frontend`), and where."""
    router: Any = getattr(app, "router", app)
    for group in getattr(router, "_iter_low_priority_routes", tuple)():
        prefix = getattr(group, "frontend_prefix", "")
        routes = getattr(getattr(group, "original_route", group), "routes", ())
        yield from ((prefix + route.path.rstrip("/"), route.app) for route in routes if _is_files(route))


def _is_files(route: Any) -> bool:
    return isinstance(getattr(route, "app", None), StaticFiles)


def _below(routes: Iterable[Route], *around: Mark) -> Iterator[Route]:
    """Routes of a mounted app, under what is said of the mount and of the app that has it, the nearest first."""
    for route in routes:
        mark = route.mark
        for said in around:
            mark = merged(mark, said)
        yield route if mark is route.mark else replace(route, mark=mark)


def _matched(path: str, taken: Iterable[re.Pattern[str]]) -> bool:
    """Whether one of the mounts before it takes a path; it then never comes to what stands after."""
    return any(mount.match(path) for mount in taken)


def _answers_get(route: BaseRoute, endpoint: Any) -> bool:
    if not hasattr(route, "methods"):
        return False  # a WebSocketRoute
    if route.methods is None:
        return not isinstance(endpoint, type) or hasattr(endpoint, "get")
    return "GET" in route.methods


def _hidden(route: Any) -> str | None:
    """Why FastAPI's own declarations keep a route out until it was seen to be a page."""
    declared = getattr(route, "response_class", None)
    declared = getattr(declared, "value", declared)  # the default is wrapped in a DefaultPlaceholder
    if isinstance(declared, type) and issubclass(declared, RedirectResponse):
        return "it declares a redirect"
    media_type = getattr(declared, "media_type", None) or ""
    if media_type and media_type.partition(";")[0] not in INDEXABLE:
        return f"it declares a response of {media_type}"
    if not getattr(route, "include_in_schema", True):
        return "it is left out of the API's schema"
    return None


def _internal(endpoint: Any) -> str | None:
    """Why it is never a page of the site: FastAPI makes `/docs`, `/redoc` and `/openapi.json` in its own module."""
    if getattr(endpoint, "__module__", None) == "fastapi.applications":
        return "it is FastAPI's own documentation of the API"
    return None


class _Included:
    """The marks of routers that are included in others, by endpoint or mounted app, and the end of the path.

    FastAPI before 0.137 copies the routes of an included router and forgets whose
    they were; the endpoint is the same, and the path has a prefix before it.
    """

    def __init__(self) -> None:
        self._marks: dict[int, list[tuple[int, int, str, Mark]]] = {}
        for router, mark in marked_routers():
            routes = list(_flattened(getattr(router, "routes", ())))
            for route in routes:
                path = getattr(route, "path", None) or ""
                served = getattr(route, "endpoint", None) or getattr(route, "app", None)
                self._marks.setdefault(id(served), []).append((len(path), len(routes), path, mark))

    def mark(self, served: object, path: str) -> Mark:
        """What the routers around an endpoint say; the nearer one first: its path is shorter, or its routes fewer."""
        found = UNSAID
        for _, _, end, mark in sorted(self._marks.get(id(served), ()), key=lambda known: known[:2]):
            if path.endswith(end):
                found = merged(found, mark)
        return found
