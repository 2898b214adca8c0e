"""Limits the sites that clients can create in a store by inventing hosts: rows of a site are never deleted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from .bounded_cache import BoundedCache
from .models import Site, StoreKey
from .stores.base import Store
from .stores.checksums import verify, with_checksum

log: logging.Logger = logging.getLogger("sitemap_middleware")

MAX_UNNAMED_SITES: Final = 1000
"""Sites in a store that no setting names in full, such as those below a wildcard, at root paths or at ports."""

_RECORD_SITE: Final = StoreKey("sites")
_RECORD_NAME: Final = "unnamed"
"""Where the store keeps the keys of these sites."""


class SiteQuota:
    """Decides whether a site that no setting names may have pages and documents in the store."""

    def __init__(self, store: Store, is_named: Callable[[Site], bool]) -> None:
        self._store = store
        self._is_named = is_named
        self._decided = BoundedCache[str, bool](2 * MAX_UNNAMED_SITES)
        self._warned = False

    def may_store(self, site: Site) -> bool:
        """Whether a site may have pages and documents; `StoreError` if the store fails."""
        if self._is_named(site):
            return True
        decided = self._decided.get(site.store_key)
        if decided is None:
            decided = self._register(site.store_key)
            self._decided.put(site.store_key, decided)
        return decided

    def _register(self, key: str) -> bool:
        """Register a site if there is room for it; return whether it is registered."""
        record = verify(self._store.load(_RECORD_SITE, [_RECORD_NAME]).get(_RECORD_NAME, b""))
        keys = (record or b"").decode().splitlines()
        if key in keys:
            return True
        if len(keys) < MAX_UNNAMED_SITES:
            self._store.save(_RECORD_SITE, {_RECORD_NAME: with_checksum("\n".join([*keys, key]).encode())})
            return True
        if not self._warned:
            self._warned = True
            log.warning(
                "too many sites: the store has %d with hosts, ports and root paths that no setting names;"
                " name the hosts in base_url or allowed_hosts, without wildcards, and have the server refuse others",
                MAX_UNNAMED_SITES,
            )
        return False
