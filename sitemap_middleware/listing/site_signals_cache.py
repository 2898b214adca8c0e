"""Caches the site signals of each site, and shares them with other workers through the store.

The signals of a small site are computed from all its pages, and again after each
change. Those of a large site are computed from a sample, once an hour, and the sample is
kept in the store: so all workers evaluate pages by the same signals, and one change among
millions of pages does not make every page stale. A digest of the signals is kept beside
the sample. While it stays the same, no page has to be evaluated again because of them.
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
from ..evidence.page_as_of import page_as_of
from ..evidence.site_signals import SiteSignals, site_signals
from ..fork_safety import WorkerId
from ..stores.checksums import verify, with_checksum
from ..stores.compact_page_list import CompactPageList
from ..yield_to_other_threads import in_pieces
from .auto_priority import hub_paths
from .candidates import PIECE_PAGES, SiteSnapshot, decode_path
from .package_install_times import install_times

SAMPLE_PAGES: Final = 10_000
"""The size of a sample. A site with no more pages than this is read as a whole."""

LEARNING_INTERVAL_SECONDS: Final = 60 * 60
"""How long the signals of a large site are used. Beyond a million pages it grows with the number of pages."""

PAGES_PER_INTERVAL: Final = 1_000_000

MAX_CACHED_SITES: Final = 64


try:
    from isal import isal_zlib as fast_zlib
except ImportError:  # it is optional
    fast_zlib = zlib  # type: ignore[misc] # the same names

_RECORD_NAME: Final = "site-signals"
_SAMPLE_NAME: Final = "site-signals/pages"
_RECORD_FORMAT: Final = struct.Struct("<qqq8s8s8s8s")

_NEVER_SECONDS: Final = 2**62
"""A POSIX time that is never reached."""

_LEASE_SECONDS: Final = 60
"""After this time another worker may compute signals that one worker began to compute."""

FileTimes = tuple[tuple[str, int], ...]
"""Decoded paths of static files, and their modification times in POSIX seconds."""


class SignalsRecord(NamedTuple):
    """A summary of site signals, as it is kept in the store. Digests have eight bytes."""

    at: int
    """When the sample of a large site was taken, in POSIX seconds; 0 if all pages were read."""
    version: int
    """The site's version if all pages were read; else 0."""
    open_until: int
    """POSIX seconds: changes after this time may turn out to be part of a deployment or template change."""
    files: bytes
    """A digest of the static files and their modification times."""
    soft_404_digest: bytes
    """A digest of the soft 404s."""
    digest: bytes
    """A digest of all signals. They are final for changes before `open_until`."""
    dated_digest: bytes
    """A digest of `digest`, `at` and `version`: it changes whenever the signals are computed from other pages."""


class CachedSiteSignals:
    """The site signals that pages are evaluated by. They are computed at the first use."""

    def __init__(self, record: SignalsRecord, compute: Callable[[], tuple[SiteSignals, frozenset[str]]]) -> None:
        self.record = record
        self.sitemap_was_made: bool = False
        """Whether a request for the sitemap, in any process, has had signals computed, as far as the store shows."""
        self._compute = compute

    @cached_property
    def _computed(self) -> tuple[SiteSignals, frozenset[str]]:
        return self._compute()

    @property
    def signals(self) -> SiteSignals:
        """Deployments, template changes and soft 404s."""
        return self._computed[0]

    @property
    def parent_paths(self) -> frozenset[str]:
        """Paths of the observed pages that have other pages below them."""
        return self._computed[1]


class SiteSignalsCache:
    """The site signals of every site."""

    def __init__(self) -> None:
        self._cached: dict[str, CachedSiteSignals] = {}
        self._worker_id = WorkerId()

    def get(self, snapshot: SiteSnapshot, page_count: int, version: int, *, learning: bool = True) -> CachedSiteSignals:
        """The signals of a site, computed again if they are due.

        Args:
            snapshot: the site as it is now.
            page_count: the number of pages that the store has of the site.
            version: the store's version of the site's pages.
            learning: whether computed signals are saved in the store.

        Raises:
            StoreError: the store fails.
        """
        record = _load_record(snapshot)
        current = self._get_current(snapshot, record, page_count, version, learning=learning)
        current.sitemap_was_made = current.sitemap_was_made or learning or record is not None
        return current

    def _get_current(
        self, snapshot: SiteSnapshot, record: SignalsRecord | None, page_count: int, version: int, *, learning: bool
    ) -> CachedSiteSignals:
        """The signals of the record in the store, if they are not due. For other arguments see `get`."""
        files = _file_times(snapshot)
        if page_count <= SAMPLE_PAGES:
            if record is None or (record.at, record.version, record.files) != (0, version, _digest(files)):
                return self._compute(snapshot, _sample_pages(snapshot), files, version=version, saving=learning)
            return self._cache(
                snapshot, record, lambda: _compute_signals(_sample_pages(snapshot), files, None, snapshot.now)
            )
        if record is None or not _is_sample_current(record, page_count, snapshot.now):
            if not learning:
                return self._compute(snapshot, _sample_pages(snapshot), files, at=snapshot.now, saving=False)
            # Without an older sample each worker computes at once; with one, a single worker does.
            if record is None or not record.at or self._acquire_lease(snapshot, _LEASE_SECONDS):
                try:
                    return self._compute(snapshot, _sample_pages(snapshot), files, at=snapshot.now, saving=True)
                finally:
                    self._acquire_lease(snapshot, 0)
        if record.files != _digest(files):  # another machine computed them, and has other static files
            return self._compute(snapshot, _load_sample(snapshot), files, at=record.at, saving=False)
        return self._cache(
            snapshot, record, lambda: _compute_signals(_load_sample(snapshot), files, record.at, record.at)
        )

    def _acquire_lease(self, snapshot: SiteSnapshot, seconds: int) -> bool:
        """Acquire the lease for so many seconds; 0 releases it."""
        site = snapshot.site.base_url
        return snapshot.store.lease(site, _RECORD_NAME, self._worker_id.name, snapshot.now, seconds)

    def _compute(
        self,
        snapshot: SiteSnapshot,
        pages: CompactPageList,
        files: FileTimes,
        *,
        at: int = 0,
        version: int = 0,
        saving: bool,
    ) -> CachedSiteSignals:
        """Compute the signals of these pages at the time `at`, or now if it is 0.

        Signals of all pages are not saved while evidence from the future is missing from them.
        """
        computed = _compute_signals(pages, files, at or None, at or snapshot.now)
        record = _make_record(computed, files, at, version)
        if saving and (at or computed[0].is_complete):
            documents: dict[str, bytes | None] = {_RECORD_NAME: with_checksum(_RECORD_FORMAT.pack(*record))}
            if at:
                documents[_SAMPLE_NAME] = with_checksum(compress_for_zlib(pages.data))
            snapshot.store.save(snapshot.site.base_url, documents)
        return self._cache(snapshot, record, lambda: computed)

    def _cache(
        self,
        snapshot: SiteSnapshot,
        record: SignalsRecord,
        compute: Callable[[], tuple[SiteSignals, frozenset[str]]],
    ) -> CachedSiteSignals:
        """The cached signals if they were made from this record; else new ones, which are cached."""
        cached = self._cached.get(snapshot.site.base_url)
        if cached is None or cached.record != record:
            cached = CachedSiteSignals(record, compute)
            self._cached.pop(snapshot.site.base_url, None)
            while len(self._cached) >= MAX_CACHED_SITES:
                del self._cached[next(iter(self._cached))]
            self._cached[snapshot.site.base_url] = cached
        return cached


def _is_sample_current(record: SignalsRecord, page_count: int, now: int) -> bool:
    """Whether the sample of a large site is recent. One from the future is not: its clock was wrong."""
    seconds = LEARNING_INTERVAL_SECONDS * max(1, page_count // PAGES_PER_INTERVAL)
    return 0 < record.at - CLOCK_SKEW_SECONDS <= now < record.at + seconds


def _file_times(snapshot: SiteSnapshot) -> FileTimes:
    """The modification times of the files that static routes serve."""
    routes = snapshot.table.static(snapshot.site)
    return tuple((route.path, route.last_modified) for route in routes if route.last_modified is not None)


def _compute_signals(
    pages: CompactPageList, files: FileTimes, until: int | None, now: int
) -> tuple[SiteSignals, frozenset[str]]:
    """The signals of these pages, and the paths that have others below them."""
    # A file counts once: by the Last-Modified that was observed, else by its modification time.
    known = (page_as_of(page, now) for page in pages) if files else ()
    observed = {decode_path(page.path) for page in known if page.last_modified is not None}
    file_times = [last_modified for path, last_modified in files if path not in observed]
    signals = site_signals(in_pieces(pages, PIECE_PAGES), file_times, until, now=now, installed=install_times())
    return signals, hub_paths(map(decode_path, pages.paths()))


def _make_record(
    computed: tuple[SiteSignals, frozenset[str]], files: FileTimes, at: int, version: int
) -> SignalsRecord:
    signals, parent_paths = computed
    digest = _digest((signals.as_tuple(), sorted(parent_paths)))
    return SignalsRecord(
        at,
        version,
        _NEVER_SECONDS if signals.open_after is None else signals.open_after,
        _digest(files),
        _digest(signals.soft_not_founds.as_tuple()),
        digest,
        _digest((digest, at, version)),
    )


def _digest(value: object) -> bytes:
    return blake2b(repr(value).encode(), digest_size=8).digest()


# In the store


def _load_record(snapshot: SiteSnapshot) -> SignalsRecord | None:
    stored = verify(snapshot.store.load(snapshot.site.base_url, [_RECORD_NAME]).get(_RECORD_NAME, b""))
    return SignalsRecord(*_RECORD_FORMAT.unpack(stored)) if stored else None


def _sample_pages(snapshot: SiteSnapshot) -> CompactPageList:
    """A new sample, or all pages of a small site."""
    return snapshot.store.sample(snapshot.site.store_key, SAMPLE_PAGES)


def compress_for_zlib(data: bytes) -> bytes:
    """Compress for zlib: with isal, if it is installed, in a fifth of the time."""
    return fast_zlib.compress(data, 1)


def _load_sample(snapshot: SiteSnapshot) -> CompactPageList:
    """The sample that the stored record was computed from. If it is damaged, a new one."""
    stored = verify(snapshot.store.load(snapshot.site.base_url, [_SAMPLE_NAME]).get(_SAMPLE_NAME, b""))
    if stored is not None:
        with contextlib.suppress(ValueError):  # another version of this package may have written it
            return CompactPageList(zlib.decompress(stored))
    # The record goes with it, so that the next call computes both.
    snapshot.store.save(snapshot.site.base_url, {_RECORD_NAME: None, _SAMPLE_NAME: None})
    return _sample_pages(snapshot)
