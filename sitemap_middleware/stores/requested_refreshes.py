"""Marks in the store what `refresh` asked for, so that every process that shares it brings that up to date.

A mark is a random token. A process brings up to date whatever has another token than when it did so last.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from ..models import StoreKey
from ..util import WorkerId
from .base import Store

MAX_PAGES: Final = 100
"""Pages that may wait to be requested again. If there are more, everything is brought up to date."""

PAGE_MARK_SECONDS: Final = 60 * 60
"""Seconds after which the mark of a page makes room for others: its sites had time to request it."""

TOKEN_BYTES: Final = 8
NO_TOKEN: Final = bytes(TOKEN_BYTES)

_OWNER: Final = StoreKey("sites")
"""The owner of records that belong to no site: the process that writes them may not know the root path."""

_LEASE_SECONDS: Final = 5
"""Seconds after which the marks of pages may be changed although another process did not finish its change."""


@dataclass(frozen=True, slots=True)
class RefreshMarks:
    """The marks at one moment."""

    everything: bytes = b""
    """The token of the last `refresh()`; empty if there was none."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The token of the last `refresh(path)` of a page that `values` give, by the name of their section."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """The decoded paths that wait to be requested again, with their tokens."""
    requested: bytes = b""
    """The token of the last `refresh()` after which the static routes of the site were requested."""

    def token_of(self, section: str) -> bytes:
        """Eight bytes that change whenever the items of a provider are to be read again."""
        tokens = self.everything + b"/" + self.values.get(section, "").encode()
        return NO_TOKEN if tokens == b"/" else blake2b(tokens, digest_size=TOKEN_BYTES).digest()


class RefreshMarkStore:
    """Writes and reads marks: one record for everything, one for values and pages, and one for what each site has done.

    All methods raise `StoreError` if the store fails.

    Args:
        store: the store.
        scope: a name that all processes of the app have in common, and other apps do not.
        clock: returns POSIX seconds.
        worker_id: of this process.
    """

    def __init__(self, store: Store, scope: str, clock: Callable[[], float], worker_id: WorkerId) -> None:
        self._store = store
        self._everything = f"refresh/{scope}"
        self._some = f"{self._everything}/some"
        self._clock = clock
        self._worker_id = worker_id

    def load(self, site: StoreKey) -> RefreshMarks:
        """The marks that concern a site."""
        done_name = self._done_name(site)
        records = self._store.load(_OWNER, [self._everything, self._some, done_name])
        some, done = _parse(records.get(self._some)), _parse(records.get(done_name))
        pages = {path: token for path, (token, _) in some["pages"].items() if done["pages"].get(path) != token}
        requested = bytes.fromhex(done["everything"])
        return RefreshMarks(records.get(self._everything, b""), some["values"], pages, requested)

    def mark_everything(self) -> None:
        """Ask for everything to be brought up to date."""
        self._store.save(_OWNER, {self._everything: secrets.token_bytes(TOKEN_BYTES), self._some: None})

    def mark_pages(self, paths: Collection[str], sections: Iterable[str]) -> None:
        """Ask for some pages to be requested again, and for the items of some sections to be read again."""
        # A holder may take its lease twice, so each thread is one of its own.
        holder, now = f"{self._worker_id.name}/{threading.get_ident()}", int(self._clock())
        has_turn = self._store.lease(_OWNER, self._some, holder, _LEASE_SECONDS)
        try:
            some = _parse(self._store.load(_OWNER, [self._some]).get(self._some))
            some["values"].update((section, secrets.token_hex(TOKEN_BYTES)) for section in sections)
            recent = {path: mark for path, mark in some["pages"].items() if abs(now - mark[1]) < PAGE_MARK_SECONDS}
            some["pages"] = {**recent, **{path: (secrets.token_hex(TOKEN_BYTES), now) for path in paths}}
            if not has_turn or len(some["pages"]) > MAX_PAGES:
                self.mark_everything()
            else:
                self._store.save(_OWNER, {self._some: json.dumps(some).encode()})
        finally:
            self._store.lease(_OWNER, self._some, holder, 0)

    def mark_done(self, site: StoreKey, pages: Mapping[str, str], everything: bytes | None = None) -> None:
        """Record that marked pages of a site have been requested, and if a token is given, all its static routes."""
        name = self._done_name(site)
        records = self._store.load(_OWNER, [self._some, name])
        done, marked = _parse(records.get(name)), _parse(records.get(self._some))["pages"]
        done["pages"] = {path: token for path, token in {**done["pages"], **pages}.items() if path in marked}
        if everything is not None:
            done["everything"] = everything.hex()
        self._store.save(_OWNER, {name: json.dumps(done).encode()})

    def _done_name(self, site: StoreKey) -> str:
        return f"{self._everything}/done/{site}"


def _parse(record: bytes | None) -> dict[str, Any]:
    """A record of marks; nothing is marked if it is damaged."""
    with suppress(ValueError, TypeError):
        parsed = json.loads(record or b"")
        return {"values": {}, "pages": {}, "everything": "", **parsed}
    return {"values": {}, "pages": {}, "everything": ""}
