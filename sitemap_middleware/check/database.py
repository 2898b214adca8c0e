"""Keeps all documents and URLs of one run in a temporary SQLite database, so that memory stays the same.

It has the versions in other languages, too. The pages of a cluster usually name the same versions, so these are kept
once for a cluster, and not for each page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from types import TracebackType
from typing import Final, NamedTuple, Self

from .findings import Place

_SCHEMA: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, url TEXT UNIQUE, parent INTEGER, depth INTEGER, latest REAL
);
CREATE TABLE urls (
    id INTEGER PRIMARY KEY, loc TEXT, key INTEGER, page INTEGER, document INTEGER, line INTEGER, extended INTEGER,
    lastmod TEXT, cluster INTEGER
);
CREATE TABLE versions (cluster INTEGER, page INTEGER, url TEXT, PRIMARY KEY (cluster, page)) WITHOUT ROWID;
BEGIN;
"""
_INSERT_URL: Final = """
INSERT INTO urls (loc, key, page, document, line, extended, lastmod, cluster) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_URLS: Final = """
SELECT loc, documents.url, urls.line, extended, lastmod FROM urls JOIN documents ON documents.id = urls.document
"""
_PAGES: Final = "CREATE TABLE IF NOT EXISTS pages AS SELECT min(id) AS id FROM urls GROUP BY page ORDER BY min(id)"
_CLUSTERS_WITHOUT_RETURN: Final = """
SELECT DISTINCT versions.cluster, other.page, other.loc, other.cluster
FROM versions JOIN urls AS other ON other.page = versions.page
WHERE other.cluster IS NOT versions.cluster
"""
_PAGES_NOT_NAMED: Final = f"""
{_URLS} WHERE cluster = ? AND page != ? AND NOT EXISTS (
    SELECT 1 FROM versions WHERE versions.cluster = ? AND versions.page = urls.page
)
"""  # noqa: S608 (of this module)
_NOT_LISTED: Final = """
SELECT urls.loc, documents.url, urls.line, extended, lastmod, versions.url
FROM versions JOIN urls ON urls.cluster = versions.cluster JOIN documents ON documents.id = urls.document
WHERE NOT EXISTS (SELECT 1 FROM urls AS other WHERE other.page = versions.page)
GROUP BY versions.url
"""


class DocumentRow(NamedTuple):
    """A document that is to be read."""

    id: int
    url: str
    parent: int
    """The id of the index that names it. 0 for the first."""
    depth: int
    """How many indexes lead to it."""
    index_latest: float | None
    """The last moment that its date in the index may mean."""


class UrlRow(NamedTuple):
    """A URL that a document lists."""

    loc: str
    document: str
    """The URL or the path of the document."""
    line: int
    is_extended: bool
    """Whether its entry has images, videos or news."""
    lastmod: str
    """As written."""

    @property
    def place(self) -> Place:
        """Where it is listed."""
        return Place(self.document, self.line)


class UrlDatabase:
    """The documents and the URLs of one run. It is a context manager, and not for several threads."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # a file of its own, once its cache is full
        self._database.executescript(_SCHEMA)
        self._last_document = self._complete = 0
        self._first = self._first_location = ""
        self._has_versions = False
        self.other_names: int = 0
        """How many of the documents are other names of further ones."""
        self.url_count: int = 0
        """How many URLs were added."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    # Documents

    def add_first(self, name: str, location: str | None) -> None:
        """Add a document with which a run begins. `location` is the URL at which it is served, or None if not known."""
        if not self._first:
            self._first, self._first_location = name, location or name
        self.add_document(name)

    def add_document(self, url: str, parent: DocumentRow | None = None, latest: float | None = None) -> str | None:
        """Add a document, to be read later. Return the code of the mistake if the index should not name it.

        Args:
            url: its URL, or its path for the first one of files.
            parent: the index that names it.
            latest: the last moment that its date in the index may mean.
        """
        if url == self._first_location:
            url = self._first
        if parent is not None and url == parent.url:
            return "index-itself"
        added = self._database.execute(
            "INSERT OR IGNORE INTO documents (url, parent, depth, latest) VALUES (?, ?, ?, ?)",
            (url, parent.id if parent else 0, parent.depth + 1 if parent else 0, latest),
        )
        if added.rowcount:
            return None
        while parent is not None:
            if parent.url == url:
                return "index-loop"
            parent = self._document(parent.parent)
        return "index-duplicate"

    def _document(self, number: int) -> DocumentRow | None:
        row = self._database.execute("SELECT * FROM documents WHERE id = ?", (number,)).fetchone()
        return DocumentRow(*row) if row else None

    def position(self, url: str) -> int:
        """Return the position of a document in the order in which they were added; 0 if it is none of them."""
        row = self._database.execute("SELECT id FROM documents WHERE url = ?", (url,)).fetchone()
        return row[0] if row else 0

    def next_document(self) -> DocumentRow | None:
        """Return the next document that is to be read, in the order in which they were added."""
        row = self._document(self._last_document + 1)
        if row is not None:
            self._last_document = row.id
        return row

    def completed(self, *, is_other_name: bool = False) -> None:
        """Say that a document was read to its end, or that it is another name of one that is read."""
        self._complete += 1
        self.other_names += is_other_name

    @property
    def is_complete(self) -> bool:
        """Whether all documents were read to their end."""
        return self._complete == self.document_count

    @property
    def document_count(self) -> int:
        """How many documents were added."""
        return int(self._database.execute("SELECT count(*) FROM documents").fetchone()[0])

    # URLs

    def add_url(
        self,
        loc: str,
        *,
        key: str,
        page: str,
        document: int,
        line: int,
        is_extended: bool = False,
        lastmod: str = "",
        versions: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Add a URL.

        Args:
            loc: the URL as written.
            key: groups URLs that may be one page.
            page: identifies the page: URLs with equal text here are one page.
            document: the id of the document that lists it.
            line: its line there.
            is_extended: whether its entry has images, videos or news.
            lastmod: its date as written.
            versions: its versions in other languages, as pairs of a code and a URL like `page`.
        """
        cluster = self._add_versions(versions) if versions else None
        row = (loc, hash(key), hash(page), document, line, is_extended, lastmod, cluster)
        self._database.execute(_INSERT_URL, row)
        self.url_count += 1

    def _add_versions(self, versions: Sequence[tuple[str, str]]) -> int:
        """Add the versions that a page names, once for all pages that name the same. Return the id of the cluster."""
        self._has_versions = True
        cluster = hash(frozenset(versions))
        known = self._database.execute("SELECT 1 FROM versions WHERE cluster = ? LIMIT 1", (cluster,))
        if known.fetchone() is None:
            rows = [(cluster, hash(url), url) for _, url in versions]
            self._database.executemany("INSERT OR IGNORE INTO versions VALUES (?, ?, ?)", rows)
        return cluster

    def all_urls(self) -> Iterator[UrlRow]:
        """Return each URL, in the order of the documents."""
        yield from self._select(f"{_URLS} ORDER BY urls.id")

    def unique_urls(self, most: int | None = None) -> tuple[Iterator[UrlRow], int]:
        """Return each page once, or so many of them, and how many that are, in the order of the documents.

        Those are spread evenly over all, and the first page is one of them.
        """
        self._index("page")
        self._database.execute(_PAGES)
        total = int(self._database.execute("SELECT count(*) FROM pages").fetchone()[0])
        most = total if most is None else min(most, total)
        chosen = f"{_URLS} JOIN pages ON pages.id = urls.id WHERE (pages.rowid - 1) * ? % ? < ? ORDER BY urls.id"
        return self._select(chosen, most, total, most), most

    def missing(self, urls: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield those of these URLs that no document lists.

        Args:
            urls: pairs of a URL and its text like `page` of `add_url`.
        """
        self._index("page")
        for url, page in urls:
            if self._database.execute("SELECT 1 FROM urls WHERE page = ? LIMIT 1", (hash(page),)).fetchone() is None:
                yield url

    def similar_urls(self) -> Iterator[UrlRow]:
        """Return the URLs that share their key with another one, those of one key after each other."""
        self._index("key")
        repeated = "SELECT key FROM urls GROUP BY key HAVING count(*) > 1"
        yield from self._select(f"{_URLS} WHERE key IN ({repeated}) ORDER BY key, urls.id")

    def without_return(self) -> Iterator[tuple[UrlRow, str]]:
        """Return the pages that name a version which is listed, and does not name them, each with that version."""
        if not self._has_versions:
            return
        self._index("page")
        self._index("cluster")
        with closing(self._database.execute(_CLUSTERS_WITHOUT_RETURN)) as rows:
            for cluster, page, version, other in rows:
                for row in self._select(_PAGES_NOT_NAMED, cluster, page, other):
                    yield row, version

    def versions_not_listed(self) -> Iterator[tuple[UrlRow, str]]:
        """Return the versions that no document lists, each once, with a page that names it."""
        if not self._has_versions:
            return
        self._index("page")
        self._index("cluster")
        with closing(self._database.execute(_NOT_LISTED)) as rows:
            for *row, version in rows:
                yield UrlRow(*row), version

    def _index(self, column: str) -> None:
        """Make the index that a query needs, once all URLs were added."""
        self._database.execute(f"CREATE INDEX IF NOT EXISTS by_{column} ON urls ({column})")

    def _select(self, query: str, *values: int) -> Iterator[UrlRow]:
        with closing(self._database.execute(query, values)) as rows:
            yield from map(UrlRow._make, rows)
