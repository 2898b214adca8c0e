"""Routes of Starlette and FastAPI, mounts and hosts included."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Host, Mount, Router, compile_path, replace_params
from starlette.staticfiles import StaticFiles

from ..decorator import UNSAID, mark_of, marked_routers, merged, name_of
from ..evidence import INDEXABLE
from ..model import Context, Mark, Route
from . import behind, layers, refuse_keys, walk
from .files import html_files


def routes(app: Starlette | Router, prefix: str, host: str | None, depth: int) -> Iterator[Route]:
    """The routes that answer GET, through mounts, hosts and included routers, each by the first that takes its path."""
    around = merged(mark_of(app), mark_of(getattr(app, "router", None)))
    included = _Included()
    taken: list[re.Pattern[str]] = []
    before: list[_Rival] = []
    for route in _flattened(app.routes):
        original = getattr(route, "original_route", route)
        if isinstance(original, Host):
            if "{" not in original.host:
                yield from _below(walk(route.app, prefix, original.host.lower(), depth + 1), mark_of(original), around)
            continue
        path, endpoint = getattr(route, "path", None), getattr(route, "endpoint", None)
        if isinstance(original, Mount):
            if "{" not in route.path and not _matched(f"{route.path}/", taken):
                below = behind(_mounted(route.app, prefix + route.path, host, depth), _free(before, prefix, route.path))
                yield from _below(below, mark_of(original), included.mark(route.app, route.path), around)
            taken.append(route.path_regex)
            before.append((_literal(f"{route.path}/"), route.path_regex))
            continue
        if path is None or endpoint is None or not _answers_get(original, endpoint) or _matched(path, taken):
            continue
        mark = merged(mark_of(original), merged(mark_of(endpoint), included.mark(endpoint, path)))
        mark = merged(mark, around)
        enumerated = mark.values and "{" in path
        yield Route(
            path=prefix + path,
            endpoint=name_of(endpoint),
            static="{" not in path,
            host=host,
            mark=mark,
            hidden=_hidden(route),
            internal=_internal(endpoint),
            builder=_Builder(path, prefix, _free(before, prefix, path)) if enumerated else None,
        )
        before.append((_literal(path), route.path_regex))
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


_Rival = tuple[str, re.Pattern[str]]
"""A route, for those after it: what its paths begin with, and which they are."""


def _literal(path: str) -> str:
    """What stands before the first parameter."""
    return path.partition("{")[0]


def _free(before: Iterable[_Rival], prefix: str, path: str) -> Callable[[str], bool]:
    """Tells of the paths of a route or mount whether none of the routes before it takes them."""
    own = _literal(path)
    rivals = [rival for literal, rival in before if literal.startswith(own) or own.startswith(literal)]

    def free(whole: str) -> bool:
        return not _matched(whole.removeprefix(prefix), rivals)

    return free


class _Builder:
    """One route's template, and the routes before it."""

    def __init__(self, path: str, prefix: str, free: Callable[[str], bool]) -> None:
        self._regex, self._format, self._convertors = compile_path(path)
        self._prefix = prefix
        self._free = free

    def build(self, params: Mapping[str, Any]) -> str:
        refuse_keys(params, self._convertors, self._convertors)
        try:
            built, _ = replace_params(self._format, self._convertors, dict(params))
        except AssertionError as error:  # how Starlette's convertors refuse
            raise ValueError(str(error)) from None
        path = self._prefix + built
        if not self.leads_here(path):
            raise ValueError(f"{path} does not lead back to {self._prefix}{self._format}")
        return path

    def leads_here(self, path: str) -> bool:
        if not path.startswith(self._prefix) or not self._regex.match(path[len(self._prefix) :]):
            return False
        return self._free(path)

    def context(self) -> Context | None:
        return None


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
