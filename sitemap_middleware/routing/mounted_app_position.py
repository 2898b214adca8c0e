"""Where route discovery is in a tree of mounted apps: prefix, host and depth, and the way down to the next app."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..models import Route
from .plain_routes import PlainRoutes, each_route
from .route_change_detector import Snapshot

MatchBelow = Callable[[Any, str, "str | None"], "str | None"]
"""Matches a decoded path of a mounted app, on a host: returns the template of its route, or None."""


class DiscoveryPosition(NamedTuple):
    """Where an app is mounted.

    The module of a framework gets the routes of mounted apps by `below`: they may be of another framework.
    """

    discover: Callable[[Any, DiscoveryPosition], Iterator[Route | PlainRoutes]]
    """Yields the routes of any app."""
    snapshot: Snapshot
    """Records every object that routes are read from."""
    prefix: str = ""
    host: str | None = None
    """The host that the app is mounted for; None for every host."""
    known_hosts: Callable[[], tuple[str, ...]] = tuple
    """The hosts that the options and the app's settings name. Routes for a pattern of hosts are read for these."""
    depth: int = 0

    def below(self, app: Any, path: str = "", host: str | None = None) -> Iterator[Route]:
        """The routes of an app that is mounted at a path of this one, and for a host if that is given."""
        position = self._replace(prefix=self.prefix + path, host=host or self.host, depth=self.depth + 1)
        return each_route(self.discover(app, position))
