"""A million made-up URLs use limited room in the store and in memory.

Below one route the app answers 404, below another, the worst case, 200 to anything; some
paths have no route. No observation is dropped before it is merged.

`python3 tests --long tests/stores/test_many_paths.py` requests a million URLs for each store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path

import pytest

from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.permanent_page_slots import MAX_BLOCK_PAGES
from tests.stores.test_concurrent_workers import SHARED

from ..conftest import Tally
from ..support import postgres, url_flood
from ..support.redis_servers import PROGRAMS, shared
from ..support.worker_pool import Worker

pytestmark = pytest.mark.uncovered

URLS: dict[str, Callable[[Path], str]] = {"memory": lambda _: "memory://", **SHARED}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory in use")
@pytest.mark.parametrize(
    ("count", "limit", "growth"),
    [(3000, 300, 4), pytest.param(1_000_000, 100_000, 24, marks=pytest.mark.long)],
    ids=["some", "million"],
)
@pytest.mark.parametrize(("name", "protocol"), list(zip(URLS, cycle(["wsgi", "asgi"]), strict=False)))
def test_made_up_urls_use_limited_room(
    name: str, protocol: str, count: int, limit: int, growth: int, tmp_path: Path, tally: Tally
) -> None:
    """Memory is measured by the growth during the second half, when the number of pages is constant."""
    url = URLS[name](tmp_path)
    worker = Worker()
    worker.start(url_flood.request_made_up_urls, url, protocol, count, limit)
    *reports, (_, stats) = list(iter(worker.receive, None))
    assert worker.end() == 0
    assert stats["dropped"] == 0, "each was merged"
    pages = len(url_flood.PAGES) + limit
    assert {listed for _, _, listed in reports[5:]} == {pages}
    half, end = reports[len(reports) // 2][1], reports[-1][1]
    tally.count(urls=count, pages=pages, kB_at_first=reports[0][1], kB_half_way=half, kB_at_the_end=end)
    assert end - half < growth * 1024
    if name != "memory":
        with closing(open_store(url, "store")) as store:
            assert sum(block.pages for block in store.blocks(url_flood.BASE)) == pages
        each = 2 if name == "sqlite" else 1  # a page and its hash
        assert stored_rows(url, tmp_path) <= pages * each + pages // MAX_BLOCK_PAGES * 6 + 30


def stored_rows(url: str, folder: Path) -> int:
    """Return the number of rows in all tables; in Redis, of fields in all hashes."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(folder / "shared.sqlite3")) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for (table,) in tables)
    if url.startswith("postgresql"):
        schema = url.partition("schema=")[2]
        with postgres.server().connected() as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
            rows = [connection.execute(f'SELECT count(*) FROM "{schema}"."{table}"').fetchone() for (table,) in tables]
            return sum(row[0] for row in rows if row)
    server = next(shared(program) for program in PROGRAMS if url.startswith(shared(program).url))
    keys = server.request("KEYS", f"*{url.partition('prefix=')[2]}*")
    assert isinstance(keys, list)
    assert 0 < len(keys) <= 4
    return sum(int(str(server.request("HLEN", key))) for key in keys)
