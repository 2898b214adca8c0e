"""What is particular to an engine: damage, lost data, rights, URLs, and servers that hang or go away."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import redis

from sitemap_middleware import OptionError, StoreError
from sitemap_middleware.models import StoreKey
from sitemap_middleware.stores import open_store, postgresql, sql
from sitemap_middleware.stores import redis as redis_store
from sitemap_middleware.stores import sqlite as sqlite_store
from sitemap_middleware.stores.base import SCHEMA_VERSION, Store, encode_page, number_of
from sitemap_middleware.stores.sqlite import SQLiteStore
from sitemap_middleware.stores.stored_sites import store_status

from ..support import postgres
from ..support.redis_servers import PROGRAMS, Cluster, RedisServer, shared, shared_cluster
from .test_contract import everything, learned, page, write

SITE = StoreKey("https://example.com")
PAGE = f"page_{SCHEMA_VERSION}"


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


# Damage and versions, every engine that keeps something


class Kept:
    """A store, and how another program changes what it holds."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store = open_store(url, "store")

    def set_row(self, path: str, text: bytes) -> None:
        """Replace the stored form of a page of part 0."""
        raise NotImplementedError


class KeptFile(Kept):
    def set_row(self, path: str, text: bytes) -> None:
        with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute(f"UPDATE {PAGE} SET data = CAST(? AS TEXT) WHERE path = ?", (text, path))


class KeptSchema(Kept):
    def set_row(self, path: str, text: bytes) -> None:
        (schema,) = parse_qs(urlsplit(self.url).query)["schema"]
        with postgres.server().connected() as connection:
            data = text.decode("latin-1").replace("\0", "")
            connection.execute(f"UPDATE {schema}.{PAGE} SET data = %s WHERE path = %s", (data, path))  # type: ignore[arg-type]


class KeptKeys(Kept):
    def set_row(self, path: str, text: bytes) -> None:
        prefix = parse_qs(urlsplit(self.url).query)["prefix"][0]
        with redis.Redis.from_url(shared().url) as client:
            client.hset(f"{{{prefix}:{SCHEMA_VERSION}:{number_of(SITE)}}}:pages:0", path, text)


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if request.param == "sqlite":
        return KeptFile(f"sqlite:///{tmp_path}/pages.sqlite3")
    if request.param == "postgresql":
        return KeptSchema(postgres.server().fresh())
    return KeptKeys(f"{shared().url}?prefix={tmp_path}")


UNREADABLE = [
    *(b"", b"\xff\xfe", b"null", b"{}", b"[]", b"[1]", b'"text"', b"1e400", b"[" * 100_000, b"\n"),
    b'["/",1000,1000,"200"]',
]


@pytest.mark.parametrize("text", [*UNREADABLE, "a run"], ids=lambda text: str(text)[:20])
def test_a_page_that_cannot_be_decoded_is_absent_and_can_be_written_again(kept: Kept, text: Any) -> None:
    whole = page("/a", content_history=((1, 2, 3),))
    if isinstance(text, str):
        text = encode_page(whole).encode().replace(b"[1,2,3]", b"[1,2]")
    write(kept.store, whole, page("/b"))
    kept.set_row("/a", text)
    assert kept.store.find(SITE, ["/a", "/b"]).keys() == {"/b"}
    assert [found.path for found in kept.store.part(SITE, 0)] == ["/b"]
    write(kept.store, page("/a"))
    assert everything(kept.store) == {0: ["/a", "/b"]}


def test_a_site_whose_state_cannot_be_decoded_can_be_written_again(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'pages'}", "store")
    write(store, page("/a"))
    with sqlite3.connect(tmp_path / "pages") as database:
        database.execute(f"UPDATE site_{SCHEMA_VERSION} SET state = CAST(state || x'ff' AS TEXT)")
    write(store, page("/b"))
    assert everything(store) == {0: ["/b"]}


def test_processes_of_two_versions_work_side_by_side(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    write(kept.store, page("/a"))
    with monkeypatch.context() as newer:
        for module in (sql, sqlite_store, postgresql, redis_store):
            newer.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        other = open_store(kept.url, "store")
        assert other.version(SITE) == 0
        write(other, page("/b"))
        assert everything(other) == {0: ["/b"]}
        other.close()
    write(kept.store, page("/c"))
    assert everything(kept.store) == {0: ["/a", "/c"]}


# SQLite


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with some pages, which nobody has open."""
    file = tmp_path / "kept" / "pages.sqlite3"
    store = SQLiteStore(file)
    write(store, *(learned(f"/posts/{number}") for number in range(2000)))
    store.close()
    return file


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def overwritten(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(os.urandom(file.stat().st_size - 8192))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("spoil", [garbage, cut, overwritten])
def test_a_damaged_file_is_moved_aside_with_one_warning(
    file: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture, *, is_open: bool
) -> None:
    store = SQLiteStore(file)
    if is_open:
        assert len(store.part(SITE, 1)) == 2000
    spoil(file)
    for _ in range(4):
        try:
            everything(store)
            write(store, learned("/posts/new"))
        except StoreError:
            continue
    assert everything(store) == {1: ["/posts/new"]}
    assert [path.name.partition(".aside-")[0] for path in file.parent.glob("*aside*")] == [file.name]
    (warning,) = warnings_of(caplog)
    assert "it was moved to" in warning


def test_a_deleted_file_is_made_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SQLiteStore(file)
    assert store.version(SITE)
    for path in file.parent.iterdir():
        path.unlink()
    assert store.version(SITE) == 0
    write(store, page("/a"))
    assert everything(store) == {0: ["/a"]}
    assert warnings_of(caplog) == [f"store {file} was deleted or replaced; what it held will be learned again"]


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "theirs.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = file.read_bytes()
    store = SQLiteStore(file)
    with pytest.raises(StoreError, match="is a database of another program; name another file"):
        store.version(SITE)
    with pytest.raises(StoreError, match="is a database of another program"):
        write(store, page("/a"))
    assert (file.read_bytes(), [path.name for path in tmp_path.iterdir()]) == (before, [file.name])


# PostgreSQL


@pytest.fixture
def url() -> str:
    return postgres.server().fresh()


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    with postgres.server().connected() as connection:
        yield connection


def schema_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["schema"][0]


def test_many_processes_that_start_at_once_make_one_schema(url: str) -> None:
    stores, errors = [open_store(url, "store") for _ in range(10)], list[Exception]()

    def start(store: Store) -> None:
        try:
            store.save(SITE, {"a": b""})
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert errors == []


def test_a_readonly_view_makes_no_schema(url: str, admin: psycopg.Connection[Any]) -> None:
    with pytest.raises(StoreError, match="has no tables of this version"):
        store_status(open_store(url, "store"))
    assert admin.execute("SELECT to_regnamespace(%s)", (schema_of(url),)).fetchone() == (None,)


def test_a_lock_that_is_held_is_waited_for_some_seconds_only(
    url: str, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "TIMEOUT_SECONDS", 0.3)
    store = open_store(url, "store")
    write(store, page("/a"))
    with admin.transaction():
        admin.execute(f"LOCK TABLE {schema_of(url)}.{PAGE}".encode())
        with pytest.raises(StoreError, match=r"has not answered for 0\.3 seconds"):
            write(store, page("/b"))
    assert everything(store) == {0: ["/a"]}


# Redis


@pytest.fixture
def server() -> Iterator[RedisServer]:
    started = RedisServer()
    yield started
    started.remove()


NEEDED = ["eval", "get", "set", "del", "hget", "hmget", "hgetall", "hset", "hdel", "hlen", "multi", "exec", "time"]
"""The commands that the guide to Redis names; `status` also needs INFO and SCAN."""


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_commands_that_the_guide_names_are_enough(program: str) -> None:
    server = RedisServer(program)
    server.request("ACL", "SETUSER", "app", "on", ">secret", "~{sitemap:*", "-@all", *(f"+{name}" for name in NEEDED))
    store = open_store(f"unix://app:secret@{server.folder}/socket", "store")
    write(store, page("/"), *(learned(f"/{number}") for number in range(3)))
    write(store, learned("/0", last_seen=9000))
    store.save(SITE, {"a": b"1", "b": None})
    assert store.load(SITE, ["a"]) == {"a": b"1"}
    assert store.lease(SITE, "job", "me", 60)
    assert store.lease(SITE, "job", "me", 0)
    assert everything(store) == {0: ["/"], 1: ["/0", "/1", "/2"]}
    assert store.find(SITE, ["/0"]).keys() == {"/0"}
    assert abs(store.now() - time.time()) < 60  # type: ignore[attr-defined]
    assert store_status(store, [SITE]).sites[0].learned == 3
    with pytest.raises(StoreError, match=r"(?i)permission"):
        store_status(store)
    server.remove()


def test_a_refused_script_is_an_error_and_changes_nothing(server: RedisServer) -> None:
    write(open_store(server.url, "store"), page("/a"))
    server.request("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-hset")
    store = open_store(f"unix://app:secret@{server.folder}/socket", "store")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"(?i)permission|can't run this command"):
            write(store, page("/b"))
    assert everything(store) == {0: ["/a"]}


@pytest.mark.parametrize("evicted", ["site", "index", "pages:1", "pages:0"])
def test_any_key_may_be_evicted_and_pages_are_learned_again(server: RedisServer, evicted: str) -> None:
    store = open_store(server.url, "store")
    write(store, page("/"), learned("/posts/one"), learned("/posts/two"))
    server.request("DEL", f"{{sitemap:{SCHEMA_VERSION}:{number_of(SITE)}}}:{evicted}")
    for _ in range(2):
        write(store, page("/"), learned("/posts/one"), learned("/posts/two"))
        assert everything(store) == {0: ["/"], 1: ["/posts/one", "/posts/two"]}
        assert len(store.find(SITE, ["/", "/posts/one", "/posts/two"])) == 3


def test_keys_of_a_site_lie_on_one_node_of_a_cluster() -> None:
    cluster = shared_cluster()
    with pytest.raises(StoreError, match="is a cluster: add cluster=true to its URL"):
        for number in range(20):
            open_store(cluster.url, "store").version(StoreKey(f"https://{number}.example"))
    stores = [
        open_store(f"{Cluster.url.fget(cluster)}?cluster=true&prefix=of-{number}", "store") for number in range(3)
    ]  # type: ignore[attr-defined]
    for store in stores:
        write(store, page("/a"), site=SITE)
        assert everything(store) == {0: ["/a"]}


# URLs


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://127.0.0.1?nosuch=1", "has an option, or a value of an option, that redis-py does not accept"),
        ("redis://127.0.0.1?prefix=", "has a prefix that is empty or contains a brace"),
        ("redis://127.0.0.1?socket_timeout=soon", "redis-py does not accept"),
        ("postgresql://127.0.0.1/db?nosuch=1", "is not a PostgreSQL URL, or has a parameter that libpq does not know"),
        ("postgresql://127.0.0.1/db?schema=Mine", "names a schema 'Mine': use up to 63 lower-case letters"),
    ],
)
def test_an_invalid_url_is_refused_with_the_fix(url: str, message: str) -> None:
    with pytest.raises(OptionError) as failure:
        open_store(url, "SITEMAP_STORE")
    assert message in str(failure.value)
    assert str(failure.value).startswith("SITEMAP_STORE=")


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for url, module, extra in (
        ("redis://127.0.0.1", "redis", "redis"),
        ("postgresql://127.0.0.1/db", "psycopg", "postgresql"),
    ):
        name = "redis" if extra == "redis" else "postgresql"
        with monkeypatch.context() as without:
            without.setitem(sys.modules, module, None)
            without.delitem(sys.modules, f"sitemap_middleware.stores.{name}")
            with pytest.raises(OptionError, match=rf'pip install "sitemap-middleware\[{extra}\]"'):
                open_store(url, "store")
