"""Reads the pages of `StaticFiles(html=True)`: its HTML files, dated by their modification times."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from starlette.staticfiles import StaticFiles

from ..models import Route

MAX_FILES: Final = 50_000
"""Files read of one folder. The rest are not listed before they are visited."""

RECHECK_SECONDS: Final = 60.0
"""Seconds after which a folder is read again. Its files may change at any time, and a walk takes milliseconds."""

_read: Final[WeakKeyDictionary[StaticFiles, tuple[float, dict[str, tuple[str, int]]]]] = WeakKeyDictionary()
"""When each `StaticFiles` was read, by `time.monotonic`, and its pages then."""


def html_files(files: StaticFiles, prefix: str, host: str | None) -> Iterator[Route]:
    """The HTML files that a StaticFiles app serves, as static routes; none unless it is in HTML mode."""
    if not files.html:
        return
    known = _read.get(files)
    if known is None or time.monotonic() - known[0] >= RECHECK_SECONDS:
        known = _read[files] = time.monotonic(), _pages(files)
    for path, (file, last_modified) in known[1].items():
        yield Route(f"{prefix}/{path}", f"StaticFiles {file}", host=host, last_modified=last_modified)


def _pages(files: StaticFiles) -> dict[str, tuple[str, int]]:
    """File and modification time in POSIX seconds of each page, by its path below the mount."""
    pages: dict[str, tuple[str, int]] = {}
    for directory in map(Path, files.all_directories):
        for file in islice(_files(directory, follow_symlink=files.follow_symlink), MAX_FILES):
            path = _served_path(file.relative_to(directory).as_posix())
            if path is not None and path not in pages:
                with contextlib.suppress(OSError):  # deleted meanwhile, or a link to nothing
                    pages[path] = str(file), int(file.stat().st_mtime)
    return pages


def _files(top: Path, *, follow_symlink: bool) -> Iterator[Path]:
    """The files in a folder and below it, without hidden ones, linked folders, and links that are not followed."""
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in sorted(folders) if not name.startswith(".")]
        for file in (Path(folder, name) for name in files if not name.startswith(".")):
            if follow_symlink or not file.is_symlink():
                yield file


def _served_path(file: str) -> str | None:
    """The path below the mount that serves a file: that of the folder for index.html. None if it is not a page."""
    if not file.lower().endswith((".html", ".htm", ".xhtml")) or file == "404.html":
        return None
    folder, _, name = file.rpartition("/")
    if name != "index.html":
        return file
    return f"{folder}/" if folder else ""
