"""The cost of merging observations into each store, beside a plain table or hash of pages.

Batches of observations are merged, each of a different page. The store evaluates them,
counts them against the limits, places the pages in blocks, and writes them with the
site's version and the changed blocks. First all pages are new; then each has new
content and a new date. A batch has 1,000 observations, as a busy site sends in two
seconds, or 10,000, the capacity of the buffer.

Each rival keeps pages by path, with a column or field for each value. It runs twice:
once it reads the pages, merges by the same code and writes the result, without blocks,
limits or counts; and once it writes rows that are ready. All take turns, batch by
batch, on the same machine; a ratio compares two batches of one turn. Seconds are wall
time, because a server's work counts too.

It also measures the space that pages take in PostgreSQL and Redis: after they were seen
once, and after they were seen again unchanged, hours later, so that each was rewritten.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Final

from sitemap_middleware.evidence.observation_merge import merge_if_changed
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.store_status import store_status

from . import plain_stores, separate_process, site
from .alternating_timing import Rounds
from .tables import Table

BATCHES: Final = {1_000: 40, 10_000: 10}
"""Measured batches of each kind, by size."""
ON_DISK: Final = 20_000
"""Pages that are kept in each engine to see how much each takes there, at most."""
CROWD: Final = 500
"""Pages of each batch of these."""
AGAIN: Final = 3
"""Times that they are seen again."""
IN_MEMORY: Final = 300_000
SHORT: Final = {"pages": (20,), "rounds": 2, "items": 2_000}
"""Pages that are kept in memory to see how much each takes."""

NEW: Final = 1_700_000_000
CHANGED: Final = NEW + site.DAY
KINDS: Final = ("new", "changed")

Engine = Callable[[], AbstractContextManager[plain_stores.Trio]]

ENGINES: Final[Mapping[str, Engine]] = {
    "SQLite, beside SQLAlchemy Core's upsert": plain_stores.sqlite,
    "PostgreSQL, beside psycopg's executemany of an upsert": plain_stores.postgresql,
    "Redis, beside a pipelined HSET for each page": plain_stores.redis,
    "memory://, beside a dict of pages": plain_stores.memory,
}


def run(pages: Collection[int] = tuple(BATCHES), rounds: int | None = None, items: int = IN_MEMORY) -> Iterator[Table]:
    """Measure all four, and the room that pages take.

    Args:
        pages: how many there are in a batch, of each size.
        rounds: how many batches of each size and kind.
        items: pages that are kept in memory to see how much each takes.
    """
    for title, engine in ENGINES.items():
        table = Table(
            f"{title}: pages a second",
            [
                "",
                "merged",
                "plainly merged",
                "times",
                "from",
                "to",
                "plainly written",
                "times writing",
                "from writing",
                "to writing",
            ],
        )
        for size in pages:
            measured = measure(engine, size, rounds or BATCHES.get(size, 20))
            for kind in KINDS:
                cells: list[float | str] = [size / measured.of(f"{kind} ours").middle]
                for other in ("merges", "writes"):
                    ratio = measured.ratio(f"{kind} {other}", f"{kind} ours")
                    rate = size / measured.of(f"{kind} {other}").middle
                    cells += [rate, ratio.middle, ratio.low, ratio.high]
                table.add(f"{kind}, batches of {size:,}", *cells)
        yield table
    count = min(items, ON_DISK)
    table = Table(
        "Room, bytes a page", ["", "seen once", "and again"], notes=[f"Of {count:,} pages, with all indexes."]
    )
    for name, engine in ENGINES.items():
        if engine in (plain_stores.postgresql, plain_stores.redis):  # of a file of SQLite, `scale` tells
            table.add(name.partition(",")[0], *_room(engine, count))
    yield table
    table = Table("Memory, bytes a page", ["", "bytes", "times"], notes=[f"Of {items:,} pages that were seen once."])
    ours, plain = separate_process.job(_growth_with_store, items), separate_process.job(_growth_with_objects, items)
    table.add("memory://", ours, 1.0)
    table.add("a dict of pages", plain, plain / ours)
    yield table


def measure(engine: Engine, size: int, batches: int) -> Rounds:
    """The seconds of each batch, merged by the store, merged by its rival, and written by its rival."""
    seconds: dict[str, list[float]] = {}
    with engine() as (store, merging_rival, writing_rival):
        for kind, number in ((kind, number) for kind in KINDS for number in range(-1, batches)):
            numbers = range(number * size, (number + 1) * size)
            seen = [_seen(page, kind) for page in numbers]
            rows = writing_rival.rows(
                [merge_if_changed(merge_if_changed(None, _seen(page, "new")), _seen(page, kind)) for page in numbers]
            )
            work: dict[str, Callable[[], object]] = {
                f"{kind} ours": lambda seen=seen: site.merge(store, seen),
                f"{kind} merges": lambda seen=seen: plain_stores.merge(merging_rival, seen),
                f"{kind} writes": lambda rows=rows: writing_rival.write(rows),
            }
            for name in _turned(list(work), number):
                gc.collect()
                begun = time.perf_counter()
                work[name]()
                if number >= 0:  # the first batch is a warm-up
                    seconds.setdefault(name, []).append(time.perf_counter() - begun)
    return Rounds(seconds)


def _seen(number: int, kind: str) -> Observation:
    return site.seen(number, NEW) if kind == "new" else site.seen(number, CHANGED, 1)


def _turned(names: Sequence[str], by: int) -> Iterable[str]:
    """The same in another order each time."""
    by %= len(names)
    return chain(names[by:], names[:by])


def _room(engine: Engine, pages: int) -> Iterator[float]:
    """Bytes a page in an engine, once all were seen, and once they were seen again."""
    with engine() as (store, _, _):
        for times in range(1 + AGAIN):
            for start in range(0, pages, CROWD):
                numbers = range(start, min(start + CROWD, pages))
                site.merge(store, [site.seen(number, NEW + times * 2 * site.HOUR) for number in numbers])
            if times in (0, AGAIN):
                yield (store_status(store, NEW).size or 0) / pages


def _growth_with_store(pages: int) -> float:
    """Bytes a page of a store in memory."""
    store = MemoryStore()
    return _grown(pages, lambda seen: site.merge(store, seen))


def _growth_with_objects(pages: int) -> float:
    """Bytes a page of a dict of them."""
    with plain_stores.memory() as (_, rival, _):
        return _grown(pages, lambda seen: plain_stores.merge(rival, seen))


def _grown(pages: int, work: Callable[[list[Observation]], object]) -> float:
    work([_seen(-1, "new")])
    with separate_process.resident() as extra:
        for start in range(0, pages, site.BATCH):
            work([_seen(number, "new") for number in range(start, min(start + site.BATCH, pages))])
    return extra.at_end / pages
