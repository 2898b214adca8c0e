"""Builds and matches the paths of Starlette's routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from starlette.convertors import FloatConvertor, IntegerConvertor, StringConvertor, UUIDConvertor
from starlette.routing import compile_path, replace_params

from .bulk_path_builder import PARAMETER, REST, BulkBuilder, checked_by_first
from .path_builder_base import BasePathBuilder
from .prefix_index import PrefixIndex

_PARAMETER: Final = re.compile(r"{([a-zA-Z_][a-zA-Z0-9_]*)(?::([a-zA-Z_][a-zA-Z0-9_]*))?}")
_ISOLATING: Final = (StringConvertor, IntegerConvertor, FloatConvertor, UUIDConvertor)
"""Starlette's convertors that match no slash. Those of the app may match anything."""


class TakenPaths(list[Any]):
    """The routes and mounts that come before another one."""

    def __init__(self) -> None:
        self._regexes: PrefixIndex[tuple[int, re.Pattern[str]]] = PrefixIndex()
        self._indexed = 0
        """How many of the routes are indexed. This happens when the first path is checked: most apps check none."""

    def is_free_below(self, prefix: str) -> FreePaths:
        """Tells whether none of the routes up to now takes a path, which begins with the prefix."""
        return FreePaths(self, len(self), prefix)

    def find(self, path: str) -> Sequence[tuple[int, re.Pattern[str]]]:
        """The routes that may take a path, by the literal beginnings of their templates."""
        while self._indexed < len(self):
            route = self[self._indexed]
            template = route.path if hasattr(route, "endpoint") else f"{route.path}/"  # a mount takes paths below it
            self._regexes.add(template.partition("{")[0], (self._indexed, route.path_regex))
            self._indexed += 1
        return self._regexes.find(path)


class FreePaths:
    """Tells whether a path is taken by none of the first routes."""

    def __init__(self, routes: TakenPaths, count: int, prefix: str) -> None:
        self._routes = routes
        self._count = count
        self._prefix = prefix

    def __call__(self, path: str) -> bool:
        below = path.removeprefix(self._prefix)
        return not any(position < self._count and regex.match(below) for position, regex in self._routes.find(below))

    def marked_templates(self) -> Iterable[str]:
        """The templates of these routes as `BulkBuilder` takes them."""
        return map(_marked_template, self._routes[: self._count])


class StarlettePathBuilder(BasePathBuilder):
    """Builds and matches the paths of one route with parameters."""

    def __init__(self, path: str, prefix: str, is_free: FreePaths) -> None:
        self._path = path
        self._regex, self._format, self._convertors = compile_path(path)
        super().__init__(self._format, self._convertors, prefix)
        self._is_free = is_free

    def build_many(self, items: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """The paths for these parameters; None for each that only `build` can tell."""
        if self._bulk is None:
            return [None] * len(items)
        return checked_by_first(self, items, self._bulk.build(items), self._prefix)

    @cached_property
    def _bulk(self) -> BulkBuilder | None:
        """A builder for the paths that no earlier route takes; None if the template is not a plain one."""
        marked = _marked(self._path, self._convertors)
        kinds = {name: type(convertor) for name, convertor in self._convertors.items()}
        if not BulkBuilder.is_simple(marked) or not {*kinds.values()} <= {StringConvertor, IntegerConvertor}:
            return None
        only_integers = {name: kind is IntegerConvertor for name, kind in kinds.items()}
        return BulkBuilder(marked, only_integers, self._is_free.marked_templates())

    def write_path(self, params: Mapping[str, Any]) -> str:
        try:
            return replace_params(self._format, self._convertors, dict(params))[0]
        except AssertionError as error:  # Starlette's convertors refuse values by failing an assertion
            raise ValueError(str(error)) from None

    def leads_here(self, path: str) -> bool:
        return self._regex.match(path) is not None and self._is_free(self._prefix + path)


def _marked_template(route: Any) -> str:
    """The template of a route or mount as `BulkBuilder` takes it."""
    marked = _marked(route.path, getattr(route, "param_convertors", {}))
    return marked if hasattr(route, "endpoint") else f"{marked}/{REST}"  # a mount takes paths below it


def _marked(template: str, convertors: Mapping[str, Any]) -> str:
    if "{" not in template:
        return template
    marked = _PARAMETER.sub(lambda match: PARAMETER if type(convertors.get(match[1])) in _ISOLATING else REST, template)
    return marked.partition("{")[0] + REST if "{" in marked else marked
