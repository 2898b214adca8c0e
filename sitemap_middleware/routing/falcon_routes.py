"""Reads the routes of Falcon, of WSGI and ASGI apps. Sinks and static routes have no list of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any, Final

from falcon.routing import CompiledRouter

from ..models import PathBuilder, Route
from ..options.decorator import endpoint_name, merge_settings, settings_of
from .route_discovery import Position

_FIELD: Final = re.compile(r"\{\s*(?P<name>\w+)\s*(?P<converter>:\s*\w+)?(?P<arguments>[^{}]*)\}")
"""A parameter of a template, whose converter may have arguments: ``{day:dt("%Y-%m-%d")}``."""


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The routes whose resources answer GET; none if the app has a router of another class."""
    router = app._router
    if not isinstance(router, CompiledRouter):
        return
    router.find("/")  # compiles the routes: from now on, `_find` becomes another with each new route
    for node in _nodes(router._roots):
        responder = _get_responder(node.method_map)
        template = _template(node.uri_template)
        static = "{" not in template
        if responder is None or (static and _find(app, template) != template):
            continue
        own_settings = settings_of(responder)
        yield position.route(
            template,
            endpoint_name(responder),
            own_settings,
            merge_settings(own_settings, settings_of(node.resource)),
            builder=None if static else partial(_paths, app, node.uri_template, position.prefix),
        )


def _nodes(nodes: list[Any]) -> Iterator[Any]:
    """The nodes of a router's tree that have a resource."""
    for node in nodes:
        if node.resource is not None:
            yield node
        yield from _nodes(node.children)


def _get_responder(method_map: Mapping[str, Any] | None) -> Any:
    """The method of a resource that answers GET; None if it has none, which Falcon answers itself."""
    responder = (method_map or {}).get("GET")
    function = responder.func if isinstance(responder, partial) else responder
    return None if f"{getattr(function, '__module__', '')}.".startswith("falcon.") else responder


def _template(uri_template: str) -> str:
    """A template without spaces and without the arguments of its converters."""

    def without_arguments(field: re.Match[str]) -> str:
        converter = "".join((field["converter"] or "").split())
        return f"{{{field['name']}{converter}}}"

    return _FIELD.sub(without_arguments, uri_template)


def _find(app: Any, path: str) -> str | None:
    """The template of the route that answers a GET of a path, given as pages are listed; None if there is none.

    Falcon ignores further slashes at the beginning, and, if it is told so, one at the end.
    """
    if path.startswith("//") or (app.req_options.strip_url_path_trailing_slash and path.endswith("/") and path != "/"):
        return None
    found = app._router.find(path)
    if found is None or _get_responder(found[1]) is None:
        return None
    return _template(found[3])


def _paths(app: Any, uri_template: str, prefix: str) -> PathBuilder:
    template = _template(uri_template)

    def write(params: Mapping[str, Any]) -> str:
        return _FIELD.sub(lambda field: _text(params[field["name"]]), uri_template)

    names = [field["name"] for field in _FIELD.finditer(uri_template)]
    return PathBuilder(
        names=frozenset(names), prefix=prefix, write=write, leads_here=lambda path: _find(app, path) == template
    )


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
