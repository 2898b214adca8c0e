"""Documents made of ready-compressed chunks: one file, whether it is read plain or gzipped, and within the limits."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from sitemap_middleware.models import CHANGEFREQS, SitemapUrl, UrlColumns
from sitemap_middleware.rendering import concatenable_deflate, crc32
from sitemap_middleware.rendering.chunked_document import (
    PART_BYTES,
    Chunk,
    Document,
    compress_chunk,
    sitemapindex,
    urlset,
)
from sitemap_middleware.rendering.chunking import group_chunks, make_chunks
from sitemap_middleware.rendering.xml import URLSET_FRAME, render_urls
from sitemap_middleware.sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT
from sitemap_middleware.urls import MAX_LOC_CHARS

from ...support.documents import entries, locs

FRAME = sum(map(len, URLSET_FRAME))


def chunk(size: int, count: int = 1, lastmod: str | None = None) -> Chunk:
    """A chunk of so many bytes; of what, makes no difference."""
    return compress_chunk(b" " * size, count, lastmod)


def plain(document: Document) -> bytes:
    return b"".join(document.plain())


def zipped(document: Document) -> bytes:
    return b"".join(document.gzipped())


def run(program: str) -> bytes:
    """The output of a program in a separate interpreter."""
    return subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE).stdout


# CRC-32


Combine = Callable[[int, int, int], int]
COMBINED = pytest.mark.parametrize("combine", [crc32.combine, isal_zlib.crc32_combine])


@COMBINED
@given(st.lists(st.binary()))
def test_the_crc_of_runs_of_bytes_is_made_of_the_crcs_of_each(combine: Combine, runs: list[bytes]) -> None:
    crc = 0
    for run in runs:
        crc = combine(crc, zlib.crc32(run), len(run))
    assert crc == zlib.crc32(b"".join(runs))


@COMBINED
@given(st.binary(max_size=30), st.integers(0, 1 << 22))
def test_long_runs_of_bytes_make_no_difference_to_that(combine: Combine, first: bytes, zeros: int) -> None:
    second = bytes(zeros)
    assert combine(zlib.crc32(first), zlib.crc32(second), zeros) == zlib.crc32(first + second)


def test_isal_combines_them_if_it_is_imported_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    assert crc32.fastest_combine() is isal_zlib.crc32_combine
    monkeypatch.delitem(sys.modules, "isal.isal_zlib")
    assert crc32.fastest_combine() is crc32.combine


# Compressing


@pytest.mark.parametrize("deflated", [concatenable_deflate.compress_with_zlib, concatenable_deflate.compress_with_isal])
@given(runs=st.lists(st.binary(max_size=2000)), most=st.integers(1, 300))
def test_pieces_in_a_row_inflate_to_what_they_were_in_a_row(
    deflated: Callable[[bytes], bytes], runs: list[bytes], most: int
) -> None:
    pieces = [deflated(run) for run in runs]
    content = b"".join(runs)
    assert zlib.decompress(b"".join(pieces) + concatenable_deflate.final_block(b""), -zlib.MAX_WBITS) == content
    parts = [part for piece in pieces for part in concatenable_deflate.inflate(piece, most)]
    assert b"".join(parts) == content
    assert all(0 < len(part) <= most for part in parts)


PACK = """
import sys
{before}
from sitemap_middleware.rendering.chunked_document import urlset
from sitemap_middleware.models import SitemapUrl, UrlColumns
from sitemap_middleware.rendering.chunking import make_chunks
document = urlset(list(make_chunks([UrlColumns.of([SitemapUrl(f"https://example.com/{{n}}") for n in range(3000)])])))
sys.stdout.buffer.write(b"\\n".join([document.etag.encode(), b"".join(document.{how}())]))
"""


def test_without_isal_the_same_document_is_made_by_zlib() -> None:
    def generate(before: str, how: str) -> tuple[bytes, str]:
        tag, _, body = run(PACK.format(before=before, how=how)).partition(b"\n")
        return body, tag.decode()

    fast, fast_tag = generate("", "gzipped")
    slow, slow_tag = generate("sys.modules['isal'] = None", "gzipped")
    assert fast != slow
    assert fast_tag == slow_tag
    assert gzip.decompress(fast) == gzip.decompress(slow) == generate("sys.modules['isal'] = None", "plain")[0]


def test_where_isal_is_missing_zlib_compresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concatenable_deflate, "fast_zlib", zlib)
    assert concatenable_deflate.fastest_compressor.__wrapped__() is concatenable_deflate.compress_with_zlib
    assert concatenable_deflate.fastest_crc32.__wrapped__() is zlib.crc32


# Documents


rows = st.builds(
    SitemapUrl,
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30).map(lambda text: f"https://a.b/{text}"),
    st.none() | st.dates().map(str),
    st.none() | st.sampled_from(CHANGEFREQS),
    st.none() | st.floats(0, 1),
)


@given(st.lists(st.lists(rows)), st.integers(1, 7), st.integers(1, 2000))
def test_document_is_the_same_however_its_entries_are_chunked(
    batches: list[list[SitemapUrl]], most: int, most_bytes: int
) -> None:
    chunks = list(make_chunks(map(UrlColumns.of, batches), most, most_bytes))
    document, urls = urlset(chunks), [entry for batch in batches for entry in batch]
    content = plain(document)
    head, tail = URLSET_FRAME
    assert content == head + render_urls(UrlColumns.of(urls)).encode() + tail
    assert gzip.decompress(zipped(document)) == content
    assert (document.size, document.gzipped_size) == (len(content), len(zipped(document)))
    assert document.count == len(urls)
    assert document.lastmod == max((entry.lastmod for entry in urls if entry.lastmod), default=None)
    for part in chunks:
        assert 0 < part.count <= most
        assert part.size <= most_bytes or part.count == 1


def etag_of(urls: list[SitemapUrl]) -> str:
    return urlset(list(make_chunks([UrlColumns.of(urls)], max_entries=10))).etag


def test_equal_chunks_share_an_etag_and_others_do_not() -> None:
    urls = [SitemapUrl(f"https://example.com/{number}", "2024-05-01") for number in range(30)]
    tags = {etag_of(urls) for _ in range(2)}
    assert len(tags) == 1
    tags |= {
        etag_of([*urls[:-1], SitemapUrl("https://example.com/else")]),
        etag_of(urls[::-1]),
        urlset([]).etag,
        sitemapindex([]).etag,
    }
    assert len(tags) == 5
    assert all(len(bytes.fromhex(tag)) == 16 for tag in tags)


def test_a_changed_entry_makes_another_chunk_of_its_own_run_alone() -> None:
    urls = [SitemapUrl(f"https://example.com/{number}") for number in range(100)]
    before = list(make_chunks([UrlColumns.of(urls)], max_entries=10))
    urls[35] = SitemapUrl("https://example.com/" + "x" * 1000)
    after = list(make_chunks([UrlColumns.of(urls)], max_entries=10, max_bytes=1000))
    assert before[:3] == after[:3]
    assert before[4:] == after[-6:]


def test_a_gzipped_document_is_the_same_bytes_whenever_it_is_made() -> None:
    first, second = (zipped(urlset([compress_chunk(b"x" * 1000, 1, None)])) for _ in range(2))
    assert first == second
    assert first[4:8] == bytes(4), "no date"
    assert gzip.decompress(first) == URLSET_FRAME[0] + b"x" * 1000 + URLSET_FRAME[1]


def test_a_document_comes_in_parts_that_are_neither_many_nor_large() -> None:
    noise = os.urandom(2_000_000)
    pieces = [noise[start : start + 500_000] for start in range(0, len(noise), 500_000)]
    document = urlset([compress_chunk(piece, 1, None) for piece in pieces] + [compress_chunk(b"x", 1, None)] * 2000)
    parts = list(document.plain())
    assert all(PART_BYTES <= len(part) <= PART_BYTES + concatenable_deflate.MAX_INFLATE_BYTES for part in parts[:-1])
    assert b"".join(parts) == b"".join((URLSET_FRAME[0], noise, b"x" * 2000, URLSET_FRAME[1]))
    parts = list(document.gzipped())
    assert len(parts) < 2 + document.gzipped_size // PART_BYTES
    assert gzip.decompress(b"".join(parts)) == plain(document)


def test_a_document_of_one_part_is_one_part() -> None:
    assert [len(part) for part in urlset([chunk(PART_BYTES - FRAME)]).plain()] == [PART_BYTES]
    assert [len(part) for part in urlset([chunk(PART_BYTES - FRAME - 1)]).plain()] == [PART_BYTES - 1]


def test_an_index_gives_each_document_its_own_lastmod() -> None:
    documents = [
        (f"https://example.com/a&b-{number}.xml", None if number % 2 else "2024-05-01") for number in range(2500)
    ]
    index = sitemapindex(documents)
    assert entries(plain(index)) == {loc: {"lastmod": day} if day else {} for loc, day in documents}
    assert gzip.decompress(zipped(index)) == plain(index)
    assert (index.count, index.lastmod, index.size) == (2500, "2024-05-01", len(plain(index)))


# The limits


@pytest.mark.once
@pytest.mark.parametrize(
    ("count", "parts"),
    [
        (MAX_URLS_PER_DOCUMENT - 1, [MAX_URLS_PER_DOCUMENT - 1]),
        (MAX_URLS_PER_DOCUMENT, [MAX_URLS_PER_DOCUMENT]),
        (MAX_URLS_PER_DOCUMENT + 1, [MAX_URLS_PER_DOCUMENT, 1]),
    ],
)
def test_no_document_holds_more_than_50_000_urls(count: int, parts: list[int]) -> None:
    documents = [
        urlset(row)
        for row in group_chunks(
            make_chunks([UrlColumns.of([SitemapUrl(f"https://example.com/{number}") for number in range(count)])])
        )
    ]
    assert [document.count for document in documents] == parts
    assert [len(locs(plain(document))) for document in documents] == parts


@pytest.mark.parametrize(("spare", "parts"), [(-1, 1), (0, 1), (1, 2)])
def test_no_document_has_more_than_52_428_800_bytes(spare: int, parts: int) -> None:
    sizes = [500_000] * ((MAX_BYTES_PER_DOCUMENT - FRAME) // 500_000)
    sizes.append(MAX_BYTES_PER_DOCUMENT - FRAME - sum(sizes) + spare)
    full = chunk(500_000)
    documents = [urlset(row) for row in group_chunks([full] * (len(sizes) - 1) + [chunk(sizes[-1])])]
    assert len(documents) == parts
    assert sum(document.size - FRAME for document in documents) == sum(sizes)
    assert all(sum(map(len, document.plain())) == document.size <= MAX_BYTES_PER_DOCUMENT for document in documents)


@pytest.mark.uncovered
@pytest.mark.parametrize("letter", ["&", "'"])
def test_the_limit_of_bytes_holds_where_every_letter_is_escaped(letter: str) -> None:
    base = "https://example.com/"
    urls = [SitemapUrl(base + f"{number:07}" + letter * (MAX_LOC_CHARS - len(base) - 7)) for number in range(6000)]
    documents = [urlset(row) for row in group_chunks(make_chunks([UrlColumns.of(urls)]))]
    assert [document.size <= MAX_BYTES_PER_DOCUMENT for document in documents] == [True, True]
    assert sum(document.count for document in documents) == len(urls)
    assert documents[0].size > MAX_BYTES_PER_DOCUMENT - 512 * 1024, "as few as hold them"
    read: list[str] = []
    for document in documents:
        content = plain(document)
        assert len(content) == document.size
        assert gzip.decompress(zipped(document)) == content
        read += locs(content)
    assert read == [entry.loc for entry in urls]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 60)), max_size=30), st.integers(5, 12), st.integers(60, 150)
)
def test_chunks_keep_their_order_in_as_few_documents_as_possible(
    shapes: list[tuple[int, int]], max_urls: int, room: int
) -> None:
    chunks = [chunk(size, count) for count, size in shapes]
    documents = list(group_chunks(iter(chunks), max_urls, FRAME + room))
    assert [each for row in documents for each in row] == chunks

    def holds(row: Iterable[Chunk]) -> bool:
        row = list(row)
        return sum(each.count for each in row) <= max_urls and sum(each.size for each in row) <= room

    assert all(row and holds(row) for row in documents)
    assert not any(holds([*row, following[0]]) for row, following in pairwise(documents))


@pytest.mark.parametrize("large", [chunk(10, 6), chunk(101)])
def test_a_chunk_that_no_document_can_hold_is_refused(large: Chunk) -> None:
    with pytest.raises(ValueError, match="fits into no document of 5 entries"):
        list(group_chunks([chunk(5), large], max_urls=5, max_bytes=FRAME + 100))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from Linux's /proc")
def test_reading_a_large_document_takes_the_memory_of_a_part() -> None:
    reading = """
from sitemap_middleware.rendering.chunked_document import compress_chunk, urlset
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
document = urlset([compress_chunk(b"x" * 500_000, 1, None)] * 100)
before = most()
assert sum(map(len, document.plain())) == document.size > 50_000_000
assert sum(map(len, document.gzipped())) == document.gzipped_size
print(most() - before)
"""
    assert int(run(reading)) < 4096, "kB"
