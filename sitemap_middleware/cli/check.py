"""The command `check`: lints a sitemap of any origin."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from ..adapters.asgi import ASGIMiddleware
from ..linter.checks.loc import check_loc, is_local
from ..linter.file_source import FileSource
from ..linter.report import DEFAULT_LIMIT
from ..linter.rules import RULES, Severity
from ..linter.runner import DEFAULT_MAX_DOCUMENTS, OnProgress, Result, Settings, check_sitemap, ignored_codes
from ..stores.default_store import only_existing_files
from ..urls import parse_base_url
from . import missing_library_message
from .app_and_site import open_target, reporting_errors
from .app_client import app_client
from .app_loader import is_app_name
from .app_source import AppSource
from .check_output import print_result, print_rule
from .commands import command
from .terminal_printing import CommandError, progress


def _explain(context: click.Context, _parameter: click.Parameter, code: str | None) -> None:
    """Print what a rule means, and end."""
    if code is None or context.resilient_parsing:
        return
    if code not in RULES:
        raise CommandError(f"there is no rule {code!r}; the codes are {', '.join(RULES)}")
    print_rule(RULES[code])
    context.exit()


@command.command()
@click.argument("app", metavar="URL|FILE|APP")
@click.option(
    "--base-url", metavar="URL", help="Scheme and host of the site of an app; where the folder of FILE is served."
)
@click.option("--root-path", metavar="PATH", help="Path below which the server mounts the app.")
@click.option("--factory", is_flag=True, help="APP is a factory, even if it does not look like a function.")
@click.option("--select", metavar="CODES", multiple=True, help="Report only these codes and families.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Do not report these codes and families.")
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default="error",
    show_default=True,
    help="Exit with 1 for messages of this severity or worse.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Print N messages of each code; 0 prints all.",
)
@click.option(
    "--max-documents",
    metavar="N",
    type=click.IntRange(1),
    default=DEFAULT_MAX_DOCUMENTS,
    show_default=True,
    help="Read N documents of an index.",
)
@click.option(
    "--ignore-robots", is_flag=True, help="Request documents that robots.txt forbids. For a site of your own."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each message.")
@click.option(
    "--explain", metavar="CODE", expose_value=False, is_eager=True, callback=_explain, help="Print what a rule means."
)
def check(
    app: Any,
    *,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    limit: int,
    max_documents: int,
    ignore_robots: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Check a sitemap of any origin.

    Reports what search engines refuse or ignore, and what is probably a mistake, in the sitemap and in all documents
    that it names. Each message has a code; --explain says what it means.

    URL is that of a sitemap, or of a site, whose robots.txt then names the sitemaps.

    APP is MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE. Its documents are requested in process.

    The exit status is 0 if there are no errors, 1 if there are, and 2 if nothing can be checked.
    """
    settings = Settings(_ignored(select, ignore), limit, max_documents)
    with reporting_errors(), progress("documents") as update:
        result = _run(app, settings, update, ignore_robots=ignore_robots, **options)
    if as_json:
        click.echo(json.dumps([message.as_json() for message in result.messages], indent=2))
    else:
        print_result(result)
    worst = [*Severity][: [*Severity].index(Severity(fail_on)) + 1]
    sys.exit(1 if any(result.counts[severity] for severity in worst) else 0)


def _ignored(select: tuple[str, ...], ignore: tuple[str, ...]) -> set[str]:
    """The codes that are not reported. Raises `CommandError` for a name that is neither a code nor a family."""
    names = [[name.strip() for text in texts for name in text.split(",")] for texts in (select, ignore)]
    try:
        return ignored_codes(*names)
    except KeyError as error:
        raise CommandError(f"{error} is neither the code of a rule nor a family of rules") from None


def _run(target: Any, settings: Settings, update: OnProgress, *, ignore_robots: bool, **options: Any) -> Result:
    """Check a URL, a file, or an app."""
    if isinstance(target, str):
        if target.startswith(("http://", "https://")):
            return asyncio.run(_check_url(target, settings, update, obey_robots=not ignore_robots))
        if Path(target).is_file() and Path(target).suffix != ".py":
            return asyncio.run(check_sitemap(_file_source(Path(target), **options), settings, on_progress=update))
        if not is_app_name(target):
            raise CommandError(
                f"no such file: {target}; give a URL with https://, a file, or an app as MODULE:ATTRIBUTE"
            )
    with only_existing_files():
        return _check_app(target, settings, update, **options)


async def _check_url(url: str, settings: Settings, update: OnProgress, *, obey_robots: bool) -> Result:
    try:
        from ..linter.web_client import PoliteClient
        from ..linter.web_source import WebSource
    except ModuleNotFoundError as error:
        raise CommandError(missing_library_message(error) or str(error)) from None
    checked = check_loc(url, is_page=False)
    if not checked.host:
        raise CommandError(f"{url!r} is not a URL")
    async with PoliteClient(obey_robots=obey_robots, allow_local=is_local(checked.host)) as client:
        return await check_sitemap(WebSource(url, client), settings, on_progress=update)


def _file_source(file: Path, base_url: str | None, **_: Any) -> FileSource:
    return FileSource(file, f"{parse_base_url(base_url, '--base-url').base_url}/{file.name}" if base_url else None)


def _check_app(app: Any, settings: Settings, update: OnProgress, **options: Any) -> Result:
    target = open_target(app, **options, serving=True)
    site = target.sites()[0]
    if not target.service.options.enabled:
        raise CommandError(f"there is no sitemap: {target.service.not_served_reason()}")
    target.service.complete_routes(site)
    try:
        with app_client(target.app, site, asynchronous=isinstance(target.middleware, ASGIMiddleware)) as fetch:
            source = AppSource(fetch, site, target.service.options.path)
            return asyncio.run(check_sitemap(source, settings, on_progress=update))
    finally:
        target.middleware.close()
