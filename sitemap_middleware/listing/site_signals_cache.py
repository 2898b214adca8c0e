"""Keeps the site signals of each site, which the evaluation of its pages depends on.

The signals of a small site are computed from all its pages, and again after each change. Those of a large site are
computed from every n-th page, once an hour: so one change among a million pages does not make every document stale.
All workers begin with new ones at a full hour of the store's clock. What was first seen in the hour before waits for
the next: by then, visitors have shown whether it is a deployment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Final

from ..evidence.site_signals import SiteSignals, site_signals
from ..models import Page
from ..stores.base import UNLEARNED_PART, PartState
from ..util import BoundedCache, in_pieces
from .candidates import PIECE_PAGES, SiteSnapshot, decode_path

SAMPLE_PAGES: Final = 10_000
"""A site with no more pages than this is read as a whole."""

SAMPLE_PARTS: Final = 10
"""Parts of learned pages that are read of a larger one."""

LEARNING_INTERVAL_SECONDS: Final = 60 * 60
"""How long the signals of a large site are used."""

MAX_CACHED_SITES: Final = 64
"""Sites of which signals, rules or documents are kept in memory at one time."""

Parts = Mapping[int, PartState]
"""The parts of a site, as `Store.parts` returns them."""


@dataclass(eq=False)
class CachedSiteSignals:
    """The site signals that pages are evaluated by."""

    digest: str
    """It changes if the signals are computed again."""
    compute: Callable[[], SiteSignals]

    @cached_property
    def signals(self) -> SiteSignals:
        """Deployments and template changes, computed at the first use."""
        return self.compute()


def latest_signals(
    cached: BoundedCache[str, CachedSiteSignals], snapshot: SiteSnapshot, parts: Parts, version: int
) -> CachedSiteSignals:
    """The signals of a site, from a cache by base URL; `version` is that of its pages in the store."""
    is_large = sum(state.pages for state in parts.values()) > SAMPLE_PAGES
    hour = snapshot.now // LEARNING_INTERVAL_SECONDS if is_large else None
    routes = snapshot.table.static(snapshot.site)
    files = [(route.path, route.last_modified) for route in routes if route.last_modified is not None]
    digest = blake2b(repr((version if hour is None else hour, files)).encode(), digest_size=8).hexdigest()
    known = cached.get(snapshot.site.base_url)
    if known is None or known.digest != digest:
        known = CachedSiteSignals(digest, partial(_computed, snapshot, parts, files, is_large=is_large))
        cached.put(snapshot.site.base_url, known)
    return known


def _computed(snapshot: SiteSnapshot, parts: Parts, files: Sequence[tuple[str, int]], *, is_large: bool) -> SiteSignals:
    """The signals; those of a large site are up to an hour before its hour began, which all workers agree on."""
    pages = [*in_pieces(_pages(snapshot, parts, whole=not is_large), PIECE_PAGES)]
    # A file counts once: by the Last-Modified that was observed, else by its modification time.
    observed = {decode_path(page.path) for page in pages if page.last_modified is not None}
    file_times = [moment for path, moment in files if path not in observed]
    until = (snapshot.now // LEARNING_INTERVAL_SECONDS - 1) * LEARNING_INTERVAL_SECONDS if is_large else None
    return site_signals(in_pieces(pages, PIECE_PAGES), file_times, until, installed=install_times())


def _pages(snapshot: SiteSnapshot, parts: Parts, *, whole: bool) -> Iterator[Page]:
    """All pages of a site, or every n-th of some parts."""
    numbers, step = sorted(parts), 1
    if not whole:
        learned = [number for number in numbers if number != UNLEARNED_PART]
        numbers = [*({UNLEARNED_PART} & parts.keys()), *learned[:: len(learned) // SAMPLE_PARTS + 1]]
        step = sum(parts[number].pages for number in numbers) // SAMPLE_PAGES + 1
    for number in numbers:
        yield from snapshot.store.part(snapshot.site.store_key, number)[::step]


def install_times() -> frozenset[int]:
    """When the packages on `sys.path` were installed, in POSIX seconds.

    The files of a package have the time of its installation, which says nothing about when their content changed.
    """
    entries: list[object] = [*sys.path]  # apps may put other objects there; Python ignores them
    return _install_times_in(tuple(entry for entry in entries if isinstance(entry, str)))


@lru_cache(1)
def _install_times_in(folders: tuple[str, ...]) -> frozenset[int]:
    times: set[int] = set()
    for file in chain.from_iterable(Path(folder).glob("*.dist-info/METADATA") for folder in folders):
        with suppress(OSError):
            times.add(int(file.stat().st_mtime))
    return frozenset(times)
