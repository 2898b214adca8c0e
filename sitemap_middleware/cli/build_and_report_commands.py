"""The commands that write files: build and report. Both request the sitemap from the app."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..http.site_urls import parse_base_url
from ..http.urls import quote_path
from ..models import Site
from ..stores.default import only_existing_files
from . import terminal
from .command_target import INSPECTION_WAIT_SECONDS, Target, open_target, reporting_errors
from .sitemap_files import ExportedFile, export, fetch_documents
from .terminal import CommandError, console, print_json, print_line, print_notes, print_rows, progress

if TYPE_CHECKING:  # it needs the extra publish
    from .bucket import ObjectChange

_out_option = functools.partial(
    click.option,
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write the files to.",
)


@contextlib.contextmanager
def _started_app(app: Any, what: str, place: object, options: dict[str, Any]) -> Iterator[tuple[Target, Site]]:
    """Provide a started app and its site. Raises `CommandError` if it has no sitemap, or files cannot be written."""
    with reporting_errors(), only_existing_files():
        target = open_target(app, **options)
        site = target.main_site()
        if what == "sitemap" and site.loopback and not target.is_site_known and target.service.options.enabled:
            raise CommandError("the app's base_url is not set: give --base-url, such as https://example.com")
        if hint := target.other_site_hint(site):
            raise CommandError(hint)
        try:
            with target.started_site(what) as started:
                yield started
        except OSError as error:
            raise CommandError(f"{place} cannot be written: {error}") from error


@click.command()
@terminal.app_options
@_out_option()
@click.option(
    "--to", metavar="URL", help="Put the sitemap into s3://, gs://, az:// or file://. Needs the extra publish."
)
@click.option("--public-url", metavar="URL", help="With --to: where readers find it. The default is the site.")
def build(app: Any, *, out: Path | None, to: str | None, public_url: str | None, as_json: bool, **options: Any) -> None:
    """Write the sitemap as files, or publish it.

    With --out, the documents that the app serves are written into DIR, each also compressed with gzip.

    With --to, they are put into an object store, such as s3://bucket/folder, so that readers always find all documents
    that the index names; only what has changed is put. The account comes from the environment.

    The app keeps what it learns in the store that it names. If it names none, the default sitemap.sqlite3 is used if
    there is one; no new one is created.
    """
    if (out is None) == (to is None):
        raise CommandError("give --out DIR to write files, or --to URL to publish")
    if public_url is not None and to is None:
        raise CommandError("--public-url goes with --to")
    with _started_app(app, "sitemap", out or to, options) as (target, site), progress("documents") as update:
        path = target.service.options.path
        documents = fetch_documents(target.running.client(site), site, path, update)
        if out is not None:
            show = functools.partial(_print_files, export(documents, site, path, out), site, out)
        else:
            from .bucket import Bucket, publish  # needs the extra publish

            bucket = Bucket(to or "")
            public = site if public_url is None else parse_base_url(public_url, "--public-url")
            changes = publish(
                documents,
                bucket,
                site_url=site.base_url,
                public_url=public.base_url,
                now=int(target.service.options.clock()),
                max_age=target.service.options.max_age,
            )
            show = functools.partial(_print_changes, changes, len(documents), site, public, path)
    show(as_json=as_json)


def _print_changes(
    changes: list[ObjectChange], documents: int, site: Site, public: Site, path: str, *, as_json: bool
) -> None:
    location, size = f"{public.base_url}{quote_path(path)}", sum(change.size for change in changes)
    if as_json:
        rows = [change._asdict() for change in changes]
        print_json({"site": site.base_url, "sitemap": location, "bytes": size, "changes": rows})
    else:
        rows_of_text = ((f"{action} {name}", f"{size:,} bytes" if size else "", "") for action, name, size in changes)
        print_rows(console(), rows_of_text)
        print_line(console(), f"{_counted(documents, 'document')}, {size:,} bytes put: {location}", "bold")
    if public.host != site.host:
        print_notes([f"crawlers find it if robots.txt of {site.scheme}://{site.host} has the line Sitemap: {location}"])


def _print_files(files: list[ExportedFile], site: Site, out: Path, *, as_json: bool) -> None:
    urls, size = sum(file.urls for file in files), sum(file.size for file in files)
    if as_json:
        rows = [
            {"file": str(file.path), "urls": file.urls, "bytes": file.size, "gzip_bytes": file.gzipped_size}
            for file in files
        ]
        totals = {"urls": urls, "bytes": size, "gzip_bytes": sum(file.gzipped_size for file in files)}
        print_json({"site": site.base_url, **totals, "files": rows})
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


@click.command()
@terminal.app_options
@_out_option(required=True)
def report(app: Any, *, out: Path, as_json: bool, **options: Any) -> None:
    """Write the report as HTML files.

    The pages of the option report, as files in DIR that need no server: open index.html in a browser. Like build, it
    requests the sitemap from the app, which saves what it learns in the store that it names.

    Needs the extra report.
    """
    with _started_app(app, "report", out, options) as (target, site), progress("files") as update:
        from ..report.pages import export_report  # needs the extra report

        target.running.client(site, INSPECTION_WAIT_SECONDS)(target.service.options.path, "identity")
        files = export_report(target.service, site, out, update, target.running.async_collector)
    if as_json:
        print_json({"site": site.base_url, "folder": str(out), "files": files})
    else:
        print_line(console(), f"report of {site.base_url}: {files:,} files in {out}; open {out / 'index.html'}", "bold")
