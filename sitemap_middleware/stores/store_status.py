"""Reads a store from outside its app: `open_readonly` for any command, `store_status` for the `status` command.

Most figures come from the store contract; an engine adds what `StoreExtras` offers.
Figures that the engine does not know are None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..exceptions import OptionError, StoreError
from ..models import StoreKey
from ..urls import parse_base_url
from .base import UNLEARNED_BLOCK, EngineStatus, LeaseStatus, Store, StoreExtras, store_name
from .default_store import FallbackStore
from .sqlite.memory import MemoryStore
from .sqlite.readonly import ReadOnlySQLiteStore
from .sqlite.store import SQLiteStore


class SiteStatus(NamedTuple):
    """What a store keeps of one site."""

    site: str
    """Its store key."""
    version: int
    learned: int
    """Pages learned from traffic."""
    named: int
    """Unlearned pages that were seen: those that routes and `values` name."""
    blocks: int
    """Blocks that have learned pages."""
    documents: int
    """Documents of these blocks."""
    last_seen: int | None
    """When one of its pages was last seen, in POSIX seconds; up to an hour late, as not every visit is stored."""
    last_changed: int | None
    """Since when its newest document is unchanged, in POSIX seconds."""


class StoreStatus(NamedTuple):
    """What a store contains."""

    store: str
    engine: str
    version: str | None
    size: int | None
    """Bytes on disk."""
    sites: list[SiteStatus]
    leases: list[LeaseStatus] | None
    """The leases that have not ended."""

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
    if isinstance(store, SQLiteStore):
        if store.path.exists():
            return ReadOnlySQLiteStore(store.path), None
        return MemoryStore(), (
            f"no store exists at {store.path}, so no responses of the app are known: request the running app's sitemap"
            " once; if that was done, run this command in the app's folder, or set SITEMAP_STORE as the app has it"
        )
    open_other = StoreExtras.of(store).open_readonly
    return (open_other() if open_other is not None else store), None


def store_status(store: Store, now: int, sites: Sequence[str] = (), *, is_live: bool = False) -> StoreStatus:
    """What a store contains: of these sites, or of all.

    Args:
        store: the store.
        now: POSIX seconds.
        sites: store keys.
        is_live: whether this process serves the app, so that a store in memory has what it has seen.

    Raises `StoreError` if the store cannot be read, does not know a site, or cannot list its sites.
    """
    opened, missing = open_readonly(store)
    if isinstance(opened, MemoryStore):
        if not is_live:
            raise StoreError(str(missing))
        statuses = [_site_status(opened, "memory://", StoreKey(key), None) for key in sites]
        return StoreStatus("memory://", "memory", None, None, statuses, None)
    try:
        name = store_name(opened)
        engine = _engine_status(opened, name, now, sites)
        # Documents belong to base URLs, of which a development machine's site has several.
        last_changed: dict[str, int] = {}
        for base_url, since in engine.last_changed.items():
            key = _key_of_base_url(base_url)
            last_changed[key] = max(since, last_changed.get(key, 0))
        site_statuses = [_site_status(opened, name, StoreKey(key), last_changed.get(key)) for key in engine.sites]
        return StoreStatus(name, engine.engine, engine.version, engine.size, site_statuses, engine.leases)
    finally:
        opened.close()


def _engine_status(store: Store, name: str, now: int, sites: Sequence[str]) -> EngineStatus:
    extras = StoreExtras.of(store)
    if extras.status is not None:
        return extras.status(now, sites)
    keys = list(sites)
    if not keys:
        if extras.sites is None:
            raise StoreError(f"the store {name} cannot list its sites: name them, such as --site https://example.com")
        keys = list(extras.sites())
    return EngineStatus(name.partition(":")[0], None, None, keys, {}, None)


def _site_status(store: Store, name: str, key: StoreKey, last_changed: int | None) -> SiteStatus:
    version, blocks = store.version(key), [block for block in store.blocks(key) if block.pages]
    if not version:
        raise StoreError(f"the store {name} has no pages of the site {key}")
    learned = [block for block in blocks if block.number != UNLEARNED_BLOCK]
    learned_pages = sum(block.pages for block in learned)
    return SiteStatus(
        site=key,
        version=version,
        learned=learned_pages,
        named=sum(block.pages for block in blocks) - learned_pages,
        blocks=len(learned),
        documents=len({block.document for block in learned}),
        last_seen=store.last_seen(key) if isinstance(store, ReadOnlySQLiteStore) else None,
        last_changed=last_changed,
    )


def _key_of_base_url(base_url: str) -> str:
    try:
        return parse_base_url(base_url, "base_url").store_key
    except OptionError:
        return base_url
