"""Static export: the documents that the middleware would serve, as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from .client import Ask
from .errors import SitemapError
from .model import Site


class File(NamedTuple):
    """One document, as it is to be written."""

    path: Path
    body: bytes
    packed: bytes
    """The same, gzipped."""


def export(ask: Ask, site: Site, path: str, folder: Path, step: Callable[[int, int], None]) -> list[Path]:
    """Write a sitemap and all its documents below a folder, and beside each its gzipped twin; return their paths.

    Each file takes the place of an older one whole, and the sitemap itself comes
    last, so that whoever reads meanwhile never finds an index of files that are
    not there. Documents that an earlier export wrote, and that are no more, are removed.

    Args:
        ask: asks the app.
        site: the one whose sitemap it is.
        path: the sitemap's own, decoded.
        folder: where the files go.
        step: told after each document how many are written, and of how many.

    Raises:
        SitemapError: where the app does not serve a sitemap, or not to its end.
        OSError: where a file cannot be written.
    """
    first = _file(ask, path, folder)
    rest = list(_documents(first.body, site))
    step(0, len(rest) + 1)
    written: list[Path] = []
    for count, one in enumerate(rest, 1):
        written += _write(_file(ask, one, folder))
        step(count, len(rest) + 1)
    before = _exported(first.path, site, folder)
    written += _write(first)
    step(len(rest) + 1, len(rest) + 1)
    for stale in before:
        if stale not in written:
            stale.unlink(missing_ok=True)
    return written


def _file(ask: Ask, path: str, folder: Path) -> File:
    plain, packed = ask(path, "identity"), ask(path, "gzip")
    for answer in (plain, packed):
        if answer.status != 200:
            said = answer.body.decode("utf-8", "replace").strip()
            raise SitemapError(f"the app answered {answer.status} for {path}: {said}")
    if dict(packed.headers).get("content-encoding") != "gzip":
        raise SitemapError(f"the app answers for {path} by a route of its own, and not with our sitemap")
    return File(folder / path.lstrip("/"), plain.body, packed.body)


def _documents(body: bytes, site: Site) -> Iterator[str]:
    """The decoded paths of the documents that an index names; none where it is no index."""
    root = ET.fromstring(body)  # noqa: S314 (written by ourselves)
    if root.tag.endswith("}sitemapindex"):
        for loc in root.iterfind("{*}sitemap/{*}loc"):
            yield unquote((loc.text or "").removeprefix(site.base))


def _write(file: File) -> list[Path]:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    packed = file.path.with_name(f"{file.path.name}.gz")
    _replace(packed, file.packed)
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


def _exported(path: Path, site: Site, folder: Path) -> list[Path]:
    """The files of the documents that an index written before names, their gzipped twins among them."""
    try:
        found = [folder / document.lstrip("/") for document in _documents(path.read_bytes(), site)]
    except (OSError, ET.ParseError):
        return []
    ours = [one for one in found if one.parent == path.parent and one.name.startswith(f"{path.stem}-")]
    return [one for plain in ours for one in (plain, plain.with_name(f"{plain.name}.gz"))]
