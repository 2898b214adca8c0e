"""Seals: bytes that are known whole when they come back from where they were kept. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

CHECKSUM_BYTES: Final = 16


def checksum(data: bytes, name: bytes = b"") -> bytes:
    """What tells whether bytes are these, of this name of up to 64 bytes."""
    return blake2b(data, digest_size=CHECKSUM_BYTES, key=name).digest()


def with_checksum(data: bytes) -> bytes:
    """Bytes with their seal."""
    return data + checksum(data)


def verify(data: bytes) -> bytes | None:
    """What `with_checksum` made this of; None where it did not."""
    inner = data[:-CHECKSUM_BYTES]
    return inner if data[-CHECKSUM_BYTES:] == checksum(inner) else None
