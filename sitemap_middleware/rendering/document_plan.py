"""Parts: the documents that a sitemap comes to, put together of what is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from ..exceptions import StoreError
from ..models import BaseURL
from ..stores.base import Store
from . import chunk_index
from .chunk_index import ChunkInfo
from .chunking import group_chunks
from .chunks import Chunk, latest

ChunkSource = tuple[str, ChunkInfo] | Chunk
"""A chunk that is at hand; or the name under which its data are in the store, and its row."""


def nothing_to_reload() -> None:
    """What is at hand needs no mending."""


@dataclass(frozen=True)
class DocumentPlan:
    """One document that the index may name."""

    name: str
    """Between the sitemap's own name and .xml."""
    pieces: Sequence[ChunkSource]
    reload_or_discard: Callable[[], None] = nothing_to_reload
    """To be called where its data are not in the store."""
    is_incomplete: bool = False
    """Whether some of its pages were never judged yet."""

    @property
    def chunks(self) -> Iterator[Chunk]:
        """Its chunks, perhaps without their data."""
        return (piece if isinstance(piece, Chunk) else piece[1].chunk for piece in self.pieces)

    @cached_property
    def lastmod(self) -> str | None:
        """The latest within."""
        return latest(chunk.lastmod for chunk in self.chunks)

    @cached_property
    def count(self) -> int:
        """How many entries it has."""
        return sum(chunk.count for chunk in self.chunks)

    def load_chunks(self, store: Store, base: BaseURL) -> Iterator[Chunk]:
        """Its chunks, with their data; `StoreError` where these were lost, and are to be made again."""
        names = [piece[0] for piece in self.pieces if not isinstance(piece, Chunk)]
        kept = store.load(base, names) if names else {}
        for piece in self.pieces:
            chunk = piece if isinstance(piece, Chunk) else chunk_index.load_chunk(piece[1], kept.get(piece[0]))
            if chunk is None:
                self.reload_or_discard()
                raise StoreError(f"what was rendered of {self.name} of {base} was lost; it is made again")
            yield chunk


def fits_one_document(parts: Sequence[DocumentPlan]) -> bool:
    """Whether one document can hold all entries, and all are known."""
    chunks = (chunk for part in parts for chunk in part.chunks)
    return not any(part.is_incomplete for part in parts) and len(list(islice(group_chunks(chunks), 2))) < 2
