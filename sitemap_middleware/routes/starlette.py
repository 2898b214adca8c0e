"""Routes of Starlette and FastAPI, mounts and hosts included."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Host, Mount, Router
from starlette.staticfiles import StaticFiles

from ..decorator import mark_of, marked_routers, merged
from ..model import Mark, Route
from . import layers, walk
from .files import html_files


def routes(app: Starlette | Router, prefix: str, host: str | None, depth: int) -> Iterator[Route]:
    """The routes that answer GET, through mounts, hosts and included routers."""
    around = merged(mark_of(app), mark_of(getattr(app, "router", None)))
    inherited = _inherited_marks()
    own = _framework_pages(app)
    for route in _flattened(app.routes):
        inner = getattr(route, "app", None)
        original = getattr(route, "original_route", route)
        if isinstance(original, Host):
            if "{" not in original.host:
                yield from _below(walk(inner, prefix, original.host.lower(), depth + 1), around)
            continue
        if isinstance(original, Mount):
            if "{" not in route.path:
                yield from _below(_mounted(inner, prefix + route.path, host, depth), around)
            continue
        endpoint = getattr(route, "endpoint", None)
        path = getattr(route, "path", None)
        if endpoint is None or path is None or not _answers_get(route, endpoint):
            continue
        mark = merged(merged(mark_of(endpoint), inherited.get(id(endpoint), Mark())), around)
        yield Route(
            path=prefix + path,
            endpoint=getattr(endpoint, "__qualname__", None) or type(endpoint).__qualname__,
            static="{" not in path,
            host=host,
            mark=mark,
            hidden=_hidden(route),
            internal="it is FastAPI's own documentation of the API" if path in own else None,
        )


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


def _below(routes: Iterable[Route], around: Mark) -> Iterator[Route]:
    """Routes of a mounted app, under what is said of the app that mounts it."""
    for route in routes:
        yield route if around == Mark() else replace(route, mark=merged(route.mark, around))


def _answers_get(route: Any, endpoint: Any) -> bool:
    methods = getattr(route, "methods", None)
    if not hasattr(route, "methods"):
        return False  # a WebSocketRoute
    if methods is None:
        return not isinstance(endpoint, type) or hasattr(endpoint, "get")
    return "GET" in methods


def _hidden(route: Any) -> str | None:
    """Why FastAPI's own declarations keep a route out until it was seen to be a page."""
    declared = getattr(route, "response_class", None)
    declared = getattr(declared, "value", declared)  # the default is wrapped in a DefaultPlaceholder
    media_type = getattr(declared, "media_type", None) or ""
    if "json" in media_type or "JSON" in getattr(declared, "__name__", ""):
        return "it declares a JSON response"
    if not getattr(route, "include_in_schema", True):
        return "it is left out of the API's schema"
    return None


def _framework_pages(app: Any) -> frozenset[str]:
    names = ("openapi_url", "docs_url", "redoc_url", "swagger_ui_oauth2_redirect_url")
    return frozenset(path for name in names if isinstance(path := getattr(app, name, None), str))


def _inherited_marks() -> dict[int, Mark]:
    """The marks of routers, by the endpoints on them."""
    marks: dict[int, Mark] = {}
    for router, mark in marked_routers():
        for route in _flattened(getattr(router, "routes", ())):
            marks[id(getattr(route, "endpoint", None))] = mark
    return marks
