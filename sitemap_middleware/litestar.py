"""The plugin for Litestar: ``Litestar(plugins=[SitemapPlugin(base_url="https://example.com")])``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from litestar.plugins import CLIPluginProtocol, InitPluginProtocol
from litestar.plugins.base import ReceiveRoutePlugin

from .adapters.app_lookup import app_of_route, install_once
from .middleware import SitemapMiddleware, SitemapOptions
from .options.table import refuse_unknown
from .routing.litestar_routes import settings_of_handler

if TYPE_CHECKING:
    from click import Group

__all__ = ("SitemapPlugin",)


class SitemapPlugin(InitPluginProtocol, CLIPluginProtocol, ReceiveRoutePlugin):
    """Gives a Litestar app a sitemap, and its command line the commands of ``litestar sitemap``.

    The middleware is in ``app.state.sitemap``, unless the app has its own. A handler's settings are the
    decorator `sitemap` or ``opt={"sitemap": {"priority": 0.8}}``, and so are those
    of controllers, routers and the app.

    Args:
        options: those of `SitemapMiddleware`, by name.

    Raises:
        OptionError: for an unknown option here, and for an invalid value when the app is made.
    """

    def __init__(self, **options: Unpack[SitemapOptions]) -> None:
        refuse_unknown(options)
        self._options = options
        self._app: Any = None

    def receive_route(self, route: Any) -> None:
        """Install the middleware with the first route, because Litestar gives a plugin no app before that."""
        for handler in getattr(route, "route_handlers", None) or [route.route_handler]:
            settings_of_handler(handler)  # raises for invalid ones
        self._app = app_of_route(route)
        install_once(self._app, lambda app: SitemapMiddleware(app, **self._options))

    def on_cli_init(self, cli: Group) -> None:
        """Add the command ``sitemap``."""
        from .cli.main import commands_for

        if self._app is not None:
            cli.add_command(commands_for(self._app))
