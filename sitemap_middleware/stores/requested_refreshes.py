"""Marks in the store what `refresh` asked for, so that every process that shares it brings that up to date.

A mark is a random token. A process brings up to date whatever has another token than when it did so last. No clocks are
compared.
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

    def __init__(
        self, store: Store, scope: str, clock: Callable[[], float], worker_id: WorkerId, *, has_one_host: bool = True
    ) -> None:
        """Use a store.

        Args:
            store: the store.
            scope: a name that all processes of the app have in common, and other apps do not.
            clock: returns POSIX seconds.
            worker_id: of this process.
            has_one_host: whether all requests are for one host, so that a page is requested once.
        """
        self._has_one_host = has_one_host
        self._store = store
        self._name = f"refresh/{scope}"
        self._clock = clock
        self._worker_id = worker_id

    def load(self, site: StoreKey, sections: Iterable[str]) -> RefreshMarks:
        """The marks that concern a site with these sections of values."""
        by_section = {section: self._section_name(section) for section in sections}
        done_name = self._done_name(site)
        names = [self._name, self._pages_name, self._requested_name(site), done_name, *by_section.values()]
        records = self._load(names)
        return RefreshMarks(
            records.get(self._name, b""),
            {section: records[name] for section, name in by_section.items() if name in records},
            dict(_pages(records, self._pages_name).items() - _pages(records, done_name).items()),
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
            if not self._has_one_host:  # they stay marked until there are too many
                self._change_pages(lambda _: new)

    def unmark_pages(self, site: StoreKey, pages: Mapping[str, str]) -> None:
        """Record that pages of a site have been requested, unless they have another token by now.

        If requests are for several hosts, the other sites keep the marks.
        """
        if not pages:
            return
        if self._has_one_host:
            self._change_pages(lambda current: dict(current.items() - pages.items()))
            return
        name = self._done_name(site)
        records = self._load([self._pages_name, name])
        done = {**_pages(records, name), **pages}
        self._save({name: json.dumps(dict(_pages(records, self._pages_name).items() & done.items())).encode()})

    def mark_requested(self, site: StoreKey, token: bytes) -> None:
        """Record that the static routes of a site were requested after the `refresh()` of this token."""
        self._save({self._requested_name(site): token})

    def _change_pages(self, change: Callable[[dict[str, str]], dict[str, str]]) -> bool:
        """Change the list of pages; return whether that was possible: nobody else does so, and there is room."""
        if not self._lease(_LEASE_SECONDS):
            return False
        try:
            pages = change(_pages(self._load([self._pages_name]), self._pages_name))
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

    def _load(self, names: Collection[str]) -> dict[str, bytes]:
        """The records of these names; damaged ones are empty."""
        return {name: verify(record) or b"" for name, record in self._store.load(_OWNER, names).items()}

    def _save(self, records: Mapping[str, bytes]) -> None:
        if records:
            self._store.save(_OWNER, {name: with_checksum(record) for name, record in records.items()})

    @property
    def _pages_name(self) -> str:
        return f"{self._name}/pages"

    def _section_name(self, section: str) -> str:
        return f"{self._name}/values/{section}"

    def _done_name(self, site: StoreKey) -> str:
        return f"{self._name}/done/{site}"

    def _requested_name(self, site: StoreKey) -> str:
        return f"{self._name}/requested/{site}"


def _new_token() -> bytes:
    return secrets.token_bytes(TOKEN_BYTES)


def _pages(records: Mapping[str, bytes], name: str) -> dict[str, str]:
    """The pages, with their tokens, in one of these records; none if it is damaged."""
    with suppress(ValueError):
        pages = json.loads(records.get(name, b""))
        if isinstance(pages, dict):
            return pages
    return {}
