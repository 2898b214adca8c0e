"""The commands that write files: build and report. Both request the sitemap from the app."""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import click

from ..adapters.running_app import Fetch
from ..exceptions import SitemapError
from ..http.messages import GENERATING_HEADER
from ..http.urls import parse_base_url, quote_path
from ..models import Site
from ..stores.default import only_existing_files
from . import terminal
from .command_target import INSPECTION_WAIT_SECONDS, Target, open_target, reporting_errors
from .terminal import CommandError, console, print_json, print_line, print_notes, print_rows, progress

if TYPE_CHECKING:  # it needs the extra publish
    from .bucket import ObjectChange

RETRY_SECONDS: Final = 1.0

MAX_ROUNDS: Final = 5
"""Times that all documents are requested, at most, because the index has changed meanwhile."""

LOC: Final = re.compile(rb"<loc>([^<]*)</loc>")

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
        fetch, path = target.running.client(site), target.service.options.path
        if out is not None:
            show = functools.partial(_print_files, export(fetch, site, path, out, update), site, out)
        else:
            from .bucket import Bucket, publish  # needs the extra publish

            bucket = Bucket(to or "")
            public = site if public_url is None else parse_base_url(public_url, "--public-url")
            documents = fetch_documents(fetch, site, path, update)
            changes = publish(
                documents,
                bucket,
                site_url=site.base_url,
                public_url=public.base_url,
                now=int(target.service.options.clock()),
                max_age=target.service.options.max_age,
                on_progress=update,
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
        print_notes([f"crawlers find it if robots.txt of {site.base_url} has the line Sitemap: {location}"])


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
        from ..report.report_files import export_report  # needs the extra report

        target.running.client(site, INSPECTION_WAIT_SECONDS)(target.service.options.path, "identity")
        files = export_report(target.service, site, out, update, target.running.async_collector)
    if as_json:
        print_json({"site": site.base_url, "folder": str(out), "files": files})
    else:
        print_line(console(), f"report of {site.base_url}: {files:,} files in {out}; open {out / 'index.html'}", "bold")


class _DocumentMissing(SitemapError):
    """The app answered 404."""


def fetch_documents(
    fetch: Fetch,
    site: Site,
    path: str,
    on_progress: Callable[[int, int | None], None],
) -> dict[str, bytes]:
    """Return the documents of a sitemap, gzipped, by their decoded paths below the site's root; itself last.

    They are fetched until the index has not changed meanwhile. Those that the app is generating are waited for.

    Raises `SitemapError` if the app does not serve the sitemap, or not all of its documents.
    """
    read = functools.partial(_read, fetch, site.base_url)
    sitemap = read(path)
    for _ in range(MAX_ROUNDS):
        names = document_paths(gzip.decompress(sitemap), site)
        documents: dict[str, bytes] = {}
        for count, name in enumerate(names):
            on_progress(count, len(names) + 1)
            with contextlib.suppress(
                _DocumentMissing
            ):  # an error only if the sitemap still names it when it is fetched again
                documents[name] = read(name)
        earlier, sitemap = sitemap, read(path)
        if gzip.decompress(sitemap) == gzip.decompress(earlier):
            break
    for name in document_paths(gzip.decompress(sitemap), site):
        if name not in documents:
            raise SitemapError(f"the app answered 404 for {name}, which its {path} names")
    return {**documents, path: sitemap}


def _read(fetch: Fetch, base_url: str, path: str) -> bytes:
    """Fetch a document, gzipped; wait while the app is generating it."""
    response = fetch(path, "gzip")
    while response.status == 503 and GENERATING_HEADER[1] in dict(response.headers).values():
        time.sleep(RETRY_SECONDS)
        response = fetch(path, "gzip")
    if response.status != 200:
        error_class = _DocumentMissing if response.status == 404 else SitemapError
        reason = response.body.decode("utf-8", "replace").strip()
        raise error_class(f"the app answered {response.status} for {path}: {reason}")
    if dict(response.headers).get("content-encoding") != "gzip":
        raise SitemapError(f"the app has a route for {path}, so SitemapMiddleware does not serve it")
    first_loc = LOC.search(gzip.decompress(response.body))
    if first_loc and not first_loc[1].startswith(f"{base_url}/".encode()):
        raise SitemapError(
            f"{path} lists {first_loc[1].decode('utf-8', 'replace')}, which is not a page of {base_url}:"
            " give the site's own --base-url and --root-path"
        )
    return response.body


def document_paths(body: bytes, site: Site) -> list[str]:
    """The decoded paths of the documents that an index names; none if it is a plain sitemap."""
    locs = LOC.findall(body) if b"<sitemapindex" in body else []
    return [unquote(unescape(loc.decode(errors="replace")).removeprefix(site.base_url)) for loc in locs]


class ExportedFile(NamedTuple):
    """A document that was written, and a compressed copy beside it."""

    path: Path
    urls: int
    documents: int
    """How many documents it names, if it is an index."""
    size: int
    gzipped_size: int
    """Bytes of the compressed copy, whose name ends in `.gz`."""


def export(
    fetch: Fetch,
    site: Site,
    path: str,
    folder: Path,
    on_progress: Callable[[int, int | None], None],
) -> list[ExportedFile]:
    """Write a sitemap and its documents into a folder, each also compressed with gzip; return the files.

    Files are replaced atomically, the sitemap itself last, so that a reader never finds an index of missing files.
    Documents that only an earlier export wrote are removed. Those that the app is still generating are waited for.

    Raises:
        SitemapError: the app does not serve the sitemap, or not all of its documents. Nothing is written.
        OSError: a file cannot be written.
    """
    documents = fetch_documents(fetch, site, path, on_progress)
    earlier_files = _previously_exported(folder / path.lstrip("/"), site, folder)
    written = [_write(folder, document, gzipped) for document, gzipped in documents.items()]
    current_files = {path for file in written for path in (file.path, _gzipped(file.path))}
    for file in earlier_files:
        if file not in current_files:
            file.unlink(missing_ok=True)
    return written


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")  # another export may run at the same time
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _previously_exported(sitemap: Path, site: Site, folder: Path) -> list[Path]:
    """Return the files of the documents that an existing index names, including the compressed ones."""
    try:
        documents = [folder / path.lstrip("/") for path in document_paths(sitemap.read_bytes(), site)]
    except OSError:
        return []
    # Another program may have written the index: remove only files that are named and written like exported ones.
    exported = [
        file
        for file in documents
        if file.parent == sitemap.parent and file.name.startswith(f"{sitemap.stem}-") and _is_with_copy(file)
    ]
    return [file for document in exported for file in (document, _gzipped(document))]


def _is_with_copy(file: Path) -> bool:
    """Whether the compressed copy of a file is one."""
    with contextlib.suppress(OSError, EOFError, zlib.error):
        return gzip.decompress(_gzipped(file).read_bytes()) == file.read_bytes()
    return False
