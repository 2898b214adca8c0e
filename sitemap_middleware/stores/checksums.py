"""Checksums, by which stored bytes are recognised as intact."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

CHECKSUM_BYTES: Final = 16


def checksum(data: bytes, name: bytes = b"") -> bytes:
    """The checksum of bytes stored under a name of at most 64 bytes."""
    return blake2b(data, digest_size=CHECKSUM_BYTES, key=name).digest()


def with_checksum(data: bytes) -> bytes:
    """The bytes, followed by their checksum."""
    return data + checksum(data)


def verify(data: bytes) -> bytes | None:
    """The bytes without their checksum, or None if it does not match."""
    payload = data[:-CHECKSUM_BYTES]
    return payload if data[-CHECKSUM_BYTES:] == checksum(payload) else None
