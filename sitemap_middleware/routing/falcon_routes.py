"""Reads the routes of Falcon, of WSGI and ASGI apps. Sinks and static routes have no list of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Final

from falcon.routing import CompiledRouter

from ..models import Route
from ..options.decorator import endpoint_name, inherited_settings, merge_settings, settings_of
from .route_discovery import BasePathBuilder, Position

_FIELD: Final = re.compile(r"\{\s*(?P<name>\w+)\s*(?P<converter>:\s*\w+)?(?P<arguments>[^{}]*)\}")
"""A parameter of a template, whose converter may have arguments: ``{day:dt("%Y-%m-%d")}``."""

_FORMAT: Final = re.compile(r"""(?P<quote>["'])(?P<format>.*)(?P=quote)""")
"""The format among the arguments of the converter `dt`."""

_DEFAULT_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"
"""How the path of a field of `dt` without a format is written, in UTC. Falcon reads it, among others."""


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
        settings = merge_settings(own_settings, settings_of(node.resource))
        path = position.prefix + template
        settings, not_learned_reason = inherited_settings(path, own_settings, settings)
        yield Route(
            path,
            endpoint_name(responder),
            static,
            position.host,
            settings,
            not_learned_reason=not_learned_reason,
            builder=_PathBuilder(app, node.uri_template, position.prefix) if settings.values and not static else None,
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


class _PathBuilder(BasePathBuilder):
    """Builds and matches the paths of one route with parameters."""

    def __init__(self, app: Any, uri_template: str, prefix: str) -> None:
        super().__init__(_template(uri_template), (field["name"] for field in _FIELD.finditer(uri_template)), prefix)
        self._app = app
        self._uri_template = uri_template

    def write_path(self, params: Mapping[str, Any]) -> str:
        return _FIELD.sub(lambda field: _text(params[field["name"]], field), self._uri_template)

    def leads_here(self, path: str) -> bool:
        return _find(self._app, path) == self._template


def _text(value: Any, field: re.Match[str]) -> str:
    """How a value is written in a path. Dates in a field of `dt` are written in its format, others in ISO 8601."""
    if not isinstance(value, date):
        return str(value)
    if (field["converter"] or "").lstrip(": ") != "dt":
        return value.isoformat()
    if given := _FORMAT.search(field["arguments"]):
        return value.strftime(given["format"])
    in_utc = value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
    return in_utc.strftime(_DEFAULT_FORMAT)
