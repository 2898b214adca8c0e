"""Keeps pages in each engine in the plainest way: a table or a hash of pages, to compare the stores with."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, get_args, get_type_hints

import psycopg
import redis as redis_py
import sqlalchemy
from sqlalchemy.dialects import postgresql as postgresql_dialect
from sqlalchemy.dialects import sqlite as sqlite_dialect

from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import Page, UnconfirmedAnswer
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import UNLIMITED, Store
from sitemap_middleware.stores.merge_batch_into_pages import BatchMerger
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import CHECKPOINT_PAGES
from sitemap_middleware.value_history import Run
from tests.support.postgres import Server
from tests.support.redis_servers import RedisServer

AT_ONCE: Final = 500
"""Values in one statement of SQLite."""

_THREE: Final = struct.Struct("<qqq")
_LISTS: Final[Mapping[str, type[Run | UnconfirmedAnswer]]] = {
    "last_modified_history": Run,
    "stated_date_history": Run,
    "content_history": Run,
    "unconfirmed_answers": UnconfirmedAnswer,
}
"""The fields that hold tuples of three numbers."""
_TYPES: Final = {name: kind for name, kind in get_type_hints(Page).items() if name not in _LISTS}
_SCALARS: Final = {str: sqlalchemy.Text, bool: sqlalchemy.Boolean, int: sqlalchemy.BigInteger}


class Rival(Protocol):
    """Keeps pages."""

    def known(self, paths: Sequence[str]) -> Mapping[str, Page]:
        """Those of these pages that it has."""

    def rows(self, pages: Iterable[Page]) -> Sequence[Any]:
        """Pages, ready to be written."""

    def write(self, rows: Sequence[Any]) -> None:
        """Write them, in one transaction, in place of what is there."""


def merge(rival: Rival, observations: Sequence[Observation]) -> None:
    """Merge observations into the pages that a rival keeps."""
    known = rival.known([seen.path for seen in observations])
    rival.write(rival.rows(BatchMerger({}, UNLIMITED).merge(known.get, observations)))


# A page as a row of a table, a column for each field


def _column(name: str) -> sqlalchemy.Column[Any]:
    if name in _LISTS:
        return sqlalchemy.Column(name, sqlalchemy.LargeBinary, nullable=False)
    kind, optional = _scalar(name)
    return sqlalchemy.Column(name, _SCALARS[kind], primary_key=name == "path", nullable=optional)


def _scalar(name: str) -> tuple[type[Any], bool]:
    """The type of a field that is no list, and whether it may be None."""
    found: Any = _TYPES[name]
    if found in _SCALARS:
        return found, False
    (kind,) = {*get_args(found)} - {type(None)}
    return kind, True


def _values(page: Page) -> tuple[Any, ...]:
    return tuple([_bytes(value) if isinstance(value, tuple) else value for value in page])


def _bytes(items: Iterable[Iterable[int]]) -> bytes:
    return b"".join([_THREE.pack(*item) for item in items])


def _items(name: str, data: bytes) -> tuple[Any, ...]:
    return tuple(map(_LISTS[name]._make, _THREE.iter_unpack(data)))


def _kept_as(row: Sequence[Any]) -> Page:
    pairs = zip(Page._fields, row, strict=True)
    return Page._make([_items(name, value) if name in _LISTS else value for name, value in pairs])


class SQLAlchemyCore:
    """A table in an SQLite file that is set as ours is."""

    def __init__(self, file: Path) -> None:
        self._engine = sqlalchemy.create_engine(f"sqlite:///{file}")
        self._table = table = sqlalchemy.Table("page", sqlalchemy.MetaData(), *map(_column, Page._fields))
        insert = sqlite_dialect.insert(table)
        changing = {name: insert.excluded[name] for name in Page._fields[1:]}
        self._upsert = insert.on_conflict_do_update(index_elements=[table.c.path], set_=changing)
        with self._engine.begin() as connection:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", f"wal_autocheckpoint = {CHECKPOINT_PAGES}"):
                connection.exec_driver_sql(f"PRAGMA {pragma}")
        table.metadata.create_all(self._engine)

    def known(self, paths: Sequence[str]) -> dict[str, Page]:
        query, path = sqlalchemy.select(self._table), self._table.c.path
        with self._engine.connect() as connection:
            return {
                row[0]: _kept_as(row)
                for start in range(0, len(paths), AT_ONCE)
                for row in connection.execute(query.where(path.in_(paths[start : start + AT_ONCE])))
            }

    def rows(self, pages: Iterable[Page]) -> list[dict[str, Any]]:
        return [dict(zip(Page._fields, _values(page), strict=True)) for page in pages]

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        with self._engine.begin() as connection:
            connection.execute(self._upsert, rows)

    def close(self) -> None:
        self._engine.dispose()


class PsycopgExecutemany:
    """A table in a PostgreSQL."""

    def __init__(self, connection: psycopg.Connection[Any], table: str) -> None:
        self._connection = connection
        self._table = table
        columns = sqlalchemy.Table(table, sqlalchemy.MetaData(), *map(_column, Page._fields))
        connection.execute(str(sqlalchemy.schema.CreateTable(columns).compile(dialect=postgresql_dialect.dialect())))

    def known(self, paths: Sequence[str]) -> dict[str, Page]:
        query = f"SELECT * FROM {self._table} WHERE path = ANY(%s)"
        return {row[0]: _kept_as(row) for row in self._connection.execute(query, (list(paths),), binary=True)}

    def rows(self, pages: Iterable[Page]) -> list[tuple[Any, ...]]:
        return list(map(_values, pages))

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        changing = ", ".join(f"{name} = excluded.{name}" for name in Page._fields[1:])
        query = (
            f"INSERT INTO {self._table} VALUES ({', '.join(['%s'] * len(Page._fields))})"
            f" ON CONFLICT (path) DO UPDATE SET {changing}"
        )
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(query, rows)


class HashAPage:
    """A hash of fields for each page in a Redis, pipelined."""

    def __init__(self, url: str) -> None:
        self._client = redis_py.Redis.from_url(url)

    def known(self, paths: Sequence[str]) -> dict[str, Page]:
        with self._client.pipeline() as pipeline:
            for path in paths:
                pipeline.hgetall(path)
            found = pipeline.execute()
        return {path: _page(path, fields) for path, fields in zip(paths, found, strict=True) if fields}

    def rows(self, pages: Iterable[Page]) -> list[tuple[str, dict[str, Any]]]:
        return [(page.path, dict(_fields(page))) for page in pages]

    def write(self, rows: Sequence[tuple[str, dict[str, Any]]]) -> None:
        with self._client.pipeline() as pipeline:
            for path, fields in rows:
                pipeline.hset(path, mapping=fields)
            pipeline.incr("version")
            pipeline.execute()

    def close(self) -> None:
        self._client.close()


def _fields(page: Page) -> Iterator[tuple[str, Any]]:
    for name, value in zip(page._fields[1:], page[1:], strict=True):
        if isinstance(value, tuple):
            yield name, _bytes(value)
        elif value is not None:
            yield name, int(value) if isinstance(value, bool) else value


def _page(path: str, fields: Mapping[bytes, bytes]) -> Page:
    values: list[Any] = [path]
    for name in Page._fields[1:]:
        value = fields.get(name.encode())
        if value is None or name in _LISTS:
            values.append(None if value is None else _items(name, value))
        else:
            kind, _ = _scalar(name)
            values.append(value.decode() if kind is str else kind(int(value)))
    return Page._make(values)


class Dict:
    """A dict of pages."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}

    def known(self, _: Sequence[str]) -> dict[str, Page]:
        return self._pages

    def rows(self, pages: Iterable[Page]) -> list[tuple[str, Page]]:
        return [(page.path, page) for page in pages]

    def write(self, rows: Sequence[tuple[str, Page]]) -> None:
        self._pages.update(rows)


Trio = tuple[Store, Rival, Rival]
"""A store, and its rival twice, each in a place of its own."""


@contextmanager
def sqlite() -> Iterator[Trio]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = open_store(f"sqlite:///{folder}/ours.sqlite3", "store")
        pair = [SQLAlchemyCore(folder / f"{number}.sqlite3") for number in range(2)]
        yield store, *pair
        for engine in (store, *pair):
            engine.close()


@contextmanager
def postgresql() -> Iterator[Trio]:
    """The server syncs each commit to its disk."""
    server = Server("-c shared_buffers=256MB")
    try:
        store = open_store(server.url(), "store")
        with server.connected() as connection:
            yield store, *(PsycopgExecutemany(connection, f"theirs_{number}") for number in range(2))
        store.close()
    finally:
        server.remove()


@contextmanager
def redis() -> Iterator[Trio]:
    servers = [RedisServer() for _ in range(3)]
    try:
        store = open_store(servers[0].url, "store")
        pair = [HashAPage(server.url) for server in servers[1:]]
        yield store, *pair
        for engine in (store, *pair):
            engine.close()
    finally:
        for server in servers:
            server.remove()


@contextmanager
def memory() -> Iterator[Trio]:
    yield MemoryStore(), Dict(), Dict()
