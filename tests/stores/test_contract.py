"""The contract of stores: one suite, run over every engine; then what is each engine's own."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import re
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import Store, StoreError
from sitemap_middleware.evidence.observation_merge import (
    REFRESH_SECONDS,
    merge_if_changed,
    merge_without_future,
    page_to_store,
)
from sitemap_middleware.evidence.observations import INDEXABLE_TYPES, HtmlFacts, Observation
from sitemap_middleware.models import MergeResult, Page, PageLimits
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import Block, LeaseStatus
from sitemap_middleware.stores.default_store import FallbackStore, only_existing_files
from sitemap_middleware.stores.merge_batch_into_pages import UNREPEATED_CONTENT_SECONDS, VOLATILE_RECHECK_SECONDS
from sitemap_middleware.stores.permanent_page_slots import MAX_BLOCK_PAGES
from sitemap_middleware.stores.sql_row_id_layout_and_path_hash import path_hashes
from sitemap_middleware.stores.sqlite import pages as shelf
from sitemap_middleware.stores.sqlite import store as sqlite
from sitemap_middleware.stores.sqlite.schema import PATH_HASH_BITS, SCHEMA_VERSION
from sitemap_middleware.stores.sqlite.store import SQLiteStore
from sitemap_middleware.stores.store_status import SiteStatus, store_status
from sitemap_middleware.value_history import VOLATILE

from ..support import postgres
from ..support.forking import fork_children, run_in_fresh_process
from ..support.redis_servers import PROGRAMS, USUAL, shared, shared_cluster

SITE = "https://example.com"


def untested(_: object) -> bool:
    """For the default store: as if no test ran."""
    return False


OTHER = "https://example.org"

ENGINES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: open_store("memory://", "store"),
    "sqlite": lambda folder: open_store(f"sqlite:///{folder / 'pages.sqlite3'}", "store"),
    "default": lambda folder: FallbackStore(folder / "default.sqlite3", tested=untested),
    "postgresql": lambda _: open_store(postgres.server().fresh(), "store"),
}


def _in_redis(program: str) -> Callable[[Path], Store]:
    return lambda folder: open_store(f"{shared(program).url}?prefix={folder}", "store")


ENGINES |= {program: _in_redis(program) for program in PROGRAMS}
ENGINES["cluster"] = lambda folder: open_store(f"{shared_cluster().url}?prefix={folder}", "store")


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return ENGINES[request.param](tmp_path)


def seen(path: str = "/", at: int = 1000, **more: object) -> Observation:
    return Observation(path, path, at, 200, "text/html", **more)  # type: ignore[arg-type]


# The contract


def test_merged_page_is_stored(store: Store) -> None:
    observation = seen("/a", last_modified=500, canonical="https://example.com/b", noindex=True, private=True)
    assert store.merge(SITE, [observation]) == MergeResult(1, 0)
    assert store.pages(SITE) == [merge_if_changed(None, observation)]


def test_pages_come_in_the_order_of_their_paths(store: Store) -> None:
    store.merge(SITE, [seen("/b"), seen("/"), seen("/a/c"), seen("/a")])
    assert [page.path for page in store.pages(SITE)] == ["/", "/a", "/a/c", "/b"]


def test_sites_know_nothing_of_each_other(store: Store) -> None:
    store.merge(SITE, [seen("/a")])
    store.merge(OTHER, [seen("/b")])
    assert [page.path for page in store.pages(SITE)] == ["/a"]
    assert [page.path for page in store.pages(OTHER)] == ["/b"]
    version = store.version(SITE)
    store.merge(OTHER, [seen("/c")])
    assert store.version(SITE) == version > 0


def test_a_site_never_seen_is_empty_and_of_version_0(store: Store) -> None:
    assert store.pages(SITE) == []
    assert store.version(SITE) == 0


def test_several_observations_of_one_page_merge_in_order(store: Store) -> None:
    store.merge(SITE, [seen(at=1000), seen(at=2000)._replace(status=404), seen(at=1500)])
    (page,) = store.pages(SITE)
    assert (page.status, page.first_seen, page.last_seen) == (404, 1000, 2000)


def test_unchanged_page_is_not_written_within_the_refresh_interval(store: Store) -> None:
    store.merge(SITE, [seen(at=1000)])
    version = store.version(SITE)
    assert store.merge(SITE, [seen(at=1000 + REFRESH_SECONDS - 1)]).changed == 0
    assert store.version(SITE) == version
    assert store.merge(SITE, [seen(at=1000 + REFRESH_SECONDS)]).changed == 1
    assert store.version(SITE) > version


def test_the_version_grows_with_every_change(store: Store) -> None:
    versions = []
    for at in range(5):
        store.merge(SITE, [seen(at=at)._replace(status=200 + 204 * (at % 2))])
        versions.append(store.version(SITE))
    assert versions == sorted(set(versions))


def test_document_date_is_when_its_etag_was_first_served(store: Store) -> None:
    assert store.served_since(SITE, "/sitemap.xml", "one", 1000) == 1000
    assert store.served_since(SITE, "/sitemap.xml", "one", 2000) == 1000
    assert store.served_since(SITE, "/sitemap.xml", "two", 3000) == 3000
    assert store.served_since(SITE, "/sitemap.xml", "one", 4000) == 4000
    assert store.served_since(OTHER, "/sitemap.xml", "one", 5000) == 5000


@pytest.mark.parametrize(
    ("times", "dates"),
    [
        ([1000, 1000, 1000], [1000, 1001, 1002]),
        ([1000, 1000, 1001, 1002], [1000, 1001, 1002, 1003]),
        ([1000, 1000, 1002], [1000, 1001, 1002]),
        ([1000, 999, 945, 1000], [1000, 1001, 1002, 1003]),  # clocks of workers that differ
        ([1060, 1000, 1060], [1060, 1061, 1062]),
        ([1061, 1000, 1000, 1200], [1061, 1000, 1001, 1200]),  # a clock that is wrong
        ([2**53, 1000, 1000], [2**53, 1000, 1001]),
    ],
)
def test_documents_that_replace_each_other_have_different_dates(
    store: Store, times: list[int], dates: list[int]
) -> None:
    found = [store.served_since(SITE, "/sitemap.xml", f"etag {number}", now) for number, now in enumerate(times)]
    assert found == dates
    assert store.served_since(SITE, "/sitemap.xml", f"etag {len(times) - 1}", 9999) == dates[-1]
    assert store.served_since(SITE, "/sitemap-routes.xml", "etag 0", 1000) == 1000


def test_a_store_closed_opens_itself_again(store: Store) -> None:
    store.merge(SITE, [seen("/a")])
    store.close()
    store.close()
    assert [page.path for page in store.pages(SITE)] == ["/a"]


def test_threads_may_merge_at_the_same_time(store: Store) -> None:
    def work(number: int) -> None:
        for count in range(20):
            store.merge(SITE, [seen(f"/{number}/{count}")])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.pages(SITE)) == 80
    assert [block.pages for block in store.blocks(SITE)] == [80]


OBSERVATIONS = st.builds(
    Observation,
    path=st.sampled_from(["/", "/a", "/b", "/c"]),
    route=st.sampled_from(["/", "/<a>"]),
    at=st.integers(0, 10_000),
    status=st.sampled_from([200, 301, 404]),
    media_type=st.sampled_from(["text/html", "application/json"]),
    noindex=st.booleans(),
    private=st.booleans(),
    canonical=st.none() | st.text(max_size=5),
    last_modified=st.none() | st.integers(700_000_000, 800_000_000),
    html=st.none(),
    learned=st.just(False),
    may_be_provided=st.just(False),
    merged_at=st.just(0),
    fraction=st.integers(0, 255),
    listed_types=st.just(INDEXABLE_TYPES),
)


@pytest.mark.uncovered
@given(observations=st.lists(OBSERVATIONS, max_size=30), cut=st.integers(0, 30))
def test_every_engine_stores_what_the_pure_merge_gives(
    tmp_path_factory: pytest.TempPathFactory, observations: list[Observation], cut: int
) -> None:
    expected: dict[str, Page] = {}
    for batch in (observations[:cut], observations[cut:]):
        merged: dict[str, Page] = {}
        for observation in batch:
            merged[observation.path] = merge_without_future(
                merged.get(observation.path, expected.get(observation.path)), observation
            )
        expected |= {path: page_to_store(expected.get(path), page) for path, page in merged.items()}
    for make in ENGINES.values():
        store = make(tmp_path_factory.mktemp("store"))
        store.merge(SITE, observations[:cut])
        store.merge(SITE, observations[cut:])
        assert store.pages(SITE) == [expected[path] for path in sorted(expected)]
        store.close()


@pytest.mark.uncovered
@given(
    batches=st.lists(
        st.lists(st.builds(Observation._replace, OBSERVATIONS, learned=st.booleans()), max_size=6)
        | st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)),
        max_size=6,
    ),
    limits=st.builds(PageLimits, site=st.integers(1, 3), route=st.integers(1, 3)),
)
def test_every_engine_learns_and_forgets_the_same_within_the_caps(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Observation] | tuple[int, int]], limits: PageLimits
) -> None:
    stores = [make(tmp_path_factory.mktemp("store")) for make in ENGINES.values()]
    versions: list[list[int]] = [[0] for _ in stores]

    def blocks(number: int, since: int = 0) -> list[Block]:
        """With versions as they come, one after the other."""
        after = versions[number][since] if since < len(versions[number]) else stores[number].version(SITE)
        changed = stores[number].blocks(SITE, after)
        return [block._replace(version=versions[number].index(block.version)) for block in changed]

    for batch in batches:
        results = [
            store.merge(SITE, batch, limits) if isinstance(batch, list) else store.forget(SITE, *batch)
            for store in stores
        ]
        assert len(set(results)) == 1
        pages = [store.pages(SITE) for store in stores]
        assert pages.count(pages[0]) == len(pages)
        for store, known in zip(stores, versions, strict=True):
            if known[-1] != store.version(SITE):
                known.append(store.version(SITE))
        looks = [[blocks(at), blocks(at, 1), list(store.sample(SITE, 2))] for at, store in enumerate(stores)]
        assert looks.count(looks[0]) == len(looks)
        inside = [[store.block(SITE, one.number) for one in store.blocks(SITE)] for store in stores]
        assert inside.count(inside[0]) == len(inside)
        learned = [page.route for page in pages[0] if page.learned]
        assert len(learned) <= limits.site + 4  # a page of a route that turns into a learned one is kept
    for store in stores:
        store.close()


def learned(path: str, at: int = 1000, route: str = "/posts/<slug>", **more: object) -> Observation:
    return seen(path, at, **more)._replace(route=route, learned=True)


def paths(store: Store) -> list[str]:
    return [page.path for page in store.pages(SITE)]


def test_full_limits_refuse_new_pages_and_keep_updating_old_ones(store: Store) -> None:
    limits = PageLimits(site=3, route=2)
    assert store.merge(SITE, [learned("/a"), learned("/b"), learned("/c")], limits) == MergeResult(2, 1)
    assert store.merge(SITE, [learned("/x", route="/x/<y>"), learned("/y", route="/x/<y>")], limits) == MergeResult(
        1, 1
    )
    gone = learned("/a", at=2000)._replace(status=404)
    assert store.merge(SITE, [learned("/d"), gone], limits) == MergeResult(1, 1, conflicting_paths=("/a",))
    assert [(page.path, page.status) for page in store.pages(SITE)] == [("/a", 404), ("/b", 200), ("/x", 200)]


def test_routes_of_the_url_map_have_no_cap(store: Store) -> None:
    assert store.merge(SITE, [seen(f"/{number}") for number in range(5)], PageLimits(1, 1)) == MergeResult(5, 0)


def test_limits_apply_to_each_site(store: Store) -> None:
    assert store.merge(SITE, [learned("/a")], PageLimits(1, 1)) == store.merge(OTHER, [learned("/a")], PageLimits(1, 1))


@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_learned_page_is_listed_once_its_html_was_read(store: Store, batch_size: int) -> None:
    read, gone = {"html": HtmlFacts(1)}, {"status": 404}
    steps: list[tuple[dict[str, object], int | None]] = [
        ({"is_unread": True}, None),
        (read, 200),
        ({"is_unread": True}, 200),
        (gone, 404),
        ({"is_unread": True}, 404),
        (read, 200),
        ({"noindex": True}, 200),
        ({"is_unread": True}, 200),
        (read, 200),
    ]
    observations = [learned("/a", at)._replace(**facts) for at, (facts, _) in enumerate(steps, 1000)]
    unread = 0
    for first in range(0, len(steps), batch_size):
        unread += len(store.merge(SITE, observations[first : first + batch_size][::-1]).unread_paths)
        _, status = steps[: first + batch_size][-1]
        assert [page.status for page in store.pages(SITE)] == ([] if status is None else [status])
    assert unread == 3
    assert not any(page.noindex for page in store.pages(SITE))


def test_a_learned_page_whose_html_no_visit_of_a_batch_has_read_is_not_stored(store: Store) -> None:
    unread = [learned("/a", at)._replace(is_unread=True) for at in (1000, 1001)]
    assert {*store.merge(SITE, unread).unread_paths} == {"/a"}
    assert store.pages(SITE) == []


def test_a_page_that_the_app_names_is_listed_before_its_html_was_read(store: Store) -> None:
    assert store.merge(SITE, [seen("/a", is_unread=True)]) == MergeResult(1, 0)


@pytest.mark.parametrize(
    "unlisted",
    [
        {"status": 404},
        {"noindex": True},
        {"private": True},
        {"canonical": "https://example.com/b"},
        {"html": HtmlFacts(1, noindex=True)},
        {"html": HtmlFacts(1, canonical="https://example.com/b")},
    ],
)
def test_unlistable_page_is_not_learned(store: Store, unlisted: dict[str, object]) -> None:
    assert store.merge(SITE, [learned("/a")._replace(**unlisted)]).changed == 0
    assert store.merge(SITE, [learned("/a"), learned("/a", at=1001)._replace(**unlisted)]).changed == 0
    assert store.merge(SITE, [learned("/a")]).changed == 1
    assert store.merge(SITE, [learned("/a", at=1001)._replace(**unlisted)]).changed == 1


def test_merge_reports_new_paths_and_changed_paths(store: Store) -> None:
    def merge_digest(digest: int, at: int) -> MergeResult:
        return store.merge(SITE, [seen("/a b", at=at)._replace(html=HtmlFacts(digest))])

    assert store.merge(SITE, [seen("/a b", at=900)]) == MergeResult(1, 0)
    assert merge_digest(1, 1000) == MergeResult(1, 0, new_paths=("/a b",))
    assert merge_digest(1, 1000 + UNREPEATED_CONTENT_SECONDS)[2:4] == ((), ())
    assert merge_digest(7, 1100)[2:4] == ((), ("/a b",))
    assert merge_digest(7, 1101 + UNREPEATED_CONTENT_SECONDS)[2:4] == ((), ("/a b",))
    assert merge_digest(7, 1102 + UNREPEATED_CONTENT_SECONDS)[2:4] == ((), ())
    assert merge_digest(2, 2003) == MergeResult(1, 0, changed_paths=("/a b",))
    assert merge_digest(1, 2004)[2:4] == ((), ())
    assert merge_digest(VOLATILE, 2005)[2:4] == ((), ())
    assert merge_digest(3, 2006)[2:4] == ((), ())
    assert merge_digest(4, 2005 + VOLATILE_RECHECK_SECONDS)[2:4] == ((), ("/a b",))


def test_a_page_that_changes_its_route_leaves_room_in_the_old_one(store: Store) -> None:
    limits = PageLimits(site=2, route=1)
    store.merge(SITE, [learned("/a", route="/<one>")], limits)
    store.merge(SITE, [learned("/a", at=2000, route="/<two>")], limits)
    assert store.merge(SITE, [learned("/b", route="/<two>")], limits) == MergeResult(0, 1)
    assert store.merge(SITE, [learned("/b", route="/<one>")], limits) == MergeResult(1, 0)
    store.merge(SITE, [learned("/a", at=3000)._replace(learned=False)], limits)
    assert store.merge(SITE, [learned("/c", route="/<two>")], limits) == MergeResult(1, 0)


def test_provided_page_stays_provided_if_a_process_has_not_read_values(store: Store) -> None:
    named = learned("/a")._replace(learned=False, may_be_provided=True)
    store.merge(SITE, [named, learned("/b")._replace(may_be_provided=True)])
    store.merge(SITE, [learned(path, at=9000)._replace(may_be_provided=True) for path in ("/a", "/b")])
    assert [page.learned for page in store.pages(SITE)] == [False, True]
    store.merge(SITE, [learned("/a", at=20_000), named._replace(path="/b", at=20_000)])
    assert [page.learned for page in store.pages(SITE)] == [True, False]


def test_learned_pages_expire_and_unlisted_ones_sooner(store: Store) -> None:
    store.merge(SITE, [learned("/old", at=1000), learned("/new", at=3000), seen("/static", at=1000)])
    for number, (path, at) in enumerate({"/gone": 2000, "/just-gone": 3000}.items()):
        store.merge(SITE, [learned(path, at=at - 1)])
        gone = [{"status": 410}, {"noindex": True}][number]
        store.merge(SITE, [learned(path, at=at)._replace(**gone)])  # type: ignore[arg-type]
    version = store.version(SITE)
    assert store.forget(SITE, 1000, 1000) == 0
    assert store.version(SITE) == version
    assert store.forget(SITE, 1001, 2001) == 2
    assert store.version(SITE) > version
    assert paths(store) == ["/just-gone", "/new", "/static"]


def test_what_is_forgotten_leaves_room(store: Store) -> None:
    limits = PageLimits(site=1, route=1)
    store.merge(SITE, [learned("/a")], limits)
    assert store.merge(SITE, [learned("/b")], limits) == MergeResult(0, 1)
    store.forget(SITE, 5000, 5000)
    assert store.merge(SITE, [learned("/b")], limits) == MergeResult(1, 0)


def test_a_lease_is_one_owners_until_it_ends(store: Store) -> None:
    assert store.lease(SITE, "job", "one", 1000, 60)
    assert not store.lease(SITE, "job", "two", 1059, 60)
    assert store.lease(SITE, "another", "two", 1059, 60)
    assert store.lease(OTHER, "job", "two", 1059, 60)
    assert store.lease(SITE, "job", "two", 1060, 60)
    assert not store.lease(SITE, "job", "one", 1061, 60)


def test_owner_may_renew_and_release_a_lease(store: Store) -> None:
    assert store.lease(SITE, "job", "one", 1000, 60)
    assert store.lease(SITE, "job", "one", 1030, 60)
    assert not store.lease(SITE, "job", "two", 1089, 60)
    assert store.lease(SITE, "job", "one", 1089, 0)
    assert store.lease(SITE, "job", "two", 1089, 60)


def test_pages_are_found_by_their_paths(store: Store) -> None:
    store.merge(SITE, [learned("/posts/a"), seen("/about")])
    store.merge(OTHER, [seen("/about", at=5)])
    assert store.find_pages(SITE, ["/about", "/none"]) == {"/about": merge_if_changed(None, seen("/about"))}
    assert sorted(store.find_pages(SITE, [f"/{number}" for number in range(2000)] + ["/posts/a", "/about"])) == [
        "/about",
        "/posts/a",
    ]
    assert store.find_pages(SITE, []) == {}


def test_a_learned_page_has_its_place_in_a_block_for_life(store: Store) -> None:
    full, count = MAX_BLOCK_PAGES, MAX_BLOCK_PAGES + 500
    store.merge(SITE, [learned(f"/posts/{number:04}") for number in range(count)])
    first_of_all = store.version(SITE)
    store.merge(SITE, [seen("/about"), seen("/")])
    since = store.version(SITE)
    assert store.blocks(SITE) == [
        Block(0, 0, 2, since),
        Block(1, 1, full, first_of_all),
        Block(2, 1, 500, first_of_all),
    ]
    store.merge(SITE, [learned("/posts/0007", at=2000)._replace(status=404)])
    assert store.blocks(SITE, since) == [Block(1, 1, full, since := store.version(SITE))]
    store.forget(SITE, 0, 2001)
    assert store.blocks(SITE, since) == [Block(1, 1, full - 1, since := store.version(SITE))]
    store.merge(SITE, [learned("/posts/new")])
    assert store.blocks(SITE, since) == [Block(2, 1, 501, store.version(SITE))]
    first, second = ([page.path for page in store.block(SITE, number)] for number in (1, 2))
    assert first == [f"/posts/{number:04}" for number in range(full) if number != 7]
    assert second == [*(f"/posts/{number:04}" for number in range(full, count)), "/posts/new"]
    assert store.block(SITE, 3) == store.block(OTHER, 1) == []
    assert store.blocks(OTHER) == []


def test_slash_variant_changes_the_block_of_the_other_page(store: Store) -> None:
    store.merge(SITE, [seen("/a"), learned("/b", route="/<slug>")])
    since = store.version(SITE)
    store.merge(SITE, [learned("/a/", route="/<slug>")])
    now = store.version(SITE)
    assert store.blocks(SITE, since) == [Block(0, 0, 1, now), Block(1, 1, 2, now)]
    store.merge(SITE, [learned("/c", route="/<slug>")])
    assert [block.number for block in store.blocks(SITE, now)] == [1]


def test_a_sample_is_taken_evenly_of_both_kinds_of_page(store: Store) -> None:
    assert list(store.sample(SITE, 10)) == []
    count = 3 * MAX_BLOCK_PAGES + 100
    store.merge(SITE, [learned(f"/posts/{number:04}") for number in range(count)])
    store.merge(SITE, [seen(f"/{number}") for number in range(5)])
    sample = [page.path for page in store.sample(SITE, 20)]
    assert sample[:5] == [f"/{number}" for number in range(5)]
    parts = [range(count * number // 15, count * (number + 1) // 15) for number in range(15)]
    assert [int(path[-4:]) in part for path, part in zip(sample[5:], parts, strict=True)] == [True] * 15
    assert len(store.sample(SITE, 4)) == 4
    assert len(store.sample(SITE, 1000)) == 1000
    assert len(store.sample(SITE, 4000)) == count + 5


def test_a_sample_has_each_page_once_even_if_most_between_two_were_forgotten(store: Store) -> None:
    ages = [1000 if 600 <= number < 1800 else 9000 for number in range(2400)]
    store.merge(SITE, [learned(f"/posts/{number:04}", at) for number, at in enumerate(ages)])
    assert store.forget(SITE, 5000, 5000) == 1200
    sample = [page.path for page in store.sample(SITE, 1100)]
    assert 300 < len(sample) <= 1100
    assert sample == sorted({*sample})


def test_records_are_stored_by_name_until_they_are_deleted(store: Store) -> None:
    assert store.load(SITE, ["one"]) == {}
    store.save(SITE, {"one": b"1", "two": b"", "three": b"\0" * 100_000})
    store.save(OTHER, {"one": b"other"})
    store.save(SITE, {"one": b"2", "two": None, "never": None})
    assert store.load(SITE, ["one", "two", "three", "four"]) == {"one": b"2", "three": b"\0" * 100_000}
    assert store.load(OTHER, ["one", "three"]) == {"one": b"other"}
    assert store.load(SITE, []) == {}
    store.save(SITE, {})


# What engines tell people


@pytest.mark.parametrize(
    ("engine", "called"),
    [
        ("sqlite", rf"SQLite \d\S*, file version {SCHEMA_VERSION}"),
        ("postgresql", r"PostgreSQL \d\S*, schema version \d+"),
        *((program, rf"{program.capitalize()} \d\S*") for program in PROGRAMS),
        ("cluster", rf"{USUAL.capitalize()} \d\S*, a cluster"),
    ],
)
def test_status_reports_the_content_of_any_engine(engine: str, called: str, tmp_path: Path) -> None:
    store = ENGINES[engine](tmp_path)
    for site in (SITE, OTHER):
        store.merge(site, [seen("/"), *(learned(f"/{number}") for number in range(3))])
        store.save(site, {"thing": b"1"})
    for name, at in (("/sitemap.xml", 1000), ("/sitemap-pages-1.xml", 3000), ("/sitemap-routes-1.xml", 2000)):
        store.served_since(SITE, name, f'"{at} of it"', at)
    store.lease(SITE, "values/posts", "one of two", 1000, 60)
    store.lease(OTHER, "ended", "one", 900, 60)
    status = store_status(store, 1000)
    assert re.fullmatch(called, f"{status.engine} {status.version}")
    assert status.size is not None
    assert status.size > 100
    assert status.leases == [LeaseStatus(SITE, "values/posts", 1060)]
    assert [site_status._replace(version=0, last_seen=None) for site_status in status.sites] == [
        SiteStatus(SITE, 0, 3, 1, 1, 1, None, 3000),
        SiteStatus(OTHER, 0, 3, 1, 1, 1, None, None),
    ]
    (other_status,) = store_status(store, 1000, [OTHER]).sites
    assert other_status == status.sites[1]


# SQLite: one file, several processes, anything on the disk


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pages.sqlite3"


def _fold_in_child(store: Store, paths: list[str]) -> None:
    for path in paths:
        store.merge(SITE, [seen(path)])
    os._exit(0)


def _fold_in_children(file: Path) -> tuple[list[int | None], int]:
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/parent")])
    batches = [[f"/{number}/{count}" for count in range(10)] for number in range(3)]
    return fork_children(_fold_in_child, ((store, batch) for batch in batches), 20), len(store.pages(SITE))


def test_processes_share_a_file(file: Path) -> None:
    assert run_in_fresh_process(_fold_in_children, file) == ([0, 0, 0], 31)


def test_empty_file_is_initialised(file: Path) -> None:
    file.touch()
    SQLiteStore(file).merge(SITE, [seen("/a")])
    assert len(SQLiteStore(file).pages(SITE)) == 1


def test_the_folder_of_a_file_is_made(tmp_path: Path) -> None:
    assert SQLiteStore(tmp_path / "new" / "folder" / "pages.sqlite3").merge(SITE, [seen()]).changed == 1


@pytest.mark.parametrize(
    "come_to",
    [
        lambda store: store.pages(SITE),
        lambda store: store.find_pages(SITE, ["/a"]),
        lambda store: store.block(SITE, 0),
        lambda store: store.sample(SITE, 9),
    ],
    ids=["pages", "known", "block", "sample"],
)
def test_unreadable_page_is_dropped_and_others_are_kept(file: Path, come_to: Callable[[Store], object]) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/a"), seen("/b")])
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("UPDATE page SET data = ? WHERE path = '/a'", (bytes(66),))
    come_to(store)
    assert paths(store) == ["/b"]


def test_pages_with_the_same_hash_are_distinguished(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [learned("/posts/a")])
    with sqlite3.connect(file) as connection:
        mark = path_hashes(1, ["/posts/b"], PATH_HASH_BITS)["/posts/b"]
        connection.execute("INSERT INTO path_hash SELECT ?, id FROM page", (mark,))
    connection.close()
    assert store.find_pages(SITE, ["/posts/b"]) == {}
    assert store.merge(SITE, [learned("/posts/b")]).changed == 1
    assert [page.path for page in store.block(SITE, 1)] == ["/posts/a", "/posts/b"]
    assert store.find_pages(SITE, ["/posts/b"]).keys() == {"/posts/b"}


def test_hash_collision_between_sites_returns_no_foreign_page(file: Path) -> None:
    ours, theirs = "/p/6a6b01", "/p/22e9255"  # found by trying some twenty million paths
    assert path_hashes(1, [ours], PATH_HASH_BITS)[ours] == path_hashes(2, [theirs], PATH_HASH_BITS)[theirs]
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/")])
    store.merge(OTHER, [learned(theirs, at=1000)])
    before = store.pages(OTHER)
    assert store.find_pages(SITE, [ours, theirs]) == {}
    assert store.merge(SITE, [learned(ours), learned(theirs, at=2000, noindex=True)]).changed == 1
    assert [page.path for page in store.block(SITE, 1)] == [ours]
    assert store.pages(OTHER) == before


def test_nothing_is_left_of_a_page_that_is_forgotten_or_moved(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [learned(f"/posts/{number}", at=1000) for number in range(40)])
    for at in range(1001, 1009):  # of some pages the marks are settled meanwhile
        store.merge(SITE, [learned("/posts/last", at=at, noindex=at % 2 == 0)])
    recent, moved = [learned(f"/posts/{number}", at=9000) for number in range(20)], seen("/posts/0", at=9001)
    store.merge(SITE, [*recent, moved])
    assert store.forget(SITE, 5000, 5000) == 21
    with sqlite3.connect(file) as connection:
        pages = [page for (page,) in connection.execute("SELECT id FROM page ORDER BY id")]
        marked = [
            page
            for (page,) in connection.execute(
                "SELECT page FROM path_hash UNION ALL SELECT page FROM recent_path_hash ORDER BY 1"
            )
        ]
    connection.close()
    assert len(pages) == 20
    assert marked == pages


def test_recent_hashes_are_moved_to_the_main_table(file: Path) -> None:
    store = SQLiteStore(file)
    for at in range(0, 40_000, 1000):
        new = [learned(f"/posts/{at}-{number}", at=at) for number in range(10)]
        store.merge(SITE, [*new, *[learned(f"/posts/0-{number}", at=at) for number in range(10)]])
    with sqlite3.connect(file) as connection:
        ((late,),) = connection.execute("SELECT count(*) FROM recent_path_hash")
        ((marks,),) = connection.execute("SELECT count(*) FROM path_hash")
    connection.close()
    assert late + marks == 400
    assert late <= 160
    assert store.find_pages(SITE, [page.path for page in store.pages(SITE)]).keys() == {
        page.path for page in store.pages(SITE)
    }


def _garbage(file: Path) -> None:
    file.write_bytes(b"this was never a database " * 100)


def _damage(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen(f"/{number}") for number in range(2000)])
    store.close()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)


def _truncate(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen(f"/{number}") for number in range(2000)])
    store.close()
    os.truncate(file, 5000)


def _newer(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/a")])
    store.close()
    with sqlite3.connect(file) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.close()


def _set_aside(file: Path) -> list[Path]:
    return [path for path in file.parent.glob("*.aside-*") if not path.name.endswith(("-wal", "-shm"))]


@pytest.mark.parametrize("spoil", [_garbage, _damage, _truncate, _newer])
def test_a_spoilt_or_newer_file_is_set_aside_with_one_warning(
    file: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    spoil(file)
    before = file.read_bytes()
    store = SQLiteStore(file)
    for _ in range(2):  # damage below the first page shows only in use: that call fails, the next one repairs
        try:
            store.merge(SITE, [seen("/new")])
        except StoreError:
            continue
    assert [page.path for page in store.pages(SITE)] == ["/new"]
    (aside,) = _set_aside(file)
    assert aside.stat().st_size == len(before)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    assert str(aside) in caplog.text


def test_a_process_that_is_at_work_leaves_its_file_to_newer_code(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/a")])
    with contextlib.closing(sqlite3.connect(file)) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="was migrated by newer code; restart this process"):
        store.merge(SITE, [seen("/b")])
    assert [page.path for page in store.pages(SITE)] == ["/a"]
    store.close()
    with pytest.raises(StoreError, match=f"is of version {SCHEMA_VERSION + 1}, newer .*; restart this process"):
        store.version(SITE)
    assert _set_aside(file) == []


def test_a_process_forked_while_a_file_is_opened_holds_no_other_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_SECONDS", 0.05)
    context = multiprocessing.get_context("fork")
    end = context.Event()
    child = context.Process(target=end.wait, args=(20,))
    with sqlite.folder_lock(file.parent):
        child.start()
    try:
        assert SQLiteStore(file).merge(SITE, [seen()]).changed == 1
    finally:
        end.set()
        child.join(20)


def test_any_number_of_pages_is_forgotten_some_at_a_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "_FORGET_BATCH_PAGES", 3)
    with contextlib.closing(SQLiteStore(file)) as store:
        store.merge(SITE, [learned(f"/{number}", at=1000) for number in range(10)] + [learned("/late", at=5000)])
        before = store.version(SITE)
        assert store.forget(SITE, 2000, 0) == 10
        assert [page.path for page in store.pages(SITE)] == ["/late"]
        assert sum(block.pages for block in store.blocks(SITE, before)) == 1


def _fold_in_children_with_own_stores(file: Path) -> list[int | None]:
    return fork_children(_fold_in_child, [(SQLiteStore(file), [f"/{number}"]) for number in range(4)], 20)


def test_several_processes_set_a_spoilt_file_aside_once(file: Path) -> None:
    _garbage(file)
    assert run_in_fresh_process(_fold_in_children_with_own_stores, file) == [0, 0, 0, 0]
    assert len(_set_aside(file)) == 1
    assert len(SQLiteStore(file).pages(SITE)) == 4


def test_another_programs_database_is_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = file.read_bytes()
    store = SQLiteStore(file)
    with pytest.raises(StoreError, match="another program; name another file for the sitemap"):
        store.merge(SITE, [seen()])
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("left", [(), ("-wal", "-shm")])
def test_deleted_file_is_created_again_with_one_warning(
    file: Path, left: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/a")])
    for path in file.parent.iterdir():
        if not path.name.endswith(left or ("no such",)):
            path.unlink()
    assert store.pages(SITE) == []
    assert store.merge(SITE, [seen("/b")]).changed == 1
    assert [page.path for page in SQLiteStore(file).pages(SITE)] == ["/b"]
    (record,) = caplog.records
    assert record.getMessage() == f"store {file} was deleted or replaced; what it held will be learned again"


def test_unwritable_path_is_a_store_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/pages\.sqlite3"):
        SQLiteStore(tmp_path / "file" / "pages.sqlite3").merge(SITE, [seen()])


def test_failed_merge_changes_nothing(file: Path) -> None:
    store = SQLiteStore(file)
    store.merge(SITE, [seen("/a")])
    version = store.version(SITE)
    with pytest.raises(StoreError):
        store.merge(SITE, [seen("/b"), seen("/c", last_modified=2**70)])  # more than SQLite's integers hold
    assert [page.path for page in store.pages(SITE)] == ["/a"]
    assert store.version(SITE) == version


def test_interrupted_merge_is_rolled_back(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(file)

    def interrupted() -> Observation:
        raise KeyboardInterrupt

    class Interrupted(list[Observation]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            yield seen("/a")
            interrupted()

    with pytest.raises(KeyboardInterrupt):
        store.merge(SITE, Interrupted())
    assert store.pages(SITE) == []


# The default: a file if one can be written


def test_the_default_writes_nothing_until_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.sqlite3"
    store = FallbackStore(file, tested=untested)
    store.close()
    assert not file.exists()
    store.merge(SITE, [seen()])
    assert file.exists()


def test_default_store_for_a_command_uses_the_existing_file_and_creates_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "sitemap.sqlite3"
    with only_existing_files():
        store, later = (FallbackStore(file, tested=untested) for _ in range(2))
    store.merge(SITE, [seen("/a")])
    assert [page.path for page in store.pages(SITE)] == ["/a"]
    assert not list(tmp_path.iterdir())
    usual = FallbackStore(file, tested=untested)
    usual.merge(SITE, [seen("/b")])
    assert [page.path for page in later.pages(SITE)] == ["/b"]
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    for opened_store in (store, later, usual):
        opened_store.close()


def test_unwritable_folder_falls_back_to_memory_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    store = FallbackStore(tmp_path / "file" / "sitemap.sqlite3", tested=untested)
    store.merge(SITE, [seen("/a")])
    store.merge(SITE, [seen("/b")])
    assert [page.path for page in store.pages(SITE)] == ["/a", "/b"]
    (record,) = caplog.records
    assert "sitemap store: memory" in record.getMessage()
    assert "SITEMAP_STORE" in record.getMessage()
    assert "every worker serves a sitemap of its own" in record.getMessage()


def test_a_default_file_that_others_are_opening_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_SECONDS", 0.05)
    file = tmp_path / "sitemap.sqlite3"
    store = FallbackStore(file, tested=untested)
    with sqlite.folder_lock(tmp_path), pytest.raises(StoreError, match="locked"):
        store.merge(SITE, [seen("/a")])
    store.merge(SITE, [seen("/a")])
    assert [page.path for page in SQLiteStore(file).pages(SITE)] == ["/a"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
