"""The store contract in SQL. An engine adds how to connect, and what is special about its dialect: see `SqlStore`.

| table | contents |
|---|---|
| `site` | the `SiteState` of each site |
| `page` | the pages of all sites, each with its part |
| `record` | what `save` keeps |
| `lease` | who may do a job, and until when |

The names end with the schema version. `number_of` says by which numbers sites, records and leases are found.
"""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import starmap
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeVar

from ..exceptions import StoreError
from ..models import Page, PageLimits, StoreKey
from ..options.store_urls import hide_passwords
from ..util import ForkSafeLock, in_pieces, reset_after_fork
from .base import (
    MAX_LEASE_SECONDS,
    NO_STATE,
    PIECE_PAGES,
    SCHEMA_VERSION,
    UNLIMITED,
    Owner,
    PartState,
    SiteState,
    decode_page,
    decode_state,
    encode_page,
    number_of,
    plan_write,
)

Result = TypeVar("Result")
Cursor = Any
"""A cursor as PEP 249 describes it."""

TABLES: Final = {
    "site": "id BIGINT PRIMARY KEY, state {text} NOT NULL",
    "page": "site BIGINT NOT NULL, path {path} NOT NULL, part INTEGER NOT NULL, data {text} NOT NULL,"
    " PRIMARY KEY (site, path)",
    "record": "id BIGINT PRIMARY KEY, value {bytes} NOT NULL",
    "lease": "id BIGINT PRIMARY KEY, holder {text} NOT NULL, ends_at BIGINT NOT NULL",
}

VALUES_PER_QUERY: Final = 500
"""The most values in one `IN (...)`."""

WAIT_SECONDS: Final = 5.0
"""How long a call waits for another one of this process."""

RETRY_SECONDS: Final = 1.0
"""A call that failed sooner is repeated on a new connection: the server may have closed the one that was open."""

_parent_connections: Final[list[Any]] = []
"""Connections opened before a fork. Kept, so that the child neither uses nor closes what is its parent's."""


class SqlStore(ABC):
    """A store in the tables of a database, by one connection for each process. It is opened by the first call.

    In the queries here `?` stands for a value, `(?*)` for a list of them, and `@` precedes the name of a table.
    """

    name: str
    """How messages name the store."""
    url: str = ""
    """Its URL, whose passwords a driver may quote in its messages."""

    placeholder: ClassVar[str] = "?"
    types: ClassVar[Mapping[str, str]] = {"text": "TEXT", "path": "TEXT", "bytes": "BLOB"}
    """The types of texts of any length, of paths, and of bytes. All texts are ASCII."""
    clock: ClassVar[str]
    """The expression for the time in POSIX seconds."""
    begin: ClassVar[str] = "BEGIN"
    """The statement that begins a transaction that writes."""
    table_prefix: str = ""
    """What precedes the names of tables, such as a schema."""

    def __init__(self) -> None:
        self._open: list[Any] = []
        """The connection, if it is open."""
        # Not in __del__: garbage collection may finalize the connection first, and drivers then warn about it.
        weakref.finalize(self, _close_all, self._open).atexit = False
        self._lock = ForkSafeLock()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Drop the parent's connection without closing it."""
        _parent_connections.extend(self._open)
        self._open.clear()

    @abstractmethod
    def connect(self) -> Any:
        """Open a connection that commits each statement, unless a transaction was begun, and create the tables. Every
        call of it takes a few seconds at most. It raises `StoreError`, or an error of the driver.
        """

    def upsert(self, table: str, columns: Sequence[str], keys: int, *, replace: bool = True) -> str:
        """The statement that inserts a row. If there is one of the same keys, which are the first of the columns, it
        replaces that, or does nothing.
        """
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns[keys:])
        action = f"UPDATE SET {changes}" if replace else "NOTHING"
        return f"{insert(table, columns)} ON CONFLICT ({', '.join(columns[:keys])}) DO {action}"

    def create_statements(self) -> list[str]:
        """The statements that create the tables that do not exist, and an index."""
        statements = [
            f"CREATE TABLE IF NOT EXISTS @{table} ({columns.format_map(self.types)})"
            for table, columns in TABLES.items()
        ]
        statements.append(f"CREATE INDEX IF NOT EXISTS page_part_{SCHEMA_VERSION} ON @page (site, part)")
        return list(map(self.query, statements))

    def query(self, text: str, values: int = 0) -> str:
        """A query in this dialect, with so many values in its list."""
        for table in TABLES:
            text = text.replace(f"@{table}", f"{self.table_prefix}{table}_{SCHEMA_VERSION}")
        return text.replace("?*", ", ".join("?" * values)).replace("?", self.placeholder)

    # The contract

    def version(self, site: StoreKey) -> int:
        return self._run(lambda cursor: self._state(cursor, site)[1].version)

    def find(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        rows = self._run(lambda cursor: self._rows(cursor, site, paths))
        return {path: page for path, _, data in rows if (page := decode_page(path, data)) is not None}

    def write(
        self, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits = UNLIMITED
    ) -> set[str] | None:
        return self._run(lambda cursor: self._write(cursor, site, version, pages, limits), write=True)

    def parts(self, site: StoreKey) -> dict[int, PartState]:
        return dict(self._run(lambda cursor: self._state(cursor, site)[1].parts))

    def part(self, site: StoreKey, number: int) -> list[Page]:
        query = "SELECT path, data FROM @page WHERE site = ? AND part = ?"
        rows = self._run(lambda cursor: self._select(cursor, query, number_of(site), number))
        pages = in_pieces(starmap(decode_page, rows), PIECE_PAGES)
        return sorted(filter(None, pages), key=attrgetter("path"))  # a database may order texts by a language

    def load(self, owner: Owner, names: Collection[str]) -> dict[str, bytes]:
        by_number = {number_of(owner, name): name for name in names}
        query = "SELECT id, value FROM @record WHERE id IN (?*)"
        rows = self._run(lambda cursor: self._select_each(cursor, query, [], by_number))
        return {by_number[number]: value for number, value in rows if isinstance(value, bytes)}

    def save(self, owner: Owner, records: Mapping[str, bytes | None]) -> None:
        # Sorted: else two processes could wait for each other.
        ordered = sorted((number_of(owner, name), value) for name, value in records.items())
        deleted = [(number,) for number, value in ordered if value is None]
        saved = [item for item in ordered if item[1] is not None]

        def write(cursor: Cursor) -> None:
            self._execute_each(cursor, "DELETE FROM @record WHERE id = ?", deleted)
            self._execute_each(cursor, self.upsert("record", ("id", "value"), 1), saved)

        self._run(write, write=True)

    def lease(self, owner: Owner, name: str, holder: str, seconds: int) -> bool:
        number = number_of(owner, name)
        take = "UPDATE @lease SET holder = ?, ends_at = ? WHERE id = ? AND (holder = ? OR ends_at <= ? OR ends_at > ?)"
        add = self.upsert("lease", ("id", "holder", "ends_at"), 1, replace=False)

        def write(cursor: Cursor) -> bool:
            now = int(self._now(cursor))
            cursor.execute(self.query(take), (holder, now + seconds, number, holder, now, now + MAX_LEASE_SECONDS))
            if cursor.rowcount != 1:
                cursor.execute(self.query(add), (number, holder, now + seconds))
            return bool(cursor.rowcount == 1)

        return self._run(write, write=True)

    def read_clock(self) -> float:
        """The time of the database's clock, in POSIX seconds: the method `now` of engines that run on a server."""
        return self._run(self._now)

    def sites(self) -> list[str]:
        """The keys of all sites, sorted."""
        rows = self._run(lambda cursor: self._select(cursor, "SELECT state FROM @site"))
        return sorted(filter(None, (decode_state(state)[0] for (state,) in rows)))

    def close(self) -> None:
        with suppress(TimeoutError), self._turn():
            _close_all(self._open)

    # Inside

    def _run(self, work: Callable[[Cursor], Result], *, write: bool = False) -> Result:
        """The result of a function that reads, or in a transaction writes. Raises `StoreError` for whatever fails."""
        try:
            with self._turn():
                began = time.monotonic()
                try:
                    return self._run_once(work, write=write)
                except Exception as error:
                    if isinstance(error, StoreError) or time.monotonic() - began > RETRY_SECONDS:
                        raise
                return self._run_once(work, write=write)
        except StoreError:
            raise
        except Exception as error:  # damaged data can raise anything
            message = hide_passwords(" ".join(str(error).split()), self.url)
            raise StoreError(f"the store {self.name} does not work now: {message}") from None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._lock.acquire(WAIT_SECONDS):
            raise TimeoutError(f"another call has not ended for {WAIT_SECONDS:g} seconds")
        try:
            yield
        finally:
            self._lock.release()

    def _run_once(self, work: Callable[[Cursor], Result], *, write: bool) -> Result:
        try:
            with closing(self._connection().cursor()) as cursor:
                if not write:
                    return work(cursor)
                cursor.execute(self.begin)
                result = work(cursor)
                cursor.execute("COMMIT")
                return result
        except BaseException:
            self._end_transaction()
            raise

    def _connection(self) -> Any:
        if not self._open:
            self._open.append(self.connect())
        return self._open[0]

    def _end_transaction(self) -> None:
        """End that of a call that failed. The connection may be of no use."""
        _close_all(self._open)

    def _write(
        self, cursor: Cursor, key: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits
    ) -> set[str] | None:
        site, (text, state) = number_of(key), self._state(cursor, key)
        if text is not None and state is NO_STATE:  # what cannot be decoded is absent
            cursor.execute(self.query("DELETE FROM @site WHERE id = ?"), (site,))
            text = None
        if state.version != version:
            return None
        rows = self._rows(cursor, key, pages) if state.parts else []
        placed = {path: (part, page.route if (page := decode_page(path, data)) else "") for path, part, data in rows}
        plan = plan_write(state, pages, placed, limits)
        if not plan.saved and not plan.removed:
            return plan.refused
        if not self._replace_state(cursor, site, text, plan.state.encode(key)):
            return None
        if not state.parts:  # of a state that could not be read
            cursor.execute(self.query("DELETE FROM @page WHERE site = ?"), (site,))
        deleted = [(site, path) for path in plan.removed if path not in plan.saved]
        self._execute_each(cursor, "DELETE FROM @page WHERE site = ? AND path = ?", deleted)
        saved = [
            (site, path, part, encode_page(page))
            for path, part in plan.saved.items()
            if (page := pages[path]) is not None
        ]
        self._execute_each(cursor, self.upsert("page", ("site", "path", "part", "data"), 2), saved)
        return plan.refused

    def _now(self, cursor: Cursor) -> float:
        ((now,),) = self._select(cursor, f"SELECT {self.clock}")
        return float(now)

    def _state(self, cursor: Cursor, site: StoreKey) -> tuple[str | None, SiteState]:
        """The state of a site, as it is stored and decoded."""
        rows = self._select(cursor, "SELECT state FROM @site WHERE id = ?", number_of(site))
        return (rows[0][0], decode_state(rows[0][0])[1]) if rows else (None, NO_STATE)

    def _replace_state(self, cursor: Cursor, site: int, old: str | None, new: str) -> bool:
        """Replace the stored state of a site if it is still the old one; return whether it was."""
        if old is None:
            cursor.execute(self.query(self.upsert("site", ("id", "state"), 1, replace=False)), (site, new))
        else:
            cursor.execute(self.query("UPDATE @site SET state = ? WHERE id = ? AND state = ?"), (new, site, old))
        return bool(cursor.rowcount == 1)

    def _rows(self, cursor: Cursor, site: StoreKey, paths: Collection[str]) -> list[Any]:
        query = "SELECT path, part, data FROM @page WHERE site = ? AND path IN (?*)"
        return self._select_each(cursor, query, [number_of(site)], paths)

    def _select(self, cursor: Cursor, query: str, *values: object) -> list[Any]:
        cursor.execute(self.query(query), values)
        return list(cursor.fetchall())

    def _select_each(self, cursor: Cursor, query: str, first: list[int], values: Collection[Any]) -> list[Any]:
        """The rows of a query whose last values are a list."""
        rows: list[Any] = []
        ordered = list(values)
        for start in range(0, len(ordered), VALUES_PER_QUERY):
            batch = ordered[start : start + VALUES_PER_QUERY]
            cursor.execute(self.query(query, len(batch)), [*first, *batch])
            rows += cursor.fetchall()
        return rows

    def _execute_each(self, cursor: Cursor, query: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            cursor.executemany(self.query(query), rows)


def insert(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row."""
    return f"INSERT INTO @{table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 (constants)


def _close_all(connections: list[Any]) -> None:
    while connections:
        with suppress(Exception):
            connections.pop().close()
