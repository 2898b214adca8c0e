"""The store for `postgresql://` URLs: a schema of a PostgreSQL database, shared by processes on any machine."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors

from ...bounded_cache import BoundedCache
from ...evidence.observations import Observation
from ...exceptions import StoreError
from ...models import BaseURL, MergeResult, Page, PageLimits, StoreKey
from ..base import (
    MAX_CLOCK_LEAD_SECONDS,
    MAX_LEASE_SECONDS,
    UNLEARNED_BLOCK,
    UNLIMITED,
    Block,
    EngineStatus,
    RecordOwner,
)
from ..compact_page_list import CompactPageList
from .pages import SitePages, register_site, schema_status
from .pool import LOCK_TIMEOUT_SECONDS, SERVER_FULL_MESSAGES, STATEMENT_TIMEOUT_SECONDS, Pool, Session
from .repair_in_place import STRUCTURE_ERRORS, is_damage, rebuild_tables, repair
from .schema import SchemaError, create_schema, is_ready
from .url import display_name, parse_url

Result = TypeVar("Result")

log: logging.Logger = logging.getLogger("sitemap_middleware")

MIN_REPAIR_INTERVAL_SECONDS: Final = 60.0
"""A repair reads every page, so the next one waits."""

MAX_ATTEMPTS: Final = 4
"""Attempts at a transaction that failed by a conflict with another one, or whose connection was lost while idle."""

MAX_CACHED_SITES: Final = 1000
"""Sites whose numbers are cached."""

MIN_SERVER_VERSION: Final = 11
"""Minimum supported PostgreSQL version."""

# SET LOCAL, because PgBouncer may run the next transaction in another session. New tables have no statistics yet:
# without enable_seqscan = off PostgreSQL would read all of them.
_SETTINGS: Final = f"""
    SET LOCAL statement_timeout = {1000 * STATEMENT_TIMEOUT_SECONDS};
    SET LOCAL lock_timeout = {1000 * LOCK_TIMEOUT_SECONDS};
    SET LOCAL idle_in_transaction_session_timeout = {2000 * STATEMENT_TIMEOUT_SECONDS};
    SET LOCAL enable_seqscan = off;
    SET LOCAL jit = off
"""
_BEGIN_READ: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_SETTINGS}".encode()
_BEGIN_WRITE: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED; {_SETTINGS}".encode()

_SELECT_CHANGED_BLOCKS: Final = (
    "SELECT number, document, pages, block.version FROM sitemap.block JOIN sitemap.site ON site.id = block.site"
    " WHERE key = %b AND block.version > %s ORDER BY number"
)
_SELECT_FIRST_SERVED: Final = "SELECT first_served FROM sitemap.document WHERE site = %b AND name = %b AND etag = %b"
_UPSERT_DOCUMENT: Final = (
    "INSERT INTO sitemap.document (site, name, etag, first_served) VALUES (%b, %b, %b, %s)"
    " ON CONFLICT (site, name) DO UPDATE SET etag = excluded.etag, first_served ="
    " CASE WHEN document.first_served - excluded.first_served BETWEEN 0 AND %s"
    " THEN document.first_served + 1 ELSE excluded.first_served END"
    " WHERE document.etag IS DISTINCT FROM excluded.etag"
)
_SELECT_RECORDS: Final = "SELECT name, value FROM sitemap.record WHERE site = %b AND name = ANY(%b::bytea[])"
_DELETE_RECORDS: Final = "DELETE FROM sitemap.record WHERE site = %b AND name = ANY(%b::bytea[])"
_UPSERT_RECORDS: Final = (
    "INSERT INTO sitemap.record (site, name, value) SELECT %b::bytea, name, value"
    " FROM unnest(%b::bytea[], %b::bytea[]) AS new (name, value)"
    " ON CONFLICT (site, name) DO UPDATE SET value = excluded.value"
)
_ACQUIRE_LEASE: Final = (
    "INSERT INTO sitemap.lease (site, name, owner, expires_at) VALUES (%b, %b, %b, %s)"
    " ON CONFLICT (site, name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at"
    " WHERE lease.expires_at <= %s OR lease.owner = excluded.owner OR lease.expires_at > %s RETURNING true"
)
_SELECT_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"

_ERROR_HINTS: Final = {
    "25006": "name the primary (with several hosts in the URL, target_session_attrs=read-write finds it), or an"
    " account that may write",
    "42501": "GRANT its account CREATE on the database, or create the schema by another account, and GRANT USAGE on it"
    " and SELECT, INSERT, UPDATE, DELETE on its tables",
    "42P07": "the schema holds tables of another program; name one of its own: ?schema=...",
    "53300": "each process takes up to four connections: raise max_connections, run fewer processes, or put PgBouncer"
    " in transaction mode before the server",
}
"""The remedy for some errors, by SQLSTATE."""


class PostgresStore:
    """A store in a schema that is created when it is first used. A forked child opens its own connections."""

    def __init__(self, url: str, *, create: bool = True) -> None:
        """Parse the URL, without connecting.

        Args:
            url: the URL; a ValueError, whose message shows no password, if it is malformed.
            create: whether to create the schema if it does not exist, and to repair it if it is damaged.
        """
        self._url = url
        self._may_create = create
        self.schema: str
        self.schema, parameters = parse_url(url)
        self.name: str = display_name(self.schema, parameters)
        self._passwords = [str(parameters[key]) for key in ("password", "sslpassword") if parameters.get(key)]
        self.pool: Pool = Pool(parameters)
        self._repaired_at = -math.inf
        self._site_numbers: BoundedCache[str, int] = BoundedCache(MAX_CACHED_SITES)
        """The `site.id` of sites that were merged into. A cached one may be outdated: `SitePages.merge` checks it."""

    def merge(self, site: StoreKey, observations: Sequence[Observation], limits: PageLimits = UNLIMITED) -> MergeResult:
        def merge(session: Session) -> MergeResult | None:
            pages = SitePages(session, site, for_update=True, number=self._site_numbers.get(site))
            result = pages.merge(observations, limits)
            self._site_numbers.put(site, pages.site)
            return result

        while (result := self.write(merge)) is None:
            self.write(lambda session: register_site(session, site))
        return result

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        return self.write(
            lambda session: SitePages(session, site, for_update=True).forget(unseen_since, unlisted_since)
        )

    def pages(self, site: StoreKey) -> list[Page]:
        return self.read(lambda session: SitePages(session, site).pages())

    def find_pages(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        return self.read(lambda session: SitePages(session, site).find_pages(paths))

    def version(self, site: StoreKey) -> int:
        return self.read(lambda session: SitePages(session, site).version)

    def blocks(self, site: StoreKey, since: int = 0) -> list[Block]:
        def blocks(session: Session) -> list[Block]:
            rows = list(map(Block._make, session(_SELECT_CHANGED_BLOCKS, (site.encode(), since))))
            if any(None in row or (row.number != UNLEARNED_BLOCK and row.document < 1) for row in rows):
                raise LookupError("a row of the table block is damaged")
            return rows

        return self.read(blocks)

    def block(self, site: StoreKey, number: int) -> list[Page]:
        return self.read(lambda session: SitePages(session, site).block(number))

    def sample(self, site: StoreKey, limit: int) -> CompactPageList:
        return self.read(lambda session: SitePages(session, site).sample(limit))

    def served_since(self, site: BaseURL, name: str, etag: str, now: int) -> int:
        key = site.encode(), name.encode(), etag.encode()
        rows = self.read(lambda session: session(_SELECT_FIRST_SERVED, key))

        def publish(session: Session) -> list[Any]:
            session(_UPSERT_DOCUMENT, (*key, now, MAX_CLOCK_LEAD_SECONDS))
            return session(_SELECT_FIRST_SERVED, key)

        ((first_served,),) = rows or self.write(publish)
        return int(first_served)

    def load(self, site: RecordOwner, names: Collection[str]) -> dict[str, bytes]:
        values = site.encode(), [name.encode() for name in names]
        return self.read(lambda session: {name.decode(): value for name, value in session(_SELECT_RECORDS, values)})

    def save(self, site: RecordOwner, records: Mapping[str, bytes | None]) -> None:
        deleted = [name.encode() for name, value in records.items() if value is None]
        saved = sorted((name.encode(), value) for name, value in records.items() if value is not None)

        def save(session: Session) -> None:
            session(_DELETE_RECORDS, (site.encode(), deleted))
            session(_UPSERT_RECORDS, (site.encode(), [name for name, _ in saved], [value for _, value in saved]))

        self.write(save)

    def lease(self, site: RecordOwner, name: str, owner: str, now: int, seconds: int) -> bool:
        values = site.encode(), name.encode(), owner.encode(), now + seconds, now, now + MAX_LEASE_SECONDS
        return bool(self.write(lambda session: session(_ACQUIRE_LEASE, values)))

    def now(self, _: StoreKey | None = None) -> float:
        """The server's clock, in POSIX seconds."""
        ((now,),) = self.read(lambda session: session(_SELECT_NOW))
        return float(now)

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """Details for the `status` command, of these sites or of all."""
        return self.read(lambda session: schema_status(session, now, sites))

    def open_readonly(self) -> PostgresStore:
        """Another store of this URL, which neither creates nor repairs the schema: its calls fail instead."""
        return PostgresStore(self._url, create=False)

    def close(self) -> None:
        self.pool.close()

    def __del__(self) -> None:
        """Close the idle connections of a store that was never closed."""
        with contextlib.suppress(Exception):
            self.pool.close()

    def read(self, work: Callable[[Session], Result]) -> Result:
        """The result of a function that reads in a transaction. Raises `StoreError`."""
        return self._run(_BEGIN_READ, work)

    def write(self, work: Callable[[Session], Result]) -> Result:
        """The result of a function that writes in a transaction. It may be called again. Raises `StoreError`."""
        return self._run(_BEGIN_WRITE, work)

    def _run(self, begin: bytes, work: Callable[[Session], Result]) -> Result:
        """The result of a transaction; if it meets damage, repair the schema and try once more."""
        try:
            return self._run_with_retries(begin, work)
        except _DamagedError as error:
            if not self._repair(error.reason):
                raise
        return self._run_with_retries(begin, work)

    def _repair(self, reason: Exception) -> bool:
        """Repair the schema, unless this store may not or has just done so. Returns whether it was repaired."""
        now = time.monotonic()
        if not self._may_create or now < self._repaired_at + MIN_REPAIR_INTERVAL_SECONDS:
            return False
        self._repaired_at = now
        deleted = None
        with contextlib.suppress(StoreError):
            if not isinstance(reason, STRUCTURE_ERRORS):
                deleted = self._run_with_retries(_BEGIN_WRITE, repair)
        try:
            if deleted is None:
                self._run_with_retries(_BEGIN_WRITE, lambda session: rebuild_tables(session, self.schema))
        except StoreError as error:
            log.debug("not repaired: %s", error)
            return False
        damage = " ".join(str(reason).split())
        if deleted is None:
            log.warning(
                "store %s was damaged (%s): its tables were created again; what they held will be learned again",
                self.name,
                damage,
            )
        else:
            log.warning(
                "store %s was damaged (%s) and has been repaired; %d records were lost and will be learned again",
                self.name,
                damage,
                deleted,
            )
        return True

    def _run_with_retries(self, begin: bytes, work: Callable[[Session], Result]) -> Result:
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._run_once(begin, work)
            except psycopg.Error as error:
                self.pool.close()  # the idle connections may be lost as well
                if not isinstance(error, _RETRYABLE_ERRORS) or attempts == MAX_ATTEMPTS:
                    message = f"the store {self.name} does not work now: {self.describe_error(error)}"
                    raise (_DamagedError(message, error) if is_damage(error) else StoreError(message)) from None
            except (OSError, OverflowError, ValueError, TypeError, LookupError, AttributeError) as error:
                message = f"the store {self.name} does not work now: {error}"
                raise (_DamagedError(message, error) if is_damage(error) else StoreError(message)) from error

    def _run_once(self, begin: bytes, work: Callable[[Session], Result]) -> Result:
        with self.pool.connection() as (connection, is_new):
            session = Session(connection, self.schema)
            if is_new:
                self._prepare(session)
            try:
                connection.execute(begin)
            except psycopg.OperationalError as error:
                raise error if is_new else _StaleConnectionError from None
            connection.is_unused = False
            result = work(session)
            if not session.was_committed:
                connection.execute(b"ROLLBACK" if session.was_rolled_back else b"COMMIT")
            return result

    def _prepare(self, session: Session) -> None:
        """Check the server behind a new connection, and create the schema if need be."""
        version = session.connection.info.server_version // 10_000
        if version < MIN_SERVER_VERSION:
            raise SchemaError(f"its server is PostgreSQL {version}; the minimum is {MIN_SERVER_VERSION}")
        session.connection.execute(_BEGIN_READ)
        session.connection.is_unused = False
        ready = is_ready(session, self.schema)
        session.connection.execute(b"COMMIT")
        if not ready and not self._may_create:
            raise SchemaError(
                "its schema does not exist or is of an older version; an app with this version creates it"
            )
        if not ready:
            session.connection.execute(_BEGIN_WRITE)
            create_schema(session, self.schema)
            session.connection.execute(b"COMMIT")

    def describe_error(self, error: psycopg.Error) -> str:
        """The message of an error, without passwords, and its remedy if there is one."""
        message = " ".join(str(error).split())
        for password in self._passwords:
            message = message.replace(password, "***")
        # libpq gives no SQLSTATE when a connection is refused
        is_full = any(text in message for text in SERVER_FULL_MESSAGES)
        hint = _ERROR_HINTS.get(error.sqlstate or ("53300" if is_full else ""))
        return f"{message}; {hint}" if hint else message


class _DamagedError(StoreError):
    """The schema or a record in it is damaged."""

    def __init__(self, message: str, reason: Exception) -> None:
        super().__init__(message)
        self.reason = reason


class _StaleConnectionError(psycopg.OperationalError):
    """A connection was lost while it was idle."""


_RETRYABLE_ERRORS: Final = (
    _StaleConnectionError,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UndefinedTable,  # the schema was dropped: the next attempt opens a connection, which creates it
)
