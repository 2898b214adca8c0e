"""`manage.py sitemap`: the commands of `sitemap-middleware`, for the project."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ....cli import missing_library_message


class Command(BaseCommand):  # type: ignore[misc] # Django is untyped
    help = "Show which pages the sitemap lists, and why."
    requires_system_checks = ()  # `manage.py check` runs them

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        """Make a parser that takes the options of every command of Django, and leaves all others to click."""
        parser: Any = super().create_parser(prog_name, subcommand, add_help=False, allow_abbrev=False, **options)

        def parse_args(args: Any) -> Any:
            known, known.args = parser.parse_known_args(args)
            return known

        parser.parse_args = parse_args
        return parser

    def handle(self, *arguments: str, **_options: Any) -> None:
        try:
            from ....cli.main import commands_for
        except ModuleNotFoundError as error:
            if (message := missing_library_message(error)) is None:
                raise
            raise CommandError(message) from error
        module, _, name = (settings.WSGI_APPLICATION or "django.core.wsgi.get_wsgi_application").rpartition(".")
        try:
            commands_for(f"{module}:{name}").main(arguments, prog_name="manage.py sitemap")
        except SystemExit as stop:
            if stop.code:  # else `call_command` returns
                raise
