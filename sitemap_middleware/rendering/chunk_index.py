"""Sheets: what each chunk of a document was rendered of, and the chunks themselves, as a store keeps them. Pure.

What is kept ends with, or begins with, a digest of itself: a store may lose or
change bytes, and wrong ones must never be served.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ..stores.checksums import CHECKSUM_BYTES, checksum, verify, with_checksum
from .chunks import Chunk

_RECORD: Final = struct.Struct("<QQ8s8sIII16s20sIQ")


NEVER_SECONDS: Final = 2**62
"""A moment that does not come."""


class RenderKey(NamedTuple):
    """What a chunk was rendered of: it is the same as long as this is."""

    version: int
    """That of its pages, in the store."""
    settings_digest: bytes
    """Eight bytes of the options, routes and rules they were judged by."""
    site_signals: bytes
    """Eight bytes of what the site's pages tell together; none where that has no part in it."""


class ChunkInfo(NamedTuple):
    """One chunk, which is not at hand: its data are in the store."""

    number: int
    render_key: RenderKey
    chunk: Chunk
    gzipped_size: int
    """Bytes of its data."""
    valid_until: int = NEVER_SECONDS
    """POSIX seconds from which on a page of it is no longer to be listed."""


def chunk_info(number: int, origin: RenderKey, chunk: Chunk, until: int = NEVER_SECONDS) -> ChunkInfo:
    """A chunk, without its data."""
    return ChunkInfo(number, origin, chunk._replace(data=b""), len(chunk.data), until)


def serialize(rows: Iterable[ChunkInfo]) -> bytes:
    """Rows as they are kept."""
    return with_checksum(b"".join(map(_serialize_one, rows)))


def _serialize_one(row: ChunkInfo) -> bytes:
    number, (version, context, outlook), chunk, packed_size, until = row
    lastmod = (chunk.lastmod or "").encode()
    return _RECORD.pack(
        number, version, context, outlook, chunk.count, chunk.size, chunk.crc, chunk.digest, lastmod, packed_size, until
    )


def deserialize(data: bytes) -> Iterator[ChunkInfo]:
    """The rows of which `serialize` made this; none of anything else."""
    rows = verify(data)
    if rows is None or len(rows) % _RECORD.size:
        return
    for number, version, context, outlook, count, size, crc, digest, lastmod, packed_size, until in _RECORD.iter_unpack(
        rows
    ):
        outlook = b"" if outlook == bytes(8) else outlook
        chunk = Chunk(count, size, crc, digest, lastmod.rstrip(b"\0").decode("ascii") or None, b"")
        yield ChunkInfo(number, RenderKey(version, context, outlook), chunk, packed_size, until)


def chunk_data(chunk: Chunk) -> bytes:
    """A chunk's data as they are kept."""
    return checksum(chunk.data, chunk.digest) + chunk.data


def load_chunk(row: ChunkInfo, data: bytes | None) -> Chunk | None:
    """The chunk of a row; None where these are not its data."""
    if data is None or len(data) != CHECKSUM_BYTES + row.gzipped_size:
        return None
    kept = data[CHECKSUM_BYTES:]
    return row.chunk._replace(data=kept) if data[:CHECKSUM_BYTES] == checksum(kept, row.chunk.digest) else None
