"""Static export: the documents that the middleware would serve, as files."""

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
from ..http import GENERATING_HEADER, Response
from ..models import Site
from .app_client import Fetch

RETRY_SECONDS: Final = 1.0
"""Seconds until the app is asked again for what it is making."""

MAX_ROUNDS: Final = 5
"""Times, at most, that documents are asked for again because their index has changed meanwhile."""

_LOC: Final = re.compile(rb"<loc>([^<]*)</loc>")


class File(NamedTuple):
    """One document, as it is to be written."""

    path: Path
    body: bytes
    gzipped: bytes
    """The same, gzipped."""


def export(
    ask: Fetch,
    site: Site,
    path: str,
    folder: Path,
    step: Callable[[int, int], None],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> list[Path]:
    """Write a sitemap and all its documents below a folder, and beside each its gzipped twin; return their paths.

    Each file takes the place of an older one whole, and the sitemap itself comes
    last, so that whoever reads meanwhile never finds an index of files that are
    not there. Documents that an earlier export wrote, and that are no more, are removed.
    What the app is making yet is waited for, however long it takes.

    Args:
        ask: asks the app.
        site: the one whose sitemap it is.
        path: the sitemap's own, decoded.
        folder: where the files go.
        step: told after each document how many are written, and of how many.
        pause: waits so many seconds.

    Raises:
        SitemapError: where the app does not serve a sitemap, or not to its end.
        OSError: where a file cannot be written.
    """
    asked = _DocumentFetcher(ask, site, folder, pause)
    first = asked.fetch_file(path)
    rest, written, missing = list[str](), list[Path](), None
    for _ in range(MAX_ROUNDS):
        rest = list(_documents(first.body, site))
        written, missing = _fetch_documents(asked, rest, step)
        before, first = first, asked.fetch_file(path)
        if first.body == before.body:
            break
    if missing is not None:
        raise SitemapError(missing)
    stale = _previously_exported(first.path, site, folder)
    written += _write(first)
    step(len(rest) + 1, len(rest) + 1)
    for one in stale:
        if one not in written:
            one.unlink(missing_ok=True)
    return written


def _fetch_documents(
    asked: _DocumentFetcher, paths: list[str], step: Callable[[int, int], None]
) -> tuple[list[Path], str | None]:
    """Write documents; the files, and what was said of one that the app does not have, if any."""
    step(0, len(paths) + 1)
    written: list[Path] = []
    missing: str | None = None
    for count, one in enumerate(paths, 1):
        try:
            written += _write(asked.fetch_file(one))
        except _DocumentMissing as error:  # its index may not have known yet that nothing of it is listed
            missing = str(error)
        step(count, len(paths) + 1)
    return written, missing


class _DocumentMissing(SitemapError):
    """The app has no such document."""


class _DocumentFetcher:
    """The app, as it is asked for documents."""

    def __init__(self, ask: Fetch, site: Site, folder: Path, pause: Callable[[float], None]) -> None:
        self._fetch = ask
        self._base = site.base_url
        self._folder = folder
        self._pause = pause

    def fetch_file(self, path: str) -> File:
        """A document; waits for as long as the app says that it is being made."""
        answer = self._fetch(path, "gzip")
        while answer.status == 503 and _is_generating(answer):
            self._pause(RETRY_SECONDS)
            answer = self._fetch(path, "gzip")
        if answer.status != 200:
            said = answer.body.decode("utf-8", "replace").strip()
            failed = _DocumentMissing if answer.status == 404 else SitemapError
            raise failed(f"the app answered {answer.status} for {path}: {said}")
        if dict(answer.headers).get("content-encoding") != "gzip":
            raise SitemapError(f"the app answers for {path} by a route of its own, and not with our sitemap")
        body = gzip.decompress(answer.body)
        first = _LOC.search(body)
        if first and not first[1].startswith(f"{self._base}/".encode()):
            raise SitemapError(
                f"the app lists {first[1].decode('utf-8', 'replace')} in {path}, which is no page of {self._base}:"
                " give the site's own --base-url and --root-path"
            )
        return File(self._folder / path.lstrip("/"), body, answer.body)


def _is_generating(answer: Response) -> bool:
    name, value = GENERATING_HEADER
    return dict(answer.headers).get(name.lower()) == value


def _documents(body: bytes, site: Site) -> Iterator[str]:
    """The decoded paths of the documents that an index names; none where it is no index."""
    root = ET.fromstring(body)  # noqa: S314 (written by ourselves)
    if root.tag.endswith("}sitemapindex"):
        for loc in root.iterfind("{*}sitemap/{*}loc"):
            yield unquote((loc.text or "").removeprefix(site.base_url))


def _write(file: File) -> list[Path]:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    packed = file.path.with_name(f"{file.path.name}.gz")
    _replace(packed, file.gzipped)
    _replace(file.path, file.body)
    return [file.path, packed]


def _replace(path: Path, content: bytes) -> None:
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


def _previously_exported(path: Path, site: Site, folder: Path) -> list[Path]:
    """The files of the documents that an index written before names, their gzipped twins among them."""
    try:
        found = [folder / document.lstrip("/") for document in _documents(path.read_bytes(), site)]
    except (OSError, ET.ParseError):
        return []
    ours = [one for one in found if one.parent == path.parent and one.name.startswith(f"{path.stem}-")]
    return [one for plain in ours for one in (plain, plain.with_name(f"{plain.name}.gz"))]
