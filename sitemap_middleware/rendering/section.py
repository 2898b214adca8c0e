"""Defines what all sections have in common. A section is the documents of one kind, such as those of static routes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from ..fork_safety import WorkerId
from ..listing.entries_by_section import EntryBuilder
from ..listing.policy import EvaluationContext
from ..models import StoreKey
from ..request_response import Request
from ..stores.base import Store
from ..stores.requested_refreshes import RefreshMarks
from .chunk_codec import RenderKey
from .section_document import SectionDocument

WAIT_SECONDS: Final = 1.0
"""Seconds that a request waits for documents that are being generated if there are earlier ones to serve."""

FIRST_WAIT_SECONDS: Final = 10.0
"""The same if there are none."""

LEASE_SECONDS: Final = 60
"""Seconds after which another worker takes over the rendering of a worker that stopped renewing its lease."""


class Unavailable(Exception):
    """A document cannot be made now, and there is no earlier one to serve. The message is for clients."""


class BeingGenerated(Unavailable):
    """There is no earlier document to serve while the first one is generated."""

    def __init__(self) -> None:
        super().__init__("it is being generated, try again in a moment")


@dataclass(slots=True)
class RenderingResources:
    """What the sections of all sites share."""

    entries: EntryBuilder
    store: Store
    clock: Callable[[], float]
    max_age: int
    """Seconds."""
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
