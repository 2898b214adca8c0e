"""Caches the site signals of each site. All workers share one summary of them through the store.

The signals of a small site are computed from all its pages, and again after each change. Those of a large site are
computed from every n-th page, at most once an hour: so one change among a million pages does not make every document
stale. While the summary stays the same, nothing has to be rendered again because of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple

from ..evidence.site_signals import SiteSignals, site_signals
from ..models import Page
from ..stores.base import UNLEARNED_PART, PartState
from ..util import BoundedCache, WorkerId, in_pieces
from .auto_priority import hub_paths
from .candidates import PIECE_PAGES, SiteSnapshot, decode_path
from .package_install_times import install_times

SAMPLE_PAGES: Final = 10_000
"""A site with no more pages than this is read as a whole."""

SAMPLE_PARTS: Final = 10
"""Parts of learned pages that are read of a larger one."""

LEARNING_INTERVAL_SECONDS: Final = 60 * 60
"""How long the signals of a large site are used."""

MAX_CACHED_SITES: Final = 64

_RECORD_NAME: Final = "site-signals"
_LEASE_SECONDS: Final = 60
"""After this time another worker may compute signals that one worker began to compute."""

Parts = Mapping[int, PartState]
"""The parts of a site, as `Store.parts` returns them."""


class SignalsRecord(NamedTuple):
    """A summary of site signals, as it is kept in the store."""

    at: int
    """When the pages of a large site were read, in POSIX seconds; 0 if all pages were read."""
    version: int
    """The site's version if all pages were read; else 0."""
    files: str
    """A digest of the static files and their modification times."""
    digest: str
    """A digest of the signals."""

    @property
    def dated_digest(self) -> str:
        """Changes whenever the signals are computed from other pages, even if these show the same."""
        return f"{self.digest}/{self.at}/{self.version}"


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
        self._cached = BoundedCache[str, CachedSiteSignals](MAX_CACHED_SITES)
        self._worker_id = WorkerId()

    def get(self, snapshot: SiteSnapshot, parts: Parts, version: int, *, learning: bool = True) -> CachedSiteSignals:
        """The signals of a site, computed again if they are due.

        Args:
            snapshot: the site as it is now.
            parts: its parts.
            version: the store's version of the site's pages.
            learning: whether computed signals are saved in the store.

        Raises:
            StoreError: the store fails.
        """
        store, owner = snapshot.store, snapshot.site.base_url
        files, record = _digest(_file_times(snapshot)), _decoded(store.load(owner, [_RECORD_NAME]).get(_RECORD_NAME))
        is_large = sum(state.pages for state in parts.values()) > SAMPLE_PAGES
        at = 0
        if is_large:
            is_recent = record is not None and 0 <= snapshot.now - record.at < LEARNING_INTERVAL_SECONDS
            may_compute = learning and not is_recent
            if record is not None and record.at and may_compute:  # one worker does, and others use the old ones
                may_compute = store.lease(owner, _RECORD_NAME, self._worker_id.name, _LEASE_SECONDS)
            at, version = snapshot.now if may_compute or record is None or not record.at else record.at, 0
        known = self._cached.get(owner)
        if known is None or known.record[:3] != (at, version, files):
            known = self._new(snapshot, parts, record, (at, version, files), saving=learning)
            self._cached.put(owner, known)
        known.sitemap_was_made = known.sitemap_was_made or learning or record is not None
        return known

    def _new(
        self,
        snapshot: SiteSnapshot,
        parts: Parts,
        record: SignalsRecord | None,
        wanted: tuple[int, int, str],
        *,
        saving: bool,
    ) -> CachedSiteSignals:
        """New signals. If another worker has computed them, only their digest is taken, until they are used."""
        at = wanted[0]

        def compute() -> tuple[SiteSignals, frozenset[str]]:
            return _computed(snapshot, parts, at)

        if record is not None and record[:3] == wanted:
            return CachedSiteSignals(record, compute)
        computed = compute()
        signals, parent_paths = computed
        digest = _digest((signals.as_tuple(), sorted(parent_paths)))
        record = SignalsRecord(*wanted, digest)
        if saving:
            snapshot.store.save(snapshot.site.base_url, {_RECORD_NAME: json.dumps(record).encode()})
        return CachedSiteSignals(record, lambda: computed)


def _computed(snapshot: SiteSnapshot, parts: Parts, at: int) -> tuple[SiteSignals, frozenset[str]]:
    """The signals, at a time if they are those of a large site, and the paths that have others below them."""
    pages = [*in_pieces(_pages(snapshot, parts, whole=not at), PIECE_PAGES)]
    # A file counts once: by the Last-Modified that was observed, else by its modification time.
    observed = {decode_path(page.path) for page in pages if page.last_modified is not None}
    file_times = [moment for path, moment in _file_times(snapshot) if path not in observed]
    signals = site_signals(in_pieces(pages, PIECE_PAGES), file_times, at or None, installed=install_times())
    return signals, hub_paths(decode_path(page.path) for page in pages)


def _pages(snapshot: SiteSnapshot, parts: Parts, *, whole: bool) -> Iterator[Page]:
    """All pages of a site, or every n-th of some parts."""
    numbers, step = sorted(parts), 1
    if not whole:
        learned = [number for number in numbers if number != UNLEARNED_PART]
        numbers = [*({UNLEARNED_PART} & parts.keys()), *learned[:: len(learned) // SAMPLE_PARTS + 1]]
        step = sum(parts[number].pages for number in numbers) // SAMPLE_PAGES + 1
    for number in numbers:
        yield from snapshot.store.part(snapshot.site.store_key, number)[::step]


def _file_times(snapshot: SiteSnapshot) -> list[tuple[str, int]]:
    """The decoded paths of the files that static routes serve, and their modification times in POSIX seconds."""
    routes = snapshot.table.static(snapshot.site)
    return [(route.path, route.last_modified) for route in routes if route.last_modified is not None]


def _decoded(stored: bytes | None) -> SignalsRecord | None:
    """A record as it was saved; None if it was not, or cannot be decoded."""
    with suppress(ValueError, TypeError):
        record = SignalsRecord(*json.loads(stored or b""))
        if [*map(type, record)] == [int, int, str, str]:
            return record
    return None


def _digest(value: object) -> str:
    return blake2b(repr(value).encode(), digest_size=8).hexdigest()
