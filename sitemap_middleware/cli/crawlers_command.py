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

from ..check.run_check import sitemap_urls
from ..check.url_elements import without_credentials
from ..crawler_logs.crawl_report import CrawlReport, crawl_report
from ..crawler_logs.crawlers import Identities
from ..http.site_urls import parse_base_url
from . import terminal
from .command_target import open_target, reporting_errors
from .terminal import CommandError, console, print_line, print_notes, printable, progress

_MAX_LINES: Final = 20


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--app", metavar="APP", help="Compare with the sitemap of an app.")
@click.option("--sitemap", metavar="URL|FILE", help="Compare with a sitemap; of an index, with all its documents.")
@terminal.base_url_option
@click.option("--host", metavar="HOST", help="Count lines of this host only. [default: the host of the sitemap]")
@click.option("--since", metavar="WHEN", help="Count visits since WHEN: an age such as 7d, or a date.")
@click.option("--until", metavar="WHEN", help="Count visits before WHEN.")
@click.option("--verify", is_flag=True, help="Verify addresses: fetch the published ranges, and ask DNS.")
@terminal.json_option
@terminal.html_option
def crawlers(
    app: Any,
    *,
    logs: Sequence[str],
    sitemap: str | None,
    base_url: str | None,
    host: str | None,
    since: str | None,
    until: str | None,
    verify: bool,
    as_json: bool,
    html: Path | None,
) -> None:
    """Show which crawlers came, what they got and what they missed.

    Reads access logs of nginx, Apache, Caddy, Traefik, AWS load balancers and CloudFront, and JSON lines; plain or
    compressed with gzip or zstd (extra logs); - is standard input. Nothing is stored.

    With a sitemap or an app: also the listed pages that no crawler got, and the pages that crawlers got and that are
    not listed.
    """
    if sitemap and isinstance(app, str):  # that of a framework's command line is no choice
        raise CommandError("give either --app or --sitemap")
    now = int(time.time())
    start = terminal.parse_since(since, now) if since else 0
    end = terminal.parse_since(until, now, "--until") if until else sys.maxsize
    with reporting_errors(), contextlib.ExitStack() as stack:
        if host:
            host = parse_base_url(host if "://" in host else f"http://{host}", "--host").host
        identities = Identities(asks_network=verify)
        listed: list[str] | None = None
        reason_of: Callable[[str], str] | None = None
        notes: list[str] = []
        if sitemap:
            listed = sitemap_urls(sitemap, notes)
        elif app:
            listed, reason_of, notes = stack.enter_context(_listed_by_app(app, base_url))
        update = stack.enter_context(progress("lines read"))
        report = crawl_report(
            logs, identities=identities, listed=listed, since=start, until=end, host=host or "",
            reason_of=reason_of, on_progress=update,
        )  # fmt: skip
        report.notes += notes
        if not verify and report.figures["all_visits"] + report.figures["fake_visits"]:
            report.notes.append("nobody was asked whose the addresses are; --verify tells fake crawlers")
        was_read = not report.problems or report.lines.get("read", 0) > report.lines.get("unreadable", 0)
        if html and was_read:
            site = without_credentials(sitemap or host or "")
            terminal.write_page(html, "crawlers.html", {"report": report, "site": site, "verified": verify})
    if as_json:
        click.echo(report.as_json())
    elif was_read:
        _print(report, verified=verify)
    print_notes(report.notes)
    for problem in report.problems:
        CommandError(problem).show()
    if report.problems:
        sys.exit(2)


@contextlib.contextmanager
def _listed_by_app(app: Any, base_url: str | None) -> Iterator[tuple[list[str], Callable[[str], str], list[str]]]:
    """The URLs that an app lists, a function that says why a page is not listed, and notes."""
    with open_target(app, base_url=base_url, root_path=None).started() as target:
        site = target.main_site()
        snapshots, notes = target.snapshots(requests=True)
        root = unquote(site.root)

        def reason_of(path: str) -> str:
            below = path.removeprefix(root) or "/" if path.startswith(f"{root}/") else path
            return target.service.explain(below, snapshots[0]).reason

        yield [line.url for line in target.service.url_report(snapshots[:1], notes) if line.listed], reason_of, notes


def _print(report: CrawlReport, *, verified: bool) -> None:
    out = console()
    figures, read = report.figures, report.lines.get("read", 0)
    fake = f", fake {figures['fake_visits']:,}" if verified else ""
    counts = f"visits of crawlers {figures['all_visits']:,}, wasted {figures['wasted_visits']:,}{fake}"
    print_line(out, f"{counts}, lines read {read:,}{report.period and f', {report.period}'}", "bold")
    for _, title, columns, rows in report.for_people(verified=verified):
        if title != "by crawler":
            out.print()
            print_line(out, title, "bold")
        if not rows:
            continue
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column, cell in zip(columns, rows[0], strict=True):
            table.add_column(column, justify="right" if isinstance(cell, int) else "left", overflow="fold")
        for row in rows[:_MAX_LINES]:
            table.add_row(*map(_cell, row))
        out.print(table)
        if len(rows) > _MAX_LINES:
            print_line(out, f"and {len(rows) - _MAX_LINES:,} more: --json prints all")


def _cell(value: object) -> Text:
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text(printable(", ".join(value) if isinstance(value, list) else str(value)))
