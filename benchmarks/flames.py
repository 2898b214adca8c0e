"""`python -m benchmarks.flames values now.svg`: a flame graph of how a sitemap of 50,000 entries is made.

`values` and `rows` are the variants of the benchmark `generation` of these names. py-spy samples all threads of a
process that makes the sitemap again and again for some seconds. To draw an older state, give `--of` a checkout of it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 8
RATE: Final = 200
"""Samples a second."""
MIN_PERCENT: Final = 2.0
"""The width of the narrowest frame that is drawn."""
_FRAME: Final = re.compile(r"<g><title>[^<]*, ([0-9.]+)%\)</title>.*?</g>\s*", re.DOTALL)

_TITLE: Final = re.compile(">py-spy record [^<]*<")
"""The command of py-spy, with the paths of this machine."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flames", description="Draw a flame graph.")
    parser.add_argument("variant", choices=["values", "rows"])
    parser.add_argument("file", type=Path, help="the SVG to write")
    parser.add_argument(
        "--of", type=Path, default=Path.cwd(), metavar="FOLDER", help="the checkout to measure (this one)"
    )
    parser.add_argument("--entries", type=int, default=50_000)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        _make(arguments.variant, arguments.entries, arguments.seconds)
        return
    command = [sys.executable, __file__, arguments.variant, arguments.file, "--make"]
    command += ["--entries", str(arguments.entries), "--seconds", str(arguments.seconds)]
    spy = ["py-spy", "record", "--output", arguments.file, "--rate", str(RATE), "--function", "--gil", "--"]
    subprocess.run([*spy, *map(str, command)], env={**os.environ, "PYTHONPATH": str(arguments.of)}, check=True)
    drawn = arguments.file.read_text("utf-8")
    titled = _TITLE.sub(f">A sitemap of {arguments.entries:,} entries, {arguments.variant}<", drawn)
    for folder in (arguments.of.resolve(), Path(__file__).resolve().parents[1]):
        titled = titled.replace(f"{folder}/", "")
    arguments.file.write_text(_FRAME.sub(_if_wide, titled), "utf-8")


def _if_wide(frame: re.Match[str]) -> str:
    """A frame, unless it is too narrow to read: most are, and take most of the file."""
    return frame[0] if float(frame[1]) >= MIN_PERCENT else ""


def _make(variant: str, entries: int, seconds: int) -> None:
    """Make documents for so many seconds."""
    from benchmarks import generation, peers, site
    from sitemap_middleware.stores.sqlite.store import SQLiteStore

    with tempfile.TemporaryDirectory() as folder:
        before: Callable[[], Any] = int
        if variant == "values":
            document: Callable[[], Any] = partial(generation.from_values, generation.app_of(peers.posts(entries)))
        else:
            file = Path(folder, "sitemap.sqlite3")
            store = SQLiteStore(file)
            site.fill(store, entries)
            store.close()
            before = partial(generation.clear, file)
            document = partial(generation.from_store, file)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            before()
            document()


if __name__ == "__main__":
    main()
