"""The learned pages of one site: which of their blocks are rendered as they are now, and the rendering of the others.

What is rendered is kept in the store, for all workers, and made anew where its
block has changed, or what it was judged by.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from functools import partial

from ..evidence.verdict import expires_after
from ..listing.entries import EntryBuilder
from ..listing.policy import EvaluationContext
from ..models import Site
from ..routing.url_map import LEARNED_SECTION
from ..stores.base import UNLEARNED_BLOCK, Block, Store
from ..stores.placement import MAX_BLOCK_BYTES, MAX_BLOCK_PAGES
from . import chunk_index
from .chunk_index import ChunkInfo, RenderKey
from .chunking import make_chunks
from .chunks import EMPTY_CHUNK
from .document_plan import DocumentPlan

log = logging.getLogger("sitemap_middleware")


class LearnedSection:
    """The blocks and the sheets of a site, as they were in the store when it was last looked at."""

    def __init__(self, entries: EntryBuilder, store: Store, site: Site) -> None:
        self._entries = entries
        self._store = store
        self._site = site
        self._clear()

    def _clear(self) -> None:
        self.version = 0
        self.named_block = Block(UNLEARNED_BLOCK, 0, 0, 0)
        """The pages that are not learned."""
        self._blocks: dict[int, dict[int, Block]] = {}
        """Of each document."""
        self._known: dict[int, Block] = {}
        """The same and `named`, by their numbers."""
        self._rows: dict[int, dict[int, ChunkInfo]] = {}
        """What is rendered of each."""
        self._parts: dict[int, DocumentPlan] = {}
        """What each comes to, as far as that is known: of hundreds, few change at one time."""
        self._checked: dict[int, tuple[tuple[bytes, ...], int]] = {}
        """What each was judged by when it was last seen to have nothing stale in it, and until when that holds."""

    @property
    def pages(self) -> int:
        """How many pages the site has, all in all."""
        return self.named_block.pages + sum(
            block.pages for blocks in self._blocks.values() for block in blocks.values()
        )

    def documents(self) -> list[DocumentPlan]:
        """The documents that have entries, or may have, as far as they are rendered."""
        parts = [self._part(number) for number in sorted(self._rows)]
        return [part for part in parts if part.pieces or part.is_incomplete]

    def _part(self, document: int) -> DocumentPlan:
        part = self._parts.get(document)
        if part is None:
            rows = sorted(self._rows[document].items())
            pieces = [(_chunk_name(document, number), row) for number, row in rows if row.chunk.count]
            part = DocumentPlan(
                f"{LEARNED_SECTION}-{document}",
                pieces,
                partial(self.reload_or_discard, document),
                self.has_unrendered_blocks(document),
            )
            self._parts[document] = part
        return part

    def _mark_changed(self, document: int) -> None:
        """Take note that something of a document is another."""
        self._parts.pop(document, None)
        self._checked.pop(document, None)

    def refresh(self, version: int) -> None:
        """Take note of what has changed in the store up to a version of the site.

        All blocks are compared with what is known of them. The store may have lost changes, and gained others since.
        """
        if version == self.version:
            return
        blocks = {block.number: block for block in self._store.blocks(self._site.store_key)}
        if any(number not in blocks or blocks[number].version < known.version for number, known in self._known.items()):
            log.warning(
                "the sitemap's store has lost what it held of %s: it was emptied, or an earlier copy took its place;"
                " what was lost is learned again",
                self._site.base_url,
            )
            self._clear()
        if any(blocks[number].document != known.document for number, known in self._known.items()):
            self._clear()  # a repair has put a block into another document, and its pages must not stay in both
        changed = [block for number, block in blocks.items() if self._known.get(number) != block]
        new = sorted({block.document for block in changed if block.number != UNLEARNED_BLOCK}.difference(self._blocks))
        kept = self._stored_indexes(new)  # before anything is noted: where it fails, all is looked at again
        for block in changed:
            if block.number == UNLEARNED_BLOCK:
                self.named_block = block
            else:
                self._blocks.setdefault(block.document, {})[block.number] = block
                self._mark_changed(block.document)
        self._apply_index(new, kept)
        self._known = blocks
        self.version = version

    def _read_index(self, document: int) -> None:
        """Read the sheet of a document."""
        self._apply_index([document], self._stored_indexes([document]))

    def _stored_indexes(self, documents: list[int]) -> dict[str, bytes]:
        """The sheets of documents, as they are in the store."""
        return self._store.load(self._site.base_url, [_index_name(number) for number in documents])

    def _apply_index(self, documents: list[int], kept: dict[str, bytes]) -> None:
        """Take the rows of documents from their sheets."""
        for number in documents:
            self._mark_changed(number)
            rows = self._rows[number] = {}
            for row in chunk_index.deserialize(kept.get(_index_name(number), b"")):
                if row.number in self._blocks[number]:
                    rows[row.number] = row

    def stale_blocks(self, view: EvaluationContext, document: int | None = None) -> dict[int, list[Block]]:
        """The blocks, of one document or of all, that are not rendered as they now are, by document."""
        by = view.settings_digest, view.site_signals.record.digest, view.site_signals.record.is_dated
        found = {}
        for number in sorted(self._blocks) if document is None else [document]:
            judged, until = self._checked.get(number, ((), 0))
            if judged != by or view.snapshot.now >= until:
                blocks = [block for block in self._blocks.get(number, {}).values() if self._is_block_stale(view, block)]
                if blocks:
                    found[number] = blocks
                else:
                    rows = self._rows.get(number, {})
                    self._checked[number] = (
                        by,
                        min((row.valid_until for row in rows.values()), default=chunk_index.NEVER_SECONDS),
                    )
        return found

    def _is_block_stale(self, view: EvaluationContext, block: Block) -> bool:
        row = self._rows[block.document].get(block.number)
        if row is None:
            return block.pages > 0
        version, context, outlook = row.render_key
        return (
            version != block.version
            or view.snapshot.now >= row.valid_until
            or context != view.settings_digest
            or outlook not in (b"", view.site_signals.record.digest, view.site_signals.record.is_dated)
        )

    def has_unrendered_blocks(self, document: int) -> bool:
        """Whether a document has blocks that were never rendered."""
        rows = self._rows[document]
        return any(block.pages and block.number not in rows for block in self._blocks[document].values())

    def render_stale(self, view: EvaluationContext, document: int) -> Generator[None]:
        """Render what is stale of a document, a block a step; what another worker has rendered is taken from it.

        What is done is kept at the end, or where it is left off.
        """
        self._read_index(document)
        rows = self._rows[document]
        before = dict(rows)
        things: dict[str, bytes | None] = {}
        try:
            for block in self.stale_blocks(view, document).get(document, ()):
                pages = self._store.block(self._site.store_key, block.number)
                entries, part = self._entries.block_entries(view, pages)
                chunk = next(make_chunks(entries, MAX_BLOCK_PAGES, 2 * MAX_BLOCK_BYTES), EMPTY_CHUNK)
                origin = RenderKey(block.version, view.settings_digest, part)
                until = min(
                    (end for page in pages for end in expires_after(page, view.snapshot.now)),
                    default=chunk_index.NEVER_SECONDS,
                )
                rows[block.number] = chunk_index.chunk_info(block.number, origin, chunk, until)
                things[_chunk_name(document, block.number)] = chunk_index.chunk_data(chunk) if chunk.count else None
                yield
        finally:
            self._mark_changed(document)
            if things:
                things[_index_name(document)] = chunk_index.serialize(row for _, row in sorted(rows.items()))
                self._rows[document] = before  # where it cannot be kept, it is not rendered
                self._store.save(self._site.base_url, things)
                self._rows[document] = rows

    def reload_or_discard(self, document: int) -> None:
        """Look again for what was rendered of a document; where it is as it was, take it for lost."""
        before = self._rows[document]
        self._read_index(document)
        if self._rows[document] == before:
            self._rows[document] = {}
            self._mark_changed(document)
            self._store.save(self._site.base_url, {_index_name(document): None})


def _index_name(document: int) -> str:
    return f"{LEARNED_SECTION}/{document}"


def _chunk_name(document: int, block: int) -> str:
    return f"{LEARNED_SECTION}/{document}/{block}"
