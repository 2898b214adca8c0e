"""A million URLs that a stranger made up: what is kept of them, in the store and in memory, has its bounds.

Below one route the app answers 404 to what is made up, below another, the worst that may be, 200 to anything, and some
paths have no route. Nothing of it is let go before it is folded.

`python3 tests --long tests/stores/test_many_paths.py` asks for a million of each store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path

import pytest

from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.placement import MAX_BLOCK_PAGES
from tests.stores.test_concurrent_workers import SHARED

from ..conftest import Tally
from ..support import postgres, strangers
from ..support.crowd import Worker
from ..support.redis_servers import PROGRAMS, shared

pytestmark = pytest.mark.uncovered

URLS: dict[str, Callable[[Path], str]] = {"memory": lambda _: "memory://", **SHARED}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells the memory that is used")
@pytest.mark.parametrize(
    ("count", "most", "growth"),
    [(3000, 300, 4), pytest.param(1_000_000, 100_000, 24, marks=pytest.mark.long)],
    ids=["some", "million"],
)
@pytest.mark.parametrize(("name", "protocol"), list(zip(URLS, cycle(["wsgi", "asgi"]), strict=False)))
def test_what_strangers_make_up_is_bounded(
    name: str, protocol: str, count: int, most: int, growth: int, tmp_path: Path, tally: Tally
) -> None:
    """In memory, by the megabytes by which a process grows in the second half of its way: all pages have long been there."""
    url = URLS[name](tmp_path)
    worker = Worker()
    worker.begin(strangers.asking, url, protocol, count, most)
    *looks, (_, stats) = list(iter(worker.heard, None))
    assert worker.end() == 0
    assert stats["dropped"] == 0, "each was folded"
    pages = len(strangers.GOOD) + most
    assert {listed for _, _, listed in looks[5:]} == {pages}
    half, end = looks[len(looks) // 2][1], looks[-1][1]
    tally.count(urls=count, pages=pages, kB_at_first=looks[0][1], kB_half_way=half, kB_at_the_end=end)
    assert end - half < growth * 1024
    if name != "memory":
        with closing(open_store(url, "store")) as store:
            assert sum(block.pages for block in store.blocks(strangers.BASE)) == pages
        each = 2 if name == "sqlite" else 1  # a page, and its mark
        assert kept(url, tmp_path) <= pages * each + pages // MAX_BLOCK_PAGES * 6 + 30


def kept(url: str, folder: Path) -> int:
    """Rows of all tables; of Redis, fields of all hashes."""
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
    keys = server.ask("KEYS", f"*{url.partition('prefix=')[2]}*")
    assert isinstance(keys, list)
    assert 0 < len(keys) <= 4
    return sum(int(str(server.ask("HLEN", key))) for key in keys)
