"""Chunks: runs of entries, rendered and compressed once, of which documents are made by putting them in a row."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from . import gzip_stream
from .crc32 import combine
from .xml import INDEX_FRAME, URLSET_FRAME, render_sitemap

PART_BYTES: Final = 64 * 1024
"""Bytes of a document that are handed on at one time, at least."""

_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""The header of a gzip member of no name, no date and no system (RFC 1952, section 2.3)."""
_GZIP_TRAILER_BYTES: Final = 8
_INDEX_CHUNK_ENTRIES: Final = 1000
"""Documents of an index in one chunk."""


class Chunk(NamedTuple):
    """A run of entries, rendered and compressed: a piece of a document."""

    count: int  # type: ignore[assignment] # tuples have a method of this name, which nobody needs of these
    """Entries in it."""
    size: int
    """Bytes before compression."""
    crc: int
    """CRC-32 of these."""
    digest: bytes
    """16 bytes, blake2b of these."""
    lastmod: str | None
    """The latest within."""
    data: bytes
    """Raw deflate that ends with a byte and a full flush, so that chunks in a row are one stream."""


def compress_chunk(body: bytes, count: int, lastmod: str | None) -> Chunk:
    """A chunk of entries as they were rendered."""
    digest = blake2b(body, digest_size=16).digest()
    return Chunk(count, len(body), zlib.crc32(body), digest, lastmod, gzip_stream.fastest_compressor()(body))


EMPTY_CHUNK: Final = Chunk(0, 0, 0, b"", None, b"")
"""No entries."""


class _Frame:
    """What stands around the entries of a document, and the same, compressed."""

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail
        self.opening = _GZIP_HEADER + gzip_stream.compress_with_zlib(head)
        self.closing = gzip_stream.final_block(tail)


_URLSET_FRAME: Final = _Frame(*URLSET_FRAME)
_INDEX_FRAME: Final = _Frame(*INDEX_FRAME)


@dataclass(frozen=True, slots=True)
class Document:
    """One XML file: a head, chunks, a tail. It is never whole in memory."""

    etag: str
    """The same for the same chunks, wherever they are made."""
    lastmod: str | None
    """The latest lastmod within."""
    count: int
    """Entries in it."""
    size: int
    """Its bytes."""
    gzipped_size: int
    """Its bytes when gzipped."""
    _crc: int
    _frame: _Frame = field(repr=False)
    _chunks: Sequence[Chunk] = field(repr=False)

    def plain(self) -> Generator[bytes]:
        """The document in parts, inflated as they are taken."""
        return _batched_parts(self._plain())

    def gzipped(self) -> Generator[bytes]:
        """The document as one gzip member, in parts."""
        return _batched_parts(self._gzipped())

    def _plain(self) -> Iterator[bytes]:
        yield self._frame.head
        for chunk in self._chunks:
            yield from gzip_stream.inflate(chunk.data)
        yield self._frame.tail

    def _gzipped(self) -> Iterator[bytes]:
        yield self._frame.opening
        for chunk in self._chunks:
            yield chunk.data
        yield self._frame.closing + self._crc.to_bytes(4, "little") + (self.size & 0xFFFFFFFF).to_bytes(4, "little")


def urlset(chunks: Sequence[Chunk]) -> Document:
    """The document of these chunks; the sequence is kept, and must not be changed any more."""
    return _document(_URLSET_FRAME, chunks)


def sitemapindex(documents: Iterable[tuple[str, str | None]]) -> Document:
    """The index of documents, each given as its loc and its lastmod."""
    rest, chunks = iter(documents), []
    while batch := list(islice(rest, _INDEX_CHUNK_ENTRIES)):
        lines = b"".join([render_sitemap(loc, lastmod) for loc, lastmod in batch])
        chunks.append(compress_chunk(lines, len(batch), latest(lastmod for _, lastmod in batch)))
    return _document(_INDEX_FRAME, chunks)


def latest(lastmods: Iterable[str | None]) -> str | None:
    """The latest of some lastmods; None where none is given."""
    return max(filter(None, lastmods), default=None)


def _document(frame: _Frame, chunks: Sequence[Chunk]) -> Document:
    digest = blake2b(frame.head, digest_size=16)
    crc = zlib.crc32(frame.head)
    size = len(frame.head) + len(frame.tail)
    packed_size = len(frame.opening) + len(frame.closing) + _GZIP_TRAILER_BYTES
    count, lastmod = 0, ""
    for chunk in chunks:
        digest.update(chunk.digest)
        crc = combine(crc, chunk.crc, chunk.size)
        count += chunk.count
        size += chunk.size
        packed_size += len(chunk.data)
        lastmod = max(lastmod, chunk.lastmod or "")
    crc = zlib.crc32(frame.tail, crc)
    return Document(digest.hexdigest(), lastmod or None, count, size, packed_size, crc, frame, chunks)


def _batched_parts(pieces: Iterable[bytes]) -> Generator[bytes]:
    """The same bytes, in parts that are worth being handed on by themselves."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            yield b"".join(held)
            held.clear()
            size = 0
    if held:
        yield b"".join(held)
