"""Reads a store from outside its app: `open_readonly` for any command, `store_status` for the `status` command."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from ..exceptions import StoreError
from ..models import StoreKey
from .base import UNLEARNED_PART, EngineStatus, Store, StoreExtras, store_name
from .default import FallbackStore
from .sqlite import MemoryStore, SQLiteStore


class SiteStatus(NamedTuple):
    """What a store keeps of one site."""

    site: str
    """Its store key."""
    learned: int
    """Pages learned from traffic."""
    named: int
    """Unlearned pages that were seen: those that routes and `values` name."""
    parts: int
    """Parts that have learned pages."""
    last_written: int
    """When one of its pages was last written, in POSIX seconds."""


class StoreStatus(NamedTuple):
    """What a store contains."""

    store: str
    engine: str
    size: int | None
    """Bytes on disk or in memory."""
    sites: list[SiteStatus]

    @property
    def pages(self) -> int:
        return sum(site.learned + site.named for site in self.sites)


def open_readonly(store: Store) -> tuple[Store, str | None]:
    """Open a store for reading only. Also return why it may lack data that the running app has, if it may.

    Nothing is read yet: every call raises `StoreError` if the store cannot be read.
    """
    if isinstance(store, FallbackStore):
        store = store.effective_store
    if isinstance(store, MemoryStore):
        return store, "the store is memory://, so only the running app knows what it has seen"
    if isinstance(store, SQLiteStore) and not store.path.exists():
        return MemoryStore(), (
            f"no store exists at {store.path}, so no responses of the app are known: request the running app's sitemap"
            " once; if that was done, run this command in the app's folder, or set SITEMAP_STORE as the app has it"
        )
    open_other = StoreExtras.of(store).open_readonly
    return (open_other() if open_other is not None else store), None


def store_status(store: Store, sites: Sequence[str] = (), *, is_live: bool = False) -> StoreStatus:
    """What a store contains: of these sites, or of all.

    Args:
        store: the store.
        sites: store keys.
        is_live: whether this process serves the app, so that a store in memory has what it has seen.

    Raises `StoreError` if the store cannot be read, does not know a site, or cannot list its sites.
    """
    opened, missing = open_readonly(store)
    if isinstance(opened, MemoryStore):
        if not is_live:
            raise StoreError(str(missing))
        return StoreStatus("memory://", "memory", None, [_site_status(opened, key) for key in sites])
    try:
        name, engine_status = store_name(opened), StoreExtras.of(opened).status
        engine = EngineStatus(name.partition(":")[0], None, [])
        if engine_status is not None:
            with contextlib.suppress(*([StoreError] if sites else ())):  # an account may not be allowed to list sites
                engine = engine_status()
        elif not sites:
            raise StoreError(f"the store {name} cannot list its sites: name them, such as --site https://example.com")
        found = [_site_status(opened, key) for key in sites or engine.sites]
        return StoreStatus(name, engine.engine, engine.size, found)
    finally:
        opened.close()


def _site_status(store: Store, key: str) -> SiteStatus:
    site = StoreKey(key)
    version, counts = store.version(site), {number: part.pages for number, part in store.parts(site).items()}
    if not version:
        raise StoreError(f"the store {store_name(store)} has no pages of the site {key}")
    named = counts.pop(UNLEARNED_PART, 0)
    return SiteStatus(key, sum(counts.values()), named, len(counts), version // 1_000_000)
