"""The program `sitemap-middleware`: all commands; also those for the command line of a framework."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, cast

import click

from . import check_command as _check  # noqa: F401 (adds a command)
from . import crawlers_command as _crawlers  # noqa: F401 (adds a command)
from . import export_commands as _export  # noqa: F401 (adds commands)
from . import inspection_commands as _inspection  # noqa: F401 (adds commands)
from .command_options import command

__all__ = ["command", "commands_for"]

_APP_PARAMETERS: Final = ("app", "factory")


def commands_for(app: Any) -> click.Group:
    """Return the commands with an app in place of their argument: for the command line of a framework.

    Args:
        app: an app object, with a SitemapMiddleware among its layers when a command runs.
    """
    group = click.Group("sitemap", help=_without_names(command.help), context_settings=command.context_settings)
    for original in command.commands.values():
        bound = copy.copy(original)
        bound.params = [parameter for parameter in original.params if parameter.name not in _APP_PARAMETERS]
        bound.callback = functools.partial(cast("Callable[..., None]", original.callback), app)
        bound.help = _without_names(original.help)
        group.add_command(bound)
    return group


def _without_names(text: str | None) -> str:
    """Return a help text without the paragraphs that say how to name an app."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(paragraph for paragraph in paragraphs if not paragraph.startswith(("APP ", "STORE ")))
