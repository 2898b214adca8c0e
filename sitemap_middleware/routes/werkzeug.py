"""Routes of Werkzeug's URL map: Flask's, Quart's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from ..decorator import mark_of, merged, name_of
from ..location import ascii_host, bare_host
from ..model import Mark, Route


def routes(app: Any, prefix: str, host: str | None) -> Iterator[Route]:
    """The rules that answer GET with a page of their own: no aliases, redirects, build-only or websocket rules."""
    for rule in app.url_map.iter_rules():
        if rule.build_only or rule.alias or rule.websocket or rule.redirect_to is not None:
            continue
        if rule.methods is not None and "GET" not in rule.methods:
            continue
        own = _host(app, rule)
        if own is None:
            continue
        path = _path(rule)
        yield Route(
            path=prefix + (rule.rule if path is None else path),
            endpoint=rule.endpoint if isinstance(rule.endpoint, str) else name_of(rule.endpoint),
            static=path is not None,
            host=own or host,
            mark=_mark(app, rule),
        )


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
    defaults = rule.defaults or {}
    if rule.arguments - set(defaults):
        return None
    if "<" not in rule.rule:
        return rule.rule
    _, built = rule.build(dict(defaults), append_unknown=False) or ("", "")
    adapter = rule.map.bind(rule.host or "", subdomain=None if rule.map.host_matching else rule.subdomain)
    try:
        matched, _ = adapter.match(path := unquote(built), "GET", return_rule=True)
    except HTTPException:
        return None
    return path if matched is rule else None


def _host(app: Any, rule: Rule) -> str | None:
    """The one host that a rule answers on; empty for the site's own, None where it cannot be told."""
    if rule.map.host_matching:
        host = rule.host or ""
    elif (rule.subdomain or "") == rule.map.default_subdomain:
        return ""
    else:
        server = (getattr(app, "config", None) or {}).get("SERVER_NAME")
        matching = server and getattr(app, "subdomain_matching", False)
        host = f"{rule.subdomain}.{server}".lstrip(".") if matching else ""
    return host.lower() if host and "<" not in host else None


def _mark(app: Any, rule: Rule) -> Mark:
    """What the view says, then its blueprint, then the blueprint around that, then the app."""
    mark = mark_of((getattr(app, "view_functions", None) or {}).get(rule.endpoint, rule.endpoint))
    blueprints = getattr(app, "blueprints", None) or {}
    name = str(rule.endpoint).rpartition(".")[0]
    while name:
        mark = merged(mark, mark_of(blueprints.get(name)))
        name = name.rpartition(".")[0]
    return merged(mark, mark_of(app))
