"""Reads the routes of a Werkzeug URL map, which Flask and Quart use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from werkzeug.exceptions import HTTPException
from werkzeug.routing import (
    AnyConverter,
    BuildError,
    FloatConverter,
    IntegerConverter,
    Map,
    MapAdapter,
    Rule,
    UnicodeConverter,
    UUIDConverter,
)

from ..models import Context, Route, RouteSettings
from ..sitemap_decorator import endpoint_name, inherited_settings, merge_settings, settings_of
from ..urls import ascii_host, bare_host
from .bulk_path_builder import PARAMETER, REST, BulkBuilder, checked_by_first
from .flask_restx_and_dash import DeclaredViews, dash_apps, dash_index, dash_pages
from .mounted_app_position import DiscoveryPosition, MatchBelow
from .path_builder_base import check_params
from .route_change_detector import Snapshot

_PLAIN_PARAMETER: Final = re.compile(r"<(?:([A-Za-z_][A-Za-z0-9_]*):)?([A-Za-z_][A-Za-z0-9_]*)>")
_ISOLATING: Final = (UnicodeConverter, IntegerConverter, FloatConverter, UUIDConverter, AnyConverter)
"""Werkzeug's converters that match no slash. Those of the app may match anything."""


def read_routes(app: Any, position: DiscoveryPosition) -> Iterator[Route]:
    """The rules of an app that answer GET, except aliases, redirects, build-only and websocket rules."""
    app.url_map.update()  # sorts the rules, which must not count as a change of them
    position.snapshot.add(partial(_read_state, app))
    _add_rules(app.url_map, position.snapshot)
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


def matching_template(app: Any, path: str, host: str | None, _match_below: MatchBelow) -> str | None:
    """The template of the rule that answers a GET of a decoded path on a host; None if there is none."""
    if host is not None and not any(_host(app, rule) for rule in app.url_map.iter_rules()):
        host = None  # the app answers on any host
    # Any rule of this host will do: its map is matched as a whole.
    rules_of_host = (rule for rule in app.url_map.iter_rules() if (_host(app, rule) or None) == host)
    rule = next(rules_of_host, None)
    matching = None if rule is None else _PathBuilder(app, rule, "").matching_rule(path)
    return None if matching is None else matching.rule


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
        self._rules: list[Rule] | None = None
        """The rules of the map that `_bulk` was made for."""
        self._bulk: BulkBuilder | None = None

    def build_many(self, items: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """The paths for these parameters; None for each that only `build` can tell."""
        rules = [*self._rule.map.iter_rules()]
        if rules != self._rules:
            self._rules, self._bulk = rules, _bulk_builder(self._rule, self._adapter, rules)
        if self._bulk is None:
            return [None] * len(items)
        return checked_by_first(self, items, self._bulk.build(items), self._prefix)

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


def _bulk_builder(rule: Rule, adapter: MapAdapter, rules: Sequence[Rule]) -> BulkBuilder | None:
    """A builder for the paths of a rule that no other rule takes; None if the rule is not a plain one."""
    url_map = rule.map
    if type(adapter) is not MapAdapter or url_map.host_matching or rule.defaults:
        return None
    if type(rule).build is not Rule.build or type(rule).suitable_for is not Rule.suitable_for:
        return None
    if len([*url_map.iter_rules(rule.endpoint)]) > 1:  # `url_for` chooses among them
        return None
    marked = _marked_template(rule)
    if not BulkBuilder.is_simple(marked):
        return None
    parameters: dict[str, bool] = {}
    for kind, name in _PLAIN_PARAMETER.findall(rule.rule):
        converter = url_map.converters.get(kind or "default")
        if converter is not UnicodeConverter and converter is not IntegerConverter:
            return None
        parameters[name] = converter is IntegerConverter
    others = [
        _marked_template(other)
        for other in rules
        if other is not rule
        and not (other.build_only or other.websocket)
        and (other.methods is None or "GET" in other.methods)
    ]
    return BulkBuilder(marked, parameters, others, literals_first=True)


def _marked_template(rule: Rule) -> str:
    """The template of a rule as `BulkBuilder` takes it."""
    if "<" not in rule.rule:
        return str(rule.rule)

    def mark(match: re.Match[str]) -> str:
        return PARAMETER if rule.map.converters.get(match[1] or "default") in _ISOLATING else REST

    marked = _PLAIN_PARAMETER.sub(mark, rule.rule)
    return marked.partition("<")[0] + REST if "<" in marked else marked


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


def _add_rules(url_map: Map, snapshot: Snapshot) -> None:
    """Add the rules to the snapshot, by the map's own lists if it has them: `iter_rules` copies all rules each time."""
    lists = getattr(url_map, "_rules_by_endpoint", None)
    if isinstance(lists, dict):
        snapshot.add_lists(lambda: [*lists.values()])
    else:
        snapshot.add(lambda: [*url_map.iter_rules()])


def _read_state(app: Any) -> list[Any]:
    """What routes depend on besides the rules: views, blueprints, and the settings that decide on the host."""
    config = getattr(app, "config", None) or {}
    return [
        app.url_map,
        config.get("SERVER_NAME"),
        getattr(app, "subdomain_matching", False),
        [*(getattr(app, "blueprints", None) or {}).values()],
        [*(getattr(app, "view_functions", None) or {}).values()],
    ]
