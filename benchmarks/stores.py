"""Pages learned a second, and the sitemap from a store's rows, for each engine.

Visits go through the middleware, so that parsing and merging count, as they do in use; "written" is the engine alone.
PostgreSQL and Redis run on this machine. Seconds are wall time, because a server's work counts too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sitemap_middleware.models import StoreKey
from sitemap_middleware.observe.ingest import WRITE_OBSERVATIONS
from sitemap_middleware.stores import Store

from .site import LearnedSite
from .tables import Table

SHORT = {"pages": 100}


def run(pages: int = 20_000) -> Iterator[Table]:
    table = Table(
        f"{pages:,} learned pages: pages a second",
        ["", "new", "seen again", "edited", "written", "sitemap, s", "after one edit, s"],
    )
    for url in (_memory, _sqlite, _postgresql, _redis):
        with url() as store:
            site = LearnedSite(store, pages)
            rates = [pages / _seconds(lambda: site.visit(range(pages)))]  # noqa: B023 # called at once
            site.now += 86_400
            rates.append(pages / _seconds(lambda: site.visit(range(pages))))  # noqa: B023 # likewise
            site.now += 86_400
            for number in range(pages):
                site.edit(number)
            rates.append(pages / _seconds(lambda: site.visit(range(pages))))  # noqa: B023 # likewise
            rates.append(pages / _seconds(partial(_copy, site.middleware.service.store)))
            whole = _seconds(site.read)
            site.edit(0)
            site.visit([0])
            site.now += 2  # what others have stored is looked for once a second
            table.add(url.__name__.removeprefix("_"), *rates, whole, _seconds(site.read))
            site.middleware.close()
    yield table


def _copy(store: Store) -> None:
    """Write the pages of the site as those of another, as many at a time as the middleware does."""
    [site] = store.sites()  # type: ignore[attr-defined] # of all engines here
    found = {page.path: page for number in store.parts(site) for page in store.part(site, number)}
    paths, copy = list(found), StoreKey(f"{site}/copy")
    for start in range(0, len(paths), WRITE_OBSERVATIONS):
        store.write(
            copy, store.version(copy), {path: found[path] for path in paths[start : start + WRITE_OBSERVATIONS]}
        )


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


@contextmanager
def _memory() -> Iterator[str]:
    yield "memory://"


@contextmanager
def _sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{Path(folder, 'sitemap.sqlite3')}"


@contextmanager
def _postgresql() -> Iterator[str]:
    """A server that syncs each commit to its disk."""
    from tests.support.postgres import Server

    server = Server()
    try:
        yield server.url()
    finally:
        server.remove()


@contextmanager
def _redis() -> Iterator[str]:
    from tests.support.redis_servers import RedisServer

    server = RedisServer()
    try:
        yield server.url
    finally:
        server.remove()
