"""Finds a SitemapMiddleware inside another one, and warns if the outer one hides its sitemap."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .option_sources import collect_settings
from .routing import app_layers_and_mounts
from .routing.framework_detection import get_attribute, is_starlette

log: logging.Logger = logging.getLogger("sitemap_middleware")

MAX_MOUNT_DEPTH: Final = 32
"""Nested mounts that are searched. A deeper nesting is a cycle."""


def warn_of_nested_middleware(outer: Any, kind: type) -> None:
    """Warn if a middleware hides the sitemap of another one within its app."""
    path = outer.service.options.path
    if outer.service.options.enabled and path in _nested_sitemap_paths(outer.app, kind, outer):
        log.warning(
            "two SitemapMiddleware have the path %s, one inside the other: the outer one answers, and the inner one's"
            " sitemap is never seen; remove one of them, or give one another path=",
            path,
        )


def _nested_sitemap_paths(app: Any, kind: type, outer: Any, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the sitemap paths, below the app's root, of all middlewares of a class inside an app.

    The search stops at the outer middleware, which it meets again if the app is a method of the object that holds it.
    """
    if depth > MAX_MOUNT_DEPTH:
        return
    for layer in app_layers_and_mounts.layers(app):
        if layer is outer:
            return
        if isinstance(layer, kind) and layer.service.options.enabled:  # type: ignore[attr-defined] # a SitemapMiddleware's
            yield prefix + layer.service.options.path  # type: ignore[attr-defined] # a SitemapMiddleware's
        if is_starlette(layer):
            yield from _nested_in_starlette(layer, kind, outer, prefix, depth)
        for path, mounted in _mounts(layer).items():
            yield from _nested_sitemap_paths(mounted, kind, outer, prefix + path, depth + 1)


def _nested_in_starlette(app: Any, kind: type, outer: Any, prefix: str, depth: int) -> Iterator[str]:
    """Yield the paths of a Starlette app or router: those of `add_middleware`, and those of mounted apps."""
    for added in getattr(app, "user_middleware", ()):
        if isinstance(added.cls, type) and issubclass(added.cls, kind):
            arguments = {"path": "/sitemap.xml", "enabled": True} | added.kwargs
            settings = collect_settings(arguments, added.kwargs, {}, os.environ)
            if settings["enabled"].value is not False:
                yield f"{prefix}{settings['path'].value}"
    for route in app.routes:
        mounted = get_attribute(route, "app")
        if mounted is not None and get_attribute(route, "endpoint") is None:
            below = prefix + (get_attribute(route, "path") or "")
            yield from _nested_sitemap_paths(mounted, kind, outer, below, depth + 1)


def _mounts(layer: Any) -> Mapping[str, Any]:
    """The apps of a dispatcher such as Werkzeug's, by the first part of the path."""
    mounts = vars(layer).get("mounts") if hasattr(layer, "__dict__") else None
    if not isinstance(mounts, dict):
        return {}
    return {path.rstrip("/"): mounted for path, mounted in mounts.items() if isinstance(path, str)}
