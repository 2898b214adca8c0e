"""The base class of the path builders of most frameworks, and the check of parameters for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from ..models import Context


class BasePathBuilder(ABC):
    """Builds and matches the paths of one route with parameters.

    A framework says how it writes a path, and whether a path leads to the route. A path that does not is never built.
    """

    def __init__(self, template: str, names: Iterable[str], prefix: str) -> None:
        self._template = template
        self._prefix = prefix
        self.parameter_names: frozenset[str] = frozenset(names)

    def build(self, params: Mapping[str, Any]) -> str:
        """The decoded path for some parameters. Raises `ValueError` if they do not fit the route."""
        check_params(params, self.parameter_names, self.parameter_names)
        path = self.write_path(params)
        if not self.leads_here(path):
            raise ValueError(f"{self._prefix}{path} is not routed to {self._prefix}{self._template}")
        return self._prefix + path

    def matches(self, path: str) -> bool:
        """Whether a decoded path is one of the route's."""
        return path.startswith(self._prefix) and self.leads_here(path[len(self._prefix) :])

    def context(self) -> Context | None:
        """What `build` and `matches` run in: nothing."""
        return None

    @abstractmethod
    def write_path(self, params: Mapping[str, Any]) -> str:
        """The decoded path for the route's parameters, without the prefix."""

    @abstractmethod
    def leads_here(self, path: str) -> bool:
        """Whether a decoded path, without the prefix, leads to this route."""


def check_params(params: Mapping[str, Any], required: Iterable[str], known: Iterable[str]) -> None:
    """Raise `ValueError` if parameters are missing, or are not the route's."""
    if missing := set(required) - set(params):
        raise ValueError(f"the route's {', '.join(sorted(missing))} is missing")
    if unknown := set(params) - set(known):
        raise ValueError(f"the route has no parameter {', '.join(sorted(map(str, unknown)))}")
