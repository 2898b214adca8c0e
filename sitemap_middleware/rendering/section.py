"""Defines what all sections have in common. A section is the documents of one kind, such as those of static routes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

from ..exceptions import SitemapError, StoreError
from ..fork_safety import WorkerId
from ..listing.entries_by_section import EntryBuilder
from ..listing.policy import EvaluationContext
from ..models import BaseURL, StoreKey
from ..request_response import Request
from ..stores.base import Store
from ..stores.requested_refreshes import RefreshMarks
from . import stored_chunk_codec
from .chunked_document import Chunk, RenderKey, latest_lastmod

WAIT_SECONDS: Final = 1.0
"""Seconds that a request waits for documents that are being generated if there are earlier ones to serve."""

FIRST_WAIT_SECONDS: Final = 10.0
"""The same if there are none."""

LEASE_SECONDS: Final = 60
"""Seconds after which another worker takes over the rendering of a worker that stopped renewing its lease."""

log: logging.Logger = logging.getLogger("sitemap_middleware")


class Unavailable(Exception):
    """A document cannot be made now, and there is no earlier one to serve. The message is for clients."""


class BeingGenerated(Unavailable):
    """There is no earlier document to serve while the first one is generated."""

    def __init__(self) -> None:
        super().__init__("it is being generated, try again in a moment")


class Postponed(Exception):
    """Documents are not rendered now, which is not a fault. The next request for the sitemap tries again."""


@dataclass(slots=True)
class RenderingResources:
    """What the sections of all sites share."""

    entries: EntryBuilder
    store: Store
    clock: Callable[[], float]
    max_age: int
    """Seconds."""
    max_age_days: int
    """How long after its last visit a learned page is listed."""
    worker_id: WorkerId = field(default_factory=WorkerId)
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the process ends: then nothing more is rendered in the background."""
    sites_lost: set[StoreKey] = field(default_factory=set)
    """Sites of which the store has lost what it held, until `Publisher.take_loss` is called."""
    rendered_blocks: int = 0
    """Blocks of learned pages rendered since the process began."""

    def run_in_background(self, request: Request, work: Callable[[], None]) -> BackgroundJob:
        """Do some work after a request, or at the same time."""
        job = BackgroundJob(work)
        if self.closing.is_set():  # the app goes on; what ran before must end all the same
            self.closing = threading.Event()
        request.run_in_background(job.run)
        return job


class BackgroundJob:
    """Work that requests may wait for."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.done: threading.Event = threading.Event()
        self.error: Exception | None = None
        """Why it failed."""

    def run(self) -> None:
        """Do the work, on this thread."""
        try:
            self._work()
        except Exception as error:
            self.error = error
            if not isinstance(error, SitemapError | Postponed):  # errors of the store and of providers are logged there
                log.exception("a background job of the sitemap failed")
        finally:
            self.done.set()


@dataclass(frozen=True, slots=True)
class RefreshContext:
    """What a section needs to bring its documents up to date."""

    evaluation: EvaluationContext
    key: RenderKey
    """Changes whenever an entry outside the learned pages may have changed."""
    request: Request
    document: str | None
    """The name of the requested document; None for the sitemap itself."""
    marks: RefreshMarks
    """What `refresh` asked for."""


def _nothing_to_reload() -> None:
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
    reload_or_discard: Callable[[], None] = _nothing_to_reload
    """Called if data of a chunk are missing from the store."""
    is_incomplete: bool = False
    """Whether some of its pages have never been rendered."""
    is_named: bool = False
    """Whether the option `sections` names it, so that it is always a document of its own."""

    @cached_property
    def lastmod(self) -> str | None:
        """The latest lastmod of its entries."""
        return latest_lastmod(chunk.lastmod for chunk in self.chunks)

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
            loaded = stored_chunk_codec.with_data(chunk, stored.get(name))
            if loaded is None:
                self.reload_or_discard()
                raise StoreError(f"chunks of {self.name} of {base} are missing from the store; they are rendered again")
            yield loaded


class Section(Protocol):
    """The documents of one kind of one site."""

    def refresh(self, context: RefreshContext) -> bool:
        """Bring the documents up to date; return False if some are still being rendered.

        Raises:
            Unavailable: there is nothing to serve yet.
            StoreError: the store fails.
            ValuesError: the app's provider fails, and there is nothing to serve.
        """

    def documents(self) -> list[SectionDocument]:
        """The documents that have entries, in their order."""
