"""The documents of one provider on one site: rendered as a whole into the store, while the previous ones are served.

There are two slots in the store, used in turn. A head record names the slot that counts; it is written last, so a
rendering that fails half-way changes nothing.
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
from ..models import BaseURL, UrlColumns
from ..stores.base import Store
from ..stores.checksums import verify, with_checksum
from ..stores.requested_refreshes import NO_TOKEN
from ..yield_to_other_threads import yield_to_other_threads
from . import stored_chunk_codec
from .chunked_document import Chunk, RenderKey
from .chunking import group_chunks, make_chunks
from .section import LEASE_SECONDS, WAIT_SECONDS, Postponed, SectionDocument

MAX_AGE_FACTOR: Final = 10
"""Documents are valid for this many times the time that their rendering took, or `max_age` if that is longer."""

_SAVE_BATCH_BYTES: Final = 256 * 1024
"""Approximate number of bytes of chunks that are saved at one time."""

_HEAD: Final = struct.Struct("<Bqqq8s8s8sI")


class AlreadyRunning(Postponed):
    """Another worker renders this section."""


class ProcessEnding(Postponed):
    """The process ends, so rendering was stopped."""


@dataclass(frozen=True, slots=True)
class RenderedSection:
    """The complete documents of a provider."""

    slot: int
    """0 or 1: where they are in the store."""
    at: float
    """POSIX seconds at which they were complete."""
    seconds: float
    """Seconds it took to make them."""
    key: RenderKey
    """What they were made of."""
    mark: bytes
    """The token of the last `refresh` before them."""
    chunks: tuple[Chunk, ...]


class ProviderSection:
    """A provider's documents, as they were in the store when they were last read."""

    def __init__(
        self,
        store: Store,
        site: BaseURL,
        name: str,
        worker_id: WorkerId,
        clock: Callable[[], float],
        *,
        is_named: bool = False,
    ) -> None:
        """`is_named`: whether the option `sections` gives the name. Then the first document has no number."""
        self._store = store
        self._site = site
        self.name = name
        """The name of the section, which begins the names of its documents."""
        self._is_named = is_named
        self._head_name = f"values/{name}"
        self._worker_id = worker_id
        self._clock = clock
        self._last_head: bytes | None = None
        """The head record as it was last read."""
        self.rendered: RenderedSection | None = None
        self._needed_at = self._started_at = clock()
        """When a request needed the documents last, and when first."""
        self._expired = False
        self._mark = NO_TOKEN

    @property
    def age(self) -> float:
        """The age in seconds of the documents when a request last needed them, or its wait if there were none."""
        return max(0.0, self._needed_at - (self._started_at if self.rendered is None else self.rendered.at))

    def refresh(self, *, mark: bytes = NO_TOKEN, expired: bool = False) -> None:
        """Read what this or another worker has rendered.

        Args:
            mark: the token of the last `refresh`. If that came after the documents were begun, they are due.
            expired: whether they are due, however old they are.
        """
        self._expired = self._expired or expired
        self._mark = mark
        self._needed_at = self._clock()
        self._read_rendered()

    def _read_rendered(self) -> None:
        head = self._read_head()
        if head is None or head != self._last_head:
            self.rendered = self._parse_head(head)
            self._last_head = head

    def is_due(self, key: RenderKey, max_age: int) -> bool:
        """Whether the documents are to be rendered again: they are older than `max_age`, or their key or mark changed.

        Slow providers are called less often, so that they run for a tenth of the time at most. If `refresh` asks for
        one that takes longer than a request waits, it runs for half of the time.
        """
        if self.rendered is None or self._expired:
            return True
        age = self._clock() - self.rendered.at
        rest = MAX_AGE_FACTOR * self.rendered.seconds
        if not 0 <= age < max(max_age, rest):
            return True
        if self.rendered.mark != self._mark and (self.rendered.seconds <= WAIT_SECONDS or age >= self.rendered.seconds):
            return True
        return self.rendered.key != key and age >= rest

    def render(
        self, entries: Iterable[UrlColumns], key: RenderKey, max_age: int, is_closing: Callable[[], bool]
    ) -> None:
        """Render the documents, unless another worker has done so in the meantime.

        Args:
            entries: the entries of the provider's pages, in batches.
            key: what they depend on.
            max_age: seconds, as in `is_due`.
            is_closing: whether the process ends.

        Raises:
            ValuesError: the provider fails.
            StoreError: the store fails.
            AlreadyRunning: another worker renders the section.
            ProcessEnding: the process ends.
        """
        if not self._acquire_lease(LEASE_SECONDS):
            raise AlreadyRunning
        try:
            self._read_rendered()
            if self.is_due(key, max_age):
                self._render(self._while_leased(entries, is_closing), key)
        finally:
            with suppress(StoreError):  # the lease expires without this
                self._acquire_lease(0)

    def documents(self) -> list[SectionDocument]:
        """The documents, as they are in the store."""
        if self.rendered is None:
            return []
        slot = self.rendered.slot
        names = (self._chunk_name(slot, chunk.number) for chunk in self.rendered.chunks)
        return [
            SectionDocument(
                self.name if self._is_named and number == 1 else f"{self.name}-{number}",
                chunks,
                [*islice(names, len(chunks))],
                self.reload_or_discard,
                is_named=self._is_named,
            )
            for number, chunks in enumerate(group_chunks(self.rendered.chunks), 1)
        ]

    def reload_or_discard(self) -> None:
        """Read the head again after chunks were missing; if it has not changed, the documents are lost."""
        before, self._last_head = self.rendered, None
        self._read_rendered()
        if self.rendered == before:
            self.rendered = self._last_head = None
            self._store.save(self._site, {self._head_name: None})

    def _render(self, entries: Iterable[UrlColumns], key: RenderKey) -> None:
        began, mark = self._clock(), self._mark
        slot = 0 if self.rendered is None else 1 - self.rendered.slot
        old_count = len(self._read_index(slot))
        records: dict[str, bytes | None] = {}
        size = 0
        chunks: list[Chunk] = []
        for chunk in make_chunks(entries):
            records[self._chunk_name(slot, len(chunks))] = stored_chunk_codec.chunk_data(chunk)
            chunks.append(chunk._replace(data=b"", number=len(chunks), render_key=key))
            size += len(chunk.data)
            if size >= _SAVE_BATCH_BYTES:
                self._store.save(self._site, records)
                records, size = {}, 0
        now = self._clock()
        rendered = RenderedSection(slot, round(now, 3), max(0.0, round(now - began, 3)), key, mark, tuple(chunks))
        records[self._index_name(slot)] = stored_chunk_codec.serialize(chunks)
        records |= {self._chunk_name(slot, number): None for number in range(len(chunks), old_count)}
        milliseconds = round(rendered.at * 1000), round(rendered.seconds * 1000)
        head = with_checksum(_HEAD.pack(slot, *milliseconds, *key, mark, len(chunks)))
        self._extend_lease()
        self._store.save(self._site, {**records, self._head_name: head})
        self.rendered, self._last_head, self._expired = rendered, head, False

    def _while_leased(self, entries: Iterable[UrlColumns], is_closing: Callable[[], bool]) -> Iterator[UrlColumns]:
        """The entries; stops by an error if the process ends or another worker takes over."""
        leased_at = self._clock()
        try:
            for batch in entries:
                if is_closing():
                    raise ProcessEnding
                if not 0 <= self._clock() - leased_at < LEASE_SECONDS / 4:
                    self._extend_lease()
                    leased_at = self._clock()
                yield batch
                yield_to_other_threads()
        except ValuesError:
            if is_closing():
                raise ProcessEnding from None  # the provider failed because the process ends
            raise

    def _extend_lease(self) -> None:
        """Renew the lease; `AlreadyRunning` if another worker has taken over because this one stood still."""
        if not self._acquire_lease(LEASE_SECONDS) or self._read_head() != self._last_head:
            raise AlreadyRunning

    def _acquire_lease(self, seconds: int) -> bool:
        return self._store.lease(self._site, self._head_name, self._worker_id.name, int(self._clock()), seconds)

    def _read_head(self) -> bytes | None:
        return self._store.load(self._site, [self._head_name]).get(self._head_name)

    def _parse_head(self, head: bytes | None) -> RenderedSection | None:
        """What a head record describes; None if it is damaged, or its index does not fit it."""
        packed = verify(head or b"")
        if packed is None or len(packed) != _HEAD.size:
            return None
        slot, at_ms, took_ms, version, settings_digest, signals_digest, mark, count = _HEAD.unpack(packed)
        chunks = self._read_index(slot)
        key = RenderKey(version, settings_digest, signals_digest)
        if len(chunks) != count:
            return None
        return RenderedSection(slot, at_ms / 1000, took_ms / 1000, key, mark, chunks)

    def _read_index(self, slot: int) -> tuple[Chunk, ...]:
        name = self._index_name(slot)
        return tuple(stored_chunk_codec.deserialize(self._store.load(self._site, [name]).get(name, b"")))

    def _index_name(self, slot: int) -> str:
        return f"{self._head_name}/{slot}"

    def _chunk_name(self, slot: int, number: int) -> str:
        return f"{self._head_name}/{slot}/{number}"
