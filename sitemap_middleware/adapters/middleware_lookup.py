"""Finds the SitemapMiddleware among an app's layers, for `SitemapMiddleware.of`, extensions and commands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from ..exceptions import MiddlewareLookupError
from ..routing import framework_detection
from ..routing.framework_detection import EXTENSION_NAME, INSTALLED_ATTRIBUTE, get_attribute, is_starlette
from ..util import ForkSafeLock

T = TypeVar("T")

ADD_MIDDLEWARE_HINT: Final = (
    "add it: app.add_middleware(SitemapMiddleware) in Starlette and FastAPI,"
    " app.wsgi_app = SitemapMiddleware(app.wsgi_app) in Flask, "
    '"sitemap_middleware.django.SitemapMiddleware" to MIDDLEWARE in Django, '
    "Litestar(plugins=[SitemapPlugin()]) of sitemap_middleware.litestar in Litestar"
)

MAX_LAYERS: Final = 200
"""Layers of an app that are searched."""

_CREATING_LOCK: Final = ForkSafeLock()


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
    level, seen = [app], dict[int, Any]()
    while level and len(seen) < MAX_LAYERS:
        layers = [layer for item in level for layer in _layers(item, kind, seen)]
        if found := [layer for layer in layers if isinstance(layer, kind)]:
            return found
        level = [mounted for layer in layers for mounted in _mounted_apps(layer)]
    return []


def closure_values(layer: Any) -> list[Any]:
    """The callables in the closure of a function that may wrap an app."""
    values = []
    for cell in getattr(layer, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # the variable was not assigned yet
            values.append(cell.cell_contents)
    return [value for value in values if callable(value)]


def _layers(app: Any, kind: type, seen: dict[int, Any]) -> Iterator[Any]:
    """An app, what it wraps, and the middleware that it knows; each layer once."""
    waiting = [app]
    while waiting and len(seen) < MAX_LAYERS:
        for layer in framework_detection.layers(waiting.pop(0)):
            if id(layer) in seen:
                continue
            seen[id(layer)] = layer
            yield layer
            # Django makes `_middleware_chain` of its MIDDLEWARE.
            waiting += [*closure_values(layer), *_remembered(layer, kind), get_attribute(layer, "_middleware_chain")]
            if is_starlette(layer):
                waiting += [get_attribute(layer, "middleware_stack"), *_noted_middleware(layer, kind)]


def _remembered(app: Any, kind: type) -> Iterator[Any]:
    """The middleware in Flask's `app.extensions`, in Starlette's `app.state`, and installed around a Litestar app."""
    extensions = get_attribute(app, "extensions")
    middleware = extensions.get(EXTENSION_NAME) if isinstance(extensions, dict) else None
    in_state = get_attribute(get_attribute(app, "state"), EXTENSION_NAME)
    for candidate in (middleware, in_state, get_attribute(app, INSTALLED_ATTRIBUTE)):
        if isinstance(candidate, kind):
            yield candidate


def _noted_middleware(app: Any, kind: type) -> Iterator[Any]:
    """The middleware that Starlette will create when it builds its stack.

    It is created now, and its place in `user_middleware` taken by a class that gives Starlette this same instance.
    Building the stack now would make the app final: no middleware could be added any more.
    """
    noted = get_attribute(app, "user_middleware")
    if not noted or get_attribute(app, "middleware_stack") is not None:
        return
    with _CREATING_LOCK:
        for position, entry in enumerate(noted):
            cls, arguments, options = entry
            if not (isinstance(cls, type) and issubclass(cls, kind)):
                continue
            if not issubclass(cls, _Created):
                cls = _created_class(cls, cls(app, *arguments, **options))  # type: ignore[call-arg] # the app
                noted[position] = type(entry)(cls, *arguments, **options)
            yield cls.created


class _Created:
    """A class that has one instance, which was created before, as another class."""

    created: Any

    def __new__(cls, app: Any, *_: Any, **__: Any) -> Any:
        cls.created.app = app
        return cls.created


def _created_class(cls: type, instance: Any) -> type:
    """A subclass of a middleware's class that returns an instance, and gives it the app that it is called with."""
    return type(cls.__name__, (_Created, cls), {"created": instance, "__module__": cls.__module__})


def _mounted_apps(layer: Any) -> Iterator[Any]:
    yield from framework_detection.mounted_apps(layer).values()
    if is_starlette(layer):
        for route in layer.routes:
            mounted = get_attribute(route, "app")
            if mounted is not None and get_attribute(route, "endpoint") is None:
                yield mounted
