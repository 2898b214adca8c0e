"""Workers that share a store tell IndexNow of each change once, on every engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sitemap_middleware.stores import Store

from ..support.engines import PostgreSQL, Redis, SQLite
from ..support.indexnow import told
from ..support.sample_sites import Clock


@pytest.mark.parametrize("of", [PostgreSQL, Redis, SQLite])
def test_each_change_is_told_once_by_one_of_several_workers(
    of: type[Any], start_engine: Callable[[type[Any]], Any]
) -> None:
    engine = start_engine(of)

    def store() -> Store:
        made: Store = engine.store()
        return made

    with told(store=store(), clock=Clock()) as site:
        workers = [site, *(site.worker(store=store()) for _ in range(3))]
        for step in range(4):
            for worker in workers:
                worker.items = {**worker.items, f"n{step}": None}
            site.clock.pass_(300)
            threads = [threading.Thread(target=worker.app.flush) for worker in workers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for worker in workers[::-1]:
            worker.items = workers[0].items
            worker.step()
        assert site.engine.paths() == {f"/items/n{step}": 1 for step in range(4)}
        site.engine.check()
