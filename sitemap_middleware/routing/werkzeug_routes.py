"""Reads the routes of a Werkzeug URL map, which Flask and Quart use, and what Flask-RESTX, -RESTful and Dash say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from werkzeug.exceptions import HTTPException
from werkzeug.routing import BuildError, MapAdapter, Rule

from ..http.urls import ascii_host, bare_host
from ..models import NO_SETTINGS, HiddenReason, PathBuilder, Route, RouteSettings
from ..options.decorator import endpoint_name, merge_settings, settings_of
from .framework_detection import new_context
from .route_discovery import Position

_API_MODULES: Final = ("flask_restx", "flask_restful")
"""Modules with a class `Resource`, whose views answer with data."""

_RESOURCE: Final = HiddenReason("it is a resource of an API", is_declared=True)

_DASH_LAYOUT: Final = "_dash-layout"
"""The end of the endpoint of a view that is a method of the Dash app."""

_DASH_NOT_FOUND: Final = "not_found_404"
"""The name of the module that Dash shows for unknown paths."""


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The rules of an app that answer GET, except aliases, redirects, build-only and websocket rules."""
    views = getattr(app, "view_functions", None) or {}
    dash = _dash_apps(views)
    for found in dash.values():
        yield from _dash_pages(found, position)
    for rule in app.url_map.iter_rules():
        if rule.build_only or rule.alias or rule.websocket or rule.redirect_to is not None or rule.endpoint in dash:
            continue
        if (rule.methods is not None and "GET" not in rule.methods) or (host := _host(app, rule)) is None:
            continue
        endpoint, view = rule.endpoint, views.get(rule.endpoint, rule.endpoint)
        own_settings = settings_of(view)
        settings = _all_settings(app, endpoint, own_settings)
        if callable(settings.lastmod):
            settings = settings._replace(lastmod=_InAppContext(app, settings.lastmod))
        yield position.route(
            rule.rule,
            endpoint if isinstance(endpoint, str) else endpoint_name(endpoint),
            own_settings,
            settings,
            host=host,
            hidden=_hidden_reason(view),
            defaults=rule.defaults or {},
            builder=partial(_paths, app, rule, position.prefix) if "<" in rule.rule else None,
        )


@dataclass(frozen=True, slots=True)
class _InAppContext:
    """A function without arguments, called within the app's context. Routes are compared, so it has equality."""

    app: Any
    function: Callable[[], Any]

    def __call__(self) -> Any:
        context = new_context(self.app)
        with context if isinstance(context, AbstractContextManager) else nullcontext():  # Quart's is async
            return self.function()


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """Flask's TRUSTED_HOSTS, as Werkzeug compares them; if it is not set, SERVER_NAME."""
    config = getattr(app, "config", None) or {}
    trusted = config.get("TRUSTED_HOSTS") or getattr(getattr(app, "request_class", None), "trusted_hosts", None)
    if not trusted:
        return (config["SERVER_NAME"].lower(),) if config.get("SERVER_NAME") else ()
    hosts: list[str] = []
    for host in [trusted] if isinstance(trusted, str) else trusted:
        name = bare_host(ascii_host(host.lower()))  # Werkzeug ignores ports on both sides
        hosts += [name, name.removeprefix(".")]
    return tuple(hosts)


def _matching_rule(adapter: MapAdapter, path: str) -> Rule | None:
    """The rule that answers a GET of a decoded path; None if there is none."""
    try:
        return adapter.match(path, "GET", return_rule=True)[0]
    except HTTPException:
        return None


def _paths(app: Any, rule: Rule, prefix: str) -> PathBuilder:
    adapter = rule.map.bind(rule.host or "", subdomain=None if rule.map.host_matching else rule.subdomain)

    def write(params: Mapping[str, Any]) -> str:
        for name, value in params.items():
            if isinstance(value, str) and value.startswith("/"):
                raise ValueError(f"its {name} begins with a slash, which Werkzeug's router removes")
        try:
            built = adapter.build(rule.endpoint, params, "GET")
        except BuildError:
            raise ValueError(f"{rule.rule} cannot be built from it") from None
        if not built.startswith("/") or built.startswith("//"):
            raise ValueError(f"{built} is on another host")
        return unquote(built)

    def leads_here(path: str) -> bool:
        try:
            found = _matching_rule(adapter, path)
        except Exception:  # a converter may need the app's context, which it has within a request
            context = new_context(app)
            if not isinstance(context, AbstractContextManager):
                raise
            with context:
                found = _matching_rule(adapter, path)
        # A static rule of the same view may take the path of default parameters.
        is_default = found is not None and found.endpoint == rule.endpoint and "<" not in found.rule
        return found is rule or is_default

    return PathBuilder(
        names=frozenset(rule.arguments - set(rule.defaults or ())),
        prefix=prefix,
        write=write,
        leads_here=leads_here,
        optional=frozenset(rule.arguments),
        context=partial(new_context, app),
    )


def _host(app: Any, rule: Rule) -> str | None:
    """The host that a rule answers on. Empty for the site's main host; None if it has parameters or is unknown."""
    url_map = rule.map
    if url_map.host_matching:
        host = rule.host or ""
    elif (rule.subdomain or "") == url_map.default_subdomain:
        return ""
    else:
        server = (getattr(app, "config", None) or {}).get("SERVER_NAME")
        matching = server and getattr(app, "subdomain_matching", False)
        host = f"{rule.subdomain}.{server}".lstrip(".") if matching else ""
    return host.lower() if host and "<" not in host else None


def _all_settings(app: Any, endpoint: object, own: RouteSettings) -> RouteSettings:
    """The settings of a view, merged with those of its blueprints, the innermost first, and of the app."""
    blueprints = getattr(app, "blueprints", None) or {}
    name = str(endpoint)
    while "." in name:
        name = name.rpartition(".")[0]
        own = merge_settings(own, settings_of(blueprints.get(name)))
    return merge_settings(own, settings_of(app))


def _hidden_reason(view: Any) -> HiddenReason | None:
    """Why a view is not listed before a response shows that it is a page; None if it may be listed at once."""
    view_class = getattr(view, "view_class", None)
    resources = tuple(sys.modules[name].Resource for name in _API_MODULES if name in sys.modules)
    restx_api = getattr(sys.modules.get("flask_restx"), "Api", ())  # it makes views for its documentation, too
    is_resource = isinstance(view_class, type) and issubclass(view_class, resources)
    return _RESOURCE if is_resource or isinstance(getattr(view, "__self__", None), restx_api) else None


def _dash_apps(views: Mapping[Any, Any]) -> dict[str, Any]:
    """The multi-page Dash apps that a Flask or Quart app serves, by the endpoint of their one view."""
    dash_class = getattr(sys.modules.get("dash"), "Dash", ())
    owners = [getattr(view, "__self__", None) for name, view in views.items() if str(name).endswith(_DASH_LAYOUT)]
    found = [owner for owner in owners if isinstance(owner, dash_class) and owner.use_pages]
    return {str(dash.config.routes_pathname_prefix): dash for dash in found}


def _dash_pages(app: Any, position: Position) -> Iterator[Route]:
    """The pages of a multi-page Dash app, by its registry. Its one view answers any path with status 200."""
    top = position.prefix + str(app.config.routes_pathname_prefix).rstrip("/")
    for module, page in sys.modules["dash"].page_registry.items():
        layout = page.get("layout")
        settings = settings_of(layout) if callable(layout) else NO_SETTINGS
        name = endpoint_name(layout) if callable(layout) else module
        if module.rpartition(".")[2] == _DASH_NOT_FOUND:
            continue
        if page["path_template"]:
            yield Route(top + page["path_template"], name, False, position.host, settings)
        if page["supplied_path"] is not None or not page["path_template"]:
            yield Route(top + page["path"], name, True, position.host, settings)
