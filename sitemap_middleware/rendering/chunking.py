"""Groups entries into chunks, and chunks into as few documents as the protocol's limits allow."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Final

from ..models import UrlColumns
from ..sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT
from .chunked_document import Chunk, compress_chunk, latest_lastmod
from .xml import URLSET_FRAME, render_urls

_FRAME_BYTES: Final = sum(map(len, URLSET_FRAME))


CHUNK_ENTRIES: Final = 625
"""Entries in one chunk. Small chunks make changes cheap, but documents larger.

It divides `MAX_URLS_PER_DOCUMENT`, because a document that is full holds whole chunks only.
"""


def make_chunks(
    batches: Iterable[UrlColumns], max_entries: int = CHUNK_ENTRIES, max_bytes: int = 512 * 1024
) -> Iterator[Chunk]:
    """Render entries into chunks, in their order.

    Each group of `max_entries` entries is one chunk. A group of more than `max_bytes` is split into several. So
    entries that become longer change only the chunks of their own group.

    Args:
        batches: what is listed, in batches of any size.
        max_entries: entries in one chunk.
        max_bytes: bytes in one chunk before compression. A longer entry is a chunk by itself.
    """
    waiting = UrlColumns([], [], [], [])
    for batch in batches:
        waiting = UrlColumns(*map(operator.add, waiting, batch)) if waiting.locs else batch
        grouped = len(waiting.locs) // max_entries * max_entries
        for start in range(0, grouped, max_entries):
            yield from _chunks_of_group(waiting.part(start, start + max_entries), max_bytes)
        waiting = waiting.part(grouped)
    if waiting.locs:
        yield from _chunks_of_group(waiting, max_bytes)


def make_chunk(entries: UrlColumns) -> Chunk:
    """Render entries into one chunk, however many they are."""
    return _chunk_of_text(render_urls(entries), entries)


def _chunk_of_text(text: str, entries: UrlColumns) -> Chunk:
    return compress_chunk(text.encode("ascii"), len(entries.locs), latest_lastmod(entries.lastmods))


def _chunks_of_group(group: UrlColumns, max_bytes: int) -> Iterator[Chunk]:
    text = render_urls(group)
    if len(text) <= max_bytes:
        yield _chunk_of_text(text, group)
        return
    lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
    for start, end in _split_lines(lines, max_bytes):
        body = "".join(lines[start:end]).encode("ascii")
        yield compress_chunk(body, end - start, latest_lastmod(group.lastmods[start:end]))


def _split_lines(lines: list[str], max_bytes: int) -> Iterator[tuple[int, int]]:
    start, size = 0, 0
    for number, line in enumerate(lines):
        if size + len(line) > max_bytes and number > start:
            yield start, number
            start, size = number, 0
        size += len(line)
    yield start, len(lines)


def group_chunks(
    chunks: Iterable[Chunk], max_urls: int = MAX_URLS_PER_DOCUMENT, max_bytes: int = MAX_BYTES_PER_DOCUMENT
) -> Iterator[list[Chunk]]:
    """The chunks of each document, in order, in as few documents as possible.

    Args:
        chunks: what is listed.
        max_urls: entries in one document.
        max_bytes: bytes in one document, with its head and tail.

    Raises:
        ValueError: a chunk fits into no document.
    """
    room = max_bytes - _FRAME_BYTES
    group: list[Chunk] = []
    count, size = 0, 0
    for chunk in chunks:
        if chunk.count > max_urls or chunk.size > room:
            raise ValueError(
                f"a chunk of {chunk.count} entries and {chunk.size} bytes fits into no document of"
                f" {max_urls} entries and {max_bytes} bytes; make smaller ones"
            )
        if count + chunk.count > max_urls or size + chunk.size > room:
            yield group
            group, count, size = [], 0, 0
        group.append(chunk)
        count += chunk.count
        size += chunk.size
    if group:
        yield group
