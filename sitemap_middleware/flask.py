"""The Flask extension: `Sitemap`, and the commands `flask sitemap`."""

from __future__ import annotations

from typing import Unpack

from click import Command, Context, Group, UsageError
from flask import Flask, current_app, has_app_context
from flask.cli import AppGroup

from .cli import missing_library_message
from .exceptions import MiddlewareLookupError, OptionError
from .middleware import SitemapMiddleware, SitemapOptions
from .options.sources import CONSTRUCTOR_NAME
from .options.table import refuse_unknown
from .routing import framework_detection
from .routing.framework_detection import EXTENSION_NAME

__all__ = ["Sitemap", "SitemapOptions"]


class Sitemap:
    """Adds `SitemapMiddleware` to Flask apps, as an extension: ``Sitemap(app)``, or ``Sitemap().init_app(app)``.

    An option that is not given comes from ``app.config``, such as
    ``app.config["SITEMAP_BASE_URL"]``, else from an environment variable of the same
    name. Both are read by `init_app`. The middleware of an app is
    ``app.extensions["sitemap"]``, and `middleware` for the current app. The app gets the
    commands ``flask sitemap``.

    Args:
        app: the app. Without it, call `init_app` later, for one app or several.
        options: those of `SitemapMiddleware`, for every app.

    Raises:
        OptionError: an unknown option, an invalid value, or an app that has a `SitemapMiddleware`.
    """

    def __init__(self, app: Flask | None = None, **options: Unpack[SitemapOptions]) -> None:
        refuse_unknown(options)
        self._options = options
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask, **options: Unpack[SitemapOptions]) -> None:
        """Add the middleware to an app. Options given here go before those of the constructor."""
        refuse_unknown(options)
        if not isinstance(app, Flask):
            raise OptionError(
                f"Sitemap: app={app!r} is not a Flask app; give the Flask object, and in other frameworks"
                f" use {CONSTRUCTOR_NAME}"
            )
        _refuse_second(app)
        options = {**self._options, **options}
        inner = app.wsgi_app
        routes = None if framework_detection.framework_app(inner) is app else app  # an app around it may hide it
        middleware = SitemapMiddleware(inner, routes=routes, **options)
        app.wsgi_app = middleware  # type: ignore[method-assign] # as Flask's documentation says
        app.extensions[EXTENSION_NAME] = middleware
        if EXTENSION_NAME not in app.cli.commands:
            app.cli.add_command(_CommandGroup(app))

    @property
    def middleware(self) -> SitemapMiddleware:
        """The middleware of the current app, for `explain`, `stats` and `flush`.

        Raises:
            MiddlewareLookupError: there is no application context, or its app was not given to `init_app`.
        """
        middleware = current_app.extensions.get(EXTENSION_NAME) if has_app_context() else None
        if not isinstance(middleware, SitemapMiddleware):
            raise MiddlewareLookupError(
                "Sitemap.middleware is that of the current app: call init_app(app) when it is made, and this in a"
                ' request or in "with app.app_context():", or use app.extensions["sitemap"]'
            )
        return middleware


def _refuse_second(app: Flask) -> None:
    """Raise `OptionError` if the app has a middleware, or another extension of the name."""
    if any(isinstance(layer, SitemapMiddleware) for layer in framework_detection.layers(app)):
        raise OptionError(f"Sitemap: {app!r} has a {CONSTRUCTOR_NAME} already; add it once, by init_app or by wsgi_app")
    other = app.extensions.get(EXTENSION_NAME)
    if other is not None:
        raise OptionError(
            f'Sitemap: app.extensions["{EXTENSION_NAME}"] of {app!r} belongs to {type(other).__module__};'
            f" remove that extension, or write app.wsgi_app = {CONSTRUCTOR_NAME}(app.wsgi_app)"
        )


class _CommandGroup(AppGroup):
    """`flask sitemap`: the commands of `sitemap-middleware`, for an app. They are imported when they are used."""

    def __init__(self, app: Flask) -> None:
        super().__init__("sitemap", help="Show which pages the sitemap lists, and why.")
        self._app = app

    def list_commands(self, ctx: Context) -> list[str]:
        return self._imported_group().list_commands(ctx)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        return self._imported_group().get_command(ctx, cmd_name)

    def _imported_group(self) -> Group:
        try:
            from .cli.main import commands_for
        except ModuleNotFoundError as error:
            if (message := missing_library_message(error)) is None:
                raise
            raise UsageError(message) from error
        return commands_for(self._app)
