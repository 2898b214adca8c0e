"""Decodes bodies that the app compressed, up to a length, so that a small body cannot expand without bound."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Protocol

_SLICE_BYTES: Final = 16 * 1024
"""Bytes decompressed at a time. What came before an error is kept."""
_SMALL_SLICE_BYTES: Final = 16
"""The same for a decoder without an output limit: a few bytes may expand to megabytes."""

_ZSTD: Final = ("compression.zstd", "backports.zstd", "zstandard")
_BROTLI: Final = ("brotli", "brotlicffi")

_ByteStream = Iterator[bytes]


class _Decoder(Protocol):
    """Yields the decoded bytes of a body in pieces of bounded length."""

    def __call__(self, body: bytes) -> _ByteStream: ...


def parse_codings(value: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding (RFC 9110, section 8.4), in the order in which they were applied."""
    codings = (coding.strip().lower().removeprefix("x-") for coding in value.split(","))
    return tuple(coding for coding in codings if coding and coding != "identity")


def undecodable_reason(codings: Sequence[str]) -> str:
    """Why a body with these codings cannot be decoded, such as "is compressed with …"; empty if it can."""
    for coding in codings:
        if decoder_of(coding) is None:
            return f"is compressed with {coding[:20]!r}, for which no decoder is installed"
    return ""


def decode_body(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, bool]:
    """The decoded bytes up to the limit or the first error, and whether they are complete.

    A coding that is unknown, or of which nothing can be decoded, is passed over, as browsers do with unknown ones: some
    apps name a charset there, or "none".
    """
    is_complete = True
    for coding in reversed(codings):
        decoder = decoder_of(coding)
        decoded, complete = (b"", False) if decoder is None else _limited(decoder(body), limit)
        is_complete = is_complete and complete
        body = decoded if decoded or complete else body[:limit]
    return body, is_complete


def _limited(pieces: _ByteStream, limit: int) -> tuple[bytes, bool]:
    decoded = bytearray()
    try:
        for piece in pieces:
            decoded += piece
            if len(decoded) > limit:
                return bytes(decoded[:limit]), False
    except Exception:  # each decoder raises its own errors
        return bytes(decoded), False
    return bytes(decoded), True


class _TruncatedStream(Exception):
    """The body ends before its compressed stream does."""


@lru_cache(64)
def decoder_of(coding: str) -> _Decoder | None:
    """The decoder of a coding, or None if no library for it is installed."""
    if coding in ("gzip", "deflate"):
        return _gzip if coding == "gzip" else _deflate
    if coding == "zstd":
        return _first_available(_ZSTD, zstd_decoder)
    return _first_available(_BROTLI, brotli_decoder) if coding == "br" else None


def _first_available(modules: Sequence[str], decoder: Callable[[Any], _Decoder]) -> _Decoder | None:
    for module in modules:
        try:
            return decoder(import_module(module))
        except ImportError:
            continue
    return None


def _gzip(body: bytes) -> _ByteStream:
    while True:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        yield from _inflated(member, body)
        body = member.unused_data
        if not body.startswith(b"\x1f\x8b"):  # not another member (RFC 1952), but trailing data
            return


def _deflate(body: bytes) -> _ByteStream:
    """The zlib format, or the raw deflate stream that some servers send (RFC 9110, section 8.4.1.2)."""
    bare = len(body) < 2 or body[0] & 15 != 8 or (body[0] << 8 | body[1]) % 31 != 0
    return _inflated(zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS), body)


def _inflated(stream: Any, body: bytes) -> _ByteStream:
    while not stream.eof:
        piece = stream.decompress(body, _SLICE_BYTES)
        body = stream.unconsumed_tail
        if not piece and not body and not stream.eof:
            raise _TruncatedStream
        yield piece


def zstd_decoder(module: Any) -> _Decoder:
    """The decoder of zstd bodies by a library: compression.zstd, backports.zstd or zstandard."""
    if not hasattr(module, "ZstdDecompressor") or not hasattr(module.ZstdDecompressor, "needs_input"):
        return _zstandard(module)

    def decoded(body: bytes) -> _ByteStream:
        while body:
            frame = module.ZstdDecompressor()
            yield frame.decompress(body, _SLICE_BYTES)
            while not frame.eof:
                if frame.needs_input:
                    raise _TruncatedStream
                yield frame.decompress(b"", _SLICE_BYTES)
            body = frame.unused_data

    return decoded


def _zstandard(module: Any) -> _Decoder:
    def decoded(body: bytes) -> _ByteStream:
        with module.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            while piece := reader.read(_SLICE_BYTES):
                yield piece

    return decoded


def brotli_decoder(module: Any) -> _Decoder:
    """The decoder of Brotli bodies by a library: brotli or brotlicffi."""

    def decoded(body: bytes) -> _ByteStream:
        stream = module.Decompressor()
        for at in range(0, len(body), _SMALL_SLICE_BYTES):
            yield stream.process(body[at : at + _SMALL_SLICE_BYTES])
        if not stream.is_finished():
            raise _TruncatedStream

    return decoded
