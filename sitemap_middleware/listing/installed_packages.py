"""When packages were installed: a file of theirs bears that time, which says nothing of what is in it.

Installers write a distribution's files within moments of each other, among them those of
its `.dist-info`: pip writes all of them anew, uv links them to a cache as old as its copy of the
rest. So the times of these few files are those of all.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

METADATA_FILES: Final = ("METADATA", "RECORD", "INSTALLER", "PKG-INFO")
"""Of the folder that describes a distribution, those whose times are looked at."""

MAX_DISTRIBUTIONS: Final = 10_000
"""Distributions that are looked at, at most."""

_METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")


def install_times() -> frozenset[int]:
    """The times at which the packages that can be imported were installed, in POSIX seconds."""
    entries: list[object] = [*sys.path]  # an app may put anything there; Python imports from strings alone
    return _install_times_in(tuple(dict.fromkeys(one for one in entries if isinstance(one, str))))


@lru_cache(1)
def _install_times_in(folders: tuple[str, ...]) -> frozenset[int]:
    """The times of the distributions in these folders: looked up once."""
    found: set[int] = set()
    for _, description in zip(range(MAX_DISTRIBUTIONS), _metadata_folders(folders), strict=False):
        for name in METADATA_FILES:
            with contextlib.suppress(OSError):
                found.add(int((description / name).stat().st_mtime))
    return frozenset(found)


def _metadata_folders(folders: Iterable[str]) -> Iterator[Path]:
    for folder in map(Path, folders):
        try:
            inside = sorted(folder.iterdir())
        except OSError:  # not there, no folder, or not ours to read
            continue
        yield from (one for one in inside if one.name.endswith(_METADATA_SUFFIXES))
