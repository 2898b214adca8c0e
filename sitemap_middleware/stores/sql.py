"""The store contract in SQL. An engine adds a dialect and transactions: see `SqlStore`.

| table | contents |
|---|---|
| `site` | the version of each site |
| `page` | its pages, each with its part, and what `forget` needs; `data`: see `page_rows` |
| `part` | of each part, how many pages it has and the version when one of them last changed |
| `route` | how many learned pages each route has |
| `record` | what `save` keeps |
| `lease` | who may do a job, and until when |

The names end with the schema version. Sites and owners are numbered by a hash of their key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, ClassVar, Final, Protocol, TypeVar
from urllib.parse import quote, unquote

from ..evidence.page_verdict import is_listable
from ..models import Page, PageLimits, StoreKey
from ..util import in_pieces
from .base import (
    MAX_LEASE_SECONDS,
    PIECE_PAGES,
    SCHEMA_VERSION,
    UNLIMITED,
    Owner,
    PartState,
    Placed,
    batches,
    next_version,
    plan_write,
    routes_of,
)
from .page_rows import decode_page, encode_page

Result = TypeVar("Result")

VALUES_PER_QUERY: Final = 500
"""The most values in one `IN (...)`."""

FORGET_BATCH: Final = 2000
"""Pages that one transaction deletes."""

_SAFE: Final = "".join(character for character in map(chr, range(32, 127)) if character != "%")
"""The characters of names that are stored as they are."""

_PAGE_COLUMNS: Final = ("part", "route", "last_seen", "listable", "data")


class DamagedError(Exception):
    """A column holds what was never written to it."""


class Cursor(Protocol):
    """The part of a cursor (PEP 249) that is needed."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""

    def execute(self, query: str, values: Sequence[object], /) -> object:
        """Execute one statement."""

    def executemany(self, query: str, rows: Sequence[Sequence[object]], /) -> object:
        """Execute a statement for each row."""

    def fetchall(self) -> list[Any]:
        """The rows of the result."""


class SqlStore(ABC):
    """A store in the tables of a database.

    A subclass says how its dialect differs, and runs transactions. In the queries here `?` stands for a value, `(?*)`
    for a list of them, and `@` precedes the name of a table.
    """

    name: str
    """How messages name the store."""

    placeholder: ClassVar[str] = "?"
    types: ClassVar[Mapping[str, str]] = {"text": "TEXT", "name": "TEXT", "bytes": "BLOB"}
    """The types of texts of any length, of texts that are part of a key, and of bytes."""
    clock: ClassVar[str]
    """The expression for the time in whole POSIX seconds."""
    table_prefix: str = ""
    """What precedes the names of tables, such as a schema."""

    @abstractmethod
    def _run(self, work: Callable[[Cursor], Result], *, write: bool) -> Result:
        """The result of a function that reads or, in a transaction, writes. It may be called again.

        Raises `StoreError` for whatever the function raises.
        """

    def upsert(self, table: str, keys: Sequence[str], columns: Sequence[str], *, replace: bool = True) -> str:
        """The statement that inserts a row; if there is one of these keys, it replaces the columns, or does nothing."""
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
        action = f"UPDATE SET {changes}" if replace else "NOTHING"
        return f"{insert(table, (*keys, *columns))} ON CONFLICT ({', '.join(keys)}) DO {action}"

    def create_statements(self) -> list[str]:
        """The statements that create the tables that do not exist."""
        tables = {
            "site": ("id BIGINT PRIMARY KEY, name {name} NOT NULL, version BIGINT NOT NULL"),
            "page": (
                "site BIGINT NOT NULL, path {name} NOT NULL, part INTEGER NOT NULL, route {text} NOT NULL,"
                " last_seen BIGINT NOT NULL, listable INTEGER NOT NULL, data {text} NOT NULL, PRIMARY KEY (site, path)"
            ),
            "part": (
                "site BIGINT NOT NULL, number INTEGER NOT NULL, version BIGINT NOT NULL, pages INTEGER NOT NULL,"
                " PRIMARY KEY (site, number)"
            ),
            "route": ("site BIGINT NOT NULL, route {name} NOT NULL, pages INTEGER NOT NULL, PRIMARY KEY (site, route)"),
            "record": (
                "owner BIGINT NOT NULL, name {name} NOT NULL, value {bytes} NOT NULL, PRIMARY KEY (owner, name)"
            ),
            "lease": (
                "owner BIGINT NOT NULL, name {name} NOT NULL, holder {text} NOT NULL, ends_at BIGINT NOT NULL,"
                " PRIMARY KEY (owner, name)"
            ),
        }
        statements = [
            f"CREATE TABLE IF NOT EXISTS @{table} ({columns.format_map(self.types)})"
            for table, columns in tables.items()
        ]
        index = f"page_part_{SCHEMA_VERSION}"
        statements.append(f"CREATE INDEX IF NOT EXISTS {index} ON @page (site, part, last_seen, listable)")
        return list(map(self.query, statements))

    def query(self, text: str, values: int = 0) -> str:
        """A query in this dialect, with so many values in its list."""
        for table in ("site", "page", "part", "route", "record", "lease"):
            text = text.replace(f"@{table}", f"{self.table_prefix}{table}_{SCHEMA_VERSION}")
        return text.replace("?*", ", ".join("?" * values)).replace("?", self.placeholder)

    # The contract

    def version(self, site: StoreKey) -> int:
        return self._run(lambda cursor: self._version(cursor, number_of(site)), write=False)

    def find(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        query = "SELECT path, data FROM @page WHERE site = ? AND path IN (?*)"
        rows = self._run(lambda cursor: self._select_each(cursor, query, number_of(site), paths), write=False)
        return {path: page for path, data in rows if (page := decode_page(path, data)) is not None}

    def write(
        self, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits = UNLIMITED
    ) -> set[str] | None:
        return self._run(lambda cursor: self._write(cursor, site, version, pages, limits), write=True)

    def parts(self, site: StoreKey) -> dict[int, PartState]:
        query = "SELECT number, version, pages FROM @part WHERE site = ?"

        def read(cursor: Cursor) -> dict[int, PartState]:
            rows = map(_integers, self._select(cursor, query, number_of(site)))
            return {number: PartState(version, pages) for number, version, pages in rows}

        return self._run(read, write=False)

    def part(self, site: StoreKey, number: int) -> list[Page]:
        query = "SELECT path, data FROM @page WHERE site = ? AND part = ?"
        rows = self._run(lambda cursor: self._select(cursor, query, number_of(site), number), write=False)
        pages = [page for path, data in in_pieces(rows, PIECE_PAGES) if (page := decode_page(path, data)) is not None]
        return sorted(pages, key=attrgetter("path"))  # a database may order texts by a language

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        query = (
            "SELECT path FROM @page WHERE site = ? AND part > 0"
            " AND (last_seen < ? OR (last_seen < ? AND listable = 0)) LIMIT ?"
        )
        values = number_of(site), unseen_since, unlisted_since, FORGET_BATCH
        forgotten, last = 0, None
        while True:
            version = self.version(site)
            rows = self._run(lambda cursor: self._select(cursor, query, *values), write=False)
            if not rows or rows == last:  # damaged paths cannot be found
                return forgotten
            if self.write(site, version, dict.fromkeys(path for (path,) in rows)) is not None:
                forgotten, last = forgotten + len(rows), rows

    def load(self, owner: Owner, names: Collection[str]) -> dict[str, bytes]:
        query = "SELECT name, value FROM @record WHERE owner = ? AND name IN (?*)"
        stored = list(map(stored_name, names))
        rows = self._run(lambda cursor: self._select_each(cursor, query, number_of(owner), stored), write=False)
        return {_name(name): value for name, value in rows if isinstance(value, bytes)}

    def save(self, owner: Owner, records: Mapping[str, bytes | None]) -> None:
        number = number_of(owner)
        ordered = sorted(records.items())  # else two processes could wait for each other
        deleted = [(number, stored_name(name)) for name, value in ordered if value is None]
        saved = [(number, stored_name(name), value) for name, value in ordered if value is not None]

        def write(cursor: Cursor) -> None:
            self._execute_each(cursor, "DELETE FROM @record WHERE owner = ? AND name = ?", deleted)
            self._execute_each(cursor, self.upsert("record", ("owner", "name"), ("value",)), saved)

        self._run(write, write=True)

    def lease(self, owner: Owner, name: str, holder: str, seconds: int) -> bool:
        key = number_of(owner), stored_name(name)
        take = (
            "UPDATE @lease SET holder = ?, ends_at = ? WHERE owner = ? AND name = ?"
            " AND (holder = ? OR ends_at <= ? OR ends_at > ?)"
        )
        add = self.upsert("lease", ("owner", "name"), ("holder", "ends_at"), replace=False)

        def write(cursor: Cursor) -> bool:
            ((now,),) = self._select(cursor, f"SELECT {self.clock}")
            cursor.execute(self.query(take), (holder, now + seconds, *key, holder, now, now + MAX_LEASE_SECONDS))
            if cursor.rowcount != 1:
                cursor.execute(self.query(add), (*key, holder, now + seconds))
            return cursor.rowcount == 1

        return self._run(write, write=True)

    def sites(self) -> list[str]:
        """The keys of all sites, sorted."""
        rows = self._run(lambda cursor: self._select(cursor, "SELECT name FROM @site"), write=False)
        return sorted(_name(name) for (name,) in rows)

    # Within a transaction

    def _version(self, cursor: Cursor, site: int) -> int:
        rows = self._select(cursor, "SELECT version FROM @site WHERE id = ?", site)
        return _integers(rows[0])[0] if rows else 0

    def _write(
        self, cursor: Cursor, key: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits
    ) -> set[str] | None:
        site = number_of(key)
        if self._version(cursor, site) != version:
            return None
        rows = self._select_each(
            cursor, "SELECT path, part, route FROM @page WHERE site = ? AND path IN (?*)", site, pages
        )
        placed = {path: Placed(_integers((part,))[0], _name(route)) for path, part, route in rows}
        part_rows = self._select(cursor, "SELECT number, pages FROM @part WHERE site = ?", site)
        query = "SELECT route, pages FROM @route WHERE site = ? AND route IN (?*)"
        routes = [stored_name(route) for route in routes_of(pages, placed)]
        route_counts = {_name(route): count for route, count in self._select_each(cursor, query, site, routes)}
        plan = plan_write(pages, placed, dict(map(_integers, part_rows)), route_counts, limits)
        if not plan.changed_parts:
            return plan.refused
        new_version = next_version(version)
        if not self._set_version(cursor, site, key, version, new_version):
            return None
        deleted = [(site, path) for path in plan.removed if path not in plan.saved]
        self._execute_each(cursor, "DELETE FROM @page WHERE site = ? AND path = ?", deleted)
        saved = [
            (site, path, part, stored_name(page.route), page.last_seen, int(is_listable(page)), encode_page(page))
            for path, part in plan.saved.items()
            if (page := pages[path]) is not None
        ]
        self._execute_each(cursor, self.upsert("page", ("site", "path"), _PAGE_COLUMNS), saved)
        parts = [(site, number, new_version, plan.part_counts[number]) for number in sorted(plan.changed_parts)]
        self._execute_each(cursor, self.upsert("part", ("site", "number"), ("version", "pages")), parts)
        self._execute_each(cursor, "DELETE FROM @part WHERE site = ? AND pages <= 0", [(site,)])
        counts = [
            (site, stored_name(route), count)
            for route, count in sorted(plan.route_counts.items())
            if count != route_counts.get(route, 0)
        ]
        self._execute_each(cursor, self.upsert("route", ("site", "route"), ("pages",)), counts)
        return plan.refused

    def _set_version(self, cursor: Cursor, site: int, key: str, version: int, new: int) -> bool:
        """Give a site a new version if it still has the old one; return whether it had."""
        if version:
            update = "UPDATE @site SET version = ? WHERE id = ? AND version = ?"
            cursor.execute(self.query(update), (new, site, version))
        else:
            add = self.upsert("site", ("id",), ("name", "version"), replace=False)
            cursor.execute(self.query(add), (site, stored_name(key), new))
        return cursor.rowcount == 1

    def _select(self, cursor: Cursor, query: str, *values: object) -> list[Any]:
        cursor.execute(self.query(query), values)
        return cursor.fetchall()

    def _select_each(self, cursor: Cursor, query: str, number: int, names: Collection[str]) -> list[Any]:
        """The rows of a query whose values are a number and a list of names."""
        rows: list[Any] = []
        for batch in batches(names, VALUES_PER_QUERY):
            cursor.execute(self.query(query, len(batch)), (number, *batch))
            rows += cursor.fetchall()
        return rows

    def _execute_each(self, cursor: Cursor, query: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            cursor.executemany(self.query(query), rows)


def insert(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row."""
    return f"INSERT INTO @{table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 (constants)


def number_of(key: str) -> int:
    """The number that stands for a site or an owner: a hash of 63 bits."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") >> 1


def stored_name(name: str) -> str:
    """A name as it is stored: in printable ASCII, because a database may have any encoding."""
    return quote(name, safe=_SAFE, errors="surrogatepass")


def _name(stored: str) -> str:
    return unquote(stored, errors="surrogatepass")


def _integers(values: Sequence[object]) -> tuple[Any, ...]:
    if any(type(value) is not int for value in values):
        raise DamagedError("a number in it is damaged")
    return tuple(values)
