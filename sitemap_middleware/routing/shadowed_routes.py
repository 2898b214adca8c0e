"""Which routes take the requests of others that come after them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter

from ..decorator import endpoint_name
from ..models import Route

_EarlierRoute = tuple[int, re.Pattern[str], str, str, object]
"""Its place in the order, its regular expression, the prefix of its app, its template, and its endpoint if any."""


class EarlierRoutes:
    """The routes passed so far that may take the GET requests of static routes which come after them.

    A regular expression is tried only on paths that begin and end with the literal
    text before and after the parameters of its template.
    """

    def __init__(self) -> None:
        self.any = False
        self._count = 0
        self._shapes: dict[str, list[tuple[int, int]]] = {}
        """By the folder that the literal beginning is in: the lengths of the beginnings and ends."""
        self._earlier: dict[str | tuple[str, str], dict[str, _EarlierRoute]] = {}
        """By the beginning, and by the end unless that is empty; then by the regular expression."""
        self.known: dict[str, list[tuple[int, int]]] = {}
        """By the folder of a static route: the shapes of that folder and of all around it."""
        self._below: dict[str, list[str]] = {}
        """By folder: the known ones in it, at any depth, and itself."""

    def add(self, path: str, regex: re.Pattern[str], prefix: str, endpoint: object) -> None:
        """Add a route, or a mount, which has no endpoint. Of two with the same expression the first takes all."""
        self.any = True
        self._count += 1
        begin, parameter, _ = path.partition("{")
        end = path[path.rfind("}") + 1 :] if parameter and endpoint is not None else ""
        key = (begin, end) if end else begin
        rival = self._count, regex, prefix, path, endpoint
        same = self._earlier.get(key)
        if same is not None:
            same.setdefault(regex.pattern, rival)
            return
        self._earlier[key] = {regex.pattern: rival}
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
        """The first one that takes a path."""
        folder = path.rpartition("/")[0]
        shapes = self.known.get(folder)
        if shapes is None:
            shapes = self._learned(folder)
        return self._first(path, shapes) if shapes else None

    def _learned(self, folder: str) -> list[tuple[int, int]]:
        """The shapes of a folder that was not known, which `add` keeps up to date from now on."""
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
        taking, rivals, whole = [], self._earlier, len(path)
        for begin, end in shapes:
            same = rivals.get((path[:begin], path[whole - end :]) if end else path[:begin])
            if same is not None:
                taking += [rival for rival in same.values() if rival[1].match(path)][:1]
        if not taking:
            return None
        _, _, prefix, template, endpoint = min(taking, key=itemgetter(0))
        if endpoint is None:
            return f"what is mounted at {prefix}{template.rstrip('/') or '/'}"
        return f"{prefix}{template} ({endpoint_name(endpoint)})"

    def with_shadowed(self, routes: Iterator[Route], prefix: str) -> Iterator[Route]:
        """Routes below a prefix, each with what takes its requests instead."""
        return (self._shadowed(route, prefix) for route in routes) if self.any else routes

    def _shadowed(self, route: Route, prefix: str) -> Route:
        name = self.shadowing_path(route.path.removeprefix(prefix)) if route.static and route.host is None else None
        return route._replace(shadowed_by=name) if name and route.shadowed_by is None else route
