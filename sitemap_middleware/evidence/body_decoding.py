"""Decoding: bodies that the app compressed, up to a length, so that no body unfolds into more than that."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Protocol

_SLICE_BYTES: Final = 16 * 1024
"""Bytes that are decompressed at one time: what came out before a fault is kept."""
_SMALL_SLICE_BYTES: Final = 16
"""The same where the decoder knows no limit: a few bytes may unfold into megabytes."""

_ZSTD: Final = ("compression.zstd", "backports.zstd", "zstandard")
_BROTLI: Final = ("brotli", "brotlicffi")

_ByteStream = Iterator[bytes]


class _Decoder(Protocol):
    """What makes pieces of plain bytes of a compressed body, each of bounded length."""

    def __call__(self, body: bytes) -> _ByteStream: ...


def parse_codings(value: str) -> tuple[str, ...]:
    """The codings that a Content-Encoding names, in the order in which they were applied."""
    named = (one.strip().lower().removeprefix("x-") for one in value.split(","))
    return tuple(one for one in named if one and one != "identity")


def undecodable_reason(codings: Sequence[str]) -> str:
    """Why such a body cannot be decoded, in words that follow "it"; empty if it can."""
    for coding in codings:
        if _decoder(coding) is None:
            return f"is compressed with {coding[:20]!r}, for which no decoder is installed"
    return ""


def decode_body(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, bool]:
    """The plain bytes of a body, as far as the limit and the body reach; and whether that is all of it."""
    whole = True
    for coding in reversed(codings):
        decoder = _decoder(coding)
        body, complete = (b"", False) if decoder is None else _limited(decoder(body), limit)
        whole = whole and complete
    return body, whole


def _limited(pieces: _ByteStream, limit: int) -> tuple[bytes, bool]:
    found = bytearray()
    try:
        for piece in pieces:
            found += piece
            if len(found) > limit:
                return bytes(found[:limit]), False
    except Exception:  # each decoder has errors of its own
        return bytes(found), False
    return bytes(found), True


class _TruncatedStream(Exception):
    """The body ends before its compressed stream does."""


@lru_cache(64)
def _decoder(coding: str) -> _Decoder | None:
    """The decoder of a coding, if there is one here."""
    if coding in ("gzip", "deflate"):
        return _gzip if coding == "gzip" else _deflate
    if coding == "zstd":
        return _first_available(_ZSTD, _zstd)
    return _first_available(_BROTLI, _brotli) if coding == "br" else None


def _first_available(modules: Sequence[str], decoder: Callable[[Any], _Decoder]) -> _Decoder | None:
    for module in modules:
        try:
            return decoder(import_module(module))
        except ImportError:
            continue
    return None


def _gzip(body: bytes) -> _ByteStream:
    while True:
        one = zlib.decompressobj(zlib.MAX_WBITS | 16)
        yield from _inflated(one, body)
        body = one.unused_data
        if not body.startswith(b"\x1f\x8b"):  # another member, or anything that stands behind the last one
            return


def _deflate(body: bytes) -> _ByteStream:
    """As zlib's format, or as the bare stream that some servers send (RFC 9110, section 8.4.1.2)."""
    bare = len(body) < 2 or body[0] & 15 != 8 or (body[0] << 8 | body[1]) % 31 != 0
    return _inflated(zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS), body)


def _inflated(one: Any, body: bytes) -> _ByteStream:
    while not one.eof:
        piece = one.decompress(body, _SLICE_BYTES)
        body = one.unconsumed_tail
        if not piece and not body and not one.eof:
            raise _TruncatedStream
        yield piece


def _zstd(module: Any) -> _Decoder:
    if not hasattr(module, "ZstdDecompressor") or not hasattr(module.ZstdDecompressor, "needs_input"):
        return _zstandard(module)

    def decoded(body: bytes) -> _ByteStream:
        while body:
            one = module.ZstdDecompressor()
            yield one.decompress(body, _SLICE_BYTES)
            while not one.eof:
                if one.needs_input:
                    raise _TruncatedStream
                yield one.decompress(b"", _SLICE_BYTES)
            body = one.unused_data

    return decoded


def _zstandard(module: Any) -> _Decoder:
    def decoded(body: bytes) -> _ByteStream:
        with module.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            while piece := reader.read(_SLICE_BYTES):
                yield piece

    return decoded


def _brotli(module: Any) -> _Decoder:
    def decoded(body: bytes) -> _ByteStream:
        one = module.Decompressor()
        for at in range(0, len(body), _SMALL_SLICE_BYTES):
            yield one.process(body[at : at + _SMALL_SLICE_BYTES])
        if not one.is_finished():
            raise _TruncatedStream

    return decoded
