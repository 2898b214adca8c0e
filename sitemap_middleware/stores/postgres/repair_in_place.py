"""Repairs a damaged schema in place: what can be read stays; everything else is deleted and will be learned again."""

from __future__ import annotations

from typing import Any, Final

from psycopg import errors

from ...evidence.page_verdict import is_listable
from ..base import UNLEARNED_BLOCK
from ..next_site_version import next_version
from ..page_codec import TooLargeError, unpack_page
from ..recount_after_damage import RebuiltSite
from ..sql_row_id_layout_and_path_hash import MAX_NUMBER, block_of_row, path_hashes, position_of_row, site_of_row
from .pipelined_page_batches import row_columns
from .pool import Session
from .schema import CREATE_TABLE, SchemaError, columns_of, create_schema, is_complete, select_columns

BATCH_PAGES: Final = 2000
"""Pages checked per query."""

_INDEPENDENT_TABLES: Final = ("document", "record", "lease")
"""Tables that no other table refers to."""

STRUCTURE_ERRORS: Final = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.InvalidColumnReference,
    errors.DatatypeMismatch,
    errors.UndefinedFunction,
)
"""Raised if a table, column or key is missing or has been altered."""

_VALUE_ERRORS: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    errors.IntegrityError,
    errors.NumericValueOutOfRange,
)
"""Raised if a value cannot be read."""

_DELETE_UNREADABLE_ROWS: Final = (
    f"DELETE FROM sitemap.site WHERE id IS NULL OR key IS NULL OR id NOT BETWEEN 1 AND {MAX_NUMBER - 1}",  # noqa: S608
    "UPDATE sitemap.site SET version = 0 WHERE version IS NULL OR version < 0",
    "UPDATE sitemap.site SET slash_variants = true WHERE slash_variants IS NULL",
    "DELETE FROM sitemap.route WHERE id IS NULL OR path IS NULL OR site IS NULL",
    "DELETE FROM sitemap.route WHERE site NOT IN (SELECT id FROM sitemap.site)",
    "UPDATE sitemap.route SET pages = 0",
    "DELETE FROM sitemap.document WHERE site IS NULL OR name IS NULL OR etag IS NULL OR first_served IS NULL",
    "DELETE FROM sitemap.record WHERE site IS NULL OR name IS NULL OR value IS NULL",
    "DELETE FROM sitemap.lease",
)
_SELECT_NEXT_PAGES: Final = "SELECT id, path, route, data FROM sitemap.page WHERE id > %s ORDER BY id LIMIT %s"
_UPDATE_DERIVED_COLUMNS: Final = (
    "UPDATE sitemap.page SET path_hash = new.path_hash, last_seen = new.last_seen, listable = new.listable"
    " FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::boolean[])"
    " AS new (id, path_hash, last_seen, listable)"
    " WHERE page.id = new.id AND (page.path_hash IS DISTINCT FROM new.path_hash"
    " OR page.last_seen IS DISTINCT FROM new.last_seen OR page.listable IS DISTINCT FROM new.listable)"
)


def is_damage(error: BaseException) -> bool:
    """Whether an error will persist until the schema is repaired."""
    return isinstance(error, _VALUE_ERRORS + STRUCTURE_ERRORS) and not isinstance(error, TooLargeError | SchemaError)


def rebuild_tables(session: Session, schema: str) -> None:
    """Drop and create the tables, within a transaction.

    If only the version is lost, it is written again. If tables are damaged that no other refers to, only these are
    created again.
    """
    columns = select_columns(session, schema)
    damaged = [table for table in _INDEPENDENT_TABLES if not columns_of(table) <= columns]
    lost = () if damaged or is_complete(columns) else CREATE_TABLE
    for table in damaged:
        session(f"DROP TABLE IF EXISTS sitemap.{table} CASCADE; {CREATE_TABLE[table]}")
    for table in lost:
        session(f"DROP TABLE IF EXISTS sitemap.{table} CASCADE")
    create_schema(session, schema)


def repair(session: Session) -> int:
    """Delete rows that cannot be read and rebuild what is derived from the others, within a transaction.

    Returns how many pages were deleted.
    """
    create_schema(session, session.schema)
    for statement in _DELETE_UNREADABLE_ROWS:
        session(statement)
    sites = {
        number: (key.decode(), version) for number, key, version in session("SELECT id, key, version FROM sitemap.site")
    }
    documents: dict[int, dict[int, int]] = {number: {} for number in sites}
    for site, block, document in session("SELECT site, number, document FROM sitemap.block"):
        if None not in (site, block, document):
            documents.get(site, {})[block] = document
    rebuilt = {number: RebuiltSite[int](key, documents[number]) for number, (key, _) in sites.items()}
    deleted = _check_pages(session, rebuilt)
    session("DELETE FROM sitemap.block")
    for number, site in rebuilt.items():
        version = next_version(sites[number][1])
        session("UPDATE sitemap.site SET version = %s WHERE id = %s", (version, number))
        for route, pages in site.routes.items():
            session("UPDATE sitemap.route SET pages = %s WHERE id = %s", (pages, route))
        for block in site.blocks():
            session("INSERT INTO sitemap.block VALUES (%s, %s, %s, %s, %s, %s, %s)", (number, *block, version))
    return deleted


def _check_pages(session: Session, sites: dict[int, RebuiltSite[int]]) -> int:
    """Delete pages that cannot be read, and count the others into their sites. Returns how many were deleted."""
    routes: dict[int, tuple[int, str]] = {}
    for number, site, path_bytes in session("SELECT id, site, path FROM sitemap.route"):
        try:
            routes[number] = site, path_bytes.decode()
        except ValueError:
            session("DELETE FROM sitemap.route WHERE id = %s", (number,))
    deleted, last = 0, -1
    known_hashes: set[tuple[int, int]] = set()
    while rows := session(_SELECT_NEXT_PAGES, (last, BATCH_PAGES)):
        last = rows[-1][0]
        bad: list[int] = []
        good: list[tuple[Any, ...]] = []
        for row, path_bytes, route, data in rows:
            site = site_of_row(row)
            try:
                site_of_route, route_path = routes[route]
                path = path_bytes.decode()
                page = unpack_page(path, route_path, data)
                path_hash = path_hashes(site, (path,))[path]
                rebuilt = sites[site]
            except (LookupError, TypeError, ValueError, AttributeError):
                bad.append(row)
                continue
            if (
                site_of_route != site
                or (site, path_hash) in known_hashes
                or page.learned is not (block_of_row(row) != UNLEARNED_BLOCK)
            ):
                bad.append(row)
                continue
            known_hashes.add((site, path_hash))
            rebuilt.add(block_of_row(row), position_of_row(row), path, route)
            good.append((row, path_hash, page.last_seen, is_listable(page)))
        session("DELETE FROM sitemap.page WHERE id = ANY(%b::bigint[])", (bad,))
        if good:
            session(_UPDATE_DERIVED_COLUMNS, row_columns(good))
        deleted += len(bad)
    return deleted
