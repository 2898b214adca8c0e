"""The pages of one provider of values on one site: rendered whole, in the store, while the last ones stay up.

What is made goes into one of two places in turn, and counts from when it is
complete: whatever fails half-way leaves what there was.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from . import sheets
from .errors import StoreError
from .forks import Owner
from .model import URL
from .packing import fit, pack
from .sheets import Origin, Row
from .stores.base import Store

DUTY: Final = 10
"""Times as long as it took to make them that pages are left as they are, unless `max_age` has passed."""

LEASE: Final = 60
"""Seconds after which another worker makes what the one that began to has not come on with."""

_TOGETHER: Final = 256 * 1024
"""Bytes of chunks that are saved at one time, about."""

_HEAD: Final = struct.Struct("<Bqqq8s8sI")


class Busy(Exception):
    """Another worker is at it."""


class Left(Exception):
    """It is not to be made to its end: the process is about to end."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a provider's pages, and when."""

    place: int
    at: float
    """POSIX seconds."""
    took: float
    """Seconds."""
    origin: Origin
    rows: tuple[Row, ...]


class Enumeration:
    """A provider's documents, as they were in the store when it was last looked at."""

    def __init__(self, store: Store, site: str, section: str, owner: Owner, clock: Callable[[], float]) -> None:
        self._store = store
        self._site = site
        self.section = section
        self._head = f"values/{section}"
        self._owner = owner
        self._clock = clock
        self.made: Made | None = None

    def look(self) -> None:
        """Take note of what this or another worker has made."""
        head = self._store.load(self._site, [self._head]).get(self._head, b"")
        if len(head) != _HEAD.size:
            self.made = None
            return
        place, at, took, version, context, outlook, count = _HEAD.unpack(head)
        origin = Origin(version, context, outlook)
        if self.made is not None and (self.made.at, self.made.origin) == (at / 1000, origin):
            return
        rows = tuple(sheets.read(self._store.load(self._site, [self._rows(place)]).get(self._rows(place), b"")))
        self.made = Made(place, at / 1000, took / 1000, origin, rows) if len(rows) == count else None

    def is_due(self, origin: Origin, max_age: int) -> bool:
        """Whether it is to be made anew."""
        if self.made is None:
            return True
        age = self._clock() - self.made.at
        if not 0 <= age < max(max_age, DUTY * self.made.took):
            return True
        return self.made.origin != origin and age >= DUTY * self.made.took

    def make(
        self,
        entries: Iterable[URL],
        origin: Origin,
        leaving: Callable[[], bool],
    ) -> None:
        """Make it anew.

        Args:
            entries: of the pages that the provider gives.
            origin: what they rest on.
            leaving: whether to leave off.

        Raises:
            ValuesError: where the provider fails.
            StoreError: where the store does.
            Busy: where another worker is making it.
            Left: where it is left off.
        """
        if not self._leased(LEASE):
            raise Busy
        try:
            began = self._clock()
            place = 0 if self.made is None else 1 - self.made.place
            things: dict[str, bytes | None] = {}
            size = 0
            rows: list[Row] = []
            for chunk in pack(entries):
                if leaving():
                    raise Left
                things[self._name(place, len(rows))] = sheets.data_of(chunk)
                rows.append(sheets.row(len(rows), origin, chunk))
                size += len(chunk.data)
                if size >= _TOGETHER:
                    self._store.save(self._site, things)
                    things, size = {}, 0
                    self._leased(LEASE)
            now = self._clock()
            made = Made(place, round(now, 3), max(0.0, round(now - began, 3)), origin, tuple(rows))
            things[self._rows(place)] = sheets.written(rows)
            milliseconds = round(made.at * 1000), round(made.took * 1000)
            things[self._head] = _HEAD.pack(place, *milliseconds, *origin, len(rows))
            self._store.save(self._site, things)
            self.made = made
        finally:
            self._leased(0)

    def _leased(self, seconds: int) -> bool:
        try:
            return self._store.lease(self._site, self._head, self._owner.name, int(self._clock()), seconds)
        except StoreError:
            if seconds:
                raise
            return False  # it ends by itself

    def documents(self) -> list[list[tuple[str, Row]]]:
        """The rows of each document, and the name under which the data of each are kept."""
        if self.made is None:
            return []
        rest = iter(self.made.rows)
        place = self.made.place
        return [
            [(self._name(place, row.number), row) for row in islice(rest, len(chunks))]
            for chunks in fit(row.chunk for row in self.made.rows)
        ]

    def mend(self) -> None:
        """Look again for what was made; where it is as it was, take it for lost."""
        before, self.made = self.made, None
        self.look()
        if self.made == before:
            self.made = None
            self._store.save(self._site, {self._head: None})

    def _rows(self, place: int) -> str:
        return f"{self._head}/{place}"

    def _name(self, place: int, number: int) -> str:
        return f"{self._head}/{place}/{number}"
