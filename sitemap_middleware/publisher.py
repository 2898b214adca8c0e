"""The publisher: the documents of a site, made when something changed and kept until then."""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from gzip import compress
from typing import Final

from . import document
from .candidates import State
from .catalog import Catalog
from .document import Document
from .errors import StoreError, ValuesError
from .forks import renew_in_children
from .location import quote_path
from .model import Drain, Site
from .options import Options
from .robots import Rules
from .stores.base import Store
from .urlmap import RouteTable

log = logging.getLogger("sitemap_middleware")

MAX_SITES: Final = 64
"""Sites whose documents are kept in memory at one time."""

WAIT: Final = 1.0
"""Seconds to wait for documents that are being made, where there are earlier ones to serve."""

LONG_WAIT: Final = 10.0
"""The same, where there are none."""


_WHY: Final = {"store": "its store does not answer", "values": "the app fails to enumerate its pages"}
_WORKS: Final = {"store": "store works", "values": "values can be had"}


@dataclass(slots=True)
class _Edition:
    """The documents of one site as they were made at one moment."""

    table: RouteTable
    rules: Rules
    version: int
    made: float
    documents: list[Document]
    index: Document | None
    packed: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """A document and all that is needed to serve it."""

    document: Document
    packed: bytes
    since: int | None


class Unavailable(Exception):
    """The store does not answer, or the app's own values fail, and there is no earlier document to serve."""


class Publisher:
    """Makes documents, keeps the last good ones, and knows since when each has been what it is."""

    def __init__(self, catalog: Catalog, store: Store, options: Options) -> None:
        self._catalog = catalog
        self._store = store
        self._path = options.path
        self._max_age = options.max_age
        self._clock = options.clock
        self._editions: OrderedDict[str, _Edition] = OrderedDict()
        self._failing: list[str] = []
        """What fails, of the store and the app's values, and was warned of."""
        self._stem = options.path.removesuffix(".xml")
        self._part = re.compile(re.escape(self._stem) + r"-([1-9][0-9]{0,4})\.xml")
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: the parent's lock may be held for ever."""
        self._making = threading.Lock()

    def owns(self, path: str) -> bool:
        """Whether a path is that of a document."""
        return path.startswith(self._stem) and (path == self._path or self._part.fullmatch(path) is not None)

    def find(
        self, site: Site, table: RouteTable, rules: Rules, path: str, drain: Drain | None = None
    ) -> Published | None:
        """The document of a path as it is now, or the last good one; None where there is none of that path.

        One thread makes documents, which may take long where the app enumerates
        its pages; meanwhile others serve what there is. Raises `Unavailable` where
        nothing was made before, and it cannot be made now.
        """
        known = self._editions.get(site.base)
        if self._making.acquire(timeout=LONG_WAIT if known is None else WAIT):
            try:
                return self._published(site, self._edition(site, table, rules, drain), path)
            finally:
                self._making.release()
        if known is None:
            raise Unavailable("it is being made")
        return self._published(site, known, path)

    def _published(self, site: Site, edition: _Edition, path: str) -> Published | None:
        found = self._chosen(edition, path)
        if found is None:
            return None
        if found.etag not in edition.packed:
            edition.packed[found.etag] = compress(found.body, compresslevel=6, mtime=0)
        return Published(found, edition.packed[found.etag], self._since(site, path, found.etag))

    def listed(self) -> int:
        """How many entries the documents now in memory hold."""
        return sum(part.body.count(b"<url>") for edition in self._editions.values() for part in edition.documents)

    def _edition(self, site: Site, table: RouteTable, rules: Rules, drain: Drain | None) -> _Edition:
        known = self._editions.get(site.base)
        try:
            version = self._store.version(site.key)
            now = self._clock()
            if (
                known is not None
                and known.version == version
                and known.table.routes == table.routes
                and known.rules.text == rules.text
                and 0 <= now - known.made < self._max_age
            ):
                return known
            edition = self._made(site, table, rules, version, drain)
        except (StoreError, ValuesError) as error:
            source = "store" if isinstance(error, StoreError) else "values"
            if source not in self._failing:
                log.warning("the sitemap shows its last good state, or none: %s", error, exc_info=error.__cause__)
                self._failing.append(source)
            if known is None:
                raise Unavailable(_WHY[source]) from error
            return known
        for source in self._failing:
            log.warning("the sitemap's %s again", _WORKS[source])
        self._failing.clear()
        self._editions[site.base] = edition
        self._editions.move_to_end(site.base)
        while len(self._editions) > MAX_SITES:
            self._editions.popitem(last=False)
        return edition

    def _made(self, site: Site, table: RouteTable, rules: Rules, version: int, drain: Drain | None) -> _Edition:
        now = self._clock()
        entries = self._catalog.entries(State(site, table, self._store.pages(site.key), rules, int(now), drain))
        parts = list(document.urlsets(entries))
        index = None
        if len(parts) > 1:
            stem = site.base + (quote_path(self._stem) or "")
            index = document.sitemapindex(
                (f"{stem}-{number}.xml", part.lastmod) for number, part in enumerate(parts, 1)
            )
        return _Edition(table, rules, version, now, parts, index)

    def _chosen(self, edition: _Edition, path: str) -> Document | None:
        if path == self._path:
            return edition.index or next(iter(edition.documents), None)
        number = self._part.fullmatch(path)
        if number is None or edition.index is None or int(number[1]) > len(edition.documents):
            return None
        return edition.documents[int(number[1]) - 1]

    def _since(self, site: Site, path: str, etag: str) -> int | None:
        try:
            return self._store.published(site.base, path, etag, int(self._clock()))
        except StoreError:
            return None  # the response then bears no Last-Modified; its ETag serves
