"""Chooses the module that reads the routes of an app's framework, and imports only this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ..models import Route
from .framework_detection import framework_of
from .mounted_app_position import DiscoveryPosition, MatchBelow
from .plain_routes import PlainRoutes


class RouteReader(Protocol):
    """What the module of a framework has."""

    def read_routes(self, app: Any, position: DiscoveryPosition, /) -> Iterator[Route | PlainRoutes]:
        """The routes that answer GET.

        Adds everything that the routes are read from to `position.snapshot`, before it is read: a change of it is then
        noticed. The routes of mounted apps are those of `position.below`.
        """

    def matching_template(self, app: Any, path: str, host: str | None, match_below: MatchBelow, /) -> str | None:
        """The template of the route that answers a GET of a decoded path; None if there is none.

        Args:
            app: the app.
            path: decoded, below the app's mount.
            host: the host of the request, if the app has routes for that host only.
            match_below: does the same for a mounted app, which may be of another framework.
        """

    def trusted_hosts(self, app: Any, /) -> tuple[str, ...]:
        """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""


def reader_of(app: Any) -> RouteReader | None:
    """The module for the framework of an app; None if the app is of no known framework."""
    match framework_of(app):
        case "falcon":
            from . import falcon_routes

            return falcon_routes
        case "litestar":
            from . import litestar_routes

            return litestar_routes
        case "bottle":
            from . import bottle_routes

            return bottle_routes
        case "django":
            from . import django_routes

            return django_routes
        case "pyramid":
            from . import pyramid_routes

            return pyramid_routes
        case "starlette":
            from . import starlette_routes

            return starlette_routes
        case "werkzeug":
            from . import werkzeug_routes

            return werkzeug_routes
        case _:
            return None
