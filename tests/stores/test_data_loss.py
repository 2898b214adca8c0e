"""What a store held is lost: no response is another, and the sitemap comes true again."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from sitemap_middleware.stores.breaker import MAX_BACKOFF_SECONDS

from ..support.engines import Engine, PostgreSQL, Redis, SQLite
from ..support.failing_store import LISTED, pages_unchanged, site_of, warnings_of
from ..support.sample_sites import SampleSite


def halved(engine: SQLite) -> None:
    """The file is cut, once all that is in the log beside it is in the file."""
    with closing(sqlite3.connect(engine.file)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(engine.file, engine.file.stat().st_size // 2)


def deleted(engine: SQLite) -> None:
    for ending in ("", "-wal", "-shm"):
        engine.file.with_name(f"{engine.file.name}{ending}").unlink()


GONE = "was deleted or replaced; what it held will be learned again"
LOST = "has lost what it held of http://testserver: "
CUT = [["store unavailable since ", r"is corrupt.*; it was moved to ", "store available again", LOST]]


class Loss(NamedTuple):
    what: str
    of: type[Engine]
    lose: Callable[[Any], object]
    says: list[list[str]]
    """What the log may say of it, a regular expression a line."""


LOSSES = (
    Loss("SQLite was deleted", SQLite, deleted, [[GONE, LOST]]),
    Loss("SQLite was cut to a half", SQLite, halved, CUT),
    Loss("Redis was emptied", Redis, lambda it: it.say("FLUSHALL"), [[LOST]]),
    Loss("PostgreSQL was emptied", PostgreSQL, lambda it: it.say(f"DROP SCHEMA {it.schema} CASCADE"), [[LOST]]),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("loss", [pytest.param(loss, id=loss.what) for loss in LOSSES])
def test_lost_data_is_learned_again_without_losing_a_response(
    loss: Loss, protocol: str, start_engine: Callable[[type[Engine]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    engine = start_engine(loss.of)
    with site_of(engine, protocol) as site:
        assert pages_unchanged(site)
        assert sorted(site.locs()) == LISTED
        loss.lose(engine)
        check_that_all_is_listed_again(site, after=3)
        lines = warnings_of(caplog)
        assert any(are_said(says, lines) for says in loss.says), lines


def check_that_all_is_listed_again(site: SampleSite, *, after: int) -> None:
    """Check that no response is lost meanwhile, and that all pages are listed after so many requests for the sitemap."""
    for _ in range(after):
        site.clock.pass_(MAX_BACKOFF_SECONDS)
        assert site.request("/sitemap.xml").status == 200
        assert pages_unchanged(site)
    site.clock.pass_(MAX_BACKOFF_SECONDS)
    assert sorted(site.locs()) == LISTED


def are_said(says: list[str], lines: list[str]) -> bool:
    return len(says) == len(lines) and all(any(re.search(say, line) for line in lines) for say in says)
