"""The commands that write files: build and report. Both request the sitemap from the app."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import click

from ..adapters.running_app import Fetch
from ..exceptions import SitemapError
from ..http.messages import GENERATING_HEADER
from ..models import Site
from ..report.request_handler import EXTRA_MISSING
from ..stores.default import only_existing_files
from . import terminal
from .command_target import INSPECTION_WAIT_SECONDS, Target, open_target, reporting_errors
from .terminal import CommandError, console, print_line, print_rows, progress

RETRY_SECONDS: Final = 1.0

MAX_ROUNDS: Final = 5
"""Times that all documents are requested, at most, because the index has changed meanwhile."""

_LOC: Final = re.compile(rb"<loc>([^<]*)</loc>")

_out_option = click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Directory to write the files to.",
)


@contextlib.contextmanager
def _started_app(app: Any, what: str, out: Path, options: dict[str, Any]) -> Iterator[tuple[Target, Site]]:
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
            raise CommandError(f"{out} cannot be written: {error}") from error


@click.command()
@terminal.app_options
@_out_option
def build(app: Any, *, out: Path, as_json: bool, **options: Any) -> None:
    """Write the sitemap as files.

    The documents that the app serves are written into DIR, each also compressed with gzip. The app keeps what it
    learns in the store that it names. If it names none, the default sitemap.sqlite3 is used if there is one; no new one
    is created.
    """
    with _started_app(app, "sitemap", out, options) as (target, site), progress("documents") as update:
        files = export(target.running.client(site), site, target.service.options.path, out, update)
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


@click.command()
@terminal.app_options
@_out_option
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
        target.running.client(site, INSPECTION_WAIT_SECONDS)(target.service.options.path, "identity")
        files = export_report(target.service, site, out, update, target.running.async_collector)
    if as_json:
        click.echo(json.dumps({"site": site.base_url, "folder": str(out), "files": files}, indent=2))
    else:
        print_line(console(), f"report of {site.base_url}: {files:,} files in {out}; open {out / 'index.html'}", "bold")


class ExportedFile(NamedTuple):
    """A document that was written, and a compressed copy beside it."""

    path: Path
    urls: int
    documents: int
    """How many documents it names, if it is an index."""
    size: int
    gzipped_size: int
    """Bytes of the compressed copy, whose name ends in `.gz`."""


class _DocumentMissing(SitemapError):
    """The app answered 404."""


def export(
    fetch: Fetch,
    site: Site,
    path: str,
    folder: Path,
    on_progress: Callable[[int, int | None], None],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> list[ExportedFile]:
    """Write a sitemap and its documents into a folder, each also compressed with gzip; return the files.

    Files are replaced atomically, the sitemap itself last, so that a reader never finds an index of missing files.
    Documents that only an earlier export wrote are removed. Those that the app is still generating are waited for.

    Raises:
        SitemapError: the app does not serve the sitemap, or not all of its documents. Nothing is written.
        OSError: a file cannot be written.
    """
    documents = _fetch_all(functools.partial(_read, fetch, site.base_url, pause), site, path, on_progress)
    earlier_files = _previously_exported(folder / path.lstrip("/"), site, folder)
    written = [_write(folder, document, gzipped) for document, gzipped in documents.items()]
    current_files = {path for file in written for path in (file.path, _gzipped(file.path))}
    for file in earlier_files:
        if file not in current_files:
            file.unlink(missing_ok=True)
    return written


def _fetch_all(
    read: Callable[[str], bytes], site: Site, path: str, on_progress: Callable[[int, int | None], None]
) -> dict[str, bytes]:
    """Fetch the documents of a sitemap, gzipped, and the sitemap itself last, until it has not changed meanwhile."""
    sitemap = read(path)
    for _ in range(MAX_ROUNDS):
        names = list(_document_paths(gzip.decompress(sitemap), site))
        documents: dict[str, bytes] = {}
        missing: _DocumentMissing | None = None
        for count, name in enumerate(names):
            on_progress(count, len(names) + 1)
            try:
                documents[name] = read(name)
            except _DocumentMissing as error:  # an error only if the sitemap still names it when it is fetched again
                missing = error
        earlier, sitemap = sitemap, read(path)
        if gzip.decompress(sitemap) == gzip.decompress(earlier):
            break
    if missing is not None:
        raise missing
    return {**documents, path: sitemap}


def _read(fetch: Fetch, base_url: str, pause: Callable[[float], None], path: str) -> bytes:
    """Fetch a document, gzipped; wait while the app is generating it."""
    response = fetch(path, "gzip")
    while response.status == 503 and GENERATING_HEADER[1] in dict(response.headers).values():
        pause(RETRY_SECONDS)
        response = fetch(path, "gzip")
    if response.status != 200:
        error_class = _DocumentMissing if response.status == 404 else SitemapError
        reason = response.body.decode("utf-8", "replace").strip()
        raise error_class(f"the app answered {response.status} for {path}: {reason}")
    if dict(response.headers).get("content-encoding") != "gzip":
        raise SitemapError(f"the app has a route for {path}, so SitemapMiddleware does not serve it")
    first_loc = _LOC.search(gzip.decompress(response.body))
    if first_loc and not first_loc[1].startswith(f"{base_url}/".encode()):
        raise SitemapError(
            f"{path} lists {first_loc[1].decode('utf-8', 'replace')}, which is not a page of {base_url}:"
            " give the site's own --base-url and --root-path"
        )
    return response.body


def _document_paths(body: bytes, site: Site) -> Iterator[str]:
    """Yield the decoded paths of the documents that an index names; none if it is a plain sitemap."""
    root = ET.fromstring(body)  # noqa: S314 (generated by this package)
    if root.tag.endswith("}sitemapindex"):
        for loc in root.iterfind("{*}sitemap/{*}loc"):
            yield unquote((loc.text or "").removeprefix(site.base_url))


def _write(folder: Path, document: str, gzipped: bytes) -> ExportedFile:
    path, body = folder / document.lstrip("/"), gzip.decompress(gzipped)
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(_gzipped(path), gzipped)
    _replace(path, body)
    return ExportedFile(path, body.count(b"<url>"), body.count(b"<sitemap>"), len(body), len(gzipped))


def _gzipped(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _previously_exported(sitemap: Path, site: Site, folder: Path) -> list[Path]:
    """Return the files of the documents that an existing index names, including the compressed ones."""
    try:
        documents = [folder / path.lstrip("/") for path in _document_paths(sitemap.read_bytes(), site)]
    except (OSError, ET.ParseError):
        return []
    # Another program may have written the index: remove only files that are named like exported ones.
    exported = [
        file for file in documents if file.parent == sitemap.parent and file.name.startswith(f"{sitemap.stem}-")
    ]
    return [file for document in exported for file in (document, _gzipped(document))]
