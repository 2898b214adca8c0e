"""A temporary folder for the lines that are read. It is private, and deleted soon, because the lines have addresses."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PREFIX: Final = "sitemap-import-"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder that other users cannot read. First, those of processes that were killed are deleted."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or in use
            # An empty one may be so new that its process has not locked it yet.
            if any(folder.iterdir()):
                with _locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name, _locked(Path(name)):
        yield Path(name)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, for as long as the process lives at most. Raises `OSError` if another process has it locked."""
    if sys.platform == "win32":
        yield  # a folder with an open file cannot be deleted there
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
