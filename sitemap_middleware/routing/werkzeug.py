"""Routes of Werkzeug's URL map: Flask's, Quart's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from urllib.parse import unquote

from werkzeug.exceptions import HTTPException
from werkzeug.routing import BuildError, Map, MapAdapter, Rule

from ..decorator import endpoint_name, inherited_settings, merge_settings, settings_of
from ..models import Context, Route, RouteSettings
from ..urls import ascii_host, bare_host
from .change_detector import ChangeDetector
from .discovery import check_params


def werkzeug_routes(app: Any, witness: ChangeDetector, prefix: str, host: str | None) -> Iterator[Route]:
    """The rules that answer GET with a page of their own: no aliases, redirects, build-only or websocket rules."""
    app.url_map.update()  # it sorts the rules, which is no change of them
    witness.watch(partial(_watched_state, app))
    _watch_rules(app.url_map, witness)
    mark_of_rule = _settings_reader(app)
    for rule in app.url_map.iter_rules():
        if rule.build_only or rule.alias or rule.websocket or rule.redirect_to is not None:
            continue
        if rule.methods is not None and "GET" not in rule.methods:
            continue
        own = _host(app, rule)
        if own is None:
            continue
        path = _path(rule)
        own_mark, mark = mark_of_rule(rule)
        whole = prefix + (rule.rule if path is None else path)
        mark, unlearned = inherited_settings(whole, own_mark, mark)
        endpoint = rule.endpoint
        yield Route(
            whole,
            endpoint if isinstance(endpoint, str) else endpoint_name(endpoint),
            path is not None,
            own or host,
            mark,
            not_learned_reason=unlearned,
            builder=_PathBuilder(app, rule, prefix) if mark.values and path is None else None,
        )


def matching_template(app: Any, path: str, host: str | None) -> str | None:
    """The rule that answers a GET of a path, as it is written; None if none does."""
    of_host = (rule for rule in app.url_map.iter_rules() if (_host(app, rule) or None) == host)
    rule = next(of_host, None)
    found = None if rule is None else _PathBuilder(app, rule, "").answering(path)
    return None if found is None else found.rule


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """Flask's TRUSTED_HOSTS, as Werkzeug takes them, or else its SERVER_NAME."""
    config = getattr(app, "config", None) or {}
    trusted = config.get("TRUSTED_HOSTS") or getattr(getattr(app, "request_class", None), "trusted_hosts", None)
    if not trusted:
        return (config["SERVER_NAME"].lower(),) if config.get("SERVER_NAME") else ()
    hosts: list[str] = []
    for host in [trusted] if isinstance(trusted, str) else trusted:
        name = bare_host(ascii_host(host.lower()))  # Werkzeug looks at no port, of either
        hosts += [name, name.removeprefix(".")]
    return tuple(hosts)


def _path(rule: Rule) -> str | None:
    """The decoded path of a rule whose every argument has a default; None for any other, and where none leads here."""
    if not rule.arguments:
        return rule.rule
    defaults = rule.defaults or {}
    if not _is_static(rule):
        return None
    if "<" not in rule.rule:
        return rule.rule
    _, built = rule.build(dict(defaults), append_unknown=False) or ("", "")
    path = unquote(built)
    return path if _matching_rule(_map_adapter(rule), path) is rule else None


def _map_adapter(rule: Rule) -> MapAdapter:
    """The map as it stands on the host of a rule."""
    return rule.map.bind(rule.host or "", subdomain=None if rule.map.host_matching else rule.subdomain)


def _matching_rule(adapter: MapAdapter, path: str) -> Rule | None:
    """The rule that answers a GET of this path."""
    try:
        return adapter.match(path, "GET", return_rule=True)[0]
    except HTTPException:
        return None


class _PathBuilder:
    """Werkzeug's map, asked about one rule."""

    def __init__(self, app: Any, rule: Rule, prefix: str) -> None:
        self._app = app
        self._rule = rule
        self._prefix = prefix
        self._adapter = _map_adapter(rule)
        self.names = frozenset(rule.arguments - set(rule.defaults or ()))

    def build(self, params: Mapping[str, Any]) -> str:
        rule = self._rule
        check_params(params, self.names, rule.arguments)
        for name, value in params.items():
            if isinstance(value, str) and value.startswith("/"):
                raise ValueError(f"its {name} begins with a slash, which Werkzeug's router leaves out")
        try:
            built = self._adapter.build(rule.endpoint, params, "GET")
        except BuildError:
            raise ValueError(f"{rule.rule} cannot be built of it") from None
        path = unquote(built)
        if not built.startswith("/") or built.startswith("//"):
            raise ValueError(f"{built} is on another host")
        found = self.answering(path)
        if found is None or not (found is rule or (found.endpoint == rule.endpoint and _is_static(found))):
            raise ValueError(f"{self._prefix}{path} does not lead back to {rule.rule}")
        return self._prefix + path

    def matches(self, path: str) -> bool:
        return path.startswith(self._prefix) and self.answering(path[len(self._prefix) :]) is self._rule

    def answering(self, path: str) -> Rule | None:
        """The rule that answers a path below the prefix; a converter may ask the app, as it can within a request."""
        try:
            return _matching_rule(self._adapter, path)
        except Exception:
            context = self.context()
            if not isinstance(context, AbstractContextManager):
                raise
            with context:
                return _matching_rule(self._adapter, path)

    def context(self) -> Context | None:
        make = getattr(self._app, "app_context", None)
        context: Context | None = make() if callable(make) else None
        return context


def _is_static(rule: Rule) -> bool:
    return not rule.arguments - set(rule.defaults or ())


def _host(app: Any, rule: Rule) -> str | None:
    """The one host that a rule answers on; empty for the site's own, None where it cannot be told."""
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
    """Tells what the view of a rule says; and, with it, its blueprint, the one around that, and so on, and the app."""
    views = getattr(app, "view_functions", None) or {}
    blueprints = getattr(app, "blueprints", None) or {}
    around = settings_of(app)

    def mark(rule: Rule) -> tuple[RouteSettings, RouteSettings]:
        endpoint = rule.endpoint
        own = found = settings_of(views.get(endpoint, endpoint))
        name = str(endpoint)
        while "." in name:
            name = name.rpartition(".")[0]
            found = merge_settings(found, settings_of(blueprints.get(name)))
        return own, merge_settings(found, around)

    return mark


def _watch_rules(url_map: Map, witness: ChangeDetector) -> None:
    """Note each rule. The map's own lists show them sooner than `iter_rules`, which makes one list of them all."""
    lists = getattr(url_map, "_rules_by_endpoint", None)
    if isinstance(lists, dict):
        witness.watch_lists(lambda: [*lists.values()])
    else:
        witness.watch(lambda: [*url_map.iter_rules()])


def _watched_state(app: Any) -> list[Any]:
    """What else tells of a rule: its view, its blueprint, and on which host it answers."""
    config = getattr(app, "config", None) or {}
    return [
        app.url_map,
        config.get("SERVER_NAME"),
        getattr(app, "subdomain_matching", False),
        [*(getattr(app, "blueprints", None) or {}).values()],
        [*(getattr(app, "view_functions", None) or {}).values()],
    ]
