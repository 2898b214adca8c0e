"""The command `check`: lints a sitemap of any origin."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from ..linter.file_source import FileSource
from ..linter.report import DEFAULT_LIMIT
from ..linter.rules import RULES, Severity
from ..linter.runner import DEFAULT_MAX_DOCUMENTS, Settings, check_sitemap, ignored_codes
from ..linter.source import Source
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
@click.option("--url", metavar="URL", help="Where FILE will be served. Checks hosts and folders, too.")
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each message.")
@click.option(
    "--explain", metavar="CODE", expose_value=False, is_eager=True, callback=_explain, help="Print what a rule means."
)
def check(
    app: Any,
    *,
    url: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    limit: int,
    max_documents: int,
    as_json: bool,
) -> None:
    """Check a sitemap of any origin.

    Reports what search engines refuse or ignore, and what is probably a mistake, in the sitemap and in all documents
    that it names. Each message has a code; --explain says what it means.

    The exit status is 0 if there are no errors, 1 if there are, and 2 if nothing can be checked.
    """
    settings = Settings(_ignored(select, ignore), limit, max_documents)
    with progress("documents") as update:
        result = asyncio.run(check_sitemap(_open_source(app, url), settings, on_progress=update))
    if as_json:
        click.echo(json.dumps([message.as_json() for message in result.messages], indent=2))
    else:
        print_result(result)
    worst = [*Severity][: [*Severity].index(Severity(fail_on)) + 1]
    sys.exit(1 if any(result.counts[severity] for severity in worst) else 0)


def _ignored(select: tuple[str, ...], ignore: tuple[str, ...]) -> set[str]:
    try:
        return ignored_codes(
            *((code.strip() for text in texts for code in text.split(",")) for texts in (select, ignore))
        )
    except KeyError as error:
        raise CommandError(f"{error} is neither the code of a rule nor a family of rules") from None


def _open_source(target: Any, url: str | None) -> Source:
    file = Path(target)
    if not file.is_file():
        raise CommandError(f"no such file: {target}")
    return FileSource(file, url)
