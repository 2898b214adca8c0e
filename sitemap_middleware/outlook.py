"""The outlook: what the pages of each site tell together, learned of all of them, or, on a large site, of some.

Of a large site, some pages are taken now and then and kept in the store as they
are then, so that every worker judges by the same, and one change among millions
of pages does not have all of them judged anew.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from .candidates import State, decoded
from .errors import StoreError
from .forks import Owner
from .model import Page
from .priority import hubs
from .stores.codec import pack, unpack
from .surroundings import Surroundings, surroundings

ALL: Final = 10_000
"""Pages of a site up to which all of them are looked at, and the most that are looked at of a larger one."""

LEARN: Final = 60 * 60
"""Seconds for which what was learned of a large site stands; longer, in proportion, past a million pages."""

MILLION: Final = 1_000_000

MOST: Final = 64
"""Sites whose outlook is kept in mind."""

_AT: Final = "sample"
_PAGES: Final = "sample/pages"
_HEAD: Final = struct.Struct("<q16s")
_SIZES: Final = struct.Struct("<III")

_PATIENCE: Final = 60
"""Seconds after which another worker learns what the one that began to has not."""

Files = tuple[tuple[str, int], ...]
"""The decoded paths that files are served under, and when each was modified, in POSIX seconds."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the judgement of any one page of a site rests on, besides itself."""

    around: Surroundings
    leading: frozenset[str]
    """Paths that lead to others, as far as pages that were seen show it."""
    digest: bytes
    """Eight bytes: the same where it was learned of the same pages."""


class Outlooks:
    """Knows every site's."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Outlook]] = {}
        self._owner = Owner()

    def of(self, state: State, pages: int, version: int, *, learning: bool = True) -> Outlook:
        """The outlook of a site of so many pages, at this version of them; `StoreError` where it cannot be had.

        Of a large one, it is learned anew where that is due, unless nothing is to be written.
        """
        files = _files(state)
        if pages <= ALL:
            key = struct.pack("<q", version)
            return self._remembered(state, (key, files), lambda: state.store.sample(state.site.key, ALL), None)
        at, digest = _learned(state, pages, self._owner.name) if learning else _head(state)
        if not digest:
            return _outlook(state.store.sample(state.site.key, ALL), files, state.now, b"")
        return self._remembered(state, (digest, files), lambda: _kept(state, at, digest), at)

    def _remembered(
        self, state: State, token: tuple[bytes, Files], sample: Callable[[], list[Page]], until: int | None
    ) -> Outlook:
        known = self._known.get(state.site.base)
        if known is not None and known[0] == token:
            return known[1]
        outlook = _outlook(sample(), token[1], until, token[0])
        self._known.pop(state.site.base, None)
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[state.site.base] = token, outlook
        return outlook


def _files(state: State) -> Files:
    """When the files that static routes serve were modified."""
    return tuple((route.path, route.modified) for route in state.table.static(state.site) if route.modified is not None)


def _outlook(pages: list[Page], files: Files, until: int | None, learned_of: bytes) -> Outlook:
    answering = [page for page in pages if page.status == 200]
    dated = {decoded(page.path) for page in pages if page.modified is not None}
    around = surroundings(
        answering,
        [modified for path, modified in files if path not in dated],
        [page for page in answering if page.learned],
        until,
    )
    digest = blake2b(learned_of + repr(files).encode(), digest_size=8).digest()
    return Outlook(around, hubs(decoded(page.path) for page in pages), digest)


# What is learned of a large site, in the store


def _learned(state: State, pages: int, owner: str) -> tuple[int, bytes]:
    """When it was learned what there is, and the digest of that; it is learned now, where that is due."""
    site, store = state.site.key, state.store
    at, digest = _head(state)
    lasting = LEARN * max(1, pages // MILLION)
    if digest and 0 <= state.now - at < lasting:
        return at, digest
    if not store.lease(site, _AT, owner, state.now, _PATIENCE):
        at, digest = _head(state)
        if digest:
            return at, digest  # another worker is about to learn it anew
    packed = zlib.compress(b"".join(_packed(store.sample(site, ALL))), 1)
    digest = _digest(packed, state.now)
    store.save(site, {_AT: _HEAD.pack(state.now, digest), _PAGES: packed})
    store.lease(site, _AT, owner, state.now, 0)
    return state.now, digest


def _head(state: State) -> tuple[int, bytes]:
    kept = state.store.load(state.site.key, [_AT]).get(_AT)
    if kept is None or len(kept) != _HEAD.size:
        return 0, b""
    at, digest = _HEAD.unpack(kept)
    return at, digest


def _kept(state: State, at: int, digest: bytes) -> list[Page]:
    kept = state.store.load(state.site.key, [_PAGES]).get(_PAGES, b"")
    if _digest(kept, at) != digest:
        state.store.save(state.site.key, {_AT: None, _PAGES: None})
        raise StoreError(f"what was learned of the pages of {state.site.base} is not whole; it is learned again")
    return list(_unpacked(zlib.decompress(kept)))


def _digest(packed: bytes, at: int) -> bytes:
    return blake2b(packed, digest_size=16, key=_HEAD.pack(at, b"")).digest()


def _packed(pages: Iterable[Page]) -> Iterator[bytes]:
    for page in pages:
        path, route, facts = page.path.encode(), page.route.encode(), pack(page)
        yield _SIZES.pack(len(path), len(route), len(facts)) + path + route + facts


def _unpacked(data: bytes) -> Iterator[Page]:
    at = 0
    while at < len(data):
        path, route, facts = _SIZES.unpack_from(data, at)
        start = at + _SIZES.size
        at = start + path + route + facts
        middle = start + path
        yield unpack(data[start:middle].decode(), data[middle : middle + route].decode(), data[middle + route : at])
