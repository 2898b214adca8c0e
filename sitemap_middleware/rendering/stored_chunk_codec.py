"""How the data of chunks, and what else is known of them, are stored: packing and unpacking, with checksums.

A store may lose or change bytes, and wrong ones must never be served.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ..stores.checksums import CHECKSUM_BYTES, checksum, verify, with_checksum
from .chunked_document import Chunk, RenderKey

_RECORD: Final = struct.Struct("<QQ8s8sIII16s20sIQ")


def serialize(chunks: Iterable[Chunk]) -> bytes:
    """All that is known of chunks but their data, as it is stored."""
    return with_checksum(b"".join(map(_serialize_one, chunks)))


def _serialize_one(chunk: Chunk) -> bytes:
    return _RECORD.pack(
        chunk.number,
        *chunk.render_key,
        chunk.count,
        chunk.size,
        chunk.crc,
        chunk.digest,
        (chunk.lastmod or "").encode(),
        chunk.gzipped_size,
        chunk.valid_until,
    )


def deserialize(data: bytes) -> Iterator[Chunk]:
    """The chunks, without their data; none if what was stored is damaged."""
    records = verify(data)
    if records is None or len(records) % _RECORD.size:
        return
    for record in _RECORD.iter_unpack(records):
        number, version, settings, signals, count, size, crc, digest, lastmod, gzipped_size, valid_until = record
        key = RenderKey(version, settings, b"" if signals == bytes(8) else signals)
        text = lastmod.rstrip(b"\0").decode("ascii") or None
        yield Chunk(count, size, crc, digest, text, gzipped_size, b"", number, key, valid_until)


def chunk_data(chunk: Chunk) -> bytes:
    """A chunk's data as they are stored."""
    return checksum(chunk.data, chunk.digest) + chunk.data


def with_data(chunk: Chunk, stored: bytes | None) -> Chunk | None:
    """The chunk with its data; None if the stored data are damaged, or belong to another chunk."""
    if stored is None or len(stored) != CHECKSUM_BYTES + chunk.gzipped_size:
        return None
    data = stored[CHECKSUM_BYTES:]
    return chunk._replace(data=data) if stored[:CHECKSUM_BYTES] == checksum(data, chunk.digest) else None
