"""The pages of one provider of values on one site: rendered whole, in the store, while the last ones stay up.

What is made goes into one of two places in turn, and counts from when it is
complete: whatever fails half-way leaves what there was.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..exceptions import StoreError, ValuesError
from ..fork_safety import WorkerId
from ..models import BaseURL, SitemapUrl
from ..stores.base import Store
from ..stores.checksums import verify, with_checksum
from . import chunk_index
from .chunk_index import ChunkInfo, RenderKey
from .chunking import group_chunks, make_chunks
from .section import LEASE_SECONDS

MAX_AGE_FACTOR: Final = 10
"""Times as long as it took to make them that pages are left as they are, unless `max_age` has passed."""

_SAVE_BATCH_BYTES: Final = 256 * 1024
"""Bytes of chunks that are saved at one time, about."""

_HEAD: Final = struct.Struct("<Bqqq8s8sI")


class AlreadyRunning(Exception):
    """Another worker is at it."""


class ProcessEnding(Exception):
    """It is not to be made to its end: the process is about to end."""


@dataclass(frozen=True, slots=True)
class RenderedSection:
    """What was made of a provider's pages, and when."""

    place: int
    at: float
    """POSIX seconds."""
    seconds: float
    """Seconds."""
    key: RenderKey
    chunks: tuple[ChunkInfo, ...]


class ProviderSection:
    """A provider's documents, as they were in the store when it was last looked at."""

    def __init__(self, store: Store, site: BaseURL, section: str, owner: WorkerId, clock: Callable[[], float]) -> None:
        self._store = store
        self._site = site
        self.name = section
        self._head = f"values/{section}"
        self._worker_id = owner
        self._clock = clock
        self._last_head: bytes | None = None
        """The head, as it was when it was looked at."""
        self.rendered: RenderedSection | None = None
        self._needed_at = self._started_at = clock()
        """When the pages were last needed, and first."""
        self._expired = False

    @property
    def age(self) -> float:
        """How old, in seconds, the pages were when they were last needed; since they were first needed, if none are."""
        return max(0.0, self._needed_at - (self._started_at if self.rendered is None else self.rendered.at))

    def refresh(self, *, expired: bool = False) -> None:
        """Take note of what this or another worker has made; if that is expired, it is due, however old it is."""
        self._expired = self._expired or expired
        self._needed_at = self._clock()
        head = self._store.load(self._site, [self._head]).get(self._head)
        if head is None or head != self._last_head:
            self.rendered = self._parse_head(head)
            self._last_head = head

    def _parse_head(self, head: bytes | None) -> RenderedSection | None:
        said = verify(head or b"")
        if said is None or len(said) != _HEAD.size:
            return None
        place, at, took, version, context, outlook, count = _HEAD.unpack(said)
        rows = self._rows_in(place)
        return (
            RenderedSection(place, at / 1000, took / 1000, RenderKey(version, context, outlook), rows)
            if len(rows) == count
            else None
        )

    def _rows_in(self, place: int) -> tuple[ChunkInfo, ...]:
        name = self._rows(place)
        return tuple(chunk_index.deserialize(self._store.load(self._site, [name]).get(name, b"")))

    def is_due(self, origin: RenderKey, max_age: int) -> bool:
        """Whether it is to be made anew."""
        if self.rendered is None or self._expired:
            return True
        age = self._clock() - self.rendered.at
        if not 0 <= age < max(max_age, MAX_AGE_FACTOR * self.rendered.seconds):
            return True
        return self.rendered.key != origin and age >= MAX_AGE_FACTOR * self.rendered.seconds

    def render(
        self, entries: Iterable[SitemapUrl], origin: RenderKey, max_age: int, leaving: Callable[[], bool]
    ) -> None:
        """Make it anew, unless another worker has done so in the meantime.

        Args:
            entries: of the pages that the provider gives.
            origin: what they rest on.
            max_age: as `is_due` has it.
            leaving: whether to leave off.

        Raises:
            ValuesError: where the provider fails.
            StoreError: where the store does.
            Busy: where another worker is making it.
            Left: where it is left off.
        """
        if not self._acquire_lease(LEASE_SECONDS):
            raise AlreadyRunning
        try:
            self.refresh()
            if self.is_due(origin, max_age):
                self._render(self._while_leased(entries, leaving), origin)
        finally:
            with suppress(StoreError):  # it ends by itself
                self._acquire_lease(0)

    def _render(self, entries: Iterable[SitemapUrl], origin: RenderKey) -> None:
        began = self._clock()
        place = 0 if self.rendered is None else 1 - self.rendered.place
        before = len(self._rows_in(place))
        things: dict[str, bytes | None] = {}
        size = 0
        rows: list[ChunkInfo] = []
        for chunk in make_chunks(entries):
            things[self._name(place, len(rows))] = chunk_index.chunk_data(chunk)
            rows.append(chunk_index.chunk_info(len(rows), origin, chunk))
            size += len(chunk.data)
            if size >= _SAVE_BATCH_BYTES:
                self._store.save(self._site, things)
                things, size = {}, 0
        now = self._clock()
        made = RenderedSection(place, round(now, 3), max(0.0, round(now - began, 3)), origin, tuple(rows))
        things[self._rows(place)] = chunk_index.serialize(rows)
        things |= {self._name(place, number): None for number in range(len(rows), before)}
        milliseconds = round(made.at * 1000), round(made.seconds * 1000)
        head = with_checksum(_HEAD.pack(place, *milliseconds, *origin, len(rows)))
        self._extend_lease()
        self._store.save(self._site, {**things, self._head: head})
        self.rendered, self._last_head, self._expired = made, head, False

    def _while_leased(self, entries: Iterable[SitemapUrl], leaving: Callable[[], bool]) -> Iterator[SitemapUrl]:
        """The entries, as long as they are wanted, and nobody else makes them."""
        leased = self._clock()
        try:
            for entry in entries:
                if leaving():
                    raise ProcessEnding
                if not 0 <= self._clock() - leased < LEASE_SECONDS / 4:
                    self._extend_lease()
                    leased = self._clock()
                yield entry
        except ValuesError:
            if leaving():
                raise ProcessEnding from None  # that is why it failed
            raise

    def _extend_lease(self) -> None:
        """Hold on to it; not where another worker makes it, or did so, because this one stood still."""
        if (
            not self._acquire_lease(LEASE_SECONDS)
            or self._store.load(self._site, [self._head]).get(self._head) != self._last_head
        ):
            raise AlreadyRunning

    def _acquire_lease(self, seconds: int) -> bool:
        return self._store.lease(self._site, self._head, self._worker_id.name, int(self._clock()), seconds)

    def documents(self) -> list[list[tuple[str, ChunkInfo]]]:
        """The rows of each document, and the name under which the data of each are kept."""
        if self.rendered is None:
            return []
        rest = iter(self.rendered.chunks)
        place = self.rendered.place
        return [
            [(self._name(place, row.number), row) for row in islice(rest, len(chunks))]
            for chunks in group_chunks(row.chunk for row in self.rendered.chunks)
        ]

    def reload_or_discard(self) -> None:
        """Look again for what was made; where it is as it was, take it for lost."""
        before, self._last_head = self.rendered, None
        self.refresh()
        if self.rendered == before:
            self.rendered = self._last_head = None
            self._store.save(self._site, {self._head: None})

    def _rows(self, place: int) -> str:
        return f"{self._head}/{place}"

    def _name(self, place: int, number: int) -> str:
        return f"{self._head}/{place}/{number}"
