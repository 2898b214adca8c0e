"""How the middleware fits an app: its protocol, its place among the app's layers, or around a whole Litestar app."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, TypeVar

from ..exceptions import MiddlewareLookupError, OptionError
from ..routing.framework_detection import (
    EXTENSION_NAME,
    INSTALLED_ATTRIBUTE,
    CreatedMiddleware,
    get_attribute,
    is_starlette,
    layers,
    mounted_apps,
)
from ..util import ForkSafeLock

T = TypeVar("T")

ADD_MIDDLEWARE_HINT: Final = (
    "add it: app.add_middleware(SitemapMiddleware) in Starlette and FastAPI,"
    " app.wsgi_app = SitemapMiddleware(app.wsgi_app) in Flask, "
    '"sitemap_middleware.django.SitemapMiddleware" to MIDDLEWARE in Django, '
    "Litestar(plugins=[SitemapPlugin()]) of sitemap_middleware.litestar in Litestar"
)

MAX_SEARCHED_LAYERS: Final = 200
"""Layers of an app that are searched."""

_CREATING_LOCK: Final = ForkSafeLock()

_GET_RESPONSE_MODULE: Final = "django.core.handlers.exception"
"""The module of the function that Django hands to its middleware."""


def detect_protocol(app: Any, routed_app: Any) -> Literal["asgi", "wsgi"]:
    """Detect the protocol by the app's signature, or else by that of the first wrapped app that has a clear one."""
    if not callable(app):
        raise OptionError(f"SitemapMiddleware: app={app!r} cannot be called; give a WSGI or ASGI app")
    if getattr(app, "__globals__", {}).get("__name__") == _GET_RESPONSE_MODULE:
        raise OptionError(
            'SitemapMiddleware: in MIDDLEWARE of Django, its name is "sitemap_middleware.django.SitemapMiddleware"'
        )
    for layer in (app, *layers(app), *layers(routed_app)):
        call = layer if inspect.isroutine(layer) or isinstance(layer, functools.partial) else type(layer).__call__
        if inspect.iscoroutinefunction(call):
            return "asgi"
        try:
            parameters = inspect.signature(layer).parameters.values()
        except (TypeError, ValueError):
            continue
        required = [p for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
        if len(required) in (2, 3):
            return "wsgi" if len(required) == 2 else "asgi"
    raise OptionError(
        f"SitemapMiddleware: app={app!r} speaks neither WSGI nor ASGI as far as can be told; "
        "give a callable of (environ, start_response) or of (scope, receive, send)"
    )


@functools.cache
def adapter_class(cls: type[T], protocol: Literal["asgi", "wsgi"]) -> type[T]:
    """A subclass with the adapter of a protocol: servers recognise an ASGI app by its async `__call__`."""
    adapter: type
    if protocol == "asgi":
        from .asgi import ASGIMiddleware

        adapter = ASGIMiddleware
    else:
        from .wsgi import WSGIMiddleware

        adapter = WSGIMiddleware
    return type(cls.__name__, (adapter, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def find_middleware(app: Any, kind: type[T]) -> T:
    """The one middleware of a class that is around an app or in it; else the one in the apps mounted in it.

    The middleware that Starlette's `add_middleware` has noted, but Starlette has not created yet, is created now.

    Raises:
        MiddlewareLookupError: there is none, or more than one.
    """
    found = find_all(app, kind)
    if len(found) == 1:
        return found[0]
    if found:
        paths = ", ".join(str(middleware.service.options.path) for middleware in found)  # type: ignore[attr-defined] # of `kind`
        raise MiddlewareLookupError(
            f"{app!r} has {len(found)} SitemapMiddleware, with the paths {paths}; give the app, mounted or"
            " wrapped, that has only the one you mean"
        )
    raise MiddlewareLookupError(
        f"{app!r} has no SitemapMiddleware; {ADD_MIDDLEWARE_HINT}; if it is around the app, give the outermost app"
    )


def find_all(app: Any, kind: type[T]) -> list[T]:
    """The middleware of a class that is around an app or in it, the outermost first; else that in its mounted apps."""
    waiting, seen = [app], dict[int, Any]()
    while waiting:
        found, mounted = list[T](), list[Any]()
        while waiting and len(seen) < MAX_SEARCHED_LAYERS:
            for layer in layers(waiting.pop(0)):
                if id(layer) not in seen:
                    seen[id(layer)] = layer
                    found += [layer] if isinstance(layer, kind) else []
                    waiting += _inner(layer, kind)
                    mounted += _mounted(layer)
        if found:
            return found
        waiting = mounted if len(seen) < MAX_SEARCHED_LAYERS else []
    return []


def _inner(layer: Any, kind: type) -> Iterator[Any]:
    """What else a layer may have around the app or in it, and the middleware that it remembers."""
    for cell in getattr(layer, "__closure__", None) or ():  # of a function that wraps an app
        with contextlib.suppress(ValueError):  # the variable was not assigned yet
            if callable(cell.cell_contents):
                yield cell.cell_contents
    extensions = get_attribute(layer, "extensions")  # of Flask
    remembered = [
        extensions.get(EXTENSION_NAME) if isinstance(extensions, dict) else None,
        get_attribute(get_attribute(layer, "state"), EXTENSION_NAME),
        get_attribute(layer, INSTALLED_ATTRIBUTE),
    ]
    yield from (middleware for middleware in remembered if isinstance(middleware, kind))
    yield get_attribute(layer, "_middleware_chain")  # Django makes it of its MIDDLEWARE
    if is_starlette(layer):
        yield get_attribute(layer, "middleware_stack")
        yield from _noted_middleware(layer, kind)


def _noted_middleware(app: Any, kind: type) -> Iterator[Any]:
    """The middleware that Starlette will create when it builds its stack. It is created now, and Starlette takes it.

    Building the stack now would make the app final: no middleware could be added any more.
    """
    noted = get_attribute(app, "user_middleware")
    if not noted or get_attribute(app, "middleware_stack") is not None:
        return
    with _CREATING_LOCK:
        for position, entry in enumerate(noted):
            cls, arguments, options = entry
            if isinstance(cls, type) and issubclass(cls, kind):
                cls = CreatedMiddleware(cls(app, *arguments, **options))  # type: ignore[call-arg] # the app
                noted[position] = type(entry)(cls, *arguments, **options)
            if isinstance(cls, CreatedMiddleware):
                yield cls.created


def _mounted(layer: Any) -> Iterator[Any]:
    yield from mounted_apps(layer).values()
    for route in layer.routes if is_starlette(layer) else ():
        if get_attribute(route, "endpoint") is None:
            yield get_attribute(route, "app")


# Litestar calls its own middleware only for paths that it has a route for, so a middleware there could not answer
# /sitemap.xml.


def app_around_route(app: Any) -> Any:
    """The Litestar app, if `app` is what Litestar passes to its middleware for one route; else None."""
    routes = sys.modules.get("litestar.routes")
    if routes is None:
        return None
    route = next((layer for layer in layers(app) if isinstance(layer, routes.BaseRoute)), None)
    return None if route is None else app_of_route(route)


def app_of_route(route: Any) -> Any:
    """The Litestar app that a route belongs to."""
    handlers = getattr(route, "route_handlers", None) or [route.route_handler]
    return handlers[0].ownership_layers[0]


def install_once(app: Any, make_middleware: Callable[[Any], Any]) -> None:
    """Make all calls of a Litestar app pass a middleware, by a subclass of the app's class, unless they pass one.

    `make_middleware` is called with the app as it was, which may not be complete yet, and returns the middleware.
    """
    if getattr(app, INSTALLED_ATTRIBUTE, None) is not None:
        return
    cls = type(app)
    middleware = make_middleware(cls.__call__.__get__(app))

    async def __call__(_: Any, scope: Any, receive: Any, send: Any) -> None:  # noqa: N807 # it becomes the method
        await middleware(scope, receive, send)

    attributes = {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__}
    app.__class__ = type(cls.__name__, (cls,), {**attributes, "__call__": __call__, INSTALLED_ATTRIBUTE: middleware})
    if not hasattr(app.state, EXTENSION_NAME):  # else it is the app's own
        setattr(app.state, EXTENSION_NAME, middleware)
