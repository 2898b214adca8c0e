"""Documents updated chunk by chunk equal documents rendered from scratch."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from sitemap_middleware import SitemapMiddleware, StoreError
from sitemap_middleware.adapters.wsgi_request import WSGIRequest
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.listing import site_signals_cache
from sitemap_middleware.listing.entries_by_section import EntryBuilder
from sitemap_middleware.models import BaseURL, Page
from sitemap_middleware.rendering import chunking, learned_section, publisher, site_documents
from sitemap_middleware.sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT
from sitemap_middleware.stores import permanent_page_slots
from sitemap_middleware.stores.base import UNLEARNED_BLOCK, Store
from sitemap_middleware.stores.checksums import with_checksum
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ...support import servers
from ...support.documents import NS, entries, locs, parsed
from ...support.sample_sites import Clock, SampleSite
from ...support.sample_sites import Page as SamplePage
from ...support.wire import Answer, Headers, RequestSpec, asgi, wsgi

BASE = "https://example.com"
DAY = 24 * 60 * 60
HTML = ("content-type", "text/html")
Documents = dict[str, list[tuple[int, bytes, str | None, str | None]]]
"""Of each document's path: how it is answered, plain and gzipped."""


class App:
    """Answers with a scripted response for each page."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[str, Headers, bytes]] = {}

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        status, headers, body = self.answers.get(environ["PATH_INFO"], ("404 Not Found", [HTML], b""))
        start_response(status, [*headers, ("content-length", str(len(body)))])
        return [body]

    def says(self, path: str, body: str = "A page.", status: str = "200 OK", *headers: tuple[str, str]) -> None:
        self.answers[path] = status, [HTML, *headers], f"<!doctype html><p>{body}".encode()


class Worker:
    """One of several processes that serve an app, as far as that can be told."""

    def __init__(self, store: Store, clock: Clock, app: App | None = None, **options: Any) -> None:
        self.pages = app or App()
        self.clock = clock
        options = {"base_url": BASE, "learn": ("/p/*",), **options}
        self.app = SitemapMiddleware(self.pages, store=store, clock=clock, **({"verify": False} | options))

    def request(self, path: str = "/sitemap.xml", *headers: tuple[str, str]) -> Answer:
        if path.startswith("/sitemap"):
            self.app.flush()  # or what another worker has saved would show within a second
        return wsgi(self.app, RequestSpec(path, host="example.com", scheme="https", headers=list(headers)))

    def visit(self, path: str) -> None:
        self.request(path)
        self.app.flush()

    def documents(self) -> Documents:
        """All documents, and one more."""
        documents = {"/sitemap.xml": self._both("/sitemap.xml")}
        status, body, *_ = documents["/sitemap.xml"][0]
        if status == 200 and parsed(body).tag == f"{NS}sitemapindex":
            documents |= {path: self._both(path) for path in (loc.removeprefix(BASE) for loc in locs(body))}
        documents |= {path: self._both(path) for path in ("/sitemap-pages-99.xml", "/sitemap-routes-2.xml")}
        return documents

    def _both(self, path: str) -> list[tuple[int, bytes, str | None, str | None]]:
        answers = [self.request(path, ("accept-encoding", encoding)) for encoding in ("identity", "gzip")]
        plain, zipped = answers
        if plain.status == zipped.status == 200:
            assert zipped.header("content-encoding") == "gzip"
            assert gzip.decompress(zipped.body) == plain.body
        return [
            (answer.status, answer.body, answer.header("etag"), answer.header("last-modified")) for answer in answers
        ]

    def listed(self) -> list[str]:
        """Every loc, in the order of the documents."""
        documents = self.documents()
        bodies = [answers[0][1] for answers in documents.values() if answers[0][0] == 200]
        return [loc for body in bodies if parsed(body).tag == f"{NS}urlset" for loc in locs(body)]


def throw_away(store: Store) -> None:
    """All that was rendered of learned pages."""
    blocks = [block for block in store.blocks(BASE) if block.number != UNLEARNED_BLOCK]
    names = [f"pages/{block.document}/{block.number}" for block in blocks] + [f"pages/{b.document}" for b in blocks]
    store.save(BASE, dict.fromkeys(names))


def seen(*numbers: int, at: int = 1_750_000_000, **more: Any) -> list[Observation]:
    return [
        Observation(f"/p/{number}", "/p/*", at, **{"status": 200, "media_type": "text/html", "learned": True, **more})
        for number in numbers
    ]


@contextlib.contextmanager
def small(pages: int = 2, urls: int = 4) -> Iterator[None]:
    """Blocks of so few pages, and documents of so few entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permanent_page_slots, "MAX_BLOCK_PAGES", pages)
        patch.setattr(permanent_page_slots, "MAX_URLS_PER_DOCUMENT", urls)
        patch.setattr(chunking.group_chunks, "__defaults__", (urls, MAX_BYTES_PER_DOCUMENT))
        patch.setattr(chunking.make_chunks, "__defaults__", (pages, 512 * 1024))
        yield


@pytest.fixture(name="small")
def _small() -> Iterator[None]:
    with small():
        yield


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The page count of each block that was evaluated."""
    page_counts: list[int] = []
    block = EntryBuilder.block_entries

    def recording(self: EntryBuilder, view: Any, number: int, pages: Any) -> Any:
        page_counts.append(len(pages))
        return block(self, view, number, pages)

    monkeypatch.setattr(EntryBuilder, "block_entries", recording)
    return page_counts


# What is changed bit by bit is what is made as a whole

bodies = st.sampled_from(["One thing.", "Another thing.", "Nothing is here."])
answers = st.one_of(
    st.tuples(bodies, st.just("200 OK"), st.none() | st.integers(0, 40).map(lambda days: days * DAY + 77)),
    st.tuples(st.just(""), st.sampled_from(["404 Not Found", "410 Gone", "noindex"]), st.none()),
)
steps = st.one_of(
    st.tuples(
        st.just("see"),
        st.sampled_from([*(f"/p/{number}" for number in range(12)), "/p/1/", "/p/2/", "/about"]),
        answers,
    ),
    st.tuples(st.just("pass"), st.sampled_from([1, 60, 3600, DAY, 3 * DAY]), st.none()),
    st.tuples(st.just("request"), st.booleans(), st.none()),
    st.tuples(st.just("forget"), st.sampled_from([1, 2 * DAY]), st.none()),
)


def play(worker: Worker, step: tuple[str, Any, Any]) -> None:
    kind, what, answer = step
    if kind == "see":
        body, status, last_modified = answer
        headers = (
            [] if last_modified is None else [("last-modified", formatdate(1_700_000_000 + last_modified, usegmt=True))]
        )
        if status == "noindex":
            status, headers = "200 OK", [("x-robots-tag", "noindex")]
        worker.pages.says(what, body, status, *headers)
        worker.visit(what)
    elif kind == "pass":
        worker.clock.pass_(what)
    elif kind == "forget":
        now = int(worker.clock())
        worker.app.service.store.forget(BASE, now - what, now - what)
    else:
        worker.documents()


@pytest.mark.uncovered
@pytest.mark.parametrize("all_", [10_000, 4], ids=["small", "large"])
@pytest.mark.parametrize(
    "options", [{"include": ("/about",)}, {"priority": "auto", "changefreq": "auto"}], ids=["plain", "auto"]
)
@given(played=st.lists(steps, max_size=40))
def test_documents_changed_bit_by_bit_are_those_made_as_a_whole(
    all_: int, options: dict[str, Any], played: list[tuple[str, Any, Any]]
) -> None:
    with small(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_signals_cache, "SAMPLE_PAGES", all_)
        store, clock = MemoryStore(), Clock()
        worker = Worker(store, clock, **options)
        for step in played:
            play(worker, step)
            if step[0] != "request":
                continue
            assert Worker(store, clock, **options).documents() == worker.documents()
        expected = worker.documents()
        assert Worker(store, clock, **options).documents() == expected
        throw_away(store)
        assert Worker(store, clock, **options).documents() == expected
        worker.app.service.tracker.buffer.close()


# Several workers


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "shared.sqlite3")
    yield store
    store.close()


@pytest.mark.usefixtures("small")
def test_workers_serve_the_same_bytes_and_share_rendering(file: SQLiteStore, blocks: list[int]) -> None:
    clock = Clock()
    first, second = Worker(file, clock), Worker(SQLiteStore(file.path), clock)
    workers = [first, second]
    file.merge(BASE, seen(*range(9)))
    for turn in range(4):
        blocks.clear()
        assert workers[turn % 2].documents() == workers[1 - turn % 2].documents()
        assert sorted(blocks) == ([1, 2, 2, 2, 2] if turn == 0 else [2]), "each block once, by either worker"
        clock.pass_(1)
        file.merge(BASE, seen(turn, at=int(clock()), status=404))
        file.merge(BASE, seen(turn, at=int(clock()) + 1, noindex=bool(turn % 2)))
    second.app.close()


PROGRAM = """
import hashlib, sys
from tests.support.sample_sites import Clock
from tests.unit.rendering.test_publisher import SQLiteStore, Worker, small
with small():
    documents = Worker(SQLiteStore(sys.argv[1]), Clock()).documents()
print(hashlib.sha256(repr(documents).encode()).hexdigest())
"""


@pytest.mark.once
@pytest.mark.usefixtures("small")
def test_workers_in_other_processes_serve_the_same_bytes_too(file: SQLiteStore) -> None:
    file.merge(BASE, [*seen(*range(9)), *seen(20, last_modified=1_600_000_000)])

    def elsewhere() -> str:
        command = [sys.executable, "-c", PROGRAM, str(file.path)]
        env = {**os.environ, "PYTHONPATH": str(servers.ROOT)}
        return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def here() -> str:
        return hashlib.sha256(repr(Worker(file, Clock()).documents()).encode()).hexdigest()

    assert elsewhere() == here()
    throw_away(file)
    assert here() == elsewhere()


# What a change costs


def test_a_change_has_its_own_block_rendered_and_nothing_else(blocks: list[int]) -> None:
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    full = permanent_page_slots.MAX_BLOCK_PAGES
    count = 3 * full + 500
    store.merge(BASE, seen(*range(count)))
    site.documents()
    assert blocks == [full, full, full, 500]
    for number, size, noindex in ((0, full, True), (2 * full, full, True), (count - 1, 500, True), (count, 501, False)):
        blocks.clear()
        clock.pass_(1)
        store.merge(BASE, seen(number, at=int(clock()), noindex=noindex))
        assert (f"{BASE}/p/{number}" in site.listed()) is not noindex
        assert blocks == [size]


@pytest.mark.usefixtures("small")
def test_changed_site_signals_rerender_the_pages_they_concern(blocks: list[int]) -> None:
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, [*seen(*range(6)), *seen(6, last_modified=1_600_000_000)])
    site.documents()
    blocks.clear()
    clock.pass_(1)
    store.merge(BASE, seen(0, at=int(clock()), noindex=True))
    site.documents()
    assert blocks == [2], "its own"
    blocks.clear()
    store.merge(BASE, seen(*range(1, 6), at=int(clock()), last_modified=1_600_000_000))
    site.documents()
    assert sorted(blocks) == [1, 2, 2, 2], "their own, and the one with a date: it is that of a deployment now"


def test_large_site_keeps_its_signals_for_an_hour(
    monkeypatch: pytest.MonkeyPatch, blocks: list[int], small: None
) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)
    store, clock = MemoryStore(), Clock()
    began = int(clock())
    site, other = Worker(store, clock), Worker(store, clock)
    store.merge(BASE, seen(*range(10), at=began - DAY, last_modified=1_600_000_000))
    store.merge(
        BASE,
        [
            observation
            for n in range(10)
            for observation in seen(n, at=began - 1, last_modified=1_600_000_000 + 1000 * n)
        ],
    )
    before = site.documents()
    assert len(blocks) == 5
    blocks.clear()
    dates = {loc: fields for path in before for loc, fields in _entries(before[path])}
    clock.pass_(60)
    new = 1_650_000_000  # of a page that is not in the sample
    store.merge(BASE, seen(8, at=int(clock()), last_modified=new))
    clock.pass_(60)
    store.merge(BASE, seen(8, at=int(clock()), last_modified=new))
    site.documents()
    other.documents()
    assert blocks == [2], "its own, in one of the workers"
    assert "lastmod" not in _fields_by_path(site)["/p/8"]
    assert "too new to tell it from a deployment's" in str(site.app.explain("/p/8"))
    clock.pass_(3600 - 121)
    assert other.documents() == site.documents()
    assert blocks == [2]
    clock.pass_(300)  # max_age
    assert other.documents() == site.documents()
    assert blocks == [2, 2], "only the pages that waited are evaluated again"
    assert _fields_by_path(site)["/p/8"]["lastmod"].startswith("2022-04-15")
    assert dates.keys() == {f"{BASE}{path}" for path in _fields_by_path(site)}


def _entries(answers: Any) -> list[tuple[str, dict[str, str]]]:
    status, body, *_ = answers[0]
    return list(entries(body).items()) if status == 200 and b"<urlset" in body else []


def _fields_by_path(site: Worker) -> dict[str, dict[str, str]]:
    """The fields of each entry by path."""
    listed = [entry for answers in site.documents().values() for entry in _entries(answers)]
    return {loc.removeprefix(BASE): fields for loc, fields in listed}


# Their numbers


@pytest.mark.usefixtures("small")
def test_page_never_moves_to_another_document() -> None:
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(*range(10)))

    def where() -> dict[str, str]:
        return {loc: path for path, answers in site.documents().items() for loc, _ in _entries(answers)}

    homes = where()
    assert sorted(set(homes.values())) == [f"/sitemap-pages-{number}.xml" for number in (1, 2, 3)]
    for gone, came in ((1, 20), (4, 21), (5, 22), (9, 23)):
        clock.pass_(2 * DAY)
        store.merge(BASE, seen(gone, at=int(clock()), status=404))
        store.merge(BASE, seen(came, at=int(clock())))
        assert f"{BASE}/p/{gone}" not in where()
        clock.pass_(2 * DAY)
        store.forget(BASE, 0, int(clock()) - DAY)
        now = where()
        assert {loc: now[loc] for loc in now if loc in homes} == {loc: homes[loc] for loc in now if loc in homes}
        homes |= now
    store.merge(BASE, seen(4, at=int(clock())))
    assert where()[f"{BASE}/p/4"] == "/sitemap-pages-4.xml", "that was forgotten: it is a new one"


@pytest.mark.usefixtures("small")
def test_document_without_pages_is_404_and_leaves_the_index() -> None:
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(*range(12)))
    assert locs(site.request().body) == [f"{BASE}/sitemap-pages-{number}.xml" for number in (1, 2, 3)]
    for forgotten in (False, True):
        clock.pass_(2 * DAY)
        if forgotten:
            assert store.forget(BASE, 0, int(clock()) - DAY) == 4
        else:
            store.merge(BASE, seen(4, 5, 6, 7, at=int(clock()), status=410))
        assert locs(site.request().body) == [f"{BASE}/sitemap-pages-{number}.xml" for number in (1, 3)]
        assert [site.request(f"/sitemap-pages-{number}.xml").status for number in range(1, 5)] == [200, 404, 200, 404]


@pytest.mark.usefixtures("small")
def test_index_shrinks_to_one_document_and_grows_again() -> None:
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(*range(5)))
    assert parsed(site.request().body).tag == f"{NS}sitemapindex"
    assert site.request("/sitemap-pages-1.xml").status == 200
    clock.pass_(2 * DAY)
    store.merge(BASE, seen(1, 2, 3, 4, at=int(clock())))
    assert store.forget(BASE, int(clock()) - DAY, 0) == 1
    assert locs(site.request().body) == [f"{BASE}/p/{number}" for number in range(1, 5)]
    assert [site.request(f"/sitemap-pages-{number}.xml").status for number in (1, 2)] == [404, 404]
    store.merge(BASE, seen(5, at=int(clock())))
    assert locs(site.request().body) == [f"{BASE}/sitemap-pages-{number}.xml" for number in (1, 2)]


@pytest.mark.usefixtures("small")
def test_index_gives_each_document_its_latest_lastmod() -> None:
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    now = int(clock())
    store.merge(
        BASE,
        [
            observation
            for n in range(10)
            for observation in seen(n, at=now - DAY, last_modified=1_600_000_000 + n * 1000)
        ],
    )
    store.merge(
        BASE,
        [observation for n in range(10) for observation in seen(n, at=now - 1, last_modified=1_600_000_000 + n * 1000)],
    )
    store.merge(BASE, seen(10, 11, 12))

    def check() -> dict[str, dict[str, str]]:
        index = entries(site.request().body)
        for loc, fields in index.items():
            inner = entries(site.request(loc.removeprefix(BASE)).body).values()
            assert fields == (
                {"lastmod": max(dates)}
                if (dates := [inner_fields["lastmod"] for inner_fields in inner if inner_fields])
                else {}
            )
        return index

    before = check()
    assert [len(fields) for fields in before.values()] == [1, 1, 1, 0]
    clock.pass_(DAY)
    store.merge(BASE, seen(5, at=int(clock()), status=404))
    store.merge(BASE, seen(7, at=int(clock()), status=404))
    after = check()
    assert [before[loc] == after[loc] for loc in before] == [True, False, True, True]


@pytest.mark.uncovered
@pytest.mark.parametrize("count", [MAX_URLS_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT + 1])
def test_past_50_000_pages_there_is_an_index_and_not_before(count: int) -> None:
    store = MemoryStore()
    site = Worker(store, Clock())
    store.merge(BASE, seen(*range(count)))
    answer = site.request()
    if count <= MAX_URLS_PER_DOCUMENT:
        assert len(locs(answer.body)) == count
        assert site.request("/sitemap-pages-1.xml").status == 404
    else:
        assert list(map(len, map(locs, [site.request(f"/sitemap-pages-{n}.xml").body for n in (1, 2)]))) == [
            MAX_URLS_PER_DOCUMENT,
            1,
        ]
    assert len(set(site.listed())) == len(site.listed()) == count == site.app.stats()["listed"]


# Much to render


def test_first_request_for_a_huge_site_names_documents_before_rendering(
    monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    monkeypatch.setattr(learned_section, "MAX_WAITED_BLOCKS", 2)
    store, clock = MemoryStore(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(*range(12)))
    jobs: list[Callable[[], None]] = []
    monkeypatch.setattr(WSGIRequest, "run_in_background", lambda _, job: jobs.append(job))
    named = [f"{BASE}/sitemap-pages-{number}.xml" for number in (1, 2, 3)]
    assert entries(site.request().body) == {loc: {} for loc in named}
    assert locs(site.request("/sitemap-pages-2.xml").body) == [f"{BASE}/p/{number}" for number in (4, 5, 6, 7)]
    assert len(jobs) == 1, "one at a time"
    for job in jobs:
        job()
    assert locs(site.request().body) == named
    assert len(jobs) == 1, "there is nothing left to do"
    assert site.listed() == [f"{BASE}/p/{number}" for number in range(12)]


@pytest.fixture
def background_jobs(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """The jobs that requests leave to the background if more than two blocks are too many to render at once."""
    jobs: list[Callable[[], None]] = []
    monkeypatch.setattr(learned_section, "MAX_WAITED_BLOCKS", 2)
    monkeypatch.setattr(WSGIRequest, "run_in_background", lambda _, job: jobs.append(job))
    return jobs


@pytest.mark.usefixtures("small")
def test_one_worker_renders_in_the_background_and_another_takes_over(
    background_jobs: list[Callable[[], None]], blocks: list[int]
) -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Worker(store, clock), Worker(store, clock)
    store.merge(BASE, seen(*range(12)))
    for worker in (first, second):
        worker.request()
    of_first, of_second = background_jobs
    assert store.lease(BASE, "pages", "a third", int(clock()), learned_section.LEASE_SECONDS)
    of_first()
    assert not blocks
    clock.pass_(learned_section.LEASE_SECONDS)
    of_first()
    assert blocks == [2] * 6
    of_second()
    assert blocks == [2] * 6, "the first one's lease has not ended"
    clock.pass_(learned_section.LEASE_SECONDS)
    of_second()
    assert blocks == [2] * 6, "it is all there"
    assert first.documents() == second.documents()


@pytest.mark.usefixtures("small")
def test_store_emptied_during_background_work_stops_no_sitemap(
    background_jobs: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = MemoryStore(), Clock()
    lease, names = store.lease, list[str]()

    def lease_and_lose(site: str, name: str, *rest: Any) -> bool:
        names.append(name)
        if names.count("pages") == 1:
            store.release()
            clock.pass_(2)
            site_of_pages.request()
        return lease(BaseURL(site), name, *rest)

    monkeypatch.setattr(store, "lease", lease_and_lose)
    site_of_pages = Worker(store, clock)
    store.merge(BASE, seen(*range(12)))
    site_of_pages.request()
    background_jobs[0]()
    store.merge(BASE, seen(7, 8))
    assert site_of_pages.listed() == [f"{BASE}/p/7", f"{BASE}/p/8"]


@pytest.mark.usefixtures("small")
def test_stopping_worker_finishes_only_its_current_document(
    background_jobs: list[Callable[[], None]], blocks: list[int]
) -> None:
    store = MemoryStore()
    site = Worker(store, Clock())
    store.merge(BASE, seen(*range(12)))
    site.request()
    site.app.close()
    background_jobs[0]()
    assert blocks == [2, 2]
    assert site.listed() == [f"{BASE}/p/{number}" for number in range(12)]


class Slow(MemoryStore):
    """A store that takes its time to give pages."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def block(self, site: str, number: int) -> list[Page]:
        self.clock.pass_(learned_section.WAIT_SECONDS + 1)
        return super().block(site, number)


@pytest.mark.usefixtures("small")
def test_slow_rendering_advances_by_a_block_with_each_request(
    background_jobs: list[Callable[[], None]], blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_section, "PAUSE_FACTOR", 0)  # or it would wait in earnest
    clock = Clock()
    store = Slow(clock)
    site = Worker(store, clock)
    store.merge(BASE, seen(*range(8)))
    site.request()
    assert locs(site.request("/sitemap-pages-1.xml").body) == [f"{BASE}/p/{number}" for number in range(4)]
    assert blocks == [2, 2], "nothing was there to serve"
    background_jobs.pop()()
    assert blocks == [2, 2, 2, 2]
    for left in ((1, 2, 3), (1, 3)):
        if len(left) == 3:
            store.merge(BASE, seen(0, 2, at=int(clock()), noindex=True))
        blocks.clear()
        assert locs(site.request("/sitemap-pages-1.xml").body) == [f"{BASE}/p/{number}" for number in left]
        assert blocks == [2]
    assert len(background_jobs) == 1, "what it left"
    blocks.clear()
    background_jobs[0]()
    assert not blocks


class Failing(MemoryStore):
    """A store in which the next call of method `fails` for one of the names `things` raises, once."""

    fails = ""
    things: frozenset[str] = frozenset({"pages/1", "pages/2"})
    before_block: Callable[[], None] | None = None
    """Called before the next block is read, once."""

    def block(self, site: str, number: int) -> list[Page]:
        before, self.before_block = self.before_block, None
        if before is not None:
            before()
        return super().block(site, number)

    def _fail(self, name: str, names: Any) -> None:
        if self.fails == name and self.things.intersection(names):
            self.fails = ""
            raise StoreError("it fails")

    def load(self, site: str, names: Any) -> dict[str, bytes]:
        self._fail("load", names)
        return super().load(site, names)

    def save(self, site: str, values: Any) -> None:
        self._fail("save", values)
        super().save(site, values)


@pytest.mark.usefixtures("small")
def test_change_during_background_work_is_rendered_too(
    background_jobs: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_section, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)  # or each change would have all pages evaluated again
    store, clock = Failing(), Clock()
    site = Worker(store, clock)

    def asks(soon: int = 0) -> None:
        monkeypatch.setattr(learned_section, "MAX_WAITED_BLOCKS", soon)
        clock.pass_(2)
        site.request()

    store.merge(BASE, seen(*range(8)))
    asks(4)
    store.merge(BASE, seen(0, 7, at=int(clock()), noindex=True))
    asks()
    store.fails, store.things = "save", frozenset({"pages/2"})
    asks(4)  # the first document is rendered, of the second it fails
    assert not store.fails

    def change_another_block() -> None:
        store.merge(BASE, seen(3, at=int(clock()), noindex=True))
        asks()

    store.before_block = change_another_block
    background_jobs.pop(0)()
    assert store.before_block is None
    asks()
    while background_jobs:
        background_jobs.pop()()
    assert site.listed() == [f"{BASE}/p/{number}" for number in (1, 2, 4, 5, 6)]


class Halting(MemoryStore):
    """A store that, once, answers no sooner than it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.halting = threading.Event()
        self.asked, self.let = threading.Event(), threading.Event()

    def version(self, site: str) -> int:
        if self.halting.is_set():
            self.halting.clear()
            self.asked.set()
            assert self.let.wait(30)
        return super().version(site)


@pytest.mark.parametrize("ready", [True, False])
def test_one_thread_updates_documents_while_others_serve_the_old_ones(
    *, ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(publisher, "FIRST_WAIT_SECONDS", 0.0)
    store, clock = Halting(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(1))
    if ready:
        assert locs(site.request().body) == [f"{BASE}/p/1"]
        store.merge(BASE, seen(2))
        clock.pass_(600)
    store.halting.set()
    updater = threading.Thread(target=site.request)
    updater.start()
    assert store.asked.wait(30)
    answer = site.request()
    store.let.set()
    updater.join(30)
    if ready:
        assert locs(answer.body) == [f"{BASE}/p/1"]
        assert locs(site.request().body) == [f"{BASE}/p/1", f"{BASE}/p/2"]
    else:
        assert answer.status == 503
        assert locs(site.request().body) == [f"{BASE}/p/1"]


# What is lost or damaged in the store


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "lost": lambda _: None,
    "emptied": lambda _: b"",
    "cut off": lambda whole: whole[:-1],
    "changed at its beginning": lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    "changed in its middle": lambda whole: (
        whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 64]) + whole[len(whole) // 2 + 1 :]
    ),
    "changed at its end": lambda whole: whole[:-1] + bytes([whole[-1] ^ 128]),
}
THINGS = ["site-signals", "site-signals/pages", "pages/1", "pages/2", "pages/1/1", "pages/2/3"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", THINGS)
def test_what_is_lost_or_damaged_heals_and_is_never_served(
    name: str, damage: str, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)
    monkeypatch.setattr(site_documents, "MAX_CACHE_BYTES", 0)  # or it would serve from memory
    store, clock = MemoryStore(), Clock()
    store.merge(BASE, seen(*range(9)))
    store.merge(BASE, seen(9, at=1_749_000_000, last_modified=1_600_000_000))
    store.merge(BASE, seen(9, at=1_749_900_000, last_modified=1_600_000_000))
    worker = Worker(store, clock)
    good = worker.documents()
    for reader in (worker, Worker(store, clock)):
        for stored in store.load(BASE, [name]).values():  # none if it was lost and is not needed again yet
            store.save(BASE, {name: DAMAGES[damage](stored)})
        failed = [
            path for path in good for answers in [reader._both(path)] if answers != good[path] and _is_503(answers)
        ]
        assert len(failed) <= 1
        assert reader.documents() == good
        assert Worker(store, clock).documents() == good


def _is_503(answers: Any) -> bool:
    """Whether it was, once, for a moment: nothing else is an answer that is not the good one."""
    assert 503 in {status for status, *_ in answers}
    return True


def test_worker_with_a_slow_clock_uses_what_another_learned(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)
    store, slow_clock = MemoryStore(), Clock()
    store.merge(BASE, seen(*range(9)))
    Worker(store, Clock(slow_clock() + 60)).documents()
    learned = store.load(BASE, ["site-signals"])
    Worker(store, slow_clock).documents()
    assert store.load(BASE, ["site-signals"]) == learned


def test_signals_computed_by_two_workers_at_once_are_not_damage(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)
    store, clock = MemoryStore(), Clock()
    store.merge(BASE, seen(*range(9)))
    first, second = Worker(store, clock), Worker(store, clock)
    before = first.documents()
    load = store.load

    def meanwhile(site: str, names: Any) -> dict[str, bytes]:
        stored = load(site, names)
        if "site-signals" in names:
            monkeypatch.setattr(store, "load", load)
            clock.pass_(site_signals_cache.LEARNING_INTERVAL_SECONDS)
            first.documents()
            clock.pass_(-1)
        return stored

    monkeypatch.setattr(store, "load", meanwhile)
    assert second.documents() == before
    sample = store.load(BASE, ["site-signals", "site-signals/pages"])
    assert len(sample) == 2
    assert first.documents() == before
    assert store.load(BASE, ["site-signals", "site-signals/pages"]) == sample


def once_before_it_loads(
    store: Store, name: str, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]
) -> None:
    """Run a callback just before the store is next asked for a value."""
    load = store.load

    def loading(site: str, names: Any) -> dict[str, bytes]:
        if name in names:
            monkeypatch.setattr(store, "load", load)
            happens()
        return load(site, names)

    monkeypatch.setattr(store, "load", loading)


@pytest.mark.usefixtures("small")
def test_block_started_by_another_worker_is_listed_at_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Worker(store, clock), Worker(store, clock)
    store.merge(BASE, seen(0, 1))

    def meanwhile() -> None:
        store.merge(BASE, seen(2))
        assert first.listed() == [f"{BASE}/p/{number}" for number in (0, 1, 2)]

    once_before_it_loads(store, "pages/1", monkeypatch, meanwhile)
    assert locs(second.request().body) == [f"{BASE}/p/{number}" for number in (0, 1)]
    # But for the dates: the first one's document is older than the one that the second published in between.
    undated = [{path: [answer[:3] for answer in both] for path, both in w.documents().items()} for w in (first, second)]
    assert undated[0] == undated[1]


@pytest.mark.usefixtures("small")
def test_block_rendered_by_another_worker_is_not_taken_for_lost(
    monkeypatch: pytest.MonkeyPatch, blocks: list[int]
) -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Worker(store, clock), Worker(store, clock)
    store.merge(BASE, seen(0, 1))
    first.documents()

    def meanwhile() -> None:
        store.merge(BASE, seen(0, at=int(clock()), noindex=True))
        clock.pass_(600)
        assert first.listed() == [f"{BASE}/p/1"]

    once_before_it_loads(store, "pages/1/1", monkeypatch, meanwhile)
    assert second.request().status == 503, "briefly, as there is no previous document"
    assert second.documents() == first.documents()
    assert blocks == [2, 2], "in the first one alone"


@pytest.mark.parametrize("pages", [3, 6], ids=["one document", "an index"])
@pytest.mark.parametrize("fails", ["load", "save"])
@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.usefixtures("small")
def test_store_failure_during_rendering_leaves_nothing_undone(*, ready: bool, fails: str, pages: int) -> None:
    store, clock = Failing(), Clock()
    site = Worker(store, clock)
    if ready:
        store.merge(BASE, seen(1))
        assert locs(site.request().body) == [f"{BASE}/p/1"]
    store.merge(BASE, seen(*range(1, pages + 1)))
    store.fails = fails
    clock.pass_(2)
    assert locs(site.request().body) == [f"{BASE}/p/1"] if ready else site.request().status == 503
    assert not store.fails
    for _ in range(2):
        clock.pass_(2)
        site.request()
    assert site.listed() == [f"{BASE}/p/{number}" for number in range(1, pages + 1)]
    assert site.documents() == Worker(store, clock).documents()


class Losing(MemoryStore):
    """A store that loses a value, once, when it is requested."""

    loses = ""

    def load(self, site: str, names: Any) -> dict[str, bytes]:
        if self.loses in names:
            self.save(site, {self.loses: None})
            self.loses = ""
        return super().load(site, names)


@pytest.mark.usefixtures("small")
def test_block_lost_right_after_rendering_is_rendered_again() -> None:
    store, clock = Losing(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(1))
    assert locs(site.request().body) == [f"{BASE}/p/1"]
    store.merge(BASE, seen(2))
    store.loses = "pages/1/1"
    clock.pass_(2)
    assert site.request().status == 503, "the document in memory is known to have other pages by now"
    assert not store.loses
    clock.pass_(2)
    assert locs(site.request().body) == [f"{BASE}/p/1", f"{BASE}/p/2"]


class SometimesDown(MemoryStore):
    """Is out of order while `is_down` is set."""

    is_down = False

    def version(self, site: Any) -> int:
        if self.is_down:
            raise StoreError("the store is down")
        return super().version(site)


def test_a_document_that_is_gone_is_no_longer_the_last_good_one() -> None:
    store = SometimesDown()
    site = SampleSite("wsgi", {"/a": SamplePage()}, store=store)
    site.visit("/a")
    assert site.request("/sitemap.xml").status == 200
    store.is_down = True
    site.clock.pass_(600)
    assert site.request("/sitemap.xml").status == 200, "the last good one"
    store.is_down = False
    site.pages["/a"] = SamplePage(404)
    site.visit("/a")
    site.clock.pass_(600)
    assert site.request("/sitemap.xml").status == 404
    store.is_down = True
    site.clock.pass_(600)
    answer = site.request("/sitemap.xml")
    assert (answer.status, b"<loc>" in answer.body) == (503, False)
    store.is_down = False
    site.clock.pass_(600)
    assert site.request("/sitemap.xml").status == 404
    site.app.close()


@pytest.mark.usefixtures("small")
def test_a_page_that_left_a_document_is_not_served_again_by_a_failing_store() -> None:
    store, clock = SometimesDown(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(*range(1, 7)))
    parts = ["/sitemap-pages-1.xml", "/sitemap-pages-2.xml"]
    assert locs(site.request().body) == [BASE + part for part in parts]
    assert [len(locs(site.request(part).body)) for part in parts] == [4, 2]

    store.merge(BASE, seen(2, at=1_750_000_100, status=410))
    clock.pass_(2)
    assert site.request().status == 200, "the index alone is requested"
    store.is_down = True
    clock.pass_(600)
    first, second = (site.request(part) for part in parts)
    assert (first.status, b"<loc>" in first.body) == (503, False)
    assert locs(second.body) == [f"{BASE}/p/5", f"{BASE}/p/6"], "it has not changed"
    assert locs(site.request().body) == [BASE + part for part in parts]

    store.is_down = False
    clock.pass_(600)
    assert locs(site.request(parts[0]).body) == [f"{BASE}/p/{number}" for number in (1, 3, 4)]


@pytest.mark.usefixtures("small")
def test_a_document_that_became_an_index_is_not_served_again_by_a_failing_store() -> None:
    store, clock = SometimesDown(), Clock()
    site = Worker(store, clock)
    store.merge(BASE, seen(1, 2))
    assert locs(site.request().body) == [f"{BASE}/p/1", f"{BASE}/p/2"]
    store.merge(BASE, seen(*range(3, 7)))
    store.merge(BASE, seen(2, at=1_750_000_100, status=410))
    clock.pass_(2)
    assert site.request("/sitemap-pages-1.xml").status == 200
    store.is_down = True
    clock.pass_(600)
    assert site.request().status == 503
    assert locs(site.request("/sitemap-pages-1.xml").body) == [f"{BASE}/p/{number}" for number in (1, 3, 4)]


def test_a_store_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    store, clock = SQLiteStore(tmp_path / "kept.sqlite3"), Clock()
    site = Worker(store, clock)
    for number in range(6):
        store.merge(BASE, seen(number))
    assert len(site.listed()) == 6
    for file in tmp_path.glob("kept.sqlite3*"):
        file.unlink()
    clock.pass_(600)
    store.merge(BASE, seen(7, 8))
    assert site.listed() == [f"{BASE}/p/7", f"{BASE}/p/8"]
    assert site.app.stats()["listed"] == 2
    site.app.close()
    store.close()


# What is learned of a large site


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch, small: None) -> MemoryStore:
    """A large site's store: ten pages of it that have moved one by one."""
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)
    store, began = MemoryStore(), int(Clock()())
    for at in (began - DAY, began - 1):
        store.merge(
            BASE,
            [observation for n in range(10) for observation in seen(n, at=at, last_modified=1_600_000_000 + 1000 * n)],
        )
    return store


def test_explain_computes_signals_of_a_large_site_without_saving(large: MemoryStore) -> None:
    site = Worker(large, Clock())
    assert site.app.explain("/p/7").lastmod_source == "Last-Modified"
    assert not large.load(BASE, ["site-signals", "site-signals/pages"])


def test_workers_use_earlier_signals_while_one_computes_new_ones(large: MemoryStore) -> None:
    clock = Clock()
    site = Worker(large, clock)
    before, learned = site.documents(), large.load(BASE, ["site-signals"])
    clock.pass_(site_signals_cache.LEARNING_INTERVAL_SECONDS)
    assert large.lease(BASE, "site-signals", "another", int(clock()), 60)
    assert site.documents() == before
    assert large.load(BASE, ["site-signals"]) == learned
    clock.pass_(300)
    assert site.documents() == before
    assert large.load(BASE, ["site-signals"]) != learned, "the other one has not: it does"


@pytest.mark.parametrize(
    "remains", [None, with_checksum(zlib.compress(b"of another version"))], ids=["lost", "of another form"]
)
def test_lost_sample_pages_are_replaced_and_signals_recomputed(remains: bytes | None, large: MemoryStore) -> None:
    clock = Clock()
    before = Worker(large, clock).documents()
    large.save(BASE, {"site-signals/pages": remains})
    throw_away(large)
    other = Worker(large, clock)
    assert other.documents() == before
    clock.pass_(600)
    assert other.documents() == before
    assert len(large.load(BASE, ["site-signals", "site-signals/pages"])) == 2


def test_machine_with_its_own_files_combines_them_with_shared_signals(large: MemoryStore, tmp_path: Path) -> None:
    def machine(name: str, *last_modified: int) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        for number, moment in enumerate(last_modified):
            (folder / f"{number}.html").write_text("<p>A page.")
            os.utime(folder / f"{number}.html", (moment, moment))
        files = Starlette(routes=[Mount("/files", StaticFiles(directory=folder, html=True))])
        return SitemapMiddleware(
            files, store=large, clock=Clock(), base_url=BASE, learn=("/p/*",), robots=False, verify=False
        )

    def dates(app: Any) -> set[str]:
        """The paths that bear one."""

        def send_request(path: str) -> bytes:
            return asgi(app, RequestSpec(path, host="example.com", scheme="https")).body

        named = [loc.removeprefix(BASE) for loc in locs(send_request("/sitemap.xml"))]
        fields_by_path = {
            loc.removeprefix(BASE): fields for path in named for loc, fields in entries(send_request(path)).items()
        }
        assert len(fields_by_path) == 16
        return {path for path, fields in fields_by_path.items() if "lastmod" in fields}

    files, pages = {f"/files/{number}.html" for number in range(6)}, {f"/p/{number}" for number in range(10)}
    apart = machine("one", *(1_650_000_000 + DAY * number for number in range(6)))
    copied = machine("other", *[1_600_003_000] * 6)
    assert dates(apart) == files | pages
    learned = large.load(BASE, ["site-signals", "site-signals/pages"])
    assert dates(copied) == pages - {"/p/3"}, "that is when its files were copied there"
    assert dates(apart) == files | pages
    assert large.load(BASE, ["site-signals", "site-signals/pages"]) == learned
