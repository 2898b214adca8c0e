"""Bodies that the app compressed: each coding, several of them, cut, broken, and bombs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence import response_parser
from sitemap_middleware.evidence.response_parser import decode_body, undecodable_reason

TEXT = b"".join(b"<p>%d</p>" % number for number in range(9000))
LIMIT = 1024 * 1024


def raw(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


CODINGS = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw),
    "zstd": ("zstd", response_parser._zstd.compress),
    "br": ("br", response_parser._brotli.compress),
}
EACH = pytest.mark.parametrize(("coding", "compress"), CODINGS.values(), ids=CODINGS)


@EACH
def test_what_was_compressed_comes_back_up_to_the_limit(coding: str, compress: Callable[[bytes], bytes]) -> None:
    for data in (TEXT, b"x", b""):
        assert decode_body(compress(data), [coding], LIMIT) == (data, True)
        assert decode_body(gzip.compress(compress(data)), [coding, "gzip"], LIMIT) == (data, True)
    assert decode_body(compress(TEXT), [coding], 1000) == (TEXT[:1000], False)
    assert decode_body(compress(TEXT), [coding], len(TEXT)) == (TEXT, True)
    assert decode_body(compress(bytes(5_000_000)), [coding], 1000) == (bytes(1000), False)
    assert undecodable_reason([coding, "gzip"]) == ""


@EACH
def test_of_a_body_that_is_cut_the_beginning_comes_back(coding: str, compress: Callable[[bytes], bytes]) -> None:
    body = compress(TEXT)
    for size in (0, 1, 2, 300, len(body) // 2, len(body) - 9):
        decoded, is_complete = decode_body(body[:size], [coding], LIMIT)
        assert not is_complete
        assert TEXT.startswith(decoded) or decoded == body[:size]
    assert coding not in ("gzip", "deflate") or len(decoded) > len(TEXT) // 2
    assert decode_body(b"no such thing" * 100, [coding], LIMIT)[1] is False


@pytest.mark.parametrize("wrong", ["none", "utf-8", "gzip", "deflate", "zstd"])
def test_coding_that_a_body_does_not_have_is_passed_over(wrong: str) -> None:
    plain = b"<!doctype html><p>x"
    assert decode_body(plain, [wrong], LIMIT) == (plain, False)
    assert decode_body(plain, [wrong], 5) == (plain[:5], False)
    assert decode_body(gzip.compress(plain), ["gzip", wrong], LIMIT) == (plain, False)
    assert decode_body(gzip.compress(plain), [wrong, "gzip"], LIMIT) == (plain, False)


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_missing_decoder_is_named_in_the_reason(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert response_parser.first_installed("no.such.module", "zlib") is zlib
    monkeypatch.setattr(response_parser, "_brotli", response_parser.first_installed("no.such.module"))
    monkeypatch.setattr(response_parser, "_zstd", None)
    reason = f"is compressed with '{coding}', for which no decoder is installed"
    assert undecodable_reason(["gzip", coding]) == reason
    assert decode_body(b"x", [coding], LIMIT) == (b"x", False)
    assert undecodable_reason(["a" * 99]) == f"is compressed with '{'a' * 20}', for which no decoder is installed"


@given(st.binary(max_size=300), st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd", "x"]), max_size=3))
def test_any_bytes_can_be_decoded(body: bytes, codings: list[str]) -> None:
    decoded, is_complete = decode_body(body, codings, LIMIT)
    assert len(decoded) <= LIMIT
    assert is_complete or codings
