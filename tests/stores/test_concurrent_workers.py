"""Processes that share a store leave in it what one process would have made of the same observations, also if killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from sitemap_middleware.evidence.merge import merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import Page, StoreKey
from sitemap_middleware.observe.ingest import save_observations
from sitemap_middleware.stores import Store, open_store

from ..support import postgres
from ..support.redis_servers import shared

SITE = StoreKey("https://example.com")
WORKERS, BATCHES, HOUR = 2, 8, 3600

SHARED: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/shared.sqlite3",
    "postgresql": lambda _: postgres.server().fresh(),
    "redis": lambda folder: f"{shared('redis').url}?prefix={folder}",
}


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return SHARED[request.param](tmp_path)


def batch_of(seed: int, worker: int, number: int) -> list[Observation]:
    """Some observations of pages that all workers see, and one page that shows whether the batch is stored."""
    random = Random(f"{seed} {worker} {number}")
    seen = [
        Observation(
            path=f"/posts/{random.randrange(30)}",
            route="/posts/<slug>",
            at=HOUR * random.randrange(1, 10_000),  # no two at one time, or an hour apart, so that each counts
            status=200,
            media_type="text/html",
            last_modified=random.choice([None, 10**9, 10**9 + 1]),
            is_read=True,
            learned=True,
            is_probe=True,
        )
        for _ in range(10)
    ]
    return [*seen, Observation(f"/marks/{worker}/{number}", "/marks", HOUR, 200, "text/html")]


def stored_pages(store: Store) -> dict[str, Page]:
    while True:
        version = store.version(SITE)
        pages = {page.path: page for number in store.parts(SITE) for page in store.part(SITE, number)}
        if store.version(SITE) == version:  # else a server was still at work for a killed process
            return pages


def start(url: str, seed: int, worker: int, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __name__, url, str(seed), str(worker), str(batches)]
    folder = Path(__file__).parents[2]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": "."}
    )


def test_workers_leave_what_one_would_have_left(url: str) -> None:
    seed = int.from_bytes(os.urandom(4))
    workers = [start(url, seed, worker, BATCHES) for worker in range(WORKERS)]
    for worker in workers:
        out, _ = worker.communicate(timeout=60)
        assert len(out.splitlines()) == BATCHES, f"{seed=}"
    batches = [batch_of(seed, worker, number) for worker in range(WORKERS) for number in range(BATCHES)]
    expected: dict[str, Page] = {}
    for seen in sorted((seen for batch in batches for seen in batch), key=lambda seen: seen.at):
        expected[seen.path] = merge(expected.get(seen.path), seen)
    with closing(open_store(url, "store")) as store:
        stored = stored_pages(store)
        assert stored.keys() == expected.keys(), f"{seed=}"
        for path, page in stored.items():
            assert page[:4] == expected[path][:4], f"{seed=}"
        assert sum(part.pages for part in store.parts(SITE).values()) == len(stored)


def test_a_killed_process_leaves_whole_batches_and_all_that_were_acknowledged(url: str) -> None:
    after = 3
    worker = start(url, after, 0, 10_000)
    assert worker.stdout is not None
    acknowledged = [json.loads(worker.stdout.readline()) for _ in range(after)]
    worker.send_signal(signal.SIGKILL)
    with worker.stdout:  # not `communicate`, which loses what `readline` has read ahead
        acknowledged += map(json.loads, worker.stdout.read().splitlines())
    worker.wait(10)
    with closing(open_store(url, "store")) as store:
        stored = stored_pages(store)
        marks = sorted(int(path.rpartition("/")[2]) for path in stored if path.startswith("/marks/"))
        assert marks == list(range(len(marks)))
        assert len(acknowledged) <= len(marks) <= len(acknowledged) + 1
        batches = [batch_of(after, 0, number) for number in marks]
        assert stored.keys() == {seen.path for batch in batches for seen in batch}
        assert store.write(SITE, store.version(SITE), {"/marks/0/0": None}) == set(), "it can be written to"


def work(url: str, seed: int, worker: int, batches: int) -> None:
    store = open_store(url, "store")
    for number in range(batches):
        save_observations(store, SITE, batch_of(seed, worker, number))
        print(json.dumps(number), flush=True)


if __name__ == "__main__":
    work(sys.argv[1], *map(int, sys.argv[2:]))
