"""What `refresh` asked for, as the processes that share a store tell each other.

A mark is a random token. A process brings up to date whatever has another token than
when it did so last. No clocks are compared.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from ..fork_safety import WorkerId
from ..models import StoreKey
from .base import Store
from .checksums import verify, with_checksum

MAX_PAGES: Final = 100
"""Pages that may wait to be requested again. If there are more, everything is brought up to date."""

TOKEN_BYTES: Final = 8
NO_TOKEN: Final = bytes(TOKEN_BYTES)

_OWNER: Final = StoreKey("sites")
"""The owner of records that belong to no site: the process that writes them may not know the root path."""

_LEASE_SECONDS: Final = 5
"""Seconds after which the list of pages may be changed although another process did not finish its change."""


@dataclass(frozen=True, slots=True)
class RefreshMarks:
    """The marks at one moment."""

    everything: bytes = b""
    """The token of the last `refresh()`; empty if there was none."""
    values: Mapping[str, bytes] = field(default_factory=dict)
    """The token of the last `refresh(path)` of a page that `values` give, by the name of their section."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """The decoded paths that wait to be requested again, with their tokens in hexadecimal."""
    requested: bytes = b""
    """The token of the last `refresh()` after which the static routes of the site were requested."""

    def token_of(self, section: str) -> bytes:
        """Eight bytes that change whenever the items of a provider are to be read again."""
        tokens = self.everything + b"/" + self.values.get(section, b"")
        return NO_TOKEN if tokens == b"/" else blake2b(tokens, digest_size=TOKEN_BYTES).digest()


class RefreshMarkStore:
    """Writes and reads marks. All methods raise `StoreError` if the store fails."""

    def __init__(self, store: Store, scope: str, clock: Callable[[], float], worker_id: WorkerId) -> None:
        """Use a store.

        Args:
            store: the store.
            scope: a name that all processes of the app have in common, and other apps do not.
            clock: returns POSIX seconds.
            worker_id: of this process.
        """
        self._store = store
        self._name = f"refresh/{scope}"
        self._clock = clock
        self._worker_id = worker_id

    def load(self, site: StoreKey, sections: Iterable[str]) -> RefreshMarks:
        """The marks that concern a site with these sections of values."""
        by_section = {section: self._section_name(section) for section in sections}
        names = [self._name, self._pages_name, self._requested_name(site), *by_section.values()]
        records = {name: verify(record) or b"" for name, record in self._store.load(_OWNER, names).items()}
        return RefreshMarks(
            records.get(self._name, b""),
            {section: records[name] for section, name in by_section.items() if name in records},
            _parse_pages(records.get(self._pages_name, b"")),
            records.get(self._requested_name(site), b""),
        )

    def mark_everything(self) -> None:
        """Ask for everything to be brought up to date."""
        self._save({self._name: _new_token()})

    def mark_pages(self, paths: Collection[str], sections: Iterable[str]) -> None:
        """Ask for some pages to be requested again, and for the items of some sections to be read again."""
        self._save({self._section_name(section): _new_token() for section in sections})
        new = {path: _new_token().hex() for path in paths}
        if new and not self._change_pages(lambda pages: {**pages, **new}):
            self.mark_everything()

    def unmark_pages(self, pages: Mapping[str, str]) -> None:
        """Remove pages that have been requested, unless they have another token by now."""
        if pages:
            self._change_pages(lambda current: dict(current.items() - pages.items()))

    def mark_requested(self, site: StoreKey, token: bytes) -> None:
        """Record that the static routes of a site were requested after the `refresh()` of this token."""
        self._save({self._requested_name(site): token})

    def _change_pages(self, change: Callable[[dict[str, str]], dict[str, str]]) -> bool:
        """Change the list of pages; return whether that was possible: nobody else does so, and there is room."""
        if not self._lease(_LEASE_SECONDS):
            return False
        try:
            before = verify(self._store.load(_OWNER, [self._pages_name]).get(self._pages_name, b"")) or b""
            pages = change(_parse_pages(before))
            if len(pages) > MAX_PAGES:
                return False
            self._save({self._pages_name: json.dumps(pages).encode()})
            return True
        finally:
            self._lease(0)

    def _lease(self, seconds: int) -> bool:
        # An owner may take its lease twice, so each thread is one of its own.
        owner = f"{self._worker_id.name}/{threading.get_ident()}"
        return self._store.lease(_OWNER, self._pages_name, owner, int(self._clock()), seconds)

    def _save(self, records: Mapping[str, bytes]) -> None:
        if records:
            self._store.save(_OWNER, {name: with_checksum(record) for name, record in records.items()})

    @property
    def _pages_name(self) -> str:
        return f"{self._name}/pages"

    def _section_name(self, section: str) -> str:
        return f"{self._name}/values/{section}"

    def _requested_name(self, site: StoreKey) -> str:
        return f"{self._name}/requested/{site}"


def _new_token() -> bytes:
    return secrets.token_bytes(TOKEN_BYTES)


def _parse_pages(record: bytes) -> dict[str, str]:
    with suppress(ValueError):
        pages = json.loads(record)
        if isinstance(pages, dict):
            return pages
    return {}
