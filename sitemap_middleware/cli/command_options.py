"""The group of all commands, and the arguments and options that several of them have."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from ..evidence.dates import timestamp_of
from .terminal_output import CommandError

_APP_EXAMPLE: Final = "such as app:app or shop/web.py:app"

_USUAL_STORES: Final = ("sitemap.sqlite3", "instance/sitemap.sqlite3")
"""The files in which apps keep their pages if nothing names another store: the second is that of Flask."""

_AGE: Final = re.compile(r"(\d{1,6})\s*([mhdw])")

_UNIT_SECONDS: Final = {"m": 60, "h": 60 * 60, "d": 24 * 60 * 60, "w": 7 * 24 * 60 * 60}


class NameWithHint(click.types.StringParamType):
    """An argument whose absence is an error that says what to type."""

    def __init__(self, hint: Callable[[], str]) -> None:
        self._hint = hint

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002 # click passes both
        """The sentence that follows the error that the argument is missing."""
        return self._hint()


def store_hint() -> str:
    """What to type for a store. A usual file is named if it is there."""
    found = next((name for name in _USUAL_STORES if Path(name).is_file()), _USUAL_STORES[0])
    return f"Give a store, such as {found} or redis://localhost, or its app, {_APP_EXAMPLE}."


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
            click.argument("app", metavar=metavar, type=NameWithHint(lambda: f"Give an app, {_APP_EXAMPLE}.")),
        ):
            wrapped = add(wrapped)
        return wrapped

    return decorate


def inspection_options(wrapped: Callable[..., None]) -> Callable[..., None]:
    """Add the argument and the options of the commands that look at an app."""
    no_requests = click.option(
        "--no-requests",
        is_flag=True,
        help="Do not request the app's sitemap first, for which the middleware requests pages it has not seen.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    return app_options()(no_requests(as_json(wrapped)))


def parse_since(text: str, now: int) -> int:
    """Return the POSIX time of an age, such as "7d", or of a date or datetime, in UTC unless it says otherwise.

    Raises `CommandError` if it is neither, or in the future.
    """
    if age := _AGE.fullmatch(text.strip()):
        return max(0, now - int(age[1]) * _UNIT_SECONDS[age[2]])
    try:
        moment = int(timestamp_of(datetime.fromisoformat(text.strip())))
    except (ValueError, OverflowError):
        raise CommandError(
            f"--since={text!r} is no moment; give an age such as 24h, 7d or 2w, or a date such as 2026-01-31"
        ) from None
    if moment > now:
        raise CommandError(f"--since={text!r} is in the future")
    return moment


def output_options(wrapped: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that writes files into a directory."""
    directory = click.Path(file_okay=False, path_type=Path)
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    out = click.option("--out", metavar="DIR", type=directory, required=True, help="Directory to write the files to.")
    return out(as_json(wrapped))
