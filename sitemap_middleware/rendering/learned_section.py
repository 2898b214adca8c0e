"""The section of learned pages: rendered a block at a time, and kept in the store for all workers.

A block is rendered again if its pages changed, or what they are evaluated by: options, routes, site signals.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ..dates import SECONDS_PER_DAY, timestamp_of_w3c
from ..evidence.page_as_of import page_as_of
from ..evidence.page_verdict import expires_after
from ..listing.policy import EvaluationContext
from ..models import Page, Site
from ..routing.route_table import LEARNED_SECTION
from ..stores.base import UNLEARNED_BLOCK, Block
from ..stores.permanent_page_slots import MAX_BLOCK_PAGES
from ..yield_to_other_threads import yield_to_other_threads
from . import stored_chunk_codec
from .chunked_document import EMPTY_CHUNK, NEVER_SECONDS, Chunk, RenderKey
from .chunking import make_chunk
from .section import LEASE_SECONDS, WAIT_SECONDS, BackgroundJob, RefreshContext, RenderingResources, SectionDocument

log: logging.Logger = logging.getLogger("sitemap_middleware")

MAX_WAITED_BLOCKS: Final = 100_000 // MAX_BLOCK_PAGES
"""Blocks that a request for the index waits for. If more are stale, all are rendered in the background."""

PAUSE_FACTOR: Final = 4
"""The pause after a document was rendered in the background, as a multiple of the time that took."""


class LearnedSection:
    """The learned pages of one site, as they were in the store when it was last read."""

    def __init__(self, resources: RenderingResources, site: Site, lock: threading.Lock) -> None:
        """`lock`: held by whoever calls any method; rendering in the background takes it too."""
        self._resources = resources
        self._store = resources.store
        self._site = site
        self._lock = lock
        self._job: BackgroundJob | None = None
        self._clear()

    def _clear(self) -> None:
        self._version = 0
        self._blocks: dict[int, Block] = {}
        """All blocks by number, including that of the unlearned pages."""
        self._blocks_by_document: dict[int, dict[int, Block]] = {}
        """The blocks of each document."""
        self._indexes: dict[int, dict[int, Chunk]] = {}
        """The rendered chunks of each document, by block."""
        self._documents: dict[int, SectionDocument] = {}
        """The documents by number. Each is kept until it changes: of hundreds, few change at a time."""
        self._checked: dict[int, tuple[tuple[bytes, ...], int]] = {}
        """The digests by which each document was last found current, and the time until which that holds."""

    @property
    def page_count(self) -> int:
        """The number of pages of the site, learned or not."""
        return sum(block.pages for block in self._blocks.values())

    @property
    def unlearned_version(self) -> int:
        """The store's version of the block of pages that are not learned; 0 if there are none."""
        block = self._blocks.get(UNLEARNED_BLOCK)
        return 0 if block is None else block.version

    def read_blocks(self, version: int) -> None:
        """Read from the store what has changed up to a version of the site.

        All blocks are compared: the store may have lost changes, and gained others since.
        """
        if version == self._version:
            return
        blocks = {block.number: block for block in self._store.blocks(self._site.store_key)}
        if any(
            number not in blocks or blocks[number].version < known.version for number, known in self._blocks.items()
        ):
            log.warning(
                "the sitemap's store has lost what it held of %s: it was emptied, or an earlier copy took its place;"
                " what was lost is learned again",
                self._site.base_url,
            )
            self._resources.sites_lost.add(self._site.store_key)
            self._clear()
        if any(blocks[number].document != known.document for number, known in self._blocks.items()):
            self._clear()  # a repair has moved a block to another document; its pages must not be in both
        changed = [block for number, block in blocks.items() if self._blocks.get(number) != block]
        learned = [block for block in changed if block.number != UNLEARNED_BLOCK]
        new = sorted({block.document for block in learned}.difference(self._blocks_by_document))
        stored = self._load_indexes(new)  # before anything is noted: if this fails, the next request starts over
        for block in learned:
            self._blocks_by_document.setdefault(block.document, {})[block.number] = block
            self._mark_changed(block.document)
        self._apply_indexes(new, stored)
        self._blocks = blocks
        self._version = version

    def refresh(self, context: RefreshContext) -> bool:
        """Render stale blocks: a few at once; of many, only those of the requested document.

        The rest is rendered in the background.
        """
        evaluation = context.evaluation
        stale = self._stale_blocks(evaluation)
        few = sum(map(len, stale.values())) <= MAX_WAITED_BLOCKS
        deadline = self._resources.clock() + WAIT_SECONDS
        for number in stale:
            if few or context.document == f"{LEARNED_SECTION}-{number}":
                self._render(evaluation, number, partial(self._may_stop, number, deadline))
        if not self._stale_blocks(evaluation):
            return True
        if self._job is None or self._job.done.is_set():
            self._job = self._resources.run_in_background(context.request, lambda: self._render_remaining(evaluation))
        return False

    def documents(self) -> list[SectionDocument]:
        """The rendered documents that have entries, or that may have some because they are incomplete."""
        documents = [self._document(number) for number in sorted(self._indexes)]
        return [document for document in documents if document.chunks or document.is_incomplete]

    def _document(self, number: int) -> SectionDocument:
        document = self._documents.get(number)
        if document is None:
            chunks = [chunk for _, chunk in sorted(self._indexes[number].items()) if chunk.count]
            document = self._documents[number] = SectionDocument(
                f"{LEARNED_SECTION}-{number}",
                chunks,
                [_chunk_name(number, chunk.number) for chunk in chunks],
                partial(self._reload_or_discard, number),
                self._has_unrendered_blocks(number),
            )
        return document

    def _may_stop(self, document: int, deadline: float) -> bool:
        """Whether a request has waited long enough, and an earlier state of every block can be served."""
        return self._resources.clock() > deadline and not self._has_unrendered_blocks(document)

    def _has_unrendered_blocks(self, document: int) -> bool:
        """Whether a document has blocks that were never rendered."""
        chunks = self._indexes[document]
        return any(block.pages and block.number not in chunks for block in self._blocks_by_document[document].values())

    # Stale blocks

    def _stale_blocks(self, evaluation: EvaluationContext) -> dict[int, list[Block]]:
        """The stale blocks of every document that has any."""
        signals = evaluation.site_signals.record
        basis = evaluation.settings_digest, signals.digest, signals.dated_digest
        stale = {}
        for number in sorted(self._blocks_by_document):
            checked_by, valid_until = self._checked.get(number, ((), 0))
            if checked_by == basis and evaluation.snapshot.now < valid_until:
                continue
            if blocks := self._stale_blocks_of(evaluation, number):
                stale[number] = blocks
            else:
                chunks = self._indexes.get(number, {}).values()
                valid_until = min((chunk.valid_until for chunk in chunks), default=NEVER_SECONDS)
                self._checked[number] = basis, valid_until
        return stale

    def _stale_blocks_of(self, evaluation: EvaluationContext, document: int) -> list[Block]:
        return [
            block
            for block in self._blocks_by_document.get(document, {}).values()
            if self._is_block_stale(evaluation, block)
        ]

    def _is_block_stale(self, evaluation: EvaluationContext, block: Block) -> bool:
        chunk = self._indexes[block.document].get(block.number)
        if chunk is None:
            return block.pages > 0
        signals = evaluation.site_signals.record
        version, settings_digest, signals_digest = chunk.render_key
        return (
            version != block.version
            or evaluation.snapshot.now >= chunk.valid_until
            or settings_digest != evaluation.settings_digest
            or signals_digest not in (b"", signals.digest, signals.dated_digest)
        )

    # Rendering

    def _render(
        self, evaluation: EvaluationContext, document: int, may_stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Render the stale blocks of a document, and save them; take from the store what another worker rendered."""
        if document not in self._blocks_by_document:
            return  # the store has lost it since the background job began
        self._read_index(document)
        chunks = self._indexes[document]
        before = dict(chunks)
        records: dict[str, bytes | None] = {}
        try:
            for block in self._stale_blocks_of(evaluation, document):
                chunk, data = self._render_block(evaluation, block)
                chunks[block.number] = chunk
                records[_chunk_name(document, block.number)] = data
                self._resources.rendered_blocks += 1
                if may_stop():
                    break
        finally:
            self._mark_changed(document)
            if records:
                records[_index_name(document)] = stored_chunk_codec.serialize(
                    chunk for _, chunk in sorted(chunks.items())
                )
                self._indexes[document] = before  # if it cannot be saved, it is not rendered
                self._store.save(self._site.base_url, records)
                self._indexes[document] = chunks

    def _render_block(self, evaluation: EvaluationContext, block: Block) -> tuple[Chunk, bytes | None]:
        stored, now = self._store.block(self._site.store_key, block.number), evaluation.snapshot.now
        pages = [page_as_of(page, now) for page in stored]
        yield_to_other_threads()
        entries, signals_digest = self._resources.entries.block_entries(evaluation, block.number, pages)
        yield_to_other_threads()
        chunk = make_chunk(entries) if entries.locs else EMPTY_CHUNK
        valid_until = self._valid_until(pages, now, hides_future=pages != stored)
        key = RenderKey(block.version, evaluation.settings_digest, signals_digest)
        rendered = chunk._replace(data=b"", number=block.number, render_key=key, valid_until=valid_until)
        return rendered, stored_chunk_codec.chunk_data(chunk) if chunk.count else None

    def _valid_until(self, pages: Sequence[Page], now: int, *, hides_future: bool) -> int:
        """When a block has to be rendered again if nobody visits its pages.

        Pages that are unavailable by their own account go at once. For all else a block is rendered at most once in
        `max_age`: each of its pages may be due at a time of its own.
        """
        pause = max(1, int(self._resources.max_age))
        max_age = self._resources.max_age_days * SECONDS_PER_DAY
        changes = (end for page in pages for end in _changes_by_time(page, max_age) if end > now)
        due = now if hides_future else min(changes, default=NEVER_SECONDS)
        return min(max(due, now + pause), NEVER_SECONDS, *(end for page in pages for end in expires_after(page, now)))

    def _render_remaining(self, evaluation: EvaluationContext) -> None:
        """Render all that is stale, with pauses, so that the app's own requests go first."""
        resources, closing = self._resources, self._resources.closing
        with self._lock:  # a request may be reading blocks
            stale = self._stale_blocks(evaluation)
        for number in stale:
            began = resources.clock()
            if not self._store.lease(
                self._site.base_url, LEARNED_SECTION, resources.worker_id.name, int(began), LEASE_SECONDS
            ):
                return
            with self._lock:
                self._render(evaluation, number)
            if closing.wait(PAUSE_FACTOR * max(0.0, resources.clock() - began)):
                return

    # The index of each document: what is rendered of it, in the store

    def _mark_changed(self, document: int) -> None:
        self._documents.pop(document, None)
        self._checked.pop(document, None)

    def _read_index(self, document: int) -> None:
        self._apply_indexes([document], self._load_indexes([document]))

    def _load_indexes(self, documents: list[int]) -> dict[str, bytes]:
        return self._store.load(self._site.base_url, [_index_name(number) for number in documents])

    def _apply_indexes(self, documents: list[int], stored: dict[str, bytes]) -> None:
        for number in documents:
            self._mark_changed(number)
            blocks = self._blocks_by_document.get(number, {})
            self._indexes[number] = {
                chunk.number: chunk
                for chunk in stored_chunk_codec.deserialize(stored.get(_index_name(number), b""))
                if chunk.number in blocks
            }

    def _reload_or_discard(self, document: int) -> None:
        """Read the index of a document whose chunks are missing; if it has not changed, the chunks are lost."""
        before = self._indexes[document]
        self._read_index(document)
        if self._indexes[document] == before:
            self._indexes[document] = {}
            self._mark_changed(document)
            self._store.save(self._site.base_url, {_index_name(document): None})


def _changes_by_time(page: Page, max_age_seconds: int) -> Iterator[int]:
    """When a page becomes too old to be listed, and when its dates are no longer in the future; POSIX seconds."""
    yield page.last_seen + max_age_seconds + 1
    if page.last_modified is not None:
        yield page.last_modified
    if page.stated_date is not None:
        yield timestamp_of_w3c(page.stated_date)


def _index_name(document: int) -> str:
    return f"{LEARNED_SECTION}/{document}"


def _chunk_name(document: int, block: int) -> str:
    return f"{LEARNED_SECTION}/{document}/{block}"
