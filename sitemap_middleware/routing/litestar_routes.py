"""Reads the routes of Litestar, including those of routers, controllers and mounted apps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from functools import partial
from operator import attrgetter
from typing import Any, Final

from litestar import Litestar, MediaType
from litestar.exceptions import HTTPException
from litestar.response import Redirect, Response
from litestar.response.base import ASGIResponse
from litestar.utils import normalize_path

from ..exceptions import OptionError
from ..models import NO_SETTINGS, HiddenReason, PathBuilder, Route, RouteSettings
from ..options.decorator import (
    ATTRIBUTE,
    OPT_KEY,
    checked_settings,
    endpoint_name,
    merge_settings,
    settings_of,
)
from .framework_detection import framework_app
from .route_discovery import NEEDS_QUERY, Position, media_type_reason, with_outer_settings

_DOCUMENTATION: Final = "it is Litestar's own documentation of the API"
_DOCUMENTATION_MODULES: Final = ("litestar.openapi.", "litestar._openapi.")
"""Beginnings of the modules whose handlers are Litestar's own documentation of the API."""


def read_routes(app: Litestar, position: Position) -> Iterator[Route]:
    """The routes of an app that answer GET, those of mounted apps after its own.

    Litestar tries paths without parameters first, then mounts, then paths with parameters.
    """
    routes = sorted(app.routes, key=attrgetter("path"))  # Litestar keeps the paths of a handler in a set
    found = [(route, handler) for route in routes if (handler := _get_handler(route)) is not None]
    plain = {
        route.path for route, handler in found if not getattr(handler, "is_mount", False) and not _parameters(route)
    }
    for route, handler in found:
        if getattr(handler, "is_mount", False):
            yield from _mounted_routes(handler, route.path, plain, position)
            continue
        own_settings, settings = settings_of_handler(handler)
        static = route.path in plain
        module = f"{getattr(handler.fn, '__module__', None) or ''}."
        yield position.route(
            _template(route),
            endpoint_name(handler.fn),
            own_settings,
            settings,
            hidden=_hidden_reason(route, handler),
            internal=_DOCUMENTATION if module.startswith(_DOCUMENTATION_MODULES) else None,
            builder=None if static else partial(_paths, app, route, handler, position.prefix),
        )


def trusted_hosts(app: Litestar) -> tuple[str, ...]:
    """The hosts of `allowed_hosts`; ``.example.com`` stands for the subdomains."""
    hosts: Iterable[str] = getattr(app.allowed_hosts, "allowed_hosts", None) or ()
    return tuple(host.lower().removeprefix("*") for host in hosts if host != "*")


def _get_handler(route: Any) -> Any:
    """The handler that answers GET; None for other routes, such as websockets."""
    handlers = getattr(route, "route_handler_map", None)
    if handlers is not None:
        return handlers["GET"][0] if "GET" in handlers else None
    handler = route.route_handler
    return handler if hasattr(handler, "is_mount") else None


def _parameters(route: Any) -> set[str]:
    """The names of the parameters of a route's path."""
    return {component.name for component in route.path_components if not isinstance(component, str)}


def _template(route: Any) -> str:
    """The path of a route without the spaces that Litestar allows: ``/posts/{number: int}``."""
    path: str = route.path
    return path if " " not in path else re.sub(r"\{[^{}/]*\}", lambda parameter: parameter[0].replace(" ", ""), path)


def _mounted_routes(handler: Any, mount_path: str, plain: set[str], position: Position) -> Iterator[Route]:
    """The routes of a mounted app, without those whose requests other routes of the app around it take.

    Litestar adds a slash to the paths of mounted apps, so routes of another framework need one.
    """
    app, prefix = handler.fn, position.prefix
    mount_path = mount_path.rstrip("/")
    needs_slash = not isinstance(framework_app(app), Litestar)

    def is_reached(path: str) -> bool:
        below = path.removeprefix(prefix)
        return normalize_path(below) not in plain and (below.endswith("/") or not needs_slash)

    _, outer = settings_of_handler(handler)
    routes = (route for route in position.below(app, mount_path) if is_reached(route.path))
    return with_outer_settings(routes, outer)


def settings_of_handler(handler: Any) -> tuple[RouteSettings, RouteSettings]:
    """The settings of a handler: its own, and those merged with controller, routers and app."""
    outer = [layer for layer in reversed(handler.ownership_layers) if layer is not handler]
    given = handler.opt.get(OPT_KEY)
    if any((layer.opt or {}).get(OPT_KEY) is given for layer in outer):
        given = None  # `opt` of a registered handler includes that of the layers around it
    function = handler.fn
    own = merge_settings(_settings_of_opt(given, handler), getattr(handler, ATTRIBUTE, NO_SETTINGS))
    own = merged = merge_settings(own, settings_of(function))
    for base in type(getattr(function, "__self__", None)).__mro__:
        merged = merge_settings(merged, vars(base).get(ATTRIBUTE, NO_SETTINGS))
    for layer in outer:
        merged = merge_settings(merged, _settings_of_opt((layer.opt or {}).get(OPT_KEY), layer))
    return own, merged


def _settings_of_opt(given: Any, layer: Any) -> RouteSettings:
    """The settings that `opt={"sitemap": …}` gives."""
    if given is None or isinstance(given, RouteSettings):
        return given or NO_SETTINGS
    known = _opt_settings.get(id(given))
    if known is None or known[0] is not given:
        name = endpoint_name(layer.fn if hasattr(layer, "fn") else layer)
        place = f'opt["{OPT_KEY}"] of {name}'
        if not isinstance(given, Mapping):
            raise OptionError(f'{place}: {given!r} is not a mapping; give one such as {{"priority": 0.8}}')
        known = _opt_settings[id(given)] = given, checked_settings(given, place)
    return known[1]


_opt_settings: Final[dict[int, tuple[Any, RouteSettings]]] = {}
"""The settings of the mappings in `opt`, by the id of the mapping, which is kept: values keep their identity."""


def _hidden_reason(route: Any, handler: Any) -> HiddenReason | None:
    """Why a route is not listed before a response shows that it is a page; None if it may be listed at once."""
    if not hasattr(route, "route_handler_map"):
        return None  # an ASGI app declares nothing
    returned = handler.parsed_fn_signature.return_type
    if returned.is_subclass_of(Redirect):
        return HiddenReason("it declares a redirect", is_declared=True)
    if handler.status_code != 200:
        return HiddenReason(f"it declares the status {handler.status_code}", is_declared=True)
    media_type = getattr(handler.media_type, "value", handler.media_type) or ""
    if media_type == MediaType.JSON.value and _may_return_response(returned):
        media_type = ""  # Litestar's own guess: the response that is returned decides
    query = route.route_handler_map["GET"][1].expected_query_params
    return media_type_reason(media_type) or (NEEDS_QUERY if any(part.is_required for part in query) else None)


def _may_return_response(returned: Any) -> bool:
    """Whether a return annotation is a response or an ASGI app, alone or in a union."""
    fields = returned.inner_types if returned.is_union else (returned,)
    return any(field.origin is Callable or field.is_subclass_of((Response, ASGIResponse)) for field in fields)


def _paths(app: Litestar, route: Any, handler: Any, prefix: str) -> PathBuilder:
    names = _parameters(route)

    def write(params: Mapping[str, Any]) -> str:
        parts = [
            component if isinstance(component, str) else _text(params[component.name], component.type)
            for component in route.path_components
        ]
        return f"/{'/'.join(parts)}"

    def leads_here(path: str) -> bool:
        router: Any = app.asgi_router
        try:
            _, found, _, params, *_ = router.handle_routing(path=normalize_path(path), method="GET")
        except HTTPException:
            return False
        return found is handler and names == params.keys() and path == normalize_path(path)

    return PathBuilder(names=frozenset(names), prefix=prefix, write=write, leads_here=leads_here)


def _text(value: Any, kind: type) -> str:
    """A parameter as Litestar reads it from a path."""
    if isinstance(value, (date, time)):
        return value.isoformat()
    text = str(value)
    if issubclass(kind, str) and "/" in text:
        raise ValueError(f"{text!r} has a slash")
    return text.strip("/")
