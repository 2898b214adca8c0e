"""What it takes to import access logs: time and memory, by format.

`python -m benchmarks logs [--megabytes N]`. A log is written with requests of people and crawlers, and imported by the
command `import-log` into a new SQLite store.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from ipaddress import ip_network
from itertools import cycle
from pathlib import Path

from sitemap_middleware.crawlers.ip_address_ranges import pack_ranges
from sitemap_middleware.crawlers.known_crawlers import CRAWLERS
from sitemap_middleware.observation.verified_visit_counting import RANGES_OWNER, RANGES_RECORD
from sitemap_middleware.stores.sqlite.store import SQLiteStore
from tests.support.access_logs import BINGBOT, BROWSER, DIRECTIVES, GOOGLEBOT, WRITERS, Hit

from .tables import Table

MEGABYTES = 1024
SHORT = {"megabytes": 4}
BLOCK_MEGABYTES = 32
PAGES = 50_000
CRAWLER_SHARE = 0.2
"""Of the requests, those of crawlers."""
BEGAN = 1_764_000_000
CASES = (("combined", ""), ("nginx-json", ""), ("cloudfront", ".gz"))


def run(megabytes: int = MEGABYTES) -> Iterator[Table]:
    table = Table(
        f"{megabytes:,} MB of access log, imported into an SQLite store",
        ["", "lines", "s", "CPU s", "MB/s", "peak MB"],
        notes=[f"A fifth of the requests are of crawlers, for {PAGES:,} pages. MB of the lines, before compression."],
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, suffix in CASES:
            log = Path(folder, f"access-{name}.log{suffix}")
            size = _write(log, name, megabytes * 1_000_000)
            store = Path(folder, f"{name}.sqlite3")
            _save_ranges(store)
            command = [sys.executable, "-m", "sitemap_middleware", "import-log", str(log), "--json"]
            command += ["--store", f"sqlite:///{store}", "--base-url", "https://bakery.example", "--no-dns"]
            began = time.monotonic()
            with Path(folder, "result.json").open("w+") as out:
                process = subprocess.Popen(command, stdout=out)
                _, status, usage = os.wait4(process.pid, 0)
                seconds = time.monotonic() - began
                process.returncode = os.waitstatus_to_exitcode(status)
                out.seek(0)
                assert process.returncode == 0, out.read()
                (report,) = json.load(out)["files"]
            lines = report["lines"]
            assert lines["broken"] == 0 < lines["verified"], report
            used, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
            table.add(f"{name}{suffix}", sum(lines.values()), seconds, used, size / 1e6 / seconds, peak)
            log.unlink()
            store.unlink()
    yield table


def _save_ranges(file: Path) -> None:
    """Let the store have the ranges by which the crawlers of the log are verified."""
    store = SQLiteStore(file)
    ranges = {url: [ip_network("66.249.64.0/19")] for crawler in CRAWLERS for url in crawler.range_urls}
    store.save(RANGES_OWNER, {RANGES_RECORD: pack_ranges(ranges, BEGAN)})
    store.close()


def _write(file: Path, name: str, size: int) -> int:
    """Write a log of at least this size before compression; return its size."""
    block = _block(name, min(size, BLOCK_MEGABYTES * 1_000_000))
    written = 0
    with gzip.open(file, "wb", compresslevel=1) if file.suffix == ".gz" else file.open("wb") as out:
        out.write(DIRECTIVES.get(name, "").encode())
        for number in cycle(range(10)):
            # The year changes, so that no two blocks are alike.
            written += out.write(block.replace(b"2025", b"201%d" % number))
            if written >= size:
                return written
    raise AssertionError


def _block(name: str, size: int) -> bytes:
    chance, writer = random.Random(17), WRITERS[name]
    people = [BROWSER.replace("140", str(number)) for number in range(100, 140)]
    lines, written = [], 0
    while written < size:
        at, page = BEGAN + written // 1000, f"/posts/a-post-with-a-readable-name-{chance.randrange(PAGES)}"
        if chance.random() < CRAWLER_SHARE:
            agent = chance.choice((GOOGLEBOT, GOOGLEBOT, BINGBOT))
            hit = Hit(page, agent, f"66.249.66.{chance.randrange(256)}", chance.choice((200, 200, 304, 404)), at)
        else:
            address = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
            hit = Hit(page, chance.choice(people), address, 200, at)
        lines.append(f"{writer(hit)}\n".encode())
        written += len(lines[-1])
    return b"".join(lines)
