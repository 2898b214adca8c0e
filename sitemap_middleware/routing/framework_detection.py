"""Recognises the framework of an app.

Frameworks are looked up in `sys.modules`: an app of a framework that is not imported cannot be here.
"""

from __future__ import annotations

import sys
from typing import Any, Final, Literal

Framework = Literal["bottle", "django", "falcon", "litestar", "pyramid", "starlette", "werkzeug"]
"""A framework by the name of its module in this package."""

_APP_CLASSES: Final[dict[Framework, tuple[tuple[str, str], ...]]] = {
    "bottle": (("bottle", "Bottle"),),
    "django": (("django.core.handlers.base", "BaseHandler"),),
    "falcon": (("falcon.app", "App"),),
    "litestar": (("litestar.app", "Litestar"),),
    "pyramid": (("pyramid.router", "Router"),),
    "starlette": (("starlette.applications", "Starlette"), ("starlette.routing", "Router")),
}
"""The classes of a framework's apps, each by its module and name. FastAPI's are subclasses of Starlette's."""

FRAMEWORK_NAMES: Final = "Bottle, Django, Falcon, FastAPI, Flask, Litestar, Pyramid, Quart or Starlette"
"""The frameworks whose routes can be read, for messages."""

EXTENSION_NAME: Final = "sitemap"
"""The key of the middleware in Flask's `app.extensions`, and its attribute of Starlette's `app.state`."""

INSTALLED_ATTRIBUTE: Final = "__sitemap_middleware__"
"""The attribute of a Litestar app that has the middleware installed around it."""


def framework_of(app: Any) -> Framework | None:
    """The framework of which an object is an app; None if it is of none that is known."""
    for framework, classes in _APP_CLASSES.items():
        for module, name in classes:
            if isinstance(app, getattr(sys.modules.get(module), name, ())):
                return framework
    return "werkzeug" if is_werkzeug(app) else None


def is_starlette(app: Any) -> bool:
    """Whether an app is a Starlette or FastAPI app or router."""
    return framework_of(app) == "starlette"


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
        return bool(sys.modules["bottle"].DEBUG)
    return framework is not None and get_attribute(app, "debug") is True
