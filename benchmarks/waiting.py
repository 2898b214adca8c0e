"""How long a page waits while a crawler takes the sitemap of 200,000 learned pages, none of which was rendered before.

The app runs in uvicorn, in one process. One client requests a page every few milliseconds. Another one requests the
sitemap and then each of its documents, until all are there.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from sitemap_middleware.stores.sqlite.store import SQLiteStore
from tests.support import servers

from . import site
from .faults import KeptAliveClient, serving
from .tables import Table

PAGES: Final = 200_000
ROUNDS: Final = 3
SECONDS: Final = 5.0
"""How long the idle app is measured."""
PAUSE_SECONDS: Final = 0.003
"""Between two requests for a page."""
SHORT: Final = {"pages": 200, "rounds": 1, "seconds": 0.5}
TITLE: Final = "A page of a uvicorn app"
RENDERING, IDLE = "while pages are rendered", "idle"

Figures = tuple[float, float, float]


def run(pages: int = PAGES, rounds: int = ROUNDS, seconds: float = SECONDS) -> Iterator[Table]:
    table = Table(
        f"{TITLE}, while a sitemap of {pages:,} pages is rendered",
        ["", "p50, ms", "p99, ms", "p99.9, ms"],
        notes=[
            "Wall-clock time, because waiting counts; it includes other work on the machine. Medians over rounds,",
            "each with a server of its own. A thread keeps the interpreter for 5 ms each time that another one asks.",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "store.sqlite3")
        _fill(file, pages)
        found: dict[str, list[Figures]] = {RENDERING: [], IDLE: []}
        for _ in range(rounds):
            site.clear(file)
            with serving(f"sqlite:///{file}", Path(folder)) as port:
                KeptAliveClient(port).get("/")
                found[IDLE].append(_page_times(port, lambda: time.sleep(seconds)))
                found[RENDERING].append(_page_times(port, lambda: _take_all(port)))
    for name, figures in found.items():
        table.add(name, *map(median, zip(*figures, strict=True)))
    yield table


def _fill(file: Path, pages: int) -> None:
    store, now = SQLiteStore(file), int(time.time())
    for start in range(0, pages, site.BATCH):
        numbers = range(start, min(start + site.BATCH, pages))
        site.merge(store, (site.seen(number, now - site.DAY)._replace(route="/posts/{slug}") for number in numbers))
    store.close()


def _page_times(port: int, act: Callable[[], object]) -> Figures:
    """The milliseconds that a page took while something was done: p50, p99, p99.9."""
    over, times = threading.Event(), list[float]()

    def request() -> None:
        client = KeptAliveClient(port)
        while not over.wait(PAUSE_SECONDS):
            times.append(client.get("/") * 1e3)

    requesting = threading.Thread(target=request)
    requesting.start()
    act()
    over.set()
    requesting.join()
    ordered = quantiles(times, n=1000, method="inclusive")
    return ordered[499], ordered[989], ordered[998]


def _take_all(port: int) -> None:
    """Request the sitemap and all its documents, until each is answered."""
    index = _take(port, site.SITEMAP)
    for loc in re.findall(r"<sitemap><loc>([^<]+)", index):
        _take(port, loc.removeprefix(site.BASE))


def _take(port: int, path: str) -> str:
    for _ in range(site.MAX_ATTEMPTS):
        answer = servers.get(port, path, {"Host": site.HOST})
        if answer.status == 200:
            return answer.text
        assert answer.status == 503, answer.text
        time.sleep(0.1)
    raise site.Unanswered(f"{path} was answered 503")
