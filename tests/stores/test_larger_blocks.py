"""A site that was stored when blocks had more pages goes on as it is; only new blocks have fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import redis

from sitemap_middleware import Store
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.stores import open_store, permanent_page_slots
from sitemap_middleware.stores.base import UNLEARNED_BLOCK
from sitemap_middleware.stores.permanent_page_slots import MAX_BLOCK_PAGES
from sitemap_middleware.stores.redis.packed_pages_and_segments import hash_path
from tests.stores.test_concurrent_workers import SHARED
from tests.unit.rendering.test_publisher import BASE, Worker, seen, throw_away

from ..support import postgres
from ..support.redis_servers import shared_cluster
from ..support.sample_sites import Clock

pytestmark = pytest.mark.uncovered

EARLIER_BLOCK_PAGES = 1000
UNLEARNED = 2100

URLS: dict[str, Callable[[Path], str]] = {
    "memory": lambda _: "memory://",
    **SHARED,
    "cluster": lambda folder: f"{shared_cluster().url}?prefix={folder}",
}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param](tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url, "store")) as store:
        yield store


@contextmanager
def larger_blocks() -> Iterator[None]:
    """Place pages as before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permanent_page_slots, "MAX_BLOCK_PAGES", EARLIER_BLOCK_PAGES)
        yield


def fill(store: Store, pages: int) -> None:
    """Have a site with so many learned pages, in large blocks, and `UNLEARNED` others."""
    with larger_blocks():
        store.merge(BASE, seen(*range(pages)))
        store.merge(BASE, [Observation(f"/{n}", f"/{n}", 1_750_000_000, 200, "text/html") for n in range(UNLEARNED)])


def page_counts(store: Store, since: int = 0) -> list[tuple[int, int, int]]:
    """Number, document and pages of the blocks that changed since a version."""
    return [block[:3] for block in store.blocks(BASE, since)]


def paths(store: Store, block: int) -> list[str]:
    return [page.path for page in store.block(BASE, block)]


def numbered(*numbers: int) -> list[str]:
    return [f"/p/{number}" for number in numbers]


def test_pages_stay_in_their_larger_blocks_and_new_ones_go_into_the_next(store: Store) -> None:
    fill(store, 1850)
    assert page_counts(store) == [(0, 0, UNLEARNED), (1, 1, 1000), (2, 1, 850)]
    since = store.version(BASE)
    store.merge(BASE, seen(*range(1850, 2000 + MAX_BLOCK_PAGES)))
    assert page_counts(store, since) == [(3, 1, MAX_BLOCK_PAGES), (4, 1, 150)]
    since = store.version(BASE)
    store.merge(BASE, seen(7, 1849, at=1_750_000_001, noindex=True))
    assert page_counts(store, since) == [(1, 1, 1000), (2, 1, 850)]
    assert store.forget(BASE, 0, 1_750_000_002) == 2
    assert paths(store, 1) == numbered(*range(7), *range(8, 1000))
    assert paths(store, 2) == numbered(*range(1000, 1849))
    assert len(store.pages(BASE)) == UNLEARNED + 1998 + MAX_BLOCK_PAGES
    assert len(store.sample(BASE, 10_000)) == UNLEARNED + 1998 + MAX_BLOCK_PAGES


def test_an_unfinished_block_is_filled_to_todays_number(store: Store) -> None:
    fill(store, 1300)
    store.merge(BASE, seen(*range(1300, 1700)))
    assert page_counts(store)[1:] == [(1, 1, 1000), (2, 1, MAX_BLOCK_PAGES), (3, 1, 700 - MAX_BLOCK_PAGES)]


def test_a_sample_is_spread_evenly_over_blocks_of_all_sizes(store: Store) -> None:
    fill(store, 1850)
    store.merge(BASE, seen(*range(1850, 1850 + MAX_BLOCK_PAGES)))
    count = 1850 + MAX_BLOCK_PAGES
    sample = [page.path for page in store.sample(BASE, 1000)]
    parts = [range(count * number // 500, count * (number + 1) // 500) for number in range(500)]
    assert all(int(path.removeprefix("/p/")) in part for path, part in zip(sample[500:], parts, strict=True))


def test_a_worker_of_before_and_one_of_today_share_a_site(store: Store) -> None:
    """Such as while an update is rolled out, worker by worker."""
    fill(store, 300)
    store.merge(BASE, seen(*range(300, 1000)))
    with larger_blocks():
        store.merge(BASE, seen(*range(1000, 2000)))
    store.merge(BASE, seen(2000))
    first, rest = 1000 - MAX_BLOCK_PAGES, 2000 - MAX_BLOCK_PAGES - EARLIER_BLOCK_PAGES
    assert 0 < first < MAX_BLOCK_PAGES
    assert page_counts(store)[1:] == [(1, 1, MAX_BLOCK_PAGES), (2, 1, 1000), (3, 1, rest + 1)]
    assert [path for block in (1, 2, 3) for path in paths(store, block)] == numbered(*range(2001))


def test_documents_of_larger_blocks_are_the_same_and_one_change_renders_one_block(store: Store) -> None:
    clock = Clock()
    fill(store, 1850)
    with larger_blocks():
        before = Worker(store, clock).documents()
    site = Worker(store, clock)
    assert site.documents() == before
    assert site.app.stats()["rendered"] == 0, "the chunks in the store are still right"
    throw_away(store)
    site = Worker(store, clock)
    assert site.documents() == before
    assert site.app.stats()["rendered"] == 2
    clock.pass_(1)
    store.merge(BASE, seen(999, at=int(clock()), noindex=True))
    listed = site.listed()
    assert f"{BASE}/p/999" not in listed
    assert {f"{BASE}{path}" for path in numbered(*range(999), *range(1000, 1850))} <= {*listed}
    assert site.app.stats()["rendered"] == 3


def spoil(url: str, store: Store, path: str) -> None:
    """Damage a page where it is stored."""
    if url == "memory://" or url.startswith("sqlite"):
        opened: Any = store
        with opened.open_connection() as connection:
            connection.execute("UPDATE page SET data = 'damaged' WHERE path = ?", (path,))
    elif url.startswith("postgresql"):
        schema = parse_qs(urlsplit(url).query)["schema"][0]
        with postgres.server().connected() as connection:
            statement = psycopg.sql.SQL("UPDATE {}.page SET data = '\\x00ff' WHERE path = {}")
            connection.execute(statement.format(psycopg.sql.Identifier(schema), path.encode()))
    else:
        server, _, prefix = url.partition("?prefix=")
        kind: Any = redis.RedisCluster if server == shared_cluster().url else redis.Redis
        with kind.from_url(server) as client:
            assert client.hset(f"{{{prefix}:{BASE}}}:pages", b"p" + hash_path(path), b"damaged") == 0, "it was there"


def test_a_repair_leaves_larger_blocks_as_they_are(url: str, store: Store) -> None:
    fill(store, 1850)
    spoil(url, store, "/p/7")
    assert len(store.pages(BASE)) == UNLEARNED + 1849
    assert page_counts(store) == [(0, 0, UNLEARNED), (1, 1, 999), (2, 1, 850)]
    assert paths(store, 1) == numbered(*range(7), *range(8, 1000))
    assert paths(store, 2) == numbered(*range(1000, 1850))
    assert len(paths(store, UNLEARNED_BLOCK)) == UNLEARNED
    store.merge(BASE, seen(7, 1850))
    assert page_counts(store)[1:] == [(1, 1, 999), (2, 1, 850), (3, 1, 2)]
    assert len(Worker(store, Clock()).listed()) == 1851
