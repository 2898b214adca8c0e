"""`postgresql://`: pages kept in a schema of a PostgreSQL database, shared by processes on any machine."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

import psycopg
from psycopg import conninfo, errors

from ...bounded_cache import BoundedCache
from ...exceptions import StoreError
from ...models import MergeResult, Page, PageLimits
from ...observations import Observation
from ..base import MAX_LEASE_SECONDS, UNLEARNED_BLOCK, UNLIMITED, Block
from ..engine_status import EngineStatus
from ..packed_pages import PackedPages
from .pages import Session, SitePages, register_site, schema_status
from .pool import LOCK_TIMEOUT_SECONDS, SERVER_FULL_MESSAGES, STATEMENT_TIMEOUT_SECONDS, Pool
from .repair import STRUCTURE_ERRORS, is_damage, rebuild_tables, repair
from .schema import SchemaError, create_or_migrate, is_ready

Result = TypeVar("Result")

log = logging.getLogger("sitemap_middleware")

MIN_REPAIR_INTERVAL_SECONDS: Final = 60.0
"""Seconds from one repair to the next, at least: it looks at all pages."""

MAX_ATTEMPTS: Final = 4
"""How often a transaction is tried that had to give way to another, or lost its connection before it began."""

MAX_CACHED_SITES: Final = 1000
"""Sites of which the number is remembered."""

MIN_SERVER_VERSION: Final = 11
"""The oldest PostgreSQL that knows all that is said to it."""

DEFAULT_SCHEMA: Final = "sitemap"
_SCHEMA_NAME: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")

_LIMITS: Final = f"""
    SET LOCAL statement_timeout = {1000 * STATEMENT_TIMEOUT_SECONDS};
    SET LOCAL lock_timeout = {1000 * LOCK_TIMEOUT_SECONDS};
    SET LOCAL idle_in_transaction_session_timeout = {2000 * STATEMENT_TIMEOUT_SECONDS};
    SET LOCAL enable_seqscan = off;
    SET LOCAL jit = off
"""
"""Set in each transaction, for a session may be another's in the next. Tables that are new have no statistics yet, and
would be read whole."""

_READ: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_LIMITS}".encode()
_WRITE: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED; {_LIMITS}".encode()

_SELECT_SERVED_SINCE: Final = "SELECT since FROM sitemap.document WHERE site = %b AND name = %b AND etag = %b"
_UPSERT_DOCUMENT: Final = (
    "INSERT INTO sitemap.document (site, name, etag, since) VALUES (%b, %b, %b, %s) ON CONFLICT (site, name)"
    " DO UPDATE SET etag = excluded.etag, since = excluded.since WHERE document.etag IS DISTINCT FROM excluded.etag"
)
_UPSERT_RECORD: Final = (
    "INSERT INTO sitemap.thing (site, name, value) SELECT %b::bytea, name, value"
    " FROM unnest(%b::bytea[], %b::bytea[]) AS new (name, value)"
    " ON CONFLICT (site, name) DO UPDATE SET value = excluded.value"
)
_UPSERT_LEASE: Final = (
    "INSERT INTO sitemap.lease (site, name, owner, until) VALUES (%b, %b, %b, %s) ON CONFLICT (site, name)"
    " DO UPDATE SET owner = excluded.owner, until = excluded.until"
    " WHERE lease.until <= %s OR lease.owner = excluded.owner OR lease.until > %s RETURNING true"
)

_ERROR_HINTS: Final = {
    "25006": "name the server that takes writes (target_session_attrs=read-write finds it among several hosts), or an"
    " account that may write",
    "42501": "GRANT its account CREATE on the database, or have another one make the schema, and GRANT USAGE on it and"
    " SELECT, INSERT, UPDATE, DELETE on its tables",
    "42P07": "the schema holds tables of another program; name one of its own: ?schema=...",
    "53300": "each process takes up to four connections: raise max_connections, run fewer processes, or put PgBouncer"
    " in transaction mode before the server",
}
"""What to do about some errors, by their SQLSTATE."""


class PostgresStore:
    """A store in a schema that makes itself; connections open when they are first needed, in a forked child anew."""

    def __init__(self, url: str, *, makes: bool = True) -> None:
        """Raises ValueError, in words that may be shown, for a URL that leads nowhere.

        `makes`: the schema, where it is not there or is of an older version.
        """
        self._url = url
        self._creates_schema = makes
        self.schema, url = _schema_of(url)
        try:
            parameters = conninfo.conninfo_to_dict(url)
        except psycopg.Error:  # which would show the URL
            raise ValueError("is no URL of PostgreSQL, or has a parameter that libpq does not know") from None
        self.name = _display_name(parameters, self.schema)
        self._passwords = [str(parameters[key]) for key in ("password", "sslpassword") if parameters.get(key)]
        self._pool = Pool(parameters)
        self._repaired_at = -math.inf
        self._site_numbers: BoundedCache[str, int] = BoundedCache(MAX_CACHED_SITES)
        """What sites are numbered, as far as it is known."""

    def merge(self, site: str, observations: Sequence[Observation], caps: PageLimits = UNLIMITED) -> MergeResult:
        def work(session: Session) -> MergeResult | None:
            shelf = SitePages(session, site, alone=True, number=self._site_numbers.get(site))
            folded = shelf.merge(observations, caps)
            self._site_numbers.put(site, shelf.site)
            return folded

        folded = self._write(work)
        while folded is None:
            self._write(lambda session: register_site(session, site))
            folded = self._write(work)
        return folded

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        return self._write(lambda session: SitePages(session, site, alone=True).forget(unseen_since, unlisted_since))

    def pages(self, site: str) -> list[Page]:
        return self._read(lambda session: SitePages(session, site).pages())

    def find_pages(self, site: str, paths: Collection[str]) -> dict[str, Page]:
        return self._read(lambda session: SitePages(session, site).find_pages(paths))

    def version(self, site: str) -> int:
        return self._read(lambda session: SitePages(session, site).version)

    def blocks(self, site: str, since: int = 0) -> list[Block]:
        query = (
            "SELECT number, document, pages, block.version FROM sitemap.block JOIN sitemap.site ON site.id = block.site"
            " WHERE key = %b AND block.version > %s ORDER BY number"
        )

        def blocks(session: Session) -> list[Block]:
            found = list(map(Block._make, session(query, (site.encode(), since))))
            if any(None in block or (block.number != UNLEARNED_BLOCK and block.document < 1) for block in found):
                raise LookupError("what is kept of a block is damaged")
            return found

        return self._read(blocks)

    def block(self, site: str, number: int) -> list[Page]:
        return self._read(lambda session: SitePages(session, site).block(number))

    def sample(self, site: str, most: int) -> PackedPages:
        return self._read(lambda session: SitePages(session, site).sample(most))

    def served_since(self, site: str, name: str, etag: str, now: int) -> int:
        key = site.encode(), name.encode(), etag.encode()
        rows = self._read(lambda session: session(_SELECT_SERVED_SINCE, key))

        def publish(session: Session) -> list[Any]:
            session(_UPSERT_DOCUMENT, (*key, now))
            return session(_SELECT_SERVED_SINCE, key)

        ((since,),) = rows or self._write(publish)
        return int(since)

    def load(self, site: str, names: Collection[str]) -> dict[str, bytes]:
        query = "SELECT name, value FROM sitemap.thing WHERE site = %b AND name = ANY(%b::bytea[])"
        values = site.encode(), [name.encode() for name in names]
        return self._read(lambda session: {name.decode(): value for name, value in session(query, values)})

    def save(self, site: str, things: Mapping[str, bytes | None]) -> None:
        dropped = [name.encode() for name, value in things.items() if value is None]
        kept = sorted((name.encode(), value) for name, value in things.items() if value is not None)

        def save(session: Session) -> None:
            query = "DELETE FROM sitemap.thing WHERE site = %b AND name = ANY(%b::bytea[])"
            session(query, (site.encode(), dropped))
            session(_UPSERT_RECORD, (site.encode(), [name for name, _ in kept], [value for _, value in kept]))

        self._write(save)

    def lease(self, site: str, name: str, owner: str, now: int, seconds: int) -> bool:
        values = site.encode(), name.encode(), owner.encode(), now + seconds, now, now + MAX_LEASE_SECONDS
        return bool(self._write(lambda session: session(_UPSERT_LEASE, values)))

    def now(self, _: str = "") -> float:
        """The server's time."""
        ((now,),) = self._read(
            lambda session: session("SELECT extract(epoch FROM clock_timestamp())::double precision")
        )
        return float(now)

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """What else there is to know, for people."""
        return self._read(lambda session: schema_status(session, now, sites))

    def open_readonly(self) -> PostgresStore:
        """The same to look into from outside of the app: every call fails where the schema would have to be made."""
        return PostgresStore(self._url, makes=False)

    def close(self) -> None:
        self._pool.close()

    def __del__(self) -> None:
        """A store that nobody holds lets go by itself."""
        with contextlib.suppress(Exception):
            self._pool.close()

    def _read(self, work: Callable[[Session], Result]) -> Result:
        return self._retry(_READ, work)

    def _write(self, work: Callable[[Session], Result]) -> Result:
        return self._retry(_WRITE, work)

    def _retry(self, begin: bytes, work: Callable[[Session], Result]) -> Result:
        try:
            return self._attempt(begin, work)
        except _DamagedError as error:
            if not self._repair(error.reason):
                raise
        return self._attempt(begin, work)

    def _repair(self, reason: Exception) -> bool:
        """Repair the schema, unless that was done a moment ago, or only reading is allowed; whether it was."""
        now = time.monotonic()
        if not self._creates_schema or now < self._repaired_at + MIN_REPAIR_INTERVAL_SECONDS:
            return False
        self._repaired_at = now
        dropped = None
        with contextlib.suppress(StoreError):
            if not isinstance(reason, STRUCTURE_ERRORS):
                dropped = self._attempt(_WRITE, repair)
        try:
            if dropped is None:
                self._attempt(_WRITE, lambda session: rebuild_tables(session, self.schema))
        except StoreError as error:
            log.debug("not repaired: %s", error)
            return False
        if dropped is None:
            log.warning(
                "the sitemap's store %s was damaged (%s) and was begun anew; what it held is learned again",
                self.name,
                " ".join(str(reason).split()),
            )
        else:
            log.warning(
                "the sitemap's store %s was damaged (%s) and was repaired; %d records were lost, and are learned again",
                self.name,
                " ".join(str(reason).split()),
                dropped,
            )
        return True

    def _attempt(self, begin: bytes, work: Callable[[Session], Result]) -> Result:
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._in_transaction(begin, work)
            except psycopg.Error as error:
                self._pool.close()  # what is idle may lead to where this one led
                if not isinstance(error, _RETRYABLE_ERRORS) or attempts == MAX_ATTEMPTS:
                    told = f"the store {self.name} does not work now: {self._describe_error(error)}"
                    raise (_DamagedError(told, error) if is_damage(error) else StoreError(told)) from None
            except (OSError, OverflowError, ValueError, TypeError, LookupError, AttributeError) as error:
                told = f"the store {self.name} does not work now: {error}"
                raise (_DamagedError(told, error) if is_damage(error) else StoreError(told)) from error

    def _in_transaction(self, begin: bytes, work: Callable[[Session], Result]) -> Result:
        with self._pool.connection() as (connection, new):
            session = Session(connection, self.schema)
            if new:
                self._prepare(session)
            try:
                connection.execute(begin)
            except psycopg.OperationalError as error:
                raise error if new else _StaleConnection from None
            connection.is_new = False
            result = work(session)
            if not session.committed:
                connection.execute(b"ROLLBACK" if session.was_rolled_back else b"COMMIT")
            return result

    def _prepare(self, session: Session) -> None:
        version = session.connection.info.server_version // 10_000
        if version < MIN_SERVER_VERSION:
            raise SchemaError(f"its server is PostgreSQL {version}; {MIN_SERVER_VERSION} is the oldest that will do")
        session.connection.execute(_READ)
        session.connection.is_new = False
        there = is_ready(session, self.schema)
        session.connection.execute(b"COMMIT")
        if not there and not self._creates_schema:
            raise SchemaError(
                "its schema is not there or is of an older version; an app that runs with this code makes it"
            )
        if not there:
            session.connection.execute(_WRITE)
            create_or_migrate(session, self.schema)
            session.connection.execute(b"COMMIT")

    def _describe_error(self, error: psycopg.Error) -> str:
        told = " ".join(str(error).split())
        for secret in self._passwords:
            told = told.replace(secret, "***")
        full = any(
            text in told for text in SERVER_FULL_MESSAGES
        )  # libpq tells no SQLSTATE of a connection that it was refused
        cure = _ERROR_HINTS.get(error.sqlstate or ("53300" if full else ""))
        return f"{told}; {cure}" if cure else told


class _DamagedError(StoreError):
    """What is kept cannot be read."""

    def __init__(self, told: str, reason: Exception) -> None:
        super().__init__(told)
        self.reason = reason


class _StaleConnection(psycopg.OperationalError):
    """A connection that was kept has ended."""


_RETRYABLE_ERRORS: Final = (
    _StaleConnection,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UndefinedTable,  # the schema was dropped: a new connection makes it anew
)


def _schema_of(url: str) -> tuple[str, str]:
    """The schema that a URL names, and the URL without it."""
    whole, question, query = url.partition("?")
    schema, rest = DEFAULT_SCHEMA, []
    for part in query.split("&") if question else ():
        key, _, value = part.partition("=")
        if key == "schema":
            schema = unquote_plus(value)
        else:
            rest.append(part)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise ValueError(
            f"names a schema, {schema!r}, that is none: give up to 63 lower-case letters, digits and underscores"
        )
    return schema, "?".join((whole, "&".join(rest))) if rest else whole


def _display_name(parameters: Mapping[str, object], schema: str) -> str:
    """What a store is called in errors: nothing in it is secret."""
    host, port = parameters.get("host") or parameters.get("hostaddr") or "", parameters.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parameters.get('dbname') or ''}?schema={schema}"
