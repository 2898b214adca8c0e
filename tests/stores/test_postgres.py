"""What is PostgreSQL's own among the stores: schemas, accounts, servers that restart, connections across forks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sitemap_middleware import OptionError, StoreError
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.postgres import pool
from sitemap_middleware.stores.postgres import store as engine
from sitemap_middleware.stores.postgres.schema import SCHEMA_LOCK_ID, SCHEMA_VERSION
from sitemap_middleware.stores.postgres.store import PostgresStore
from sitemap_middleware.stores.sql_row_id_layout_and_path_hash import path_hashes
from sitemap_middleware.stores.store_status import open_readonly, store_status

from ..support.forking import fork_children, run_in_fresh_process
from ..support.postgres import Server, server
from ..support.waiting import until

SITE = "https://example.com"
OTHER = "https://example.org"


@pytest.fixture
def url() -> str:
    return server().fresh()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    with server().connected() as connection:
        yield connection


def seen(path: str = "/", at: int = 1000, **more: object) -> Observation:
    return Observation(path, path, at, 200, "text/html", **more)  # type: ignore[arg-type]


def learned(path: str, at: int = 1000) -> Observation:
    return seen(path, at)._replace(route="/<path>", learned=True)


def paths(store: PostgresStore, site: str = SITE) -> list[str]:
    return [page.path for page in store.pages(site)]


def refused(url: str) -> str:
    with pytest.raises(OptionError) as caught:
        open_store(url, "store")
    return str(caught.value)


def failed(store: PostgresStore) -> str:
    """The error of a merge that fails, with the traceback that a log would show."""
    with pytest.raises(StoreError) as caught:
        store.merge(SITE, [seen("/a")])
    assert "".join(traceback.format_exception(caught.value)).count(str(caught.value)) == 1
    return "".join(traceback.format_exception(caught.value))


# The URL


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_url_opens_nothing_until_the_store_is_used(scheme: str) -> None:
    store = open_store(f"{scheme}://nobody@nowhere.invalid/site", "store")
    assert isinstance(store, PostgresStore)
    assert store.schema == "sitemap"


@pytest.mark.parametrize(
    ("query", "schema"),
    [("", "sitemap"), ("?schema=pages_2", "pages_2"), ("?sslmode=disable&schema=a&connect_timeout=2", "a")],
)
def test_the_schema_is_named_in_the_url(query: str, schema: str) -> None:
    assert PostgresStore(f"postgresql://localhost/site{query}").schema == schema


@pytest.mark.parametrize("schema", ["", "a-b", "A", "1a", "pg_catalog", "a" * 64, "a%22b", "a;b", "%C3%A4"])
def test_invalid_schema_name_is_refused(schema: str) -> None:
    message = refused(f"postgresql://me:hunter2@localhost/site?schema={schema}")
    assert "names a schema " in message
    assert "up to 63 lower-case letters, digits and underscores" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("rest", ["me:hunter2%zz@host/x", "host/x?no_such=1&password=hunter2"])
def test_invalid_libpq_url_is_refused_without_showing_the_password(rest: str) -> None:
    message = refused(f"postgresql://{rest}")
    assert "is not a PostgreSQL URL, or has a parameter that libpq does not know" in message
    assert "hunter2" not in message


def test_without_psycopg_the_error_names_the_extra() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from sitemap_middleware.stores import open_store
open_store("postgresql://me:hunter2@localhost/site", "store")
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    last = run.stderr.strip().splitlines()[-1]
    assert "store='postgresql://***@localhost/site' needs psycopg" in last
    assert 'pip install "sitemap-middleware[postgresql]"' in last
    assert "hunter2" not in run.stderr


# The schema


def test_schemas_of_one_database_know_nothing_of_each_other(store: PostgresStore) -> None:
    other = PostgresStore(server().fresh())
    store.merge(SITE, [seen("/a")])
    assert other.pages(SITE) == []
    other.close()


def _start(url: str, gate: Any, number: int) -> None:
    gate.wait(30)
    store = PostgresStore(url)
    store.merge(SITE, [seen(f"/{number}")])
    store.merge(f"{SITE}/{number}", [seen(f"/{number}")])
    store.close()
    os._exit(0)


def _start_all(url: str, workers: int) -> list[int | None]:
    gate = multiprocessing.get_context("fork").Barrier(workers)
    return fork_children(_start, ((url, gate, number) for number in range(workers)), 60)


@pytest.mark.parametrize("workers", [16])
def test_many_workers_that_start_at_once_make_one_schema(url: str, workers: int) -> None:
    assert run_in_fresh_process(_start_all, url, workers) == [0] * workers
    store = PostgresStore(url)
    assert paths(store) == sorted(f"/{number}" for number in range(workers))
    assert [paths(store, f"{SITE}/{number}") for number in range(workers)] == [[f"/{n}"] for n in range(workers)]
    store.close()


def test_newer_schema_is_a_store_error_that_says_so(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    store.merge(SITE, [seen("/a")])
    store.close()
    newer = SCHEMA_VERSION + 1
    admin.execute(f"UPDATE {store.schema}.schema_version SET version = {newer}")
    error = failed(store)
    assert f"is of version {newer}, newer than this code's {SCHEMA_VERSION}; update sitemap-middleware" in error
    with pytest.raises(StoreError, match="newer than this code's"):
        store.pages(SITE)


def test_schema_of_newer_code_is_not_written_to(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    store.merge(SITE, [seen("/a")])
    admin.execute(f"UPDATE {store.schema}.schema_version SET version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="newer than this code's"):
        store.merge(SITE, [seen("/b")])
    admin.execute(f"UPDATE {store.schema}.schema_version SET version = {SCHEMA_VERSION}")
    assert paths(store) == ["/a"]


def test_a_schema_that_holds_another_programs_tables_is_left_alone(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    admin.execute(f"CREATE SCHEMA {store.schema}; CREATE TABLE {store.schema}.page (theirs text)".encode())
    assert "holds tables of another program; name one of its own: ?schema=" in failed(store)
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
    assert admin.execute(query, (store.schema,)).fetchall() == [("page",)]


def test_dropped_schema_is_created_again(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    store.merge(SITE, [seen("/a")])
    admin.execute(f"DROP SCHEMA {store.schema} CASCADE")
    store.merge(SITE, [seen("/b")])
    assert paths(store) == ["/b"]


def test_renumbered_sites_are_found_again(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    for site in ("one", "other"):
        store.merge(site, [seen("/a")])
    admin.execute(f"DROP SCHEMA {store.schema} CASCADE")
    for site in ("other", "one"):
        store.merge(site, [seen(f"/{site}")])
    assert [[page.path for page in store.pages(site)] for site in ("one", "other")] == [["/one"], ["/other"]]


def test_readonly_view_creates_nothing(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    seen_from_outside, why = open_readonly(store)
    assert why is None
    with pytest.raises(StoreError, match="its schema does not exist or is of an older version; an app with"):
        seen_from_outside.pages(SITE)
    assert admin.execute("SELECT to_regnamespace(%s)", (store.schema,)).fetchone() == (None,)
    store.merge(SITE, [seen("/a")])
    assert [page.path for page in seen_from_outside.pages(SITE)] == ["/a"]
    seen_from_outside.close()


def test_store_lists_the_sites_it_holds(store: PostgresStore) -> None:
    store.merge(OTHER, [seen("/a")])
    store.merge(SITE, [seen("/a")])
    with pytest.raises(StoreError):
        store.merge(f"{SITE}/failed", [seen("/a", last_modified=2**70)])
    assert [status.site for status in store_status(store, 2000).sites] == [SITE, OTHER]


def test_any_text_is_stored_unchanged(store: PostgresStore) -> None:
    odd = ["/\0", "/\U0001f35e", "/\xe4", "/%", "/'\"\\", "/" + "x" * 100_000]
    store.merge(SITE, [seen(path) for path in odd])
    assert paths(store) == sorted(odd)
    store.save(SITE, {"\0": b"\0", "%s": b""})
    assert store.load(SITE, ["\0", "%s", "other"]) == {"\0": b"\0", "%s": b""}


def test_paths_with_equal_hashes_are_distinguished(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    store.merge(SITE, [seen("/a"), seen("/b")])
    path_hash = f"(SELECT path_hash FROM {store.schema}.page WHERE path = '/b')"
    admin.execute(f"UPDATE {store.schema}.page SET path_hash = {path_hash} WHERE path = '/a'")
    assert list(store.find_pages(SITE, ["/b"])) == ["/b"]


def test_site_numbers_have_no_gaps_after_failures(store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
    for number in range(5):
        with suppress(StoreError):
            store.merge(f"{SITE}/{number}", [seen("/a", last_modified=2**70 if number % 2 else 500)])
    rows = admin.execute(f"SELECT id FROM {store.schema}.site ORDER BY id").fetchall()
    assert rows == [(1,), (2,), (3,), (4,), (5,)]


# Accounts


@pytest.fixture
def account(admin: psycopg.Connection[Any], store: PostgresStore) -> str:
    name = f"{store.schema}_reader"
    admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'hunter2'")
    return name


def of(account: str, store: PostgresStore, more: str = "") -> PostgresStore:
    return PostgresStore(server().url(store.schema, f"{account}:hunter2", more))


def test_account_without_create_schema_gets_an_error_with_the_fix(account: str, store: PostgresStore) -> None:
    error = failed(of(account, store))
    assert "permission denied for database postgres" in error
    assert "GRANT its account CREATE on the database, or create the schema by another account" in error
    assert "hunter2" not in error


def test_read_only_account_reads_and_learns_what_it_lacks(
    account: str, store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    store.merge(SITE, [seen("/a")])
    reader = of(account, store)
    assert "permission denied for schema" in failed(reader)
    admin.execute(f"GRANT USAGE ON SCHEMA {store.schema} TO {account}")
    admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {store.schema} TO {account}")
    assert paths(reader) == ["/a"]
    error = failed(reader)
    assert "permission denied for table site" in error
    assert "SELECT, INSERT, UPDATE, DELETE on its tables" in error
    reader.close()


def test_account_without_create_table_does_not_replace_a_lost_one(
    account: str, store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    store.merge(SITE, [seen("/a")])
    admin.execute(f"GRANT USAGE ON SCHEMA {store.schema} TO {account}")
    admin.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {store.schema} TO {account}")
    writer = of(account, store)
    assert paths(writer) == ["/a"]
    admin.execute(f"DROP TABLE {store.schema}.page")
    assert 'relation "' in failed(writer)
    writer.close()
    store.merge(SITE, [seen("/b")])
    assert paths(store) == ["/b"], "an account that may make tables replaces it"


def test_read_only_server_is_reported(account: str, store: PostgresStore) -> None:
    store.merge(SITE, [seen("/a")])
    reader = PostgresStore(server().url(store.schema, more="&options=-cdefault_transaction_read_only%3Don"))
    assert paths(reader) == ["/a"]
    assert "name the primary (with several hosts in the URL, target_session_attrs=read-write" in failed(reader)
    reader.close()


def test_no_error_shows_a_password(store: PostgresStore) -> None:
    unknown_account = PostgresStore(server().url(store.schema, "stranger:hunter2"))
    error = failed(unknown_account)
    assert 'role "stranger" does not exist' in error
    assert "hunter2" not in error
    assert "hunter2" not in unknown_account.name
    echoed = PostgresStore(server().url(store.schema, "hunter2:hunter2"))
    assert 'role "***" does not exist' in failed(echoed)


def test_unresolvable_server_name_fails_at_once() -> None:
    store = PostgresStore("postgresql://me:hunter2@localhost:1/site")
    error = failed(store)
    assert "the store postgresql://localhost:1/site?schema=sitemap does not work now: " in error
    assert "hunter2" not in error


# Servers and connections


def test_after_a_restart_the_next_call_works() -> None:
    own = Server()
    try:
        store = PostgresStore(own.url())
        store.merge(SITE, [seen("/a")])
        own.stop("fast")
        failed(store)
        own.start()
        store.merge(SITE, [seen("/b")])
        own.stop("fast")
        own.start()
        assert paths(store) == ["/a", "/b"]
        store.close()
    finally:
        own.remove()


def test_connection_closed_when_taken_is_replaced(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_is_closed_by_server", lambda _: False)  # it hung up just after it was looked at
    store.merge(SITE, [seen("/a")])
    with server().connected() as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'sitemap_middleware'"
        )
    assert paths(store) == ["/a"]


def test_old_connection_is_replaced(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def process() -> list[Any]:
        return store.read(lambda session: session("SELECT pg_backend_pid()"))

    first = process()
    assert process() == first
    monkeypatch.setattr(pool, "MAX_CONNECTION_AGE_SECONDS", -1)
    assert process() != first


def test_silent_server_is_given_up(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.merge(SITE, [seen("/a")])
    stopped = []

    def stop(session: Any) -> None:
        ((process,),) = session("SELECT pg_backend_pid()")
        os.kill(process, signal.SIGSTOP)
        stopped.append(process)
        session("SELECT 1")

    monkeypatch.setattr(pool, "RESPONSE_TIMEOUT_SECONDS", 0.3)
    with pytest.raises(StoreError, match=r"the server has not answered for 0\.3 seconds"):
        store.read(stop)
    assert paths(store) == ["/a"]
    os.kill(stopped.pop(), signal.SIGCONT)


def test_silent_pooled_connection_is_replaced(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ((process,),) = store.read(lambda session: session("SELECT pg_backend_pid()"))
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT_SECONDS", 0.3)
    os.kill(process, signal.SIGSTOP)
    assert store.merge(SITE, [seen("/a")]).changed == 1
    os.kill(process, signal.SIGCONT)


def test_long_held_lock_is_not_waited_for(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_BEGIN_WRITE", b"BEGIN; SET LOCAL lock_timeout = 50")
    store.merge(SITE, [seen("/a")])
    store.merge(OTHER, [seen("/a")])
    with server().connected() as holder, holder.transaction():
        holder.execute(f"SELECT FROM {store.schema}.site WHERE key = %s FOR UPDATE", (SITE.encode(),))
        assert "lock timeout" in failed(store)
        assert store.merge(OTHER, [seen("/b")]).changed == 1  # the lock is one site's
        assert paths(store) == ["/a"]
    assert store.merge(SITE, [seen("/b")]).changed == 1


def test_what_had_to_give_way_is_tried_again(store: PostgresStore) -> None:
    store.merge(SITE, [seen("/a")])
    raised = [psycopg.errors.DeadlockDetected(), psycopg.errors.SerializationFailure()]

    class Contended(list[Observation]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            if raised:
                raise raised.pop()
            return iter([seen("/b")])

    assert store.merge(SITE, Contended()).changed == 1
    assert paths(store) == ["/a", "/b"]


def test_what_gives_way_each_time_fails_in_the_end(store: PostgresStore) -> None:
    class Contended(list[Observation]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            raise psycopg.errors.DeadlockDetected

    with pytest.raises(StoreError):
        store.merge(SITE, Contended())
    assert paths(store) == []


def test_failed_merge_changes_nothing(store: PostgresStore) -> None:
    store.merge(SITE, [seen("/a")])
    version = store.version(SITE)
    with pytest.raises(StoreError, match="cannot be stored"):
        store.merge(SITE, [seen("/b"), seen("/c", last_modified=2**70)])
    assert paths(store) == ["/a"]
    assert store.version(SITE) == version


def test_interrupted_merge_is_rolled_back(store: PostgresStore) -> None:
    class Interrupted(list[Observation]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            yield seen("/a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.merge(SITE, Interrupted())
    assert store.pages(SITE) == []


def test_a_server_that_has_no_connection_left_is_waited_for(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Server()
    full: list[psycopg.Connection[Any]] = []

    def joined() -> bool:
        """Whether there was room for one more."""
        with suppress(psycopg.OperationalError):
            full.append(psycopg.connect(host=str(own.folder), user="postgres", dbname="postgres"))
            return True
        return False

    try:
        while joined():
            pass
        late = PostgresStore(own.url())
        freed = threading.Timer(0.3, full.pop().close)
        freed.start()
        assert late.merge(SITE, [seen("/a")]).changed == 1
        late.close()
        freed.join()
        until(joined)  # the server sees a little later who has left
        monkeypatch.setattr(pool, "CONNECT_TIMEOUT_SECONDS", 0)
        assert "raise max_connections" in failed(late) or "too many clients" in failed(late)
        for connection in full:
            connection.close()
    finally:
        own.remove()


def test_threads_wait_for_a_free_connection_but_not_forever(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT_SECONDS", 0.05)
    store.merge(SITE, [seen("/a")])
    busy, over = threading.Barrier(pool.MAX_CONNECTIONS + 1), threading.Event()

    def hold(_: object) -> None:
        busy.wait(10)
        over.wait(10)

    threads = [threading.Thread(target=store.read, args=(hold,)) for _ in range(pool.MAX_CONNECTIONS)]
    for thread in threads:
        thread.start()
    busy.wait(10)
    assert f"{pool.MAX_CONNECTIONS} connections have been busy" in failed(store)
    over.set()
    for thread in threads:
        thread.join()
    assert paths(store) == ["/a"]


def _fold_in_child(store: PostgresStore, number: int) -> None:
    for count in range(5):
        store.merge(SITE, [learned(f"/{number}/{count}")])
    os._exit(0)


def _fork_during_session(url: str) -> tuple[list[int | None], list[Any]]:
    """Fork while the parent's connection is in use; return the exit codes, and what the connection then reads."""
    with closing(PostgresStore(url)) as store:
        store.merge(SITE, [learned("/parent")])
        return store.read(
            lambda session: (
                fork_children(_fold_in_child, ((store, number) for number in range(3)), 30),
                session("SELECT 7"),
            )
        )


def test_forked_child_opens_its_own_connections(url: str, store: PostgresStore) -> None:
    assert run_in_fresh_process(_fork_during_session, url) == ([0, 0, 0], [(7,)])
    assert len(paths(store)) == 16
    assert len(store.block(SITE, 1)) == 16


def test_sessions_are_left_as_they_were_found(store: PostgresStore) -> None:
    """A pooler gives each transaction to any client: nothing set or prepared may outlive one."""
    for number in range(8):
        store.merge(SITE, [learned(f"/{number}")])
        store.sample(SITE, 2)
    with store.pool.connection() as (connection, _):
        query = b"SELECT name FROM pg_settings WHERE source = 'session'"
        assert connection.execute(query).fetchall() == []
        assert connection.execute(b"SELECT * FROM pg_prepared_statements").fetchall() == []
        assert connection.execute(b"SELECT FROM pg_locks WHERE locktype = 'advisory'").fetchall() == []


def test_schema_creation_is_waited_for_no_longer_than_for_a_lock(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_BEGIN_WRITE", b"BEGIN; SET LOCAL lock_timeout = 50")
    with server().connected() as holder, holder.transaction():
        holder.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_ID,))
        assert "lock timeout" in failed(store)
    assert store.merge(SITE, [seen("/a")]).changed == 1


def test_hash_collision_between_sites_returns_no_foreign_page(store: PostgresStore) -> None:
    store.merge(SITE, [seen("/about")])
    store.merge(OTHER, [learned("/p/b")])
    before = store.pages(OTHER)
    path_hash = path_hashes(1, ["/p/a"])["/p/a"]
    store.write(lambda session: session("UPDATE sitemap.page SET path_hash = %s WHERE path = %b", (path_hash, b"/p/b")))
    assert store.find_pages(SITE, ["/p/a", "/p/b"]) == {}
    store.merge(SITE, [learned("/p/a"), learned("/p/b", at=2000)._replace(noindex=True)])
    assert paths(store) == ["/about", "/p/a"]
    assert store.pages(OTHER) == before
