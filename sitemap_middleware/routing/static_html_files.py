"""Reads the pages of `StaticFiles(html=True)`: its HTML files, dated by their modification times."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

from starlette.staticfiles import StaticFiles

from ..models import Route

MAX_FILES: Final = 50_000
"""Files and folders read of one mount. The rest are not listed before they are visited."""

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
    for directory in files.all_directories:
        for file, entry in _files(os.fspath(directory), files.follow_symlink):
            path = _served_path(file)
            if path is not None and path not in pages:
                with contextlib.suppress(OSError):  # deleted meanwhile
                    pages[path] = entry.path, int(entry.stat().st_mtime)
    return pages


def _files(top: str, follow_symlink: bool) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files in a folder and below it that StaticFiles serves, by path below the folder; hidden files are left out.

    Links that lead out of the folder count only if StaticFiles follows them. Each folder is read once.
    """
    real = os.path.realpath(top)
    folders, visited, count = [("", top)], {real}, 0
    while folders:
        below, folder = folders.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # it does not exist, or there is no permission to read it
            continue
        for entry in entries:
            count += 1
            if count > MAX_FILES:
                return
            try:
                is_file, is_folder, is_link = entry.is_file(), entry.is_dir(), entry.is_symlink()
            except OSError:  # a link to itself, or to a folder without permission
                continue
            target = os.path.realpath(entry.path) if is_folder or is_link else ""
            inside = not is_link or os.path.commonpath((target, real)) == real
            if entry.name.startswith(".") or not (inside or follow_symlink):
                continue
            if is_file:
                yield below + entry.name, entry
            elif is_folder and target not in visited and not (is_link and inside):
                visited.add(target)
                folders.append((f"{below}{entry.name}/", entry.path))


def _served_path(file: str) -> str | None:
    """The path below the mount that serves a file: that of the folder for index.html. None if it is not a page."""
    if not file.lower().endswith((".html", ".htm", ".xhtml")) or file == "404.html":
        return None
    folder, _, name = file.rpartition("/")
    if name != "index.html":
        return file
    return f"{folder}/" if folder else ""
