"""The time and the memory that `sitemap-middleware check` takes for a sitemap on disk, without its pages."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import separate_process
from .tables import Table

SHORT = {"pages": 200}
SITE = "https://example.com"
HEAD = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">\n'
LANGUAGES = ("en", "de", "fr", "es", "it")


def run(pages: int = 50_000) -> Iterator[Table]:
    table = Table(
        f"A sitemap of {pages:,} URLs, checked without its pages",
        ["", "s", "CPU s", "URLs/CPU s", "MB at most"],
        notes=["Whole processes. The first row is a sitemap of one URL."],
    )
    with tempfile.TemporaryDirectory() as folder:
        for label, row, count in (
            ("one URL", _ordinary, 1),
            ("loc, lastmod, changefreq, priority", _ordinary, pages),
            (f"{len(LANGUAGES)} languages, hreflang", _languages, pages),
            ("each URL faulty", _faulty, pages),
        ):
            file = _write(Path(folder, "sitemap.xml"), row, range(count))
            table.add(label, *separate_process.job(_measured, file, count))
        index = _index(Path(folder), pages)
        table.add("index of 10 files, gzip", *separate_process.job(_measured, index, pages))
    yield table


def _measured(file: Path, count: int) -> tuple[float, float, float, float]:
    """In a small process: the most memory of a child is at least that of its parent."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "sitemap_middleware", "check", str(file), "--base-url", SITE, "--fail-on", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), f"check ended with {process.returncode}"
    cpu = used.ru_utime + used.ru_stime
    return time.perf_counter() - began, cpu, count / cpu, used.ru_maxrss / 1024


def _write(file: Path, row: Callable[[int], str], numbers: range) -> Path:
    file.write_text(f"{HEAD}{''.join(map(row, numbers))}</urlset>\n", "utf-8")
    return file


def _ordinary(number: int) -> str:
    return (
        f"<url><loc>{SITE}/section-{number % 37}/a-page-with-a-readable-name-{number}</loc>"
        f"<lastmod>2024-0{number % 9 + 1}-1{number % 10}T10:{number % 60:02}:00+00:00</lastmod>"
        f"<changefreq>daily</changefreq><priority>0.{number % 10}</priority></url>\n"
    )


def _faulty(number: int) -> str:
    return f"<url><loc>{SITE}/{number}?utm_source=a#b</loc><lastmod>{number}</lastmod></url>\n"


def _languages(number: int) -> str:
    page = number // len(LANGUAGES)
    links = "".join(
        f'<xhtml:link rel="alternate" hreflang="{code}" href="{SITE}/{code}/{page}"/>' for code in LANGUAGES
    )
    return f"<url><loc>{SITE}/{LANGUAGES[number % len(LANGUAGES)]}/{page}</loc>{links}</url>\n"


def _index(folder: Path, count: int) -> Path:
    for part in range(10):
        file = _write(folder / f"{part}.xml", _ordinary, range(part, count, 10))
        file.with_suffix(".xml.gz").write_bytes(gzip.compress(file.read_bytes(), 1))
    names = "".join(f"<sitemap><loc>{SITE}/{part}.xml.gz</loc></sitemap>" for part in range(10))
    file = folder / "index.xml"
    file.write_text(
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{names}</sitemapindex>', "utf-8"
    )
    return file
