"""Workers that share a store leave in it what one process would have made of the same observations.

Eight processes merge random traffic, with changes, disorder and duplicates; some are
killed during a merge. Each batch has a marker page: it is stored if the batch is, and its
slot shows the order of the batches. So an oracle can merge the same batches one after the
other, in one process and without a store. Every acknowledged batch must be stored, none
may be stored in part, and nothing else may be there.

`python3 tests --long tests/stores/test_concurrent_workers.py` runs each test 200 times. A
failure names its seed; `SEED=n` runs that one alone.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random, getrandbits
from typing import NamedTuple

import pytest

from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import Page, PageLimits
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import UNLIMITED, Block, Store
from sitemap_middleware.stores.merge_batch_into_pages import BatchMerger
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ..conftest import Tally
from ..support import postgres, traffic
from ..support.redis_servers import PROGRAMS, shared
from ..support.sample_sites import Clock
from ..support.traffic import BATCHES, BEGAN, FIRST, KNOWN, REFRESH_SECONDS, WORKERS
from ..support.wire import Answer, RequestSpec, wsgi
from ..support.worker_pool import Batch, Worker, WorkerPool, WorkLog

SHARED: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/shared.sqlite3",
    "postgresql": lambda _: postgres.server().fresh(),
}


def _in_redis(program: str) -> Callable[[Path], str]:
    return lambda folder: f"{shared(program).url}?prefix={folder}"


SHARED |= {program: _in_redis(program) for program in PROGRAMS}


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return SHARED[request.param](tmp_path)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(WORKERS)
    yield pool
    pool.end()


RUNS = pytest.mark.parametrize("times", [1, pytest.param(200, marks=pytest.mark.long)])


def seeds(times: int) -> Iterator[int]:
    """Return the same seeds for every long run, new ones for short runs."""
    if seed := os.environ.get("SEED"):
        return iter([int(seed)])
    return iter(range(times) if times > 10 else [getrandbits(32) for _ in range(times)])


# The oracle


def merged_in_one_process(batches: Iterable[list[Observation]], limits: PageLimits) -> dict[str, Page]:
    """Return the pages after merging the batches one after the other."""
    pages: dict[str, Page] = {}
    for batch in batches:
        counts = Counter(page.route for page in pages.values() if page.learned)
        pages |= {page.path: page for page in list(BatchMerger(counts, limits).merge(pages.get, batch))}
    return pages


def merged_in_order_of_time(batches: Iterable[list[Observation]]) -> dict[str, Page]:
    """Return the pages after merging all observations in the order in which they happened."""
    pages: dict[str, Page] = {}
    for seen in sorted((seen for batch in batches for seen in batch), key=lambda seen: seen.at):
        pages[seen.path] = merge(pages.get(seen.path), seen)
    return pages


class StoredSite(NamedTuple):
    """Everything a store holds of a site."""

    pages: list[Page]
    blocks: list[Block]
    pages_of_block: dict[int, list[Page]]


def stored_site(store: Store, site: str) -> StoredSite:
    """Read a site once no write is under way: a server may still process a merge of a killed worker."""
    while True:
        version = store.version(site)
        blocks = store.blocks(site)
        stored = StoredSite(
            store.pages(site), blocks, {block.number: store.block(site, block.number) for block in blocks}
        )
        if store.version(site) == version:
            assert max(block.version for block in blocks) == version
            return stored


def stored_batches(stored: StoredSite, log: WorkLog) -> list[Batch]:
    """Return the stored batches in the order of their merges. Assert that every acknowledged one is there."""
    batches = {traffic.marker_path(batch): batch for batch in (FIRST, *log.started)}
    paths_found = [
        batches[page.path] for pages in stored.pages_of_block.values() for page in pages if page.path in batches
    ]
    assert len(paths_found) == len(set(paths_found))
    assert {FIRST, *log.done} <= set(paths_found) <= {FIRST, *log.done, *log.interrupted}
    return paths_found


def assert_result_of(stored: StoredSite, site: str, batches: list[list[Observation]], limits: PageLimits) -> None:
    """The store holds exactly what these batches give, in the same slots."""
    pages = merged_in_one_process(batches, limits)
    assert stored.pages == [pages[path] for path in sorted(pages)]
    with closing(MemoryStore()) as alone:
        for batch in batches:
            alone.merge(site, batch, limits)
        expected = stored_site(alone, site)
    assert [block._replace(version=0) for block in stored.blocks] == [
        block._replace(version=0) for block in expected.blocks
    ]
    assert stored.pages_of_block == expected.pages_of_block


def assert_same_in_order_of_time(stored: StoredSite, batches: list[list[Observation]]) -> None:
    expected = merged_in_order_of_time(batches)
    assert stored.pages == [expected[path] for path in sorted(expected)]


@contextmanager
def naming_seed(seed: int, url: str) -> Iterator[None]:
    """Add the seed to the error of a failed run."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"SEED={seed}, in {url}")
        raise


def add_to_tally(tally: Tally, seed: int, log: WorkLog, stored: list[Batch]) -> None:
    tally.count(
        seed,
        runs=1,
        batches=len(stored),
        kills=log.kills,
        kills_during_merge=len(log.interrupted),
        of_these_stored=len(log.interrupted.intersection(stored)),
        merges_refused=log.failures,
    )


# Observations


@RUNS
@pytest.mark.parametrize("kind", traffic.KINDS)
def test_concurrent_merges_equal_those_of_one_process(
    kind: str, times: int, url: str, pool: WorkerPool, tally: Tally
) -> None:
    with closing(open_store(url, "store")) as store:
        for seed in seeds(times):
            with naming_seed(seed, url):
                site, limits, seen = (
                    traffic.site_of(seed),
                    traffic.limits_of(kind, seed),
                    traffic.observations(kind, seed),
                )
                first_content = [*map(traffic.good_observation, KNOWN), traffic.marker_observation(FIRST)]
                store.merge(site, first_content, limits)
                log = pool.run(traffic.merge_batches, (url, kind, seed), BATCHES, Random(seed))
                stored = stored_site(store, site)
                first, *others = order = stored_batches(stored, log)
                assert first == FIRST
                merged = [first_content, *([*seen[batch[:2]], traffic.marker_observation(batch)] for batch in others)]
                assert_result_of(stored, site, merged, limits)
                if kind == "order-independent":
                    assert_same_in_order_of_time(stored, merged)
                add_to_tally(tally, seed, log, order)


# Killed during a write


@pytest.mark.parametrize("times", [3, pytest.param(200, marks=pytest.mark.long)])
def test_sigkill_loses_no_acknowledged_batch_and_leaves_none_half_written(
    times: int, url: str, tally: Tally, tmp_path: Path
) -> None:
    random, counts = Random(times), {}
    with closing(open_store(url, "store")) as store:
        for number in range(times):
            site = traffic.site_of(number)
            worker = Worker()
            worker.start(traffic.write_endlessly, url, site)
            messages = [worker.receive() for _ in range(2 * random.randint(1, 4))]
            time.sleep(random.uniform(0, 0.005))  # any moment: the assertions must always hold
            messages += worker.kill()
            done = sum(message[0] == "done" for message in messages)
            started = sum(message[0] == "started" for message in messages)
            assert done + started == len(messages)
            counts[site] = done, started
            batches_stored = _assert_complete(store, site, done, started)
            if url.startswith("sqlite"):
                with closing(sqlite3.connect(tmp_path / "shared.sqlite3")) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            tally.count(kills=1, batches=done, kills_during_merge=started - done, of_these_stored=batches_stored - done)
        for site, (done, started) in counts.items():
            _assert_complete(store, site, done, started)  # later kills must not change it


def _assert_complete(store: Store, site: str, done: int, started: int) -> int:
    """Return how many batches are stored: all that are done, and perhaps the last one that was started."""
    stored = stored_site(store, site)
    batches_stored = sum(page.path.startswith("/marks/") for page in stored.pages)
    assert batches_stored in (done, started)
    assert_result_of(stored, site, list(map(traffic.batch_content, range(batches_stored))), UNLIMITED)
    return batches_stored


# Visits


@RUNS
def test_many_middlewares_build_the_sitemap_of_a_single_process(
    times: int, url: str, pool: WorkerPool, tally: Tally
) -> None:
    """From requests through buffer and store to the documents of a worker that saw no request."""
    with closing(open_store(url, "store")) as store:
        for seed in seeds(times):
            with naming_seed(seed, url):
                site = traffic.site_of(seed)
                first_content = traffic.first_batch(seed, store)
                log = pool.run(traffic.visit_in_batches, (url, seed), BATCHES, Random(seed))
                stored = stored_site(store, site)
                first, *others = order = stored_batches(stored, log)
                assert first == FIRST
                merged = [first_content, *(log.started[batch] for batch in others)]
                assert_result_of(stored, site, merged, UNLIMITED)
                assert_same_in_order_of_time(stored, merged)
                with closing(MemoryStore()) as alone:
                    for batch in merged:
                        alone.merge(site, batch)
                    assert sitemap(seed, store) == sitemap(seed, alone)
                add_to_tally(tally, seed, log, order)


def sitemap(seed: int, store: Store) -> list[Answer]:
    """Return the documents of a process that saw no request."""
    app = traffic.wrapped(seed, store, Clock(BEGAN + 20 * REFRESH_SECONDS))
    names = ["/sitemap.xml", "/sitemap-routes-1.xml", "/sitemap-pages-1.xml"]
    answers = [wsgi(app, RequestSpec(name, scheme="https")) for name in names]
    assert answers[0].status == 200
    return answers
