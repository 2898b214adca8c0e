"""The documents of one site: assembled from those of its sections, and kept in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ..models import BaseURL
from ..options.table import Options
from ..routing.route_table import RouteTable
from ..stores.base import Store
from ..urls import quote_path
from .chunked_document import Chunk, Document, sitemapindex, urlset
from .chunking import group_chunks
from .responses import CachedDocument, Freshness
from .section import SectionDocument

MAX_CACHE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of compressed documents and of response bodies that are kept for one site."""


class PublishedDocument(NamedTuple):
    """One XML file of a sitemap, as figures."""

    path: str
    """Percent-encoded, below the root path."""
    entries: int
    """URLs; in an index, documents."""
    lastmod: str | None
    size: int
    """Bytes of plain XML."""
    gzipped_size: int
    """Bytes when gzipped."""
    is_index: bool = False


class SiteDocuments:
    """Assembles the documents of one site, and keeps those that were requested last."""

    def __init__(self, store: Store, options: Options, base: BaseURL) -> None:
        """`base`: the site's base URL."""
        self._store = store
        self._options = options
        self._base = base
        self._stem = options.path.removesuffix(".xml")
        self._url_stem = quote_path(self._stem) or ""
        self._cached: OrderedDict[str, CachedDocument] = OrderedDict()
        """Those in memory, by path."""
        self.of_sections: Sequence[SectionDocument] = ()
        """The documents of all sections, as they were last brought up to date; set by `replace_sections`."""

    def replace_sections(self, documents: Sequence[SectionDocument]) -> None:
        """Take the documents of all sections as they are now.

        Drop those in memory that no longer exist, and mark those whose pages have changed. Otherwise they would be
        served as the last good ones when the store fails, with pages that have been removed.
        """
        self.of_sections = documents
        existing = {document.name: document for document in documents if document.chunks or document.is_incomplete}
        contents: dict[str, Sequence[SectionDocument]] = {}
        if existing:
            contents[self._options.path] = documents
            if not _fits_one_document(documents):
                contents = {f"{self._stem}-{name}.xml": [document] for name, document in existing.items()}
                contents[self._options.path] = ()  # an index has no pages
        for path, cached in list(self._cached.items()):
            if path not in contents:
                self._cached.pop(path).expire()
                continue
            # An index of earlier documents names no page, so it may be served again.
            cached.is_superseded = not cached.is_index and cached.digests != _digests_of(contents[path])
            if cached.is_superseded:
                cached.expire()

    def cached(self, path: str) -> CachedDocument | None:
        """A document as it was last assembled, fresh or not."""
        return self._cached.get(path)

    def last_good(self, path: str) -> CachedDocument | None:
        """A document to serve if it cannot be assembled now: none whose pages are known to have changed since."""
        document = self._cached.get(path)
        return None if document is None or document.is_superseded else document

    def assemble(self, path: str, table: RouteTable, freshness: Freshness | None) -> CachedDocument | None:
        """Assemble the document of a path, unless that in memory consists of the same chunks; None if there is none.

        Args:
            path: of the document.
            table: the routes as they are now.
            freshness: of the document that is returned.

        Raises:
            StoreError: the store fails, or has lost data of a chunk.
        """
        documents: Sequence[SectionDocument] = self.of_sections
        is_single, index = _fits_one_document(documents), None
        if path != self._options.path:
            name = path.removeprefix(f"{self._stem}-").removesuffix(".xml")
            documents = [document for document in documents if document.name == name and not is_single]
        elif not is_single:
            index = self._index(documents)
        if not any(document.chunks or document.is_incomplete for document in documents):
            return None
        digests = _digests_of(documents) if index is None else (index.etag.encode(),)
        cached, now = self._cached.get(path), int(self._options.clock())
        if cached is None or cached.digests != digests:
            document = index or assemble(documents, self._store, self._base)
            since = self._store.served_since(self._base, path, document.etag, now)
            # It is later than now if the document replaced another one in that one's second: it has no date till then.
            cached = CachedDocument(document, since, self._options.max_age, digests, now, is_index=index is not None)
            self._put(path, cached)
        elif cached.dated_from is not None and cached.dated_from <= now:
            cached = cached.with_date()
            self._put(path, cached)
        else:
            self._cached.move_to_end(path)
        cached.mark_fresh(freshness, table)
        return cached

    def _put(self, path: str, document: CachedDocument) -> None:
        """Keep a document; drop those that were requested longest ago if all take too many bytes."""
        if (superseded := self._cached.get(path)) is not None:
            superseded.expire()
        self._cached[path] = document
        self._cached.move_to_end(path)
        size = sum(kept.memory_size for kept in self._cached.values())
        while size > MAX_CACHE_BYTES and len(self._cached) > 1:
            size -= self._cached.popitem(last=False)[1].memory_size

    def _index(self, documents: Sequence[SectionDocument]) -> Document:
        stem = f"{self._base}{self._url_stem}"
        return sitemapindex((f"{stem}-{document.name}.xml", document.lastmod) for document in documents)

    # Figures

    def entry_count(self) -> int:
        """The number of entries in all documents."""
        return sum(document.count for document in self.of_sections)

    def count(self) -> int:
        """The number of documents, an index included."""
        documents = self.of_sections
        if not documents:
            return 0
        return 1 if _fits_one_document(documents) else 1 + len(documents)

    def published(self) -> list[PublishedDocument]:
        """All documents, the index first if there is one. No data are loaded for that."""
        documents, stem = self.of_sections, self._url_stem
        if not documents:
            return []
        if _fits_one_document(documents):
            return [_published(f"{stem}.xml", urlset([*_chunks_of(documents)]))]
        return [
            _published(f"{stem}.xml", self._index(documents), is_index=True),
            *(_published(f"{stem}-{document.name}.xml", urlset(document.chunks)) for document in documents),
        ]


def _fits_one_document(documents: Sequence[SectionDocument]) -> bool:
    """Whether one document can hold all entries, all are rendered, and no section has a name."""
    if any(document.is_named or document.is_incomplete for document in documents):
        return False
    return len(list(islice(group_chunks(_chunks_of(documents)), 2))) < 2


def assemble(documents: Sequence[SectionDocument], store: Store, base: BaseURL) -> Document:
    """The one document of all entries of these documents. `StoreError` as in `SectionDocument.load_chunks`."""
    return urlset([chunk for document in documents for chunk in document.load_chunks(store, base)])


def _chunks_of(documents: Sequence[SectionDocument]) -> Iterator[Chunk]:
    return (chunk for document in documents for chunk in document.chunks)


def _digests_of(documents: Sequence[SectionDocument]) -> tuple[bytes, ...]:
    return tuple(chunk.digest for chunk in _chunks_of(documents))


def _published(path: str, document: Document, *, is_index: bool = False) -> PublishedDocument:
    return PublishedDocument(path, document.count, document.lastmod, document.size, document.gzipped_size, is_index)
