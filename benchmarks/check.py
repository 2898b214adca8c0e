"""The time and the memory that `sitemap-middleware check` takes for a sitemap on disk, without its pages.

`python -m benchmarks check [--entries N] [--rounds N]`. Each run is a process of its own. Its CPU time includes the
start of Python, as that of the command does, and leaves out what else the machine does.
"""

from __future__ import annotations

import asyncio
import gzip
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import separate_process
from .tables import Table

COUNT, ROUNDS = 50_000, 5
SHORT = {"entries": 200, "rounds": 1}
SITE = "https://example.com"
HEAD = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">\n'
LANGUAGES = ("en", "de", "fr", "es", "it")


def run(entries: int = COUNT, rounds: int = ROUNDS) -> Iterator[Table]:
    table = Table(
        f"A sitemap of {entries:,} URLs, checked without its pages",
        ["", "s", "CPU s", "URLs/CPU s", "MB at most", "messages"],
        notes=["Medians of whole processes. The first row is a sitemap of one URL."],
    )
    with tempfile.TemporaryDirectory() as folder:
        for label, make, count in (
            ("one URL", _ordinary, 1),
            ("loc, lastmod, changefreq, priority", _ordinary, entries),
            ("percent-encoded, with a query", _encoded, entries),
            ("index of 10 files, gzip", _index, entries),
            (f"{len(LANGUAGES)} languages, hreflang", _languages, entries),
            ("each URL faulty", _faulty, entries),
        ):
            file = make(Path(folder), count)
            measured = [separate_process.job(_check, str(file)) for _ in range(rounds)]
            seconds, cpu, bytes_, messages, urls = (statistics.median(column) for column in zip(*measured, strict=True))
            assert urls == count
            table.add(label, seconds, cpu, count / cpu, bytes_ / separate_process.MB, messages)
    yield table


def _check(file: str) -> tuple[float, float, int, int, int]:
    """Seconds, CPU seconds, bytes, messages and URLs of one check."""
    began = time.perf_counter()
    from sitemap_middleware.linter.file_source import FileSource
    from sitemap_middleware.linter.runner import Settings, check_sitemap

    result = asyncio.run(check_sitemap(FileSource(Path(file), f"{SITE}/{Path(file).name}"), Settings()))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = time.perf_counter() - began
    return (
        seconds,
        used.ru_utime + used.ru_stime,
        separate_process.memory("VmHWM"),
        sum(result.counts.values()),
        result.urls,
    )


def _write(file: Path, rows: Sequence[str]) -> Path:
    file.write_text(f"{HEAD}{''.join(rows)}</urlset>\n", "utf-8")
    return file


def _entry(number: int) -> str:
    return (
        f"<url><loc>{SITE}/section-{number % 37}/a-page-with-a-readable-name-{number}</loc>"
        f"<lastmod>2024-0{number % 9 + 1}-1{number % 10}T10:{number % 60:02}:00+00:00</lastmod>"
        f"<changefreq>daily</changefreq><priority>0.{number % 10}</priority></url>\n"
    )


def _rows(folder: Path, count: int, row: Callable[[int], str]) -> Path:
    return _write(folder / "sitemap.xml", [row(number) for number in range(count)])


def _ordinary(folder: Path, count: int) -> Path:
    return _rows(folder, count, _entry)


def _encoded(folder: Path, count: int) -> Path:
    return _rows(
        folder, count, lambda number: f"<url><loc>{SITE}/br%C3%B6tchen/{number}?kind=rye&amp;page=2</loc></url>\n"
    )


def _faulty(folder: Path, count: int) -> Path:
    return _rows(
        folder,
        count,
        lambda number: f"<url><loc>{SITE}/{number}?utm_source=a#b</loc><lastmod>{number}</lastmod></url>\n",
    )


def _index(folder: Path, count: int) -> Path:
    for part in range(10):
        rows = [_entry(number) for number in range(part, count, 10)]
        (folder / f"{part}.xml.gz").write_bytes(gzip.compress(f"{HEAD}{''.join(rows)}</urlset>".encode(), 1))
    names = "".join(f"<sitemap><loc>{SITE}/{part}.xml.gz</loc></sitemap>" for part in range(10))
    file = folder / "index.xml"
    file.write_text(
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{names}</sitemapindex>', "utf-8"
    )
    return file


def _languages(folder: Path, count: int) -> Path:
    def row(number: int) -> str:
        page = number // len(LANGUAGES)
        links = "".join(
            f'<xhtml:link rel="alternate" hreflang="{code}" href="{SITE}/{code}/{page}"/>' for code in LANGUAGES
        )
        return f"<url><loc>{SITE}/{LANGUAGES[number % len(LANGUAGES)]}/{page}</loc>{links}</url>\n"

    return _rows(folder, count, row)
