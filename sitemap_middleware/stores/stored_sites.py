"""Reads a store from outside its app: `open_readonly` for any command, `store_status` for the `status` command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..exceptions import StoreError
from ..models import BaseURL, Site, StoreKey
from .base import UNLEARNED_PART, Store, store_name
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
    base_url: BaseURL
    record: bytes | None = None
    """The record that was asked for, if it has that."""


class StoreStatus(NamedTuple):
    """What a store contains."""

    store: str
    sites: list[SiteStatus]


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
    open_other = getattr(store, "open_readonly", None)
    return (store if open_other is None else open_other()), None


def stored_sites(store: Store) -> list[str] | None:
    """The store keys of all sites, sorted; None if the store cannot list them. Raises `StoreError`."""
    sites = getattr(store, "sites", None)
    return None if sites is None else list(sites())


def store_status(
    store: Store,
    sites: Sequence[str] = (),
    *,
    is_live: bool = False,
    record: str | None = None,
    named: Site | None = None,
) -> StoreStatus:
    """What a store contains: of the sites with these keys, or of all, and a record of each.

    If `is_live`, this process serves the app, so a store in memory has what it has seen. `named` is the site of
    base_url, if that is known. Raises `StoreError` if the store cannot be read, does not know a site, or lists none.
    """
    opened, missing = open_readonly(store)
    if isinstance(opened, MemoryStore) and not is_live:
        raise StoreError(str(missing))
    name = store_name(opened)
    try:
        found = sites or stored_sites(opened)
        if found is None:
            raise StoreError(f"the store {name} cannot list its sites: name them, such as --site https://example.com")
        return StoreStatus(name, [_site_status(opened, key, record, named) for key in found])
    finally:
        opened.close()


def _site_status(store: Store, key: str, record: str | None, base: Site | None) -> SiteStatus:
    site = StoreKey(key)
    version, counts = store.version(site), {number: part.pages for number, part in store.parts(site).items()}
    if not version:
        raise StoreError(f"the store {store_name(store)} has no pages of the site {key}")
    named = counts.pop(UNLEARNED_PART, 0)
    base_url = base_url_of_key(key, base)
    found = store.load(base_url, [record]).get(record) if record else None
    return SiteStatus(key, sum(counts.values()), named, len(counts), version // 1_000_000, base_url, found)


def base_url_of_key(key: str, named: Site | None = None) -> BaseURL:
    """A base URL by which the site of a store key is found.

    A development machine's key has only a port: the host is that of the `named` site, if that has the port.
    """
    kind, _, rest = key.partition(":")
    if kind != "loopback":
        return BaseURL(key)
    port, _, path = rest.partition("/")
    routed_host, slash, root = path.partition("/")
    own = None if named is None else replace(named, root=slash + root)
    if own is not None and own.store_key == key:
        return own.base_url
    host = routed_host or "localhost"
    return BaseURL((f"http://{host}:{port}" if port.isdigit() else f"{port}://{host}") + slash + root)
