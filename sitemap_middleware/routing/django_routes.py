"""Reads the routes of a Django project from the views of its URLconf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.urls import get_resolver
from django.views import generic

from ..models import I18N, NO_SETTINGS, HiddenReason, PathBuilder, Route
from ..options.decorator import endpoint_name, merge_settings, settings_of
from .django_sitemaps import SETTING, sitemap_sections
from .django_urlconf import View, own_connections, resolve, views
from .route_discovery import Position

_ADMIN: Final = "it is part of the admin"
_TOOLS: Final = frozenset({"silk", "watchman"})
"""Packages of views for the operators of a site. The names of their paths may be those of pages."""
_REDIRECT: Final = HiddenReason("it declares a redirect", is_declared=True)
_FILES: Final = HiddenReason("it serves static files", is_declared=True)
_FILE_VIEWS: Final = ("django.views.static", "django.contrib.staticfiles.views")
"""The modules of the views that serve STATIC_ROOT and MEDIA_ROOT."""


def read_routes(_app: Any, position: Position) -> Iterator[Route]:
    """The views of the URLconf that answer GET. Those of an admin are never pages of the site."""
    resolver = get_resolver()
    sections = sitemap_sections()
    earlier: list[str] = []  # the beginnings of views with parameters
    for view in _with_home_pages(views(resolver)):
        if view.names:
            earlier.append("/" if view.is_regex else view.template.partition("<")[0])
        if not _answers_get(view.callback) or (view.is_admin and view.names):
            continue
        if not view.names and (view.is_regex or any(map(view.template.startswith, earlier))):
            match = resolve(view.template, view.language)
            if match is None or not view.answers(match):
                continue
        view_settings = settings_of(view.callback)
        for section in sections if not view.names else ():
            view_settings = merge_settings(view_settings, section.static_settings.get(view.template, NO_SETTINGS))
        yield position.route(
            view.template,
            endpoint_name(getattr(view.callback, "view_class", view.callback)),
            view_settings,
            hidden=_hidden_reason(view.callback),
            internal=_ADMIN if view.is_admin else _tool_reason(view.callback),
            defaults={I18N: view.language} if view.is_translated else {},
            builder=partial(_paths, view, position.prefix) if view.names else None,
        )
    for section in sections:
        yield section.route(position.prefix, position.host)


def _with_home_pages(found: Iterator[View]) -> Iterator[View]:
    """Views, and the home page of each language that a catch-all answers, as that of a content management system."""
    homes: dict[str, View] = {}
    for view in found:
        yield view
        home = f"/{view.language}/" if view.template.startswith(f"/{view.language}/") else "/"
        match = resolve(home, view.language) if view.is_regex and view.names and home not in homes else None
        if match is not None and view.answers(match):
            homes[home] = view
            yield view._replace(template=home, names=frozenset())


def trusted_hosts(_app: Any) -> tuple[str, ...]:
    """The ALLOWED_HOSTS. A name that begins with a dot stands for itself, too, as in Django."""
    hosts: list[str] = []
    for host in map(str.lower, settings.ALLOWED_HOSTS):
        hosts += [host, host.removeprefix(".")] if host != "*" else []
    return tuple(hosts)


def sitemap_settings() -> dict[str, Any]:
    """The settings that are options of the middleware.

    Raises:
        OptionError: SITEMAP_SITEMAPS is invalid.
    """
    sitemap_sections()
    found = {name: getattr(settings, name) for name in dir(settings) if name.startswith("SITEMAP_") and name != SETTING}
    if found.get("SITEMAP_AUTHORIZE") == "staff":
        found["SITEMAP_AUTHORIZE"] = "sitemap_middleware.django.middleware.is_staff"
    return found


def _answers_get(callback: Any) -> bool:
    """Whether a view may answer GET, by its class and by `require_http_methods` and its kind."""
    view_class = getattr(callback, "view_class", None)
    if isinstance(view_class, type) and getattr(view_class, "dispatch", None) is generic.View.dispatch:
        options = getattr(callback, "view_initkwargs", {})
        methods = options.get("http_method_names", getattr(view_class, "http_method_names", ()))
        if not hasattr(view_class, "get") or "get" not in methods:
            return False
    layer = callback
    while layer is not None:
        names = getattr(getattr(layer, "__code__", None), "co_freevars", ())
        if "request_method_list" in names:
            allowed = layer.__closure__[names.index("request_method_list")].cell_contents
            if "GET" not in allowed:
                return False
        layer = getattr(layer, "__wrapped__", None)
    return True


def _hidden_reason(callback: Any) -> HiddenReason | None:
    view_class = getattr(callback, "view_class", None)
    if isinstance(view_class, type) and issubclass(view_class, generic.RedirectView):
        return _REDIRECT
    return _FILES if getattr(callback, "__module__", None) in _FILE_VIEWS else None


def _tool_reason(callback: Any) -> str | None:
    package = str(getattr(getattr(callback, "view_class", callback), "__module__", "")).partition(".")[0]
    return f"it is part of {package}, a tool for the operators of the site" if package in _TOOLS else None


def _paths(view: View, prefix: str) -> PathBuilder:
    def write(params: Mapping[str, Any]) -> str:
        texts = {
            name: view.converters[name].to_url(value) if name in view.converters else str(value)
            for name, value in params.items()
        }
        return view.format % texts

    def leads_here(path: str) -> bool:
        match = resolve(path, view.language)
        return match is not None and view.answers(match)

    return PathBuilder(names=view.names, prefix=prefix, write=write, leads_here=leads_here, context=own_connections)
