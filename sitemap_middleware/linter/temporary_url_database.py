"""Keeps all documents and URLs of one run in a temporary SQLite database, so that memory stays the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from enum import Enum, auto
from types import TracebackType
from typing import Final, NamedTuple, Self

from .hreflang_links_database import HreflangLinks

_SCHEMA: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, url TEXT UNIQUE, parent INTEGER, depth INTEGER, latest REAL, line INTEGER
);
CREATE TABLE urls (
    id INTEGER PRIMARY KEY, loc TEXT, key INTEGER, page INTEGER, document INTEGER, line INTEGER, extended INTEGER,
    lastmod TEXT, cluster INTEGER
);
"""
_INSERT_URL: Final = """
INSERT INTO urls (loc, key, page, document, line, extended, lastmod, cluster) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_COLUMNS: Final = "loc, document, line, extended, lastmod"
_BATCH: Final = 1_000


class Addition(Enum):
    """What became of a document that an index names."""

    NEW = auto()
    ITSELF = auto()
    ANCESTOR = auto()
    """It names, directly or not, the index that names it."""
    REPEATED = auto()
    """It is named a second time."""


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
    line: int
    """Its line in the index."""


class UrlRow(NamedTuple):
    """A URL that a document lists."""

    loc: str
    document: int
    line: int
    extended: bool
    """Whether its entry has images, videos or news."""
    lastmod: str
    """As written."""


class UrlDatabase:
    """The documents and the URLs of one run. It is a context manager, and not for several threads."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # a file of its own, once its cache is full
        self._database.executescript(_SCHEMA)
        self._pending: list[tuple[str, int, int, int, int, bool, str, int | None]] = []
        self._versions = HreflangLinks(self._database)
        self._written = 0
        self._last_document = self._complete = 0
        self._first = self._first_location = ""

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

    def add_document(
        self, url: str, parent: DocumentRow | None = None, latest: float | None = None, line: int = 0
    ) -> Addition:
        """Add a document, to be read later.

        Args:
            url: its URL, or its path for the first one of files.
            parent: the index that names it.
            latest: the last moment that its date in the index may mean.
            line: its line in the index.
        """
        if url == self._first_location:
            url = self._first
        if parent is not None and url == parent.url:
            return Addition.ITSELF
        try:
            self._database.execute(
                "INSERT INTO documents (url, parent, depth, latest, line) VALUES (?, ?, ?, ?, ?)",
                (url, parent.id if parent else 0, parent.depth + 1 if parent else 0, latest, line),
            )
        except sqlite3.IntegrityError:
            return Addition.ANCESTOR if self._is_ancestor(url, parent) else Addition.REPEATED
        return Addition.NEW

    def _is_ancestor(self, url: str, document: DocumentRow | None) -> bool:
        while document is not None:
            if document.url == url:
                return True
            document = self.document(document.parent)
        return False

    def document(self, number: int) -> DocumentRow | None:
        """Return a document by its id."""
        row = self._database.execute("SELECT * FROM documents WHERE id = ?", (number,)).fetchone()
        return DocumentRow(*row) if row else None

    def position(self, url: str) -> int:
        """Return the position of a document in the order in which they were added; 0 if it is none of them."""
        row = self._database.execute("SELECT id FROM documents WHERE url = ?", (url,)).fetchone()
        return row[0] if row else 0

    def next_document(self) -> DocumentRow | None:
        """Return the next document that is to be read, in the order in which they were added."""
        row = self.document(self._last_document + 1)
        if row is not None:
            self._last_document = row.id
        return row

    def completed(self) -> None:
        """Say that a document was read to its end."""
        self._complete += 1

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
        extended: bool = False,
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
            extended: whether its entry has images, videos or news.
            lastmod: its date as written.
            versions: its versions in other languages, as pairs of a code and a URL like `page`.
        """
        cluster = self._versions.add(versions) if versions else None
        self._pending.append((loc, hash(key), hash(page), document, line, extended, lastmod, cluster))
        if len(self._pending) >= _BATCH:
            self._write()

    def _write(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(_INSERT_URL, self._pending)
        self._database.execute("COMMIT")
        self._written += len(self._pending)
        self._pending.clear()

    @property
    def versions(self) -> HreflangLinks:
        """The versions in other languages of all URLs."""
        self._write()
        return self._versions

    @property
    def url_count(self) -> int:
        """How many URLs were added."""
        return self._written + len(self._pending)

    def all_urls(self) -> Iterator[UrlRow]:
        """Return each URL, in the order of the documents."""
        yield from self._select("ORDER BY id")

    def unique_urls(self, every: int) -> Iterator[UrlRow]:
        """Return each URL, or every n-th, in the order of the documents. One that is listed again is left out."""
        self._write()
        self._database.execute("CREATE INDEX IF NOT EXISTS by_page ON urls (page)")
        yield from self._select(
            "WHERE id % ? = 0 AND NOT EXISTS"
            " (SELECT 1 FROM urls AS other WHERE other.page = urls.page AND other.id < urls.id AND other.id % ? = 0)"
            " ORDER BY id",
            every,
            every,
        )

    def missing(self, urls: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield those of these URLs that no document lists.

        Args:
            urls: pairs of a URL and its text like `page` of `add_url`.
        """
        self._write()
        self._database.execute("CREATE INDEX IF NOT EXISTS by_page ON urls (page)")
        for url, page in urls:
            if self._database.execute("SELECT 1 FROM urls WHERE page = ? LIMIT 1", (hash(page),)).fetchone() is None:
                yield url

    def similar_urls(self) -> Iterator[UrlRow]:
        """Return the URLs that share their key with another one, those of one key after each other."""
        self._write()
        self._database.execute("CREATE INDEX IF NOT EXISTS by_key ON urls (key)")
        yield from self._select(
            "WHERE key IN (SELECT key FROM urls GROUP BY key HAVING count(*) > ?) ORDER BY key, id", 1
        )

    def _select(self, condition: str, *values: int) -> Iterator[UrlRow]:
        self._write()
        with closing(self._database.execute(f"SELECT {_COLUMNS} FROM urls {condition}", values)) as rows:  # noqa: S608 (the condition is of this module)
            for loc, document, line, extended, lastmod in rows:
                yield UrlRow(loc, document, line, bool(extended), lastmod)
