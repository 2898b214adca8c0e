"""Damage: a damaged record of the store costs that record alone; pages are learned and served as before."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import redis

from sitemap_middleware import StoreError
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.postgres import store as postgres_store
from sitemap_middleware.stores.postgres.schema import CREATE_TABLE, columns_of
from sitemap_middleware.stores.redis import store as redis_store
from sitemap_middleware.stores.redis.keys import KEY_KINDS
from sitemap_middleware.stores.sqlite import base_store as sqlite_tables
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.readonly import ReadOnlySQLiteStore
from sitemap_middleware.stores.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION, create_schema

from ..support import postgres
from ..support.proxy import Proxy
from ..support.redis_servers import shared
from ..support.sample_sites import Clock, Page, SampleSite

LOCAL = "http://testserver"
SITE = "loopback:http/"
PATHS = ["/", "/posts/one", "/posts/two", "/tags/red"]
VALUES: dict[str, Any] = {
    "null": None,
    "text": "damaged",
    "number": 2**40,
    "short": b"\x01",
    "long": bytes(range(256)),
    "random": os.urandom(66),
    "empty": b"",
    "zeros": bytes(100),
    "as many zeros": bytes(16),
}


@pytest.fixture
def site() -> Iterator[Callable[[Any], SampleSite]]:
    """A worker over a store, which is closed in the end."""
    with ExitStack() as closing_:

        def make(store: Any) -> SampleSite:
            pages = {"/": Page(), "/posts/{slug}": Page(), "/tags/{tag}": Page(), "/feeds/{name}": Page()}
            sample = SampleSite(
                "wsgi",
                pages,
                learn=("/posts/*", "/tags/*", "/feeds/*"),
                max_age=0,
                store=store,
                clock=Clock(),
                verify=False,
            )
            closing_.callback(sample.app.close)
            return sample

        yield make


def with_visited_pages(sample: SampleSite) -> SampleSite:
    """Visit every page, so that the store has a record of each kind."""
    sample.visit(*PATHS)
    assert sorted(sample.locs()) == [f"{LOCAL}{path}" for path in sorted(PATHS)]
    return sample


def assert_goes_on_working(sample: SampleSite) -> None:
    """Assert that old and new pages are learned and listed, and that nothing raises or is unavailable."""
    for number, path in enumerate([*PATHS, "/feeds/new"]):
        sample.clock.pass_(4000 + number)
        sample.visit(path)
        sample.app.flush()
    assert sample.app.stats()["pending"] == 0
    assert sample.request("/sitemap.xml").status == 200
    assert sorted(sample.locs()) == sorted(f"{LOCAL}{path}" for path in [*PATHS, "/feeds/new"])


# SQLite, in a file and in memory


def tables() -> dict[str, list[str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_schema(connection)
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


TABLES = tables()
COLUMNS = [(table, column) for table, columns in TABLES.items() for column in columns]
CASES = [
    (*column, value)
    for column in COLUMNS
    for value in VALUES
    if (*column, value) != ("recent_path_hash", "hash", "number")  # it is a hash like any other
    and (value not in ("short", "long") or column[1] in ("data", "value"))
]


def spoil(connection: sqlite3.Connection, table: str, column: str, value: object, where: str = "") -> bool:
    """Put a value where it does not belong, as a faulty disk may; return whether SQLite accepts it."""
    row = connection.execute(f"SELECT * FROM {table} {where} LIMIT 1").fetchone()
    if row is None:
        return False
    names = TABLES[table]
    keys = " AND ".join(f"{name} IS ?" for name in names)
    try:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {keys}", (value, *row))
    except sqlite3.IntegrityError:
        return False
    return True


def without_constraints(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")


@pytest.mark.parametrize(("table", "column", "value"), CASES, ids=map("-".join, CASES))
def test_a_damaged_value_of_a_file_costs_a_record(
    table: str,
    column: str,
    value: str,
    tmp_path: Path,
    site: Callable[[Any], SampleSite],
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "pages.sqlite3"
    sample = with_visited_pages(site(f"sqlite:///{file}"))
    if value == "null":
        without_constraints(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        stands = spoil(connection, table, column, VALUES[value])
    assert_goes_on_working(sample)
    assert len(caplog.records) <= 1 + stands
    caplog.clear()
    again = site(f"sqlite:///{file}")
    again.clock.pass_(100_000)
    assert_goes_on_working(again)
    assert len(caplog.records) <= 1


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("how", ["DROP TABLE {}", "ALTER TABLE {0} RENAME COLUMN {1} TO other", "DELETE FROM {}"])
def test_a_table_that_is_missing_is_made_again(
    table: str, how: str, tmp_path: Path, site: Callable[[Any], SampleSite], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "pages.sqlite3"
    sample = with_visited_pages(site(f"sqlite:///{file}"))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(how.format(table, TABLES[table][-1]))
    assert_goes_on_working(sample)
    assert len(caplog.records) <= 2
    assert [
        record.getMessage() for record in caplog.records if "has been repaired" in record.getMessage()
    ] or "DELETE" in how


def test_all_tables_together_may_be_missing(tmp_path: Path, site: Callable[[Any], SampleSite]) -> None:
    file = tmp_path / "pages.sqlite3"
    sample = with_visited_pages(site(f"sqlite:///{file}"))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for table in TABLES:
            connection.execute(f"DROP TABLE {table}")
    assert_goes_on_working(sample)


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 3])
def test_file_with_a_wrong_version_in_its_header_is_quarantined(
    version: int, tmp_path: Path, site: Callable[[Any], SampleSite]
) -> None:
    file = tmp_path / "pages.sqlite3"
    with_visited_pages(site(f"sqlite:///{file}")).app.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
    assert_goes_on_working(site(f"sqlite:///{file}"))
    assert list(tmp_path.glob("*.aside-*"))


@pytest.mark.parametrize("damaged", [b"2024-13-01", b"9999-99-99", b"</urlset>x"])
@pytest.mark.parametrize("count", [1, 9])
def test_a_damaged_date_of_a_page_costs_its_record(
    damaged: bytes, count: int, tmp_path: Path, site: Callable[[Any], SampleSite], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "pages.sqlite3"
    sample = site(f"sqlite:///{file}")

    def visit_posts() -> None:
        for number in range(count):
            head = b"<!doctype html><meta property=article:modified_time content=2024-05-01><main>"
            sample.pages["/posts/{slug}"] = Page(body=head + b"A post about the number " + b"x" * number)
            sample.visit(f"/posts/{number}")

    visit_posts()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        (data,) = connection.execute("SELECT data FROM page WHERE path = '/posts/0'").fetchone()
        assert data.count(b"2024-05-01") == 1
        spoilt = data.replace(b"2024-05-01", damaged)
        connection.execute("UPDATE page SET data = ? WHERE path = '/posts/0'", (spoilt,))
    sample.clock.pass_(4000)
    assert sample.request("/sitemap.xml").status == 200
    visit_posts()
    assert f"{LOCAL}/posts/0" in sample.locs()
    assert sum("records were lost" in record.getMessage() for record in caplog.records) == 1


def test_unreadable_page_leaves_others_in_place(
    tmp_path: Path, site: Callable[[Any], SampleSite], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "pages.sqlite3"
    sample = with_visited_pages(site(f"sqlite:///{file}"))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        before = connection.execute("SELECT id, path FROM page WHERE path <> '/posts/one' ORDER BY id").fetchall()
        assert spoil(connection, "page", "data", "text", "WHERE path = '/posts/one'")
        sample.clock.pass_(4000)
        sample.visit("/posts/one")
        assert f"{LOCAL}/posts/one" in sample.locs()
        after = connection.execute("SELECT id, path FROM page WHERE path <> '/posts/one' ORDER BY id").fetchall()
        assert connection.execute("SELECT sum(pages) FROM block").fetchone() == (4,)
        assert connection.execute("SELECT sum(pages) FROM route").fetchone() == (3,)
    assert after == before
    assert "1 records were lost" in caplog.records[0].getMessage()


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=map("-".join, COLUMNS))
def test_a_damaged_value_in_memory_costs_a_record(table: str, column: str, site: Callable[[Any], SampleSite]) -> None:
    store = MemoryStore()
    sample = with_visited_pages(site(store))
    with store.open_connection() as connection:
        spoil(connection, table, column, "damaged")
    assert_goes_on_working(sample)


# Redis


PAGES_FIELDS = (
    *("version", "run_id", "lost_versions", "turn", "cursor", "slash_variants", "learned"),
    *("route:/posts/{slug}", "block:0", "block:1", "segment:1", "p"),
)
FIELDS = [
    *(("pages", field) for field in PAGES_FIELDS),
    *(("records", field) for field in ("learned/1", "learned/1/1", "site-signals", "clock")),
    ("documents", "/sitemap.xml"),
    ("leases", "forget"),
]
SPOILT: dict[str, bytes | None] = {
    "missing": None,
    "text": b"damaged",
    "short": b"\x01",
    "long": bytes(range(256)),
    "random": os.urandom(66),
    "empty": b"",
    "zeros": bytes(100),
    "as many zeros": bytes(16),
}


@pytest.mark.parametrize("value", SPOILT)
@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=map("-".join, FIELDS))
def test_a_damaged_field_of_redis_costs_a_record(
    kind: str,
    field: str,
    value: str,
    tmp_path: Path,
    site: Callable[[Any], SampleSite],
    caplog: pytest.LogCaptureFixture,
) -> None:
    sample = with_visited_pages(site(f"{shared().url}?prefix={tmp_path}"))
    key = f"{{{tmp_path}:{SITE}}}:{kind}" if kind == "pages" else f"{{{tmp_path}:{LOCAL}}}:{kind}"
    with redis.Redis.from_url(shared().url) as client:
        wanted: str | bytes = field
        if field == "p":
            names: Any = client.hkeys(key)
            wanted = min(name for name in names if name.startswith(b"p"))
        spoilt = SPOILT[value]
        if spoilt is None:
            client.hdel(key, wanted)
        else:
            client.hset(key, wanted, spoilt)
    assert_goes_on_working(sample)
    assert len(caplog.records) <= 2


@pytest.mark.parametrize("command", [("SET", "x"), ("RPUSH", "x"), ("SADD", "x"), ("ZADD", 1, "x")], ids=str)
@pytest.mark.parametrize("kinds", [("pages",), ("records",), ("documents",), ("leases",), tuple(KEY_KINDS)])
def test_redis_key_of_another_type_is_deleted_and_rebuilt(
    command: Any,
    kinds: tuple[str, ...],
    tmp_path: Path,
    site: Callable[[Any], SampleSite],
    caplog: pytest.LogCaptureFixture,
) -> None:
    sample = with_visited_pages(site(f"{shared().url}?prefix={tmp_path}"))
    with redis.Redis.from_url(shared().url) as client:
        for key in {f"{{{tmp_path}:{of}}}:{kind}" for of in (SITE, LOCAL) for kind in kinds}:
            client.delete(key)
            client.execute_command(command[0], key, *command[1:])
    assert_goes_on_working(sample)
    assert len(caplog.records) <= 2
    assert "WRONGTYPE" in caplog.text


def test_redis_repair_is_rate_limited_and_waits_for_other_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(f"{shared().url}?prefix={tmp_path}", "store")) as store:
        key = f"{{{tmp_path}:{SITE}}}:pages"
        store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
        with redis.Redis.from_url(shared().url) as client:
            for again, works in ((60.0, True), (60.0, False), (0.0, True)):
                monkeypatch.setattr(redis_store, "MIN_REPAIR_INTERVAL_SECONDS", again)
                client.hset(key, "cursor", "damaged")
                if works:
                    assert [page.path for page in store.pages(SITE)] == ["/"]
                else:
                    with pytest.raises(StoreError):
                        store.pages(SITE)


def test_redis_repair_gives_way_to_concurrent_writes(tmp_path: Path) -> None:
    server = shared()
    proxy = Proxy(server.folder / "socket")
    key = f"{{{tmp_path}:{SITE}}}:pages"
    with (
        closing(proxy),
        closing(open_store(f"{server.url}?prefix={tmp_path}", "store")) as other,
        closing(open_store(f"redis://127.0.0.1:{proxy.port}?prefix={tmp_path}", "store")) as store,
    ):
        store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
        server.request("HSET", key, "cursor", "damaged")
        written = iter(range(10_000))

        def tells(data: bytes) -> bytes:
            path = f"/{next(written)}"
            other.merge(SITE, [Observation(path, path, 1000, 200, "text/html")])
            return data

        proxy.tells = tells
        with pytest.raises(StoreError):
            store.pages(SITE)
        proxy.tells = bytes
        assert {"/", "/0"} <= {page.path for page in store.pages(SITE)}


def test_a_redis_of_many_pages_is_repaired_as_a_whole(tmp_path: Path) -> None:
    with closing(open_store(f"{shared().url}?prefix={tmp_path}", "store")) as store:
        paths = sorted(f"/{number}" for number in range(2_500))
        store.merge(SITE, [Observation(path, path, 1000, 200, "text/html") for path in paths])
        shared().request("HSET", f"{{{tmp_path}:{SITE}}}:pages", "cursor", "damaged")
        assert sorted(page.path for page in store.pages(SITE)) == paths


# PostgreSQL


PG_COLUMNS = sorted(
    column
    for table in CREATE_TABLE
    if table != "schema_version"
    for column in columns_of(table)
    if column != ("route", "id")  # PostgreSQL itself numbers routes
)


@pytest.fixture
def pg() -> tuple[str, Callable[[str], None]]:
    """The URL of a schema, and what says something to it."""
    url = postgres.server().fresh()
    schema = parse_qs(urlsplit(url).query)["schema"][0]

    def say(statement: str) -> None:
        with postgres.server().connected() as connection:
            connection.execute(statement.replace("sitemap.", f"{schema}.").encode())

    return url, say


PG_KEYS = {("site", "id"), ("page", "id"), ("block", "site"), ("block", "number")} | {
    (table, column) for table in ("document", "record", "lease") for column in ("site", "name")
}
"""Columns that the server does not allow to be NULL."""
PG_CASES = [
    (*name, value) for name in PG_COLUMNS for value in ("NULL", "damaged") if value != "NULL" or name not in PG_KEYS
]


@pytest.mark.parametrize(("table", "column", "value"), PG_CASES, ids=map("-".join, PG_CASES))
def test_a_damaged_value_of_postgresql_costs_a_record(
    table: str, column: str, value: str, pg: tuple[str, Callable[[str], None]], site: Callable[[Any], SampleSite]
) -> None:
    url, say = pg
    sample = with_visited_pages(site(url))
    if value == "NULL":
        say(f"ALTER TABLE sitemap.{table} ALTER COLUMN {column} DROP NOT NULL")
    kinds = {"key": "'\\xff00'", "path": "'\\xff00'", "data": "'\\x00ff'", "slash_variants": "true", "listable": "true"}
    texts = {"name", "etag", "owner", "value"}
    bad = kinds.get(column, "'\\xff'" if column in texts or (column == "site" and table in texts) else "-7")
    if table in ("document", "record", "lease") and column == "site":
        bad = "'\\xff'"
    say(
        f"UPDATE sitemap.{table} SET {column} = {value if value == 'NULL' else bad}"
        f" WHERE ctid = (SELECT min(ctid) FROM sitemap.{table})"
    )
    assert_goes_on_working(sample)


@pytest.mark.parametrize("how", ["DROP TABLE sitemap.{0}", "ALTER TABLE sitemap.{0} RENAME COLUMN {1} TO other"])
@pytest.mark.parametrize("table", sorted({table for table, _ in PG_COLUMNS}))
def test_a_table_of_postgresql_that_is_missing_is_made_again(
    table: str, how: str, pg: tuple[str, Callable[[str], None]], site: Callable[[Any], SampleSite]
) -> None:
    url, say = pg
    sample = with_visited_pages(site(url))
    say(how.format(table, next(column for name, column in PG_COLUMNS if name == table)))
    assert_goes_on_working(sample)


@pytest.mark.parametrize(
    "how",
    [
        "DROP TABLE sitemap.schema_version",
        "DELETE FROM sitemap.schema_version",
        "INSERT INTO sitemap.schema_version VALUES (0)",
        "ALTER TABLE sitemap.schema_version ALTER version DROP NOT NULL; UPDATE sitemap.schema_version SET version = NULL",
        "UPDATE sitemap.schema_version SET version = 0",
        "UPDATE sitemap.schema_version SET version = -1",
        "ALTER TABLE sitemap.schema_version RENAME COLUMN version TO other",
    ],
)
def test_lost_schema_version_alone_is_restored(
    how: str, pg: tuple[str, Callable[[str], None]], site: Callable[[Any], SampleSite], caplog: pytest.LogCaptureFixture
) -> None:
    url, say = pg
    sample = with_visited_pages(site(url))
    say(how)
    assert len(sample.locs()) == len(PATHS)
    assert_goes_on_working(sample)
    sample.app.close()
    say(how)
    with closing(open_store(url, "store")) as store:
        assert {page.path for page in store.pages(SITE)} > set(PATHS)
    assert len(caplog.records) <= 1


def test_schema_without_version_and_tables_is_refused(
    pg: tuple[str, Callable[[str], None]],
) -> None:
    url, say = pg
    with closing(open_store(url, "store")) as store:
        store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
    say("DROP TABLE sitemap.schema_version")
    say("ALTER TABLE sitemap.page RENAME COLUMN path_hash TO other")
    with closing(open_store(url, "store")) as store, pytest.raises(StoreError, match="tables of another program"):
        store.pages(SITE)


def test_postgresql_repair_restores_which_pages_are_listable(pg: tuple[str, Callable[[str], None]]) -> None:
    url, say = pg
    with closing(open_store(url, "store")) as store:
        statuses = {"/": 200, "/damaged": 200, "/gone": 404}
        store.merge(SITE, [Observation(path, path, 1000, status, "text/html") for path, status in statuses.items()])
        say("UPDATE sitemap.page SET listable = NOT listable")
        say("UPDATE sitemap.page SET data = '\\x00ff' WHERE path = '/damaged'")
        assert [page.path for page in store.pages(SITE)] == ["/", "/gone"]
        with postgres.server().connected() as connection:
            schema = parse_qs(urlsplit(url).query)["schema"][0]
            rows = connection.execute(f"SELECT path, listable FROM {schema}.page ORDER BY path".encode()).fetchall()
    assert rows == [(b"/", True), (b"/gone", False)]


def test_a_postgresql_is_repaired_once_in_a_while(
    pg: tuple[str, Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, say = pg
    with closing(open_store(url, "store")) as store:
        for again, works in ((60.0, True), (60.0, False), (0.0, True)):
            monkeypatch.setattr(postgres_store, "MIN_REPAIR_INTERVAL_SECONDS", again)
            if works:
                store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
                say("DROP TABLE sitemap.page")
                assert store.pages(SITE) == []
                say("DROP TABLE sitemap.page")
            else:
                with pytest.raises(StoreError, match="does not exist"):
                    store.pages(SITE)


def test_postgresql_page_with_a_foreign_route_loses_one_record(
    pg: tuple[str, Callable[[str], None]], caplog: pytest.LogCaptureFixture
) -> None:
    url, say = pg
    with closing(open_store(url, "store")) as store:
        store.merge(SITE, [Observation(path, path, 1000, 200, "text/html") for path in ("/a", "/b", "/c")])
        store.merge("https://other.example", [Observation("/", "/", 1000, 200, "text/html")])
        say("UPDATE sitemap.route SET site = 3 - site WHERE path = '/b'")
        say("UPDATE sitemap.page SET data = '\\x00ff' WHERE path = '/a'")
        assert [page.path for page in store.pages(SITE)] == ["/c"]
        assert "2 records were lost" in caplog.text
        store.merge(SITE, [Observation(path, path, 2000, 200, "text/html") for path in ("/a", "/b")])
        assert [page.path for page in store.pages(SITE)] == ["/a", "/b", "/c"]
        assert [page.path for page in store.pages("https://other.example")] == ["/"]


def test_what_only_looks_repairs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pages.sqlite3"
    with closing(open_store(f"sqlite:///{file}", "store")) as store, closing(ReadOnlySQLiteStore(file)) as glance:
        store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            spoil(connection, "page", "data", "damaged")
        for _ in range(2):
            with pytest.raises(StoreError):
                glance.pages(SITE)
        assert store.pages(SITE) == []


def test_a_store_is_repaired_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pages.sqlite3"
    with closing(open_store(f"sqlite:///{file}", "store")) as store:
        store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
        for again, works in ((60.0, True), (60.0, False), (0.0, True)):
            monkeypatch.setattr(sqlite_tables, "MIN_REPAIR_INTERVAL_SECONDS", again)
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.execute("DROP TABLE IF EXISTS page")
            if works:
                store.merge(SITE, [Observation("/", "/", 1000, 200, "text/html")])
                assert [page.path for page in store.pages(SITE)] == ["/"]
            else:
                with pytest.raises(StoreError, match="no such table"):
                    store.pages(SITE)
