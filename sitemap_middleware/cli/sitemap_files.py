"""Requests a sitemap from its app with all documents that it names, and writes them as files."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import time
import zlib
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..adapters.app_runner import Fetch
from ..exceptions import SitemapError
from ..http.messages import GENERATING_HEADER
from ..models import Site

RETRY_SECONDS: Final = 1.0

MAX_ROUNDS: Final = 5
"""Times that all documents are requested, at most, because the index has changed meanwhile."""

LOC: Final = re.compile(rb"<loc>([^<]*)</loc>")


class DocumentMissing(SitemapError):
    """The app answered 404."""


def fetch_documents(
    fetch: Fetch, site: Site, path: str, on_progress: Callable[[int, int], None] = lambda _done, _total: None
) -> dict[str, bytes]:
    """Return the documents of a sitemap, gzipped, by their decoded paths below the site's root; itself last.

    They are fetched until the index has not changed meanwhile. Those that the app is generating are waited for.

    Raises `SitemapError` if the app does not serve the sitemap, or not all of its documents.
    """
    read = partial(_read, fetch, site.base_url)
    sitemap = read(path)
    for _ in range(MAX_ROUNDS):
        names = document_paths(gzip.decompress(sitemap), site)
        documents: dict[str, bytes] = {}
        for count, name in enumerate(names):
            on_progress(count, len(names) + 1)
            with contextlib.suppress(DocumentMissing):  # the index has changed, or it is an error at the end
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
        error_class = DocumentMissing if response.status == 404 else SitemapError
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


def export(documents: dict[str, bytes], site: Site, path: str, folder: Path) -> list[ExportedFile]:
    """Write what `fetch_documents` returns into a folder, each document as it is and gzipped; return the files.

    Files are replaced atomically, the sitemap itself last, so that a reader never finds an index of missing files.
    Documents that only an earlier export wrote are removed. Raises `OSError` if a file cannot be written.
    """
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
