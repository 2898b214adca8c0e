"""Counted visits of crawlers, over every engine."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from sitemap_middleware import Store
from sitemap_middleware.crawlers import counted_visits as limits
from sitemap_middleware.crawlers.counted_visits import OTHER_PATHS, CrawlerVisit
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import StoreExtras
from sitemap_middleware.stores.circuit_breaker import with_circuit_breaker
from sitemap_middleware.stores.postgres import crawler_visits as in_postgres
from sitemap_middleware.stores.redis.keys import site_key
from sitemap_middleware.stores.sqlite import crawler_visits as in_sqlite
from sitemap_middleware.stores.sqlite.schema import CREATE_STATEMENTS, SCHEMA_VERSION
from sitemap_middleware.stores.store_status import open_readonly

from ..support import postgres
from ..support.redis_servers import PROGRAMS, shared
from .test_contract import ENGINES, OTHER, SITE

VISIT = CrawlerVisit("/a", "Googlebot", True, 200, first=1000, last=2000, count=3)


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return ENGINES[request.param](tmp_path)


def add(store: Store, *visits: CrawlerVisit, site: str = SITE) -> None:
    StoreExtras.of(store).add_crawler_visits(site, visits)


def stored(store: Store, site: str = SITE) -> set[CrawlerVisit]:
    rows = list(StoreExtras.of(store).crawler_visits(site))
    assert len(rows) == len(set(rows))
    return set(rows)


def test_visits_of_one_key_add_up_to_one_row(store: Store) -> None:
    add(store, VISIT)
    add(store, VISIT._replace(first=500, last=600, count=2), VISIT._replace(first=1500, last=2500, count=1))
    assert stored(store) == {VISIT._replace(first=500, last=2500, count=6)}


@pytest.mark.parametrize(
    "other",
    [
        VISIT._replace(path="/b"),
        VISIT._replace(path="/é\x00\n"),
        VISIT._replace(path=OTHER_PATHS),
        VISIT._replace(crawler="Sogou web spider"),
        VISIT._replace(verified=False),
        VISIT._replace(verified=False, fake=True),
        VISIT._replace(status=404),
    ],
    ids=["path", "odd path", "other paths", "crawler", "unverified", "fake", "status"],
)
def test_visits_that_differ_are_counted_apart(store: Store, other: CrawlerVisit) -> None:
    add(store, VISIT, other)
    assert stored(store) == {VISIT, other}


def test_records_are_saved_with_the_visits(store: Store) -> None:
    extras = StoreExtras.of(store)
    extras.add_crawler_visits(SITE, [VISIT], {"mark": b"1", "other": b"2"})
    extras.add_crawler_visits(SITE, [], {"mark": b"\0\xff"})
    assert store.load(SITE, ["mark", "other"]) == {"mark": b"\0\xff", "other": b"2"}
    assert stored(store) == {VISIT}


def test_sites_have_visits_of_their_own(store: Store) -> None:
    add(store, VISIT)
    add(store, VISIT._replace(path="/b"), site=OTHER)
    assert stored(store) == {VISIT}
    assert stored(store, OTHER) == {VISIT._replace(path="/b")}
    assert stored(store, "https://example.net") == set()


def test_no_visits_change_nothing(store: Store) -> None:
    add(store)
    add(store, VISIT._replace(count=0))
    assert stored(store) == set()


def test_hostile_values_are_stored_as_what_can_be_written(store: Store) -> None:
    add(
        store,
        VISIT._replace(path="/\udc80"),
        VISIT._replace(path="/" + "x" * limits.MAX_PATH_CHARS),
        VISIT._replace(path="/late", first=-5, last=2**70),
    )
    assert stored(store) == {
        VISIT._replace(path="/?"),
        VISIT._replace(path=OTHER_PATHS),
        VISIT._replace(path="/late", first=0, last=2**53 - 1),
    }


def test_visits_do_not_make_a_site_known(store: Store) -> None:
    add(store, VISIT)
    assert store.pages(SITE) == []
    assert store.version(SITE) == 0


def test_sums_are_exact_if_several_workers_count_at_once(store: Store) -> None:
    visits = [VISIT._replace(path=f"/{number}", count=1) for number in range(20)]

    def work(order: int) -> None:
        for _ in range(10):
            add(store, *visits[::order])

    threads = [threading.Thread(target=work, args=(order,)) for order in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(store) == {visit._replace(count=40) for visit in visits}


def test_a_full_store_keeps_verified_and_recent_visits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_STORED_ROWS", 10)
    monkeypatch.setattr(limits, "ROWS_AFTER_PRUNING", 6)
    verified = [VISIT._replace(path=f"/{number}", last=2000 + number) for number in range(7)]
    fakes = [VISIT._replace(path=f"/{number}", verified=False, fake=True, last=9000) for number in range(3)]
    add(store, VISIT._replace(path="/other site"), site=OTHER)
    add(store, *verified, *fakes)
    assert stored(store) == {*verified, *fakes}
    add(store, VISIT._replace(path="/new", last=5000))
    assert stored(store) == {*verified[2:], VISIT._replace(path="/new", last=5000)}
    assert stored(store, OTHER) == {VISIT._replace(path="/other site")}


def test_many_rows_are_read_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in (in_sqlite, in_postgres):
        monkeypatch.setattr(engine, "BATCH_ROWS", 7)
    visits = {VISIT._replace(path=f"/{number // 2}", status=200 + number % 2) for number in range(700)}
    add(store, *visits)
    assert stored(store) == visits


def test_visits_are_read_without_writing(store: Store) -> None:
    add(store, VISIT)
    reader, _ = open_readonly(store)
    assert stored(reader) == {VISIT}
    reader.close()


def test_visits_pass_through_the_circuit_breaker(store: Store) -> None:
    guarded = with_circuit_breaker(store, lambda: 1000.0)
    add(guarded, VISIT)
    assert stored(guarded) == {VISIT}


# Each engine's own


def test_a_file_of_version_1_gets_the_table_and_keeps_its_pages(tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        for statement in CREATE_STATEMENTS:
            if "crawler_visit" not in statement:
                connection.execute(statement)
        connection.execute("INSERT INTO record VALUES ('https://example.com', 'kept', x'01')")
        connection.execute("PRAGMA application_id = 0x534D4150")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    store = open_store(f"sqlite:///{file}", "store")
    add(store, VISIT)
    assert stored(store) == {VISIT}
    assert store.load(SITE, ["kept"]) == {"kept": b"\x01"}
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_row_of_other_types_is_deleted(tmp_path: Path) -> None:
    file = tmp_path / "pages.sqlite3"
    store = open_store(f"sqlite:///{file}", "store")
    add(store, VISIT, VISIT._replace(path="/b"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE crawler_visit SET count = 'many' WHERE path = '/a'")
        connection.commit()
    assert stored(store) == {VISIT._replace(path="/b")}
    store.close()


def test_a_row_without_a_value_is_deleted() -> None:
    store = open_store(postgres.server().fresh(), "store")
    add(store, VISIT, VISIT._replace(path="/b"))
    with postgres.server().connected() as connection, connection.transaction():
        table = f"{store.schema}.crawler_visit"  # type: ignore[attr-defined]
        connection.execute(
            f"ALTER TABLE {table} ALTER count DROP NOT NULL; UPDATE {table} SET count = NULL WHERE path = '/a'"
        )
    assert stored(store) == {VISIT._replace(path="/b")}
    store.close()


def test_a_schema_of_version_1_gets_the_table_and_keeps_its_pages() -> None:
    url = postgres.server().fresh()
    store = open_store(url, "store")
    store.save(SITE, {"kept": b"\x01"})
    schema = store.schema  # type: ignore[attr-defined]
    store.close()
    with postgres.server().connected() as connection, connection.transaction():
        connection.execute(f"DROP TABLE {schema}.crawler_visit; UPDATE {schema}.schema_version SET version = 1")
    store = open_store(url, "store")
    add(store, VISIT)
    assert stored(store) == {VISIT}
    assert store.load(SITE, ["kept"]) == {"kept": b"\x01"}
    store.close()


@pytest.fixture(params=PROGRAMS)
def hash_key(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, redis.Redis, str]]:
    """A store in Redis, a client of it, and the key of its visits."""
    store = open_store(f"{shared(request.param).url}?prefix={tmp_path}", "store")
    client = redis.Redis.from_url(shared(request.param).url)
    yield store, client, site_key(str(tmp_path), SITE, "visits")
    client.close()


@pytest.mark.parametrize(
    ("field", "value"),
    [(b"200 1 Googlebot\n/damaged", b"short"), (b"\xff", bytes(24)), (b"200 x Googlebot\n/", bytes(24))],
    ids=["value", "bytes", "number"],
)
def test_damaged_rows_in_redis_are_left_out_and_deleted_first(
    hash_key: tuple[Store, redis.Redis, str], monkeypatch: pytest.MonkeyPatch, field: bytes, value: bytes
) -> None:
    store, client, key = hash_key
    add(store, VISIT)
    client.hset(key, field, value)
    assert stored(store) == {VISIT}
    monkeypatch.setattr(limits, "MAX_STORED_ROWS", 2)
    monkeypatch.setattr(limits, "ROWS_AFTER_PRUNING", 2)
    add(store, VISIT._replace(path="/b"))
    assert stored(store) == {VISIT, VISIT._replace(path="/b")}
    assert client.hlen(key) == 2


def test_a_damaged_row_in_redis_counts_again(hash_key: tuple[Store, redis.Redis, str]) -> None:
    store, client, key = hash_key
    client.hset(key, "200 1 Googlebot\n/a", b"damaged")
    add(store, VISIT)
    assert stored(store) == {VISIT}
    client.delete(key)
    client.set(key, "of another type")
    add(store, VISIT)
    assert stored(store) == {VISIT}
