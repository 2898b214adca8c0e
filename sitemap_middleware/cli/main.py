"""The program `sitemap-middleware`: all commands; also those for the command line of a framework."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

import click

from .build_and_report_commands import build, report
from .check_command import check
from .crawlers_command import crawlers
from .inspection_commands import changes, explain, list_, routes_
from .status_command import status


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    commands=[explain, list_, changes, routes_, build, report, status, crawlers, check],
    epilog="Exit status: 0 if all is well, 1 for the answer no (explain, routes --strict, check), 2 for an error.",
)
@click.version_option(package_name="sitemap-middleware", prog_name="sitemap-middleware")
def command() -> None:
    """Show which pages an app's SitemapMiddleware lists, and why.

    APP is MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE, such as app:app, shop.web:create_app or shop/web.py:app: an app,
    or a function that makes one.
    """


def commands_for(app: Any) -> click.Group:
    """Return the commands with an app object in place of their argument: for the command line of a framework.

    `check` may still be given another sitemap: a URL or a file.
    """

    def check_app_or(target: str | None, **options: Any) -> None:
        cast("Callable[..., None]", check.callback)(target or app, **options)

    group = click.Group("sitemap", help=_without_names(command.help), context_settings=command.context_settings)
    for original in command.commands.values():
        bound = copy.copy(original)
        bound.params = [parameter for parameter in original.params if parameter.name != "app"]
        bound.callback = functools.partial(cast("Callable[..., None]", original.callback), app)
        bound.help = _without_names(original.help)
        if original is check:
            bound.params.insert(0, click.Argument(["target"], metavar="[URL|FILE]", required=False))
            bound.callback = check_app_or
        group.add_command(bound)
    return group


def _without_names(text: str | None) -> str:
    """Return a help text without the paragraphs that say how to name an app."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(paragraph for paragraph in paragraphs if not paragraph.startswith(("APP ", "STORE ")))
