"""What the path builders of all frameworks share: checks of parameters, and paths that another route takes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..models import Context, PathBuilder, Route

IsFree = Callable[[str], bool]
"""Whether a decoded path is taken by none of the routes and mounts that come first."""


def check_params(params: Mapping[str, Any], required: Iterable[str], known: Iterable[str]) -> None:
    """Raise `ValueError` if parameters are missing, or are not the route's."""
    if missing := set(required) - set(params):
        raise ValueError(f"the route's {', '.join(sorted(missing))} is missing")
    if unknown := set(params) - set(known):
        raise ValueError(f"the route has no parameter {', '.join(sorted(map(str, unknown)))}")


def restrict_to_free_paths(routes: Iterable[Route], is_free: IsFree) -> Iterator[Route]:
    """Routes whose builders build only free paths."""
    for route in routes:
        yield route if route.builder is None else route._replace(builder=_RestrictedBuilder(route.builder, is_free))


class _RestrictedBuilder:
    """A builder that refuses paths which are not free."""

    def __init__(self, builder: PathBuilder, is_free: IsFree) -> None:
        self._builder = builder
        self._is_free = is_free
        self.names = builder.names
        self.context: Callable[[], Context | None] = builder.context

    def build(self, params: Mapping[str, Any]) -> str:
        path = self._builder.build(params)
        if not self._is_free(path):
            raise ValueError(f"{path} leads to another route of the app")
        return path

    def matches(self, path: str) -> bool:
        return self._is_free(path) and self._builder.matches(path)
