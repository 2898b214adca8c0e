"""Serialized chunks are loaded unchanged or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.rendering.chunked_document import EMPTY_CHUNK, NEVER_SECONDS, Chunk, RenderKey, compress_chunk
from sitemap_middleware.rendering.stored_chunk_codec import (
    chunk_data,
    deserialize,
    serialize,
    with_data,
)
from sitemap_middleware.stores.checksums import with_checksum

eights = st.binary(min_size=8, max_size=8)
chunks = st.builds(
    compress_chunk,
    st.binary(min_size=1, max_size=50),
    st.integers(1, 1000),
    st.sampled_from([None, "2024-05-01", "2024-05-01T06:30:00Z"]),
)
rows = st.builds(
    Chunk._replace,
    chunks,
    data=st.just(b""),
    number=st.integers(0, 1 << 40),
    render_key=st.builds(RenderKey, st.integers(0, 1 << 60), eights, (st.just(b"") | eights.filter(any))),
    valid_until=st.integers(0, NEVER_SECONDS),
)


def flipped(data: bytes, at: int) -> bytes:
    """The data with one bit flipped."""
    place = at % (8 * len(data))
    return bytes(byte ^ ((place // 8 == number) << place % 8) for number, byte in enumerate(data))


@given(st.lists(rows))
def test_rows_come_back_as_they_were(made: list[Chunk]) -> None:
    assert list(deserialize(serialize(made))) == made


@given(st.lists(rows), st.integers(0))
def test_rows_of_which_a_bit_has_changed_do_not_come_back(made: list[Chunk], at: int) -> None:
    assert list(deserialize(flipped(serialize(made), at))) == []


@given(st.lists(rows), st.integers(1), st.binary(max_size=3))
def test_nor_do_rows_that_were_cut_off_or_continued(made: list[Chunk], cut: int, more: bytes) -> None:
    data = serialize(made)
    assert list(deserialize(data[: -(cut % len(data)) or None][: len(data) - 1])) == []
    assert list(deserialize(data + more)) == ([] if more else made)


def test_what_is_sealed_but_no_whole_number_of_rows_is_none() -> None:
    assert list(deserialize(with_checksum(b"x"))) == list(deserialize(b"")) == []


@given(chunks)
def test_a_chunk_comes_back_with_its_data(chunk: Chunk) -> None:
    assert with_data(chunk._replace(data=b""), chunk_data(chunk)) == chunk


@given(chunks, chunks, st.integers(0))
def test_damaged_or_foreign_chunk_data_is_rejected(chunk: Chunk, other: Chunk, at: int) -> None:
    bare = chunk._replace(data=b"")
    assert with_data(bare, flipped(chunk_data(chunk), at)) is None
    assert with_data(bare, chunk_data(chunk)[:-1]) is None
    assert with_data(bare, None) is None
    if other.digest != chunk.digest:
        assert with_data(bare, chunk_data(other)) is None


@pytest.mark.parametrize("data", [b"", b"x" * 16, chunk_data(EMPTY_CHUNK)])
def test_no_data_are_not_those_of_a_chunk(data: bytes) -> None:
    assert with_data(compress_chunk(b"x", 1, None), data) is None
