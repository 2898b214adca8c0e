"""Detects whether an app is a WSGI or an ASGI app, and chooses the class of its middleware."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Final, Literal, TypeVar

from ..exceptions import OptionError
from ..routing import framework_detection

T = TypeVar("T")

Protocol = Literal["asgi", "wsgi"]

_GET_RESPONSE_MODULE: Final = "django.core.handlers.exception"
"""The module of the function that Django hands to its middleware."""


def detect_protocol(app: Any, routed_app: Any) -> Protocol:
    """Detect the protocol by the app's signature, or else by that of the first wrapped app that has a clear one."""
    if not callable(app):
        raise OptionError(f"SitemapMiddleware: app={app!r} cannot be called; give a WSGI or ASGI app")
    if getattr(app, "__globals__", {}).get("__name__") == _GET_RESPONSE_MODULE:
        raise OptionError(
            'SitemapMiddleware: in MIDDLEWARE of Django, its name is "sitemap_middleware.django.SitemapMiddleware"'
        )
    for layer in (app, *framework_detection.layers(app), *framework_detection.layers(routed_app)):
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
def adapter_class(cls: type[T], protocol: Protocol) -> type[T]:
    """A subclass with the adapter of a protocol: servers recognise an ASGI app by its async `__call__`."""
    adapter: type
    if protocol == "asgi":
        from .asgi import ASGIMiddleware

        adapter = ASGIMiddleware
    else:
        from .wsgi import WSGIMiddleware

        adapter = WSGIMiddleware
    return type(cls.__name__, (adapter, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
