"""How chunks and their indexes are stored: packing and unpacking, with checksums.

A store may lose or change bytes, and wrong ones must never be served.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ..stores.checksums import CHECKSUM_BYTES, checksum, verify, with_checksum
from .chunked_document import Chunk

_RECORD: Final = struct.Struct("<QQ8s8sIII16s20sIQ")


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


class ChunkInfo(NamedTuple):
    """What is known of a chunk whose data are in the store."""

    number: int
    render_key: RenderKey
    chunk: Chunk
    """The chunk without its data."""
    valid_until: int = NEVER_SECONDS
    """POSIX seconds at which one of its pages expires."""


def chunk_info(number: int, key: RenderKey, chunk: Chunk, valid_until: int = NEVER_SECONDS) -> ChunkInfo:
    """Describe a chunk; its data go into the store."""
    return ChunkInfo(number, key, chunk._replace(data=b""), valid_until)


def serialize(infos: Iterable[ChunkInfo]) -> bytes:
    """An index of chunks, as it is stored."""
    return with_checksum(b"".join(map(_serialize_one, infos)))


def _serialize_one(info: ChunkInfo) -> bytes:
    number, (version, settings, signals), chunk, valid_until = info
    lastmod = (chunk.lastmod or "").encode()
    return _RECORD.pack(
        number,
        version,
        settings,
        signals,
        chunk.count,
        chunk.size,
        chunk.crc,
        chunk.digest,
        lastmod,
        chunk.gzipped_size,
        valid_until,
    )


def deserialize(data: bytes) -> Iterator[ChunkInfo]:
    """The chunks of a stored index; none if it is damaged."""
    records = verify(data)
    if records is None or len(records) % _RECORD.size:
        return
    for record in _RECORD.iter_unpack(records):
        number, version, settings, signals, count, size, crc, digest, lastmod, gzipped_size, valid_until = record
        key = RenderKey(version, settings, b"" if signals == bytes(8) else signals)
        chunk = Chunk(count, size, crc, digest, lastmod.rstrip(b"\0").decode("ascii") or None, gzipped_size)
        yield ChunkInfo(number, key, chunk, valid_until)


def chunk_data(chunk: Chunk) -> bytes:
    """A chunk's data as they are stored."""
    return checksum(chunk.data, chunk.digest) + chunk.data


def with_data(chunk: Chunk, stored: bytes | None) -> Chunk | None:
    """The chunk with its data; None if the stored data are damaged, or belong to another chunk."""
    if stored is None or len(stored) != CHECKSUM_BYTES + chunk.gzipped_size:
        return None
    data = stored[CHECKSUM_BYTES:]
    return chunk._replace(data=data) if stored[:CHECKSUM_BYTES] == checksum(data, chunk.digest) else None
