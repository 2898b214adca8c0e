"""A store that goes back in time while workers run: a restored backup, a standby that lagged behind, an emptied database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sitemap_middleware import sitemap
from sitemap_middleware.stores import sql
from sitemap_middleware.stores.base import SCHEMA_VERSION

from ..support.sample_sites import Clock, Page, SampleSite

LOCAL = "http://testserver"
TABLES = [f"{table}_{SCHEMA_VERSION}" for table in sql.TABLES]


class SQLite:
    """A file; its copy is written back by SQLite itself, as a tool for backups does it."""

    def __init__(self, folder: Path) -> None:
        self._file, self._copy = folder / "pages.sqlite3", folder / "copy.sqlite3"
        self.url = f"sqlite:///{self._file}"

    def copy(self) -> None:
        self._backup(self._file, self._copy)

    def restore(self) -> None:
        self._backup(self._copy, self._file)

    def empty(self) -> None:
        with closing(sqlite3.connect(self._file, isolation_level=None)) as connection:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")

    @staticmethod
    def _backup(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copy:
            original.backup(copy)


@pytest.fixture
def engine(tmp_path: Path) -> SQLite:
    return SQLite(tmp_path)


@pytest.fixture
def worker(engine: SQLite) -> Iterator[Callable[[Clock], SampleSite]]:
    workers: list[SampleSite] = []

    def make(clock: Clock) -> SampleSite:
        pages = {"/": Page(), "/posts/{slug}": Page(), "/late": Page()}
        workers.append(
            SampleSite("wsgi", pages, learn="/posts/{slug}", max_age=0, store=engine.url, clock=clock, verify=False)
        )
        return workers[-1]

    yield make
    for sample in workers:
        sample.app.close()


@pytest.mark.parametrize("regained", [0, 1, 2, 3])
@pytest.mark.parametrize("loss", ["restore", "empty"])
def test_what_a_store_has_lost_is_forgotten_with_one_warning(
    engine: SQLite, worker: Callable[[Clock], SampleSite], loss: str, regained: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    site, other = worker(clock), worker(clock)
    site.visit("/", "/posts/one")
    engine.copy()
    for path in ("/posts/lost", "/late"):
        clock.pass_(10)
        site.visit(path)
    before = site.locs()
    assert f"{LOCAL}/posts/lost" in before
    getattr(engine, loss)()
    for number in range(regained):
        clock.pass_(10)
        other.visit(f"/posts/new-{number}")
    kept = ["/posts/one"] if loss == "restore" else []
    expected = {f"{LOCAL}{path}" for path in ("/", "/late", *kept, *(f"/posts/new-{n}" for n in range(regained)))}
    clock.pass_(10)
    assert site.locs() == before, "the first request of the worker that knew more finds out"
    for any_worker in (site, other, worker(clock)):
        assert set(any_worker.locs()) == expected
    lines = [record.getMessage() for record in caplog.records]
    assert [line.startswith("the sitemap's store has lost what it held") for line in lines] == [True]
    assert (site.app.stats()["store_losses"], other.app.stats()["store_losses"]) == (1, 0)


NOINDEX = Page(body=b"<!doctype html><title>page</title><meta name=robots content=noindex><p>A page.")


@pytest.mark.parametrize("seconds", [1, 120])
@pytest.mark.parametrize("loss", ["empty", "restore"])
def test_pages_are_listed_and_read_again_at_once_after_a_loss(engine: SQLite, loss: str, seconds: int) -> None:
    pages = {"/": Page(), "/about": Page(), "/gone": Page(404), "/posts/{slug}": Page(), "/drafts/{slug}": NOINDEX}
    site = SampleSite("wsgi", pages, learn=["/posts/{slug}", "/drafts/{slug}"], store=engine.url, verify=True)
    try:
        site.visit("/posts/old")
        assert f"{LOCAL}/posts/old" in site.locs(), "the middleware has asked for it itself"
        engine.copy()
        site.clock.pass_(10)
        everything = [f"{LOCAL}{path}" for path in ("/", "/about", "/posts/new", "/posts/old")]
        site.visit("/posts/old", "/posts/new", "/drafts/one")
        assert sorted(site.locs()) == everything
        site.clock.pass_(seconds)
        getattr(engine, loss)()
        assert sorted(site.locs()) == everything, "the first request finds out, and gets the last good sitemap"
        site.clock.pass_(1)
        site.visit("/posts/old", "/posts/new", "/drafts/one")
        assert sorted(site.locs()) == everything, "the robots meta tag was read again"
    finally:
        site.app.close()


def test_a_page_that_values_no_longer_give_is_no_loss(engine: SQLite, caplog: pytest.LogCaptureFixture) -> None:
    posts = [{"slug": "one"}, {"slug": "two"}]
    marks = {"/posts/{slug}": sitemap(values=lambda: posts)}
    site = SampleSite("wsgi", {"/": Page(), "/posts/{slug}": Page()}, marks=marks, max_age=0, store=engine.url)
    try:
        for given in (posts.copy(), posts[:1], posts.copy(), posts[1:]):
            posts[:] = given
            site.clock.pass_(60)
            site.visit("/posts/one", "/posts/two")
            assert sorted(site.locs()) == [f"{LOCAL}/", *(f"{LOCAL}/posts/{post['slug']}" for post in given)]
        assert caplog.records == []
    finally:
        site.app.close()
