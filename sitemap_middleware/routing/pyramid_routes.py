"""Reads the routes of a Pyramid app. Pages that are found by traversal have no routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial, reduce
from typing import Any, Final
from urllib.parse import unquote

from pyramid.interfaces import IRoutesMapper

from ..models import NO_SETTINGS, HiddenReason, PathBuilder, Route
from ..options.decorator import endpoint_name, merge_settings, settings_of
from .route_discovery import Position

_PARAMETER: Final = re.compile(r"\{(?P<name>[_a-zA-Z]\w*)(?::(?P<regex>[^{}]*(?:\{[^{}]*\}[^{}]*)*))?\}")
"""A parameter of a pattern, perhaps with a regular expression, which may have braces."""
_OLD_PARAMETER: Final = re.compile(r"(/|^):([_a-zA-Z]\w*)")
_REST: Final = re.compile(r"\*(\w+)$")
_FILES: Final = HiddenReason("it serves static files", is_declared=True)


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The routes with a view that answers GET."""
    mapper = app.registry.queryUtility(IRoutesMapper)
    if mapper is None:  # a site by traversal only
        return
    views = _views_of_routes(app)
    for route in mapper.get_routes():
        if not _takes_get(app, route):
            continue
        callables = [_view_callable(view) for view in views.get(route.name, ()) if _has_get(view["request_methods"])]
        if route.name in views and not callables:
            continue
        template, names = _template(route.pattern)
        if not names and _matching_route(app, template) not in (None, route):
            continue  # another route takes its requests
        yield position.route(
            template,
            endpoint_name(callables[0]) if callables else route.name,
            reduce(merge_settings, map(settings_of, callables), NO_SETTINGS),
            hidden=_FILES if route.name.startswith("__") else None,  # named so by `add_static_view`
            builder=partial(_paths, app, route, names, position.prefix) if names else None,
        )


def _matching_route(app: Any, path: str) -> Any:
    """The first route that takes a GET of a decoded path, whatever the request. None if there is none."""
    mapper = app.registry.queryUtility(IRoutesMapper)
    for route in mapper.get_routes() if mapper is not None else ():
        depends_on_request = any(type(predicate).__name__ != "RequestMethodPredicate" for predicate in route.predicates)
        if not depends_on_request and _takes_get(app, route) and route.match(path) is not None:
            return route
    return None


def _takes_get(app: Any, route: Any) -> bool:
    introspectable = app.registry.introspector.get("routes", route.name)
    return introspectable is None or _has_get(introspectable["request_methods"])


def _has_get(methods: Any) -> bool:
    """Whether a view or route with these request methods takes GET; None stands for all, a text for one."""
    return methods is None or "GET" in ((methods,) if isinstance(methods, str) else methods)


def _views_of_routes(app: Any) -> dict[str, list[Any]]:
    """The introspectables of views, by the name of the route. Empty if the app has introspection turned off."""
    views: dict[str, list[Any]] = {}
    for entry in app.registry.introspector.get_category("views") or ():
        view = entry["introspectable"]
        if view.get("route_name"):
            views.setdefault(view["route_name"], []).append(view)
    return views


def _view_callable(view: Any) -> Any:
    """The function, class or method that answers; the name of the route if a renderer alone answers."""
    target = view["callable"]
    if view["attr"]:
        return getattr(target, view["attr"], target)
    return view["route_name"] if target is None else target


def _template(pattern: str) -> tuple[str, tuple[str, ...]]:
    """A pattern with parameters as Starlette writes them, and their names."""
    template = _OLD_PARAMETER.sub(r"\1{\2}", pattern if pattern.startswith("/") else f"/{pattern}")
    template = _REST.sub(r"{\1:.*}", template)
    names = tuple(parameter["name"] for parameter in _PARAMETER.finditer(template))
    return _PARAMETER.sub(_short_parameter, template), names


def _short_parameter(parameter: re.Match[str]) -> str:
    """A parameter without its regular expression. One that takes slashes is marked as a path."""
    wide = re.search(r"\.[*+]", parameter["regex"] or "")
    return f"{{{parameter['name']}:path}}" if wide else f"{{{parameter['name']}}}"


def _paths(app: Any, route: Any, names: tuple[str, ...], prefix: str) -> PathBuilder:
    return PathBuilder(
        names=frozenset(names),
        prefix=prefix,
        write=lambda params: unquote(route.generate(params)),
        leads_here=lambda path: _matching_route(app, path) is route,
    )
