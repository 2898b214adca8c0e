"""The time and the memory that a document of 50,000 entries takes, beside the peers given the same 50,000 pages.

Ours is measured at every distance from what is served: from chunks that are
ready in an SQLite file, as after a restart; from the rows of learned pages,
each of which is evaluated and dated; from the entries that
an app enumerates; and from the same Python objects that the peers are given.
Each of ours ends with the whole gzipped document; the peers do not compress.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from zlib import decompressobj

import flask
from isal import igzip

from sitemap_middleware import Entry, SitemapMiddleware, sitemap
from sitemap_middleware.dates import w3c
from sitemap_middleware.evidence.own_slug_in_content import forms_of_pair
from sitemap_middleware.models import SitemapUrl, UrlColumns
from sitemap_middleware.rendering import concatenable_deflate
from sitemap_middleware.rendering.chunked_document import Chunk, urlset
from sitemap_middleware.rendering.chunking import CHUNK_ENTRIES, make_chunks
from sitemap_middleware.rendering.xml import URLSET_FRAME, render_urls
from sitemap_middleware.stores.permanent_page_slots import MAX_BLOCK_PAGES
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from . import alternating_timing, separate_process, site, starlette_values
from .tables import Table

ROUNDS, COUNT = 7, 50_000
SHORT = {"entries": 10, "rounds": 2}
READY, ROWS, VALUES = "ours, ready in the store", "ours, from the store's rows", "ours, values of the app"
STARLETTE_VALUES = "ours, values of a Starlette app"
ISAL, ZLIB = "ours, the objects, isal", "ours, the objects, zlib"
OURS = (READY, ROWS, VALUES, ISAL, ZLIB)


def run(entries: int = COUNT, rounds: int = ROUNDS) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sitemap.sqlite3")
        store = SQLiteStore(file)
        site.fill(store, entries)
        store.close()
        yield _documents(entries, rounds, file)
        yield _republished(entries, rounds, file)
        yield _memory(entries, file)


# One document, whole


def _documents(entries: int, rounds: int, file: Path) -> Table:
    from .peers import peers

    posts = _posts(entries)
    ours = {
        READY: partial(from_store, file),
        ROWS: partial(from_store, file),
        VALUES: partial(from_values, app_of(posts)),
        STARLETTE_VALUES: partial(starlette_values.document, starlette_values.app(posts)),
        ISAL: partial(_from_objects, posts, concatenable_deflate.compress_with_isal),
        ZLIB: partial(_from_objects, posts, concatenable_deflate.compress_with_zlib),
    }
    theirs = peers(posts)
    written = {name: _inflated(make) for name, make in ours.items()} | theirs
    for name, document in written.items():
        written_entries = document().count(b"<loc>https://example.com/posts/")
        assert written_entries == entries, f"{name} wrote {written_entries} entries"
    plain = written[ZLIB]()
    packing = {
        "gzip by zlib, level 6": lambda: gzip.compress(plain, 6),
        "gzip by isal, level 2": lambda: igzip.compress(plain, 2),
    }
    variants = {**ours, **theirs, **packing}
    timed = alternating_timing.rounds(
        {name: _times(document) for name, document in variants.items()}, rounds, 0, {ROWS: partial(clear, file)}
    )
    table = Table(
        f"A document of {entries:,} entries, with lastmod and priority",
        ["", "ms", "from", "to", *(f"/ {name.removeprefix('ours, ')}" for name in OURS)],
        notes=[
            "Ours end with the gzipped document. The peers do not compress: what gzip adds to them is below.",
            "From the store: a middleware that was just made, a connection that was just opened, one request.",
            "No peer had to be adapted.",
        ],
    )
    for name in variants:
        taken = timed.of(name)
        table.add(
            name,
            taken.middle * 1e3,
            taken.low * 1e3,
            taken.high * 1e3,
            *(timed.ratio(name, ours).middle for ours in OURS),
        )
    return table


def _times(document: Callable[[], object]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            document()

    return run


def _inflated(document: Callable[[], Any]) -> Callable[[], bytes]:
    return lambda: decompressobj(31).decompress(b"".join(document()))


def _posts(entries: int) -> list[Any]:
    from .peers import posts

    return posts(entries)


def clear(file: Path) -> None:
    """Forget all that is not a page: what the store keeps, and what this process remembers."""
    site.clear(file)
    forms_of_pair.cache_clear()


def from_store(file: Path) -> list[bytes]:
    """The sitemap of the pages in a store, as a new process makes it."""
    middleware = site.wrapped(f"sqlite:///{file}")
    document = list(site.send_request(middleware))
    middleware.close()
    return document


def app_of(posts: Sequence[Any]) -> flask.Flask:
    """An app that enumerates its posts, as its database would give them."""
    app = flask.Flask(__name__)

    @app.get("/posts/<slug>")
    @sitemap(
        values=lambda: (Entry({"slug": item.slug}, lastmod=item.changed, priority=item.priority) for item in posts)
    )
    def post(slug: str) -> str:
        return slug

    return app


def from_values(app: flask.Flask) -> list[bytes]:
    """The sitemap of an app's `values`, as a new process makes it."""
    middleware = SitemapMiddleware(app.wsgi_app, base_url=site.BASE, store="memory://", verify=False)
    document = list(site.send_request(middleware))
    middleware.close()
    return document


def _from_objects(posts: Sequence[Any], by: Callable[[bytes], bytes]) -> list[bytes]:
    with _compressing(by):
        batches = (_columns(posts[start : start + CHUNK_ENTRIES]) for start in range(0, len(posts), CHUNK_ENTRIES))
        return list(urlset(list(make_chunks(batches))).gzipped())


def _columns(posts: Sequence[Any]) -> UrlColumns:
    """Entries as the items of a provider become them."""
    return UrlColumns(
        [site.BASE + post.path for post in posts],
        [w3c(post.changed) for post in posts],
        [None] * len(posts),
        [post.priority for post in posts],
    )


def _entries(posts: Sequence[Any]) -> Iterator[SitemapUrl]:
    return (SitemapUrl(site.BASE + post.path, w3c(post.changed), priority=post.priority) for post in posts)


@contextmanager
def _compressing(by: Callable[[bytes], bytes]) -> Iterator[None]:
    """Compress chunks with this function, even if a faster one is installed."""
    fastest, concatenable_deflate.fastest_compressor = concatenable_deflate.fastest_compressor, lambda: by  # type: ignore[assignment] # a cached function
    try:
        yield
    finally:
        concatenable_deflate.fastest_compressor = fastest


# One page changed


def _republished(entries: int, rounds: int, file: Path) -> Table:
    posts = _posts(entries)
    living = shutil.copy(file, file.with_suffix(".living"))
    store = SQLiteStore(living)
    middleware = site.wrapped(f"sqlite:///{living}")
    site.read_document(middleware)
    numbers = count()

    def change() -> None:
        number = next(numbers) * MAX_BLOCK_PAGES % entries
        site.merge(store, [site.seen(number, int(middleware.service.clock()) - site.HOUR, 2 + next(numbers))])
        middleware.flush()  # without it, what others have written shows within a second

    variants: dict[str, Callable[[], object]] = {}
    for name, by, compress_all in (
        ("zlib", concatenable_deflate.compress_with_zlib, partial(gzip.compress, compresslevel=6)),
        ("isal", concatenable_deflate.compress_with_isal, partial(igzip.compress, compresslevel=2)),
    ):
        with _compressing(by):
            chunks = list(make_chunks([UrlColumns.of([*_entries(posts)])]))
        variants[f"all is written and gzipped, {name}"] = partial(_render_all, posts, compress_all)
        variants[f"one chunk is written, {name}"] = partial(_render_last_chunk, posts, chunks, by)
    variants["a request, nothing is rendered"] = partial(from_store, file)
    variants["a request, one page changed"] = partial(site.read_document, middleware)
    timed = alternating_timing.rounds(
        {name: _times(make) for name, make in variants.items()},
        rounds,
        0,
        {"a request, nothing is rendered": partial(site.clear, file), "a request, one page changed": change},
    )
    middleware.close()
    store.close()
    table = Table(
        f"A gzipped document of {entries:,} entries, of which one changed",
        ["", "ms", "times as long", "from", "to"],
        notes=["Written: from the Python objects, by the writer alone. A request: from the store, all that it takes."],
    )
    for full, partial_update in zip(*[iter(variants)] * 2, strict=True):
        ratio = timed.ratio(full, partial_update)
        table.add(full, timed.of(full).middle * 1e3, ratio.middle, ratio.low, ratio.high)
        table.add(partial_update, timed.of(partial_update).middle * 1e3)
    return table


def _render_all(posts: Sequence[Any], compress: Callable[[bytes], bytes]) -> bytes:
    head, tail = URLSET_FRAME
    return compress(head + render_urls(UrlColumns.of(list(_entries(posts)))).encode("ascii") + tail)


def _render_last_chunk(posts: Sequence[Any], chunks: list[Chunk], by: Callable[[bytes], bytes]) -> bytes:
    """Assemble the document with only its last chunk rendered again."""
    last = (len(chunks) - 1) * CHUNK_ENTRIES
    with _compressing(by):
        return b"".join(urlset([*chunks[:-1], *make_chunks([UrlColumns.of([*_entries(posts[last:])])])]).gzipped())


# Memory


def _memory(entries: int, file: Path) -> Table:
    table = Table(
        f"Memory that a document of {entries:,} entries takes, over that of the idle process",
        ["", "in memory, MB", "allocated by Python, MB"],
        notes=["At most, while the document is made and taken part by part; of what has served a small one before."],
    )
    for name, make in (
        (READY, _take_ready),
        (ROWS, _take_rows),
        ("the same, by a process that has learned what pages tell together", _take_all_changed),
        (VALUES, _take_values),
    ):
        most = [
            separate_process.job(_memory_of, make, how, file, entries) / separate_process.MB
            for how in (separate_process.resident, separate_process.allocated)
        ]
        table.add(name, *most)
    return table


def _memory_of(
    make: Callable[[Path, int], Callable[[], object]],
    measured: Callable[[], AbstractContextManager[separate_process.Extra]],
    file: Path,
    entries: int,
) -> int:
    with tempfile.TemporaryDirectory() as folder:  # warm up: imports and lazy initialisation must not count
        small = Path(folder, "small.sqlite3")
        store = SQLiteStore(small)
        site.fill(store, 5)
        store.close()
        for warm_up in (_take_rows, _take_values):
            warm_up(small, 5)()
    read_sitemap = make(file, entries)
    with measured() as extra:
        read_sitemap()
    return extra.at_most


def _take_ready(file: Path, _: int) -> Callable[[], object]:
    return lambda: site.read_document(site.wrapped(f"sqlite:///{file}"))


def _take_rows(file: Path, entries: int) -> Callable[[], object]:
    site.clear(file)
    return _take_ready(file, entries)


def _take_all_changed(file: Path, entries: int) -> Callable[[], object]:
    """Change pages in every block, so that the next request renders all of them again."""
    living = file.with_suffix(".changed")
    shutil.copy(file, living)
    site.clear(living)
    middleware = site.wrapped(f"sqlite:///{living}")
    site.read_document(middleware)
    store = SQLiteStore(living)
    seen = int(time.time()) - site.HOUR
    site.merge(store, (site.seen(number, seen, seen) for number in range(0, entries, MAX_BLOCK_PAGES // 20)))
    store.close()
    blocks = -(-entries // MAX_BLOCK_PAGES)
    rendered = middleware.stats()["rendered"]

    def read_sitemap() -> None:
        while middleware.stats()["rendered"] - rendered < blocks:  # a request waits a second for them
            middleware.flush()  # without it, what others have written shows within a second
            site.read_document(middleware)

    return read_sitemap


def _take_values(file: Path, entries: int) -> Callable[[], object]:
    middleware = SitemapMiddleware(
        app_of(_posts(entries)).wsgi_app,
        base_url=site.BASE,
        store=f"sqlite:///{file.with_suffix('.values')}",
        verify=False,
    )
    return lambda: site.read_document(middleware)
