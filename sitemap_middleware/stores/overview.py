"""An overview: what a store keeps of each site, for people. It is looked at from outside (`glance`), and only read.

Every engine tells what the contract asks for. Which sites there are is no part
of that: an engine may tell by a method `sites`, as the look into an SQLite file
does, or they are named by who asks. What an engine does not tell is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import OptionError, StoreError
from ..location import site_of_base_url
from .base import NAMED, Store
from .glance import Glance, glance
from .memory import MemoryStore


class Kept(NamedTuple):
    """What a store keeps of one site."""

    site: str
    """Its key."""
    version: int
    learned: int
    """Pages learned from traffic."""
    named: int
    """Pages that routes and values name, and that were seen."""
    blocks: int
    """Of learned pages, with pages in them."""
    documents: int
    """That these blocks are written in."""
    last_seen: int | None
    """When, in POSIX seconds, one of its pages was last seen, as far as that is written down: within the hour."""
    last_changed: int | None
    """Since when, in POSIX seconds, the newest of its documents is what it is."""


class Lease(NamedTuple):
    """A job that one worker has to itself."""

    site: str
    name: str
    until: int
    """POSIX seconds."""


class Overview(NamedTuple):
    """What there is in a store."""

    store: str
    engine: str
    version: str | None
    size: int | None
    """Bytes on disk."""
    sites: list[Kept]
    leases: list[Lease] | None
    """Those that have not ended."""

    @property
    def pages(self) -> int:
        return sum(kept.learned + kept.named for kept in self.sites)


def overview(store: Store, now: int, sites: Sequence[str] = ()) -> Overview:
    """What there is in a store: of these sites, else of all.

    Raises `StoreError` where it cannot be read, has nothing of a site named, or
    does not tell which sites it has.
    """
    seen, missing = glance(store)
    if isinstance(seen, MemoryStore):
        raise StoreError(str(missing))
    try:
        name = str(getattr(seen, "name", type(seen).__name__))
        keys = list(sites) or _sites(seen, name)
        if isinstance(seen, Glance):
            return _of_sqlite(seen, name, keys, now)
        return Overview(name, name.partition(":")[0], None, None, [_kept(seen, name, key) for key in keys], None)
    finally:
        seen.close()


def _sites(store: Store, name: str) -> list[str]:
    tell = getattr(store, "sites", None)
    if tell is None:
        raise StoreError(f"the store {name} does not tell which sites it has: name them, as --site https://example.com")
    return list(tell())


def _kept(store: Store, name: str, key: str, last_seen: int | None = None, last_changed: int | None = None) -> Kept:
    version, blocks = store.version(key), [block for block in store.blocks(key) if block.pages]
    if not version:
        raise StoreError(f"the store {name} has nothing of the site {key}")
    learned = [block for block in blocks if block.number != NAMED]
    return Kept(
        key,
        version,
        sum(block.pages for block in learned),
        sum(block.pages for block in blocks) - sum(block.pages for block in learned),
        len(learned),
        len({block.document for block in learned}),
        last_seen,
        last_changed,
    )


def _of_sqlite(seen: Glance, name: str, keys: Sequence[str], now: int) -> Overview:
    """All that a file tells. Documents and leases are of bases, of which a development machine's site has several."""
    last_changed: dict[str, int] = {}
    for base, since in seen.last_changed().items():
        key = _key_of(base)
        last_changed[key] = max(since, last_changed.get(key, 0))
    kept = [_kept(seen, name, key, seen.last_seen(key), last_changed.get(key)) for key in keys]
    leases = [Lease(*held) for held in seen.leases(now)]
    files = [Path(f"{seen.file}{suffix}") for suffix in ("", "-wal", "-shm")]
    size = sum(file.stat().st_size for file in files if file.exists())
    return Overview(name, "SQLite", seen.engine(), size, kept, leases)


def _key_of(base: str) -> str:
    try:
        return site_of_base_url(base, "base").key
    except OptionError:
        return base
