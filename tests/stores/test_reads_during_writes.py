"""What a store reads is its state at one moment, whatever another process writes between two statements of the call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import StoreKey
from sitemap_middleware.stores.postgres.pages import SitePages
from sitemap_middleware.stores.postgres.store import PostgresStore
from sitemap_middleware.stores.sqlite.readonly import ReadOnlySQLiteStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ..support import postgres

SITE = StoreKey("https://example.com")
OTHER = StoreKey("https://other.example")

READS: dict[str, Callable[[Any], Any]] = {
    "block": lambda store: [*store.block(SITE, 1)],
    "pages": lambda store: store.pages(SITE),
    "find_pages": lambda store: store.find_pages(SITE, ["/posts/1", "/users/1"]),
    "sample": lambda store: [*store.sample(SITE, 10)],
    "blocks": lambda store: store.blocks(SITE),
}

RENUMBER = """
    BEGIN IMMEDIATE;
    UPDATE route SET path = 'x' WHERE id = 1;
    UPDATE route SET path = '/posts/<n>' WHERE id = 2;
    UPDATE route SET path = '/users/<n>' WHERE id = 1;
    UPDATE page SET route = 3 - route WHERE route IN (1, 2);
    UPDATE site SET id = 9 WHERE id = 1;
    UPDATE site SET id = 1 WHERE id = 2;
    UPDATE site SET id = 2 WHERE id = 9;
    UPDATE block SET site = 9 WHERE site = 1;
    UPDATE block SET site = 1 WHERE site = 2;
    UPDATE block SET site = 2 WHERE site = 9;
    DELETE FROM page WHERE path NOT LIKE '/_____/1';
    COMMIT;
"""
"""The numbers of two routes and of two sites change, as after a repair, and pages are forgotten, all at once."""


def observations(count: int) -> list[Observation]:
    return [
        Observation(f"/{name}/{number}", f"/{name}/<n>", 1000, 200, "text/html", learned=True)
        for number in range(1, count + 1)
        for name in ("posts", "users")
    ]


def read_during_write(file: Path, reader: Any, read: Callable[[Any], Any], number: int) -> tuple[Any, int]:
    """What is read if a process writes before the statement of this number, and how many statements there are."""
    statements: list[str] = []

    def trace(statement: str) -> None:
        statements.append(statement)
        if len(statements) == number:
            with closing(sqlite3.connect(file)) as other:
                other.executescript(RENUMBER)

    connection = reader.connect()
    connection.set_trace_callback(trace)
    found = read(reader)
    connection.set_trace_callback(None)
    return found, len(statements)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("kind", [SQLiteStore, ReadOnlySQLiteStore])
def test_a_read_of_a_file_returns_what_was_there_before_a_write_or_after_it(
    kind: Callable[[Path], Any], read: Callable[[Any], Any], tmp_path: Path
) -> None:
    number = count = 1
    while number <= count:
        file = tmp_path / f"{number}.sqlite3"
        with closing(SQLiteStore(file)) as writer, closing(kind(file)) as reader:
            writer.merge(SITE, observations(3))
            writer.merge(OTHER, observations(1))
            before = read(reader)
            found, count = read_during_write(file, reader, read, number)
            assert found in (before, read(reader)), f"before statement {number}"
        number += 1


def test_a_write_between_two_statements_of_a_read_in_postgresql_is_not_seen() -> None:
    url = postgres.server().fresh()
    with closing(PostgresStore(url)) as reader, closing(PostgresStore(url)) as writer:
        writer.merge(SITE, observations(1))

        def block(session: Any) -> list[str]:
            pages = SitePages(session, SITE)
            writer.merge(SITE, observations(2))
            return [page.path for page in pages.block(1)]

        assert reader.read(block) == ["/posts/1", "/users/1"]
        assert len(reader.block(SITE, 1)) == 4
