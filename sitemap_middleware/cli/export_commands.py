"""The commands that write files: build and report. Both request the sitemap from the app."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ..models import Site
from ..report.request_handler import EXTRA_MISSING
from ..stores.default import only_existing_files
from .command_options import app_options, command, output_options
from .command_target import INSPECTION_WAIT_SECONDS, Target, open_target, reporting_errors
from .sitemap_export import ExportedFile, export
from .terminal_output import CommandError, console, print_line, print_rows, progress


@contextlib.contextmanager
def _started_app(app: Any, what: str, out: Path, options: dict[str, Any]) -> Iterator[tuple[Target, Site]]:
    """Provide a started app and its site. Raises `CommandError` if it has no sitemap, or files cannot be written."""
    with reporting_errors(), only_existing_files():
        target = open_target(app, **options)
        site = target.main_site()
        if not target.service.options.enabled:
            raise CommandError(f"there is no {what}: {target.service.not_served_reason()}")
        if what == "sitemap" and site.loopback and (target.site_option is None or target.is_site_guessed):
            raise CommandError("the app's base_url is not set: give --base-url, such as https://example.com")
        if hint := target.other_site_hint(site):
            raise CommandError(hint)
        try:
            with target.started() as started:
                started.complete_routes(site)
                yield started, site
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error}") from error


@command.command()
@app_options()
@output_options
def build(app: Any, *, out: Path, as_json: bool, **options: Any) -> None:
    """Write the sitemap as files.

    The documents that the app serves are written into DIR, each also compressed with gzip. The app keeps what it
    learns in the store that it names. If it names none, the default sitemap.sqlite3 is used if there is one; no new one
    is created.
    """
    with _started_app(app, "sitemap", out, options) as (target, site), progress("documents") as update:
        files = export(target.client(site), site, target.service.options.path, out, update)
    urls, size = sum(file.urls for file in files), sum(file.size for file in files)
    if as_json:
        rows = [
            {"file": str(file.path), "urls": file.urls, "bytes": file.size, "gzip_bytes": file.gzipped_size}
            for file in files
        ]
        totals = {"urls": urls, "bytes": size, "gzip_bytes": sum(file.gzipped_size for file in files)}
        click.echo(json.dumps({"site": site.base_url, **totals, "files": rows}, indent=2))
        return
    print_rows(console(), (_file_row(file, out) for file in files))
    total = f"{_counted(urls, 'URL')} of {site.base_url}, {size:,} bytes: {2 * len(files)} files in {out}"
    print_line(console(), total, "bold")


def _file_row(file: ExportedFile, folder: Path) -> tuple[str, str, str]:
    content = _counted(file.documents, "document") if file.documents else _counted(file.urls, "URL")
    name = file.path.relative_to(folder)
    return str(name), f"{content}, {file.size:,} bytes; {file.gzipped_size:,} bytes as {name.name}.gz", ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


@command.command()
@app_options()
@output_options
def report(app: Any, *, out: Path, as_json: bool, **options: Any) -> None:
    """Write the report as HTML files.

    The pages of the option report, as files in DIR that need no server: open index.html in a browser. Like build, it
    requests the sitemap from the app, which saves what it learns in the store that it names.

    Needs the extra report.
    """
    try:
        from ..report.static_export import export_report
    except ModuleNotFoundError as error:
        raise CommandError(f"{EXTRA_MISSING} ({error})") from error
    with _started_app(app, "report", out, options) as (target, site), progress("files") as update:
        target.client(site, INSPECTION_WAIT_SECONDS)(target.service.options.path, "identity")
        files = export_report(target.service, site, out, update, target.async_collector)
    if as_json:
        click.echo(json.dumps({"site": site.base_url, "folder": str(out), "files": files}, indent=2))
    else:
        print_line(console(), f"report of {site.base_url}: {files:,} files in {out}; open {out / 'index.html'}", "bold")
