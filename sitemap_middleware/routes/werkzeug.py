"""Routes of Werkzeug's URL map: Flask's, Quart's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from werkzeug.routing import BuildError, Map, Rule

from ..decorator import mark_of, merged
from ..model import Mark, Route

_CONVERTER: Final = re.compile(r"<[^>]*>")


def routes(app: Any, prefix: str, host: str | None) -> Iterator[Route]:
    """The rules that answer GET with a page of their own: no aliases, redirects, build-only or websocket rules."""
    url_map: Map = app.url_map
    subdomains = bool(getattr(app, "subdomain_matching", False))
    for rule in url_map.iter_rules():
        if rule.build_only or rule.alias or rule.websocket or rule.redirect_to is not None:
            continue
        if rule.methods is not None and "GET" not in rule.methods:
            continue
        reachable, own_host = _host(app, rule, url_map, subdomains)
        if not reachable:
            continue
        path = rule.rule
        static = not rule.arguments - set(rule.defaults or ())
        if static and _CONVERTER.search(path):
            built = _built(url_map, rule)
            static, path = built is not None, built or path
        yield Route(
            path=prefix + path,
            endpoint=str(rule.endpoint),
            static=static,
            host=own_host or host,
            mark=_mark(app, rule),
        )


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """Flask's TRUSTED_HOSTS, or else its SERVER_NAME."""
    config = getattr(app, "config", None) or {}
    trusted = config.get("TRUSTED_HOSTS") or getattr(getattr(app, "request_class", None), "trusted_hosts", None)
    if not trusted:
        trusted = [config["SERVER_NAME"]] if config.get("SERVER_NAME") else ()
    return tuple(host.lower() for host in trusted)


def _host(app: Any, rule: Rule, url_map: Map, subdomains: bool) -> tuple[bool, str | None]:
    """Whether requests reach this rule on hosts that can be told, and on which alone, if on one."""
    if url_map.host_matching:
        host = rule.host or ""
        return bool(host) and "<" not in host, host.lower() or None
    subdomain = rule.subdomain or ""
    if subdomain == (url_map.default_subdomain or ""):
        return True, None
    server = (getattr(app, "config", None) or {}).get("SERVER_NAME")
    return subdomains and bool(server) and "<" not in subdomain, f"{subdomain}.{server}".lower()


def _built(url_map: Map, rule: Rule) -> str | None:
    """The path of a rule whose every argument has a default, as the app's own router builds it."""
    adapter = url_map.bind("localhost", subdomain=rule.subdomain)
    try:
        return adapter.build(rule.endpoint, dict(rule.defaults or {}), method="GET").partition("?")[0]
    except BuildError:
        return None


def _mark(app: Any, rule: Rule) -> Mark:
    """What the view says, then its blueprint, then the blueprint around that."""
    view = (getattr(app, "view_functions", None) or {}).get(rule.endpoint, rule.endpoint)
    mark = mark_of(view)
    blueprints = getattr(app, "blueprints", None) or {}
    name = str(rule.endpoint).rpartition(".")[0]
    while name:
        if name in blueprints:
            mark = merged(mark, mark_of(blueprints[name]))
        name = name.rpartition(".")[0]
    return mark
