"""What is kept of chunks comes back as it was, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.documents.chunks import EMPTY, Chunk, packed
from sitemap_middleware.publishing import sheets
from sitemap_middleware.publishing.sheets import RenderKey, ChunkInfo, data_of, read, with_data, written
from sitemap_middleware.stores.seals import sealed

eights = st.binary(min_size=8, max_size=8)
chunks = st.builds(
    packed,
    st.binary(min_size=1, max_size=50),
    st.integers(1, 1000),
    st.sampled_from([None, "2024-05-01", "2024-05-01T06:30:00Z"]),
)
rows = st.builds(
    sheets.row,
    st.integers(0, 1 << 40),
    st.builds(RenderKey, st.integers(0, 1 << 60), eights, (st.just(b"") | eights.filter(any))),
    chunks,
)


def flipped(data: bytes, at: int) -> bytes:
    """The same, but for one bit."""
    place = at % (8 * len(data))
    return bytes(byte ^ ((place // 8 == number) << place % 8) for number, byte in enumerate(data))


@given(st.lists(rows))
def test_rows_come_back_as_they_were(made: list[ChunkInfo]) -> None:
    assert list(read(written(made))) == made


@given(st.lists(rows), st.integers(0))
def test_rows_of_which_a_bit_has_changed_do_not_come_back(made: list[ChunkInfo], at: int) -> None:
    assert list(read(flipped(written(made), at))) == []


@given(st.lists(rows), st.integers(1), st.binary(max_size=3))
def test_nor_do_rows_that_were_cut_off_or_continued(made: list[ChunkInfo], cut: int, more: bytes) -> None:
    whole = written(made)
    assert list(read(whole[: -(cut % len(whole)) or None][: len(whole) - 1])) == []
    assert list(read(whole + more)) == ([] if more else made)


def test_what_is_sealed_but_no_whole_number_of_rows_is_none() -> None:
    assert list(read(sealed(b"x"))) == list(read(b"")) == []


@given(chunks)
def test_a_chunk_comes_back_with_its_data(chunk: Chunk) -> None:
    assert with_data(sheets.row(1, RenderKey(1, b"", b""), chunk), data_of(chunk)) == chunk


@given(chunks, chunks, st.integers(0))
def test_data_of_another_chunk_or_of_which_a_bit_has_changed_are_none(chunk: Chunk, other: Chunk, at: int) -> None:
    row = sheets.row(1, RenderKey(1, b"", b""), chunk)
    assert with_data(row, flipped(data_of(chunk), at)) is None
    assert with_data(row, data_of(chunk)[:-1]) is None
    assert with_data(row, None) is None
    if other.digest != chunk.digest:
        assert with_data(row, data_of(other)) is None


@pytest.mark.parametrize("data", [b"", b"x" * 16, data_of(EMPTY)])
def test_no_data_are_not_those_of_a_chunk(data: bytes) -> None:
    assert with_data(sheets.row(1, RenderKey(1, b"", b""), packed(b"x", 1, None)), data) is None
