"""Chunks are runs of entries, rendered and compressed once; a document is a row of chunks between a head and a tail."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from itertools import islice
from typing import Final, NamedTuple

from . import concatenable_deflate
from .crc32 import fastest_combine
from .xml import INDEX_FRAME, URLSET_FRAME, render_sitemap

PART_BYTES: Final = 64 * 1024
"""Minimum size of the parts in which a document is sent."""

_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""The header of a gzip member without name, date or system (RFC 1952, section 2.3)."""
_GZIP_TRAILER_BYTES: Final = 8
_DIGEST_BYTES: Final = 16
_INDEX_CHUNK_ENTRIES: Final = 1000
"""Documents of an index in one chunk."""


NEVER_SECONDS: Final = 2**62
"""A POSIX time that is never reached."""


class RenderKey(NamedTuple):
    """What a chunk was rendered from. While this stays the same, so does the chunk."""

    version: int
    """The version of its pages in the store."""
    settings_digest: bytes
    """8 bytes: a digest of options, routes and robots.txt."""
    site_signals: bytes
    """8 bytes: a digest of the site signals; empty if the entries do not depend on them."""


_NOT_STORED: Final = RenderKey(0, b"", b"")


class Chunk(NamedTuple):
    """A run of entries, rendered and compressed: a piece of a document."""

    count: int  # type: ignore[assignment] # tuples have a method of this name, which is not needed here
    """Entries in it."""
    size: int
    """Bytes before compression."""
    crc: int
    """CRC-32 before compression."""
    digest: bytes
    """16 bytes: the beginning of the SHA-256 before compression."""
    lastmod: str | None
    """The latest lastmod of its entries."""
    gzipped_size: int
    """Bytes of the data, whether they are in `data` or in the store."""
    data: bytes = b""
    """Raw deflate, ended by a full flush on a byte boundary, so that chunks in a row form one stream.

    Empty while the data are in the store.
    """
    number: int = 0
    """Its number among those of its section in the store. This and what follows is of use in the store alone."""
    render_key: RenderKey = _NOT_STORED
    valid_until: int = NEVER_SECONDS
    """POSIX seconds at which one of its pages expires."""


def compress_chunk(body: bytes, count: int, lastmod: str | None) -> Chunk:
    """Compress rendered entries into a chunk."""
    digest = sha256(body).digest()[:_DIGEST_BYTES]  # faster than blake2b on processors with SHA instructions
    data = concatenable_deflate.fastest_compressor()(body)
    return Chunk(count, len(body), concatenable_deflate.fastest_crc32()(body), digest, lastmod, len(data), data)


EMPTY_CHUNK: Final = Chunk(0, 0, 0, b"", None, 0)
"""No entries."""


class _Frame:
    """The bytes around the entries of a document, plain and compressed."""

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail
        self.opening = _GZIP_HEADER + concatenable_deflate.compress_with_zlib(head)
        self.closing = concatenable_deflate.final_block(tail)


_URLSET_FRAME: Final = _Frame(*URLSET_FRAME)
_INDEX_FRAME: Final = _Frame(*INDEX_FRAME)


@dataclass(frozen=True, slots=True)
class Document:
    """One XML file. It is never in memory as a whole."""

    etag: str
    """Equal for equal chunks, in every process."""
    lastmod: str | None
    """The latest lastmod of its entries."""
    count: int
    """Entries in it."""
    size: int
    """Bytes of plain XML."""
    gzipped_size: int
    """Bytes when gzipped."""
    _crc: int
    _frame: _Frame = field(repr=False)
    _chunks: Sequence[Chunk] = field(repr=False)

    def plain(self) -> Generator[bytes]:
        """The document in parts, each decompressed when it is taken."""
        return _batched_parts(self._plain())

    def gzipped(self) -> Generator[bytes]:
        """The document as one gzip member, in parts."""
        return _batched_parts(self._gzipped())

    def _plain(self) -> Iterator[bytes]:
        yield self._frame.head
        for chunk in self._chunks:
            yield from concatenable_deflate.inflate(chunk.data)
        yield self._frame.tail

    def _gzipped(self) -> Iterator[bytes]:
        yield self._frame.opening
        for chunk in self._chunks:
            yield chunk.data
        yield self._frame.closing + self._crc.to_bytes(4, "little") + (self.size & 0xFFFFFFFF).to_bytes(4, "little")


def urlset(chunks: Sequence[Chunk]) -> Document:
    """The document of these chunks. It keeps the sequence: do not change it afterwards.

    Chunks without data make a document whose figures are right, but that cannot be sent.
    """
    return _document(_URLSET_FRAME, chunks)


def sitemapindex(documents: Iterable[tuple[str, str | None]]) -> Document:
    """The index of documents, given as pairs of loc and lastmod."""
    rest, chunks = iter(documents), []
    while batch := list(islice(rest, _INDEX_CHUNK_ENTRIES)):
        lines = b"".join([render_sitemap(loc, lastmod) for loc, lastmod in batch])
        chunks.append(compress_chunk(lines, len(batch), latest_lastmod(lastmod for _, lastmod in batch)))
    return _document(_INDEX_FRAME, chunks)


def latest_lastmod(lastmods: Iterable[str | None]) -> str | None:
    """The latest of some lastmods; None if there is none."""
    return max(filter(None, lastmods), default=None)


def _document(frame: _Frame, chunks: Sequence[Chunk]) -> Document:
    digest = blake2b(frame.head, digest_size=_DIGEST_BYTES)
    crc = zlib.crc32(frame.head)
    size = len(frame.head) + len(frame.tail)
    gzipped_size = len(frame.opening) + len(frame.closing) + _GZIP_TRAILER_BYTES
    count, lastmod = 0, ""
    combine = fastest_combine()
    for chunk in chunks:
        digest.update(chunk.digest)
        crc = combine(crc, chunk.crc, chunk.size)
        count += chunk.count
        size += chunk.size
        gzipped_size += chunk.gzipped_size
        lastmod = max(lastmod, chunk.lastmod or "")
    crc = zlib.crc32(frame.tail, crc)
    return Document(digest.hexdigest(), lastmod or None, count, size, gzipped_size, crc, frame, chunks)


def _batched_parts(pieces: Iterable[bytes]) -> Generator[bytes]:
    """The same bytes in parts of at least `PART_BYTES`, but for the last."""
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            yield b"".join(batch)
            batch.clear()
            size = 0
    if batch:
        yield b"".join(batch)
