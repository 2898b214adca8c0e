"""What it takes to list the rows of a database by `@sitemap(values=...)`: memory, time, the event loop meanwhile.

`python -m benchmarks values [--items N]`. Each app runs in a real server with
one worker; its rows come from an SQLite file, by a generator (Flask) or from
aiosqlite's cursor by an async generator (Starlette).
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support import servers

from .tables import Table

ITEMS = 300_000
SHORT = {"items": 2_000}
ASYNC = "Starlette, aiosqlite (uvicorn)"
SERVED = {
    "Flask, a generator (gunicorn)": ("flask_app", ["gunicorn", "--threads", "4", "--bind", "127.0.0.1:{port}"]),
    ASYNC: ("starlette_app", ["uvicorn", "--port", "{port}"]),
}


def run(items: int = ITEMS) -> Iterator[Table]:
    table = Table(
        f"A sitemap of {items:,} items of values, made while the app answers",
        ["", "s", "items/s", "MB over idle", "loop late p50, ms", "p99.9", "most"],
        notes=[
            "From the first request for the sitemap to the first answer with it; memory: the most over idle.",
            "How late its event loop came back, of every 2 ms; idle in the second row.",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        posts = Path(folder, "posts.sqlite3")
        _make(posts, items)
        for label, (name, command) in SERVED.items():
            port = servers.free_port()
            command = [command[0], f"tests.apps.values_site:{name}", *(part.format(port=port) for part in command[1:])]
            env = {"POSTS": str(posts), "SITEMAP_STORE": f"sqlite:///{folder}/{name}.sqlite3"}
            with servers.serving(
                [*command, "--log-level", "warning"], Path(folder), port, env=env, ready="/used"
            ) as server:
                server.get("/begin")
                time.sleep(3)
                idle = json.loads(server.get("/used").body)
                server.get("/begin")
                began = time.monotonic()
                while (answer := server.get("/sitemap.xml")).status == 503:
                    time.sleep(0.05)
                seconds = time.monotonic() - began
                assert answer.status == 200, answer.text
                used = json.loads(server.get("/used").body)
            table.add(label, seconds, items / seconds, (used["kB"] - idle["kB"]) / 1024, *_late(used))
            table.add("  idle", "", "", "", *_late(idle))
    yield table


def _late(used: dict[str, float]) -> tuple[float | str, ...]:
    """How late the event loop was, if there is one."""
    return (used["p50"], used["p999"], used["most"]) if used["beats"] > 1 else ("", "", "")


def _make(file: Path, count: int) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, slug TEXT)")
        posts = ((number, f"a-post-with-a-readable-name-{number:08}") for number in range(count))
        connection.executemany("INSERT INTO post VALUES (?, ?)", posts)
