"""Routes whose requests an earlier route takes: finds static ones, and keeps builders from building such paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from ..models import Context, PathBuilder, Route
from ..sitemap_decorator import endpoint_name
from .bulk_path_builder import build_many

IsFree = Callable[[str], bool]
"""Whether a decoded path is taken by none of the routes and mounts that come first."""

_EarlierRoute = tuple[int, re.Pattern[str], str, str, object]
"""Position, regular expression, prefix of its app, template, and endpoint (None for a mount)."""


class EarlierRoutes:
    """Routes registered so far that may take the GET requests of static routes registered later.

    A regular expression is tried only on paths with the literal beginning and end of its
    template: with 10,000 routes, trying each on each path would take seconds.
    """

    def __init__(self) -> None:
        self.any: bool = False
        self._count = 0
        self._shapes: dict[str, list[tuple[int, int]]] = {}
        """By folder of the literal beginning: the shapes, which are the lengths of beginning and end."""
        self._earlier: dict[str | tuple[str, str], dict[str, _EarlierRoute]] = {}
        """By beginning and end (by beginning alone if the end is empty), and then by regular expression."""
        self.known: dict[str, list[tuple[int, int]]] = {}
        """By folder of a static route: the shapes of that folder and of its parents."""
        self._below: dict[str, list[str]] = {}
        """By folder: the keys of `known` that are this folder or below it."""

    def add(self, path: str, regex: re.Pattern[str], prefix: str, endpoint: object) -> None:
        """Add a route, or a mount, which has no endpoint. Of two with equal expressions the first takes all."""
        self.any = True
        self._count += 1
        begin, parameter, _ = path.partition("{")
        end = path[path.rfind("}") + 1 :] if parameter and endpoint is not None else ""
        key = (begin, end) if end else begin
        route = self._count, regex, prefix, path, endpoint
        same = self._earlier.get(key)
        if same is not None:
            same.setdefault(regex.pattern, route)
            return
        self._earlier[key] = {regex.pattern: route}
        folder, shape = begin[: begin.rfind("/")], (len(begin), len(end))
        shapes = self._shapes.get(folder)
        if shapes is None:
            self._shapes[folder] = [shape]
        elif shape in shapes:
            return
        else:
            shapes.append(shape)
        for known in self._below.get(folder, ()):
            self.known[known].append(shape)

    def shadowing_path(self, path: str) -> str | None:
        """A description of the first route that takes a path; None if there is none."""
        folder = path.rpartition("/")[0]
        shapes = self.known.get(folder)
        if shapes is None:
            shapes = self._shapes_for(folder)
        return self._first(path, shapes) if shapes else None

    def _shapes_for(self, folder: str) -> list[tuple[int, int]]:
        """Collect the shapes of a folder that is new in `known`. `add` keeps them up to date from now on."""
        shapes = self.known[folder] = []
        slash = 0
        while slash >= 0:
            slash = folder.find("/", slash + 1)
            around = folder if slash < 0 else folder[:slash]
            self._below.setdefault(around, []).append(folder)
            shapes += self._shapes.get(around, ())
        if folder:
            self._below.setdefault("", []).append(folder)
            shapes += self._shapes.get("", ())
        return shapes

    def _first(self, path: str, shapes: list[tuple[int, int]]) -> str | None:
        taking, earlier, length = [], self._earlier, len(path)
        for begin, end in shapes:
            same = earlier.get((path[:begin], path[length - end :]) if end else path[:begin])
            if same is not None:
                taking += [route for route in same.values() if route[1].match(path)][:1]
        if not taking:
            return None
        _, _, prefix, template, endpoint = min(taking, key=itemgetter(0))
        if endpoint is None:
            return f"what is mounted at {prefix}{template.rstrip('/') or '/'}"
        return f"{prefix}{template} ({endpoint_name(endpoint)})"

    def with_shadowed(self, routes: Iterator[Route], prefix: str) -> Iterator[Route]:
        """Routes of an app mounted at a prefix, each with the route that shadows it, if any."""
        return (self._shadowed(route, prefix) for route in routes) if self.any else routes

    def _shadowed(self, route: Route, prefix: str) -> Route:
        name = self.shadowing_path(route.path.removeprefix(prefix)) if route.static else None
        return route._replace(shadowed_by=name) if name and route.shadowed_by is None else route


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

    def build_many(self, items: Sequence[Mapping[str, Any]]) -> list[str | None]:
        paths = build_many(self._builder, items)
        return [path if path is not None and self._is_free(path) else None for path in paths]

    def matches(self, path: str) -> bool:
        return self._is_free(path) and self._builder.matches(path)
