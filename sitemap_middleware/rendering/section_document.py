"""A document of a section: the rendered chunks that it consists of, in memory or in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from ..exceptions import StoreError
from ..models import BaseURL
from ..stores.base import Store
from . import chunk_codec
from .chunk_codec import ChunkInfo
from .chunked_document import Chunk, latest
from .chunking import group_chunks

ChunkSource = tuple[str, ChunkInfo] | Chunk
"""A chunk in memory, or the name of its data in the store and what is known of it."""


def nothing_to_reload() -> None:
    """Do nothing: chunks in memory cannot be lost."""


@dataclass(frozen=True)
class SectionDocument:
    """One document that the index may name."""

    name: str
    """The part of its path after the sitemap's own name, without ".xml": "routes-1"."""
    chunk_sources: Sequence[ChunkSource]
    reload_or_discard: Callable[[], None] = nothing_to_reload
    """Called if data of a chunk are missing from the store."""
    is_incomplete: bool = False
    """Whether some of its pages have never been rendered."""
    is_named: bool = False
    """Whether the option `sections` names it, so that it is always a document of its own."""

    @property
    def chunks(self) -> Iterator[Chunk]:
        """Its chunks; those in the store without their data."""
        return (source if isinstance(source, Chunk) else source[1].chunk for source in self.chunk_sources)

    @cached_property
    def lastmod(self) -> str | None:
        """The latest lastmod of its entries."""
        return latest(chunk.lastmod for chunk in self.chunks)

    @cached_property
    def count(self) -> int:
        """The number of its entries."""
        return sum(chunk.count for chunk in self.chunks)

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of its chunks, plain and gzipped."""
        plain = sum(chunk.size for chunk in self.chunks)
        return plain, sum(
            len(source.data) if isinstance(source, Chunk) else source[1].gzipped_size for source in self.chunk_sources
        )

    def load_chunks(self, store: Store, base: BaseURL) -> Iterator[Chunk]:
        """Its chunks, with their data. `StoreError` if data were lost; the next request renders them again."""
        names = [source[0] for source in self.chunk_sources if not isinstance(source, Chunk)]
        stored = store.load(base, names) if names else {}
        for source in self.chunk_sources:
            chunk = source if isinstance(source, Chunk) else chunk_codec.load_chunk(source[1], stored.get(source[0]))
            if chunk is None:
                self.reload_or_discard()
                raise StoreError(f"chunks of {self.name} of {base} are missing from the store; they are rendered again")
            yield chunk


def fits_one_document(documents: Sequence[SectionDocument]) -> bool:
    """Whether one document can hold all entries, all are rendered, and no section has a name."""
    if any(document.is_named for document in documents):
        return False
    chunks = (chunk for document in documents for chunk in document.chunks)
    return not any(document.is_incomplete for document in documents) and len(list(islice(group_chunks(chunks), 2))) < 2
