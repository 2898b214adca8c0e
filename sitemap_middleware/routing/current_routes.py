"""The routes of the wrapped app. Apps may add routes at any time, so they are read again for each new sitemap."""

from __future__ import annotations

import logging
from typing import Any, Final

from ..http.urls import bare_host, wildcard_of
from ..models import Route
from ..options.table import Options
from ..util import WarnOnce
from .framework_detection import framework_app, new_context, root_path
from .route_discovery import discover_routes, trusted_hosts
from .route_table import RouteTable

log: logging.Logger = logging.getLogger("sitemap_middleware")

LARGE_APP_ROUTES: Final = 2000
"""Reading the routes of a larger app, or files in a large folder, takes too long for every sitemap."""

LARGE_APP_PAUSE_SECONDS: Final = 10.0
"""How long the routes of a large app are used before they are read again."""


class AppRoutes:
    """The routes of one app, as last read."""

    def __init__(self, app: Any, options: Options) -> None:
        self.app: Any = app
        """The app whose routes these are."""
        self._options = options
        self._table: RouteTable | None = None
        self._read_again_at = 0.0
        """When the routes of a large app may be read again, in POSIX seconds."""
        self.root_path: str = root_path(app)
        """The root path that the app itself declares."""
        self._warn_once = WarnOnce()
        self.bound: bool = False
        """Whether `bind` has been called."""

    def bind(self, app: Any) -> None:
        """Use the app of an ASGI scope, if the wrapped app is its router: `add_middleware` wraps only that."""
        self.bound = True
        if getattr(app, "router", self) is framework_app(self.app):
            self.app = app
            self._table, self._read_again_at = None, 0.0
            self.root_path = root_path(app)

    @property
    def table(self) -> RouteTable:
        """The latest table. Only `reload` reads the routes again."""
        return self._table or self.reload()

    def reload(self) -> RouteTable:
        """Read the routes again: apps may add some at any time. If that fails, the previous table stays in use."""
        table, now = self._table, self._options.clock()
        if table is not None and now < self._read_again_at:
            return table
        try:
            found = tuple(discover_routes(self.app, self._known_hosts()))
        except Exception:
            log.exception("the app's routes could not be read; those read before stay in use")
            found = table.routes if table is not None else ()
        self._read_again_at = now + LARGE_APP_PAUSE_SECONDS if len(found) > LARGE_APP_ROUTES else 0.0
        if table is None or table.routes != found:
            self._table = table = RouteTable(found, self._options, lambda: new_context(framework_app(self.app)))
            self._warn_of_unused_values(found)
        return table

    def keeps(self, path: str, option: str) -> bool:
        """Whether the app has a route of its own for a path that an option gives the middleware. If so, warn once."""
        if not self.table.has_explicit_route(path):
            return False
        self._warn_once(
            option, "the app itself has a route for %s and keeps it; give %s another path to have both", path, option
        )
        return True

    @property
    def trusted_hosts(self) -> tuple[str, ...]:
        """The hosts that the app's own settings trust."""
        return trusted_hosts(self.app)

    def _known_hosts(self) -> tuple[str, ...]:
        """The hosts that the options and the app's own settings name, or their patterns such as ``*.example.com``."""
        base = [self._options.site.host] if self._options.site is not None else []
        named = (bare_host(host) for host in (*base, *self._options.allowed_hosts, *self.trusted_hosts))
        names = (name for host in named for name in (wildcard_of(host), host.removeprefix(".")))
        return tuple(dict.fromkeys(name for name in names if name not in (None, "", "*")))

    def _warn_of_unused_values(self, found: tuple[Route, ...]) -> None:
        """Warn once of each provider that has only static routes."""
        used = {route.settings.values for route in found if not route.static}
        for route in found:
            provider = route.settings.values
            if provider is not None and provider not in used:
                self._warn_once(
                    provider,
                    "%s: its values are not used, because %s has no parameters; leave them out",
                    provider.place,
                    route.path,
                )
