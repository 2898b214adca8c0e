"""Installs the middleware around a whole Litestar app.

Litestar calls its own middleware only for paths that it has a route for, so a
middleware there could not answer ``/sitemap.xml``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..exceptions import OptionError
from ..routing.framework_detection import EXTENSION_NAME, INSTALLED_ATTRIBUTE, layers


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


def installed_middleware(app: Any) -> Any:
    """The middleware that is installed around an app; None if there is none."""
    return getattr(app, INSTALLED_ATTRIBUTE, None)


def refuse_other_options(installed: Any, options: Mapping[str, Any]) -> None:
    """Raise OptionError if a second middleware has other options than the installed one: it would have no effect."""
    for name in sorted({*installed._passed, *options}):
        is_given = name in options and name in installed._passed
        if not is_given or installed._passed[name] != options[name]:
            raise OptionError(
                f"SitemapMiddleware: this Litestar app has one already, with another {name}: it is around the whole"
                " app, so add it once"
            )


def install(app: Any, make_middleware: Any) -> Any:
    """Make all calls of a Litestar app pass a middleware, by a subclass of the app's class. Return the middleware.

    Args:
        app: the Litestar app, which may not be complete yet.
        make_middleware: called with the app as it was, returns the middleware.
    """
    cls = type(app)
    middleware = make_middleware(cls.__call__.__get__(app))

    async def __call__(_: Any, scope: Any, receive: Any, send: Any) -> None:  # noqa: N807 # it becomes the method
        await middleware(scope, receive, send)

    attributes = {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__}
    app.__class__ = type(cls.__name__, (cls,), {**attributes, "__call__": __call__, INSTALLED_ATTRIBUTE: middleware})
    if not hasattr(app.state, EXTENSION_NAME):  # else it is the app's own
        setattr(app.state, EXTENSION_NAME, middleware)
    return middleware
