"""Routes of `StaticFiles(html=True)`: its HTML files are pages, dated by their modification time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.staticfiles import StaticFiles

from ..model import Route

MAX_FILES: Final = 50_000
"""Files looked at in one mount; more than that are a job for an enumeration."""


def html_files(files: StaticFiles, prefix: str, host: str | None) -> Iterator[Route]:
    """The pages that a StaticFiles app serves, by the URL that serves them; none unless it is in HTML mode."""
    if not files.html:
        return
    seen: set[str] = set()
    for directory in files.all_directories:
        top = Path(directory)
        looked = 0
        for folder, names, found in os.walk(top, followlinks=files.follow_symlink):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(found):
                looked += 1
                if looked > MAX_FILES:
                    return
                file = Path(folder, name)
                path = _path(file.relative_to(top))
                if path is None or path in seen or not _served(file, top, files.follow_symlink):
                    continue
                seen.add(path)
                yield Route(
                    path=f"{prefix}/{path}",
                    endpoint=f"StaticFiles {file}",
                    host=host,
                    modified=int(file.stat().st_mtime),
                )


def _path(file: Path) -> str | None:
    """The path below the mount that serves a file: a folder's own for its index.html, none for what is no page."""
    if file.suffix.lower() not in (".html", ".htm", ".xhtml") or file.name.startswith("."):
        return None
    if file.as_posix() == "404.html":
        return None
    if file.name == "index.html":
        parent = file.parent.as_posix()
        return "" if parent == "." else f"{parent}/"
    return file.as_posix()


def _served(file: Path, top: Path, follow_symlink: bool) -> bool:
    """Whether StaticFiles would serve it: a file there is, and by a link out of its folder only when told to."""
    return file.is_file() and (follow_symlink or file.resolve().is_relative_to(top.resolve()))
