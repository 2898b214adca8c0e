"""Requests the sitemap of an app, with all its documents, and writes them as files."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from ..exceptions import SitemapError
from ..http.messages import GENERATING_HEADER, Response
from ..models import Site
from .in_process_app_client import Fetch

RETRY_SECONDS: Final = 1.0
"""Seconds until a document that is being generated is requested again."""

MAX_ROUNDS: Final = 5
"""Times that all documents are requested, at most, because the index has changed meanwhile."""

_LOC: Final = re.compile(rb"<loc>([^<]*)</loc>")


class File(NamedTuple):
    """One document to write."""

    path: Path
    body: bytes
    gzipped_body: bytes


class ExportedFile(NamedTuple):
    """A document that was written, and a compressed copy beside it."""

    path: Path
    urls: int
    documents: int
    """How many documents it names, if it is an index."""
    size: int
    """Bytes."""
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

    Files are replaced atomically, the sitemap itself last, so that a reader never finds
    an index of missing files. Documents that only an earlier export wrote are removed.
    Documents that the app is still generating are waited for without limit.

    Args:
        fetch: requests a document from the app.
        site: the site of the sitemap.
        path: the sitemap's decoded path.
        folder: the folder for the files.
        on_progress: called with the number of documents written so far, and of all.
        pause: waits for so many seconds.

    Raises:
        SitemapError: the app does not serve the sitemap, or not all of its documents.
        OSError: a file cannot be written.
    """
    fetcher = _DocumentFetcher(fetch, site, folder, pause)
    sitemap = fetcher.fetch_file(path)
    document_paths, written, missing = list[str](), list[ExportedFile](), None
    for _ in range(MAX_ROUNDS):
        document_paths = list(_document_paths(sitemap.body, site))
        written, missing = _write_documents(fetcher, document_paths, on_progress)
        earlier, sitemap = sitemap, fetcher.fetch_file(path)
        if sitemap.body == earlier.body:
            break
    if missing is not None:
        raise missing
    previous_files = _previously_exported(sitemap.path, site, folder)
    written.append(_write(sitemap))
    on_progress(len(document_paths) + 1, len(document_paths) + 1)
    current_files = {path for file in written for path in (file.path, _gzipped(file.path))}
    for file in previous_files:
        if file not in current_files:
            file.unlink(missing_ok=True)
    return written


def _write_documents(
    fetcher: _DocumentFetcher, paths: list[str], on_progress: Callable[[int, int | None], None]
) -> tuple[list[ExportedFile], _DocumentMissing | None]:
    """Fetch and write documents; return the files, and the error of one that is missing."""
    total = len(paths) + 1
    on_progress(0, total)
    written: list[ExportedFile] = []
    missing: _DocumentMissing | None = None
    for count, path in enumerate(paths, 1):
        try:
            written.append(_write(fetcher.fetch_file(path)))
        except _DocumentMissing as error:  # an error only if the index still names it when it is fetched again
            missing = error
        on_progress(count, total)
    return written, missing


class _DocumentFetcher:
    """Fetches documents from the app."""

    def __init__(self, fetch: Fetch, site: Site, folder: Path, pause: Callable[[float], None]) -> None:
        self._fetch = fetch
        self._base_url = site.base_url
        self._folder = folder
        self._pause = pause

    def fetch_file(self, path: str) -> File:
        """Fetch a document; wait while the app is generating it."""
        response = self._fetch(path, "gzip")
        while response.status == 503 and _is_generating(response):
            self._pause(RETRY_SECONDS)
            response = self._fetch(path, "gzip")
        if response.status != 200:
            error_class = _DocumentMissing if response.status == 404 else SitemapError
            reason = response.body.decode("utf-8", "replace").strip()
            raise error_class(f"the app answered {response.status} for {path}: {reason}")
        if dict(response.headers).get("content-encoding") != "gzip":
            raise SitemapError(f"the app has a route for {path}, so SitemapMiddleware does not serve it")
        body = gzip.decompress(response.body)
        first_loc = _LOC.search(body)
        if first_loc and not first_loc[1].startswith(f"{self._base_url}/".encode()):
            raise SitemapError(
                f"{path} lists {first_loc[1].decode('utf-8', 'replace')}, which is not a page of {self._base_url}:"
                " give the site's own --base-url and --root-path"
            )
        return File(self._folder / path.lstrip("/"), body, response.body)


def _is_generating(response: Response) -> bool:
    name, value = GENERATING_HEADER
    return dict(response.headers).get(name.lower()) == value


def _document_paths(body: bytes, site: Site) -> Iterator[str]:
    """Yield the decoded paths of the documents that an index names; none if it is a plain sitemap."""
    root = ET.fromstring(body)  # noqa: S314 (generated by this package)
    if root.tag.endswith("}sitemapindex"):
        for loc in root.iterfind("{*}sitemap/{*}loc"):
            yield unquote((loc.text or "").removeprefix(site.base_url))


def _write(file: File) -> ExportedFile:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    gzipped_path = _gzipped(file.path)
    _replace(gzipped_path, file.gzipped_body)
    _replace(file.path, file.body)
    urls, documents = file.body.count(b"<url>"), file.body.count(b"<sitemap>")
    return ExportedFile(file.path, urls, documents, len(file.body), len(file.gzipped_body))


def _gzipped(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as temporary:
        try:
            temporary.write(content)
            temporary.flush()
            os.fsync(temporary.fileno())
            Path(temporary.name).chmod(0o644)
            Path(temporary.name).replace(path)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


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
