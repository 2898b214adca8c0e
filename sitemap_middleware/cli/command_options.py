"""The group of all commands, and the arguments and options that several of them have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 if all is well, 1 for the answer no (explain, routes --strict, check), 2 for an error.",
)
@click.version_option(package_name="sitemap-middleware", prog_name="sitemap-middleware")
def command() -> None:
    """Show which pages an app's SitemapMiddleware lists, and why.

    APP is MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE, such as app:app, shop.web:create_app or shop/web.py:app: an app,
    or a function that makes one.
    """


def app_options(metavar: str = "APP") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the argument and the options of every command that loads an app.

    Args:
        metavar: what the usage line calls the argument.
    """

    def decorate(wrapped: Callable[..., None]) -> Callable[..., None]:
        for add in (
            click.option("--factory", is_flag=True, help="APP is a factory, even if it does not look like a function."),
            click.option(
                "--root-path",
                metavar="PATH",
                help="Path below which the server mounts the app, as in uvicorn --root-path.",
            ),
            click.option(
                "--base-url", metavar="URL", help="Scheme and host of the site, if the app does not set them."
            ),
            click.argument("app", metavar=metavar),
        ):
            wrapped = add(wrapped)
        return wrapped

    return decorate


def output_options(wrapped: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that writes files into a directory."""
    directory = click.Path(file_okay=False, path_type=Path)
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    out = click.option("--out", metavar="DIR", type=directory, required=True, help="Directory to write the files to.")
    return out(as_json(wrapped))
