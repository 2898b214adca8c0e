"""What is Redis's own: keys, places in segments, workers at once, and everything that fails."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from sitemap_middleware import SitemapMiddleware, Store, StoreError
from sitemap_middleware.evidence.observation_merge import REFRESH_SECONDS
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.exceptions import OptionError
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import UNLEARNED_BLOCK
from sitemap_middleware.stores.permanent_page_slots import MAX_BLOCK_PAGES
from sitemap_middleware.stores.redis import client
from sitemap_middleware.stores.redis import store as engine
from sitemap_middleware.stores.redis.packed_pages_and_segments import hash_path
from sitemap_middleware.stores.store_status import store_status

from ..support.forking import fork_children, run_in_fresh_process
from ..support.redis_servers import PROGRAMS, USUAL, Cluster, RedisServer, shared
from ..support.sample_sites import Page, SampleSite
from ..support.servers import free_port
from ..support.waiting import until
from ..support.wire import DRIVERS, RequestSpec

SITE = "https://example.com"


def seen(path: str = "/", at: int = 1000, **more: Any) -> Observation:
    return Observation(path, path, at, 200, "text/html")._replace(**more)


def learned(path: str, at: int = 1000, route: str = "/<page>") -> Observation:
    return seen(path, at, route=route, learned=True)


def open_redis(server: RedisServer, prefix: object = "sitemap") -> Store:
    return open_store(f"{server.url}?prefix={prefix}", "store")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_redis(shared(), tmp_path)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """One that a test may spoil."""
    server = RedisServer(USUAL, *getattr(request, "param", ()))
    yield server
    server.remove()


def paths(store: Store) -> list[str]:
    return [page.path for page in store.pages(SITE)]


# Keys


@pytest.mark.parametrize(
    "site", [SITE, "https://example.com/{a}b}/", "https://example.com/}{", "https://example.com/%7B"]
)
def test_one_cluster_node_holds_all_keys_of_a_site(server: RedisServer, site: str) -> None:
    store = open_redis(server, "my:site")
    store.merge(site, [seen("/a"), learned("/b")])
    store.save(site, {"a": b"b"})
    store.served_since(site, "/sitemap.xml", "etag", 1000)
    store.lease(site, "job", "one", 1000, 60)
    keys = server.request("KEYS", "*")
    assert isinstance(keys, list)
    assert len(keys) == 4
    assert len({key_slot(key) for key in keys}) == 1
    assert all(key.startswith(b"{my:site:https://example.com") for key in keys)
    assert key_slot(keys[0]) == key_slot(keys[0].split(b"{", 1)[1].split(b"}", 1)[0])
    for key in keys:
        server.request("DEL", key)
    assert store.pages(site) == []
    assert store.load(site, ["a"]) == {}


def test_sites_that_differ_by_braces_alone_are_two(store: Store) -> None:
    for number, site in enumerate(["https://a/{", "https://a/%7B", "https://a/%257B"]):
        store.merge(site, [seen(f"/{number}")])
        assert [page.path for page in store.pages(site)] == [f"/{number}"]


def test_stores_of_different_prefixes_know_nothing_of_each_other(tmp_path: Path) -> None:
    open_redis(shared(), f"{tmp_path}/1").merge(SITE, [seen()])
    assert open_redis(shared(), f"{tmp_path}/2").pages(SITE) == []


# Places


@given(
    batches=st.lists(
        st.lists(
            st.builds(
                seen,
                st.sampled_from(["/a", "/a/", "/b", "/c", "/c/", "/d"]),
                st.integers(0, 9) .map(lambda number: number * REFRESH_SECONDS),
                route=st.sampled_from(["/<a>", "/<a>/"]),
                learned=st.booleans(),
                status=st.sampled_from([200, 404]),
            ),
            max_size=6,
        )
        | st.tuples(st.integers(0, 10 * REFRESH_SECONDS), st.integers(0, 10 * REFRESH_SECONDS)),
        max_size=8,
    )
)  # fmt: skip
def test_pages_have_the_places_that_tables_give_them(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Observation] | tuple[int, int]]
) -> None:
    stores = open_redis(shared(), tmp_path_factory.mktemp("store")), open_store("memory://", "store")
    versions = [0, 0]
    for batch in batches:
        looks = []
        for number, store in enumerate(stores):
            result = store.merge(SITE, batch) if isinstance(batch, list) else store.forget(SITE, *batch)
            blocks = store.blocks(SITE)
            changed = [block.number for block in store.blocks(SITE, versions[number])]
            grown = store.version(SITE) > versions[number]
            versions[number] = store.version(SITE)
            pages = [store.block(SITE, block.number) for block in blocks]
            known = store.find_pages(SITE, ["/a", "/b/", "/c/"])
            sample = {page.path for page in store.sample(SITE, 10)}
            looks.append((result, [block[:3] for block in blocks], changed, grown, pages, known, sample))
        assert looks[0] == looks[1]


def test_blocks_and_documents_fill_and_stay_as_they_are(store: Store) -> None:
    full = MAX_BLOCK_PAGES
    store.merge(SITE, [learned(f"/{number:05}") for number in range(2 * full + 500)])
    store.merge(SITE, [seen(f"/named/{number:05}") for number in range(2100)])
    version = store.version(SITE)
    assert [block[:3] for block in store.blocks(SITE)] == [(0, 0, 2100), (1, 1, full), (2, 1, full), (3, 1, 500)]
    assert [page.path for page in store.block(SITE, 2)] == [f"/{number:05}" for number in range(full, 2 * full)]
    assert [page.path for page in store.block(SITE, UNLEARNED_BLOCK)] == [
        f"/named/{number:05}" for number in range(2100)
    ]
    in_second = f"/{full + 500:05}"
    store.merge(SITE, [learned(in_second, at=1000 + REFRESH_SECONDS), learned("/new", at=5000)])
    assert [block[:3] for block in store.blocks(SITE, version)] == [(2, 1, full), (3, 1, 501)]
    assert store.forget(SITE, 1001, 1001) == 2 * full + 499
    assert [block.pages for block in store.blocks(SITE)] == [2100, 0, 1, 1]
    store.merge(SITE, [learned("/later")])
    assert [page.path for page in store.block(SITE, 3)] == ["/new", "/later"]
    assert store.block(SITE, 4) == store.block(SITE, 1) == []
    assert len(store.find_pages(SITE, [f"/named/{number:05}" for number in range(2100)])) == 2100


def test_forgotten_page_changes_the_block_of_its_slash_variant(store: Store) -> None:
    store.merge(SITE, [seen(f"/{number}") for number in range(1001)])
    store.merge(SITE, [learned("/1000/"), learned("/b", at=2000)])
    version = store.version(SITE)
    assert store.forget(SITE, 1001, 1001) == 1
    assert [block[:3] for block in store.blocks(SITE, version)] == [(0, 0, 1001), (1, 1, 1)]


def test_a_sample_is_even(store: Store) -> None:
    store.merge(SITE, [learned(f"/{number:05}") for number in range(1500)])
    store.merge(SITE, [seen(f"/named/{number:05}") for number in range(30)])
    sample = [page.path for page in store.sample(SITE, 20)]
    assert [int(path.removeprefix("/named/")) // 3 for path in sample[:10]] == [*range(10)]
    assert [int(path[1:]) // 150 for path in sample[10:]] == [*range(10)]
    assert {int(path[1:]) % 5 for path in sample[10:]} == {*range(5)}, "not every hundred-and-fiftieth page"
    assert len(store.sample(SITE, 100)) == 100
    assert len(store.sample(SITE, 10_000)) == 1530


def test_slots_of_pages_that_are_not_learned_are_numbered_as_ever(tmp_path: Path) -> None:
    """A segment of them has 1,000 slots in every store that exists."""
    open_redis(shared(), tmp_path).merge(SITE, [seen(f"/{number:04}") for number in range(2100)])
    key, segments = f"{{{tmp_path}:{SITE}}}:pages", range(1 << 31, (1 << 31) + 4)
    hashes = [hash_path(f"/{number:04}") for number in range(2100)]
    stored = [shared().request("HGET", key, f"segment:{segment}") for segment in segments]
    assert stored == [*(b"".join(hashes[first : first + 1000]) for first in (0, 1000, 2000)), None]


# Workers


class Meanwhile(list[Observation]):
    """Observations during whose merge something else happens once, after the pages were read."""

    def __init__(self, observations: list[Observation], happens: Callable[[], object]) -> None:
        super().__init__(observations)
        self._happens = happens
        self.looks = 0

    def __iter__(self) -> Iterator[Observation]:
        self.looks += 1
        if self.looks == 3:
            self._happens()
        return super().__iter__()


def test_merge_overtaken_by_another_is_repeated_on_its_result(store: Store, tmp_path: Path) -> None:
    other = open_redis(shared(), tmp_path)
    store.merge(SITE, [learned("/a")])
    batch = Meanwhile([learned("/b"), learned("/c")], lambda: other.merge(SITE, [learned("/b"), learned("/d")]))
    assert store.merge(SITE, batch).changed == 1
    assert batch.looks == 6
    assert [page.path for page in store.block(SITE, 1)] == ["/a", "/b", "/d", "/c"]
    assert store.blocks(SITE)[0].pages == 4
    began = store.version(SITE)
    assert other.merge(SITE, [learned("/e")]).changed == 1  # nobody has the turn any more
    assert store.version(SITE) > began


def test_worker_with_nothing_to_write_gives_up_its_turn(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_redis(shared(), tmp_path)
    assert store.merge(SITE, Meanwhile([learned("/a")], lambda: other.merge(SITE, [learned("/a")]))).changed == 0
    monkeypatch.setattr(engine, "MERGE_RETRY_SECONDS", 1)
    assert other.merge(SITE, [learned("/b")]).changed == 1


def test_a_turn_that_never_comes_is_a_store_error(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.merge(SITE, [seen("/a")])
    shared().request("HSET", f"{{{tmp_path}:{SITE}}}:pages", "turn", "9999999999999 another")
    monkeypatch.setattr(engine, "MERGE_RETRY_SECONDS", 0.2)
    with pytest.raises(StoreError, match=r"other workers have been writing for 0\.2 s"):
        store.merge(SITE, [seen("/b")])
    assert paths(store) == ["/a"]


def test_a_thread_does_not_wait_for_another_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MERGE_RETRY_SECONDS", 0.1)
    failed = []

    def work() -> None:
        with pytest.raises(StoreError, match="other workers have been writing"):
            store.merge(SITE, [seen("/b")])
        failed.append(True)

    def other() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with contextlib.suppress(StoreError):  # it has waited too long itself, or not
        store.merge(SITE, Meanwhile([seen("/a")], other))
    assert failed == [True]


def _fold_in_child(store: Store, name: str) -> None:
    for count in range(10):
        store.merge(
            SITE, [learned(f"/{name}/{number}", at=1000 + count * REFRESH_SECONDS) for number in range(count + 1)]
        )
    os._exit(0)


def _fold_in_children(url: str) -> list[int | None]:
    store = open_store(url, "store")
    store.merge(SITE, [learned("/parent")])
    return fork_children(_fold_in_child, ((store, str(number)) for number in range(4)), 30)


def test_processes_merge_at_the_same_time_without_loss(store: Store, tmp_path: Path) -> None:
    assert run_in_fresh_process(_fold_in_children, f"{shared().url}?prefix={tmp_path}") == [0, 0, 0, 0]
    assert store.blocks(SITE)[0].pages == len(store.pages(SITE)) == len(store.block(SITE, 1)) == 41


# What fails


def test_emptied_redis_starts_again_with_later_versions(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [learned(f"/{number}") for number in range(10)])
    version = store.version(SITE)
    server.request("FLUSHALL")
    assert (store.version(SITE), store.blocks(SITE), store.pages(SITE), len(store.sample(SITE, 9))) == (0, [], [], 0)
    store.merge(SITE, [learned("/new")])
    assert store.version(SITE) > version
    assert [block.pages for block in store.blocks(SITE, version)] == [1]


def test_redis_emptied_during_a_merge_gets_whole_pages(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [learned("/a"), learned("/b")])
    store.merge(SITE, Meanwhile([learned("/b", at=9000), learned("/c")], lambda: server.request("FLUSHALL")))
    assert [page.path for page in store.block(SITE, 1)] == ["/b", "/c"]
    assert store.blocks(SITE)[0].pages == 2


def test_scripts_that_were_forgotten_are_sent_again(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [seen("/a")])
    server.request("SCRIPT", "FLUSH")
    store.merge(SITE, [seen("/b")])
    assert paths(store) == ["/a", "/b"]


def test_restart_that_lost_merges_republishes_every_block(server: RedisServer) -> None:
    store = open_redis(server)
    last = f"/{MAX_BLOCK_PAGES + 499}"
    store.merge(SITE, [learned(f"/{number}") for number in range(MAX_BLOCK_PAGES + 500)])
    saved_version = store.version(SITE)
    server.request("SAVE")
    store.merge(SITE, [learned("/0", at=9000)])
    lost = store.version(SITE)
    server.stop()
    with pytest.raises(StoreError):
        store.version(SITE)
    server.start()
    assert store.version(SITE) == saved_version
    store.merge(SITE, [learned(last, at=9000)])
    assert [block.number for block in store.blocks(SITE, saved_version)] == [2]
    assert [block.number for block in store.blocks(SITE, lost)] == [1, 2]
    assert store.blocks(SITE, store.version(SITE)) == []
    store.merge(SITE, [learned(last, at=20_000)])
    assert [block.number for block in store.blocks(SITE, lost)] == [1, 2]


def test_a_redis_out_of_memory_changes_nothing(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [learned("/a"), seen("/b")])
    store.save(SITE, {"one": b"1"})
    version = store.version(SITE)
    server.request("CONFIG", "SET", "maxmemory", "1")
    writes: list[Callable[[], object]] = [
        lambda: store.merge(SITE, [learned("/c")]),
        lambda: store.forget(SITE, 5000, 5000),
        lambda: store.save(SITE, {"two": b"2", "one": None}),
        lambda: store.lease(SITE, "job", "one", 1000, 60),
        lambda: store.served_since(SITE, "/sitemap.xml", "etag", 1000),
    ]
    for write in writes:
        with pytest.raises(StoreError, match=r"OOM|maxmemory"):
            write()
    assert (store.version(SITE), paths(store)) == (version, ["/a", "/b"])
    assert store.load(SITE, ["one", "two"]) == {"one": b"1"}
    server.request("CONFIG", "SET", "maxmemory", "0")
    assert store.forget(SITE, 5000, 5000) == 1


def test_replica_is_a_store_error_that_says_so(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [seen("/a")])
    server.request("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreError, match="is a replica, which takes no writes; name the primary"):
        store.merge(SITE, [seen("/b")])
    assert paths(store) == ["/a"]
    server.request("REPLICAOF", "NO", "ONE")
    assert store.merge(SITE, [seen("/b")]).changed == 1


def test_failed_merge_changes_nothing(store: Store) -> None:
    store.merge(SITE, [seen("/a")])
    version = store.version(SITE)
    with pytest.raises(StoreError):
        store.merge(SITE, [seen("/b"), seen("/c", last_modified=2**70)])
    assert (paths(store), store.version(SITE)) == (["/a"], version)


def test_foreign_values_are_dropped(store: Store, tmp_path: Path) -> None:
    store.merge(SITE, [seen("/a"), seen("/b")])
    shared().request("HSET", f"{{{tmp_path}:{SITE}}}:pages", b"p" + hash_path("/a"), b"no page")
    assert paths(store) == ["/b"]


@pytest.mark.parametrize("server", [("--requirepass", "s3cret pass")], indirect=True)
@pytest.mark.parametrize("secret", ["", "wr0ng-s3cret@"])
def test_refused_login_is_a_store_error_without_the_password(server: RedisServer, secret: str) -> None:
    quoted = secret.replace("@", "%40")
    for url in (f"unix://:{quoted}@{server.folder}/socket", f"{server.url}?password={quoted}"):
        with pytest.raises(StoreError, match=r"WRONGPASS|invalid|asks for a password") as raised:
            open_store(url, "store").merge(SITE, [seen()])
        assert "s3cret" not in str(raised.value)
    store = open_store(f"unix://:s3cret%20pass@{server.folder}/socket", "store")
    assert store.merge(SITE, [seen()]).changed == 1


NEEDED = (
    "auth", "hello", "client|setinfo", "client|setname", "select", "eval", "evalsha", "time", "info",
    "hget", "hmget", "hset", "hdel", "hincrby", "hscan",
)  # fmt: skip
"""The commands that docs/operations.md says an app needs; INFO may be forbidden."""


@pytest.mark.parametrize("without", ["", "info", "hello"])
def test_the_commands_that_the_guide_names_are_enough(server: RedisServer, without: str) -> None:
    allowed = [f"+{command}" for command in NEEDED if command != without]
    server.request("ACL", "SETUSER", "app", "on", ">secret", "~{sitemap:*", "-@all", *allowed)
    store = open_store(f"unix://app:secret@{server.folder}/socket", "store")
    store.merge(SITE, [learned(f"/{number}") for number in range(3)])
    store.merge(SITE, [learned("/0", at=9000)])
    store.save(SITE, {"a": b"1", "b": None})
    assert store.lease(SITE, "job", "me", 1000, 60)
    assert store.served_since(SITE, "/sitemap.xml", "etag", 1000) == 1000
    assert store.load(SITE, ["a"]) == {"a": b"1"}
    assert store.version(SITE)
    assert [block.pages for block in store.blocks(SITE)] == [3]
    assert (
        len(store.block(SITE, 1)) == len(store.sample(SITE, 9)) == len(store.find_pages(SITE, ["/0", "/1", "/2"])) == 3
    )
    assert abs(store.now(SITE) - time.time()) < 60  # type: ignore[attr-defined]
    server.request("HSET", f"{{sitemap:{SITE}}}:pages", "cursor", "damaged")
    assert store.merge(SITE, [learned("/3")]).changed == 1
    assert store.forget(SITE, 5000, 5000) == 3
    with pytest.raises(StoreError, match=r"may not SCAN.*--site"):
        store_status(store, 0)
    store.close()


@pytest.mark.parametrize("rename", ["", "hidden-info"])
def test_a_redis_whose_info_has_another_name_is_believed(rename: str) -> None:
    server = RedisServer(USUAL, "--rename-command", "INFO", rename)
    store = open_redis(server)
    assert store.merge(SITE, [learned("/a")]).changed == 1
    assert store_status(store, 0, [SITE]).engine == "Redis"
    server.remove()


@pytest.mark.parametrize("program", PROGRAMS)
def test_any_cluster_node_reaches_all_keys_without_info(program: str) -> None:
    cluster = Cluster(program)
    for node in cluster.nodes:
        node.request("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-@dangerous")
    sites = [f"https://{number * 'x'}.example.com" for number in range(1, 20)]
    assert len({cluster.keeper(f"{{sitemap:{site}}}") for site in sites}) == 3
    for number, node in enumerate(cluster.nodes):
        store = open_store(f"redis://app:secret@127.0.0.1:{node.port}", "store")
        for site in sites:
            store.merge(site, [seen(f"/{number}", at=1000)])
            assert [page.path for page in store.pages(site)] == [f"/{index}" for index in range(number + 1)]
        store.close()
    cluster.remove()


def test_cluster_without_details_is_followed_to_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_CACHED_KEYS", 2)
    cluster = Cluster()
    for node in cluster.nodes:
        node.request("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-cluster", "-info")
    sites = [f"https://{number * 'x'}.example.com" for number in range(1, 20)]
    for number, node in enumerate(cluster.nodes):
        store = open_store(f"redis://app:secret@127.0.0.1:{node.port}", "store")
        for site in sites:
            store.merge(site, [seen(f"/{number}", at=1000)])
            assert [page.path for page in store.pages(site)] == [f"/{index}" for index in range(number + 1)]
        store.close()
    cluster.remove()


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("MOVED 3999 127.0.0.1:6381", "is a node of a cluster that is changing"),
        ("3999 127.0.0.1:6381", "is a node of a cluster that is changing"),
        ("NOAUTH Authentication required.", "asks for a password"),
        ("NOAUTH HELLO must be called with the client already authenticated", "asks for a password"),
        ("Command # 1 (EVALSHA abc 1 \x00\x01) of pipeline caused error: OOM", "OOM"),
        ("unknown command 'EVALSHA', with args beginning with: 'x\x00' ", "unknown command 'EVALSHA'"),
        ("bytes \x00\x1b[31m", "bytes   [31m"),
    ],
)
def test_redis_errors_are_reported_plainly(error: str, shown: str) -> None:
    assert shown in client.describe_error(error)
    assert client.describe_error(error).isprintable()


@pytest.mark.parametrize("server", [("--requirepass", "s3cret")], indirect=True)
def test_missing_password_is_reported_with_the_fix(server: RedisServer) -> None:
    for more in ("", "?protocol=3"):
        with pytest.raises(StoreError, match=r"asks for a password, and the URL has none: write redis://"):
            open_store(server.url + more, "store").version(SITE)


def test_what_redis_repeats_of_a_command_is_not_shown() -> None:
    server = RedisServer(USUAL, "--rename-command", "EVALSHA", "", "--rename-command", "EVAL", "")
    with pytest.raises(StoreError) as raised:
        open_redis(server).merge(SITE, [seen("/a-path-of-the-site")])
    assert "unknown command" in str(raised.value)
    assert "a-path-of-the-site" not in str(raised.value)
    assert len(str(raised.value)) < 400
    server.remove()


def test_redis_outage_is_logged_in_few_lines(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    site = SampleSite("wsgi", {"/": Page(), "/late": Page()}, store=server.url, max_age=0, verify=False)
    caplog.set_level(logging.INFO)
    site.visit("/")
    assert site.request("/sitemap.xml").status == 200
    server.stop()
    for _ in range(5):
        site.clock.pass_(40)
        site.visit("/late")
        assert site.request("/sitemap.xml").status == 200
    server.start()
    site.clock.pass_(40)
    site.visit("/late")
    assert site.request("/sitemap.xml").status == 200
    assert len(caplog.text.splitlines()) <= 6
    assert "EVALSHA" not in caplog.text
    site.app.close()


def test_redis_without_version_information_is_accepted(server: RedisServer) -> None:
    server.request("ACL", "SETUSER", "default", "-info")
    store = open_redis(server)
    assert store.merge(SITE, [learned("/a")]).changed == 1
    assert paths(store) == ["/a"]


# Clusters


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One with replicas, that a test may spoil."""
    cluster = Cluster(replicas=True)
    yield cluster
    cluster.remove()


def node_of(cluster: Cluster, site: str) -> RedisServer:
    return cluster.nodes[cluster.keeper(f"{{sitemap:{site}}}:pages")]


def test_sites_of_a_cluster_are_spread_over_its_nodes(cluster: Cluster) -> None:
    store = open_store(cluster.url, "store")
    sites = [f"https://{number}.example" for number in range(12)]
    for site in sites:
        store.merge(site, [seen("/a"), learned("/b")])
        store.save(site, {"a": b"b"})
        assert len(store.pages(site)) == 2
    assert len({node_of(cluster, site).pid for site in sites}) == 3
    for node in cluster.nodes:
        keys = node.request("KEYS", "*")
        assert isinstance(keys, list)
        assert len(keys) == 2 * sum(node_of(cluster, site) is node for site in sites)
    assert [status.site for status in store_status(store, 0).sites] == sorted(sites)


def test_replica_takes_over_from_a_dead_node_without_loss(cluster: Cluster) -> None:
    store = open_store(cluster.url, "store")
    store.merge(SITE, [learned(f"/{number}") for number in range(100)])
    node = node_of(cluster, SITE)
    version = store.version(SITE)
    until(lambda: all("cluster_state:ok" in replica.cluster_info() for replica in cluster.replicas))
    assert cluster.replicated(node)
    node.stop()
    with pytest.raises(StoreError, match="does not work now"):
        store.merge(SITE, [learned("/new")])
    until(lambda: works(store))
    assert store.merge(SITE, [learned("/new")]).changed == 1
    assert len(store.pages(SITE)) == 101
    assert store.version(SITE) > version


def test_a_cluster_that_was_gone_is_found_again_by_its_name(cluster: Cluster) -> None:
    store = open_store(cluster.url, "store")
    store.merge(SITE, [seen("/a")])
    for node in (*cluster.nodes, *cluster.replicas):
        node.stop()
    with pytest.raises(StoreError, match="does not work now"):
        store.version(SITE)
    for node in (*cluster.nodes, *cluster.replicas):
        node.start()
    until(lambda: works(store))
    assert store.merge(SITE, [seen("/b")]).changed == 1


def works(store: Store) -> bool:
    with contextlib.suppress(StoreError):
        store.pages(SITE)
        return True
    return False


def test_account_without_info_sees_neither_size_nor_version(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [seen()])
    server.request("ACL", "SETUSER", "default", "-memory", "-info")
    status = store_status(store, 0)
    assert (status.engine, status.version, status.size) == ("Redis", None, None)
    assert [site_status.site for site_status in status.sites] == [SITE]


def test_sites_of_a_redis_are_found_by_their_keys(tmp_path: Path) -> None:
    store = open_redis(shared(), f"{tmp_path}[*?^-")
    open_redis(shared(), f"{tmp_path}xyz").merge(SITE, [seen()])
    sites = ["https://a/{b}", "https://a/%7Bb%7D", SITE]
    for site in sites:
        store.merge(site, [seen()])
    store.save("https://no.example", {"a": b"b"})
    shared().request("SET", f"{{{tmp_path}[*?^-:https://theirs.example}}:no kind of ours", "1")
    assert [status.site for status in store_status(store, 0).sites] == sorted(sites)


def test_closed_port_is_a_store_error_that_names_the_address() -> None:
    port = free_port()
    with pytest.raises(
        StoreError, match=rf"the store redis://\*\*\*@127\.0\.0\.1:{port}/1 does not work now"
    ) as raised:
        open_store(f"redis://me:s3cret@127.0.0.1:{port}/1?prefix=a", "store").version(SITE)
    assert "s3cret" not in str(raised.value)


def test_one_that_hangs_is_a_store_error_within_seconds(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RESPONSE_TIMEOUT_SECONDS", 0.2)
    store = open_redis(server)
    store.merge(SITE, [seen()])
    server.send(signal.SIGSTOP)
    with pytest.raises(StoreError, match=r"(?i)timeout"):
        store.version(SITE)
    server.send(signal.SIGCONT)
    assert paths(store) == ["/"]


def test_a_connection_that_was_closed_is_opened_again(server: RedisServer) -> None:
    store = open_redis(server)
    store.merge(SITE, [seen()])
    server.request("CLIENT", "KILL", "TYPE", "normal")
    assert paths(store) == ["/"]


def test_redis_over_tcp() -> None:
    port = free_port()
    server = RedisServer(USUAL, "--port", str(port), "--bind", "127.0.0.1")
    store = open_store(f"redis://127.0.0.1:{port}/3?prefix=a&socket_timeout=2", "store")
    assert store.merge(SITE, [seen()]).changed == 1
    server.remove()


def _of_old(listening: socket.socket, answers: dict[bytes, bytes]) -> None:
    """Answer as a Redis of before 6 does."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection:
                while request := connection.recv(4096):
                    words = [line for line in request.split(b"\r\n") if line and line[:1] not in b"*$"]
                    unknown = b"-ERR unknown command `%s`, with args beginning with: %s\r\n" % (
                        words[0],
                        b" ".join(words),
                    )
                    connection.sendall(answers.get(words[0], unknown))


@pytest.fixture
def of_old() -> Iterator[Callable[[dict[bytes, bytes]], int]]:
    listening = socket.create_server(("127.0.0.1", 0))

    def start(answers: dict[bytes, bytes]) -> int:
        threading.Thread(target=_of_old, args=(listening, answers), daemon=True).start()
        return int(listening.getsockname()[1])

    yield start
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def test_an_old_redis_is_refused(of_old: Callable[[dict[bytes, bytes]], int]) -> None:
    info = b"# Server\r\nredis_version:6.0.16\r\nredis_mode:standalone\r\n"
    port = of_old({b"INFO": b"$%d\r\n%s\r\n" % (len(info), info)})
    with pytest.raises(StoreError, match=r"is Redis 6\.0; the minimum is 6\.2"):
        open_store(f"redis://127.0.0.1:{port}?protocol=2", "store").version(SITE)


def test_a_password_that_redis_repeats_is_not_shown(of_old: Callable[[dict[bytes, bytes]], int]) -> None:
    port = of_old({})
    with pytest.raises(StoreError, match=r"unknown command") as raised:
        open_store(f"redis://:s3cret@127.0.0.1:{port}?protocol=2", "store").version(SITE)
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("command", "answer", "shown"),
    [
        (b"AUTH", b"-ERR s3cret is not what it was\r\n", r"\*\*\* is not what it was"),
        (b"INFO", b"-ERR Authentication required\r\n", "asks for a password"),
    ],
)
def test_error_of_a_redis_proxy_is_shown_without_the_password(
    command: bytes, answer: bytes, shown: str, of_old: Callable[[dict[bytes, bytes]], int]
) -> None:
    port = of_old({b"AUTH": b"+OK\r\n"} | {command: answer})
    store = open_store(f"redis://:s3cret@127.0.0.1:{port}?protocol=2", "store")
    with contextlib.closing(store), pytest.raises(StoreError, match=shown) as raised:
        store.version(SITE)
    assert "s3cret" not in str(raised.value)


# URLs


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://:s3cret/more@host/0", "is not a URL of the form"),
        ("redis://host:port/0", "is not a URL of the form"),
        ("redis://host/0?prefx=a", "has an unknown option 'prefx'; the options are client_name, db, "),
        ("redis://host/0?decode_responses=1", "has an unknown option 'decode_responses'"),
        ("redis://host/0?prefix=", "has a prefix that is empty or contains a brace"),
        ("redis://host/0?prefix={a}", "has a prefix that is empty or contains a brace"),
        ("redis://host/0?protocol=three", "has an option, or a value of an option, that redis-py does not accept"),
        ("redis://host/0?ssl_cert_reqs=none", "has an option, or a value of an option, that redis-py does not accept"),
        ("redis://", "names no store"),
    ],
)
def test_invalid_url_is_refused_where_it_is_written(url: str, message: str) -> None:
    with pytest.raises(OptionError, match=f"^store='.*' {message}") as raised:
        open_store(url, "store")
    assert "s3cret" not in str(raised.value)
    assert "more" not in str(raised.value)


@pytest.mark.parametrize("url", ["redis://:s3?cret@host/0?prefx=a", "redis://host/0?password=s3@cret&prefx=1"])
def test_password_is_hidden_in_every_position(url: str) -> None:
    with pytest.raises(OptionError) as raised:
        open_store(url, "store")
    assert "s3" not in str(raised.value)
    assert "cret" not in str(raised.value)


def test_tls_is_used_if_the_url_says_so() -> None:
    port = free_port()
    store = open_store(f"rediss://127.0.0.1:{port}/0?ssl_cert_reqs=none", "store")
    with pytest.raises(StoreError, match=rf"rediss://127\.0\.0\.1:{port}/0 does not work now"):
        store.version(SITE)


def test_without_redis_py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis.store", "redis.client"):
        monkeypatch.delitem(sys.modules, f"sitemap_middleware.stores.{name}")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OptionError, match=r'needs redis-py: pip install "sitemap-middleware\[redis\]"'):
        open_store("redis://host/0", "store")


# A site


def test_workers_that_share_a_redis_serve_the_same_sitemap(tmp_path: Path) -> None:
    from flask import Flask

    apps = []
    for _ in range(2):
        flask = Flask(__name__)
        flask.add_url_rule("/", "home", lambda: "home")
        flask.add_url_rule("/posts/<slug>", "post", lambda slug: slug)
        url = f"{shared().url}?prefix={tmp_path}"
        flask.wsgi_app = SitemapMiddleware(flask.wsgi_app, learn="/posts/*", store=url, base_url=SITE)  # type: ignore[method-assign]
        apps.append(flask.wsgi_app)
    drive = DRIVERS["wsgi"]
    for number, app in enumerate(apps):
        for path in ("/", f"/posts/{number}"):
            drive(app, RequestSpec(path, host="example.com"))
        app.flush()
    answers = [drive(app, RequestSpec("/sitemap.xml", host="example.com")) for app in apps]
    assert answers[0].text == answers[1].text
    assert answers[0].text.count("<loc>") == 3
