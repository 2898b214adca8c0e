"""Looks through middleware: finds the apps that an app wraps or mounts, and the one of a known framework."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from .framework_detection import framework_of, get_attribute, is_starlette, is_werkzeug

MAX_LAYERS: Final = 32
"""Layers of wrappers and mounts that are looked through. Deeper nesting is taken for a cycle."""

_WRAPPED_APP_NAMES: Final = (
    "app",
    "wsgi_app",
    "asgi_app",
    "application",
    "wsgi_application",
    "other_asgi_app",
    "wrapped",
    "_app",
    "server",
    "inner",
    "func",
    "awaitable",  # of asgiref's AsyncToSync
    "__wrapped__",
)
"""Attributes in which WSGI and ASGI middleware keeps the app that it wraps."""

_PROXY_MIDDLEWARE_NAME: Final = re.compile("proxy_?fix|proxy_?headers|forwarded|reverse_?prox", re.IGNORECASE)
"""Matches class names of middleware that applies a proxy's headers."""


def layers(app: Any) -> Iterator[Any]:
    """An app and what it wraps, from the outside in. A bound method stands for its object."""
    seen: set[int] = set()
    while app is not None and len(seen) < MAX_LAYERS:
        owner = getattr(app, "__self__", None)
        is_method = owner is not None and not isinstance(owner, ModuleType)  # Flask's `app.wsgi_app`
        layer = owner if is_method else app
        if id(layer) in seen:
            return
        seen.add(id(layer))
        yield layer
        framework = framework_of(layer)
        # A Flask app given as an object may have middleware in its `wsgi_app`; its method is the app without it.
        if framework is not None and (framework != "werkzeug" or is_method):
            return
        wrapped = (get_attribute(layer, name) for name in _WRAPPED_APP_NAMES)
        app = next(filter(callable, wrapped), None)


def mounted_apps(app: Any) -> Mapping[str, Any]:
    """The apps of a dispatcher such as Werkzeug's `DispatcherMiddleware`, by prefix; empty for other apps."""
    mounts = get_attribute(app, "mounts")
    if not isinstance(mounts, dict):
        return {}
    return {path.rstrip("/"): mounted for path, mounted in mounts.items() if isinstance(path, str)}


def framework_app(app: Any) -> Any:
    """The outermost layer that is an app of a known framework; None if there is none."""
    return next((layer for layer in layers(app) if framework_of(layer) is not None), None)


def has_readable_routes(app: Any) -> bool:
    """Whether a layer is an app of a known framework, or a dispatcher to other apps."""
    return any(framework_of(layer) is not None or mounted_apps(layer) for layer in layers(app))


def only_routes_answer(app: Any) -> bool:
    """Whether no response comes from outside the routes: a Flask app without middleware and before_request hooks."""
    outermost = next(layers(app), None)
    return is_werkzeug(outermost) and getattr(outermost, "before_request_funcs", None) == {}


def root_path(app: Any) -> str:
    """The root path of `FastAPI(root_path=...)`, or Django's FORCE_SCRIPT_NAME; empty for other apps."""
    inner = framework_app(app)
    if framework_of(inner) == "django":
        from django.conf import settings

        return str(settings.FORCE_SCRIPT_NAME or "").rstrip("/")
    return str(get_attribute(inner, "root_path") or "") if is_starlette(inner) else ""


def proxy_middleware(app: Any) -> Any:
    """The middleware that applies a proxy's headers inside of `SitemapMiddleware`, such as Werkzeug's ProxyFix.

    None if there is none. Middleware outside of `SitemapMiddleware` is in the right place and does not count.
    """
    inner = framework_app(app)
    chains = [[*layers(app)], *([*layers(get_attribute(inner, name))] for name in ("wsgi_app", "asgi_app"))]
    chains.append([getattr(middleware, "cls", None) for middleware in get_attribute(inner, "user_middleware") or ()])
    for chain in chains:
        positions = [position for position, layer in enumerate(chain) if "SitemapMiddleware" in _class_names(layer)]
        for layer in chain[positions[-1] + 1 if positions else 0 :]:
            if any(map(_PROXY_MIDDLEWARE_NAME.search, _class_names(layer))):
                return layer
    return None


def _class_names(layer: Any) -> list[str]:
    """The names of a layer's class, or of the layer if it is a class, and of its base classes."""
    return [base.__name__ for base in (layer if isinstance(layer, type) else type(layer)).__mro__]
