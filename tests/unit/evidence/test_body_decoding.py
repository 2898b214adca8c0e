"""Bodies that the app compressed: each coding, several of them, cut, broken, and bombs."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence import body_decoding
from sitemap_middleware.evidence.body_decoding import decode_body, parse_codings, undecodable_reason

TEXT = b"".join(b"<p>%d</p>" % number for number in range(9000))
LIMIT = 1024 * 1024


def bare(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def compressors() -> Iterator[tuple[str, str, Callable[[bytes], bytes]]]:
    """Each coding, the module that undoes it, and what does it; those that are installed."""
    yield "gzip", "zlib", gzip.compress
    yield "deflate", "zlib", zlib.compress
    yield "deflate", "zlib", bare
    for coding, names in (("zstd", body_decoding._ZSTD), ("br", body_decoding._BROTLI)):
        for name in names:
            try:
                yield coding, name, import_module(name).compress
            except ImportError:
                continue


CODINGS = list(compressors())


@pytest.fixture(params=CODINGS, ids=lambda case: f"{case[0]}-{case[1]}-{case[2].__name__}")
def coding(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Callable[[bytes], bytes]]]:
    name, module, compress = request.param
    monkeypatch.setattr(body_decoding, "_ZSTD", (module,))
    monkeypatch.setattr(body_decoding, "_BROTLI", (module,))
    body_decoding.decoder_of.cache_clear()
    yield name, compress
    body_decoding.decoder_of.cache_clear()


def test_what_was_compressed_comes_back(coding: tuple[str, Callable[[bytes], bytes]]) -> None:
    name, compress = coding
    for data in (TEXT, b"x", TEXT[:100]):
        assert decode_body(compress(data), [name], LIMIT) == (data, True)
        assert decode_body(gzip.compress(compress(data)), [name, "gzip"], LIMIT) == (data, True)
    assert undecodable_reason([name, "gzip"]) == ""


def test_no_more_comes_of_a_body_than_the_limit(coding: tuple[str, Callable[[bytes], bytes]]) -> None:
    name, compress = coding
    assert decode_body(compress(TEXT), [name], 1000) == (TEXT[:1000], False)
    assert decode_body(compress(bytes(50_000_000)), [name], 1000) == (bytes(1000), False)


def test_of_a_body_that_is_cut_or_broken_the_beginning_comes_back(coding: tuple[str, Callable[[bytes], bytes]]) -> None:
    name, compress = coding
    body = compress(TEXT)
    for size in (0, 1, 2, 300, len(body) // 2, len(body) - 9):
        decoded, _ = decode_body(body[:size], [name], LIMIT)
        assert TEXT.startswith(decoded) or decoded == body[:size]
    assert decode_body(b"no such thing" * 100, [name], LIMIT)[1] is False


def test_gzip_may_have_several_members_and_padding() -> None:
    body = gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])
    assert decode_body(body, ["gzip"], LIMIT) == (TEXT, True)
    assert decode_body(body + bytes(100), ["gzip"], LIMIT) == (TEXT, True)


@pytest.mark.parametrize("wrong", ["none", "utf-8", "gzip", "deflate", "zstd"])
def test_coding_that_a_body_does_not_have_is_passed_over(wrong: str) -> None:
    plain = b"<!doctype html><p>x"
    assert decode_body(plain, [wrong], LIMIT) == (plain, False)
    assert decode_body(plain, [wrong], 5) == (plain[:5], False)
    assert decode_body(gzip.compress(plain), ["gzip", wrong], LIMIT) == (plain, False)
    assert decode_body(gzip.compress(plain), [wrong, "gzip"], LIMIT) == (plain, False)
    assert decode_body(gzip.compress(b""), ["gzip"], LIMIT) == (b"", True)


@pytest.mark.parametrize(
    ("value", "codings"),
    [
        ("", ()),
        ("identity", ()),
        ("gzip", ("gzip",)),
        (" X-GZIP , ,br", ("gzip", "br")),
        ("deflate, identity, zstd", ("deflate", "zstd")),
    ],
)
def test_the_codings_of_a_header(value: str, codings: tuple[str, ...]) -> None:
    assert parse_codings(value) == codings


@pytest.mark.parametrize("coding_name", ["br", "zstd"])
def test_missing_decoder_is_named_in_the_reason(coding_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (*body_decoding._BROTLI, *body_decoding._ZSTD):
        monkeypatch.setitem(sys.modules, module, None)
    body_decoding.decoder_of.cache_clear()
    try:
        reason = f"is compressed with '{coding_name}', for which no decoder is installed"
        assert undecodable_reason(["gzip", coding_name]) == reason
        assert decode_body(b"x", [coding_name], LIMIT) == (b"x", False)
    finally:
        body_decoding.decoder_of.cache_clear()
    assert undecodable_reason(["a" * 99]) == f"is compressed with '{'a' * 20}', for which no decoder is installed"


def test_decoders_of_other_packages_are_called_by_their_own_api() -> None:
    """The packages zstandard and brotli are not installed everywhere: what stands for them speaks as they do."""

    class Reader:
        def __init__(self, body: bytes) -> None:
            self.left = body

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read(self, size: int) -> bytes:
            piece, self.left = self.left[:size], self.left[size:]
            return piece

    class Decompressor:
        def stream_reader(self, body: bytes, *, read_across_frames: bool) -> Reader:
            assert read_across_frames
            return Reader(body[::-1])

        def process(self, piece: bytes) -> bytes:
            self.last = piece
            return piece

        def is_finished(self) -> bool:
            return self.last.endswith(b".")

    module = SimpleNamespace(ZstdDecompressor=Decompressor, Decompressor=Decompressor)
    assert b"".join(body_decoding.zstd_decoder(module)(TEXT)) == TEXT[::-1]
    assert b"".join(body_decoding.brotli_decoder(module)(TEXT + b".")) == TEXT + b"."
    with pytest.raises(body_decoding._TruncatedStream):
        list(body_decoding.brotli_decoder(module)(TEXT))


@given(st.binary(max_size=300), st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd", "x"]), max_size=3))
def test_any_bytes_can_be_decoded(body: bytes, codings: list[str]) -> None:
    decoded, is_complete = decode_body(body, codings, LIMIT)
    assert len(decoded) <= LIMIT
    assert is_complete or codings
