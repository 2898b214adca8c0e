"""What a sitemap of ten thousand pages takes, of a million, of ten million: learned pages in an SQLite file.

Everything is done through the store and through requests, as it is in use, each
kind of work in a process of its own, whose memory is watched. Times are the
CPU's, but where one request is waited for. The pages come in no order of their
paths, and each has a date and a content of its own.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Final

from sitemap_middleware.sitemap_limits_and_value_checks import MAX_URLS_PER_DOCUMENT
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from . import separate_process, site
from .tables import Table

PAGES: Final = (10_000, 100_000, 1_000_000)
AGAIN: Final = 1_000_000
"""Pages, at most, that are seen again: a tenth of them with a change."""
IN_MEMORY: Final = 1_000_000
"""Pages, at most, that are kept in memory."""
ROUNDS: Final = 5
ENTRIES: Final = 50_000
SHORT: Final = {"pages": (100,), "entries": 50, "rounds": 2}
"""Pages of Django's document."""

Figures = dict[str, float]


def run(
    pages: Collection[int] = PAGES, keep: Path | None = None, entries: int = ENTRIES, rounds: int = ROUNDS
) -> Iterator[Table]:
    """Measure sites of so many pages.

    Args:
        pages: how many, of each site.
        keep: a folder in which stores that were filled are kept for the next time.
        entries: pages of Django's document.
        rounds: how many first requests, and changes, the medians are of.
    """
    django = separate_process.job(_django, entries)
    results = {}
    for many in sorted(pages):
        with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
            results[many] = _figures(Path(folder), many, rounds) | {"Django": django * many}
    yield _merging(results)
    yield _rendering(results, entries)
    yield _requests(results)
    yield _memory(results)


# Tables


def _merging(results: Mapping[int, Figures]) -> Table:
    table = Table(
        "Merging observations into the store, in batches of 10,000",
        [
            "pages",
            "new/s",
            "new/s, by the clock",
            "changed or seen again/s",
            "unchanged/s",
            "bytes/page",
            "rendered, bytes/page",
        ],
        notes=["A tenth of those seen again has changed. What is unchanged writes nothing: that is checked."],
    )
    for many, figures in results.items():
        table.add(
            f"{many:,}",
            figures["new"],
            figures["new by the clock"],
            figures["again"],
            figures["unchanged"],
            figures["bytes"],
            figures["kept"],
        )
    return table


def _rendering(results: Mapping[int, Figures], entries: int) -> Table:
    table = Table(
        "All documents, gzipped: CPU time",
        [
            "pages",
            "from rows, s",
            "from what is rendered, s",
            "from rows, µs a page",
            "beside the size before",
            "from what is rendered, µs a page",
            "beside it",
            "Django, s",
            "/ from rows",
            "/ from what is rendered",
        ],
        notes=[f"Django's time is that of documents of {entries:,}, as many times as it takes; it does not compress."],
    )
    before: Figures = {}
    for many, figures in results.items():
        cells: list[float | str] = [figures["render"], figures["serve"]]
        for kind in ("render", "serve"):
            each = figures[kind] / many
            cells += [each * 1e6, each / before[kind] if before else ""]
        table.add(
            f"{many:,}",
            *cells,
            figures["Django"],
            figures["Django"] / figures["render"],
            figures["Django"] / figures["serve"],
        )
        before = {kind: figures[kind] / many for kind in ("render", "serve")}
    return table


def _requests(results: Mapping[int, Figures]) -> Table:
    table = Table(
        "One request for the sitemap, by the clock",
        ["pages", "first of a process, ms", "after one change, ms", "slowest, ms", "when nothing changed, ms"],
        notes=["Medians. The first comes to a process that has just started, and has the package imported."],
    )
    for many, figures in results.items():
        table.add(f"{many:,}", *(figures[name] * 1e3 for name in ("first", "change", "slowest", "calm")))
    return table


def _memory(results: Mapping[int, Figures]) -> Table:
    table = Table(
        "Memory over that of the idle process",
        ["pages", "merging, MB", "rendering, MB", "serving, MB", "after one change, MB", "memory://, bytes/page"],
        notes=[
            "At most. Documents are taken part by part, and the client keeps nothing of them.",
            f"Merging holds a batch of {site.BATCH:,} observations; in use it is what two seconds bring.",
        ],
    )
    for many, figures in results.items():
        spent = [figures[f"{name} memory"] / separate_process.MB for name in ("merge", "render", "serve", "change")]
        table.add(f"{many:,}", *spent, figures["in memory"])
    return table


# Measuring


def _figures(folder: Path, pages: int, rounds: int) -> Figures:
    folder.mkdir(parents=True, exist_ok=True)
    file, figures_file = folder / f"{pages}.sqlite3", folder / f"{pages}.json"
    if not figures_file.exists():
        for old in folder.glob(f"{file.name}*"):
            old.unlink()
        figures_file.write_text(json.dumps(separate_process.job(_merge, file, pages)), "utf-8")
    figures: Figures = json.loads(figures_file.read_text("utf-8"))
    site.clear(file)
    figures |= separate_process.job(_render, file, pages)
    figures["kept"] = file.stat().st_size / pages
    figures |= separate_process.job(_serve, file, pages)
    figures["first"] = median(separate_process.job(_first, file) for _ in range(rounds))
    figures |= separate_process.job(_change, file, pages, rounds)
    figures["in memory"] = separate_process.job(_in_memory, min(pages, IN_MEMORY))
    return figures


def _merge(file: Path, pages: int) -> Figures:
    now = int(time.time())
    store = SQLiteStore(file)
    with separate_process.resident() as extra:
        new, clock = _merge_timed(store, range(pages), now - 2 * site.DAY)
        again, _ = _merge_timed(store, range(min(pages, AGAIN)), now - site.DAY, every=10)
    for start in range(0, min(pages, AGAIN), site.BATCH):  # what has changed counts once it was seen twice
        site.merge(
            store,
            (site.seen(number, now - site.DAY + 60, 1) for number in range(start, min(start + site.BATCH, pages), 10)),
        )
    before = store.version(site.BASE)
    unchanged, _ = _merge_timed(store, range(min(pages, AGAIN)), now - site.DAY + 120, every=10, changes=False)
    assert store.version(site.BASE) == before, "what is unchanged was written"
    store.close()
    return {
        "new": new,
        "new by the clock": clock,
        "again": again,
        "unchanged": unchanged,
        "bytes": file.stat().st_size / pages,
        "merge memory": extra.at_most,
    }


def _merge_timed(
    store: SQLiteStore, numbers: range, at: int, *, every: int = 0, changes: bool = True
) -> tuple[float, float]:
    """Merge pages; return how many a second, by CPU time and by the clock. One in `every` has a new content."""
    taken = clock = 0.0
    for start in range(0, len(numbers), site.BATCH):
        some = numbers[start : start + site.BATCH]
        batch = [site.seen(number, at, int(every > 0 and number % every == 0)) for number in some]
        begun, began = time.process_time(), time.perf_counter()
        changed = site.merge(store, batch)
        taken += time.process_time() - begun
        clock += time.perf_counter() - began
        assert changed == (len(batch) if changes else 0), f"{changed} of {len(batch)} were new or changed"
    return len(numbers) / taken, len(numbers) / clock


def _render(file: Path, pages: int) -> Figures:
    _warm()
    with separate_process.resident() as extra:
        seconds = _all(file, pages)
    return {"render": seconds, "render memory": extra.at_most}


def _serve(file: Path, pages: int) -> Figures:
    _warm()
    with separate_process.resident() as extra:
        seconds = _all(file, pages)
    return {"serve": seconds, "serve memory": extra.at_most}


def _all(file: Path, pages: int) -> float:
    """CPU seconds until the sitemap and all its documents were taken."""
    begun = time.process_time()
    middleware = site.wrapped(f"sqlite:///{file}")
    paths = site.documents(middleware)
    assert len(paths) == -(-pages // MAX_URLS_PER_DOCUMENT), f"{len(paths)} documents hold {pages} pages"
    for path in paths:
        site.read_document(middleware, path)
    middleware.close()
    return time.process_time() - begun


def _first(file: Path) -> float:
    return _clocked(lambda: site.read_document(site.wrapped(f"sqlite:///{file}")))


def _change(file: Path, pages: int, rounds: int) -> Figures:
    _warm()
    store = SQLiteStore(file)
    middleware = site.wrapped(f"sqlite:///{file}")
    site.read_document(middleware)
    calm = [_clocked(lambda: site.read_document(middleware)) for _ in range(rounds)]
    changed = []
    with separate_process.resident() as extra:
        for number in range(rounds):
            edition = int(time.time()) + number
            before = middleware.service.store.version(site.BASE)
            site.merge(store, [site.seen(number * (pages // rounds), edition, edition % 10**6)])
            assert middleware.service.store.version(site.BASE) > before, "nothing has changed"
            middleware.flush()  # without it, what others have written shows within a second
            changed.append(_clocked(lambda: site.read_document(middleware)))
    middleware.close()
    store.close()
    return {
        "calm": median(calm),
        "change": median(changed),
        "slowest": max(changed),
        "change memory": extra.at_most,
    }


def _clocked(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _warm() -> None:
    """Have everything imported and made that is when it is first used."""
    store = MemoryStore()
    site.fill(store, 100)
    site.read_document(site.wrapped(store))


def _in_memory(pages: int) -> float:
    """Bytes a page that a store in memory takes."""
    _warm()
    store = MemoryStore()
    with separate_process.resident() as extra:
        _merge_timed(store, range(pages), int(time.time()) - site.DAY)
    return extra.at_end / pages


def _django(pages: int) -> float:
    """CPU seconds a page."""
    from .peers import peers, posts

    document = peers(posts(pages))["Django"]
    document()
    taken = []
    for _ in range(3):
        begun = time.process_time()
        document()
        taken.append(time.process_time() - begun)
    return median(taken) / pages
