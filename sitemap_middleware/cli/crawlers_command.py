"""The command `crawlers`: what crawlers did, by access logs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import click
from rich.table import Table
from rich.text import Text

from ..check.runner import sitemap_urls
from ..crawler_logs.addresses import Identities, RangesError
from ..crawler_logs.analysis import crawl_report
from ..crawler_logs.visits import CrawlerLine, CrawlReport
from . import missing_library_message
from .command_options import command, parse_since
from .command_target import open_target, reporting_errors
from .terminal_output import CommandError, console, print_line, print_notes, printable, progress

_MAX_LINES: Final = 20
"""Lines of each list that are printed. --json has all."""

_MAX_EXPLAINED: Final = 1000
"""Pages that the app explains, the most visited first."""


@command.command(name="crawlers")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--app", metavar="APP", help="Compare with the sitemap of an app.")
@click.option("--sitemap", metavar="URL|FILE", help="Compare with a sitemap; of an index, with all its documents.")
@click.option("--base-url", metavar="URL", help="Scheme and host of the site, if the app does not set them.")
@click.option("--host", metavar="HOST", help="Count lines of this host only. [default: the host of the sitemap]")
@click.option("--since", metavar="WHEN", help="Count visits since WHEN: an age such as 7d, or a date.")
@click.option("--verify", is_flag=True, help="Verify addresses: fetch the published ranges, and ask DNS.")
@click.option(
    "--ranges",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Verify addresses by files of published ranges, such as DIR/bingbot.json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write a page of HTML.")
def crawlers(
    app: Any,
    *,
    logs: Sequence[str],
    sitemap: str | None,
    base_url: str | None,
    host: str | None,
    since: str | None,
    verify: bool,
    ranges: Path | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Show which crawlers came, what they got and what they missed.

    Reads access logs of nginx, Apache, Caddy, Traefik, AWS load balancers and CloudFront, and JSON lines; plain or
    compressed with gzip or zstd (extra logs); - is standard input. Nothing is stored.

    With a sitemap or an app: also the listed pages that no crawler got, and the pages that crawlers got and that are
    not listed.
    """
    if sitemap and app:
        raise CommandError("give either --app or --sitemap")
    moment = parse_since(since, int(time.time())) if since else 0
    with reporting_errors(), contextlib.ExitStack() as stack:
        try:
            identities = Identities(ranges, asks_network=verify)
        except RangesError as error:
            raise CommandError(str(error)) from error
        listed: list[str] | None = None
        reason_of: Callable[[str], str] = _no_reason
        notes: list[str] = []
        if sitemap:
            listed = _listed_by_sitemap(sitemap)
        elif app:
            listed, reason_of, notes = stack.enter_context(_listed_by_app(app, base_url))
        update = stack.enter_context(progress("lines read"))
        report = crawl_report(
            logs, identities=identities, listed=listed, since=moment, host=host or "", reason_of=reason_of,
            on_progress=update,
        )  # fmt: skip
        report.notes += notes
        if not verify and ranges is None and report.crawlers:
            report.notes.append("nobody was asked whose the addresses are: --verify tells fake crawlers")
    if html:
        _write_html(report, html)
    if as_json:
        for part in report.json_parts():
            click.echo(part, nl=False)
    elif not html:
        _print(report)
    print_notes(report.notes)
    for problem in report.problems:
        CommandError(problem).show()
    if report.problems:
        sys.exit(2)


def _no_reason(_path: str) -> str:
    return ""


def _listed_by_sitemap(sitemap: str) -> list[str]:
    try:
        return sitemap_urls(sitemap)
    except ModuleNotFoundError as error:
        raise CommandError(missing_library_message(error) or str(error)) from error


@contextlib.contextmanager
def _listed_by_app(app: Any, base_url: str | None) -> Iterator[tuple[list[str], Callable[[str], str], list[str]]]:
    """The URLs that an app lists, a function that says why a page is not listed, and notes."""
    with open_target(app, base_url=base_url, root_path=None).started() as target:
        target.main_site()
        snapshots, notes = target.snapshots(requests=True)
        listed, reasons = list[str](), dict[str, str]()
        for line in target.service.url_report(snapshots[:1]):
            if line.listed:
                listed.append(line.url)
            else:
                reasons[unquote(line.url.removeprefix(snapshots[0].site.base_url)) or "/"] = line.reason
        explained = 0

        def reason_of(path: str) -> str:
            nonlocal explained
            root = unquote(snapshots[0].site.root)
            below = path.removeprefix(root) or "/" if path.startswith(f"{root}/") else path
            if below not in reasons and explained < _MAX_EXPLAINED:
                explained += 1
                reasons[below] = target.service.explain(below, snapshots[0]).reason
            return reasons.get(below, "")

        yield listed, reason_of, notes


def _write_html(report: CrawlReport, file: Path) -> None:
    try:
        from ..crawler_logs.html_page import html_page
    except ModuleNotFoundError as error:
        raise CommandError(missing_library_message(error) or str(error)) from error
    try:
        file.write_text(html_page(report), "utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"open {file}", err=True)


def _print(report: CrawlReport) -> None:
    out = console()
    crawlers_ = report.crawlers
    visits, fake = sum(line.visits for line in crawlers_), sum(line.fake for line in crawlers_)
    print_line(out, f"visits of crawlers {visits:,}, fake {fake:,}, lines read {report.lines.get('read', 0):,}", "bold")
    _print_table(
        "",
        ["crawler", *CrawlerLine._fields[1:-2], "last"],
        [(*line[:-2], line.last) for line in crawlers_],
    )
    days = dict[str, int]()
    for date, _, count in report.days:
        days[date] = days.get(date, 0) + count
    _print_table("by day", ["date", "visits"], sorted(days.items(), reverse=True))
    _print_table("by status", ["crawler", "status", "visits"], report.statuses)
    _print_table("most visited pages", ["status", "crawler", "visits", "path"], _path_last(report.pages))
    _print_table("redirects and errors", ["status", "crawler", "visits", "path"], _path_last(report.wasted))
    _print_table("requested with parameters", ["visits", "path"], [line[::-1] for line in report.parameters])
    _print_table(
        "fetches of the sitemap and robots.txt", ["status", "crawler", "visits", "path"], _path_last(report.documents)
    )
    if report.never_crawled is not None:
        title = f"listed, and not crawled: {len(report.never_crawled):,} of {report.listed:,}"
        _print_table(title, ["URL"], [(url,) for url in report.never_crawled])
    if report.not_listed is not None:
        rows = [(line.visits, line.path, line.reason) for line in report.not_listed]
        _print_table(f"crawled, and not listed: {len(rows):,}", ["visits", "path", "why"], rows)


def _path_last(lines: Sequence[Any]) -> list[tuple[object, ...]]:
    return [(line.status, line.crawler, line.visits, line.path) for line in lines]


def _print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print the first rows of a table; nothing if it has none and no title of its own."""
    if not rows and ":" not in title:
        return
    out = console()
    if title:
        out.print()
        print_line(out, title, "bold")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading, cell in zip(headings, rows[0] if rows else (), strict=False):
        table.add_column(heading, justify="right" if isinstance(cell, int) else "left", overflow="fold")
    for row in rows[:_MAX_LINES]:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else printable(str(cell))) for cell in row))
    if rows:
        out.print(table)
    if len(rows) > _MAX_LINES:
        print_line(out, f"and {len(rows) - _MAX_LINES:,} more: --json prints all")
