"""What every store promises, tried on each engine. A store of your own passes by being added to `ENGINES`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sitemap_middleware.models import Page, PageLimits, Site, StoreKey
from sitemap_middleware.observe.cleanup import Cleaner
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import MAX_LEASE_SECONDS, PART_PAGES, UNLIMITED, Store
from sitemap_middleware.stores.breaker import GuardedStore
from sitemap_middleware.stores.stored_sites import open_readonly, stored_sites

from ..support import mariadb, postgres
from ..support.redis_servers import PROGRAMS, shared, shared_cluster
from ..support.waiting import until

SITE, OTHER = StoreKey("https://example.com"), StoreKey("loopback:5000/é {x}%7B")

ENGINES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: open_store("memory://", "store"),
    "sqlite": lambda folder: open_store(f"sqlite:///{folder}/pages.sqlite3", "store"),
    "postgresql": lambda _: open_store(postgres.server().fresh(), "store"),
    "mariadb": lambda _: mariadb.fresh(),
    "cluster": lambda folder: open_store(f"{shared_cluster().url}?cluster=true&prefix={folder}", "store"),
}


def _in_redis(program: str) -> Callable[[Path], Store]:
    return lambda folder: open_store(f"{shared(program).url}?prefix={folder}", "store")


ENGINES |= {program: _in_redis(program) for program in PROGRAMS}


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = ENGINES[request.param](tmp_path)
    yield made
    made.close()


def page(path: str = "/", **more: Any) -> Page:
    return Page(**{"path": path, "route": "/", "first_seen": 1000, "last_seen": 1000, "status": 200, **more})


def learned(path: str, **more: Any) -> Page:
    return page(path, **{"route": "/posts/<slug>", "media_type": "text/html", "learned": True, **more})


def write(store: Store, *pages: Page, site: StoreKey = SITE, limits: PageLimits = UNLIMITED) -> set[str]:
    refused = store.write(site, store.version(site), {page.path: page for page in pages}, limits)
    assert refused is not None
    return refused


def everything(store: Store, site: StoreKey = SITE) -> dict[int, list[str]]:
    parts = store.parts(site)
    paths = {number: [page.path for page in store.part(site, number)] for number in parts}
    assert {number: len(found) for number, found in paths.items()} == {n: state.pages for n, state in parts.items()}
    return paths


# Pages


def test_a_site_never_seen_is_empty_and_of_version_0(store: Store) -> None:
    assert (store.version(SITE), store.parts(SITE), store.part(SITE, 0), store.part(SITE, 7)) == (0, {}, [], [])
    assert store.find(SITE, ["/"]) == {}


def test_pages_are_found_by_path_and_by_part(store: Store) -> None:
    pages = [page("/b"), page("/a"), page("/a/c"), learned("/posts/one")]
    assert write(store, *pages) == set()
    assert store.find(SITE, ["/a", "/posts/one", "/never"]) == {"/a": pages[1], "/posts/one": pages[3]}
    assert store.part(SITE, 0) == [pages[1], pages[2], pages[0]]
    assert store.part(SITE, 1) == [pages[3]]


def test_sites_know_nothing_of_each_other(store: Store) -> None:
    write(store, page("/a"))
    version = store.version(SITE)
    write(store, page("/b"), site=OTHER)
    assert (everything(store), everything(store, OTHER)) == ({0: ["/a"]}, {0: ["/b"]})
    assert store.version(SITE) == version != store.version(OTHER)


ANY_PAGE = st.builds(
    Page,
    **{**dict.fromkeys(Page._fields, ...), "path": st.just("/a"), "last_seen": st.integers(0, 2**60)},  # type: ignore[arg-type]
)
ANY_PAGE.validate()  # hypothesis resolves types when they are first needed, and sets a context variable


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=25)
@given(page=ANY_PAGE)
def test_any_page_is_read_as_it_was_written(store: Store, page: Page) -> None:
    version = store.version(SITE)
    assert store.write(SITE, version, {"/a": page}) == set()
    assert store.find(SITE, ["/a"]) == {"/a": page}
    assert store.write(SITE, store.version(SITE), {"/a": None}) == set()


def test_a_page_is_replaced_and_deleted(store: Store) -> None:
    write(store, page("/a"), page("/b"), learned("/posts/one"))
    write(store, page("/a", status=404), learned("/posts/one", last_seen=2000))
    found = store.find(SITE, ["/a", "/posts/one"])
    assert (found["/a"].status, found["/posts/one"].last_seen) == (404, 2000)
    assert store.write(SITE, store.version(SITE), {"/a": None, "/posts/one": None, "/never": None}) == set()
    assert everything(store) == {0: ["/b"]}


def test_a_write_for_another_version_changes_nothing(store: Store) -> None:
    write(store, page("/a"))
    for version in (0, 1, store.version(SITE) - 1, store.version(SITE) + 1):
        assert store.write(SITE, version, {"/a": None, "/b": page("/b")}) is None
    assert store.write(OTHER, 1, {"/b": page("/b")}) is None
    assert (everything(store), everything(store, OTHER)) == ({0: ["/a"]}, {})


def test_versions_grow_and_say_which_parts_have_changed(store: Store) -> None:
    write(store, page("/a"), learned("/posts/one"))
    first, before = store.version(SITE), store.parts(SITE)
    assert {state.version for state in before.values()} == {first}
    write(store, learned("/posts/one", last_seen=2000))
    after = store.parts(SITE)
    assert after[0] == before[0]
    assert after[1].version == store.version(SITE) > first
    write(store, page("/posts/one"))  # `values` name it now
    assert everything(store) == {0: ["/a", "/posts/one"]}
    assert store.parts(SITE)[0].version == store.version(SITE)
    assert store.write(SITE, version := store.version(SITE), {"/never": None}) == set()
    assert store.version(SITE) == version, "nothing has changed"


def test_learned_pages_fill_parts_keep_them_and_leave_room_for_others(store: Store) -> None:
    def posts(start: int, end: int) -> list[Page]:
        return [learned(f"/posts/{number:05}") for number in range(start, end)]

    write(store, *posts(0, PART_PAGES - 1))
    write(store, *posts(PART_PAGES - 1, PART_PAGES + 2))
    assert {number: state.pages for number, state in store.parts(SITE).items()} == {1: PART_PAGES, 2: 2}
    second = store.parts(SITE)[2]
    assert store.write(SITE, store.version(SITE), dict.fromkeys(f"/posts/{n:05}" for n in range(3))) == set()
    assert store.parts(SITE)[2] == second
    write(store, learned("/posts/new"), learned(f"/posts/{PART_PAGES:05}", last_seen=2000))
    assert {number: state.pages for number, state in store.parts(SITE).items()} == {1: PART_PAGES - 2, 2: 2}
    assert "/posts/new" in [page.path for page in store.part(SITE, 1)]


def test_new_learned_pages_beyond_the_limits_are_refused(store: Store) -> None:
    limits = PageLimits(site=4, route=2)
    assert write(store, page("/"), *map(learned, "abc"), limits=limits) == {"c"}
    assert write(store, learned("d"), learned("e", route="/e"), page("/x"), limits=limits) == {"d"}
    assert write(store, learned("a", last_seen=2000), learned("c"), limits=limits) == {"c"}
    assert store.write(SITE, store.version(SITE), {"b": None, "c": learned("c")}, limits) == set()
    assert write(store, *(learned(path, route=path) for path in "fgh"), limits=limits) == {"g", "h"}
    assert everything(store) == {0: ["/", "/x"], 1: ["a", "c", "e", "f"]}


def test_pages_not_seen_are_forgotten_unless_others_name_them(store: Store) -> None:
    write(
        store,
        page("/named", last_seen=1),
        learned("/old", last_seen=9),
        learned("/new", last_seen=100),
        learned("/gone", last_seen=50, status=404),
        learned("/gone/lately", last_seen=90_000, status=404),
    )
    guarded: Any = GuardedStore(store, time.time)  # type: ignore[abstract]
    cleaner, site, days = Cleaner(guarded, 2), Site("https", "example.com"), 24 * 60 * 60
    cleaner.clean_up(site, 10 + 2 * days, is_full=False)
    assert everything(store) == {0: ["/named"], 1: ["/gone/lately", "/new"]}
    assert store.parts(SITE)[1].version == store.version(SITE)
    assert write(store, learned("/old"), limits=PageLimits(route=3)) == set(), "they have left room"
    cleaner.clean_up(site, 10 * days, is_full=False)
    assert everything(store) == {0: ["/named"]}


def test_many_pages_are_read_and_deleted(store: Store) -> None:
    pages = [learned(f"/posts/{number}") for number in range(5000)]
    write(store, *pages)
    paths = [page.path for page in pages]
    assert len(store.find(SITE, paths)) == 5000
    assert store.write(SITE, store.version(SITE), dict.fromkeys(paths)) == set()
    assert everything(store) == {}


# Records and leases


def test_records_are_kept_by_owner_and_name(store: Store) -> None:
    records = {"a": b"", "é/b {c}": bytes(range(256)), "large": os.urandom(3_000_000)}
    store.save(SITE, records)
    store.save(OTHER, {"a": b"other"})
    assert store.load(SITE, [*records, "never"]) == records
    assert store.load(SITE, []) == {}
    store.save(SITE, {"a": b"new", "large": None, "never": None})
    assert store.load(SITE, records) == {"a": b"new", "é/b {c}": records["é/b {c}"]}
    assert store.load(OTHER, ["a"]) == {"a": b"other"}
    store.save(SITE, {})


def test_one_holder_at_a_time_has_a_lease(store: Store) -> None:
    assert store.lease(SITE, "job", "me", 60)
    assert store.lease(SITE, "job", "me", 60), "it is extended"
    assert not store.lease(SITE, "job", "you", 60)
    assert not store.lease(SITE, "job", "you", 0), "nobody ends that of another"
    assert store.lease(SITE, "é", "you", 60)
    assert store.lease(OTHER, "job", "you", 60)
    assert store.lease(SITE, "job", "me", 0)
    assert store.lease(SITE, "job", "you", MAX_LEASE_SECONDS)
    assert not store.lease(SITE, "job", "me", 60)


def test_a_lease_ends_by_itself(store: Store) -> None:
    assert store.lease(SITE, "job", "me", 1)
    until(lambda: store.lease(SITE, "job", "you", 60))


# Threads, forks, closing


def test_a_store_closed_opens_itself_again(store: Store) -> None:
    write(store, page("/a"))
    store.close()
    store.close()
    assert everything(store) == {0: ["/a"]}


def test_threads_may_write_at_the_same_time(store: Store) -> None:
    def work(number: int) -> None:
        for count in range(10):
            while store.write(SITE, store.version(SITE), {f"/{number}/{count}": page(f"/{number}/{count}")}) is None:
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.parts(SITE)[0].pages == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs fork")
def test_a_forked_child_has_connections_of_its_own(store: Store) -> None:
    write(store, page("/a"))
    child = os.fork()
    if child == 0:
        try:
            write(store, page("/child"))
        except BaseException:  # the child must not run the other tests
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    write(store, page("/b"))
    expected = ["/a", "/b"] if getattr(store, "name", "") == "memory://" else ["/a", "/b", "/child"]
    assert everything(store) == {0: expected}


# What a store may offer besides


def test_sites_are_listed(store: Store) -> None:
    write(store, page("/a"))
    write(store, page("/a"), site=OTHER)
    assert stored_sites(store) in (None, sorted([SITE, OTHER]))


def test_a_readonly_view_reads_and_makes_nothing(store: Store) -> None:
    write(store, page("/a"))
    view, why_empty = open_readonly(store)
    if why_empty is None:
        assert everything(view) == {0: ["/a"]}
        write(store, page("/b"))
        assert everything(view) == {0: ["/a", "/b"]}
        view.close()


def test_the_clock_of_a_server_is_read(store: Store) -> None:
    assert abs(getattr(store, "now", time.time)() - time.time()) < 5
