"""The command `import-log`: counts the visits of crawlers in access logs."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from ..access_logs.import_summary import ImportSummary
from ..access_logs.importer import LogImporter
from ..access_logs.log_formats_as_sql import FORMATS, LogFormat
from ..crawlers.ip_address_ranges import unpack_ranges
from ..crawlers.ip_address_verification import Resolver, SystemResolver, Verifier
from ..models import Site
from ..observation.verified_visit_counting import RANGES_OWNER, RANGES_RECORD
from ..stores import Store, open_store
from ..stores.base import store_name
from ..stores.default_store import FallbackStore, only_existing_files
from ..stores.sqlite.memory import MemoryStore
from ..stores.sqlite.store import SQLiteStore
from ..stores.store_status import store_status
from ..urls import parse_base_url
from .command_options import command
from .command_target import open_target, reporting_errors
from .results_as_text import base_url_of_key
from .terminal_output import CommandError, Row, console, print_line, print_rows, progress

_LINES: Final = {
    "verified": "visits of verified crawlers",
    "fake": "of fake crawlers",
    "unverified": "of crawlers that could not be verified",
    "ignored": "of crawlers with another method than GET, a query string or no status",
    "unknown_page": "of crawlers for a path that no URL leads to",
    "other_host": "of crawlers for other hosts",
    "other": "of other clients",
    "nameless": "without a User-Agent",
    "broken": "broken",
}
"""What becomes of lines, in the order in which it is printed."""

_BASE_URL_HINT: Final = "such as --base-url https://example.com"
_FILE_SUFFIXES: Final = frozenset({".sqlite3", ".sqlite", ".db"})
"""Suffixes of paths that are taken for SQLite files even if they do not exist yet."""


@command.command("import-log")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--store", metavar="URL", help="The app's store: its URL, or the path of an SQLite file.")
@click.option("--app", metavar="APP", help="The app, as MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE, instead of its store.")
@click.option("--factory", is_flag=True, help="APP is a factory, even if it does not look like a function.")
@click.option(
    "--base-url", metavar="URL", help="Scheme and host of the site, unless the store has pages of exactly one."
)
@click.option("--format", "format_name", type=click.Choice(sorted(FORMATS)), help="The format, if it is not detected.")
@click.option("--timezone", metavar="NAME", default="UTC", show_default=True, help="Time zone of times without one.")
@click.option("--any-host", is_flag=True, help="Count requests for all hosts in the log.")
@click.option("--no-dns", is_flag=True, help="Ask no DNS: verify addresses by published ranges only.")
@click.option("--aggregated", is_flag=True, help="FILE is a table of counted lines, in CSV or Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_log(
    app: Any,
    files: tuple[Path, ...],
    *,
    store: str | None,
    factory: bool = False,
    base_url: str | None,
    format_name: str | None,
    timezone: str,
    any_host: bool,
    no_dns: bool,
    aggregated: bool,
    as_json: bool,
) -> None:
    """Count the visits of crawlers in access logs.

    FILE is an access log, plain or compressed with gzip or zstd. Its format is detected. The addresses of crawlers are
    verified and not kept.

    A log may be imported again after it has grown, or was renamed or compressed: no line is counted twice. The exit
    status is 2 if a file could not be read to its end; the others are imported.

    Needs the extra logs.
    """
    with reporting_errors(), _open(app, store, base_url, factory=factory) as (opened, sites, resolver):
        verifier = Verifier(_NoResolver() if no_dns else resolver, time.time)
        verifier.use_ranges(unpack_ranges(opened.load(RANGES_OWNER, [RANGES_RECORD]).get(RANGES_RECORD, b""))[0])
        log_format = FORMATS[format_name] if format_name else None
        with (
            progress("bytes read") as update,
            LogImporter(
                opened, sites, verifier.identity, clock=time.time, timezone=timezone, any_host=any_host
            ) as importer,
        ):
            reports = list(_import_files(importer, files, update, log_format, aggregated=aggregated))
        name = store_name(opened)
    if as_json:
        click.echo(json.dumps(_as_json(name, sites, reports), indent=2))
    else:
        _print(reports)
    for report in reports:
        if report.problem:
            CommandError(report.problem).show()
    sys.exit(2 if any(report.problem for report in reports) else 0)


def _import_files(
    importer: LogImporter,
    files: Sequence[Path],
    update: Callable[[int, int | None], None],
    log_format: LogFormat | None,
    *,
    aggregated: bool,
) -> Iterator[ImportSummary]:
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    for number, file in enumerate(files):

        def report_progress(done: int, before: int = sum(sizes[:number])) -> None:
            update(before + done, sum(sizes))

        if aggregated:
            yield importer.import_table(file, report_progress)
        else:
            yield importer.import_log(file, log_format, report_progress)


class _NoResolver:
    """A resolver that does not ask DNS: no address can be verified by it."""

    def names(self, address: str) -> Iterable[str]:
        raise OSError(f"{address} is not looked up")

    addresses = names


@contextmanager
def _open(
    app: Any, store: str | None, base_url: str | None, *, factory: bool
) -> Iterator[tuple[Store, list[Site], Resolver]]:
    """Open the store that the options name; also provide the sites that the logs are about, and what asks DNS.

    Raises `CommandError`.
    """
    with only_existing_files():
        target = None if app is None else open_target(app, base_url=base_url, root_path=None, factory=factory)
        if store is not None:
            path = Path(store)
            is_file = path.is_file() or ("://" not in store and path.suffix in _FILE_SUFFIXES)
            opened = open_store(f"sqlite:///{path.absolute()}" if is_file else store, "--store")
        elif target is not None:
            opened = target.service.store
        else:
            raise CommandError("give the app's store, such as --store sqlite:///sitemap.sqlite3, or the app by --app")
        try:
            if target is not None:
                sites = target.sites()
            elif base_url is not None:
                sites = [parse_base_url(base_url, "--base-url")]
            else:
                sites = [_only_site(opened)]
            opened.version(sites[0].store_key)  # it has to be there, and a FallbackStore chooses now
            if isinstance(opened.effective_store if isinstance(opened, FallbackStore) else opened, MemoryStore):
                raise CommandError("a store in memory is of the running app only: name one that is kept by --store")
            yield opened, sites, SystemResolver() if target is None else target.service.options.resolver
        finally:
            opened.close()


def _only_site(store: Store) -> Site:
    if isinstance(store, SQLiteStore) and not store.path.exists():
        raise CommandError(f"no store exists at {store.path}; name the site to make one, {_BASE_URL_HINT}")
    sites = [base_url_of_key(site.site) for site in store_status(store, int(time.time())).sites]
    if len(sites) != 1:
        known = f"the store has pages of the sites {', '.join(sites)}" if sites else "the store has no pages yet"
        raise CommandError(f"{known}: give the one that the logs are of, {_BASE_URL_HINT}")
    return parse_base_url(sites[0], "--base-url")


def _as_json(store: str, sites: Sequence[Site], reports: Sequence[ImportSummary]) -> dict[str, Any]:
    return {
        "store": store,
        "sites": [site.base_url for site in sites],
        "files": [
            {
                "file": str(report.file),
                "format": report.format or None,
                "lines": {name: report.lines[name] for name in _LINES},
                "imported_before": {"bytes": report.skipped_bytes, "rows": report.skipped_rows},
                "unfinished": report.unfinished,
                "problem": report.problem or None,
            }
            for report in reports
        ],
        "verified_visits": dict(sorted(sum((report.crawlers for report in reports), Counter[str]()).items())),
    }


def _print(reports: Sequence[ImportSummary]) -> None:
    out = console()
    for report in reports:
        print_rows(out, [_heading(report)])
        for name, text in _LINES.items():
            if report.lines[name]:
                print_line(out, f"  {report.lines[name]:,} {text}")
        if report.unfinished:
            print_line(out, "  its last line has no end yet, and was left out")
        if report.lines["nameless"] and report.lines["nameless"] == report.lines.total():
            print_line(
                out, "  note: without User-Agents no crawler can be recognised; let the server log them", "yellow"
            )
    visits = sum((report.crawlers for report in reports), Counter[str]())
    if visits:
        print_line(out, "visits of verified crawlers", "bold")
        print_rows(out, ((f"  {name}", f"{count:,}", "") for name, count in visits.most_common()))


def _heading(report: ImportSummary) -> Row:
    if report.problem and not report.lines.total():
        return str(report.file), "not imported", "yellow"
    before = report.skipped_bytes or report.skipped_rows
    unit = "rows" if report.skipped_rows else "bytes"
    about = f"{report.format or 'no complete line'}, lines read: {report.lines.total():,}"
    return str(report.file), about + (f", imported before: {before:,} {unit}" if before else ""), "bold"
