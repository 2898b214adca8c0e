"""Routes of `StaticFiles(html=True)`: its HTML files are pages, dated by their modification time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from starlette.staticfiles import StaticFiles

from ..models import Route
from .change_detector import ChangeDetector

MAX_FILES: Final = 50_000
"""Files and folders looked at in one mount; more than that are a job for an enumeration."""


def html_files(files: StaticFiles, witness: ChangeDetector, prefix: str, host: str | None) -> Iterator[Route]:
    """The pages that a StaticFiles app serves, by the URL that serves them; none unless it is in HTML mode."""
    if not files.html:
        return
    witness.mark_unknown()  # files come and go, and change
    found: dict[str, os.DirEntry[str]] = {}
    for directory in files.all_directories:
        for file, entry in _files(os.fspath(directory), files.follow_symlink):
            path = _served_path(file)
            if path is not None:
                found.setdefault(path, entry)
    for path, entry in found.items():
        try:
            modified = int(entry.stat().st_mtime)
        except OSError:  # it is gone by now
            continue
        yield Route(f"{prefix}/{path}", f"StaticFiles {entry.path}", host=host, modified=modified)


def _files(top: str, follow_symlink: bool) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files of a folder and those below it that StaticFiles would serve, by name below the top; none hidden.

    Links out of the folder count only where StaticFiles follows them. A folder
    that is reached a second time, by a link, holds no new page.
    """
    real = os.path.realpath(top)
    waiting, visited, looked = [("", top)], {real}, 0
    while waiting:
        below, folder = waiting.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # not there, not yet, or not ours to read
            continue
        for entry in entries:
            looked += 1
            if looked > MAX_FILES:
                return
            try:
                is_file, is_folder, is_link = entry.is_file(), entry.is_dir(), entry.is_symlink()
            except OSError:  # a link to itself, or to where we may not look
                continue
            target = os.path.realpath(entry.path) if is_folder or is_link else ""
            inside = not is_link or os.path.commonpath((target, real)) == real
            if entry.name.startswith(".") or not (inside or follow_symlink):
                continue
            if is_file:
                yield below + entry.name, entry
            elif is_folder and target not in visited and not (is_link and inside):
                visited.add(target)
                waiting.append((f"{below}{entry.name}/", entry.path))


def _served_path(file: str) -> str | None:
    """The path below the mount that serves a file: a folder's own for its index.html, none for what is no page."""
    if not file.lower().endswith((".html", ".htm", ".xhtml")) or file == "404.html":
        return None
    folder, _, name = file.rpartition("/")
    if name != "index.html":
        return file
    return f"{folder}/" if folder else ""
