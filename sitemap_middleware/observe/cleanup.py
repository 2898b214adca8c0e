"""Deletes learned pages that are outdated, and when no more may be stored, those that only repeat others."""

from __future__ import annotations

from typing import Final

from ..evidence.dates import SECONDS_PER_DAY
from ..evidence.page_verdict import is_listable
from ..listing.candidates import equal_pages_of_part
from ..models import Site, StoreKey
from ..stores.base import UNLEARNED_PART, Store
from ..util import BoundedCache, WorkerId

CLEANUP_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds between two deletions of a site's pages."""

MAX_SITES: Final = 2000
"""Sites whose last cleanup is remembered."""


class Cleaner:
    """Deletes learned pages of all sites."""

    def __init__(self, store: Store, max_age_days: int) -> None:
        self._store = store
        self._max_age_seconds = max_age_days * SECONDS_PER_DAY
        self._worker_id = WorkerId()
        self._cleaned_up_at = BoundedCache[StoreKey, float](MAX_SITES)
        self._full = set[StoreKey]()
        """The sites with new pages that were refused since the last cleanup."""

    def clean_up(self, site: Site, now: int, *, is_full: bool) -> None:
        """Once an hour, delete outdated pages from the store, and if new pages were refused, those that repeat others.

        A stranger can request any number of spellings of a page, or words that the app ignores.
        """
        key = site.store_key
        if is_full:
            self._full.add(key)
        if 0 <= now - (self._cleaned_up_at.get(key) or -CLEANUP_INTERVAL_SECONDS) < CLEANUP_INTERVAL_SECONDS:
            return
        self._cleaned_up_at.put(key, now)
        if key in self._full:
            self._full.discard(key)
            self._delete_repeated(site)
        if self._store.lease(key, "forget", self._worker_id.name, CLEANUP_INTERVAL_SECONDS):
            forget_pages(self._store, key, now - self._max_age_seconds, now - SECONDS_PER_DAY)

    def _delete_repeated(self, site: Site) -> None:
        key = site.store_key
        for number in sorted(self._store.parts(key).keys() - {UNLEARNED_PART}):
            version = self._store.version(key)
            pages = self._store.part(key, number)
            if repeated := equal_pages_of_part(self._store, site, pages):
                # If another worker has written meanwhile, the next cleanup does it.
                self._store.write(key, version, dict.fromkeys(repeated))


def forget_pages(store: Store, site: StoreKey, unseen_since: int, unlisted_since: int) -> None:
    """Delete learned pages that were last seen before a time, in POSIX seconds; before a later one unless listable."""
    for number in store.parts(site).keys() - {UNLEARNED_PART}:
        version = store.version(site)
        outdated = [
            page.path
            for page in store.part(site, number)
            if page.last_seen < unseen_since or (page.last_seen < unlisted_since and not is_listable(page))
        ]
        if outdated:
            # If another worker has written meanwhile, the next cleanup does it.
            store.write(site, version, dict.fromkeys(outdated))
