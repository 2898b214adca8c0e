"""The command `check`: lints a sitemap of any origin."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from .. import __version__
from ..check.clients import AppClient, Client
from ..check.findings import FAMILIES, RULES, Severity, shortened
from ..check.output import as_json as json_of
from ..check.output import as_sarif, by_rule, summary, text_lines
from ..check.run_check import check_sitemap, pages_of_baseline
from ..check.run_state import DEFAULT_LIMIT, DEFAULT_MAX_DOCUMENTS, SAMPLE_PAGES, CheckSettings, Pages, Run
from ..check.sources import ClientSource, FileSource
from ..check.url_elements import check_loc, without_credentials
from ..http.site_urls import parse_base_url
from ..listing.evaluated_urls import EvaluatedUrl
from ..stores.default import only_existing_files
from . import terminal
from .app_loader import is_app_name
from .command_target import open_target, reporting_errors
from .terminal import CommandError, console, print_line, print_notes, print_rows, progress

_ALL_CODES: Final = "all"
_STYLES: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: ""}

_Subject = tuple[
    FileSource | ClientSource,
    AbstractAsyncContextManager[Client | None],
    Callable[[list[str]], Iterator[EvaluatedUrl]] | None,
]
"""Where the documents are, what requests pages if anything does, and what an app knows of its pages."""


def _explain(context: click.Context, _parameter: click.Parameter, name: str | None) -> None:
    """Print what a rule means, or which rules a family has, and end."""
    if name is None or context.resilient_parsing:
        return
    name, out = name.lower(), console()
    if name == _ALL_CODES:
        print_rows(out, [(rule.code, f"{rule.severity}: {rule.title}", "") for rule in RULES.values()])
    elif (family := next((family for family in FAMILIES if family.name == name), None)) is not None:
        print_line(out, f"{family.name}: {family.about}")
        print_rows(out, [(rule.code, f"{rule.severity}: {rule.title}", "") for rule in family.rules])
    elif (rule := RULES.get(name)) is not None:
        print_line(out, f"{rule.code} ({rule.severity}): {rule.title}")
        print_line(out, rule.explanation)
        print_line(out, f"Fix: {rule.fix}")
        if rule.source:
            print_line(out, f"See: {rule.source}")
    else:
        raise _unknown_rule(name)
    context.exit()


def _unknown_rule(name: str) -> CommandError:
    near = get_close_matches(name, [*(family.name for family in FAMILIES), *RULES], 1)
    hint = f"did you mean {near[0]}?" if near else "--explain lists all codes"
    return CommandError(f"{name!r} is neither the code of a rule nor a family of rules; {hint}")


def _codes(texts: Iterable[str]) -> set[str]:
    """The codes that the texts of an option name, one by one or by their families. Raises `CommandError`."""
    names = {name.strip().lower() for text in texts for name in text.split(",")}
    for name in names - {known for rule in RULES.values() for known in (rule.code, rule.family)}:
        raise _unknown_rule(name)
    return {rule.code for rule in RULES.values() if {rule.code, rule.family} & names}


@click.command()
@click.argument("app", metavar="URL|FILE|APP")
@click.option(
    "--base-url",
    metavar="URL",
    help="Scheme and host of the site of an app; for FILE, the URL at which its folder will be published.",
)
@terminal.root_path_option
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
    help="Print N messages of each code, and many equal ones as one line; 0 prints all.",
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
    "--ignore-robots",
    is_flag=True,
    help="Request what robots.txt forbids this program, but not pages that it forbids all. For a site of your own.",
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
    help="Report only findings that FILE does not name, and URLs of it that are no longer listed. FILE is written if "
    "it does not exist.",
)
@click.option("--write-baseline", is_flag=True, help="Report all findings, and replace the FILE of --baseline by them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each message.")
@click.option("--format", "other_format", type=click.Choice(["sarif"]), help="Print SARIF 2.1.0, for code scanning.")
@terminal.html_option
@click.option(
    "--explain",
    metavar="[CODE]",
    is_flag=False,
    flag_value=_ALL_CODES,
    expose_value=False,
    is_eager=True,
    callback=_explain,
    help="Print what a rule means, which codes a family has, or all codes.",
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
    write_baseline: bool,
    as_json: bool,
    other_format: str | None,
    html: Path | None,
    **options: Any,
) -> None:
    """Check a sitemap of any origin.

    Reports what search engines refuse or ignore, and what is probably a mistake, in the sitemap and in all documents
    that it names. Each message has a code; --explain says what it means.

    URL is that of a sitemap, or of a host or (with a slash at the end) a folder: then robots.txt names the sitemaps,
    or else it is sitemap.xml.

    FILE is a sitemap, or a folder, of which each file *.xml and *.xml.gz is checked, but not those in folders below.

    APP is MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE. Its documents are requested in process.

    The exit status is 1 if a message is as severe as --fail-on or worse, 2 if nothing can be checked, and else 0. A
    URL without a response is an error: it has the code fetch-failed.

    URLs, and the pages of a FILE, need the extra check.
    """
    if as_json and other_format:
        raise CommandError(f"--json and --format {other_format} exclude each other: leave one of them out")
    if write_baseline and baseline is None:
        raise CommandError("--write-baseline needs --baseline FILE: that is what it writes")
    mode = Pages(pages) if pages else Pages.SAMPLE if _path_of_documents(app) is None else Pages.NONE
    earlier = None if baseline is None else {} if write_baseline else _lines(baseline)
    ignored = _codes(ignore) | ({*RULES} - _codes(select) if select else set())
    settings = CheckSettings(ignored, limit, max_documents, mode, earlier)
    with (
        reporting_errors(),
        progress("documents and pages") as update,
        _opened(app, mode, obey_robots=not ignore_robots, **options) as (source, opened, known),
    ):

        async def run() -> Run:
            async with opened as client:
                return await check_sitemap(source, settings, client=client, known=known, on_progress=update)

        result = asyncio.run(run())
        if html:
            context = {"name": source.name, "summary": summary(result), "result": result, "by_rule": by_rule(result)}
            terminal.write_page(html, "check.html", context)
    if isinstance(source, FileSource):
        if not result.checked:
            raise CommandError(f"{source.name} has no sitemap, but other XML files, such as {source.others[0]}")
        if below := source.sitemaps_below(result):
            print_notes([f"sitemaps in folders below, not checked, because no index names them: {_some(below)}"])
        if source.others:
            print_notes([f"XML files that are no sitemaps, not checked: {_some(source.others)}"])
    elif not result.urls and (name := urlsplit(source.name).path.rpartition("/")[2]) and "." not in name:
        print_notes([f"to check the sitemaps below it, end the URL with a slash: {source.name}/"])
    if baseline is not None:
        before = pages_of_baseline(_lines(baseline))
        new = [url.loc for page, url in result.pages.items() if before and page.partition("://")[2] not in before]
        if new:
            print_notes([f"URLs that are new since {baseline}: {_some(new)}"])
        if write_baseline or not baseline.exists():
            _write_baseline(baseline, result)
        elif unread_now := result.unread_since(settings.earlier or ()):
            print_notes([f"what is no longer listed is not told; documents that were not read: {_some(unread_now)}"])
    if mode is Pages.ALL and not result.are_links_known:
        print_notes(["orphans are not told: no page links to others, or a page could not be read"])
    if result.known_findings:
        print_notes([f"findings left out, because {baseline} names them: {result.known_findings:,}"])
    if as_json:
        click.echo(json_of(result))
    elif other_format:
        click.echo(as_sarif(result, __version__))
    else:
        _print(result, limit)
    worst = [*Severity][: [*Severity].index(Severity(fail_on)) + 1]
    counts = result.by_severity()
    sys.exit(1 if any(counts[severity] for severity in worst) else 0)


def _print(result: Run, limit: int) -> None:
    """Print what was found, as text."""
    out = console()
    for line, severity in text_lines(result, merge_equal=limit > 0):
        print_line(out, line, _STYLES[severity])
    print_line(out, summary(result))
    print_notes([f"{number:,} more of {code}; --limit 0 prints all" for code, number in result.omitted().items()])


def _lines(baseline: Path) -> dict[str, None]:
    """The URLs that an earlier run listed, and the keys of its findings, in the order of the file; none without it."""
    text = baseline.read_text("utf-8", errors="replace") if baseline.exists() else ""
    return dict.fromkeys(filter(None, map(str.strip, text.splitlines())))


def _write_baseline(file: Path, result: Run) -> None:
    """Write the URLs that are listed now, and the keys of the findings, unless no URL could be read.

    Findings of the file with codes that are ignored, and about pages that this run did not request, stay in it; if
    documents were not read, all that it has.
    """
    urls, findings = {url.loc for url in result.urls}, {*result.keys}
    earlier = _lines(file)
    unread = result.unread_since(earlier)
    if result.unread and not urls:
        print_notes([f"{file} is not written, because of documents that were not read: {_some(result.unread)}"])
        return
    requested, listed = set(map(shortened, result.chosen)), set(map(shortened, urls))
    for line in earlier:
        code, _, url = line.partition(" ")
        is_of_page = code in RULES and RULES[code].family == "page" and url in listed
        are_links_known = result.are_links_known and len(requested) == len(result.pages)
        is_checked = url in requested and (code != "page-orphan" or are_links_known)
        if unread or code in result.settings.ignored or (is_of_page and not is_checked):
            (findings if code in RULES else urls).add(line)
    try:
        file.write_text("".join(f"{line}\n" for line in [*sorted(urls), *sorted(findings)]), "utf-8")
    except OSError as error:
        raise CommandError(f"--baseline cannot be written: {error}") from error
    written = f"{file} is written: it has the URLs that are listed now, and the findings"
    if unread and earlier:
        written += f", and what it had, because of documents that were not read: {_some(unread)}"
    print_notes([f"{written}; the next run reports, and fails for, others only"])


def _some(names: Collection[str]) -> str:
    """How many there are, and the first three."""
    return f"{len(names):,} ({', '.join([*islice(names, 3)])}{', …' if len(names) > 3 else ''})"


def _path_of_documents(target: Any) -> Path | None:
    """The file or folder that the argument of the command names; None if it names a Python file or anything else."""
    path = Path(target) if isinstance(target, str) else None
    return path if path is not None and (path.is_dir() or (path.is_file() and path.suffix != ".py")) else None


def _public(target: str) -> str:
    """What may be shown of a target that is wrong: nothing before its last @, which may be a password."""
    return f"…@{target.rpartition('@')[2]}" if "@" in target else target


@contextlib.contextmanager
def _opened(target: Any, mode: Pages, *, obey_robots: bool, base_url: str | None, **options: Any) -> Iterator[_Subject]:
    """Provide the documents of a URL, a file, a folder or an app. Raises `CommandError` if it is none of them."""
    scheme, separator, rest = target.partition("://") if isinstance(target, str) else ("", "", "")
    if separator and scheme.lower() in ("http", "https"):
        from ..check.web_client import WebClient

        if base_url is not None:
            raise CommandError("--base-url is for a file or an app: the documents of a URL are requested there")
        named = f"{scheme.lower()}://{rest}"
        url = without_credentials(named)
        if not check_loc(url, is_page=False).host or "@" in named.partition("#")[2]:
            raise CommandError(f"{_public(target)!r} is not a URL")
        web = WebClient(named, obey_robots=obey_robots)
        yield ClientSource(url, web, time.time()), web, None
    elif (path := _path_of_documents(target)) is not None:
        location = f"{parse_base_url(base_url, '--base-url').base_url}/" if base_url else None
        if location and path.is_file():
            location += path.name
        opened: AbstractAsyncContextManager[Client | None] = contextlib.nullcontext()
        if mode is not Pages.NONE:
            from ..check.web_client import WebClient

            opened = WebClient(location or "", obey_robots=obey_robots)
        yield FileSource(path, location), opened, None
    else:
        if isinstance(target, str) and Path(target).is_file():
            raise CommandError(f"{target} is a Python file: name the app in it, such as {target}:app")
        if isinstance(target, str) and not is_app_name(target):
            raise CommandError(
                f"no such file: {_public(target)}; give a URL with http:// or https://, a file or folder,"
                " or an app as MODULE:ATTRIBUTE"
            )
        with (
            only_existing_files(),
            open_target(target, base_url=base_url, **options).started_site("sitemap") as opened_app,
        ):
            app, site = opened_app
            client = AppClient(app.running.client(site), site)
            source = ClientSource(f"{site.base_url}{app.service.options.path}", client, time.time())

            def known(failures: list[str]) -> Iterator[EvaluatedUrl]:
                return app.service.url_report(app.snapshots()[0][:1], failures)

            yield source, contextlib.nullcontext(client), known
