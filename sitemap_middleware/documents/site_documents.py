"""The documents of one site: which there are, and those in memory."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Collection
from contextlib import suppress
from typing import Final, NamedTuple

from ..exceptions import StoreError
from ..http.urls import quote_path
from ..options.table import Options
from ..routing.route_table import LEARNED_SECTION, ROUTES_SECTION
from .document import Document, fit_together, joined, sitemapindex
from .parts import Part, Saver

MAX_CACHE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of compressed documents that are kept in memory for one site."""

_ROOT_RECORD: Final = "documents"
"""The name of the record that dates the sitemap itself: its ETag, and since when it has it."""


class MissingXMLError(StoreError):
    """The store does not have the XML of a document as it was listed. The next refresh finds or renders another."""


class DocumentPaths:
    """Which paths are those of documents, whether they exist or not."""

    def __init__(self, options: Options) -> None:
        self._root = options.path
        self._stem = options.path.removesuffix(".xml")
        self._part = re.compile(re.escape(self._stem) + r"-(([A-Za-z0-9_.~-]+?)(-[1-9][0-9]{0,4})?)\.xml")
        self._section_names = frozenset(provider.section for provider in options.sections)

    def may_have(self, path: str) -> bool:
        """Whether a path could be that of a document, whatever the names of the sections are."""
        return path.startswith(self._stem) and (path == self._root or self._part.fullmatch(path) is not None)

    def have(self, path: str, provider_names: Collection[str]) -> bool:
        """Whether a path is that of a document, given the names of the providers' sections."""
        if not path.startswith(self._stem):
            return False
        part = self._part.fullmatch(path)
        if part is None or part[3] is None:  # only the first document of a named section has no number
            return path == self._root or (part is not None and part[2] in self._section_names)
        return part[2] in (ROUTES_SECTION, LEARNED_SECTION, *provider_names)


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


class _Listed(NamedTuple):
    """A document that has entries, and the part that it belongs to."""

    document: Document
    part_name: str
    part: Part
    number: int
    """Of the document within its part."""


class _Root(NamedTuple):
    """The sitemap itself: an index, or the entries of all parts."""

    sources: tuple[object, ...]
    """What it was made from. While this stays the same, so does the document."""
    document: Document
    is_index: bool


class SiteDocuments:
    """The documents of one site, made of its parts. The first one is the sitemap itself."""

    def __init__(self, path: str) -> None:
        """`path`: of the sitemap itself, decoded."""
        self._path = path
        self._stem = path.removesuffix(".xml")
        self._url_stem = quote_path(self._stem) or ""
        self.listed: dict[str, _Listed] = {}
        """The documents of all parts, by name, in their order."""
        self._is_single = False
        """Whether one document has the entries of all parts."""
        self._root: _Root | None = None
        self._xml: OrderedDict[str, Document] = OrderedDict()
        """Documents of parts with their XML, by name: those that were requested last."""

    def replace_parts(self, parts: dict[str, Part], *, may_be_single: bool) -> None:
        """Take the parts as they are now, by name, and drop from memory the documents that are not as they were.

        They would be served as the last good ones when the store fails, with pages that have been removed.
        """
        self.listed = {
            document.name: _Listed(document, name, part, number)
            for name, part in parts.items()
            for number, document in enumerate(part.documents)
        }
        documents = [item.document for item in self.listed.values()]
        self._is_single = may_be_single and fit_together(documents)
        for name, document in list(self._xml.items()):
            if name not in self.listed or self.listed[name].document.etag != document.etag:
                del self._xml[name]
        root = self._root
        # An index of earlier documents names no page, so it may be served again if the store fails.
        if root is not None and (not self.listed or (not root.is_index and root.sources != self._sources())):
            self._root = None

    def in_memory(self, path: str) -> Document | None:
        """The document of a path as it was last assembled; None if there is none. Waits for nothing."""
        root = self._root
        if path == self._path or root is None:
            return None if root is None else root.document
        return self._xml.get(self._name_of(path)) if root.is_index else None

    def has(self, path: str) -> bool:
        """Whether there is a document of a path."""
        if path == self._path:
            return bool(self.listed)
        return not self._is_single and self._name_of(path) in self.listed

    def find(self, path: str, saver: Saver, now: int) -> Document | None:
        """The document of a path; None if the sitemap has none of this path.

        Args:
            path: decoded.
            saver: where the documents of parts are.
            now: POSIX seconds.

        Raises:
            MissingXMLError: the store has lost the XML of a document, or has that of a newer one.
            StoreError: the store fails.
        """
        if path == self._path:
            return self._find_root(saver, now) if self.listed else None
        item = self.listed.get(self._name_of(path))
        if item is None or self._is_single:
            return None
        self._find_root(saver, now)  # from now on, whatever is in memory is named by it
        return self._with_xml(saver, item)

    def entry_count(self) -> int:
        """The number of entries in all documents."""
        return sum(item.document.entries for item in list(self.listed.values()))

    def count(self) -> int:
        """The number of documents, an index included."""
        if not self.listed:
            return 0
        return 1 if self._is_single else 1 + len(self.listed)

    def published(self) -> list[PublishedDocument]:
        """All documents, the index first if there is one. No data are loaded for that."""
        root = self._root
        if root is None or not self.listed:
            return []
        documents = [(f"{self._url_stem}.xml", root.document)]
        if root.is_index:
            documents += [(f"{self._url_stem}-{name}.xml", item.document) for name, item in self.listed.items()]
        return [
            PublishedDocument(path, found.entries, found.lastmod, found.size, found.gzipped_size, is_index)
            for number, (path, found) in enumerate(documents)
            for is_index in [number == 0 and root.is_index]
        ]

    def _name_of(self, path: str) -> str:
        return path.removeprefix(f"{self._stem}-").removesuffix(".xml")

    def _sources(self) -> tuple[object, ...]:
        return self._is_single, *(
            (name, item.document.etag, item.document.lastmod) for name, item in self.listed.items()
        )

    def _find_root(self, saver: Saver, now: int) -> Document:
        """The sitemap itself: the entries of all parts if they fit into one document, else an index."""
        sources = self._sources()
        if self._root is None or self._root.sources != sources:
            items = list(self.listed.values())
            if self._is_single:
                document = joined([self._with_xml(saver, item) for item in items])
            else:
                stem = f"{saver.owner}{self._url_stem}"
                document = sitemapindex((f"{stem}-{item.document.name}.xml", item.document.lastmod) for item in items)
            self._root = _Root(sources, _dated(saver, document, now), is_index=not self._is_single)
        return self._root.document

    def _with_xml(self, saver: Saver, item: _Listed) -> Document:
        """A document with its XML."""
        name = item.document.name
        if item.document.gzipped:  # that of static routes, which is not in the store
            self._xml[name] = item.document
        elif name not in self._xml:
            document = saver.load_document(item.part_name, item.part, item.number)
            if document is None:
                saver.forget_if_same(item.part_name, item.part)
                raise MissingXMLError(f"the XML of {name} is missing from the store; it is rendered again")
            self._xml[name] = document
            size = sum(kept.gzipped_size for kept in self._xml.values())
            while size > MAX_CACHE_BYTES and len(self._xml) > 1:
                size -= self._xml.popitem(last=False)[1].gzipped_size
        self._xml.move_to_end(name)
        return self._xml[name]


def _dated(saver: Saver, document: Document, now: int) -> Document:
    """The sitemap itself with its date, which all workers share through the store."""
    known = None
    with suppress(ValueError, TypeError):
        etag, since = json.loads(saver.store.load(saver.owner, [_ROOT_RECORD]).get(_ROOT_RECORD, b""))
        known = document._replace(etag=str(etag), since=int(since))
    dated = document.with_date(known, now)
    if known is None or known.etag != dated.etag:
        saver.store.save(saver.owner, {_ROOT_RECORD: json.dumps([dated.etag, dated.since]).encode()})
    return dated
