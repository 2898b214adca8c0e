"""What Flask extensions say of their views: Flask-RESTX, Flask-RESTful and Dash."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from ..models import HiddenReason, Route
from ..sitemap_decorator import NO_SETTINGS, endpoint_name, settings_of
from .reading import Position

_API_MODULES: Final = ("flask_restx", "flask_restful")
"""Modules with a class `Resource`, whose views answer with data."""

_RESOURCE: Final = HiddenReason("it is a resource of an API", is_declared=True)

_RESTX_VIEWS: Final = ("render_doc", "render_root")
"""Methods of Flask-RESTX's `Api` that are views: the documentation, and a 404 at the top of the API."""

_DASH_LAYOUT: Final = "_dash-layout"
"""The end of the endpoint of a view that is a method of the Dash app."""

_DASH_NOT_FOUND: Final = "not_found_404"
"""The name of the module that Dash shows for unknown paths."""


class DeclaredViews:
    """What the extensions of an app that are imported say of its views."""

    def __init__(self) -> None:
        modules = [module for name in _API_MODULES if (module := sys.modules.get(name)) is not None]
        self._resources = tuple(module.Resource for module in modules)
        self._restx_api = getattr(sys.modules.get("flask_restx"), "Api", ())

    def __bool__(self) -> bool:
        """Whether an extension is imported: without, there may be 10,000 rules to read quickly."""
        return bool(self._resources)

    def hidden_reason(self, view: Any) -> HiddenReason | None:
        """Why a view is not listed before a response shows that it is a page; None if it may be listed at once."""
        view_class = getattr(view, "view_class", None)
        is_resource = isinstance(view_class, type) and issubclass(view_class, self._resources)
        return _RESOURCE if is_resource else None

    def internal_reason(self, view: Any) -> str | None:
        """Why a view is never a page of the site; None if it may be. A documentation of the app's own is a page."""
        api = getattr(view, "__self__", None)
        if isinstance(api, self._restx_api) and view.__name__ in _RESTX_VIEWS and not api._doc_view:
            return "it is Flask-RESTX's own documentation of the API"
        return None


def dash_apps(app: Any) -> list[Any]:
    """The multi-page Dash apps that a Flask or Quart app serves."""
    dash_class = getattr(sys.modules.get("dash"), "Dash", ())
    views = (getattr(app, "view_functions", None) or {}).items()
    owners = (getattr(view, "__self__", None) for endpoint, view in views if str(endpoint).endswith(_DASH_LAYOUT))
    return [owner for owner in owners if isinstance(owner, dash_class) and owner.use_pages]


def dash_index(app: Any) -> str:
    """The endpoint of the first page of a Dash app: `dash_pages` tells whether there is one."""
    return str(app.config.routes_pathname_prefix)


def dash_pages(app: Any, position: Position) -> Iterator[Route]:
    """The pages of a multi-page Dash app, by its registry. Its one view answers any path with status 200."""
    registry = sys.modules["dash"].page_registry
    top = position.prefix + dash_index(app).rstrip("/")
    for module, page in registry.items():
        layout = page.get("layout")
        settings = settings_of(layout) if callable(layout) else NO_SETTINGS
        name = endpoint_name(layout) if callable(layout) else module
        if module.rpartition(".")[2] == _DASH_NOT_FOUND:
            continue
        if page["path_template"]:
            yield Route(top + page["path_template"], name, False, position.host, settings)
        if page["supplied_path"] is not None or not page["path_template"]:
            yield Route(top + page["path"], name, True, position.host, settings)
