"""What a sitemap of ten thousand learned pages takes, of a hundred thousand, of a million: time, memory, file.

The pages are in an SQLite file. Each kind of work is done in a process of its own, through requests, as in use.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sitemap_middleware.stores.base import PART_PAGES

from . import separate_process
from .separate_process import MB
from .site import DAY, LearnedSite
from .tables import Table

PAGES = (10_000, 100_000, 1_000_000)
SHORT = {"pages": 100}


def run(pages: int | Sequence[int] = PAGES) -> Iterator[Table]:
    table = Table(
        "Learned pages in an SQLite file",
        [
            "pages",
            "learned/s",
            "file, bytes/page",
            "first sitemap, s",
            "ready: first of a process, ms",
            "ready, ms",
            "after one edit, ms",
            "learning, MB",
            "rendering, MB",
        ],
        notes=[
            "learned/s: by CPU time, visits and their evaluation. First sitemap: all documents, in a process that has",
            "just started. Ready: nothing has changed. MB: the most over the idle process.",
        ],
    )
    for many in [pages] if isinstance(pages, int) else pages:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "sitemap.sqlite3")
            learned, learning = separate_process.job(_learn, file, many)
            size = file.stat().st_size / many
            whole, rendering = separate_process.job(_render, file, many)
            first, ready, edited = separate_process.job(_requests, file, many)
            table.add(
                f"{many:,}", learned, size, whole, first * 1e3, ready * 1e3, edited * 1e3, learning / MB, rendering / MB
            )
    yield table


def _opened(file: Path, pages: int) -> LearnedSite:
    site = LearnedSite(f"sqlite:///{file}", pages)
    site.now += 2 * DAY
    return site


def _warm() -> None:
    """Have everything imported and made that is when it is first used."""
    site = LearnedSite("memory://", 100)
    site.learn()
    site.read()
    site.middleware.close()


def _learn(file: Path, pages: int) -> tuple[float, int]:
    _warm()
    site = LearnedSite(f"sqlite:///{file}", pages)
    began = time.process_time()
    with separate_process.resident() as extra:
        site.learn()
    seconds = time.process_time() - began
    site.middleware.close()
    return 2 * pages / seconds, extra.at_most


def _render(file: Path, pages: int) -> tuple[float, int]:
    _warm()
    site = _opened(file, pages)
    began = time.perf_counter()
    with separate_process.resident() as extra:
        while len(site.documents()) * PART_PAGES < pages:  # a large site is rendered in the background
            time.sleep(0.1)
        urls = site.read()
    assert urls == pages, f"{urls} URLs of {pages} pages"
    seconds = time.perf_counter() - began
    site.middleware.close()
    return seconds, extra.at_most


def _requests(file: Path, pages: int) -> tuple[float, float, float]:
    site = _opened(file, pages)
    first = _clocked(site)
    ready = min(_clocked(site) for _ in range(20))
    site.edit(pages // 2)
    site.visit([pages // 2])
    site.now += 2  # what others have stored is looked for once a second
    edited = _clocked(site)
    site.middleware.close()
    return first, ready, edited


def _clocked(site: LearnedSite) -> float:
    began = time.perf_counter()
    site.documents()
    return time.perf_counter() - began
