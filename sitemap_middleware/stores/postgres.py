"""`postgresql://`: pages kept in a schema of a PostgreSQL database, shared by processes on any machine."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

import psycopg
from psycopg import conninfo, errors

from ..errors import StoreError
from ..location import twin_of
from ..model import Caps, Folded, Observation, Page
from .allotment import Filling
from .base import NAMED, NO_MORE, Block
from .census import Census
from .codec import packed, unpack
from .postgres_fold import MARKED, PAGES, Asked, Send, Writing, columns
from .postgres_pool import LOCK_SECONDS, STATEMENT_SECONDS, Connection, Pool
from .postgres_schema import NUMBERS, prepare, ready
from .rows import block_of, marks_of, rows_of

Result = TypeVar("Result")

ATTEMPTS: Final = 4
"""How often a transaction is tried that had to give way to another, or lost its connection before it began."""

LOWEST: Final = 11
"""The oldest PostgreSQL that knows all that is said to it."""

SCHEMA: Final = "sitemap"
_SCHEMA: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")

_LIMITS: Final = f"""
    SET LOCAL statement_timeout = {1000 * STATEMENT_SECONDS};
    SET LOCAL lock_timeout = {1000 * LOCK_SECONDS};
    SET LOCAL idle_in_transaction_session_timeout = {2000 * STATEMENT_SECONDS};
    SET LOCAL enable_seqscan = off;
    SET LOCAL jit = off
"""
"""Set in each transaction, for a session may be another's in the next. Tables that are new have no statistics yet, and
would be read whole."""

_READ: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_LIMITS}".encode()
_WRITE: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED; {_LIMITS}".encode()

_SITE: Final = "SELECT id, version, twins FROM sitemap.site WHERE key = %b"
_SITE_ALONE: Final = f"{_SITE} FOR UPDATE"
_IN_ROWS: Final = f"{PAGES} WHERE page.id BETWEEN %s AND %s ORDER BY page.id"
_OF_SITE: Final = (
    f"{PAGES} WHERE page.id BETWEEN %s AND %s OR page.id BETWEEN %s AND %s ORDER BY page.path"  # named, learned
)
_SOME: Final = (
    "SELECT page.path, route.path, page.facts, page.id FROM unnest(%b::bigint[]) AS since CROSS JOIN LATERAL"
    " (SELECT * FROM sitemap.page WHERE id BETWEEN since AND %s ORDER BY id LIMIT 1) AS page"
    " JOIN sitemap.route ON route.id = page.route ORDER BY page.id"
)
_UNLISTED: Final = (
    "DELETE FROM sitemap.page WHERE id BETWEEN %s AND %s AND (last_seen < %s OR (last_seen < %s AND NOT promising))"
    " RETURNING id, route, path"
)
_ENROL: Final = (
    "INSERT INTO sitemap.site (id, version, twins, key) SELECT coalesce(max(id), 0) + 1, 0, false, %b::bytea"
    " FROM sitemap.site ON CONFLICT (key) DO NOTHING"
)
_COUNTS: Final = (
    "UPDATE sitemap.route SET pages = route.pages + moved.pages FROM unnest(%b::integer[], %b::integer[])"
    " AS moved (pages, id) WHERE route.id = moved.id"
)
_BLOCK: Final = (
    "INSERT INTO sitemap.block (site, number, document, pages, given, cost, version) SELECT * FROM"
    " unnest(%b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::integer[], %b::bigint[])"
    " ON CONFLICT (site, number) DO UPDATE SET pages = block.pages + excluded.pages, version = excluded.version,"
    " given = greatest(block.given, excluded.given), cost = greatest(block.cost, excluded.cost)"
)
_PUBLISHED: Final = "SELECT since FROM sitemap.document WHERE site = %b AND name = %b AND etag = %b"
_PUBLISH: Final = (
    "INSERT INTO sitemap.document (site, name, etag, since) VALUES (%b, %b, %b, %s) ON CONFLICT (site, name)"
    " DO UPDATE SET etag = excluded.etag, since = excluded.since WHERE document.etag <> excluded.etag"
)
_SAVE: Final = (
    "INSERT INTO sitemap.thing (site, name, value) SELECT %b::bytea, name, value"
    " FROM unnest(%b::bytea[], %b::bytea[]) AS new (name, value)"
    " ON CONFLICT (site, name) DO UPDATE SET value = excluded.value"
)
_LEASE: Final = (
    "INSERT INTO sitemap.lease (site, name, owner, until) VALUES (%b, %b, %b, %s) ON CONFLICT (site, name)"
    " DO UPDATE SET owner = excluded.owner, until = excluded.until"
    " WHERE lease.until <= %s OR lease.owner = excluded.owner RETURNING true"
)

_CURES: Final = {
    "25006": "name the server that takes writes (target_session_attrs=read-write finds it among several hosts), or an"
    " account that may write",
    "42501": "GRANT its account CREATE on the database, or have another one make the schema, and GRANT USAGE on it and"
    " SELECT, INSERT, UPDATE, DELETE on its tables",
    "42P07": "the schema holds tables of another program; name one of its own: ?schema=...",
    "53300": "raise max_connections, or put a pooler such as PgBouncer before the server",
}
"""What to do about some errors, by their SQLSTATE."""


class PostgresStore:
    """A store in a schema that makes itself; connections open when they are first needed, in a forked child anew."""

    def __init__(self, url: str, *, makes: bool = True) -> None:
        """Raises ValueError, in words that may be shown, for a URL that leads nowhere.

        `makes`: the schema, where it is not there or is of an older version.
        """
        self._url = url
        self._makes = makes
        self.schema, url = _schema_of(url)
        try:
            parameters = conninfo.conninfo_to_dict(url)
        except psycopg.Error:  # which would show the URL
            raise ValueError("is no URL of PostgreSQL, or has a parameter that libpq does not know") from None
        self.name = _name(parameters, self.schema)
        self._secrets = [str(parameters[key]) for key in ("password", "sslpassword") if parameters.get(key)]
        self._pool = Pool(parameters)

    def fold(self, site: str, observations: Sequence[Observation], caps: Caps = NO_MORE) -> Folded:
        def work(session: _Session) -> Folded | None:
            return _Shelf(session, site, alone=True).fold(observations, caps)

        folded = self._write(work)
        while folded is None:
            self._write(lambda session: _enrol(session, site))
            folded = self._write(work)
        return folded

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        return self._write(lambda session: _Shelf(session, site, alone=True).forget(unseen_since, unlisted_since))

    def pages(self, site: str) -> list[Page]:
        return self._read(lambda session: _Shelf(session, site).pages())

    def known(self, site: str, paths: Collection[str]) -> dict[str, Page]:
        return self._read(lambda session: _Shelf(session, site).known(paths))

    def version(self, site: str) -> int:
        return self._read(lambda session: _Shelf(session, site).version)

    def blocks(self, site: str, since: int = 0) -> list[Block]:
        query = (
            "SELECT number, document, pages, block.version FROM sitemap.block JOIN sitemap.site ON site.id = block.site"
            " WHERE key = %b AND block.version > %s ORDER BY number"
        )
        return self._read(lambda session: list(map(Block._make, session(query, (site.encode(), since)))))

    def block(self, site: str, number: int) -> list[Page]:
        return self._read(lambda session: _Shelf(session, site).block(number))

    def sample(self, site: str, most: int) -> list[Page]:
        return self._read(lambda session: _Shelf(session, site).sample(most))

    def published(self, site: str, name: str, etag: str, now: int) -> int:
        key = site.encode(), name.encode(), etag.encode()
        rows = self._read(lambda session: session(_PUBLISHED, key))

        def publish(session: _Session) -> list[Any]:
            session(_PUBLISH, (*key, now))
            return session(_PUBLISHED, key)

        ((since,),) = rows or self._write(publish)
        return int(since)

    def load(self, site: str, names: Collection[str]) -> dict[str, bytes]:
        query = "SELECT name, value FROM sitemap.thing WHERE site = %b AND name = ANY(%b::bytea[])"
        values = site.encode(), [name.encode() for name in names]
        return self._read(lambda session: {name.decode(): value for name, value in session(query, values)})

    def save(self, site: str, things: Mapping[str, bytes | None]) -> None:
        dropped = [name.encode() for name, value in things.items() if value is None]
        kept = sorted((name.encode(), value) for name, value in things.items() if value is not None)

        def save(session: _Session) -> None:
            query = "DELETE FROM sitemap.thing WHERE site = %b AND name = ANY(%b::bytea[])"
            session(query, (site.encode(), dropped))
            session(_SAVE, (site.encode(), [name for name, _ in kept], [value for _, value in kept]))

        self._write(save)

    def lease(self, site: str, name: str, owner: str, now: int, seconds: int) -> bool:
        values = site.encode(), name.encode(), owner.encode(), now + seconds, now
        return bool(self._write(lambda session: session(_LEASE, values)))

    def sites(self) -> list[str]:
        """The keys of all sites of which there is anything."""
        query = "SELECT key FROM sitemap.site WHERE version > 0 ORDER BY key"
        return self._read(lambda session: [key.decode() for (key,) in session(query, ())])

    def glance(self) -> PostgresStore:
        """The same to look into from outside of the app: every call fails where the schema would have to be made."""
        return PostgresStore(self._url, makes=False)

    def close(self) -> None:
        self._pool.close()

    def __del__(self) -> None:
        """A store that nobody holds lets go by itself."""
        with contextlib.suppress(Exception):
            self._pool.close()

    def _read(self, work: Callable[[_Session], Result]) -> Result:
        return self._tried(_READ, work)

    def _write(self, work: Callable[[_Session], Result]) -> Result:
        return self._tried(_WRITE, work)

    def _tried(self, begin: bytes, work: Callable[[_Session], Result]) -> Result:
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._transacted(begin, work)
            except psycopg.Error as error:
                self._pool.close()  # what is idle may lead to where this one led
                if not isinstance(error, _AGAIN) or attempts == ATTEMPTS:
                    raise StoreError(f"the store {self.name} does not work now: {self._told(error)}") from None
            except (OSError, OverflowError, ValueError) as error:
                raise StoreError(f"the store {self.name} does not work now: {error}") from error

    def _transacted(self, begin: bytes, work: Callable[[_Session], Result]) -> Result:
        with self._pool.connection() as (connection, new):
            session = _Session(connection, self.schema)
            if new:
                self._prepare(session)
            try:
                connection.execute(begin)
            except psycopg.OperationalError as error:
                raise error if new else _Stale from None
            connection.fresh = False
            result = work(session)
            connection.execute(b"ROLLBACK" if session.in_vain else b"COMMIT")
            return result

    def _prepare(self, session: _Session) -> None:
        version = session.connection.info.server_version // 10_000
        if version < LOWEST:
            raise ValueError(f"its server is PostgreSQL {version}; {LOWEST} is the oldest that will do")
        session.connection.execute(_READ)
        session.connection.fresh = False
        there = ready(session, self.schema)
        session.connection.execute(b"COMMIT")
        if not there and not self._makes:
            raise ValueError(
                "its schema is not there or is of an older version; an app that runs with this code makes it"
            )
        if not there:
            session.connection.execute(_WRITE)
            prepare(session, self.schema)
            session.connection.execute(b"COMMIT")

    def _told(self, error: psycopg.Error) -> str:
        told = " ".join(str(error).split())
        for secret in self._secrets:
            told = told.replace(secret, "***")
        cure = _CURES.get(error.sqlstate or "")
        return f"{told}; {cure}" if cure else told


class _Stale(psycopg.OperationalError):
    """A connection that was kept has ended."""


_AGAIN: Final = (
    _Stale,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UndefinedTable,  # the schema was dropped: a new connection makes it anew
)


def _schema_of(url: str) -> tuple[str, str]:
    """The schema that a URL names, and the URL without it."""
    whole, question, query = url.partition("?")
    schema, rest = SCHEMA, []
    for part in query.split("&") if question else ():
        key, _, value = part.partition("=")
        if key == "schema":
            schema = unquote_plus(value)
        else:
            rest.append(part)
    if not _SCHEMA.fullmatch(schema):
        raise ValueError(
            f"names a schema, {schema!r}, that is none: give up to 63 lower-case letters, digits and underscores"
        )
    return schema, "?".join((whole, "&".join(rest))) if rest else whole


def _name(parameters: Mapping[str, object], schema: str) -> str:
    """What a store is called in errors: nothing in it is secret."""
    host, port = parameters.get("host") or parameters.get("hostaddr") or "", parameters.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parameters.get('dbname') or ''}?schema={schema}"


class _Session:
    """A connection within a transaction, which knows where the tables are."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection = connection
        self.in_vain = False
        """Nothing was changed: there is nothing to be written to the server's disk."""
        self._prefix = f'"{schema}".'

    def __call__(self, query: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Any]:
        """The rows of a query, which names tables as if the schema were "sitemap". Without values it may be several."""
        cursor = self.connection.execute(self._own(query), values, binary=values is not None)
        return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def sending(self) -> Iterator[Send]:
        """Sends queries one after the other, and waits for none until it is asked for its rows, or all were sent."""
        with self.connection.pipeline() if psycopg.Pipeline.is_supported() else contextlib.nullcontext():
            yield lambda query, values: self.connection.execute(self._own(query), values, binary=True)

    def _own(self, query: str) -> bytes:
        return query.replace("sitemap.", self._prefix).encode()


class _Shelf:
    """The pages of one site, within a transaction."""

    def __init__(self, session: _Session, site: str, *, alone: bool = False) -> None:
        """`alone`: until the transaction ends, no other one changes them."""
        self._session = session
        self._key = site
        self._query = _SITE_ALONE if alone else _SITE
        self._find()

    def _find(self) -> None:
        rows = self._session(self._query, (self._key.encode(),))
        self._site: int
        self.version: int
        self._twins: bool
        self._site, self.version, self._twins = rows[0] if rows else (0, 0, False)

    def pages(self) -> list[Page]:
        bounds = (*rows_of(self._site, NAMED), *rows_of(self._site, 1, self._last()))
        return _pages(self._session(_OF_SITE, bounds))

    def block(self, number: int) -> list[Page]:
        return _pages(self._session(_IN_ROWS, rows_of(self._site, number)))

    def known(self, paths: Collection[str]) -> dict[str, Page]:
        """The pages of these paths."""
        return {page.path: page for page in _pages(self._found(paths))}

    def _found(self, paths: Collection[str]) -> list[Any]:
        """The rows of these pages, as many as there are."""
        rows = self._session(MARKED, (list(marks_of(self._site, paths).values()),))
        return [row for row in rows if row[0].decode() in paths]

    def fold(self, observations: Sequence[Observation], caps: Caps) -> Folded | None:
        """None where there is something to be kept of a site that has no number yet."""
        if not self._site:
            census = Census({}, caps)
            return census.folded() if next(census.take(_nothing, observations), None) is None else None
        marks = marks_of(self._site, dict.fromkeys([seen.path for seen in observations]))
        query = "SELECT path, id, pages FROM sitemap.route WHERE site = %s"
        routes = [(path.decode(), number, pages) for path, number, pages in self._session(query, (self._site,))]
        numbers = {path: number for path, number, _ in routes}
        census = Census({path: pages for path, _, pages in routes if pages}, caps)
        filling, named = self._filling(), self._given(NAMED)
        with self._session.sending() as send:
            asked = Asked(send, marks)
            writing = Writing(
                send, site=self._site, key=self._key, routes=numbers, marks=marks, filling=filling, named=named
            )
            writing.write(map(packed, census.take(asked.page, observations)), asked.row)
        if census.changed:
            self._begin()
            if moved := census.moved:
                self._session(_COUNTS, columns((by, numbers[path]) for path, by in moved.items()))
            writing.moved.update(self._twins_of(writing))
            self._note(writing.moved, writing.filled, writing.named)
        else:
            self._session.in_vain = True
        return census.folded()

    def forget(self, unseen_since: int, unlisted_since: int) -> int:
        bounds = (*rows_of(self._site, 1, self._last()), unseen_since, unlisted_since)
        gone = self._session(_UNLISTED, bounds) if self._site else []
        if gone:
            self._begin()
            routes = Counter(route for _, route, _ in gone)
            self._session(_COUNTS, ([-count for count in routes.values()], list(routes)))
            moved = self._beside({raw.decode() for _, _, raw in gone})
            moved.subtract(block_of(row) for row, _, _ in gone)
            self._note(moved, {})
        else:
            self._session.in_vain = True
        return len(gone)

    def sample(self, most: int) -> list[Page]:
        query = "SELECT max(number), coalesce(sum(pages), 0)::bigint FROM sitemap.block WHERE site = %s AND number > %s"
        ((last, learned),) = self._session(query, (self._site, NAMED))
        query = "SELECT given, pages FROM sitemap.block WHERE site = %s AND number = %s"
        ((given, named),) = self._session(query, (self._site, NAMED)) or ((0, 0),)
        room = max(most - learned, most // 2)
        sample = self._some(rows_of(self._site, NAMED)[0], given, named, room)
        first, end = rows_of(self._site, 1, last or 1)
        return sample + self._some(first, end - first, learned, most - len(sample))

    def _some(self, first: int, span: int, pages: int, most: int) -> list[Page]:
        """So many of the pages whose rows lie in a span, evenly."""
        if pages <= most:
            return _pages(self._session(_IN_ROWS, (first, first + span)))
        rows = self._session(_SOME, ([first + span * number // most for number in range(most)], first + span))
        return _pages({row[3]: row for row in rows}.values())

    def _begin(self) -> None:
        """Take note that pages have changed."""
        self.version += 1
        self._session("UPDATE sitemap.site SET version = %s WHERE id = %s", (self.version, self._site))

    def _note(self, moved: Counter[int], filled: Mapping[int, Filling], named: int = 0) -> None:
        """Take note of the blocks in which pages came, went or changed."""
        empty = Filling()
        rows = []
        for number, pages in moved.items():
            filling = filled.get(number, empty)
            given = named if number == NAMED else filling.pages
            rows.append((self._site, number, filling.document, pages, given, filling.bytes, self.version))
        self._session(_BLOCK, columns(rows))

    def _filling(self) -> Filling:
        """What new pages go into."""
        query = (
            "SELECT number, document, given, cost FROM sitemap.block WHERE site = %s AND document ="
            " (SELECT document FROM sitemap.block WHERE site = %s AND number > %s ORDER BY number DESC LIMIT 1)"
            " ORDER BY number DESC"
        )
        rows = self._session(query, (self._site, self._site, NAMED))
        if not rows:
            return Filling()
        block, document, given, spent = rows[0]
        return Filling(block, document, given, spent, sum(row[2] for row in rows), sum(row[3] for row in rows))

    def _last(self) -> int:
        """The last block of learned pages; the first where there is none."""
        query = "SELECT coalesce(max(number), 1) FROM sitemap.block WHERE site = %s AND number > %s"
        ((last,),) = self._session(query, (self._site, NAMED))
        return int(last)

    def _given(self, block: int) -> int:
        query = "SELECT given FROM sitemap.block WHERE site = %s AND number = %s"
        rows = self._session(query, (self._site, block))
        return int(rows[0][0]) if rows else 0

    def _twins_of(self, writing: Writing) -> Counter[int]:
        """The blocks of pages that are spelled as changed ones but for a slash at the end: the one may copy the other.

        As long as every learned page is spelled as its route is, there is none.
        """
        if writing.twins and not self._twins:
            self._twins = True
            self._session("UPDATE sitemap.site SET twins = true WHERE id = %s", (self._site,))
        return self._beside(writing.paths)

    def _beside(self, paths: AbstractSet[str]) -> Counter[int]:
        """The blocks of pages that are spelled as these are but for a slash at the end, if there may be any."""
        if not self._twins:
            return Counter()
        return Counter({block_of(row[3]): 0 for row in self._found({twin_of(path) for path in paths} - paths)})


def _enrol(session: _Session, site: str) -> None:
    """Give a site that is new its number, one after the other: identities may leave any gap.

    It is done in a transaction of its own, for whoever starts at the same time waits for it.
    """
    session("SELECT pg_advisory_xact_lock(%s)", (NUMBERS,))
    session(_ENROL, (site.encode(),))


def _nothing(_: str) -> None:
    """What is known of any page of a site that is new."""


def _pages(rows: Iterable[Any]) -> list[Page]:
    return [unpack(path.decode(), route.decode(), facts) for path, route, facts, _ in rows]
