"""Reads the routes of a Werkzeug URL map, which Flask and Quart use, and what Flask-RESTX, -RESTful and Dash say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final
from urllib.parse import unquote

from werkzeug.exceptions import HTTPException
from werkzeug.routing import BuildError, MapAdapter, Rule

from ..http.urls import ascii_host, bare_host
from ..models import Context, HiddenReason, Route, RouteSettings
from ..options.decorator import NO_SETTINGS, endpoint_name, inherited_settings, merge_settings, settings_of
from .route_discovery import Position, check_params

_API_MODULES: Final = ("flask_restx", "flask_restful")
"""Modules with a class `Resource`, whose views answer with data."""

_RESOURCE: Final = HiddenReason("it is a resource of an API", is_declared=True)

_RESTX_VIEWS: Final = ("render_doc", "render_root")
"""Methods of Flask-RESTX's `Api` that are views: the documentation, and a 404 at the top of the API."""

_DASH_LAYOUT: Final = "_dash-layout"
"""The end of the endpoint of a view that is a method of the Dash app."""

_DASH_NOT_FOUND: Final = "not_found_404"
"""The name of the module that Dash shows for unknown paths."""


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The rules of an app that answer GET, except aliases, redirects, build-only and websocket rules."""
    read_settings = _settings_reader(app)
    views, declared = getattr(app, "view_functions", None) or {}, DeclaredViews()
    dash = {dash_index(found): found for found in dash_apps(app)}
    for found in dash.values():
        yield from dash_pages(found, position)
    hosts = tuple(sorted({host for rule in app.url_map.iter_rules() if (host := _host(app, rule))}))
    for rule in app.url_map.iter_rules():
        if rule.build_only or rule.alias or rule.websocket or rule.redirect_to is not None:
            continue
        if rule.methods is not None and "GET" not in rule.methods:
            continue
        host = _host(app, rule)
        if host is None:
            continue
        static_path = _static_path(rule)
        path = position.prefix + (rule.rule if static_path is None else static_path)
        own_settings, settings = read_settings(rule)
        settings, not_learned_reason = inherited_settings(path, own_settings, settings)
        endpoint = rule.endpoint
        if endpoint in dash:
            continue
        view = views.get(endpoint, endpoint)
        yield Route(
            path,
            endpoint if isinstance(endpoint, str) else endpoint_name(endpoint),
            static_path is not None,
            host or position.host,
            settings,
            declared.hidden_reason(view) if declared else None,
            declared.internal_reason(view) if declared else None,
            not_learned_reason=not_learned_reason,
            except_hosts=() if host else hosts,
            builder=_PathBuilder(app, rule, position.prefix) if settings.values and static_path is None else None,
        )


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


def _static_path(rule: Rule) -> str | None:
    """The decoded path of a rule all of whose arguments have defaults.

    None for other rules, and if the map answers that path by another rule.
    """
    if not rule.arguments:
        return rule.rule
    defaults = rule.defaults or {}
    if not _all_arguments_have_defaults(rule):
        return None
    if "<" not in rule.rule:
        return rule.rule
    _, built = rule.build(dict(defaults), append_unknown=False) or ("", "")
    path = unquote(built)
    return path if _matching_rule(_map_adapter(rule), path) is rule else None


def _map_adapter(rule: Rule) -> MapAdapter:
    """The URL map, bound to the host of a rule."""
    return rule.map.bind(rule.host or "", subdomain=None if rule.map.host_matching else rule.subdomain)


def _matching_rule(adapter: MapAdapter, path: str) -> Rule | None:
    """The rule that answers a GET of a decoded path; None if there is none."""
    try:
        return adapter.match(path, "GET", return_rule=True)[0]
    except HTTPException:
        return None


class _PathBuilder:
    """Builds and matches the paths of one rule."""

    def __init__(self, app: Any, rule: Rule, prefix: str) -> None:
        self._app = app
        self._rule = rule
        self._prefix = prefix
        self._adapter = _map_adapter(rule)
        self.parameter_names = frozenset(rule.arguments - set(rule.defaults or ()))

    def build(self, params: Mapping[str, Any]) -> str:
        rule = self._rule
        check_params(params, self.parameter_names, rule.arguments)
        for name, value in params.items():
            if isinstance(value, str) and value.startswith("/"):
                raise ValueError(f"its {name} begins with a slash, which Werkzeug's router removes")
        try:
            built = self._adapter.build(rule.endpoint, params, "GET")
        except BuildError:
            raise ValueError(f"{rule.rule} cannot be built from it") from None
        path = unquote(built)
        if not built.startswith("/") or built.startswith("//"):
            raise ValueError(f"{built} is on another host")
        matching = self.matching_rule(path)
        # A static rule of the same view may take the path of default parameters.
        if matching is None or not (
            matching is rule or (matching.endpoint == rule.endpoint and _all_arguments_have_defaults(matching))
        ):
            raise ValueError(f"{self._prefix}{path} is not routed to {rule.rule}")
        return self._prefix + path

    def matches(self, path: str) -> bool:
        return path.startswith(self._prefix) and self.matching_rule(path[len(self._prefix) :]) is self._rule

    def matching_rule(self, path: str) -> Rule | None:
        """The rule that answers a decoded path, which is given without the prefix."""
        try:
            return _matching_rule(self._adapter, path)
        except Exception:  # a converter may need the app's context, which it has within a request
            context = self.context()
            if not isinstance(context, AbstractContextManager):
                raise
            with context:
                return _matching_rule(self._adapter, path)

    def context(self) -> Context | None:
        app_context = getattr(self._app, "app_context", None)
        context: Context | None = app_context() if callable(app_context) else None
        return context


def _all_arguments_have_defaults(rule: Rule) -> bool:
    return not rule.arguments - set(rule.defaults or ())


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


def _settings_reader(app: Any) -> Callable[[Rule], tuple[RouteSettings, RouteSettings]]:
    """A function that reads the settings of a rule: those of its view, and those merged with blueprints and app."""
    views = getattr(app, "view_functions", None) or {}
    blueprints = getattr(app, "blueprints", None) or {}
    app_settings = settings_of(app)

    def read(rule: Rule) -> tuple[RouteSettings, RouteSettings]:
        endpoint = rule.endpoint
        own = merged = settings_of(views.get(endpoint, endpoint))
        name = str(endpoint)
        while "." in name:  # nested blueprints, the innermost first
            name = name.rpartition(".")[0]
            merged = merge_settings(merged, settings_of(blueprints.get(name)))
        return own, merge_settings(merged, app_settings)

    return read


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
