"""How long the report's pages take at a million pages: to the first byte, and to the last.

Learned pages in an SQLite file, and visits of crawlers to them. The pages were
evaluated before; how long that takes is measured too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import flask

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.report import background_evaluation
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from . import site
from .tables import Table

PAGES: Final = 1_000_000
ROUNDS: Final = 7
LIMIT_MS: Final = 50
SHORT: Final = {"pages": 300, "rounds": 1}
REPORT: Final = "/sitemap-report"

PATHS: Final = {
    "overview": "",
    "pages": "/pages",
    "pages, the newest dates first": "/pages?sort=date",
    "pages, from the middle on": "/pages?after=/posts/80000000",
    "pages that are left out": "/pages?show=left-out",
    "a search that finds": "/pages?q=readable",
    "a search that finds nothing": "/pages?q=nothing-like-it",
    "one page": "/page?path=",
    "changes": "/changes",
    "documents": "/documents",
    "crawlers": "/crawlers",
    "health": "/health",
    "the sitemap as a table": "/sitemap",
}


def run(pages: int = PAGES, rounds: int = ROUNDS) -> Iterator[Table]:
    """Measure each page of the report of a site of so many pages, so many times."""
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder, "report.sqlite3"))
        site.fill(store, pages)
        app = flask.Flask("report")
        app.add_url_rule(site.ROUTE, "post", lambda slug: slug)
        app.wsgi_app = SitemapMiddleware(  # type: ignore[method-assign] # as Flask's docs do
            app.wsgi_app, base_url=site.BASE, store=store, learn=site.ROUTE, robots=False, verify=False,
            report=REPORT, authorize=lambda _: True,
        )  # fmt: skip
        client = app.test_client()
        yield _measure(client, store, pages, rounds)
        app.wsgi_app.close()


def _measure(client: Any, store: Any, pages: int, rounds: int) -> Table:
    table = Table(
        f"Pages of the report, of a site of {pages:,} pages",
        ["", "ms to the first byte", "ms to the last", "kB"],
        notes=[f"At most {LIMIT_MS} ms to the first byte are wanted."],
    )
    background_evaluation.PAUSE_FACTOR = 0  # type: ignore[misc] # its pauses are for the app's own requests
    began = time.perf_counter()
    while b"being evaluated" in client.get(REPORT).data:
        time.sleep(0.2)
    seconds = time.perf_counter() - began
    path = store.pages(site.BASE)[0].path if pages < 10_000 else store.block(site.BASE, 1)[0].path
    for name, page in PATHS.items():
        first, last, size = zip(
            *(_request(client, page + path * page.endswith("=")) for _ in range(rounds)), strict=True
        )
        table.add(name, median(first) * 1000, median(last) * 1000, size[0] / 1000)
    table.notes.append(f"The pages were evaluated in {seconds:,.1f} s, without pauses.")
    return table


def _request(client: Any, page: str) -> tuple[float, float, int]:
    """Seconds to the first byte and to the last of a page, and its bytes."""
    began = time.perf_counter()
    answer = client.get(REPORT + page, buffered=False)
    body = answer.iter_encoded()
    size = len(next(body))
    first = time.perf_counter() - began
    size += sum(map(len, body))
    answer.close()
    assert answer.status_code == 200, page
    return first, time.perf_counter() - began, size
