"""Keeps which pages name which others by hreflang, in the database of a run, and finds missing return links.

The pages of a cluster usually name the same versions, so the versions are kept once a cluster, and not at each page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

_SCHEMA: Final = """
CREATE TABLE versions (cluster INTEGER, page INTEGER, url TEXT, PRIMARY KEY (cluster, page)) WITHOUT ROWID;
"""
_CLUSTERS_WITHOUT_RETURN: Final = """
SELECT DISTINCT versions.cluster, other.page, other.loc, other.cluster
FROM versions JOIN urls AS other ON other.page = versions.page
WHERE other.cluster IS NOT versions.cluster
"""
_PAGES_NOT_NAMED: Final = """
SELECT loc, document, line FROM urls WHERE cluster = ? AND page != ? AND NOT EXISTS (
    SELECT 1 FROM versions WHERE versions.cluster = ? AND versions.page = urls.page
)
"""
_NOT_LISTED: Final = """
SELECT urls.loc, urls.document, urls.line, versions.url
FROM versions JOIN urls ON urls.cluster = versions.cluster
WHERE NOT EXISTS (SELECT 1 FROM urls AS other WHERE other.page = versions.page)
GROUP BY versions.url
"""

_MAX_RECENT: Final = 10_000
_BATCH: Final = 1_000


class VersionPair(NamedTuple):
    """A page, and a version that it names."""

    loc: str
    document: int
    line: int
    version: str


class HreflangLinks:
    """The versions that pages name. Its database is that of the run, with the table `urls`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._database.executescript(_SCHEMA)
        self._pages = 0
        self._recent = set[int]()
        """Clusters that were added recently. The pages of a cluster often follow each other."""
        self._pending: list[tuple[int, int, str]] = []

    def add(self, versions: Sequence[tuple[str, str]]) -> int:
        """Add what one page names, as pairs of a code and a URL. Return the id of the cluster."""
        self._pages += 1
        cluster = hash(frozenset(versions))
        if cluster in self._recent:
            return cluster
        if len(self._recent) >= _MAX_RECENT:
            self._recent.clear()
        self._recent.add(cluster)
        self._pending += [(cluster, hash(url), url) for _, url in versions]
        if len(self._pending) >= _BATCH:
            self._write()
        return cluster

    def _write(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT OR IGNORE INTO versions VALUES (?, ?, ?)", self._pending)
        self._database.execute("COMMIT")
        self._pending.clear()

    def pairs_without_return(self) -> Iterator[VersionPair]:
        """Return the pages that name a version which is listed, and does not name them."""
        if not self._prepare():
            return
        with closing(self._database.execute(_CLUSTERS_WITHOUT_RETURN)) as rows:
            for cluster, page, version, other in rows:
                with closing(self._database.execute(_PAGES_NOT_NAMED, (cluster, page, other))) as pages:
                    for loc, document, line in pages:
                        yield VersionPair(loc, document, line, version)

    def not_listed(self) -> Iterator[VersionPair]:
        """Return the versions that no document lists, each once, with a page that names it."""
        if not self._prepare():
            return
        with closing(self._database.execute(_NOT_LISTED)) as rows:
            for row in rows:
                yield VersionPair(*row)

    def _prepare(self) -> bool:
        """Make the indexes that the queries need. Return whether there is anything to look for."""
        self._write()
        if self._pages:
            self._database.execute("CREATE INDEX IF NOT EXISTS by_page ON urls (page)")
            self._database.execute("CREATE INDEX IF NOT EXISTS by_cluster ON urls (cluster)")
        return self._pages > 0
