"""Decompresses a document piece by piece, in fixed memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from .rules import fetch
from .xml_reader import PIECE_BYTES, Unreadable

GZIP_MAGIC: Final = b"\x1f\x8b"
"""The bytes with which gzip begins."""
_GZIP: Final = zlib.MAX_WBITS | 16


class Decompressor:
    """Passes on bytes, and decompresses them first if they are gzip, whatever the document is named.

    Args:
        is_declared: whether the response says that they are gzip, so that others are an error.
    """

    def __init__(self, *, is_declared: bool = False) -> None:
        self._is_declared = is_declared
        self._start: bytes | None = b""
        self._stream: zlib._Decompress | None = None
        self._has_member = False
        """Whether one gzip member has ended. Members may follow each other, and so may zeros (RFC 1952)."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes, in small pieces. Raises `Unreadable`."""
        if self._start is not None:
            data = self._start + data
            if len(data) < len(GZIP_MAGIC):
                self._start = data
                return
            self._start = None
            if data.startswith(GZIP_MAGIC):
                self._stream = zlib.decompressobj(_GZIP)
            elif self._is_declared:
                raise Unreadable(fetch.GZIP_BROKEN, "Content-Encoding says gzip, and the body is not gzip", 0, 0)
        if self._stream is None and not self._has_member:
            yield data
            return
        yield from self._decompress(data)

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None:
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._stream = zlib.decompressobj(_GZIP)
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise Unreadable(fetch.GZIP_BROKEN, f"the compressed data is damaged: {error}", 0, 0) from None
            data = self._stream.unconsumed_tail
            if self._stream.eof:
                data, self._stream, self._has_member = self._stream.unused_data, None, True
            if piece:
                yield piece

    def close(self) -> bytes:
        """Return what is left. Raises `Unreadable` if the data ends early."""
        if self._stream is not None:
            raise Unreadable(fetch.GZIP_BROKEN, "the compressed data ends early", 0, 0)
        return self._start or b""
