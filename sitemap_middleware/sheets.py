"""Sheets: what each chunk of a document was rendered of, and the chunks themselves, as a store keeps them. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .chunks import Chunk

_ROW: Final = struct.Struct("<QQ8s8sIII16s20sI")
_DIGEST: Final = 16


class Origin(NamedTuple):
    """What a chunk was rendered of: it is the same as long as this is."""

    version: int
    """That of its pages, in the store."""
    context: bytes
    """Eight bytes of the options, routes and rules they were judged by."""
    outlook: bytes
    """Eight bytes of what the site's pages tell together; none where that has no part in it."""


class Row(NamedTuple):
    """One chunk, which is not at hand: its data are in the store."""

    number: int
    origin: Origin
    chunk: Chunk
    packed_size: int
    """Bytes of its data."""


def row(number: int, origin: Origin, chunk: Chunk) -> Row:
    """A chunk, without its data."""
    return Row(number, origin, chunk._replace(data=b""), len(chunk.data))


def written(rows: Iterable[Row]) -> bytes:
    """Rows as they are kept."""
    return b"".join(map(_written, rows))


def _written(row: Row) -> bytes:
    number, (version, context, outlook), chunk, packed_size = row
    lastmod = (chunk.lastmod or "").encode()
    return _ROW.pack(
        number, version, context, outlook, chunk.count, chunk.size, chunk.crc, chunk.digest, lastmod, packed_size
    )


def read(data: bytes) -> Iterator[Row]:
    """The rows of which `written` made this; none of what is no whole number of rows."""
    if len(data) % _ROW.size:
        return
    for number, version, context, outlook, count, size, crc, digest, lastmod, packed_size in _ROW.iter_unpack(data):
        outlook = b"" if outlook == bytes(8) else outlook
        chunk = Chunk(count, size, crc, digest, lastmod.rstrip(b"\0").decode("ascii", "replace") or None, b"")
        yield Row(number, Origin(version, context, outlook), chunk, packed_size)


def data_of(chunk: Chunk) -> bytes:
    """A chunk's data as they are kept."""
    return chunk.digest + chunk.data


def with_data(row: Row, data: bytes | None) -> Chunk | None:
    """The chunk of a row; None where these are not its data."""
    if data is None or data[:_DIGEST] != row.chunk.digest or len(data) != _DIGEST + row.packed_size:
        return None
    return row.chunk._replace(data=data[_DIGEST:])
