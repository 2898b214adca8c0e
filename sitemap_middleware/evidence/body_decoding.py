"""Decodes bodies that the app compressed, up to a length, so that a small body cannot expand without bound."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

_BROTLI_SLICE_BYTES: Final = 16
"""Brotli has no output limit, and a few bytes may expand to megabytes."""


def _first_installed(*names: str) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


_zstd: Any = _first_installed("compression.zstd", "backports.zstd")
_brotli: Any = _first_installed("brotli", "brotlicffi")


def parse_codings(value: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding (RFC 9110, section 8.4), in the order in which they were applied."""
    codings = (coding.strip().lower().removeprefix("x-") for coding in value.split(","))
    return tuple(coding for coding in codings if coding and coding != "identity")


def undecodable_reason(codings: Sequence[str]) -> str:
    """Why a body with these codings cannot be decoded, such as "is compressed with …"; empty if it can."""
    installed = {"gzip": zlib, "deflate": zlib, "zstd": _zstd, "br": _brotli}
    missing = next((coding for coding in codings if installed.get(coding) is None), None)
    return "" if missing is None else f"is compressed with {missing[:20]!r}, for which no decoder is installed"


def decode_body(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, bool]:
    """The decoded bytes up to the limit or the end of a cut body, and whether they are complete.

    A coding that is unknown, or of which nothing can be decoded, is passed over, as browsers do with unknown ones: some
    apps name a charset there, or "none".
    """
    is_complete = True
    for coding in reversed(codings):
        try:
            decoded, has_ended = _decoded(body, coding, limit + 1)
        except Exception:  # each decoder raises its own errors
            decoded, has_ended = b"", False
        is_complete = is_complete and has_ended and len(decoded) <= limit
        body = (decoded if decoded or has_ended else body)[:limit]
    return body, is_complete


def _decoded(body: bytes, coding: str, limit: int) -> tuple[bytes, bool]:
    """The decoded bytes up to the limit, and whether the compressed stream has ended."""
    if coding == "br":
        return _decoded_brotli(body, limit)
    if coding == "zstd":
        stream = _zstd.ZstdDecompressor()
    elif coding == "gzip":
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    elif coding == "deflate":
        # The zlib format, or the raw deflate stream that some servers send (RFC 9110, section 8.4.1.2).
        is_raw = len(body) < 2 or body[0] & 15 != 8 or (body[0] << 8 | body[1]) % 31 != 0
        stream = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)
    else:
        raise LookupError(coding)
    return stream.decompress(body, limit), stream.eof


def _decoded_brotli(body: bytes, limit: int) -> tuple[bytes, bool]:
    stream, decoded = _brotli.Decompressor(), bytearray()
    for at in range(0, len(body), _BROTLI_SLICE_BYTES):
        decoded += stream.process(body[at : at + _BROTLI_SLICE_BYTES])
        if len(decoded) >= limit:
            return bytes(decoded[:limit]), False
    return bytes(decoded), stream.is_finished()
