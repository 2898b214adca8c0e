"""The routes that come before another one: what shadows a static route, and which paths are still free for a builder.

Starlette tries routes in order, so the first that matches answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..models import Context, PathBuilder, Route
from ..sitemap_decorator import endpoint_name
from .prefix_index import PrefixIndex

IsFree = Callable[[str], bool]
"""Whether a decoded path is taken by none of the routes and mounts that come first."""


class _Earlier(NamedTuple):
    position: int
    regex: re.Pattern[str]
    template: str
    endpoint: object
    """None for a mount."""
    is_static: bool


class EarlierRoutes:
    """The routes and mounts of one app that were read so far, by the literal beginnings of their templates."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._routes: PrefixIndex[_Earlier] = PrefixIndex()
        self._shadowing: PrefixIndex[_Earlier] = PrefixIndex()
        """Those that may take the path of a later static route; of two static routes of one path the first answers."""
        self._count = 0

    def add(self, template: str, regex: re.Pattern[str], endpoint: object = None) -> None:
        """Add a route, or a mount, which has no endpoint."""
        self._count += 1
        is_static = "{" not in template and endpoint is not None
        route = _Earlier(self._count, regex, template, endpoint, is_static)
        start = template.partition("{")[0]
        self._routes.add(start, route)
        if not is_static:
            self._shadowing.add(start, route)

    def add_unanswered(self, template: str, regex: re.Pattern[str], endpoint: object) -> None:
        """Add a static route that takes GET requests and answers none."""
        self._count += 1
        self._shadowing.add(template, _Earlier(self._count, regex, template, endpoint, is_static=True))

    def is_mounted(self, path: str) -> bool:
        """Whether an earlier mount takes a path or template, without the prefix: no later route gets its requests."""
        return any(route.endpoint is None and route.regex.match(path) for route in self._shadowing.find(path))

    def shadowing(self, path: str) -> str | None:
        """A description of the first route that takes a static route's path, without the prefix; None if none does."""
        route = next((route for route in self._shadowing.find(path) if route.regex.match(path)), None)
        if route is None:
            return None
        if route.endpoint is None:
            return f"what is mounted at {self._prefix}{route.template.rstrip('/') or '/'}"
        return f"{self._prefix}{route.template} ({endpoint_name(route.endpoint)})"

    def is_free(self) -> IsFree:
        """Tells whether none of the routes up to now takes a decoded path, given with the prefix."""
        count, routes, prefix = self._count, self._routes, self._prefix

        def is_free(path: str) -> bool:
            below = path.removeprefix(prefix)
            return not any(route.position <= count and route.regex.match(below) for route in routes.find(below))

        return is_free

    def with_shadowed(self, routes: Iterator[Route]) -> Iterator[Route]:
        """Routes of a mounted app, each with the route that shadows it, if any."""
        for route in routes:
            name = self.shadowing(route.path.removeprefix(self._prefix)) if route.static else None
            yield route._replace(shadowed_by=name) if name and route.shadowed_by is None else route


def restrict_to_free_paths(routes: Iterable[Route], is_free: IsFree) -> Iterator[Route]:
    """Routes whose builders build only free paths."""
    for route in routes:
        yield route if route.builder is None else route._replace(builder=_RestrictedBuilder(route.builder, is_free))


class _RestrictedBuilder:
    """A builder that refuses paths which are not free."""

    def __init__(self, builder: PathBuilder, is_free: IsFree) -> None:
        self._builder = builder
        self._is_free = is_free
        self.parameter_names = builder.parameter_names
        self.context: Callable[[], Context | None] = builder.context

    def build(self, params: Mapping[str, Any]) -> str:
        path = self._builder.build(params)
        if not self._is_free(path):
            raise ValueError(f"{path} leads to another route of the app")
        return path

    def matches(self, path: str) -> bool:
        return self._is_free(path) and self._builder.matches(path)
