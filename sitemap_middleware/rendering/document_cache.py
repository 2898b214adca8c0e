"""The documents of one site that are in memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..routing.route_table import RouteTable
from .responses import PreparedResponses

MAX_CACHE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of compressed documents and of response bodies that are kept for one site."""

FRESH_SECONDS: Final = 1.0
"""Seconds for which a document is served without reading the store."""

REVALIDATE_SECONDS: Final = FRESH_SECONDS / 2
"""The age in seconds at which one request brings the document up to date, so that not all do at the same moment."""


class Freshness(NamedTuple):
    """When a document was up to date, and until when it may be served without another check."""

    generation: int
    """How many times this process had flushed when it began to read the store."""
    since: float
    """POSIX seconds."""
    valid_until: float
    """POSIX seconds."""


@dataclass(slots=True, weakref_slot=True)
class CachedDocument:
    """A document in memory: its responses, and whether it is up to date."""

    responses: PreparedResponses
    """The responses to requests for it."""
    digests: tuple[bytes, ...]
    """The digests of its chunks."""
    table: RouteTable
    """The routes when it was last brought up to date."""
    freshness: Freshness | None = None
    """None if the next request must bring it up to date."""
    _revalidating: bool = False

    def mark_fresh(self, freshness: Freshness | None, table: RouteTable) -> None:
        """Note that the document is up to date."""
        self.freshness = freshness
        self.table = table
        self._revalidating = False

    def is_fresh(self, now: float, generation: int) -> bool:
        """Whether it may be served as it is. Before it expires, one call returns False to refresh it early."""
        freshness = self.freshness
        if (
            freshness is None
            or freshness.generation != generation
            or not freshness.since <= now < freshness.valid_until
        ):
            return False
        if now >= freshness.since + REVALIDATE_SECONDS and not self._revalidating:
            self._revalidating = True
            return False
        return True


class DocumentCache:
    """Keeps the documents that were requested last, by path."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, CachedDocument] = OrderedDict()

    def get(self, path: str) -> CachedDocument | None:
        """A document as it was last assembled, fresh or not."""
        return self._documents.get(path)

    def get_if_made_of(self, path: str, digests: tuple[bytes, ...]) -> CachedDocument | None:
        """A document, if it was assembled from exactly these chunks."""
        document = self._documents.get(path)
        if document is None or document.digests != digests:
            return None
        self._documents.move_to_end(path)
        return document

    def put(self, path: str, document: CachedDocument) -> None:
        """Keep a document; drop those that were requested longest ago if all take too many bytes."""
        if (superseded := self._documents.get(path)) is not None:
            superseded.freshness = None
        self._documents[path] = document
        self._documents.move_to_end(path)
        size = sum(document.responses.size for document in self._documents.values())
        while size > MAX_CACHE_BYTES and len(self._documents) > 1:
            size -= self._documents.popitem(last=False)[1].responses.size
