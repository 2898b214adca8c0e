"""A crowd that shares a store leaves in it what one process would have made of the same observations.

Eight processes fold random traffic, with changes, disorder and duplicates, and
some of them are killed as they fold. Each fold brings a page of its own, a mark: whether
that is in the store tells whether the fold is, and its place, after which others. So an oracle can
fold the same batches one after the other, in one process and without a store. Nothing that was told to be folded may
be missing, nothing may be there in part, and nothing else may be there at all.

`python3 tests --long tests/stores/test_concurrent_workers.py` runs each 200 times; a seed that fails is named, and `SEED=n` runs it alone.
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

from sitemap_middleware.evidence.merge import merge
from sitemap_middleware.models import Page, PageLimits
from sitemap_middleware.observations import Observation
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import UNLIMITED, Block, Store
from sitemap_middleware.stores.batch_merge import BatchMerger
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ..conftest import Tally
from ..support import postgres, traffic
from ..support.crowd import Batch, Crowd, Told, Worker
from ..support.redis_servers import PROGRAMS, shared
from ..support.traffic import BATCHES, BEGAN, FIRST, KNOWN, REFRESH_SECONDS, WORKERS
from ..support.twins import Clock
from ..support.wire import Answer, Ask, wsgi

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
def crowd() -> Iterator[Crowd]:
    crowd = Crowd(WORKERS)
    yield crowd
    crowd.end()


TIMES = pytest.mark.parametrize("times", [1, pytest.param(200, marks=pytest.mark.long)])


def seeds(times: int) -> Iterator[int]:
    """In a long run always the same ones, else others each time."""
    if one := os.environ.get("SEED"):
        return iter([int(one)])
    return iter(range(times) if times > 10 else [getrandbits(32) for _ in range(times)])


# The oracle


def in_one_process(batches: Iterable[list[Observation]], caps: PageLimits) -> dict[str, Page]:
    """What comes of these, folded one after the other."""
    pages: dict[str, Page] = {}
    for batch in batches:
        counts = Counter(page.route for page in pages.values() if page.learned)
        pages |= {page.path: page for page in list(BatchMerger(counts, caps).merge(pages.get, batch))}
    return pages


def in_order_of_time(batches: Iterable[list[Observation]]) -> dict[str, Page]:
    """What all of it comes to for who sees each thing as it happens."""
    pages: dict[str, Page] = {}
    for one in sorted((one for batch in batches for one in batch), key=lambda one: one.at):
        pages[one.path] = merge(pages.get(one.path), one)
    return pages


class Kept(NamedTuple):
    """All that a store has of a site."""

    pages: list[Page]
    blocks: list[Block]
    of_block: dict[int, list[Page]]


def kept_of(store: Store, site: str) -> Kept:
    """At a moment when nobody writes: a server may have a fold before it still of a process that is dead."""
    while True:
        version = store.version(site)
        blocks = store.blocks(site)
        kept = Kept(store.pages(site), blocks, {one.number: store.block(site, one.number) for one in blocks})
        if store.version(site) == version:
            assert max(block.version for block in blocks) == version
            return kept


def committed(kept: Kept, told: Told) -> list[Batch]:
    """The batches that are kept, in the order in which they came there: none is missing that was told of."""
    batches = {traffic.mark(batch): batch for batch in (FIRST, *told.begun)}
    found = [batches[page.path] for pages in kept.of_block.values() for page in pages if page.path in batches]
    assert len(found) == len(set(found))
    assert {FIRST, *told.done} <= set(found) <= {FIRST, *told.done, *told.in_midst}
    return found


def assert_comes_of(kept: Kept, site: str, batches: list[list[Observation]], caps: PageLimits) -> None:
    """What is kept is what comes of these batches, to the last bit, and in the same places."""
    pages = in_one_process(batches, caps)
    assert kept.pages == [pages[path] for path in sorted(pages)]
    with closing(MemoryStore()) as alone:
        for batch in batches:
            alone.merge(site, batch, caps)
        of_one = kept_of(alone, site)
    assert [block._replace(version=0) for block in kept.blocks] == [one._replace(version=0) for one in of_one.blocks]
    assert kept.of_block == of_one.of_block


def assert_as_in_order_of_time(kept: Kept, batches: list[list[Observation]]) -> None:
    expected = in_order_of_time(batches)
    assert kept.pages == [expected[path] for path in sorted(expected)]


@contextmanager
def named(seed: int, url: str) -> Iterator[None]:
    """Have the seed be told where a run fails."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"SEED={seed}, in {url}")
        raise


def count(tally: Tally, seed: int, told: Told, kept: list[Batch]) -> None:
    tally.count(
        seed,
        runs=1,
        folds=len(kept),
        kills=told.killed,
        kills_in_mid_fold=len(told.in_midst),
        of_these_kept=len(told.in_midst.intersection(kept)),
        folds_refused=told.failed,
    )


# Observations


@TIMES
@pytest.mark.parametrize("kind", traffic.KINDS)
def test_what_a_crowd_folds_is_what_one_process_makes_of_it(
    kind: str, times: int, url: str, crowd: Crowd, tally: Tally
) -> None:
    with closing(open_store(url, "store")) as store:
        for seed in seeds(times):
            with named(seed, url):
                site, caps, seen = traffic.site_of(seed), traffic.caps_of(kind, seed), traffic.observations(kind, seed)
                begin = [*map(traffic.good, KNOWN), traffic.marked(FIRST)]
                store.merge(site, begin, caps)
                told = crowd.work(traffic.folding, (url, kind, seed), BATCHES, Random(seed))
                kept = kept_of(store, site)
                first, *others = order = committed(kept, told)
                assert first == FIRST
                folded = [begin, *([*seen[batch[:2]], traffic.marked(batch)] for batch in others)]
                assert_comes_of(kept, site, folded, caps)
                if kind == "orderless":
                    assert_as_in_order_of_time(kept, folded)
                count(tally, seed, told, order)


# Death in mid-write


@pytest.mark.parametrize("times", [3, pytest.param(200, marks=pytest.mark.long)])
def test_sigkill_loses_no_acknowledged_batch_and_leaves_none_half_written(
    times: int, url: str, tally: Tally, tmp_path: Path
) -> None:
    random, lives = Random(times), {}
    with closing(open_store(url, "store")) as store:
        for life in range(times):
            site = traffic.site_of(life)
            worker = Worker()
            worker.begin(traffic.writing, url, site)
            words = [worker.heard() for _ in range(2 * random.randint(1, 4))]
            time.sleep(random.uniform(0, 0.005))  # whenever: what is looked for must hold at every moment
            words += worker.kill()
            done = sum(word[0] == "done" for word in words)
            begun = sum(word[0] == "begins" for word in words)
            assert done + begun == len(words)
            lives[site] = done, begun
            folds = _assert_whole(store, site, done, begun)
            if url.startswith("sqlite"):
                with closing(sqlite3.connect(tmp_path / "shared.sqlite3")) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            tally.count(kills=1, folds=done, kills_in_mid_fold=begun - done, of_these_kept=folds - done)
        for site, (done, begun) in lives.items():
            _assert_whole(store, site, done, begun)  # as others died, too


def _assert_whole(store: Store, site: str, done: int, begun: int) -> int:
    """How many folds are kept: all that are done, and the one that was begun, or not."""
    kept = kept_of(store, site)
    folds = sum(page.path.startswith("/marks/") for page in kept.pages)
    assert folds in (done, begun)
    assert_comes_of(kept, site, list(map(traffic.written, range(folds))), UNLIMITED)
    return folds


# Visits


@TIMES
def test_many_middlewares_build_the_sitemap_of_a_single_process(
    times: int, url: str, crowd: Crowd, tally: Tally
) -> None:
    """The whole way: requests, recorder, store, and the documents that a worker makes which saw nothing of it."""
    with closing(open_store(url, "store")) as store:
        for seed in seeds(times):
            with named(seed, url):
                site = traffic.site_of(seed)
                begin = traffic.begun(seed, store)
                told = crowd.work(traffic.visiting, (url, seed), BATCHES, Random(seed))
                kept = kept_of(store, site)
                first, *others = order = committed(kept, told)
                assert first == FIRST
                folded = [begin, *(told.begun[batch] for batch in others)]
                assert_comes_of(kept, site, folded, UNLIMITED)
                assert_as_in_order_of_time(kept, folded)
                with closing(MemoryStore()) as alone:
                    for batch in folded:
                        alone.merge(site, batch)
                    assert sitemap(seed, store) == sitemap(seed, alone)
                count(tally, seed, told, order)


def sitemap(seed: int, store: Store) -> list[Answer]:
    """The documents that a process makes which saw nothing itself."""
    app = traffic.wrapped(seed, store, Clock(BEGAN + 20 * REFRESH_SECONDS))
    names = ["/sitemap.xml", "/sitemap-routes-1.xml", "/sitemap-pages-1.xml"]
    answers = [wsgi(app, Ask(name, scheme="https")) for name in names]
    assert answers[0].status == 200
    return answers
