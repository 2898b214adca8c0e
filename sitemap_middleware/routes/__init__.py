"""Discovery: which URLs an app has, read off its own URL map whenever it is asked.

`walk` goes through whatever wraps and mounts apps and hands each to the module
of its framework. Frameworks are looked for among the modules that are already
imported: an app of one that is not cannot be here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from ..model import Route

_DEEPEST: Final = 32
"""Layers of wrappers and mounts that are looked through; more is a circle."""

_INNER: Final = ("app", "wsgi_app", "asgi_app", "application", "wrapped", "_app", "inner")
"""Names under which middleware, of either protocol and by any author, keeps the app that it wraps."""


def walk(app: Any, prefix: str = "", host: str | None = None, depth: int = 0) -> Iterator[Route]:
    """Every route that answers GET, of an app, of what it wraps and of what is mounted in it."""
    if depth > _DEEPEST:
        return
    for layer in layers(app):
        if is_werkzeug(layer):
            from . import werkzeug

            yield from werkzeug.routes(layer, prefix, host)
            return
        if is_starlette(layer):
            from . import starlette

            yield from starlette.routes(layer, prefix, host, depth)
            return
        if is_dispatcher(layer):
            for path, mounted in layer.mounts.items():
                yield from walk(mounted, prefix + path, host, depth + 1)


def layers(app: Any) -> Iterator[Any]:
    """An app and what it wraps, from the outside in, each as the object it belongs to."""
    seen: set[int] = set()
    while app is not None and id(app) not in seen and len(seen) < _DEEPEST:
        seen.add(id(app))
        owner = getattr(app, "__self__", None)
        if owner is not None and not isinstance(owner, type(sys)):
            app = owner  # Flask's app.wsgi_app is a method of the app
            seen.add(id(app))
        yield app
        if is_werkzeug(app) or is_starlette(app):
            return
        app = next((inner for name in _INNER if callable(inner := _held(app, name))), None)


def framework(app: Any) -> Any:
    """The first app of a known framework among the layers; None where there is none."""
    return next((layer for layer in layers(app) if is_werkzeug(layer) or is_starlette(layer)), None)


def is_werkzeug(app: Any) -> bool:
    """Whether it is an app with Werkzeug's URL map: Flask's, Quart's, or one's own."""
    routing = sys.modules.get("werkzeug.routing")
    return routing is not None and isinstance(_held(app, "url_map"), routing.Map)


def is_starlette(app: Any) -> bool:
    """Whether it is a Starlette or FastAPI app, or a router of theirs."""
    applications, routing = sys.modules.get("starlette.applications"), sys.modules.get("starlette.routing")
    return (applications is not None and isinstance(app, applications.Starlette)) or (
        routing is not None and isinstance(app, routing.Router)
    )


def is_dispatcher(app: Any) -> bool:
    """Whether it is Werkzeug's DispatcherMiddleware."""
    dispatcher = sys.modules.get("werkzeug.middleware.dispatcher")
    return dispatcher is not None and isinstance(app, dispatcher.DispatcherMiddleware)


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""
    app = framework(app)
    if is_werkzeug(app):
        from . import werkzeug

        return werkzeug.trusted_hosts(app)
    if is_starlette(app):
        from . import starlette

        return starlette.trusted_hosts(app)
    return ()


def root_path(app: Any) -> str:
    """The root path that the app itself declares (`FastAPI(root_path=…)`); empty where it declares none."""
    return str(_held(framework(app), "root_path") or "") if is_starlette(framework(app)) else ""


def _held(app: Any, name: str) -> Any:
    try:
        return getattr(app, name, None)
    except Exception:  # a proxy that is bound to nothing now
        return None
