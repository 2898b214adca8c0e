"""Sites of very many pages, in real servers: every page once, for clients that others wrote, in little memory."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from pathlib import Path

import pytest

from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import PageLimits, Site
from sitemap_middleware.observe.ingest import save_observations
from sitemap_middleware.stores.sqlite import SQLiteStore
from tests.servers.test_sitemap_clients import read_by_lxml, read_by_ultimate_sitemap_parser

from ..support import servers
from ..support.documents import NS, locs, parsed
from ..support.waiting import until

pytestmark = pytest.mark.slow

MAX_KB_OVER_IDLE = 32 * 1024
"""kB above what the server has when idle: by far less than the pages would take."""


def create_database(file: Path, count: int) -> None:
    """The database, with so many posts."""
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, slug TEXT)")
        posts = ((number, f"a-post-with-a-readable-name-{number:08}") for number in range(count))
        connection.executemany("INSERT INTO post VALUES (?, ?)", posts)


def until_made(server: servers.Server) -> float:
    """Ask for the sitemap until it is there; the seconds that took."""
    began = time.monotonic()
    while (answer := server.get("/sitemap.xml")).status == 503:
        assert answer.header("retry-after") == "60"
        assert time.monotonic() < began + 3000
        time.sleep(0.2)
    assert answer.status == 200, answer.text
    return time.monotonic() - began


COUNTS = [55_000, pytest.param(5_000_000, marks=pytest.mark.long)]
SERVED = [("flask_app", ["gunicorn", "--threads", "4", "--bind"]), ("starlette_app", ["uvicorn", "--port"])]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads the peak memory from Linux's /proc")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("name", "command"), SERVED, ids=["flask", "starlette"])
def test_values_of_any_number_are_listed_once_in_little_memory(
    name: str, command: list[str], count: int, tmp_path: Path
) -> None:
    port = servers.free_port()
    env = {"POSTS": str(tmp_path / "posts.sqlite3"), "SITEMAP_STORE": f"sqlite:///{tmp_path}/kept.sqlite3"}
    create_database(tmp_path / "posts.sqlite3", count)
    where = f"127.0.0.1:{port}" if command[0] == "gunicorn" else str(port)
    command = [command[0], f"tests.apps.values_site:{name}", *command[1:], where, "--log-level", "warning"]
    with servers.serving(command, tmp_path, port, env=env, ready="/used") as server:
        idle = json.loads(server.get("/begin").body)
        seconds = until_made(server)
        used = json.loads(server.get("/used").body)
        print(f"\n{name}: {count} in {seconds:.1f} s, {used['kB'] - idle['kB']:.0f} kB over idle; {used}")
        base = f"http://127.0.0.1:{port}"
        listed = read_by_lxml(base, port, "gzip")
        expected = [f"{base}/posts/a-post-with-a-readable-name-{number:08}" for number in range(count)]
        assert list(listed) == expected, "in the provider's order"
        assert parsed(server.get("/sitemap.xml").body).tag == f"{NS}sitemapindex"
        if count < 1_000_000:
            assert read_by_ultimate_sitemap_parser(base, "gzip").keys() == set(expected)
        assert json.loads(server.get("/used").body)["kB"] - idle["kB"] < MAX_KB_OVER_IDLE
        assert used["p999"] < 500, "milliseconds: of a loop that does not stand still"


@pytest.mark.parametrize("count", [55_000, pytest.param(2_500_000, marks=pytest.mark.long)])
def test_learned_pages_of_any_number_are_all_listed_once(count: int, tmp_path: Path) -> None:
    port = servers.free_port()
    site = Site("http", f"127.0.0.1:{port}", loopback=True)
    now = int(time.time())
    with contextlib.closing(SQLiteStore(tmp_path / "vast.sqlite3")) as store:
        for start in range(0, count, 50_000):
            save_observations(
                store,
                site.store_key,
                [
                    Observation(f"/pages/{number}", "/pages/{number}", now, 200, "text/html", learned=True)
                    for number in range(start, min(start + 50_000, count))
                ],
                PageLimits(count, count),
            )
    command = ["uvicorn", "tests.apps.vast_site:app", "--port", str(port), "--log-level", "warning"]
    env = {"SITEMAP_STORE": f"sqlite:///{tmp_path}/vast.sqlite3"}
    with servers.serving(command, tmp_path, port, env=env) as server:
        parts = [f"{site.base_url}/sitemap-pages-{number}.xml" for number in range(1, -(-count // 10_000) + 1)]
        # The first answer may name only the parts that were rendered while it waited.
        until(lambda: locs(server.get("/sitemap.xml").body) == parts)
        expected = {f"{site.base_url}/pages/{number}" for number in range(count)}
        assert read_by_lxml(site.base_url, port, "gzip").keys() == expected
        assert read_by_ultimate_sitemap_parser(site.base_url, "gzip").keys() == expected
