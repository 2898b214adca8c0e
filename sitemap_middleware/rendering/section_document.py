"""The documents of a section, as chunks; and how they become the documents that the sitemap consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from ..exceptions import StoreError
from ..models import BaseURL
from ..stores.base import Store
from . import chunk_codec
from .chunked_document import Chunk, Document, latest, sitemapindex, urlset
from .chunking import group_chunks


def nothing_to_reload() -> None:
    """Do nothing: chunks in memory cannot be lost."""


@dataclass(frozen=True)
class SectionDocument:
    """One document that the index may name."""

    name: str
    """The part of its path after the sitemap's own name, without ".xml": "routes-1"."""
    chunks: Sequence[Chunk]
    """Its chunks; without their data if these are in the store."""
    stored_names: Sequence[str] = ()
    """The names of their data in the store, one for each chunk; none if they have their data."""
    reload_or_discard: Callable[[], None] = nothing_to_reload
    """Called if data of a chunk are missing from the store."""
    is_incomplete: bool = False
    """Whether some of its pages have never been rendered."""
    is_named: bool = False
    """Whether the option `sections` names it, so that it is always a document of its own."""

    @cached_property
    def lastmod(self) -> str | None:
        """The latest lastmod of its entries."""
        return latest(chunk.lastmod for chunk in self.chunks)

    @cached_property
    def count(self) -> int:
        """The number of its entries."""
        return sum(chunk.count for chunk in self.chunks)

    def load_chunks(self, store: Store, base: BaseURL) -> Iterator[Chunk]:
        """Its chunks, with their data. `StoreError` if data were lost; the next request renders them again."""
        if not self.stored_names:
            yield from self.chunks
            return
        stored = store.load(base, self.stored_names)
        for name, chunk in zip(self.stored_names, self.chunks, strict=True):
            loaded = chunk_codec.with_data(chunk, stored.get(name))
            if loaded is None:
                self.reload_or_discard()
                raise StoreError(f"chunks of {self.name} of {base} are missing from the store; they are rendered again")
            yield loaded


def fits_one_document(documents: Sequence[SectionDocument]) -> bool:
    """Whether one document can hold all entries, all are rendered, and no section has a name."""
    if any(document.is_named or document.is_incomplete for document in documents):
        return False
    return len(list(islice(group_chunks(_all_chunks(documents)), 2))) < 2


def assemble(documents: Sequence[SectionDocument], store: Store, base: BaseURL) -> Document:
    """The one document of all entries of these documents. `StoreError` as in `SectionDocument.load_chunks`."""
    return urlset([chunk for document in documents for chunk in document.load_chunks(store, base)])


def assemble_without_data(documents: Sequence[SectionDocument]) -> Document:
    """The same without loading data from the store: its figures are right, but it cannot be sent."""
    return urlset([*_all_chunks(documents)])


def index_of(documents: Sequence[SectionDocument], stem: str) -> Document:
    """The index that names these documents. `stem`: how the URLs of all begin, such as "https://example.com/sitemap"."""
    return sitemapindex((f"{stem}-{document.name}.xml", document.lastmod) for document in documents)


def _all_chunks(documents: Sequence[SectionDocument]) -> Iterator[Chunk]:
    return (chunk for document in documents for chunk in document.chunks)
