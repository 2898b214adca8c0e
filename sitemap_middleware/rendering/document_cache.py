"""The showcase: the documents of one site that are in memory, and until when each is known to be true."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..routing.url_map import RouteTable
from .chunks import Document
from .responses import PreparedResponses

MAX_CACHE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of documents, compressed as they are, and of the bodies of answers, that are kept of one site."""


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """A document and all that is needed to serve it."""

    document: Document
    since: int | None
    """POSIX seconds since when it is this one; None where that is not known."""
    responses: PreparedResponses
    """To requests for it."""


class Freshness(NamedTuple):
    """That a document was true at a time, and is for as long as nothing of this is otherwise."""

    stamp: object
    """Of the store, taken before anything was read from it."""
    table: RouteTable
    since: float
    valid_until: float
    """POSIX seconds."""
    robots_valid_until: float
    """From when on one request is to look again, so that not all must at one time."""


@dataclass(slots=True)
class _CacheEntry:
    """A document that was put together, and of what."""

    digests: tuple[bytes, ...]
    published: CachedDocument
    proof: Freshness | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, about."""
        return self.published.document.gzipped_size + self.published.responses.size


class DocumentCache:
    """Keeps the documents that were asked for last, by path."""

    def __init__(self) -> None:
        self._ready: OrderedDict[str, _CacheEntry] = OrderedDict()

    def get(self, path: str) -> CachedDocument | None:
        """A document as it was last put together."""
        ready = self._ready.get(path)
        return None if ready is None else ready.published

    def get_if_made_of(self, path: str, digests: tuple[bytes, ...]) -> CachedDocument | None:
        """A document, if it was put together of just these chunks."""
        ready = self._ready.get(path)
        if ready is None or ready.digests != digests:
            return None
        self._ready.move_to_end(path)
        return ready.published

    def put(self, path: str, published: CachedDocument, digests: tuple[bytes, ...]) -> None:
        """Keep a document, in place of those that were asked for longest ago."""
        self._ready[path] = _CacheEntry(digests, published)
        self._ready.move_to_end(path)
        size = sum(one.size for one in self._ready.values())
        while size > MAX_CACHE_BYTES and len(self._ready) > 1:
            size -= self._ready.popitem(last=False)[1].size

    def set_freshness(self, path: str, proof: Freshness) -> None:
        """Note that a document is true."""
        self._ready[path].proof = proof

    def get_fresh(self, path: str, table: RouteTable, now: float, stamp: object) -> CachedDocument | None:
        """A document that is known to be true still; None where it is to be looked at. Waits for nothing."""
        ready = self._ready.get(path)
        proof = None if ready is None else ready.proof
        if (
            ready is None
            or proof is None
            or proof.table is not table
            or not proof.since <= now < proof.valid_until
            or proof.stamp != stamp
        ):
            return None
        if now >= proof.robots_valid_until:
            ready.proof = proof._replace(robots_valid_until=proof.valid_until)
            return None
        return ready.published
