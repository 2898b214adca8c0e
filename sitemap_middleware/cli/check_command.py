"""The command `check`: lints a sitemap of any origin."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from .. import __version__
from ..linter.checks.coverage import KnownUrl
from ..linter.checks.loc import check_loc, is_local
from ..linter.document_source import Source
from ..linter.file_source import FileSource
from ..linter.listed_pages_check import SAMPLE_PAGES, PageClient, Pages
from ..linter.message_collector import DEFAULT_LIMIT
from ..linter.results_as_sarif_and_github import as_sarif, github_annotations
from ..linter.rules import Severity
from ..linter.runner import (
    DEFAULT_MAX_DOCUMENTS,
    Comparison,
    OnProgress,
    Result,
    Settings,
    check_sitemap,
)
from ..stores.default_store import only_existing_files
from ..urls import parse_base_url
from . import missing_library_message
from .app_loader import is_app_name
from .app_source_for_check import AppPages, AppSource, unobserved
from .check_results_as_text import print_result
from .command_options import command
from .command_target import Target, open_target, reporting_errors
from .rule_names import ignored, print_rule_or_family
from .terminal_output import CommandError, print_notes, progress

_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:[0-9]+(/.*)?", re.ASCII)


def _explain(context: click.Context, _parameter: click.Parameter, code: str | None) -> None:
    """Print what a rule means, and end."""
    if code is None or context.resilient_parsing:
        return
    print_rule_or_family(code)
    context.exit()


@command.command()
@click.argument("app", metavar="URL|FILE|APP")
@click.option(
    "--base-url",
    metavar="URL",
    help="Scheme and host of the site of an app; for FILE, the URL at which its folder will be published.",
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
    "--ignore-robots", is_flag=True, help="Request documents and pages that robots.txt forbids. For a site of your own."
)
@click.option(
    "--pages",
    type=click.Choice([str(mode) for mode in Pages]),
    help=f"Request the listed pages: none of them, a sample of {SAMPLE_PAGES}, or all.  [default: none for FILE, "
    "else sample]",
)
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Report URLs of FILE that are no longer listed. FILE is written if it does not exist.",
)
@click.option("--update-baseline", is_flag=True, help="Write the URLs that are listed now to the file of --baseline.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="Print text, JSON, SARIF 2.1.0, or annotations of GitHub Actions.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each message.")
@click.option(
    "--explain",
    metavar="CODE",
    expose_value=False,
    is_eager=True,
    callback=_explain,
    help="Print what a rule means, or which codes a family has.",
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
    pages: str | None,
    baseline: Path | None,
    update_baseline: bool,
    output_format: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Check a sitemap of any origin.

    Reports what search engines refuse or ignore, and what is probably a mistake, in the sitemap and in all documents
    that it names. Each message has a code; --explain says what it means.

    URL is that of a sitemap, or of a site, whose robots.txt then names the sitemaps.

    APP is MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE. Its documents are requested in process.

    The exit status is 1 if a message is as severe as --fail-on or worse, 2 if nothing can be checked, and else 0. A
    URL without a response is an error: it has the code fetch-failed.

    URLs, and the pages of a FILE, need the extra check.
    """
    if update_baseline and baseline is None:
        raise CommandError("--update-baseline needs --baseline FILE, which names the file that it writes")
    if as_json and output_format not in ("text", "json"):
        raise CommandError(f"--json and --format {output_format} exclude each other: leave one of them out")
    mode = Pages(pages) if pages else Pages.SAMPLE if _document_file(app) is None else Pages.NONE
    settings = Settings(ignored(select, ignore), limit, max_documents, mode)
    with reporting_errors(), progress("documents and pages") as update, _Baseline.opened(baseline) as urls:
        run = _Run(settings, update, urls.comparison(update=update_baseline), obey_robots=not ignore_robots)
        result = run.check(app, **options)
        urls.save(is_complete=result.is_complete)
    _print("json" if as_json else output_format, result)
    worst = [*Severity][: [*Severity].index(Severity(fail_on)) + 1]
    sys.exit(1 if any(result.counts[severity] for severity in worst) else 0)


def _document_file(target: Any) -> Path | None:
    """The file that the argument of the command names; None if it names a Python file or anything else."""
    file = Path(target) if isinstance(target, str) else None
    return file if file is not None and file.is_file() and file.suffix != ".py" else None


def _print(output_format: str, result: Result) -> None:
    """Print what was found."""
    if output_format == "json":
        click.echo(json.dumps([message.as_json() for message in result.messages], indent=2))
    elif output_format == "sarif":
        click.echo(as_sarif(result, __version__))
    elif output_format == "github":
        for line in github_annotations(result):
            click.echo(line)
    else:
        print_result(result)


@dataclass
class _Baseline:
    """The URLs of an earlier run, one in a line of a file."""

    file: Path | None
    """None if there is no option --baseline."""
    new: Path | None = None
    """The file that is to replace it."""
    _output: Any = None

    @classmethod
    @contextlib.contextmanager
    def opened(cls, file: Path | None) -> Iterator[_Baseline]:
        """Provide a baseline; delete the new file at the end unless it was saved."""
        baseline = cls(file)
        try:
            yield baseline
        finally:
            if baseline._output is not None:
                baseline._output.close()
            if baseline.new is not None:
                baseline.new.unlink(missing_ok=True)

    def comparison(self, *, update: bool) -> Comparison:
        """The URLs to compare with, and the function that writes the new ones; neither without a baseline."""
        if self.file is None:
            return Comparison()
        earlier: Callable[[], Iterable[str]] | None = self._earlier if self.file.exists() else None
        if earlier is not None and not update:
            return Comparison(earlier=earlier)
        self.new = self.file.with_name(f".{self.file.name}.new")
        try:
            self._output = self.new.open("w", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--baseline cannot be written: {error}") from error
        return Comparison(earlier=earlier, on_url=self._write)

    def save(self, *, is_complete: bool) -> None:
        """Put the new file in the place of the old one. A run that did not read all documents changes nothing."""
        if self.new is None or self.file is None:
            return
        self._output.close()
        if is_complete:
            self.new.replace(self.file)
            print_notes([f"{self.file} is written: it has the URLs that are listed now"])
        else:
            print_notes([f"{self.file} is not written, because not all documents were read"])

    def _earlier(self) -> Iterator[str]:
        assert self.file is not None
        with self.file.open(encoding="utf-8", errors="replace") as lines:
            yield from filter(None, map(str.strip, lines))

    def _write(self, url: str) -> None:
        self._output.write(" ".join(url.split()) + "\n")


@dataclass
class _Run:
    """One run: what it checks, and how."""

    settings: Settings
    update: OnProgress
    comparison: Comparison
    obey_robots: bool

    def check(self, target: Any, **options: Any) -> Result:
        """Check a URL, a file, or an app."""
        if isinstance(target, str):
            scheme, separator, rest = target.partition("://")
            if separator and scheme.lower() in ("http", "https"):
                if options["base_url"] is not None:
                    raise CommandError("--base-url is for a file or an app: the documents of a URL are requested there")
                return asyncio.run(self._check_url(f"{scheme.lower()}://{rest}"))
            if (file := _document_file(target)) is not None:
                return asyncio.run(self._check_file(file, **options))
            if Path(target).is_file():
                raise CommandError(f"{target} is a Python file: name the app in it, such as {target}:app")
            if _HOST_AND_PORT.fullmatch(target):
                raise CommandError(f"{target} is neither a file nor an app: for a server, give http://{target}")
            if not is_app_name(target):
                raise CommandError(
                    f"no such file: {target}; give a URL with https://, a file, or an app as MODULE:ATTRIBUTE"
                )
        with only_existing_files():
            return self._check_app(target, **options)

    async def _check_url(self, url: str) -> Result:
        web = _web()
        checked = check_loc(url, is_page=False)
        if not checked.host:
            raise CommandError(f"{url!r} is not a URL")
        async with web.client(obey_robots=self.obey_robots, allow_local=is_local(checked.host)) as client:
            return await self._checked(web.source(url, client), web.pages(client))

    async def _check_file(self, file: Path, base_url: str | None, **_: Any) -> Result:
        location = f"{parse_base_url(base_url, '--base-url').base_url}/{file.name}" if base_url else None
        source = FileSource(file, location)
        if self.settings.pages is Pages.NONE:
            return await self._checked(source, None)
        web = _web()
        async with web.client(obey_robots=self.obey_robots) as client:
            return await self._checked(source, web.pages(client))

    def _check_app(self, app: Any, **options: Any) -> Result:
        target = open_target(app, **options, serving=True)
        site = target.main_site()
        if not target.service.options.enabled:
            raise CommandError(f"there is no sitemap: {target.service.not_served_reason()}")
        try:
            with target.started() as started:
                fetch = started.client(site)
                started.complete_routes(site)
                source = AppSource(fetch, site, target.service.options.path)
                self.comparison = replace(self.comparison, known=lambda: _known_urls(started))
                with unobserved(fetch, target.middleware) as fetch_page:
                    return asyncio.run(self._checked(source, AppPages(fetch_page, site)))
        finally:
            target.middleware.close()

    async def _checked(self, source: Source, client: PageClient | None) -> Result:
        comparison = replace(self.comparison, client=client)
        return await check_sitemap(source, self.settings, on_progress=self.update, comparison=comparison)


@dataclass(frozen=True)
class _Web:
    """What requests documents and pages from the web."""

    client: Any
    source: Any
    pages: Any


def _web() -> _Web:
    """Import the modules that need httpx. Raises `CommandError` if it is missing."""
    try:
        from ..linter.web_client import PoliteClient
        from ..linter.web_page_client import WebPages
        from ..linter.web_source import WebSource
    except ModuleNotFoundError as error:
        raise CommandError(missing_library_message(error) or str(error)) from None
    return _Web(PoliteClient, WebSource, WebPages)


def _known_urls(target: Target) -> Iterator[KnownUrl]:
    """What the middleware of an app knows of its pages."""
    snapshots, _ = target.snapshots()
    for item in target.service.evaluated_urls(snapshots[0]):
        page = item.candidate.page
        if item.entry is not None or not target.service.is_excluded(item.candidate):
            yield KnownUrl(item.url, item.entry is not None, item.verdict.reason, page.status if page else None)
