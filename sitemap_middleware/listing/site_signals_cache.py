"""The outlook: what the pages of each site tell together, learned of all of them, or, on a large site, of some.

Of a large site, some pages are taken now and then and kept in the store as they
are then, so that every worker judges by the same, and one change among millions
of pages does not have all of them judged anew. What it comes to is noted beside
them: as long as that is the same, nothing that was rendered by it need be looked at.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple

from ..dates import CLOCK_SKEW_SECONDS
from ..evidence.site_signals import SiteSignals, site_signals
from ..fork_safety import WorkerId
from ..stores.checksums import verify, with_checksum
from ..stores.packed_pages import PackedPages
from .candidates import SiteSnapshot, decode_path
from .installed_packages import install_times
from .priority import hub_paths

SAMPLE_PAGES: Final = 10_000
"""Pages of a site up to which all of them are looked at, and the most that are looked at of a larger one."""

LEARNING_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds for which what was learned of a large site stands; longer, in proportion, past a million pages."""

PAGES_PER_INTERVAL: Final = 1_000_000

MAX_CACHED_SITES: Final = 64
"""Sites whose outlook is kept in mind."""

_RECORD_NAME: Final = "outlook"
_SAMPLE_NAME: Final = "outlook/pages"
_HEAD: Final = struct.Struct("<qqq8s8s8s8s")

_NEVER_SECONDS: Final = 2**62
"""A moment that does not come."""

_LEASE_SECONDS: Final = 60
"""Seconds after which another worker learns what the one that began to has not."""

FileTimes = tuple[tuple[str, int], ...]
"""The decoded paths that files are served under, and when each was modified, in POSIX seconds."""


class SignalsRecord(NamedTuple):
    """What an outlook comes to, as it is noted in the store."""

    at: int
    """When pages of a large site were taken, in POSIX seconds; 0 where all are looked at."""
    version: int
    """The site's, where all are looked at; else 0."""
    open_until: int
    """The moment, in POSIX seconds, after which more may come to be known of what happened."""
    files: bytes
    """Eight bytes of the files that routes serve; and so on, each of what it is a digest of."""
    echoes: bytes
    """What makes pages echoes of others."""
    digest: bytes
    """All else that is told of what happened before it is `open`."""
    is_dated: bytes
    """The same, and of when it was learned."""


class CachedSiteSignals:
    """What the judgement of any one page of a site rests on, besides itself; worked out when first asked for."""

    def __init__(self, said: SignalsRecord, learn: Callable[[], tuple[SiteSignals, frozenset[str]]]) -> None:
        self.record = said
        self._learn = learn

    @cached_property
    def _signals(self) -> tuple[SiteSignals, frozenset[str]]:
        return self._learn()

    @property
    def signals(self) -> SiteSignals:
        """What the pages tell together."""
        return self._signals[0]

    @property
    def parent_paths(self) -> frozenset[str]:
        """Paths that lead to others, as far as pages that were seen show it."""
        return self._signals[1]


class SiteSignalsCache:
    """Knows every site's."""

    def __init__(self) -> None:
        self._cached: dict[str, CachedSiteSignals] = {}
        self._worker_id = WorkerId()

    def get(self, state: SiteSnapshot, pages: int, version: int, *, learning: bool = True) -> CachedSiteSignals:
        """The outlook of a site of so many pages, at this version of them; `StoreError` where it cannot be had.

        Where that is due it is learned anew, and noted in the store, unless nothing is to be written.
        """
        files = _file_times(state)
        said = _read_record(state)
        if pages <= SAMPLE_PAGES:
            if said is None or (said.at, said.version, said.files) != (0, version, _signals_digest(files)):
                return self._compute(state, _sample_pages(state), files, version=version, writing=learning)
            return self._cache(state, said, lambda: _compute_signals(_sample_pages(state), files, None, state.now))
        if (
            said is None
            or not 0
            < said.at - CLOCK_SKEW_SECONDS
            <= state.now
            < said.at + LEARNING_INTERVAL_SECONDS * max(1, pages // PAGES_PER_INTERVAL)
        ):
            if not learning:
                return self._compute(state, _sample_pages(state), files, at=state.now, writing=False)
            if said is None or not said.at or self._acquire_lease(state, _LEASE_SECONDS):
                try:
                    return self._compute(state, _sample_pages(state), files, at=state.now, writing=True)
                finally:
                    self._acquire_lease(state, 0)
        if said.files != _signals_digest(files):  # another machine's, whose files are its own
            return self._compute(state, _stored_sample(state), files, at=said.at, writing=False)
        return self._cache(state, said, lambda: _compute_signals(_stored_sample(state), files, said.at, state.now))

    def _acquire_lease(self, state: SiteSnapshot, seconds: int) -> bool:
        return state.store.lease(state.site.base_url, _RECORD_NAME, self._worker_id.name, state.now, seconds)

    def _compute(
        self, state: SiteSnapshot, pages: PackedPages, files: FileTimes, *, at: int = 0, version: int = 0, writing: bool
    ) -> CachedSiteSignals:
        """Learn it of these pages."""
        learned = _compute_signals(pages, files, at or None, state.now)
        said = _make_record(learned, files, at, version)
        if writing:
            things: dict[str, bytes | None] = {_RECORD_NAME: with_checksum(_HEAD.pack(*said))}
            if at:
                things[_SAMPLE_NAME] = with_checksum(zlib.compress(pages.data, 1))
            state.store.save(state.site.base_url, things)
        return self._cache(state, said, lambda: learned)

    def _cache(
        self, state: SiteSnapshot, said: SignalsRecord, learn: Callable[[], tuple[SiteSignals, frozenset[str]]]
    ) -> CachedSiteSignals:
        known = self._cached.get(state.site.base_url)
        if known is None or known.record != said:
            known = CachedSiteSignals(said, learn)
            self._cached.pop(state.site.base_url, None)
            while len(self._cached) >= MAX_CACHED_SITES:
                del self._cached[next(iter(self._cached))]
            self._cached[state.site.base_url] = known
        return known


def _file_times(state: SiteSnapshot) -> FileTimes:
    """When the files that static routes serve were modified."""
    return tuple((route.path, route.modified) for route in state.table.static(state.site) if route.modified is not None)


def _compute_signals(
    pages: PackedPages, files: FileTimes, until: int | None, now: int
) -> tuple[SiteSignals, frozenset[str]]:
    dated = {decode_path(page.path) for page in pages if page.modified is not None} if files else ()
    times = [modified for path, modified in files if path not in dated]
    around = site_signals(pages, times, until, now=now, installed=install_times())
    return around, hub_paths(map(decode_path, pages.paths()))


def _make_record(learned: tuple[SiteSignals, frozenset[str]], files: FileTimes, at: int, version: int) -> SignalsRecord:
    around, leading = learned
    digest = _signals_digest((around.as_tuple(), sorted(leading)))
    opens = around.open_after
    return SignalsRecord(
        at,
        version,
        _NEVER_SECONDS if opens is None else opens,
        _signals_digest(files),
        _signals_digest(around.soft_not_founds.as_tuple()),
        digest,
        _signals_digest((digest, at, version)),
    )


def _signals_digest(told: object) -> bytes:
    return blake2b(repr(told).encode(), digest_size=8).digest()


# In the store


def _read_record(state: SiteSnapshot) -> SignalsRecord | None:
    kept = verify(state.store.load(state.site.base_url, [_RECORD_NAME]).get(_RECORD_NAME, b""))
    return SignalsRecord(*_HEAD.unpack(kept)) if kept else None


def _sample_pages(state: SiteSnapshot) -> PackedPages:
    """The pages that are looked at: all of them, or as many as are looked at of a large site."""
    return state.store.sample(state.site.store_key, SAMPLE_PAGES)


def _stored_sample(state: SiteSnapshot) -> PackedPages:
    """The pages that an outlook was learned of."""
    kept = verify(state.store.load(state.site.base_url, [_SAMPLE_NAME]).get(_SAMPLE_NAME, b""))
    if kept is not None:
        with contextlib.suppress(ValueError):  # another version of this code has kept them, in a form of its own
            return PackedPages(zlib.decompress(kept))
    state.store.save(
        state.site.base_url, {_RECORD_NAME: None, _SAMPLE_NAME: None}
    )  # they are lost: others do, until it is learned anew
    return _sample_pages(state)
