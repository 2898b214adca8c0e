"""Finds out when packages were installed.

The files of a package have the time of its installation, which says nothing about when their
content changed. Installers write all files of a package within moments, those of its
`.dist-info` folder included (pip writes them, uv links them from its cache). So the
times of a few metadata files stand for all files of a package.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

METADATA_FILES: Final = ("METADATA", "RECORD", "INSTALLER", "PKG-INFO")
"""Files of a metadata folder whose times are read."""

MAX_DISTRIBUTIONS: Final = 10_000
"""Distributions whose times are read, at most."""

_METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")


def install_times() -> frozenset[int]:
    """When the packages on `sys.path` were installed, in POSIX seconds."""
    entries: list[object] = [*sys.path]  # apps may put other objects there; Python ignores them
    return _install_times_in(tuple(dict.fromkeys(entry for entry in entries if isinstance(entry, str))))


@lru_cache(1)
def _install_times_in(folders: tuple[str, ...]) -> frozenset[int]:
    """The installation times of the distributions in these folders. They are read once."""
    times: set[int] = set()
    for _, folder in zip(range(MAX_DISTRIBUTIONS), _metadata_folders(folders), strict=False):
        for name in METADATA_FILES:
            with contextlib.suppress(OSError):
                times.add(int((folder / name).stat().st_mtime))
    return frozenset(times)


def _metadata_folders(folders: Iterable[str]) -> Iterator[Path]:
    for folder in map(Path, folders):
        try:
            children = sorted(folder.iterdir())
        except OSError:  # it does not exist, is not a folder, or there is no permission
            continue
        yield from (child for child in children if child.name.endswith(_METADATA_SUFFIXES))
