"""Placement: a store's blocks agree with a plain model after any merges and deletions."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitemap_middleware import Store
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_verdict import is_listable
from sitemap_middleware.models import Page, PageLimits, SitemapUrl, UrlColumns
from sitemap_middleware.rendering.chunking import CHUNK_ENTRIES
from sitemap_middleware.rendering.xml import URLSET_FRAME, render_urls
from sitemap_middleware.sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT
from sitemap_middleware.stores import permanent_page_slots
from sitemap_middleware.stores.base import UNLEARNED_BLOCK
from sitemap_middleware.stores.merge_batch_into_pages import BatchMerger
from sitemap_middleware.stores.permanent_page_slots import PlacementCursor, entry_size
from sitemap_middleware.stores.recount_after_damage import RebuiltSite
from sitemap_middleware.stores.redis.packed_pages_and_segments import SEGMENT_SLOTS
from sitemap_middleware.stores.sql_row_id_layout_and_path_hash import MAX_BLOCK_ROWS
from sitemap_middleware.stores.sqlite.store import SQLiteStore
from sitemap_middleware.urls import has_slash_like, toggle_trailing_slash
from tests.stores.test_contract import ENGINES

pytestmark = pytest.mark.uncovered

SITES = ("https://example.com", "https://example.org")
FULL = permanent_page_slots.MAX_BLOCK_PAGES


class Model:
    """The pages of one site, and their blocks, as plainly as can be."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.pages: dict[str, Page] = {}
        self.version = 0
        self.stored = [0]
        """What the store gives for each version: engines count in their own ways."""
        self.blocks: dict[int, list[str]] = {}
        """The paths of each block, in the order in which they came into it."""
        self.versions: dict[int, int] = {}
        self.documents = {UNLEARNED_BLOCK: 0}
        self.filling = PlacementCursor()
        self.sample_sites = False

    def merge(self, observations: list[Observation], limits: PageLimits) -> int:
        counts = Counter(page.route for page in self.pages.values() if page.learned)
        changed = {page.path: page for page in BatchMerger(counts, limits).merge(self.pages.get, observations)}
        self.sample_sites |= any(
            page.learned and not has_slash_like(page.path, page.route) for page in changed.values()
        )
        self._grow(set(changed))
        for path, page in changed.items():
            before = self.pages.get(path)
            if before is None or before.learned is not page.learned:
                self._leave(path)
                self.blocks.setdefault(self._place(page), []).append(path)
            self.pages[path] = page
        self._touch(set(changed) | self._twins_of(set(changed)))
        return len(changed)

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        gone = {
            path
            for path, page in self.pages.items()
            if page.learned
            and (page.last_seen < unseen_since or (page.last_seen < unlisted_since and not is_listable(page)))
        }
        self._grow(gone)
        for path in gone:
            self._leave(path)
            del self.pages[path]
        return len(gone)

    def _place(self, page: Page) -> int:
        if not page.learned:
            return UNLEARNED_BLOCK
        self.filling = self.filling.advance(entry_size(self.site, page.path))
        self.documents[self.filling.block] = self.filling.document
        return self.filling.block

    def _leave(self, path: str) -> None:
        for paths in self.blocks.values():
            if path in paths:
                paths.remove(path)

    def _grow(self, moved: set[str]) -> None:
        """Start a new version and mark the blocks of changed pages and of their trailing-slash variants."""
        self.version += bool(moved)
        self._touch(moved | self._twins_of(moved))

    def _twins_of(self, paths: set[str]) -> set[str]:
        return {toggle_trailing_slash(path) for path in paths} if self.sample_sites else set()

    def _touch(self, touched: set[str]) -> None:
        for number, paths in self.blocks.items():
            if not touched.isdisjoint(paths):
                self.versions[number] = self.version

    def told(self, since: int) -> list[tuple[int, int, int, int]]:
        return [
            (number, self.documents[number], len(self.blocks[number]), version)
            for number, version in sorted(self.versions.items())
            if version > since
        ]


def _agrees(store: Store, model: Model, since: int) -> None:
    site, pages = model.site, model.pages
    if model.version == len(model.stored):
        assert store.version(site) > model.stored[-1]
        model.stored.append(store.version(site))
    assert store.version(site) == model.stored[model.version]
    blocks = store.blocks(site, model.stored[since])
    assert [(*block[:3], bisect_left(model.stored, block.version)) for block in blocks] == model.told(since)
    assert store.pages(site) == [pages[path] for path in sorted(pages)]
    assert store.find_pages(site, [*pages, "/never"]) == pages
    for number in model.blocks.keys() - {UNLEARNED_BLOCK}:
        assert store.block(site, number) == [pages[path] for path in model.blocks[number]]
    for most in (1, 3, 100):
        sample = list(store.sample(site, most))
        assert len(sample) == len(set(sample)) <= most
        assert set(sample) <= set(pages.values())
        assert len(pages) > most or len(sample) == len(pages)


MOMENTS = st.sampled_from([0, 1000, 1001, 5000, 9000])
OBSERVATIONS = st.builds(
    Observation,
    path=st.sampled_from(["/a", "/a/", "/b", "/b/", "/c&", "/d"]),
    route=st.sampled_from(["/<a>", "/<a>", "/<a>/"]),
    at=MOMENTS,
    status=st.sampled_from([200, 200, 404]),
    media_type=st.just("text/html"),
    html=st.none() | st.sampled_from([HtmlFacts(1), HtmlFacts(2)]),
    learned=st.booleans(),
    noindex=st.just(False),
    private=st.just(False),
    canonical=st.none(),
    last_modified=st.none(),
    fraction=st.integers(0, 255),
    may_be_provided=st.booleans(),
)
FOLDS = st.tuples(st.sampled_from(SITES), st.lists(OBSERVATIONS, max_size=8))
FORGETS = st.tuples(st.sampled_from(SITES), st.tuples(MOMENTS, MOMENTS))


@settings(max_examples=settings.default.max_examples // 3)  # each makes a store of every engine
@given(
    steps=st.lists(FOLDS | FOLDS | FORGETS, max_size=12),
    limits=st.builds(PageLimits, site=st.integers(3, 9), route=st.integers(3, 9)),
)
def test_blocks_match_a_plain_model_under_any_traffic(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]], limits: PageLimits
) -> None:
    with pytest.MonkeyPatch.context() as small:
        small.setattr(permanent_page_slots, "MAX_BLOCK_PAGES", 2)
        small.setattr(permanent_page_slots, "MAX_URLS_PER_DOCUMENT", 5)
        for make in ENGINES.values():
            store = make(tmp_path_factory.mktemp("store"))
            models = {site: Model(site) for site in SITES}
            homes: dict[tuple[str, str], int] = {}
            for site, step in steps:
                model, version = models[site], models[site].version
                if isinstance(step, list):
                    assert store.merge(site, step, limits).changed == model.merge(step, limits)
                else:
                    assert store.forget(site, *step) == model.forget(*step)
                for each in models.values():
                    _agrees(store, each, version if each is model else each.version)
                homes = _at_home(store, site, homes)
            for each in models.values():
                _agrees(store, each, 0)
            store.close()


def _at_home(store: Store, site: str, homes: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """The block of each learned page, which stays the same while the page is learned."""
    now = {
        (site, page.path): block.number
        for block in store.blocks(site)
        if block.number != UNLEARNED_BLOCK
        for page in store.block(site, block.number)
    }
    assert all(homes.get(page, number) == number for page, number in now.items() if page in homes)
    return {**{page: number for page, number in homes.items() if page[0] != site}, **now}


PATHS = st.lists(
    st.builds(lambda text, times: "/" + text * times, st.sampled_from(["a", "&", "a&'"]), st.integers(1, 650)),
    min_size=1,
    max_size=40,
)


@given(paths=PATHS, times=st.integers(1, 20), limits=st.tuples(st.integers(3, 90), st.integers(20_000, 200_000)))
def test_document_stays_within_the_protocols_limits(paths: list[str], times: int, limits: tuple[int, int]) -> None:
    site = "https://example.com"
    most, room = limits
    documents: dict[int, list[str]] = defaultdict(list)
    blocks: dict[int, list[str]] = defaultdict(list)
    with pytest.MonkeyPatch.context() as small:
        small.setattr(permanent_page_slots, "MAX_URLS_PER_DOCUMENT", most)
        small.setattr(permanent_page_slots, "MAX_ENTRY_BYTES_PER_DOCUMENT", room)
        small.setattr(permanent_page_slots, "MAX_BLOCK_PAGES", most // 3)
        small.setattr(permanent_page_slots, "MAX_BLOCK_BYTES", room // 2)
        filling = PlacementCursor()
        for path in paths * times:
            filling = filling.advance(entry_size(site, path))
            documents[filling.document].append(path)
            blocks[filling.block].append(path)
    longest = {"lastmod": "2024-05-01T00:00:00+00:00", "changefreq": "always", "priority": 0.55}
    for own in documents.values():
        assert len(own) <= most
        assert len(render_urls(UrlColumns.of([SitemapUrl(site + path, **longest) for path in own]))) <= room  # type: ignore[arg-type]
    assert max(map(len, blocks.values())) <= most // 3
    assert sorted(documents) == list(range(1, len(documents) + 1))
    assert sorted(blocks) == list(range(1, len(blocks) + 1))


def test_document_capacity_leaves_room_for_the_markup() -> None:
    assert permanent_page_slots.MAX_ENTRY_BYTES_PER_DOCUMENT + sum(map(len, URLSET_FRAME)) <= MAX_BYTES_PER_DOCUMENT
    assert permanent_page_slots.MAX_URLS_PER_DOCUMENT == MAX_URLS_PER_DOCUMENT == 50_000


def test_whole_blocks_and_whole_chunks_fill_a_document_and_fit_every_store() -> None:
    assert MAX_URLS_PER_DOCUMENT % FULL == MAX_URLS_PER_DOCUMENT % CHUNK_ENTRIES == 0
    assert min(SEGMENT_SLOTS, MAX_BLOCK_ROWS) >= FULL


def test_a_document_that_counts_as_more_than_full_after_damage_gets_no_page() -> None:
    """Blocks of long paths have few pages, but count as full when all of these are lost."""
    blocks = MAX_URLS_PER_DOCUMENT // FULL + 1
    rebuilt = RebuiltSite[str](SITES[0], dict.fromkeys(range(1, blocks + 1), 1))
    rebuilt.add(blocks, 0, "/a", "/<slug>")
    cursor, _ = rebuilt.cursor()
    assert cursor.document_pages > MAX_URLS_PER_DOCUMENT
    assert cursor.advance(500) == PlacementCursor(blocks + 1, 2, 1, 500, 1, 500)
    assert list(cursor.advance_many([500, 500])) == [(2, PlacementCursor(blocks + 1, 2, 2, 1000, 2, 1000))]


@given(
    costs=st.lists(st.integers(400, 13_000) | st.just(150_000), max_size=60),
    before=st.lists(st.integers(400, 13_000), max_size=10),
)
def test_slots_assigned_at_once_equal_slots_assigned_in_turn(costs: list[int], before: list[int]) -> None:
    with pytest.MonkeyPatch.context() as small:
        small.setattr(permanent_page_slots, "MAX_URLS_PER_DOCUMENT", 17)
        small.setattr(permanent_page_slots, "MAX_ENTRY_BYTES_PER_DOCUMENT", 150_000)
        small.setattr(permanent_page_slots, "MAX_BLOCK_PAGES", 5)
        small.setattr(permanent_page_slots, "MAX_BLOCK_BYTES", 40_000)
        start = PlacementCursor()
        for cost in before:
            start = start.advance(cost)
        filling, one_by_one = start, []
        for cost in costs:
            filling = filling.advance(cost)
            one_by_one.append(filling)
        steps = list(start.advance_many(costs))
        assert sum(pages for pages, _ in steps) == len(costs)
        assert [filling for _, filling in steps] == list({now.block: now for now in one_by_one}.values())


def _learned(path: str, at: int = 1000, route: str = "/<slug>") -> Observation:
    return Observation(path, route, at, 200, "text/html", learned=True)


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: Callable[[Path], Store] = ENGINES[request.param]
    return make(tmp_path)


def test_slash_variant_is_evaluated_again_when_its_twin_is_forgotten(store: Store) -> None:
    store.merge(SITES[0], [_learned("/a", at=1000), *[_learned(f"/{number}", at=2000) for number in range(FULL - 1)]])
    store.merge(SITES[0], [_learned("/a/", at=2000)])
    version = store.version(SITES[0])
    assert store.forget(SITES[0], 1500, 1500) == 1
    assert [block[0] for block in store.blocks(SITES[0], version)] == [1, 2]


def test_what_is_no_news_leaves_the_file_and_its_log_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "pages.sqlite3"
    store = SQLiteStore(file)
    seen = [_learned(f"/{number}")._replace(html=HtmlFacts(number)) for number in range(2000)]
    store.merge(SITES[0], seen)
    before = _stat(tmp_path)
    assert f"{file.name}-wal" in before
    assert store.merge(SITES[0], seen).changed == 0
    assert store.merge(SITES[0], [_learned("/gone")._replace(status=404)]).changed == 0
    assert store.forget(SITES[0], 1000, 1000) == 0
    assert _stat(tmp_path) == before
    store.merge(SITES[0], [_learned("/new")])
    assert _stat(tmp_path) != before
    store.close()


def _stat(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of each file in a folder, except the memory that processes share."""
    return {
        entry.name: (entry.stat().st_size, entry.stat().st_mtime_ns)
        for entry in os.scandir(folder)
        if not entry.name.endswith("-shm")
    }
