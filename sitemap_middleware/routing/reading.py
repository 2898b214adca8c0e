"""What the readers of all frameworks share: where an app is mounted, and how paths are built by its own router."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ..models import Context, Route


class RouteReader(Protocol):
    """What the module of a framework has."""

    def read_routes(self, app: Any, position: Position, /) -> Iterator[Route]:
        """The routes that answer GET, in the order in which the router tries them.

        The routes of mounted apps are those of `position.below`.
        """

    def trusted_hosts(self, app: Any, /) -> tuple[str, ...]:
        """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""


class Position(NamedTuple):
    """Where an app is mounted.

    The module of a framework gets the routes of mounted apps by `below`: they may be of another framework.
    """

    discover: Callable[[Any, Position], Iterator[Route]]
    """Yields the routes of any app."""
    prefix: str = ""
    host: str | None = None
    """The host that the app is mounted for; None for every host."""
    known_hosts: Callable[[], tuple[str, ...]] = tuple
    """The hosts that the options and the app's settings name. Routes for a pattern of hosts are read for these."""
    depth: int = 0

    def below(self, app: Any, path: str = "", host: str | None = None) -> Iterator[Route]:
        """The routes of an app that is mounted at a path of this one, and for a host if that is given."""
        return self.discover(
            app, self._replace(prefix=self.prefix + path, host=host or self.host, depth=self.depth + 1)
        )


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
