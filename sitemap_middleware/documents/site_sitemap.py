"""The documents of the sitemap of one site as they were last made: some of them, with their XML, in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, Final

from ..http.urls import quote_path
from ..listing.site_signals_cache import Parts
from ..models import BaseURL
from ..stores.breaker import GuardedStore
from .language_links import LINKED
from .rendered_parts import Part, SavedParts
from .xml import Document, fit_together, joined, sitemapindex

MAX_CACHE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of compressed documents that are kept in memory for one site."""


class SiteSitemap(SavedParts):
    """What is known of the sitemap of one site."""

    def __init__(self, store: GuardedStore, base_url: BaseURL, path: str, timer: Callable[[], float]) -> None:
        """`path`: of the sitemap itself, decoded."""
        super().__init__(store, base_url, timer)
        self.lock = threading.Lock()
        """Held while the documents are brought up to date."""
        self.states: Parts = {}
        """The parts of the site in the store, as they were last read."""
        self.parts: dict[str, Part] = {}
        """What was rendered last of each part, by its name."""
        self.jobs: dict[str, Future[Any]] = {}
        """What is done in the background: rendering, by the kind of the parts, and linking versions."""
        self.failing: dict[str, str] = {}
        """Why providers fail, by the name of the part. Each was logged, and costs the site its own pages only."""
        self.values_age = 0.0
        """The age in seconds of the oldest provider items when a request last needed them; 0 if there are none."""
        self.made_of: object = None
        """What the documents were made of when all were up to date; None if the next request must look at all parts."""
        self.made_at = 0.0
        self.fresh_seconds = 0.0
        """When that was found, and how long it holds: until the first part is to be rendered again."""
        self.checked: tuple[int, float] | None = None
        """The generation and the time when the documents were last found up to date."""
        self._path = path
        self._stem = path.removesuffix(".xml")
        self._listed: dict[str, Document] = {}
        """The documents of all parts, by the names in their URLs, in their order."""
        self._gone: tuple[Document, ...] = ()
        """Those of them that have the pages that are gone."""
        self._is_single = False
        """Whether one document has the entries of all parts."""
        self._root: Document | None = None
        """The sitemap itself: that document, or an index."""
        self._is_root_current = False
        self._xml: OrderedDict[str, Document] = OrderedDict()
        """Documents of parts with their XML, by name: those that were rendered or requested last."""

    def list_documents(self, parts: Collection[Part], gone: Part | None, *, may_be_single: bool) -> None:
        """List the documents of the parts as they are now, and that of the pages that are gone."""
        self._gone = () if gone is None else gone.documents
        listed = {_served_name(document): document for part in parts for document in part.documents}
        listed |= {_served_name(document): document for document in self._gone}
        is_single = may_be_single and fit_together([*listed.values()])
        if (listed, is_single) != (self._listed, self._is_single):
            self._listed, self._is_single, self._is_root_current = listed, is_single, False
        if not listed:
            self._root = None

    def in_memory(self, path: str) -> Document | None:
        """The document of a path as it was last served; None if there is none. Waits for nothing."""
        if path == self._path or self._root is None:
            return self._root
        listed = None if self._is_single else self._listed.get(self._name_of(path))
        document = None if listed is None else self._xml.get(listed.name)
        # One that is listed otherwise by now may have pages that were removed since.
        return document if document is not None and document.figures == listed else None

    def find(self, path: str) -> Document | None:
        """The document of a path; None if the sitemap has none of this path.

        Raises:
            MissingXMLError: the store has the XML of a newer document.
            StoreError: the store fails.
        """
        root = self._find_root() if self._listed else None
        if path == self._path:
            return root
        document = self._listed.get(self._name_of(path))
        return None if document is None or self._is_single else self._kept(document)

    def keep(self, document: Document) -> None:
        """Keep a document of a part, with its XML, in memory."""
        self._xml[document.name] = document
        self._xml.move_to_end(document.name)
        size = sum(kept.gzipped_size for kept in self._xml.values())
        while size > MAX_CACHE_BYTES and len(self._xml) > 1:
            size -= self._xml.popitem(last=False)[1].gzipped_size

    def documents(self) -> Mapping[str, Document]:
        """The documents by their percent-encoded paths, the sitemap itself first. If there are others, it is an index.

        Their XML may be missing.
        """
        if self._root is None:
            return {}
        parts = {} if self._is_single else self._listed
        stem = quote_path(self._stem)
        return {f"{stem}.xml": self._root, **{f"{stem}-{name}.xml": document for name, document in parts.items()}}

    def entry_count(self) -> int:
        """The number of listed pages in all documents."""
        return sum(document.entries for document in self._listed.values() if document not in self._gone)

    @property
    def is_linked(self) -> bool:
        """Whether pages are linked to their versions in other languages."""
        return any(document.name.startswith(LINKED) for document in self._listed.values())

    def _name_of(self, path: str) -> str:
        return path.removeprefix(f"{self._stem}-").removesuffix(".xml")

    def _find_root(self) -> Document:
        """The sitemap itself: the entries of all parts if they fit into one document, else an index."""
        if self._root is None or not self._is_root_current:
            documents = self._listed.values()
            if self._is_single:
                root = joined([self._kept(document) for document in documents])
            else:
                stem = f"{self.base_url}{quote_path(self._stem)}"
                root = sitemapindex((f"{stem}-{name}.xml", document.lastmod) for name, document in self._listed.items())
            newest = max(document.since for document in documents)
            self._root, self._is_root_current = root.with_date(self._root, newest), True
        return self._root

    def _kept(self, document: Document) -> Document:
        """A listed document with its XML."""
        kept = self._xml.get(document.name)
        if kept is None or kept.figures != document:
            kept = self.with_xml(document)
        self.keep(kept)
        return kept


def _served_name(document: Document) -> str:
    """The name of a document in its URL, without the prefix that it has in the store."""
    return document.name.rpartition("/")[2]
