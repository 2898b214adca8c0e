"""The repair of a damaged schema: what can be read stays, all else is dropped, and is learned again."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from psycopg import errors

from ...evidence.verdict import is_listable
from ..base import UNLEARNED_BLOCK
from ..page_codec import TooLargeError, unpack_page
from ..rebuild import RebuiltSite
from ..row_ids import MAX_NUMBER, block_of_row, path_hashes, position_of_row, site_of_row
from ..version_numbers import next_version
from .batches import row_columns
from .pages import Session
from .schema import SCHEMA_MIGRATIONS, SchemaError, columns_there, create_or_migrate, is_whole

BATCH_PAGES: Final = 2000
"""Pages that are looked at together."""

TABLE_NAMES: Final = ("site", "route", "page", "block", "document", "thing", "lease", "sitemap_version")

_INDEPENDENT_TABLES: Final = {
    "document": ("since", "site", "name", "etag"),
    "thing": ("site", "name", "value"),
    "lease": ("until", "site", "name", "owner"),
}
"""Tables on which no other rests."""

STRUCTURE_ERRORS: Final = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.InvalidColumnReference,
    errors.DatatypeMismatch,
    errors.UndefinedFunction,
)
"""Tables, columns or keys are not as they should be."""

_DAMAGE_ERRORS: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    errors.IntegrityError,
    errors.NumericValueOutOfRange,
)

_REPAIR_STATEMENTS: Final = (
    f"DELETE FROM sitemap.site WHERE id IS NULL OR key IS NULL OR id NOT BETWEEN 1 AND {MAX_NUMBER - 1}",  # noqa: S608
    "UPDATE sitemap.site SET version = 0 WHERE version IS NULL OR version < 0",
    "UPDATE sitemap.site SET twins = true WHERE twins IS NULL",
    "DELETE FROM sitemap.route WHERE id IS NULL OR path IS NULL OR site IS NULL",
    "DELETE FROM sitemap.route WHERE site NOT IN (SELECT id FROM sitemap.site)",
    "UPDATE sitemap.route SET pages = 0",
    "DELETE FROM sitemap.document WHERE site IS NULL OR name IS NULL OR etag IS NULL OR since IS NULL",
    "DELETE FROM sitemap.thing WHERE site IS NULL OR name IS NULL OR value IS NULL",
    "DELETE FROM sitemap.lease",
)


def is_damage(error: BaseException) -> bool:
    """Whether a call failed in a way in which it may fail as long as nobody mends what is stored."""
    return isinstance(error, _DAMAGE_ERRORS + STRUCTURE_ERRORS) and not isinstance(error, TooLargeError | SchemaError)


def rebuild_tables(session: Session, schema: str) -> None:
    """Make all tables anew, within a transaction, or those alone that are not as this code has made them, if few rest
    on them.
    """
    there = columns_there(session, schema)
    if ("sitemap_version", "version") not in there and is_whole(there):
        create_or_migrate(session, schema)
        return
    beside = {
        table: names for table, names in _INDEPENDENT_TABLES.items() if not {(table, name) for name in names} <= there
    }
    for table in beside or TABLE_NAMES:
        session(f"DROP TABLE IF EXISTS sitemap.{table} CASCADE")
    if not beside:
        create_or_migrate(session, schema)
        return
    for statement in chain.from_iterable(SCHEMA_MIGRATIONS):
        if any(f"TABLE sitemap.{table} " in statement for table in beside):
            session(statement)


def repair(session: Session) -> int:
    """Drop what cannot be read, and count all else anew, within a transaction. Returns how many pages were dropped."""
    create_or_migrate(session, session.schema)
    for statement in _REPAIR_STATEMENTS:
        session(statement)
    rows = session("SELECT id, key, version FROM sitemap.site")
    sites = {number: (key.decode(), version) for number, key, version in rows}
    documents: dict[int, dict[int, int]] = {number: {} for number in sites}
    for site, number, document in session("SELECT site, number, document FROM sitemap.block"):
        if None not in (site, number, document):
            documents.get(site, {})[number] = document
    rebuilt = {number: RebuiltSite[int](key, documents[number]) for number, (key, _) in sites.items()}
    dropped = _check_pages(session, rebuilt)
    session("DELETE FROM sitemap.block")
    for number, site in rebuilt.items():
        version = next_version(sites[number][1])
        session("UPDATE sitemap.site SET version = %s WHERE id = %s", (version, number))
        for route, pages in site.routes.items():
            session("UPDATE sitemap.route SET pages = %s WHERE id = %s", (pages, route))
        for block in site.blocks():
            session("INSERT INTO sitemap.block VALUES (%s, %s, %s, %s, %s, %s, %s)", (number, *block, version))
    return dropped


def _check_pages(session: Session, sites: dict[int, RebuiltSite[int]]) -> int:
    routes: dict[int, tuple[int, str]] = {}
    for number, site, raw in session("SELECT id, site, path FROM sitemap.route"):
        try:
            routes[number] = site, raw.decode()
        except ValueError:
            session("DELETE FROM sitemap.route WHERE id = %s", (number,))
    dropped, last = 0, -1
    query = "SELECT id, mark, path, route, facts FROM sitemap.page WHERE id > %s ORDER BY id LIMIT %s"
    seen: set[tuple[int, int]] = set()
    while rows := session(query, (last, BATCH_PAGES)):
        last = rows[-1][0]
        bad: list[int] = []
        good: list[tuple[Any, ...]] = []
        for row, _, raw, route, facts in rows:
            site = site_of_row(row)
            try:
                of, route_path = routes[route]
                path = raw.decode()
                page = unpack_page(path, route_path, facts)
                mark = path_hashes(site, (path,))[path]
                rebuilt = sites[site]
            except (LookupError, TypeError, ValueError, AttributeError):
                bad.append(row)
                continue
            if of != site or (site, mark) in seen or page.learned is not (block_of_row(row) != UNLEARNED_BLOCK):
                bad.append(row)
                continue
            seen.add((site, mark))
            rebuilt.add(block_of_row(row), position_of_row(row), path, route)
            good.append((row, mark, page.last_seen, is_listable(page)))
        session("DELETE FROM sitemap.page WHERE id = ANY(%b::bigint[])", (bad,))
        if good:
            session(
                "UPDATE sitemap.page SET mark = new.mark, last_seen = new.last_seen, promising = new.promising"
                " FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::boolean[])"
                " AS new (id, mark, last_seen, promising)"
                " WHERE page.id = new.id AND (page.mark IS DISTINCT FROM new.mark"
                " OR page.last_seen IS DISTINCT FROM new.last_seen OR page.promising IS DISTINCT FROM new.promising)",
                row_columns(good),
            )
        dropped += len(bad)
    return dropped
