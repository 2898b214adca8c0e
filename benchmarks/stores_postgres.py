"""What folding into PostgreSQL costs, beside psycopg's own executemany of the rows that come of it.

Batches of a thousand observations are folded: judged, counted against the caps,
given their places, written, with the site's version and the blocks that changed.
The other side is handed rows that are ready, and writes them into a table of the
same columns and indexes by INSERT ... ON CONFLICT DO UPDATE. What our own way of
writing takes for these rows, with nothing judged, is told beside. All take turns
on one server, on the same machine, which syncs each commit to its disk; seconds
are the clock's, for the server's work counts too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg

from sitemap_middleware.model import Caps, Observation, Reading
from sitemap_middleware.stores.postgres import (
    _COPIED,
    _COPY,
    _COPY_BEGINS,
    _COPY_ENDS,
    _UPDATE,
    PostgresStore,
    _columns,
    _Session,
)
from tests.support.postgres import Server

from .pairs import Rounds
from .tables import Table

SITE = "https://example.com"
BATCH, BATCHES = 1000, 40
CAPS = Caps(10**7, 10**7)
_INSERT = (
    "INSERT INTO theirs (id, mark, last_seen, route, promising, path, facts) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (id) DO UPDATE SET route = excluded.route, last_seen = excluded.last_seen,"
    " promising = excluded.promising, facts = excluded.facts"
)


def run() -> Iterator[Table]:
    table = Table("PostgreSQL, batches of 1,000", ["", "pages a second", "times executemany", "from", "to"])
    measured, size = measure()
    for kind in ("new", "changed"):
        for name in (f"{kind} pages folded", f"{kind} pages written", f"{kind} pages, executemany"):
            ratio = measured.ratio(f"{kind} pages, executemany", name)
            table.add(name, BATCH / measured.of(name).middle, ratio.middle, ratio.low, ratio.high)
    table.notes.append(f"On disk, a page of {len(_path(0))} bytes of path takes {size:.0f} bytes, with its indexes.")
    yield table


def measure() -> tuple[Rounds, float]:
    """The seconds of each batch, written both ways, and the bytes that a page takes on disk once all are written."""
    server = Server("-c shared_buffers=256MB")
    try:
        with server.connected() as connection:
            return _measured(PostgresStore(server.url()), connection)
    finally:
        server.remove()


def _measured(store: PostgresStore, connection: psycopg.Connection[Any]) -> tuple[Rounds, float]:
    store.fold(SITE, [_seen(BATCH * BATCHES, 0)], CAPS)
    bare = PostgresStore(f"{store._url}_bare")
    bare.pages(SITE)
    connection.execute("CREATE TABLE theirs (LIKE sitemap.page INCLUDING ALL)")
    seconds: dict[str, list[float]] = {}
    size: tuple[int] | None = None
    for kind, at, more, write in (("new", 1_700_000_000, 0, _copied), ("changed", 1_700_100_000, 1, _updated)):
        for number in range(BATCHES):
            paths = range(number * BATCH, (number + 1) * BATCH)
            seen = [_seen(one, at, digest=one + more) for one in paths]
            _timed(seconds, f"{kind} pages folded", lambda seen=seen: store.fold(SITE, seen, CAPS))
            rows = _written(connection, [one.path for one in seen])
            others: list[tuple[str, Callable[[], object]]] = [
                ("pages written", lambda rows=rows, write=write: bare._write(lambda session: write(session, rows))),
                ("pages, executemany", lambda rows=rows: _executed(connection, rows)),
            ]
            for name, work in others if number % 2 else reversed(others):
                _timed(seconds, f"{kind} {name}", work)
        size = size or connection.execute("SELECT pg_total_relation_size('sitemap.page')").fetchone()
    bare.close()
    store.close()
    assert size
    return Rounds(seconds), size[0] / (BATCH * BATCHES)


def _copied(session: _Session, rows: Sequence[Any]) -> None:
    parts = [_COPY_BEGINS]
    for row, mark, last_seen, route, promising, path, facts in rows:
        parts += (
            _COPIED.pack(7, 8, row, 8, mark, 8, last_seen, 4, route, 1, promising, len(path)),
            path,
            len(facts).to_bytes(4, "big"),
            facts,
        )
    session.copy(_COPY, b"".join((*parts, _COPY_ENDS)))


def _updated(session: _Session, rows: Sequence[Any]) -> None:
    session(_UPDATE, _columns([(row[0], row[3], row[2], row[4], row[6]) for row in rows]))


def _timed(seconds: dict[str, list[float]], name: str, work: Callable[[], object]) -> None:
    begun = time.perf_counter()
    work()
    seconds.setdefault(name, []).append(time.perf_counter() - begun)


def _executed(connection: psycopg.Connection[Any], rows: Sequence[Any]) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(_INSERT, rows)


def _written(connection: psycopg.Connection[Any], paths: list[str]) -> list[Any]:
    query = "SELECT id, mark, last_seen, route, promising, path, facts FROM sitemap.page WHERE path = ANY(%s)"
    return connection.execute(query, ([path.encode() for path in paths],), binary=True).fetchall()


def _path(number: int) -> str:
    return f"/articles/{number:07}-how-it-came-about"


def _seen(number: int, at: int, digest: int = 0) -> Observation:
    reading = Reading(digest + 1)
    return Observation(_path(number), "/articles/<slug>", at, 200, "text/html", reading=reading, learned=True)
