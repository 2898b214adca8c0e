"""An overview: what a store keeps of each site, for people. It is looked at from outside (`open_readonly`), and only read.

Every engine tells what the contract asks for. What else there is to know, an engine
may tell by a method `status`, as ours do; one of your own may tell its sites by a
method `sites`, or they are named by who asks. What is not told is None.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..exceptions import OptionError, StoreError
from ..urls import parse_base_url
from .base import UNLEARNED_BLOCK, Store
from .engine_status import EngineStatus, LeaseStatus
from .readonly import ReadOnlySQLiteStore, open_readonly
from .sqlite.memory import MemoryStore


class SiteStatus(NamedTuple):
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


class StoreStatus(NamedTuple):
    """What there is in a store."""

    store: str
    engine: str
    version: str | None
    size: int | None
    """Bytes on disk."""
    sites: list[SiteStatus]
    leases: list[LeaseStatus] | None
    """Those that have not ended."""

    @property
    def pages(self) -> int:
        return sum(kept.learned + kept.named for kept in self.sites)


def store_status(store: Store, now: int, sites: Sequence[str] = ()) -> StoreStatus:
    """What there is in a store: of these sites, else of all.

    Raises `StoreError` where it cannot be read, has nothing of a site named, or
    does not tell which sites it has.
    """
    seen, missing = open_readonly(store)
    if isinstance(seen, MemoryStore):
        raise StoreError(str(missing))
    try:
        name = str(getattr(seen, "name", type(seen).__name__))
        told = _engine_status(seen, name, now, sites)
        # Documents are of bases, of which a development machine's site has several.
        changed: dict[str, int] = {}
        for base, since in told.last_changed.items():
            key = _key_of_base_url(base)
            changed[key] = max(since, changed.get(key, 0))
        kept = [_site_status(seen, name, key, changed.get(key)) for key in told.sites]
        return StoreStatus(name, told.engine, told.version, told.size, kept, told.leases)
    finally:
        seen.close()


def _engine_status(store: Store, name: str, now: int, sites: Sequence[str]) -> EngineStatus:
    tell: Callable[[int, Sequence[str]], EngineStatus] | None = getattr(store, "status", None)
    if tell is not None:
        return tell(now, sites)
    return EngineStatus(name.partition(":")[0], None, None, list(sites) or _sites(store, name), {}, None)


def _sites(store: Store, name: str) -> list[str]:
    tell = getattr(store, "sites", None)
    if tell is None:
        raise StoreError(f"the store {name} does not tell which sites it has: name them, as --site https://example.com")
    return list(tell())


def _site_status(store: Store, name: str, key: str, last_changed: int | None) -> SiteStatus:
    version, blocks = store.version(key), [block for block in store.blocks(key) if block.pages]
    if not version:
        raise StoreError(f"the store {name} has nothing of the site {key}")
    learned = [block for block in blocks if block.number != UNLEARNED_BLOCK]
    return SiteStatus(
        key,
        version,
        sum(block.pages for block in learned),
        sum(block.pages for block in blocks) - sum(block.pages for block in learned),
        len(learned),
        len({block.document for block in learned}),
        store.last_seen(key) if isinstance(store, ReadOnlySQLiteStore) else None,
        last_changed,
    )


def _key_of_base_url(base: str) -> str:
    try:
        return parse_base_url(base, "base").store_key
    except OptionError:
        return base
