"""Recognises the framework of an app, and looks through the middleware and the dispatchers around it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final, Literal

from ..models import Context

Framework = Literal["bottle", "django", "falcon", "litestar", "pyramid", "starlette", "werkzeug"]
"""A framework by the name of its module in this package."""

_APP_CLASSES: Final[dict[tuple[str, str], Framework]] = {
    ("django.core.handlers.base", "BaseHandler"): "django",
    ("falcon.app", "App"): "falcon",
    ("litestar.app", "Litestar"): "litestar",
    ("pyramid.router", "Router"): "pyramid",
    ("starlette.applications", "Starlette"): "starlette",
    ("starlette.routing", "Router"): "starlette",
}
"""The framework of each class of apps, by its module and name. FastAPI's classes are subclasses of Starlette's."""

FRAMEWORK_NAMES: Final = "Bottle, Django, Falcon, FastAPI, Flask, Litestar, Pyramid, Quart or Starlette"
"""The frameworks whose routes can be read, for messages."""

EXTENSION_NAME: Final = "sitemap"
"""The key of the middleware in Flask's `app.extensions`, and its attribute of Starlette's `app.state`."""

INSTALLED_ATTRIBUTE: Final = "__sitemap_middleware__"
"""The attribute of a Litestar app that has the middleware installed around it."""

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


class CreatedMiddleware:
    """Stands in Starlette's `user_middleware` for a class whose instance was created before Starlette does."""

    def __init__(self, created: Any) -> None:
        self.created = created
        self.__name__: str = type(created).__name__

    def __call__(self, app: Any, *_: Any, **__: Any) -> Any:
        """The instance, which from now on calls this app."""
        self.created.app = app
        return self.created


def framework_of(app: Any) -> Framework | None:
    """The framework of which an object is an app; None if it is of none that is known."""
    for base in getattr(get_attribute(app, "__class__"), "__mro__", ()):
        if (framework := _APP_CLASSES.get((base.__module__, base.__name__))) is not None:
            return framework
        if is_bottle_class(base):
            return "bottle"
    return "werkzeug" if is_werkzeug(app) else None


def is_bottle_class(cls: type) -> bool:
    """Whether a class is Bottle's. Bottle is one file, so projects have copies of it in their own packages."""
    return cls.__name__ == "Bottle" and cls.__module__.rpartition(".")[2] == "bottle"


def bottle_module(app: Any) -> Any:
    """The module of which a Bottle app is: `bottle`, or a project's copy of it."""
    return next(sys.modules[base.__module__] for base in type(app).__mro__ if is_bottle_class(base))


def is_starlette(app: Any) -> bool:
    """Whether an app is a Starlette or FastAPI app or router."""
    return framework_of(app) == "starlette"


def remember_middleware(app: Any, middleware: object) -> None:
    """Keep the middleware in the state of a Starlette app, unless it keeps another. A router has no state."""
    state = getattr(app, "state", None) if is_starlette(app) else None
    if state is not None and not hasattr(state, EXTENSION_NAME):
        setattr(state, EXTENSION_NAME, middleware)


def is_werkzeug(app: Any) -> bool:
    """Whether an app has a Werkzeug URL map: a Flask or Quart app, or one built on Werkzeug itself."""
    routing = sys.modules.get("werkzeug.routing")
    return routing is not None and isinstance(get_attribute(app, "url_map"), routing.Map)


def get_attribute(app: Any, name: str) -> Any:
    """An attribute of any object; None if it has none or fails."""
    try:
        return getattr(app, name, None)
    except Exception:  # such as a proxy object that is bound to nothing now
        return None


def is_debug(app: Any) -> bool:
    """Whether the debug flag of a framework's app is on. Falcon and Pyramid have none."""
    framework = framework_of(app)
    if framework == "django":
        settings: Any = sys.modules["django.conf"].settings
        return settings.DEBUG is True
    if framework == "bottle":
        return bool(bottle_module(app).DEBUG)
    return framework is not None and get_attribute(app, "debug") is True


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


def root_path(app: Any) -> str:
    """The root path of `FastAPI(root_path=...)`, or Django's FORCE_SCRIPT_NAME; empty for other apps."""
    inner = framework_app(app)
    if framework_of(inner) == "django":
        from django.conf import settings

        return str(settings.FORCE_SCRIPT_NAME or "").rstrip("/")
    return str(get_attribute(inner, "root_path") or "") if is_starlette(inner) else ""


def new_context(app: Any) -> Context | None:
    """A new application context of a Flask or Quart app, or the database connections of Django; else None."""
    if framework_of(app) == "django":
        from .django_urlconf import own_connections

        return own_connections()
    create = getattr(app, "app_context", None)
    context: Context | None = create() if callable(create) else None
    return context


def proxy_middleware(app: Any) -> Any:
    """The middleware around an app that applies a proxy's headers, such as Werkzeug's ProxyFix; None if there is none.

    Middleware outside of `SitemapMiddleware` is in the right place, and not around the app that it is given.
    """
    return next((layer for layer in layers(app) if _PROXY_MIDDLEWARE_NAME.search(type(layer).__name__)), None)
