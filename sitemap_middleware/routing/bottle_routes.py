"""Reads the routes of a Bottle app, with those of the apps that are mounted in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from ..models import PathBuilder, Route
from ..options.decorator import endpoint_name, settings_of
from .framework_detection import bottle_module
from .route_discovery import Position

_KNOWN_FILTERS: Final = ("int", "float", "path")
_WIDE_REGEX: Final = re.compile(r"\.[*+]")


def read_routes(app: Any, position: Position) -> Iterator[Route]:
    """The routes that answer GET. Those of a mounted WSGI app are its own."""
    mounted = set[str]()
    for route in app.routes:
        target = route.config.get("mountpoint.target")
        if target is not None:
            prefix = f"/{route.config['mountpoint.prefix'].strip('/')}"
            if prefix not in mounted:  # a mount is two routes: that of the prefix, and that of all below it
                mounted.add(prefix)
                yield from position.below(target, prefix)
            continue
        if route.method not in ("GET", "ANY"):
            continue
        template, names = _template(route.rule, bottle_module(app).Router.rule_syntax)
        if not names and _matching_route(app, route.rule) not in (None, route):
            continue  # another route takes its requests
        yield position.route(
            template,
            endpoint_name(route.callback),
            settings_of(route.callback),
            builder=partial(_paths, app, route, names, position.prefix) if names else None,
        )


def _matching_route(app: Any, path: str) -> Any:
    """What Bottle's router finds for a GET of a decoded path; None if it finds nothing."""
    try:
        return app.router.match({"REQUEST_METHOD": "GET", "PATH_INFO": path})[0]
    except bottle_module(app).HTTPResponse:
        return None


def _template(rule: str, syntax: re.Pattern[str]) -> tuple[str, tuple[str, ...]]:
    """A rule with parameters as Werkzeug writes them, and their names.

    Bottle writes ``<name:filter:configuration>``, and ``:name#regex#`` in its old syntax.
    """
    pieces: list[str] = []
    names: list[str] = []
    end = anonymous = 0
    for token in syntax.finditer(rule):
        slashes, old_name, old_mark, old_regex, name, filter_name, configuration = token.groups()
        pieces.append(rule[end : token.start()])
        end = token.end()
        if len(slashes) % 2:  # an escaped wildcard
            pieces.append(token[0][len(slashes) :])
            continue
        if old_mark is not None:
            name, filter_name, configuration = old_name, None, old_regex
        if not name:
            name, anonymous = f"anon{anonymous}", anonymous + 1
        if filter_name not in _KNOWN_FILTERS:
            filter_name = "path" if _WIDE_REGEX.search(configuration or "") else None
        names.append(name)
        pieces.append(f"<{filter_name}:{name}>" if filter_name else f"<{name}>")
    pieces.append(rule[end:])
    return "".join(pieces), tuple(names)


def _paths(app: Any, route: Any, names: tuple[str, ...], prefix: str) -> PathBuilder:
    return PathBuilder(
        names=frozenset(names),
        prefix=prefix,
        write=lambda params: unquote(app.router.build(route.rule, **params)),
        leads_here=lambda path: _matching_route(app, path) is route,
    )
